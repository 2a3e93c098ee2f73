"""Virtual sensors: quantities that nobody measures, from the estimated state, each with its band.

    y = g(q, q̇, q̈, λ),    σ² = (∂g/∂x) P (∂g/∂x)ᵀ

What a real sensor on a mechanism reads, a virtual one does too (:class:`~veridyn.model.sensor.Sensor`); beyond that,
accelerations of points, forces in springs and dampers, and reactions of joints, which come from the multipliers and the equilibrium of
bodies (:mod:`veridyn.mechanics.natural.reaction`). The band is what the filter's covariance implies; it is as reliable as the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelWarning, did_you_mean, warn
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.mechanism import AXES
from veridyn.mechanics.natural.minimal import Instant
from veridyn.mechanics.natural.reaction import Along, Wrench, reaction_of
from veridyn.mechanics.natural.redundant import Reduced
from veridyn.mechanics.natural.room import Slopes
from veridyn.mechanics.natural.slopes import slopes_of
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.names import GROUND
from veridyn.model.place import Marker, PointRef
from veridyn.model.point_parts import Angle, Combination, Elevation
from veridyn.model.sensor import HEADINGS, KINDS, Sensor, SensorKind
from veridyn.observe.free import FreeSystem
from veridyn.observe.free_virtual import FreeQuantity
from veridyn.observe.machine import MachineSystem
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.result import Track
from veridyn.observe.tree import TreeSystem
from veridyn.observe.tree_virtual import TreeQuantity

Array = NDArray[np.float64]
Kind = Literal[
    "coordinate",
    "rate",
    "position",
    "velocity",
    "distance",
    "acceleration",
    "gyroscope",
    "accelerometer",
    "spring",
    "reaction",
    "force",
]

READ = tuple(kind for kind in KINDS if kind not in ("distance", *HEADINGS))  # what sensors in natural coordinates read
UNIQUE_REACTION = 1e-7  # share of a reaction's size that undetermined multipliers may change: rounding


@dataclass(frozen=True)
class Virtual:
    """A quantity by name: `kind` as of a sensor, or acceleration (of a point, in the ground's axes), spring, or reaction.

    `on`: what it is on. For "spring", the name of a spring or damper: its tension or torque. For "reaction", a joint by its name: what its
    end a does to its end b, force and, where the joint carries one, moment about b's place, in the ground's axes; of a distance the force
    along it (positive: it pulls), of a rack that on its distance. Or (body, point) where bodies share the point, or where it is fixed: what
    the others do to that body there; with shared vectors or further shared points there is a moment about the point. On a tree, a joint by
    the body it carries, by its coordinate, or a cut joint by its name, and "force" for the force on a coordinate
    (:class:`~veridyn.observe.tree_virtual.TreeQuantity`).
    """

    name: str
    kind: Kind
    on: PointRef | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reading:
    """Values (N, k) of a virtual sensor with standard deviations (N, k), by the names of its components, each with its unit."""

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    t: Array
    values: Array
    sigma: Array

    def band(self, deviations: float = 1.96) -> tuple[Array, Array]:
        """The interval of so many standard deviations, (N, k) each."""
        return self.values - deviations * self.sigma, self.values + deviations * self.sigma


def virtual(system: MachineSystem, track: Track, wanted: Sequence[Virtual], inputs: Array) -> dict[str, Reading]:
    """Each of the quantities along a track; `inputs` (N, p) are those of the measurements."""
    quantities = {w.name: quantity_of(system, w) for w in wanted}
    values: dict[str, list[Array]] = {name: [] for name in quantities}
    sigmas: dict[str, list[Array]] = {name: [] for name in quantities}
    for x, P, u in zip(track.x, track.P, inputs, strict=True):
        at = system.instant(x, u)
        for name, quantity in quantities.items():
            y, G = quantity.at(x, at, u)
            values[name].append(y)
            sigmas[name].append(np.sqrt(np.maximum(((G @ P) * G).sum(axis=1), 0.0)))
    return {
        name: Reading(name, q.components, q.units, track.t, np.array(values[name]), np.array(sigmas[name]))
        for name, q in quantities.items()
    }


def quantity_of(system: MachineSystem, wanted: Virtual) -> VirtualQuantity | TreeQuantity | FreeQuantity:
    """A virtual sensor on a machine of any formulation, made ready."""
    if isinstance(system, TreeSystem):
        return TreeQuantity(system, wanted.name, wanted.kind, wanted.on)  # pyright: ignore[reportArgumentType]
    if isinstance(system, FreeSystem):
        if isinstance(wanted.on, tuple):
            raise _no_place(wanted)
        return FreeQuantity(system, wanted.name, wanted.kind, wanted.on)
    assert isinstance(system, MechanismSystem)  # there is no further formulation
    return VirtualQuantity(system, wanted)


class VirtualQuantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state."""

    def __init__(self, system: MechanismSystem, wanted: Virtual) -> None:
        self.system, self.wanted = system, wanted
        natural = system.model.system
        self.table: Readout | None = None
        self.slopes: Slopes | None = None  # how the forces at a joint depend on parameters that the state holds
        self.components: tuple[str, ...] = (wanted.name,)
        self.units: tuple[str, ...] = ("",)
        on = wanted.on
        if isinstance(on, Marker):
            _refuse_marker(natural, wanted, on)
        if wanted.kind == "acceleration":
            if isinstance(on, tuple):
                raise _no_place(wanted)
            self.A = _point(natural, on)[:, :-1]
            self.components = tuple(f"{wanted.name}.{a}" for a in AXES[: len(self.A)])
            self.units = ("m/s^2",) * len(self.A)
        elif wanted.kind == "spring":
            if not isinstance(on, str):
                raise _no_place(wanted)
            self.force = _spring(natural, on)
            turns = {a.name for a in natural.mechanism.added if isinstance(a, Angle | Elevation)}
            line = natural.forces.lines[self.force[1]] if self.force[0] == "own" else np.zeros(natural.n)
            own = any(natural.mechanism.coordinates[k] in turns for k in np.flatnonzero(line))
            self.units = ("N*m" if own else "N",)
        elif wanted.kind == "reaction":
            self._joint(natural, on)
        elif wanted.kind in READ:
            if isinstance(on, tuple):
                raise _no_place(wanted)
            if isinstance(on, str) and wanted.kind in ("position", "velocity"):
                _point(natural, on)
            if isinstance(on, str) and wanted.kind == "accelerometer":
                raise _no_place(wanted, "an accelerometer has axes, and a point has none.")
            self.table = readout(natural, [Sensor(wanted.name, cast(SensorKind, wanted.kind), on, 1.0)])
            self.components, self.units = self.table.names, self.table.units
        else:
            raise DataError(
                Fault(
                    f"there is no virtual sensor of kind '{wanted.kind}'.",
                    where=f"virtual sensor '{wanted.name}'",
                    expected=", ".join((*READ, "acceleration", "spring", "reaction")),
                )
            )

    def at(self, x: Array, at: Instant, inputs: Array) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state, with the known loads `inputs` that the instant was made with."""
        q, qd, u, _ = self.system.split(x)
        n, m = len(q), len(at.multipliers)
        if self.table is not None:
            y = self.table.read(q, qd, at.qdd)
            return y, self.system.chained(at, *self.table.derivatives(q, qd, at.qdd), np.zeros((len(y), m)))
        zero = np.zeros((len(self.components), n))
        lam_part = np.zeros((len(self.components), m))
        if self.wanted.kind == "acceleration":
            return self.A @ at.qdd, self.system.chained(at, zero, zero, self.A, lam_part)
        natural = self.system.model.system
        if self.wanted.kind == "spring":
            y, by_q, by_qd = _tension(natural, self.force, q, qd)
            G = self.system.chained(at, by_q[None], by_qd[None], zero, lam_part)
            own = _unit_law(natural, self.force, str(self.wanted.on)) if self.system.varying else None
            if own is not None:
                G[0, self._parameters.start + own[0]] += _tension(natural, (*self.force[:2], own[1]), q, qd)[0]
            return np.array([y]), G
        values = natural.forces.load_values(dict(zip(self.system.inputs, inputs.tolist())))
        lam = natural.spread(at.multipliers) if isinstance(natural, Reduced) else at.multipliers
        count = len(self.system.model.unknown)
        s, keep = self.reaction.at(q, qd, at.qdd, lam, values, u[:count]), self.unique
        by_lam = s.by_lam[:, natural.rows] if isinstance(natural, Reduced) else s.by_lam
        G = self.system.chained(at, s.by_q[keep], s.by_qd[keep], s.by_qdd[keep], by_lam[keep])
        f = self.system.f
        G[:, 2 * f : 2 * f + count] += s.by_u[keep]
        if self.slopes is not None and isinstance(self.reaction, Wrench):
            G[:, self._parameters] += self.reaction.by_parameters(q, qd, at.qdd, self.slopes)[keep]
        return s.y[keep], G

    @property
    def _parameters(self) -> slice:
        """The columns of the parameters that the state holds."""
        first = 2 * self.system.f + len(self.system.model.unknown)
        return slice(first, first + len(self.system.varying))

    def _joint(self, natural: NaturalSystem, on: PointRef | tuple[str, str]) -> None:
        """The reaction, and which of its components the equations determine: with redundant constraints not all of them need be."""
        if isinstance(on, Marker):
            raise _no_place(self.wanted)
        whole = natural.whole if isinstance(natural, Reduced) else natural
        self.reaction: Along | Wrench = reaction_of(whole, on, self.system.model.unknown)
        names = tuple(f"{self.wanted.name}.{c}" if c else self.wanted.name for c in self.reaction.components)
        free = _undetermined(natural, self.reaction) if isinstance(natural, Reduced) else np.zeros(len(names), np.bool_)
        known = natural.parameters if self.system.varying else None
        if known is not None and isinstance(self.reaction, Wrench):
            self.slopes = slopes_of(self.reaction.split, known.machine, known.names)
        self.unique = np.flatnonzero(~free)
        self.components = tuple(names[i] for i in self.unique)
        self.units = tuple(self.reaction.units[i] for i in self.unique)
        if not free.any():
            return
        left = ", ".join(f"'{names[i]}'" for i in np.flatnonzero(free))
        fault = Fault(
            f"the constraints share {left} in a way that no motion determines.",
            where=f"virtual sensor '{self.wanted.name}'",
            expected="a reaction that the equations of motion determine",
            found=f"redundant constraints {', '.join(repr(name) for name in getattr(natural, 'left_out', ()))}",
            hint="Leave out what is redundant in the mechanism file, as the real machine does by its play or its springs.",
        )
        if free.all():
            raise DataError(fault)
        warn(ModelWarning, fault)


def _undetermined(natural: Reduced, reaction: Along | Wrench) -> NDArray[np.bool_]:
    """Which components change with multipliers that make no force on any motion, at the poses where these were looked for."""
    n, m = natural.n, natural.whole.constraints.m
    values = natural.forces.load_values()
    out = np.zeros(len(reaction.components), dtype=np.bool_)
    for pose in natural.poses:
        still, none = (
            np.zeros(n),
            np.zeros(reaction.unknown if isinstance(reaction, Along) else reaction.unknown.shape[1]),
        )
        by_lam = reaction.at(pose, still, still, np.zeros(m), values, none).by_lam
        change = np.abs(by_lam @ natural.undetermined(pose)).max(axis=1)
        out |= change > UNIQUE_REACTION * max(float(np.abs(by_lam).max(initial=0.0)), 1e-300)
    return out


def _no_place(wanted: Virtual, what: str = "this is no place.") -> DataError:
    expected = {
        "spring": "the name of a spring or damper",
        "reaction": "the name of a joint or rack, or [body, point]",
        "accelerometer": "a place on a body: {body, at}",
    }
    found = f"a place on body '{wanted.on.body}'" if isinstance(wanted.on, Marker) else f"{wanted.on}"
    where = f"virtual sensor '{wanted.name}'"
    return DataError(Fault(what, where, expected.get(wanted.kind, "a point, or a place on a body: {body, at}"), found))


def _refuse_marker(natural: NaturalSystem, wanted: Virtual, marker: Marker) -> None:
    m = natural.mechanism
    if marker.body != GROUND:
        m.body(marker.body)
    for part, numbers in (("at", marker.at), ("axis", marker.axis), ("side", marker.side)):
        if (numbers or part == "at") and len(numbers) != m.dimension:
            where = f"virtual sensor '{wanted.name}', {part}"
            raise DataError(Fault("this is no place or direction here.", where, f"{m.dimension} numbers", f"{numbers}"))
    if wanted.kind == "acceleration" and marker.axis:
        expected = "a place without an axis; an accelerometer reads along the axes of its place"
        where = f"virtual sensor '{wanted.name}'"
        raise DataError(Fault("an acceleration is given in the ground's axes.", where, expected, "an axis"))


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
    own = [s for s in (*m.springs, *m.dampers) if isinstance(s.on, str | Combination)]
    for k, s in enumerate(own):
        if s.name == name:
            return "own", k, f.line_laws[:, k]
    names = [s.name for s in (*m.springs, *m.dampers)]
    raise DataError(Fault(f"there is no spring or damper '{name}'.", where=m.name, hint=did_you_mean(name, names)))


def _unit_law(natural: NaturalSystem, force: tuple[str, int, Array], name: str) -> tuple[int, Array] | None:
    """The number of the uncertain parameter of a spring or damper, and its law with the unit parameter; None where it has none."""
    known = natural.parameters
    if known is None or name not in known.names:
        return None
    i, m = known.names.index(name), natural.mechanism
    if force[0] == "strut":
        return i, known.tables.strut_laws[i][:, force[1]]
    own = [s.name for s in (*m.springs, *m.dampers) if isinstance(s.on, str | Combination)]
    return i, known.tables.line_laws[i][:, own.index(name)]


def _tension(natural: NaturalSystem, force: tuple[str, int, Array], q: Array, qd: Array) -> tuple[float, Array, Array]:
    """The tension, and its derivatives with respect to q and q̇."""
    kind, k, (stiffness, rest, damping) = force
    if kind == "own":
        line = natural.forces.lines[k]
        return float(stiffness * (line @ q - rest) + damping * (line @ qd)), stiffness * line, damping * line
    A = natural.forces.struts[k]
    r, v = A @ np.append(q, 1.0), A[:, :-1] @ qd
    length = float(np.linalg.norm(r))
    u = r / length
    rate = float(u @ v)
    by_q = (stiffness * u + damping * (v - rate * u) / length) @ A[:, :-1]
    return stiffness * (length - rest) + damping * rate, by_q, damping * u @ A[:, :-1]
