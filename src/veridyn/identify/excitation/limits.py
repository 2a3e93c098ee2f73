"""What an experiment may do: limits as functions of the motion, each with its slopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.excitation.capsules import Collision, Posture, clearances
from veridyn.identify.excitation.plant import Plant
from veridyn.model.place import GROUND
from veridyn.signals.trajectory import JointLimits

JUST_MOVING = 1e-9  # rad/s or m/s: a joint that begins to move


@dataclass(frozen=True)
class Clearance:
    """A point of one body stays `distance` metres away from a point of another; points in their body's frame, the origin if not given.

    Round a link off by a few such pairs: a sphere of radius r_a about one point and r_b about the other need r_a + r_b.
    """

    body: str
    other: str
    distance: float
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    other_point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __str__(self) -> str:
        return f"distance {self.body} to {self.other}"


@dataclass(frozen=True, eq=False)
class Limits:
    """All that bounds an experiment.

    `actuators`: range, speed and acceleration of each actuator, in the order of the tree's joints (of its actuated coordinates where it
    has loops: lengths of legs); infinite where there is none. `coordinates`: the same of the designed coordinates, where these are not the
    actuators (a platform's pose). `force` (rows,): the most each actuator may give, with the model's own parameters, N or N*m; infinite
    where there is no limit. `workspace`: body → the least and the largest x, y, z of its origin in the ground's frame. `clearances`:
    distances within the machine. `collision`: capsules that may not touch. `endless`: coordinates that turn without end by design, so
    that a missing range is none; `unchecked`: what else is known not to be checked, in words.
    """

    actuators: JointLimits | None = None
    coordinates: JointLimits | None = None
    _: KW_ONLY
    force: ArrayLike | None = None
    workspace: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    clearances: Sequence[Clearance] = ()
    collision: Collision | None = None
    endless: Sequence[str] = ()
    unchecked: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Bounds:
    """Limits of one plant as functions g(X) (N, k) with −1 < g < 1, or 0 < g where only one side is limited.

    `names` say what each of the k is.
    """

    plant: Plant
    limits: Limits
    values: Array  # of the base parameters, for forces
    friction_speed: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        out: list[str] = []
        for names, limits in self._joint_limits():
            for what, size in (
                ("range", (limits.high - limits.low)),
                ("speed", limits.speed),
                ("acceleration", limits.acceleration),
            ):
                out += [f"{what} of {n}" for n, s in zip(names, size, strict=True) if np.isfinite(s)]
        if self.limits.force is not None:
            out += [f"force of {self.plant.rows[r]}" for r in self._limited_rows]
        for body in self.limits.workspace:
            out += [f"workspace of {body}, {axis}" for axis in "xyz"]
        out += [str(c) for c in self.limits.clearances]
        return (*out, *(() if self.limits.collision is None else self.limits.collision.names))

    @property
    def _limited_rows(self) -> list[int]:
        return [int(r) for r in np.flatnonzero(np.isfinite(np.asarray(self.limits.force, dtype=np.float64)))]

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What a motion within these limits may still violate, in words: limits that were not given."""
        limits, out = self.limits, []
        own = limits.actuators
        for what in ("range", "speed", "acceleration"):
            size = None if own is None else own.high - own.low if what == "range" else getattr(own, what)
            free = [n for k, n in enumerate(self.plant.bounded) if size is None or not np.isfinite(size[k])]
            free = [n for n in free if what != "range" or n not in limits.endless]
            out += [f"{what} of {_few(free, self.plant.bounded)}"] if free else []
        force = np.full(len(self.plant.rows), np.inf) if limits.force is None else np.asarray(limits.force)
        free = [row for row, f in zip(self.plant.rows, force, strict=True) if not np.isfinite(f)]
        out += [f"force of {_few(free, self.plant.rows)}"] if free else []
        if not limits.clearances and (limits.collision is None or not limits.collision.pairs):
            out.append("collisions within the machine")
        if not limits.workspace and (limits.collision is None or not limits.collision.above):
            out.append("collisions with the floor")
        return (*out, *limits.unchecked)

    def _joint_limits(self) -> list[tuple[tuple[str, ...], JointLimits]]:
        both = ((self.plant.bounded, self.limits.actuators), (self.plant.coordinates, self.limits.coordinates))
        return [(names, limits) for names, limits in both if limits is not None]

    @property
    def sides(self) -> tuple[Array, Array]:
        """The least and the largest value of each g."""
        one_sided = np.array([name.startswith("distance ") for name in self.names])
        return np.where(one_sided, 0.0, -1.0), np.where(one_sided, np.inf, 1.0)

    @property
    def joint_limits(self) -> int:
        """How many of the k are ranges, speeds and accelerations of joints; they come first."""
        sizes = [(x.high - x.low, x.speed, x.acceleration) for _, x in self._joint_limits()]
        return sum(int(np.isfinite(size).sum()) for size in sizes)

    def __call__(
        self, X: Array, slopes: bool = True, only: Literal["joints", "others"] | None = None
    ) -> tuple[Array, Array | None]:
        """g (N, k), and on request their slopes (N, k, 3, n); `only` those of :attr:`joint_limits`, or the others."""
        N, n = X.shape[1], X.shape[2]
        values: list[Array] = []
        parts: list[Array] = []

        def take(g: Array, dg: Array | None) -> None:
            values.append(g)
            if slopes:
                assert dg is not None
                parts.append(dg)

        if self.limits.actuators is not None and only != "others":
            take(*_scaled(*self.plant.actuators(X), self.limits.actuators, slopes))
        if self.limits.coordinates is not None and only != "others":
            take(*_scaled(np.moveaxis(X, 0, 1), None, self.limits.coordinates, slopes))
        if only == "joints":
            return np.concatenate(values, axis=1), np.concatenate(parts, axis=1) if slopes else None
        if self.limits.force is not None:
            take(*self._forces(X, slopes))
        for body, (low, high) in self.limits.workspace.items():
            p, dp = self.plant.place(X, body, np.zeros(3))
            middle, half = (np.add(high, low)) / 2.0, (np.subtract(high, low)) / 2.0
            whole = np.zeros((N, 3, 3, n))
            whole[:, :, 0] = dp / half[:, None]
            take((p - middle) / half, whole)
        for c in self.limits.clearances:
            a, da = self.plant.place(X, c.body, np.array(c.point))
            b, db = self.plant.place(X, c.other, np.array(c.other_point))
            between, square = a - b, c.distance**2
            whole = np.zeros((N, 1, 3, n))
            whole[:, 0, 0] = 2.0 * np.einsum("ni,nik->nk", between, da - db) / square
            take((between**2).sum(axis=1, keepdims=True) / square - 1.0, whole)
        if self.limits.collision is not None:
            take(*self._collisions(self.limits.collision, X, slopes))
        return np.concatenate(values, axis=1), np.concatenate(parts, axis=1) if slopes else None

    def _collisions(self, collision: Collision, X: Array, slopes: bool) -> tuple[Array, Array | None]:
        q, S = self.plant.posture(X)
        g, by_q = clearances(collision, Posture(self.plant.machine, q), slopes)
        if by_q is None:
            return g, None
        out = np.zeros((*g.shape, 3, X.shape[2]))
        out[:, :, 0] = by_q if S is None else by_q @ S
        return g, out

    @property
    def friction(self) -> Array:
        """The jump (rows,) of each row's force where its joint begins to move, N or N*m."""
        X = np.zeros((3, 2, len(self.plant.coordinates)))
        X[0], X[1, 1] = self.plant.home, JUST_MOVING
        still, begun = self.plant.regressor(X) @ self.values
        return np.abs(begun - still)

    def below_friction(self) -> Bounds | None:
        """The same with forces smaller by the friction that a search rounds off, so that it keeps the real ones; None where none are."""
        if self.limits.force is None:
            return None
        left = np.asarray(self.limits.force, dtype=np.float64) - self.friction
        return replace(self, limits=replace(self.limits, force=left)) if (left > 0.0).all() else None

    def _forces(self, X: Array, slopes: bool) -> tuple[Array, Array | None]:
        allowed, rows = np.asarray(self.limits.force, dtype=np.float64), self._limited_rows
        gamma = (self.plant.regressor(X, self.friction_speed) @ self.values)[:, rows] / allowed[rows]
        if not slopes:
            return gamma, None
        by_X = self.plant.force_slopes(X, self.values, rows, self.friction_speed)
        return gamma, by_X / allowed[rows, None, None]


def _scaled(Q: Array, dQ: Array | None, limits: JointLimits, slopes: bool) -> tuple[Array, Array | None]:
    """Ranges, speeds and accelerations (N, 3, k) over what is allowed, less those without a limit, as (N, …)."""
    size = np.stack([(limits.high - limits.low) / 2.0, limits.speed, limits.acceleration])
    bounded = np.isfinite(size)
    centre = np.zeros_like(size)
    centre[0, bounded[0]] = (limits.high[bounded[0]] + limits.low[bounded[0]]) / 2.0
    g = ((Q - centre) / size)[:, bounded]
    if not slopes:
        return g, None
    k = Q.shape[2]
    if dQ is None:
        dQ = np.zeros((1, 3, k, 3, k))
        for order in range(3):
            dQ[0, order, np.arange(k), order, np.arange(k)] = 1.0
        return g, np.broadcast_to((dQ / size[:, :, None, None])[:, bounded], (len(Q), int(bounded.sum()), 3, k))
    return g, (dQ / size[:, :, None, None])[:, bounded]


def _few(names: Sequence[str], whole: Sequence[str]) -> str:
    return "every joint" if len(names) == len(whole) and len(whole) > 1 else ", ".join(names)


def check_limits(plant: Plant, limits: Limits) -> None:
    """Refuse limits that do not belong to the machine: every fault at once."""
    faults = Faults()
    for what, names, own in (
        ("actuators", plant.bounded, limits.actuators),
        ("coordinates", plant.coordinates, limits.coordinates),
    ):
        if own is not None and own.n != len(names):
            faults.add(
                "they are not limits of this machine.",
                where=f"limits.{what}",
                expected=f"{len(names)}: {', '.join(names)}",
                found=f"{own.n}",
            )
        elif own is not None and (np.isfinite(own.low) != np.isfinite(own.high)).any():
            k = int(np.argmax(np.isfinite(own.low) != np.isfinite(own.high)))
            faults.add(
                "a range has both ends or none.",
                where=f"limits.{what}, {names[k]}",
                found=f"{own.low[k]:g} to {own.high[k]:g}",
            )
    if limits.actuators is None and limits.coordinates is None:
        faults.add(
            "nothing bounds the motion, so no excitation is the best.",
            where="limits",
            expected="a JointLimits as limits.actuators or limits.coordinates",
        )
    if limits.force is not None:
        force = np.asarray(limits.force, dtype=np.float64)
        if force.shape != (len(plant.rows),) or not (force > 0.0).all():  # infinite: no limit
            faults.add(
                "they are not forces of this machine.",
                where="limits.force",
                expected=f"{len(plant.rows)} positive numbers ({', '.join(plant.rows)})",
                found=f"{force.tolist()}",
            )
    bodies = plant.machine.body_names
    for body, (low, high) in limits.workspace.items():
        if body not in bodies:
            faults.add(f"there is no body '{body}'.", where="limits.workspace", hint=did_you_mean(body, bodies))
        elif np.shape(low) != (3,) or np.shape(high) != (3,) or not (np.asarray(low) < np.asarray(high)).all():
            faults.add(
                "a workspace is a box: three least and three largest coordinates.",
                where=f"limits.workspace['{body}']",
                found=f"{low} to {high}",
            )
    for c in limits.clearances:
        for body in (c.body, c.other):
            if body not in bodies:
                faults.add(f"there is no body '{body}'.", where="limits.clearances", hint=did_you_mean(body, bodies))
        if not c.distance > 0.0:
            faults.add("a distance must be above zero.", where=f"limits.clearances, {c}", found=f"{c.distance}")
    if limits.collision is not None:
        _check_capsules(limits.collision, bodies, faults)
    faults.raise_if_any(DataError, plant.name)


def _check_capsules(collision: Collision, bodies: tuple[str, ...], faults: Faults) -> None:
    for c in collision.capsules:
        if c.body not in (*bodies, GROUND):
            hint = did_you_mean(c.body, (*bodies, GROUND))
            faults.add(f"there is no body '{c.body}'.", where="limits.collision", hint=hint)
        ends = np.array([c.start, c.end], dtype=np.float64)
        if not c.radius > 0.0 or ends.shape != (2, 3) or not np.isfinite(ends).all():
            expected, found = "two ends of three numbers, and a radius above zero", f"{c.start}, {c.end}, {c.radius}"
            faults.add("this is no capsule.", where=f"limits.collision, '{c.body}'", expected=expected, found=found)
    if collision.margin < 0.0:
        faults.add("a margin is zero or more.", where="limits.collision", found=f"{collision.margin:g} m")
    if collision.above and collision.floor is None:
        faults.add("a floor needs its height.", where="limits.collision")
