"""Virtual sensors: quantities that nobody measures, from the estimated state, each with its band.

    y = g(q, q̇, q̈, λ),    σ² = (∂g/∂x) P (∂g/∂x)ᵀ

What a real sensor on a mechanism reads, a virtual one does too (:class:`~veridyn.model.instrument.Instrument`); beyond that,
accelerations of points, forces in springs and dampers, and reactions of joints, which come from the multipliers. The band is what the
filter's covariance implies; it is as honest as the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.mass import body_mass, centre_map
from veridyn.mechanics.natural.minimal import Instant
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.instrument import KINDS, Instrument
from veridyn.model.natural import AXES, Angle, Marker, PointRef
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.result import Track

Array = NDArray[np.float64]
Kind = Literal[
    "coordinate", "rate", "position", "velocity", "acceleration", "gyroscope", "accelerometer", "spring", "reaction"
]


@dataclass(frozen=True)
class Virtual:
    """A quantity by name: `kind` as of an instrument, or acceleration (of a point, in the ground's axes), spring, or reaction.

    `on`: what it is on. For "spring", the name of a spring or damper: its tension or torque. For "reaction", a joint by its name, or
    (body, point): what all others do to that body at that point, in the ground's axes.
    """

    name: str
    kind: Kind
    on: PointRef | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reading:
    """Values (N, k) of a virtual sensor with standard deviations (N, k), by the names of its components."""

    name: str
    components: tuple[str, ...]
    unit: str
    t: Array
    values: Array
    sigma: Array

    def band(self, deviations: float = 1.96) -> tuple[Array, Array]:
        """The interval of so many standard deviations, (N, k) each."""
        return self.values - deviations * self.sigma, self.values + deviations * self.sigma


def virtual(system: MechanismSystem, track: Track, wanted: Sequence[Virtual], inputs: Array) -> dict[str, Reading]:
    """Each of the quantities along a track; `inputs` (N, p) are those of the measurements."""
    quantities = {w.name: Quantity(system, w) for w in wanted}
    values: dict[str, list[Array]] = {name: [] for name in quantities}
    sigmas: dict[str, list[Array]] = {name: [] for name in quantities}
    for x, P, u in zip(track.x, track.P, inputs, strict=True):
        at = system.instant(x, u)
        for name, quantity in quantities.items():
            y, G = quantity.at(x, at)
            values[name].append(y)
            sigmas[name].append(np.sqrt(np.maximum(((G @ P) * G).sum(axis=1), 0.0)))
    return {
        name: Reading(name, q.components, q.unit, track.t, np.array(values[name]), np.array(sigmas[name]))
        for name, q in quantities.items()
    }


class Quantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state."""

    def __init__(self, system: MechanismSystem, wanted: Virtual) -> None:
        self.system, self.wanted = system, wanted
        natural = system.model.system
        self.table: Readout | None = None
        self.components: tuple[str, ...] = (wanted.name,)
        self.unit = ""
        on = wanted.on
        if wanted.kind == "acceleration":
            if isinstance(on, tuple):
                raise _no_place(wanted)
            self.A = _point(natural, on)[:, :-1]
            self.components = tuple(f"{wanted.name}.{a}" for a in AXES[: len(self.A)])
            self.unit = "m/s^2"
        elif wanted.kind == "spring":
            self.force = _spring(natural, str(on))
            turns = {a.name for a in natural.mechanism.added if isinstance(a, Angle)}
            own = self.force[0] == "own" and natural.mechanism.coordinates[self.force[1]] in turns
            self.unit = "N*m" if own else "N"
        elif wanted.kind == "reaction":
            self.rows, self.M, self.weight, self.lines = _reaction(natural, on)
            self.components = tuple(f"{wanted.name}.{a}" for a in AXES[: len(self.lines)])
            if len(self.lines) == 1:
                self.components = (wanted.name,)
            self.unit = "N"
        elif wanted.kind in KINDS:
            if isinstance(on, tuple):
                raise _no_place(wanted)
            if isinstance(on, str) and wanted.kind in ("position", "velocity"):
                _point(natural, on)
            self.table = readout(natural, [Instrument(wanted.name, wanted.kind, on, 1.0)])
            self.components, self.unit = self.table.names, self.table.units[0]
        else:
            raise DataError(
                Fault(
                    f"there is no virtual sensor of kind '{wanted.kind}'.",
                    where=f"virtual sensor '{wanted.name}'",
                    expected=", ".join((*KINDS, "acceleration", "spring", "reaction")),
                )
            )

    def at(self, x: Array, at: Instant) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state."""
        q, qd, _, _ = self.system.split(x)
        n, m = len(q), len(at.multipliers)
        if self.table is not None:
            y = self.table.read(q, qd, at.qdd)
            return y, self.system.chained(at, *self.table.derivatives(q, qd, at.qdd), np.zeros((len(y), m)))
        zero = np.zeros((len(self.components), n))
        lam_part = np.zeros((len(self.components), m))
        if self.wanted.kind == "acceleration":
            return self.A @ at.qdd, self.system.chained(at, zero, zero, self.A, lam_part)
        if self.wanted.kind == "spring":
            y, by_q, by_qd = _tension(self.system.model.system, self.force, q, qd)
            return np.array([y]), self.system.chained(at, by_q[None], by_qd[None], zero, lam_part)
        constraints = self.system.model.system.constraints
        J = constraints.jacobian(q)
        held = np.where(self.rows, at.multipliers, 0.0)
        y = self.lines @ (self.M @ at.qdd - self.weight + J.T @ held)
        by_q = self.lines @ constraints.curvature(q, held)
        by_lam = self.lines @ (J * self.rows[:, None]).T
        return y, self.system.chained(at, by_q, zero, self.lines @ self.M, by_lam)


def _no_place(wanted: Virtual) -> DataError:
    return DataError(Fault("this is no place.", where=f"virtual sensor '{wanted.name}'", found=f"{wanted.on}"))


def _point(natural: NaturalSystem, on: PointRef) -> Array:
    if isinstance(on, str) and on not in natural.geometry.elements:
        names = [p.name for p in natural.mechanism.points]
        raise DataError(Fault(f"there is no point '{on}'.", where=natural.mechanism.name, hint=did_you_mean(on, names)))
    return natural.geometry.point(on)


def _spring(natural: NaturalSystem, name: str) -> tuple[str, int, Array]:
    """Whether it is a strut or on a coordinate, its number there, and its law (stiffness, rest, damping)."""
    m, f = natural.mechanism, natural.forces
    if name in f.strut_names:
        k = f.strut_names.index(name)
        return "strut", k, f.strut_laws[:, k]
    own = [s for s in (*m.springs, *m.dampers) if isinstance(s.on, str)]
    for k, s in enumerate(own):
        if s.name == name:
            return "own", int(f.own[k]), f.own_laws[:, k]
    names = [s.name for s in (*m.springs, *m.dampers)]
    raise DataError(Fault(f"there is no spring or damper '{name}'.", where=m.name, hint=did_you_mean(name, names)))


def _tension(natural: NaturalSystem, force: tuple[str, int, Array], q: Array, qd: Array) -> tuple[float, Array, Array]:
    """The tension, and its derivatives with respect to q and q̇."""
    kind, k, (stiffness, rest, damping) = force
    n = natural.n
    if kind == "own":
        unit = np.eye(n)[k]
        return float(stiffness * (q[k] - rest) + damping * qd[k]), stiffness * unit, damping * unit
    A = natural.forces.struts[k]
    r, v = A @ np.append(q, 1.0), A[:, :-1] @ qd
    length = float(np.linalg.norm(r))
    u = r / length
    rate = float(u @ v)
    by_q = (stiffness * u + damping * (v - rate * u) / length) @ A[:, :-1]
    return stiffness * (length - rest) + damping * rate, by_q, damping * u @ A[:, :-1]


def _reaction(natural: NaturalSystem, on: PointRef | tuple[str, str]) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Rows of Φ, mass, weight, and the lines of the generalised forces that are asked for."""
    m, c = natural.mechanism, natural.constraints
    n = natural.n
    if isinstance(on, tuple):
        return _at_shared_point(natural, *on)
    joints = {j.name: j for j in m.joints}
    if not isinstance(on, str) or on not in joints:
        raise DataError(
            Fault(
                f"there is no joint '{on}'.",
                where=m.name,
                expected="the name of a joint, or (body, point)",
                hint=did_you_mean(str(on), list(joints)),
            )
        )
    joint = joints[on]
    rows = np.array([owner == f"joint '{on}'" for owner in c.owners])
    B = natural.geometry.point(joint.b)[:, :-1]
    if not B.any():
        B = natural.geometry.point(joint.a)[:, :-1]
    # The force at the joint's place whose work on every motion of that place is that of the rows: least squares over the coordinates.
    lines = -np.asarray(np.linalg.pinv(B.T), dtype=np.float64)
    return rows, np.zeros((n, n)), np.zeros(n), lines


def _at_shared_point(natural: NaturalSystem, body: str, point: str) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    m, g = natural.mechanism, natural.geometry
    b = m.body(body)
    if point not in b.points or point in g.fixed:
        moving = [p for p in b.points if p not in g.fixed]
        raise DataError(
            Fault(
                f"'{point}' is no moving point of it.",
                where=f"body '{body}'",
                expected="one of " + ", ".join(moving),
                hint="At a fixed point, ask at the body's other end and use Newton's law, or join the body by a joint.",
            )
        )
    attached = [
        x.name
        for x in (*m.joints, *m.springs, *m.dampers, *m.loads)
        if any(isinstance(e, Marker) and e.body == body for e in _ends(x)) or getattr(x, "body", None) == body
    ]
    if attached:
        raise DataError(
            Fault(
                "what is attached by a marker reaches it through all its points, so its reaction at one is not defined.",
                where=f"body '{body}'",
                found=", ".join(attached),
                hint="Give the place of attachment a point of its own.",
            )
        )
    mass, _ = body_mass(g, b)
    weight = b.mass * np.array(m.gravity) @ centre_map(g, b)
    rows = np.array([owner == f"body '{body}'" for owner in natural.constraints.owners])
    lines = g.elements[point][:, :-1]
    return rows, mass, weight[:-1], lines


def _ends(part: object) -> tuple[object, ...]:
    on = getattr(part, "on", ())
    return (
        getattr(part, "a", None),
        getattr(part, "b", None),
        getattr(part, "at", None),
        *(on if isinstance(on, tuple) else ()),
    )
