"""Virtual sensors in natural coordinates: readings, accelerations of points, forces of springs and dampers, reactions of joints.

Reactions come from the multipliers and the equilibrium of bodies (:mod:`veridyn.mechanics.natural.reaction`). Over the freedoms of a base
there are readings, accelerations, and the forces that lead prescribed coordinates, which are the multipliers of their constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.mechanics.formulation import UNIQUE_REACTION, Instant, QuantityReading, check_determined
from veridyn.mechanics.natural.channels import Readout, readout
from veridyn.mechanics.natural.description.mechanism import AXES
from veridyn.mechanics.natural.equations.freedoms import Reduced
from veridyn.mechanics.natural.equations.system import NaturalSystem, slopes_of
from veridyn.mechanics.natural.equations.tangent import Slopes
from veridyn.mechanics.natural.reaction import Along, Wrench, reaction_of
from veridyn.mechanics.natural.steps.free_model import FreeModel
from veridyn.mechanics.natural.steps.model import NaturalModel
from veridyn.model.place import GROUND, Marker, PointRef
from veridyn.model.point_parts import Angle, Combination, Elevation
from veridyn.model.sensor import HEADINGS, KINDS, Sensor, SensorKind

READ = tuple(kind for kind in KINDS if kind not in ("distance", *HEADINGS))  # what sensors in natural coordinates read


class Wanted(NamedTuple):
    """A quantity by name, kind and place."""

    name: str
    kind: str
    on: PointRef | tuple[str, str]


class _Quantity(ABC):
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivatives. What sensors read, and accelerations of places."""

    def __init__(self, name: str) -> None:
        self.table: Readout | None = None
        self.A: Array | None = None  # of a place
        self.components: tuple[str, ...] = (name,)
        self.units: tuple[str, ...] = ("",)

    def _reads(self, table: Readout) -> None:
        self.table, self.components, self.units = table, table.names, table.units

    def _accelerates(self, name: str, place: Array) -> None:
        self.A = place[:, :-1]
        self.components = tuple(f"{name}.{a}" for a in AXES[: len(place)])
        self.units = ("m/s^2",) * len(place)

    def at(self, q: Array, qd: Array, u: Array, at: Instant, loads: Any) -> QuantityReading:
        """The value (c,) and its derivatives at a state whose instant is known, under the loads it was made with."""
        c = len(self.components)
        zero, lam, by_u = np.zeros((c, len(q))), np.zeros((c, len(at.multipliers))), np.zeros((c, len(u)))
        if self.table is not None:
            y = self.table.read(q, qd, at.qdd)
            return QuantityReading(y, *self.table.derivatives(q, qd, at.qdd), lam, by_u)
        if self.A is not None:
            return QuantityReading(self.A @ at.qdd, zero, zero, self.A, lam, by_u)
        return self._own(q, qd, u, at, loads, QuantityReading(np.zeros(c), zero, zero, zero, lam, by_u))

    @abstractmethod
    def _own(self, q: Array, qd: Array, u: Array, at: Instant, loads: Any, zero: QuantityReading) -> QuantityReading:
        """Another kind than those, in place of what is all `zero`."""


class FreeQuantity(_Quantity):
    """A virtual sensor over the freedoms of a base.

    Kinds beyond those of sensors: "acceleration" of a place, in the ground's axes, and "force", which leads a prescribed coordinate.
    """

    def __init__(self, model: FreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> None:
        super().__init__(name)
        kinds = (*(k for k in KINDS if k != "distance"), "acceleration", "force")
        where, led, g = f"virtual sensor '{name}'", model.prescribed, model.system.geometry
        if isinstance(on, tuple):
            raise DataError(
                "this is no place.", where=where, expected="a point, or a place on a body: {body, at}", found=f"{on}"
            )
        if kind not in kinds:
            raise DataError(
                f"natural coordinates of a vehicle have none of kind '{kind}'.",
                where=where,
                expected=", ".join(kinds),
                hint="Observe the machine in formulation tree.",
            )
        if kind == "force" and on not in led:
            raise DataError(
                "it is known only of a prescribed coordinate.",
                where=where,
                expected=", ".join(led),
                found=f"{on}",
                hint=did_you_mean(str(on), led),
            )
        if kind == "acceleration":
            self._accelerates(name, g.on_body(on, np.zeros(3)) if isinstance(on, str) else g.point(on))
        elif kind == "force":
            self.row = int(model.system.constraints.held[led.index(str(on))])
            self.units = (model.force_unit(str(on)),)
        else:
            self._reads(model.readout([Sensor(name, cast(SensorKind, kind), on, 1.0)]))

    def _own(self, q: Array, qd: Array, u: Array, at: Instant, loads: Any, zero: QuantityReading) -> QuantityReading:
        zero.by_lam[0, self.row] = -1.0
        return zero._replace(y=-at.multipliers[[self.row]])


class PointsQuantity(_Quantity):
    """A virtual sensor over points and vectors.

    `on` of a "spring": the name of a spring or damper: its tension or torque. Of a "reaction", a joint by its name: what its end a does to
    its end b, force and, where the joint carries one, moment about b's place, in the ground's axes; of a distance the force along it
    (positive: it pulls), of a rack that on its distance. Or (body, point) where bodies share the point, or where it is fixed: what the
    others do to that body there; with shared vectors or further shared points there is a moment about the point.
    """

    def __init__(self, model: NaturalModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> None:
        super().__init__(name)
        self.model = model
        wanted = self.wanted = Wanted(name, kind, on)
        natural = model.system
        self.slopes: Slopes | None = None  # how the forces at a joint depend on parameters that the state holds
        if isinstance(on, Marker):
            _refuse_marker(natural, wanted, on)
        if wanted.kind == "acceleration":
            if isinstance(on, tuple):
                raise _no_place(wanted)
            self._accelerates(name, _point(natural, on))
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
            self._reads(readout(natural, [Sensor(wanted.name, cast(SensorKind, wanted.kind), on, 1.0)]))
        else:
            raise DataError(
                f"there is no virtual sensor of kind '{wanted.kind}'.",
                where=f"virtual sensor '{wanted.name}'",
                expected=", ".join((*READ, "acceleration", "spring", "reaction")),
            )

    def _own(self, q: Array, qd: Array, u: Array, at: Instant, loads: Any, zero: QuantityReading) -> QuantityReading:
        by_u = zero.by_u
        natural, count = self.model.system, len(self.model.unknown)
        if self.wanted.kind == "spring":
            own = _unit_law(natural, self.force, str(self.wanted.on)) if self.model.varying else None
            law = self.force[2]
            if own is not None:
                by_u[0, count + own[0]] = _tension(natural, (*self.force[:2], own[1]), q, qd)[0]
                law = law + float(self._away(u)[own[0]]) * own[1] * np.array([1.0, 0.0, 1.0])  # not where it is relaxed
            y, by_q, by_qd = _tension(natural, (*self.force[:2], law), q, qd)
            return zero._replace(y=np.array([y]), by_q=by_q[None], by_qd=by_qd[None])
        lam = natural.spread(at.multipliers) if isinstance(natural, Reduced) else at.multipliers
        s, keep = self.reaction.at(q, qd, at.qdd, lam, loads.values, u[:count]), self.unique
        by_lam = s.by_lam[:, natural.rows] if isinstance(natural, Reduced) else s.by_lam
        by_u[:, :count], y = s.by_u[keep], s.y[keep]
        if self.slopes is not None and isinstance(self.reaction, Wrench):
            by_u[:, count:] = self.reaction.by_parameters(q, qd, at.qdd, self.slopes)[keep]
            y = y + by_u[:, count:] @ self._away(u)
        return QuantityReading(y, s.by_q[keep], s.by_qd[keep], s.by_qdd[keep], by_lam[keep], by_u)

    def _away(self, u: Array) -> Array:
        """How far the parameters that the state holds are from those that the mechanism was made with."""
        known = self.model.system.parameters
        assert known is not None  # there are no varying parameters without
        return u[len(self.model.unknown) :] - known.values

    def _joint(self, natural: NaturalSystem, on: PointRef | tuple[str, str]) -> None:
        """The reaction, and which of its components the equations determine: with redundant constraints not all of them need be."""
        if isinstance(on, Marker):
            raise _no_place(self.wanted)
        whole = natural.whole if isinstance(natural, Reduced) else natural
        self.reaction: Along | Wrench = reaction_of(whole, on, self.model.unknown)
        names = tuple(f"{self.wanted.name}.{c}" if c else self.wanted.name for c in self.reaction.components)
        free = _undetermined(natural, self.reaction) if isinstance(natural, Reduced) else np.zeros(len(names), np.bool_)
        known = natural.parameters if self.model.varying else None
        if known is not None and isinstance(self.reaction, Wrench):
            self.slopes = slopes_of(self.reaction.split, known.machine, known.names)
        self.unique = np.flatnonzero(~free)
        self.components = tuple(names[i] for i in self.unique)
        self.units = tuple(self.reaction.units[i] for i in self.unique)
        check_determined(
            self.wanted.name,
            names,
            free,
            "the constraints share {} in a way that no motion determines.",
            found=f"redundant constraints {', '.join(repr(name) for name in getattr(natural, 'left_out', ()))}",
            hint="Leave out what is redundant in the mechanism file, as the real machine does by its play or its springs.",
        )


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


def _no_place(wanted: Wanted, what: str = "this is no place.") -> DataError:
    expected = {
        "spring": "the name of a spring or damper",
        "reaction": "the name of a joint or rack, or [body, point]",
        "accelerometer": "a place on a body: {body, at}",
    }
    found = f"a place on body '{wanted.on.body}'" if isinstance(wanted.on, Marker) else f"{wanted.on}"
    where = f"virtual sensor '{wanted.name}'"
    return DataError(
        what, where=where, expected=expected.get(wanted.kind, "a point, or a place on a body: {body, at}"), found=found
    )


def _refuse_marker(natural: NaturalSystem, wanted: Wanted, marker: Marker) -> None:
    m = natural.mechanism
    if marker.body != GROUND:
        m.body(marker.body)
    for part, numbers in (("at", marker.at), ("axis", marker.axis), ("side", marker.side)):
        if (numbers or part == "at") and len(numbers) != m.dimension:
            where = f"virtual sensor '{wanted.name}', {part}"
            raise DataError(
                "this is no place or direction here.",
                where=where,
                expected=f"{m.dimension} numbers",
                found=f"{numbers}",
            )
    if wanted.kind == "acceleration" and marker.axis:
        expected = "a place without an axis; an accelerometer reads along the axes of its place"
        where = f"virtual sensor '{wanted.name}'"
        raise DataError(
            "an acceleration is given in the ground's axes.", where=where, expected=expected, found="an axis"
        )


def _point(natural: NaturalSystem, on: PointRef) -> Array:
    if isinstance(on, str) and on not in natural.geometry.elements:
        names = [p.name for p in natural.mechanism.points]
        raise DataError(f"there is no point '{on}'.", where=natural.mechanism.name, hint=did_you_mean(on, names))
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
    raise DataError(f"there is no spring or damper '{name}'.", where=m.name, hint=did_you_mean(name, names))


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
