"""Mass and generalised forces of a mechanism in natural coordinates, by virtual power (paper 003, equations 23 to 29).

A body's particles are at r = Σ cₐ Nₐ y with constant cₐ (c₀ = 1), so T = ½ q̇ᵀ M q̇ with a constant M = Σₐᵦ Pₐᵦ NₐᵀNᵦ and
Pₐᵦ = ∫ cₐ cᵦ dm, for any admissible set of points and vectors in plane and space.

Q(q, q̇) holds gravity, springs, dampers, loads and laws of elements over coordinates; K = −∂Q/∂q and C = −∂Q/∂q̇ are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, ModelError, did_you_mean
from veridyn.mechanics.laws import Acting, potential
from veridyn.mechanics.natural.description.mechanism import AXES, Mechanism
from veridyn.mechanics.natural.equations.geometry import Basis, Geometry
from veridyn.model.elements.element import Element
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import GROUND
from veridyn.model.point_parts import Combination, RigidBody, Rotor
from veridyn.spatial.algebra import ARRAYS
from veridyn.spatial.inertia import cross_matrix, inertia_matrix

IN_SPAN = 1e-9
NO_LENGTH = 1e-12


def mass_matrix_of(geometry: Geometry) -> Array:
    """M (n, n), constant and symmetric, with the inertias of motors.

    A body whose mass lies outside what its points and vectors span is refused by name.
    """
    n = geometry.mechanism.n
    M, faults = np.zeros((n, n)), Faults()
    for b in geometry.mechanism.bodies:
        own, fault = body_mass(geometry, b)
        if fault is not None:
            faults.found.append(fault)
        M += own
    for rotor in geometry.mechanism.rotors:
        M += rotor.inertia * rotor_mass(geometry.mechanism, rotor)
    faults.raise_if_any(ModelError, geometry.mechanism.name)
    return 0.5 * (M + M.T)


def rotor_mass(mechanism: Mechanism, rotor: Rotor) -> Array:
    """What a motor of unit inertia adds to M: a aᵀ of the combination c = aᵀ q that it turns with."""
    a = np.zeros(mechanism.n)
    for name, weight in rotor.weights.items():
        a[mechanism.index(name)] = weight
    return np.outer(a, a)


def body_mass(geometry: Geometry, body: RigidBody) -> tuple[Array, Fault | None]:
    """What one body adds to M, or why it cannot."""
    n, basis = geometry.mechanism.n, geometry.bases[body.name]
    P, fault = _moments(body, basis)
    if fault is not None:
        return np.zeros((n, n)), fault
    N = np.concatenate([basis.place[None], basis.maps])[:, :, :n]
    return np.asarray(np.einsum("ab,aik,bil->kl", P, N, N), dtype=np.float64), None


def centre_map(geometry: Geometry, body: RigidBody) -> Array:
    """The map (dim, n+1) of a body's centre of mass."""
    return geometry.on_body(body.name, body.centre or np.zeros(geometry.mechanism.dimension))


def weight_of(geometry: Geometry) -> Array:
    """Gravity as a row w (n+1,): generalised forces w[:n] by virtual power (29), potential energy −w·y."""
    w = np.zeros(geometry.mechanism.n + 1)
    for b in geometry.mechanism.bodies:
        if b.mass:
            w += b.mass * np.array(geometry.mechanism.gravity) @ centre_map(geometry, b)
    return w


def _moments(b: RigidBody, basis: Basis) -> tuple[Array, Fault | None]:
    """P (1+k, 1+k) = ∫ c cᵀ dm of c = (1, c₁, …), or why the basis cannot carry this mass."""
    dim, k = basis.local.shape
    c = np.array(b.centre) if b.centre else np.zeros(dim)
    J = np.asarray(b.inertia, dtype=np.float64)
    if dim == 2:
        second = 0.5 * float(J) * np.eye(2)  # only the sum of the two counts: the second direction turns with the first
    else:
        J = np.zeros(6) if J.shape == () else J
        J = np.array(inertia_matrix(J)) if J.shape == (6,) else J
        second = 0.5 * np.trace(J) * np.eye(3) - J
    arm = c - basis.local_origin
    second = second + b.mass * np.outer(arm, arm)  # ∫ x xᵀ dm about the first point
    T = np.linalg.pinv(basis.local) if k else np.zeros((0, dim))
    outside = np.eye(dim) - basis.local @ T
    left = outside @ second @ outside
    if np.abs(left).max() > IN_SPAN * max(float(np.abs(second).max()), 1e-300):
        spread = np.linalg.eigvalsh(left)[-1]
        return np.zeros((0, 0)), Fault(
            "its mass lies outside what its points and vectors span, so its mass matrix would not be constant.",
            where=f"body '{b.name}'",
            expected="mass along "
            + (", ".join("-".join(s) for s in basis.sources) or f"the point '{basis.origin}' only"),
            found=f"a second moment of {spread:.6g} kg*m^2 across them",
            hint="Add a vector or point that leaves their span; in space three independent directions carry any body.",
        )
    P = np.empty((k + 1, k + 1))
    P[0, 0] = b.mass
    P[1:, 0] = P[0, 1:] = T @ (b.mass * arm)
    P[1:, 1:] = T @ second @ T.T
    return P, None


if TYPE_CHECKING:
    from veridyn.mechanics.natural.equations.law_code import LawCode


@dataclass(frozen=True, eq=False)
class NaturalLaws:
    """The laws of a mechanism with parameters `gains` (l,), and what they do at one instant."""

    mechanism: Mechanism
    gains: Array

    @property
    def elements(self) -> tuple[Element, ...]:
        return self.mechanism.laws

    @cached_property
    def code(self) -> LawCode:
        """Their programs; loading the compiler waits until a law asks for it."""
        from veridyn.mechanics.natural.equations.law_code import law_code

        made = law_code(self.elements, self.mechanism.index, self.mechanism.friction_speed)
        return made._replace(gain=self.gains)

    def touched(self) -> list[NDArray[np.intp]]:
        """The coordinates that each law reads or acts on."""
        out = []
        for e in self.elements:
            names = dict.fromkeys((*e.on, *e.named_coordinates))
            out.append(np.array([self.mechanism.index(name) for name in names], dtype=np.intp))
        return out

    def forces(self, q: Array, qd: Array) -> Array:
        """Q (n,)."""
        Q = np.zeros(len(q))
        for e, gain, f, _ in self._each(q, qd):
            for name, a in e.on.items():
                Q[self.mechanism.index(name)] -= a * gain * f
        return Q

    def tangents(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """K = −∂Q/∂q and C = −∂Q/∂q̇, (n, n) each."""
        K, C = np.zeros((len(q), len(q))), np.zeros((len(q), len(q)))
        for e, gain, _, slopes in self._each(q, qd):
            line = np.zeros(len(q))
            for name, a in e.on.items():
                line[self.mechanism.index(name)] += a
            for rate, row, slope in slopes:
                (C if rate else K)[:] += gain * slope * np.outer(line, row)
        return K, C

    def stored(self, q: Array) -> float:
        """The energy (J) of laws of c alone."""
        total = 0.0
        for e, gain in zip(self.elements, self.gains.tolist(), strict=True):
            c = sum(a * float(q[self.mechanism.index(name)]) for name, a in e.on.items())
            found = potential(e, _at(e, c))
            total += 0.0 if found is None else gain * float(found)
        return total

    def _each(self, q: Array, qd: Array) -> list[tuple[Element, float, float, list[tuple[bool, Array, float]]]]:
        """Element, parameter, f, and of each line that it reads: whether of rates, its row (n,) and ∂f/∂x."""
        from veridyn.mechanics.natural.equations.law_code import FIRST, evaluate_law, law_rows

        t = self.code
        room, out = np.zeros((FIRST + law_rows(t), 3)), []
        for k, (e, gain) in enumerate(zip(self.elements, self.gains.tolist(), strict=True)):
            f = float(evaluate_law(t, k, q, qd, room))
            slopes = []
            for i in range(t.input_start[k], t.input_start[k + 1]):
                row, at = np.zeros(len(q)), slice(t.line_start[i], t.line_start[i + 1])
                np.add.at(row, t.line_column[at], t.line_weight[at])
                slope = float(t.slope_sign[i] * room[FIRST + t.slope_node[i], 0])
                slopes.append((bool(t.input_rate[i]), row, slope))
            out.append((e, gain, f, slopes))
        return out


def laws_of(mechanism: Mechanism) -> NaturalLaws:
    """The laws of a mechanism with the values of their elements."""
    return NaturalLaws(mechanism, np.array([e.value for e in mechanism.laws], dtype=np.float64))


def _at(e: Element, c: float) -> Acting:
    """What the energy of a law of c alone is a function of."""

    def nothing(*_: str) -> float:
        return 0.0

    return Acting(
        position=lambda: np.float64(c),
        rate=nothing,
        acceleration=nothing,
        constant=e.constant,
        state=nothing,
        coordinate=nothing,
        speed=nothing,
        signals={},
        algebra=ARRAYS,
    )


@dataclass(frozen=True, eq=False)
class ForceTable:
    """Everything that acts, as constant arrays. `loads` names the loads and where their numbers lie in one vector of values."""

    name: str
    weight: Array  # (n+1,)
    struts: Array  # (s, dim, n+1): maps of the way from end to end
    strut_names: tuple[str, ...]
    strut_laws: Array  # (3, s): stiffness, rest length, damping
    lines: Array  # (e, n): combinations of coordinates with springs or dampers, mostly one coordinate each
    line_laws: Array  # (3, e)
    loads: Mapping[str, slice]
    values: Array  # of the loads, as the model gives them
    constant: Array  # (n, values): generalised force of each number that does not depend on q
    turning: Array  # (values, n, n+1): and of each that does, linear in q
    active: NDArray[np.intp]  # the values with a turning part
    laws: NaturalLaws  # of elements that are neither springs nor dampers
    planar_torques: tuple[str, ...] = ()

    def packed(self, values: Array) -> tuple[Array, Array, Array]:
        """For compiled steps, of values (…, loads): constant forces (…, n), and factors (…, a) of the forces (a, n, n+1) linear in q."""
        return *self.constants(values), np.ascontiguousarray(self.turning[self.active])

    def constants(self, values: Array) -> tuple[Array, Array]:
        """The first two of :meth:`packed`."""
        constant = np.ascontiguousarray(self.weight[:-1] + values @ self.constant.T)
        return constant, np.ascontiguousarray(values[..., self.active])

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each number of the loads lies, by the name of its channel: the load's own, or NAME.x and so on where it has several.

        A torque in the plane has one number, and NAME.z stands for it as well: so it is called where the machine is a tree.
        """
        found = {}
        for name, at in self.loads.items():
            count = at.stop - at.start
            found |= {name: at.start} if count == 1 else {f"{name}.{AXES[k]}": at.start + k for k in range(count)}
        return found | {f"{name}.z": self.loads[name].start for name in self.planar_torques}

    def load_values(self, given: Mapping[str, ArrayLike] | None = None) -> Array:
        """The vector of values: the model's, but for the loads, or components of loads, given here by name."""
        if not given:
            return self.values
        out = self.values.copy()
        for name, value in given.items():
            if name in self.places:
                at = slice(self.places[name], self.places[name] + 1)
            elif name in self.loads:
                at = self.loads[name]
            else:
                raise DataError(
                    f"there is no load '{name}'.", where=self.name, hint=did_you_mean(name, list(self.loads))
                )
            x = np.asarray(value, dtype=np.float64).reshape(-1)
            if x.shape != (at.stop - at.start,) or not np.isfinite(x).all():
                raise DataError(
                    "this is no value of this load.",
                    where=f"{self.name}, load '{name}'",
                    expected=f"{at.stop - at.start} finite number(s)",
                    found=f"{x.tolist()}",
                )
            out[at] = x
        return out

    def forces(self, q: Array, qd: Array, values: Array) -> Array:
        """Q (n,)."""
        Q = self.weight[:-1] + self.constant @ values
        y = np.append(q, 1.0)
        if len(self.active):
            Q = Q + np.einsum("a,aij,j->i", values[self.active], self.turning[self.active], y)
        if len(self.struts):
            _, u, f, *_ = self._strut_state(y, qd)
            Q = Q - np.einsum("sij,si,s->j", self.struts[:, :, :-1], u, f)
        if len(self.lines):
            k, rest, c = self.line_laws
            Q = Q - (k * (self.lines @ q - rest) + c * (self.lines @ qd)) @ self.lines
        return Q + self.laws.forces(q, qd) if len(self.laws.gains) else Q

    def tangents(self, q: Array, qd: Array, values: Array) -> tuple[Array, Array]:
        """K = −∂Q/∂q and C = −∂Q/∂q̇, (n, n) each."""
        n = len(q)
        K, C = np.zeros((n, n)), np.zeros((n, n))
        y = np.append(q, 1.0)
        if len(self.active):
            K -= np.tensordot(values[self.active], self.turning[self.active, :, :-1], axes=1)
        if len(self.struts):
            length, u, f, v, rate = self._strut_state(y, qd)
            k, _, c = self.strut_laws
            D = self.struts[:, :, :-1]
            uu = u[:, :, None] * u[:, None, :]
            bend = (v - rate[:, None] * u) / length[:, None]  # ∂(rate)/∂r
            inner = (k - f / length)[:, None, None] * uu + (f / length)[:, None, None] * np.eye(D.shape[1])
            inner = inner + c[:, None, None] * u[:, :, None] * bend[:, None, :]
            K += np.einsum("sij,sik,skl->jl", D, inner, D)
            C += np.einsum("sij,sik,skl->jl", D, c[:, None, None] * uu, D)
        if len(self.lines):
            k, _, c = self.line_laws
            K += self.lines.T @ (k[:, None] * self.lines)
            C += self.lines.T @ (c[:, None] * self.lines)
        if len(self.laws.gains):
            own = self.laws.tangents(q, qd)
            K, C = K + own[0], C + own[1]
        return K, C

    def potential(self, q: Array) -> tuple[float, float]:
        """Energy in gravity's field and in the springs (J)."""
        y = np.append(q, 1.0)
        elastic = self.laws.stored(q)
        if len(self.struts):
            k, rest, _ = self.strut_laws
            elastic += float(0.5 * k @ (np.linalg.norm(self.struts @ y, axis=1) - rest) ** 2)
        if len(self.lines):
            k, rest, _ = self.line_laws
            elastic += float(0.5 * k @ (self.lines @ q - rest) ** 2)
        return -float(self.weight @ y), elastic

    def _strut_state(self, y: Array, qd: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Length, direction, tension, relative velocity and rate of length of every strut."""
        r, v = self.struts @ y, self.struts[:, :, :-1] @ qd
        length = np.linalg.norm(r, axis=1)
        if length.min() < NO_LENGTH:
            name = self.strut_names[int(np.argmin(length))]
            raise DataError(
                "its two ends are at one place, so it has no direction.", where=f"{self.name}, force '{name}'"
            )
        u = r / length[:, None]
        rate = (u * v).sum(axis=1)
        k, rest, c = self.strut_laws
        return length, u, k * (length - rest) + c * rate, v, rate


def forces_of(geometry: Geometry) -> ForceTable:
    """The table of everything that acts on a mechanism."""
    m = geometry.mechanism
    laws = [(s.name, s.on, (s.stiffness, s.rest, 0.0)) for s in m.springs]
    laws += [(d.name, d.on, (0.0, 0.0, d.coefficient)) for d in m.dampers]
    ends = [(name, on, law) for name, on, law in laws if not isinstance(on, str | Combination)]
    own = [(on, law) for _, on, law in laws if isinstance(on, str | Combination)]
    lines = np.zeros((len(own), m.n))
    for row, (on, _) in zip(lines, own, strict=True):
        for name, weight in on.weights if isinstance(on, Combination) else ((on, 1.0),):
            row[m.index(name)] += weight
    loads: dict[str, slice] = {}
    values: list[float] = []
    constant: list[Array] = []
    turning: list[Array] = []
    for load in m.loads:
        number = (load.value,) if isinstance(load, Drive) else np.atleast_1d(np.asarray(load.value)).tolist()
        loads[load.name] = slice(len(values), len(values) + len(number))
        values += [float(x) for x in number]
        for axis in range(len(number)):
            line, turn = np.zeros(m.n), np.zeros((m.n, m.n + 1))
            if isinstance(load, Drive):
                line[m.index(load.coordinate)] = 1.0
            elif isinstance(load, Force):
                line = geometry.point(load.at)[axis, :-1]
            else:
                turn = _torque(geometry, load, axis)
            constant.append(line)
            turning.append(turn)
    for signal in dict.fromkeys(e.signal for e in m.gains):
        loads[f"signal.{signal}"] = slice(len(values), len(values) + 1)
        values.append(0.0)
        line = np.zeros(m.n)
        for e in m.gains:
            for name, weight in e.on.items() if e.signal == signal else ():
                line[m.index(name)] += weight * e.value
        constant.append(line)
        turning.append(np.zeros((m.n, m.n + 1)))
    twist = np.array(turning).reshape(-1, m.n, m.n + 1)
    return ForceTable(
        m.name,
        weight_of(geometry),
        np.array([geometry.point(on[1]) - geometry.point(on[0]) for _, on, _ in ends]).reshape(
            -1, m.dimension, m.n + 1
        ),
        tuple(name for name, _, _ in ends),
        np.array([law for _, _, law in ends]).reshape(-1, 3).T,
        lines,
        np.array([law for _, law in own]).reshape(-1, 3).T,
        loads,
        np.array(values),
        np.array(constant).reshape(-1, m.n).T,
        twist,
        np.flatnonzero(twist.any(axis=(1, 2))),
        laws_of(m),
        tuple(load.name for load in m.loads if isinstance(load, Torque)) if m.dimension == 2 else (),
    )


def _torque(geometry: Geometry, load: Torque, axis: int) -> Array:
    """B (n, n+1) with Q = B y of a unit torque about one axis: its power is τ·ω = Σ ½ (τ × dⁱ)·ḋᵢ, the reciprocal dⁱ = Σ Gⁱʲ dⱼ."""
    B = np.zeros((geometry.mechanism.n, geometry.mechanism.n + 1))
    for body, sign in ((load.body, 1.0), (load.against, -1.0)):
        if body == GROUND:
            continue
        if not geometry.bases[body].complete:
            raise ModelError(
                "its points and vectors do not fix its orientation, so a torque has no power there.",
                where=f"force '{load.name}', body '{body}'",
                hint="Give the body more points or vectors.",
                source=geometry.mechanism.name,
            )
        B += sign * moment_map(geometry, body, axis)
    return B


def moment_map(geometry: Geometry, body: str, axis: int) -> Array:
    """B (n, n+1) of one axis of the ground with ω = q̇ᵀ B y of a complete body, and Q = B y of a unit moment on it."""
    basis = geometry.bases[body]
    maps = basis.maps
    if geometry.mechanism.dimension == 2:
        return maps[0, :, :-1].T @ maps[1] / (basis.local[:, 0] @ basis.local[:, 0])
    G = np.linalg.inv(basis.local.T @ basis.local)
    E = cross_matrix(np.eye(3)[axis])
    return np.asarray(0.5 * np.einsum("ipk,pr,ij,jrl->kl", maps[:, :, :-1], E, G, maps), dtype=np.float64)
