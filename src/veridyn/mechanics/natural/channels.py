"""The channels of a machine in natural coordinates: what acts on it, and what its sensors read, y = h(q, q̇, q̈), with exact derivatives.

In natural coordinates places and directions are linear in y = (q, 1), and so every sensor is at most bilinear:

    h = a·y + yᵀ G q̇ + yᵀ D q̈

coordinate and place            a·y;  their rates the last row of G
velocity along a direction u    u·ṙ, where the sensor has axes of its own: both linear in y
gyroscope about a direction u   ω·u = ½ (v̇·w − v·ẇ), where u, v, w are the sensor's own directions, each linear in y
accelerometer along u           u·(r̈ − g), with r̈ linear in q̈ because places are linear in q
yaw, course                     the angle of two such components from x towards y, of a direction or of a velocity

so that H follows from the same table: ∂h/∂q = a + G q̇ + D q̈, ∂h/∂q̇ = Gᵀ y, ∂h/∂q̈ = Dᵀ y. Paper 003 drops terms of its H (equations 89
and 91): here H is the derivative of h, and is tested to be.

What acts and is in a log has the same channels, by the same names, as on the machine's tree. Measured wrenches on bodies have generalised
forces that are linear in the coordinates, as those of torques are; in the plane fz, mx and my move nothing:

    force f along the body's axis a at its origin o      Q = f (∂o/∂q)ᵀ a(q)
    moment m about a, with a = v × w                     power m a·ω = m ½ (v̇·w − v·ẇ) = m yᵀ G q̇,   Q = m Gᵀ y
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, Fault, ModelError, did_you_mean
from veridyn.mechanics.formulation import WRENCH
from veridyn.mechanics.natural.description.mechanism_check import mechanism_sensor_faults
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.steps.integrate import NaturalMotion
from veridyn.mechanics.tree.readout import SensorOutputs
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import QUARTER_TURN, Marker, frame
from veridyn.model.point_parts import Angle
from veridyn.model.sensor import HEADINGS, Sensor

STANDSTILL = 1e-9  # m/s, below which there is no course


@dataclass(frozen=True, eq=False)
class Readout(SensorOutputs):
    """The table of all sensors of a mechanism: `a` (r, n+1), `G` and `D` (r, n+1, n).

    Row j is output j; that of a heading is its x component, and `other` (m,) the row of its y component, −1 of all else.
    """

    a: Array
    G: Array
    D: Array
    other: NDArray[np.intp]

    @cached_property
    def moves(self) -> bool:
        """Whether any output depends on rates."""
        return bool(self.G.any())

    @cached_property
    def accelerates(self) -> bool:
        """Whether any output depends on accelerations."""
        return bool(self.D.any())

    def read(self, q: Array, qd: Array, qdd: Array) -> Array:
        """What ideal sensors read (…, m), bias included, from (…, n) of each."""
        y = np.concatenate([q, np.ones((*q.shape[:-1], 1))], axis=-1)
        slopes = self._slopes(qd, qdd)
        found = slopes @ y if slopes.ndim == 2 and y.ndim == 1 else (slopes * y[..., None, :]).sum(axis=-1)
        return self._turned(found) + self.bias

    def _turned(self, found: Array) -> Array:
        """SensorOutputs (…, m) from rows (…, r): headings are angles of two."""
        out, at = found[..., : len(self.names)].copy(), np.flatnonzero(self.other >= 0)
        out[..., at] = np.arctan2(found[..., self.other[at]], found[..., at])
        return out

    def _slopes(self, qd: Array, qdd: Array) -> Array:
        slopes = self.a
        if self.moves:
            slopes = slopes + _along(self.G, qd)
        if self.accelerates:
            slopes = slopes + _along(self.D, qdd)
        return slopes

    def derivatives(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
        """∂h/∂q, ∂h/∂q̇ and ∂h/∂q̈, (m, n) each."""
        y = np.append(q, 1.0)
        by_qd = y @ self.G if self.moves else self.G[:, 0]
        by_qdd = y @ self.D if self.accelerates else self.D[:, 0]
        slopes, m, at = self._slopes(qd, qdd), len(self.names), np.flatnonzero(self.other >= 0)
        parts = [slopes[:m, :-1].copy(), by_qd[:m].copy(), by_qdd[:m].copy()]
        rows = slopes @ y
        for j in at:
            x, y_ = rows[j], rows[self.other[j]]
            square = max(x * x + y_ * y_, STANDSTILL**2)
            for part, whole in zip(parts, (slopes[:, :-1], by_qd, by_qdd), strict=True):
                part[j] = (x * whole[self.other[j]] - y_ * whole[j]) / square
        return parts[0], parts[1], parts[2]


def readout(system: NaturalSystem, sensors: Sequence[Sensor] | None = None) -> Readout:
    """The table of these sensors, or of the mechanism's own; sensors that it cannot have are refused by name."""
    g, n = system.geometry, system.n
    chosen = tuple(system.mechanism.sensors if sensors is None else sensors)
    faults = mechanism_sensor_faults(replace(system.mechanism, sensors=chosen), system.mechanism.coordinates)
    if faults:
        raise ModelError(faults, system.mechanism.name)
    angles = {a.name for a in system.mechanism.added if isinstance(a, Angle)}
    names, units, owner, rows, others = [], [], [], [], dict[int, tuple[Array, Array, Array]]()
    for k, i in enumerate(chosen):
        channels = i.channels(system.mechanism.dimension)
        names += channels
        units += [i.unit(i.on in angles)] * len(channels)
        owner += [k] * len(channels)
        if i.kind in HEADINGS:
            x, y = _heading(g, i)
            others[len(rows)] = y
            rows.append(x)
        else:
            rows += _rows(g, i)
    other = np.full(len(rows), -1, dtype=np.intp)
    other[list(others)] = len(rows) + np.arange(len(others))
    rows += others.values()
    a, G, D = (np.array([r[j] for r in rows]) for j in range(3))
    return Readout(
        tuple(names),
        tuple(units),
        chosen,
        tuple(owner),
        a.reshape(-1, n + 1),
        G.reshape(-1, n + 1, n),
        D.reshape(-1, n + 1, n),
        other,
    )


def _heading(g: Geometry, i: Sensor) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """The rows of the x and y components of which a heading is the angle."""
    if i.kind == "course":
        x, y = _rows(g, replace(i, kind="velocity", axes="xy", on=_place(i.on)))
        return x, y
    n = g.mechanism.n
    direction = _directions(g, i.on, {0})[0]
    none = np.zeros((n + 1, n))
    return (direction[0], none, none), (direction[1], none, none)


def _place(on: str | Marker) -> str | Marker:
    """A place without axes of its own; the origin of a body's frame by its name."""
    return Marker(on.body, on.at) if isinstance(on, Marker) else Marker(on, (0.0, 0.0, 0.0))


def exact_readings(system: NaturalSystem, motion: NaturalMotion, table: Readout | None = None) -> Experiment:
    """The channels that ideal sensors would record of a motion; noise, clocks and the rest are the simulator's."""
    sensors = table or readout(system)
    values = sensors.read(motion.q, motion.qd, motion.qdd)
    channels = {
        name: Channel(name, motion.t, values[:, j], unit)
        for j, (name, unit) in enumerate(zip(sensors.names, sensors.units))
    }
    return Experiment(channels, f"simulation of {system.mechanism.name}")


def _along(table: Array, v: Array) -> Array:
    """Σ table[…, k] v[…, k] over the last index, for one v (n,) or many."""
    return table @ v if v.ndim == 1 else np.einsum("ijk,...k->...ij", table, v)


def _rows(g: Geometry, i: Sensor) -> list[tuple[Array, Array, Array]]:
    """a, G and D of each output of one sensor."""
    n, dim = g.mechanism.n, g.mechanism.dimension
    axes = ["xyz".index(c) for c in i.components(dim)]
    none = (np.zeros(n + 1), np.zeros((n + 1, n)), np.zeros((n + 1, n)))

    def row(a: Array | None = None, G: Array | None = None, D: Array | None = None) -> tuple[Array, Array, Array]:
        return (none[0] if a is None else a, none[1] if G is None else G, none[2] if D is None else D)

    def last(line: Array) -> Array:
        """A row that multiplies q̇ alone, as the constant entry of y does."""
        G = np.zeros((n + 1, n))
        G[-1] = line
        return G

    if not isinstance(i.on, Marker) and i.kind in ("coordinate", "rate"):
        unit = np.eye(n + 1)[g.mechanism.index(i.on)]
        return [row(a=unit) if i.kind == "coordinate" else row(G=last(unit[:-1]))]
    if i.kind in ("position", "velocity") and not i.has_own_axes:
        A = g.point(i.on)
        return [row(a=A[k]) if i.kind == "position" else row(G=last(A[k, :-1])) for k in axes]
    if i.kind == "gyroscope":
        turns = [(0, 1)] if dim == 2 else [(1, 2), (2, 0), (0, 1)]
        pairs = turns if dim == 2 else [turns[k] for k in axes]
        directions = _directions(g, i.on, {k for pair in pairs for k in pair})
        return [
            row(G=0.5 * (directions[w].T @ directions[v][:, :-1] - directions[v].T @ directions[w][:, :-1]))
            for v, w in pairs
        ]
    directions = _directions(g, i.on, set(axes))
    A, gravity = g.point(i.on), np.array(g.mechanism.gravity)
    if i.kind == "velocity":
        return [row(G=directions[k].T @ A[:, :-1]) for k in axes]
    return [row(a=-gravity @ directions[k], D=directions[k].T @ A[:, :-1]) for k in axes]


def _directions(g: Geometry, on: str | Marker, wanted: set[int]) -> dict[int, Array]:
    """Maps (dim, n+1) of those of the sensor's x, y and z (0, 1, 2) that are wanted, right-handed; a plate's normal need not be given."""
    dim = g.mechanism.dimension
    body = on.body if isinstance(on, Marker) else on
    if isinstance(on, Marker) and on.axis:
        axis, side, third = frame(on)
        local = [axis, side] if dim == 2 else [axis, side, third]
    else:
        local = list(np.eye(dim)) if dim == 3 else [np.array([1.0, 0.0]), QUARTER_TURN @ np.array([1.0, 0.0])]
    return {k: g.along(body, local[k]) for k in sorted(wanted)}


FORCE = "force."
ABOUT = ((1, 2), (2, 0), (0, 1))  # the axes v and w whose product is x, y and z


def motor_names(machine: Machine) -> tuple[str, ...]:
    """force.C of every coordinate with a motor that is not prescribed, from the description alone."""
    motors = (c for j in machine.joints for c, on in zip(j.coordinate_names, j.motors, strict=True) if on)
    return tuple(f"{FORCE}{c}" for c in dict.fromkeys(motors) if c not in machine.prescribed)


def with_motor_inputs(machine: Machine, inputs: Sequence[str]) -> Machine:
    """The machine with a drive named force.C for each such input, so that natural coordinates take it as a tree does: it adds to what
    else acts on the coordinate C."""
    own = {load.name for load in machine.loads}
    wanted = [name for name in dict.fromkeys(inputs) if name.startswith(FORCE) and name not in own]
    if not wanted:
        return machine
    known = motor_names(machine)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise ModelError([Fault(f"there is no input '{name}'.", where=machine.name, hint=hint) for name in unknown])
    carried = None if machine.description is None else {a.name for a in machine.description.added}
    for name in wanted:
        if carried is not None and name.removeprefix(FORCE) not in carried:
            raise CapabilityError(
                "natural",
                f"input '{name}'",
                "a force acts on an added angle or distance, and its points have none of that name",
                "Add it to the coordinates of the model, or observe the machine in formulation tree.",
                where=machine.name,
            )
    return replace(machine, loads=(*machine.loads, *(Drive(n, n.removeprefix(FORCE)) for n in wanted)))


def inputs_on_points(machine: Machine, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the channels of a log that act on a machine in natural coordinates."""
    found = [*motor_names(machine), *(f"signal.{e.signal}" for e in machine.elements if e.kind == "drive_gain")]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += machine.load_channels
    for link in machine.links:
        six = [f"{WRENCH}{link.name}.{row}" for row in WRENCH_ROWS]
        found += six if all(name in names for name in six) else []
    if machine.dimension == 2:  # as a tree calls them
        found += [f"{load.name}.z" for load in machine.loads if isinstance(load, Torque) and load.name not in names]
    return tuple(name for name in dict.fromkeys(found) if name in names)


def with_wrenches(system: NaturalSystem, bodies: Sequence[str]) -> NaturalSystem:
    """The same system with loads wrench.B.fx … mz on these bodies, zero where they are not given; those it has already stay."""
    new = [body for body in dict.fromkeys(bodies) if f"wrench.{body}.fx" not in system.forces.places]
    if not new:
        return system
    forces, n = system.forces, system.n
    turning = np.concatenate([forces.turning, *(wrench_maps(system.geometry, body) for body in new)])
    first, names = len(forces.values), [f"wrench.{body}.{row}" for body in new for row in WRENCH_ROWS]
    table = replace(
        forces,
        loads={**forces.loads, **{name: slice(first + k, first + k + 1) for k, name in enumerate(names)}},
        values=np.concatenate([forces.values, np.zeros(len(names))]),
        constant=np.hstack([forces.constant, np.zeros((n, len(names)))]),
        turning=turning,
        active=np.flatnonzero(turning.any(axis=(1, 2))),
    )
    return replace(system, forces=table)


def wrench_maps(geometry: Geometry, body: str) -> Array:
    """B (6, n, n+1) with Q = B y of a unit of each component of a wrench on a body, in its frame, at its origin."""
    m = geometry.mechanism
    if not geometry.bases[m.body(body).name].complete:
        raise CapabilityError(
            "natural",
            f"wrench on '{body}'",
            "its points and vectors do not fix its orientation, so a wrench in its frame has no direction",
            "Give the body more points or vectors, or observe the machine in formulation tree.",
            where=m.name,
        )
    d, out = m.dimension, np.zeros((6, m.n, m.n + 1))
    origin, axes = geometry.on_body(body, np.zeros(d)), [geometry.along(body, axis) for axis in np.eye(d)]
    for a in range(d):
        out[a] = origin[:, :-1].T @ axes[a]
    for a, (v, w) in enumerate(ABOUT):
        if v < d and w < d:
            out[3 + a] = 0.5 * (axes[v][:, :-1].T @ axes[w] - axes[w][:, :-1].T @ axes[v])
    return out
