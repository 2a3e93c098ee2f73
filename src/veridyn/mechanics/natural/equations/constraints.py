"""Constraints of a mechanism from one sparse table of quadratic coefficients.

With y = (q, 1) every rigid-body and joint constraint is Φᵢ = yᵀ Sᵢ y with a constant, symmetric, sparse Sᵢ. Hence, from one table,

    Φ_q = 2 S y,    Φ̇_q = 2 S ẏ,    Φ = ½ yᵀ(2 S y),    ∂(Φ_qᵀ λ)/∂q = Σ 2 λᵢ Sᵢ.

Only an added angle φ is not quadratic: sin φ A − cos φ B − C = 0 with quadratic A = d·e, B = d·f and C = 0. Unlike either of equations (21)
of paper 003 this single equation holds all the way round: its slope in φ is the projected length of d and never vanishes. An elevation has
A = 1, B = 0 and C = d·n.

A prescribed coordinate has a row of its own, Φ = q − g(t): its multiplier is the force that leads it, with the opposite sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.mechanics.natural.equations.geometry import IN_SPAN, Geometry
from veridyn.model.place import QUARTER_TURN, Marker, frame
from veridyn.model.point_parts import Angle, Elevation, MechanismJoint, RigidBody

Indices = NDArray[np.intp]
EQUAL_CONSTANTS = 1e-9  # relative: constants that two bodies give for the same thing


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Quadratic forms as one gather: entry k of 2 S y belongs to form `row[k]` and place `column[k]`; column n is the constant."""

    rows: int
    n: int
    row: Indices
    column: Indices
    gather: csr_array
    inside: Indices  # the entries with column < n: the pattern of Φ_q
    bend_row: Indices  # the second derivatives, one by one: form, place in a flat (n, n), value
    bend_place: Indices
    bend_value: Array

    @classmethod
    def of(cls, forms: list[Array], n: int) -> CoefficientTable:
        """From symmetric matrices (n+1, n+1)."""
        cells = [np.nonzero(S) for S in forms]
        row = np.concatenate([np.full(len(a), i) for i, (a, _) in enumerate(cells)] or [np.zeros(0, dtype=np.intp)])
        a = np.concatenate([a for a, _ in cells] or [np.zeros(0, dtype=np.intp)])
        b = np.concatenate([b for _, b in cells] or [np.zeros(0, dtype=np.intp)])
        s = np.concatenate([S[cell] for S, cell in zip(forms, cells, strict=True)] or [np.zeros(0)])
        keys, entry = np.unique(row * (n + 1) + a, return_inverse=True)
        gather = csr_array((2.0 * s, (entry, b)), shape=(len(keys), n + 1))
        column = keys % (n + 1)
        bend = np.flatnonzero((a < n) & (b < n))
        places = (a * n + b)[bend]
        inside = np.flatnonzero(column < n)
        return cls(len(forms), n, keys // (n + 1), column, gather, inside, row[bend], places, 2.0 * s[bend])

    def evaluate(self, q: Array) -> tuple[Array, Array]:
        """Values (rows,) and gradients (rows, n)."""
        y = np.append(q, 1.0)
        slopes = self.gather @ y
        values = np.bincount(self.row, slopes * y[self.column], minlength=self.rows)
        return 0.5 * np.asarray(values, dtype=np.float64), self._dense(slopes)

    def rate(self, qd: Array) -> Array:
        """The time derivative of the gradients (rows, n): the same table on ẏ = (q̇, 0)."""
        return self._dense(self.gather @ np.append(qd, 0.0))

    def _dense(self, slopes: Array) -> Array:
        J = np.zeros((self.rows, self.n))
        J[self.row[self.inside], self.column[self.inside]] = slopes[self.inside]
        return J

    def curvature(self, weights: Array) -> Array:
        """Σ weightsᵢ ∂²Φᵢ/∂q² (n, n)."""
        flat = np.bincount(self.bend_place, self.bend_value * weights[self.bend_row], minlength=self.n**2)
        return np.asarray(flat, dtype=np.float64).reshape(self.n, self.n)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Φ(q) = 0 of a mechanism: `names` says what each row is, `owners` which body, joint or coordinate it comes from."""

    n: int
    names: tuple[str, ...]
    owners: tuple[str, ...]
    quadratic: CoefficientTable
    angles: CoefficientTable  # forms A₀, B₀, C₀, A₁, B₁, C₁, …
    places: Indices  # coordinate number of each angle
    held: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # rows of prescribed coordinates
    motion: Array = field(default_factory=lambda: np.zeros((3, 0)))  # (3, held): g and its first and second rate

    @property
    def m(self) -> int:
        """The number of constraints."""
        return len(self.names)

    def evaluate(self, q: Array) -> tuple[Array, Array]:
        """Φ (m,) and Φ_q (m, n)."""
        phi, J = self.quadratic.evaluate(q)
        phi[self.held] -= self.motion[0]
        if not len(self.places):
            return phi, J
        ABC, slopes = self.angles.evaluate(q)
        A, B, C = ABC.reshape(-1, 3).T
        s, c = np.sin(q[self.places]), np.cos(q[self.places])
        rows = s[:, None] * slopes[::3] - c[:, None] * slopes[1::3] - slopes[2::3]
        rows[np.arange(len(s)), self.places] += c * A + s * B
        return np.concatenate([phi, s * A - c * B - C]), np.vstack([J, rows])

    def half_turned(self, q: Array) -> Indices:
        """The coordinates of angles that are half a turn from what they measure: A sin φ = B cos φ holds there too.

        Only of angles whose form C is zero; with another one both solutions are assemblies of the mechanism.
        """
        if not len(self.places):
            return self.places
        A, B, _ = self.angles.evaluate(q)[0].reshape(-1, 3).T
        single = ~np.isin(np.arange(2, self.angles.rows, 3), self.angles.row)
        return self.places[single & (np.cos(q[self.places]) * A + np.sin(q[self.places]) * B < 0.0)]

    @property
    def rates(self) -> Array:
        """Φ_q q̇ (m,) of a motion that satisfies the constraints: zero but for prescribed coordinates."""
        return self._given(1)

    def second_rates(self, q: Array, qd: Array) -> Array:
        """Φ_q q̈ (m,) of such a motion, −Φ̇_q q̇ and the accelerations of prescribed coordinates."""
        return self._given(2) - self.jacobian_rate(q, qd) @ qd

    def _given(self, order: int) -> Array:
        out = np.zeros(self.m)
        out[self.held] = self.motion[order]
        return out

    def values(self, q: Array) -> Array:
        """Φ (m,)."""
        return self.evaluate(q)[0]

    def jacobian(self, q: Array) -> Array:
        """Φ_q (m, n)."""
        return self.evaluate(q)[1]

    def jacobian_rate(self, q: Array, qd: Array) -> Array:
        """Φ̇_q (m, n): the time derivative of Φ_q along q̇; Φ̈ = Φ_q q̈ + Φ̇_q q̇."""
        rate = self.quadratic.rate(qd)
        if not len(self.places):
            return rate
        ABC, slopes = self.angles.evaluate(q)
        turned = self.angles.rate(qd)
        A, B, Ad, Bd = ABC[::3], ABC[1::3], slopes[::3] @ qd, slopes[1::3] @ qd
        s, c, w = np.sin(q[self.places]), np.cos(q[self.places]), qd[self.places]
        rows = s[:, None] * turned[::3] - c[:, None] * turned[1::3] - turned[2::3]
        rows += w[:, None] * (c[:, None] * slopes[::3] + s[:, None] * slopes[1::3])
        rows[np.arange(len(s)), self.places] += c * Ad + s * Bd + w * (c * B - s * A)
        return np.vstack([rate, rows])

    def curvature(self, q: Array, weights: Array) -> Array:
        """∂(Φ_qᵀ λ)/∂q for constant λ = `weights` (n, n): the stiffness that the constraint forces bring."""
        k = self.quadratic.rows
        H = self.quadratic.curvature(weights[:k])
        if not len(self.places):
            return H
        ABC, slopes = self.angles.evaluate(q)
        s, c, w = np.sin(q[self.places]), np.cos(q[self.places]), weights[k:]
        H += self.angles.curvature(np.column_stack([w * s, -w * c, -w]).reshape(-1))
        mixed = w[:, None] * (c[:, None] * slopes[::3] + s[:, None] * slopes[1::3])
        for p, row, own in zip(self.places, mixed, w * (c * ABC[1::3] - s * ABC[::3]), strict=True):
            H[p] += row
            H[:, p] += row
            H[p, p] += own
        return H

    def third(self, q: Array, d: Array, v: Array) -> Array:
        """Φ_qqq[d, v, v] (m,): only angles have one."""
        out = np.zeros(self.m)
        if not len(self.places):
            return out
        ABC, slopes = self.angles.evaluate(q)
        A, B, Av, Bv, Ad, Bd = ABC[::3], ABC[1::3], slopes[::3] @ v, slopes[1::3] @ v, slopes[::3] @ d, slopes[1::3] @ d
        along_v = self.angles.rate(v)
        vv, dv = along_v @ v, along_v @ d
        s, c, w, e = np.sin(q[self.places]), np.cos(q[self.places]), v[self.places], d[self.places]
        out[-len(s) :] = 2.0 * e * w * (c * Bv - s * Av) + w * w * (c * Bd - s * Ad) - e * w * w * (c * A + s * B)
        out[-len(s) :] += e * (c * vv[::3] + s * vv[1::3]) + 2.0 * w * (c * dv[::3] + s * dv[1::3])
        return out

    def errors(
        self, q: Array, qd: Array, qdd: Array, rows: Indices | slice = slice(None)
    ) -> tuple[float, float, float]:
        """The largest |Φ|, |Φ_q q̇| and |Φ_q q̈ + Φ̇_q q̇| of these rows at one state."""
        phi, J = self.evaluate(q)
        parts = (phi, J @ qd, J @ qdd + self.jacobian_rate(q, qd) @ qd)
        first, second, third = (float(np.abs(x[rows]).max(initial=0.0)) for x in parts)
        return first, second, third

    def pattern(self) -> NDArray[np.bool_]:
        """Where Φ_q can differ from zero (m, n); it never changes."""
        P = np.zeros((self.m, self.n), dtype=np.bool_)
        q, a = self.quadratic, self.angles
        P[q.row[q.inside], q.column[q.inside]] = True
        P[q.rows + a.row[a.inside] // 3, a.column[a.inside]] = True
        P[q.rows + np.arange(len(self.places)), self.places] = True
        return P


def constraints_of(geometry: Geometry) -> Constraints:
    """All constraints of a mechanism, without those that another body, or what is fixed, already implies.

    Two bodies that share points and vectors both imply their distances and angles: the constraint is written once, and refused where
    the two give different numbers.
    """
    made = _Writer(geometry)
    made.bodies()
    made.loose_vectors()
    for joint in geometry.mechanism.joints:
        made.joint(joint)
    made.added()
    made.faults.raise_if_any(ModelError, geometry.mechanism.name)
    n = geometry.mechanism.n
    return Constraints(
        n,
        tuple(made.names),
        tuple(made.owners),
        CoefficientTable.of(made.forms, n),
        CoefficientTable.of(made.angle_forms, n),
        np.array(made.places, dtype=np.intp),
        np.array(made.held, dtype=np.intp),
        np.zeros((3, len(made.held))),
    )


def dot_form(A: Array, B: Array, value: float = 0.0) -> Array:
    """The symmetric matrix of (A y)·(B y) − value."""
    S = A.T @ B
    S = 0.5 * (S + S.T)
    S[-1, -1] -= value
    return S


def linear_form(a: Array) -> Array:
    """The symmetric matrix of a·y, since the last entry of y is one."""
    S = np.zeros((len(a), len(a)))
    S[-1] += 0.5 * a
    S[:, -1] += 0.5 * a
    return S


def _local(source: tuple[str, ...], at: dict[str, Array]) -> Array:
    """The direction of a source (one vector, or from point to point) in the frame in which `at` places its elements."""
    return at[source[-1]] - at[source[0]] if len(source) == 2 else at[source[0]]


class _Writer:
    """Collects rows; knows which sets of points and vectors are already rigid."""

    def __init__(self, geometry: Geometry) -> None:
        self.g = geometry
        self.names: list[str] = []
        self.owners: list[str] = []
        self.forms: list[Array] = []
        self.angle_forms: list[Array] = []
        self.places: list[int] = []
        self.held: list[int] = []
        self.faults = Faults()
        self.rigid: list[
            tuple[str, dict[str, Array]]
        ] = []  # owner, element → its place or components in the owner's frame

    def row(self, owner: str, name: str, form: Array) -> None:
        """One row; a constant one says nothing, or cannot hold."""
        if not np.any(form[:-1]):
            off = abs(float(form[-1, -1]))
            if off > EQUAL_CONSTANTS:
                self.faults.add(
                    f"the constraint '{name}' is between fixed things and does not hold.",
                    where=owner,
                    found=f"a residual of {off:.6g}",
                )
            return
        self.names.append(name)
        self.owners.append(owner)
        self.forms.append(form)

    def implied(self, used: set[str]) -> tuple[str, dict[str, Array]] | None:
        for owner, places in self.rigid:
            if used <= places.keys():
                return owner, places
        return None

    def bodies(self) -> None:
        m = self.g.mechanism
        fixed = {p.name: np.array(p.at) for p in m.points if p.fixed}
        fixed |= {v.name: np.array(v.along) for v in m.vectors if v.fixed}
        self.rigid.append(("the ground", fixed))
        for b in sorted(m.bodies, key=self._shared_beyond_basis, reverse=True):
            where = f"body '{b.name}'"
            places = {name: np.array(x) for name, x in (*b.points.items(), *b.vectors.items())}
            basis = self.g.bases[b.name]

            for i, first in enumerate(basis.sources):
                for j, second in enumerate(basis.sources[: i + 1]):
                    value = float(_local(first, places) @ _local(second, places))
                    name = f"{b.name}: " + (
                        f"|{'-'.join(first)}|" if i == j else f"{'-'.join(second)} · {'-'.join(first)}"
                    )
                    known = self.implied({*first, *second})
                    if known is not None:
                        there = float(_local(first, known[1]) @ _local(second, known[1]))
                        self.agree(where, name, value, there, known[0])
                    else:
                        self.row(where, name, dot_form(basis.maps[i], basis.maps[j], value))
            self.further(b.name, where, places)
            self.rigid.append((where, places))

    def _shared_beyond_basis(self, b: RigidBody) -> int:
        """A body that gives a shared element by its own basis comes first: it implies what others would say of that element."""
        basis = self.g.bases[b.name]
        beyond = set(b.elements) - {basis.origin, *(s[-1] for s in basis.sources)}
        return sum(e in other.elements for other in self.g.mechanism.bodies if other is not b for e in beyond)

    def further(self, body: str, where: str, places: dict[str, Array]) -> None:
        """Points and vectors beyond the basis are combinations of it, component by component (34)."""
        basis, m = self.g.bases[body], self.g.mechanism
        in_basis = {basis.origin, *(s[-1] for s in basis.sources)}
        points = m.body(body).points
        in_basis |= {e for e, owner in m.derived if owner == body}
        for name, x in places.items():
            if name in in_basis:
                continue
            row = f"{body}: {name}"
            c = basis.weights(x - basis.local_origin if name in points else x)
            c[np.abs(c) < IN_SPAN * np.abs(c).max(initial=0.0)] = 0.0
            used = {e for s, w in zip(basis.sources, c, strict=False) if w or m.dimension == 2 for e in s}
            known = self.implied(used | {name} | ({basis.origin} if name in points else set()))
            if known is not None:
                at = known[1]
                there = at[basis.origin] if name in points else np.zeros(m.dimension)
                directions = [_local(s, at) if used.issuperset(s) else there for s in basis.sources]
                if m.dimension == 2 and directions:
                    directions.append(QUARTER_TURN @ directions[0])
                there = there + sum((w * d for w, d in zip(c, directions, strict=True) if w), np.zeros(m.dimension))
                self.agree(where, row, float(np.linalg.norm(at[name] - there)), 0.0, known[0])
                continue
            A = self.g.on_body(body, x) if name in points else self.g.along(body, x)
            for axis, line in zip("xyz", self.g.elements[name] - A, strict=False):
                self.row(where, f"{row}.{axis}", linear_form(line))

    def agree(self, where: str, name: str, here: float, there: float, owner: str) -> None:
        if abs(here - there) > EQUAL_CONSTANTS * max(1.0, abs(here), abs(there)):
            self.faults.add(
                f"the constraint '{name}' contradicts {owner}, which has the same points and vectors.",
                where=where,
                expected=f"{there:.9g}",
                found=f"{here:.9g} (squared length, product or offset)",
            )

    def loose_vectors(self) -> None:
        owned = {e for b in self.g.mechanism.bodies for e in b.vectors}
        for v in self.g.mechanism.vectors:
            if not v.fixed and v.name not in owned:
                A = self.g.elements[v.name]
                self.row(f"vector '{v.name}'", f"|{v.name}|", dot_form(A, A, 1.0))

    def joint(self, j: MechanismJoint) -> None:
        where, space = f"joint '{j.name}'", self.g.mechanism.dimension == 3
        r = self.g.point(j.b) - self.g.point(j.a)
        if j.kind == "distance":
            self.row(where, j.name, dot_form(r, r, j.length**2))
            return
        if j.kind in ("spherical", "turning", "universal"):
            for axis, line in zip("xyz", r, strict=False):
                self.row(where, f"{j.name}: {axis}", linear_form(line))
        if j.kind == "spherical" or (j.kind == "turning" and not space):
            return
        assert isinstance(j.a, Marker)  # natural_check has seen to it
        axis_a, side_a, third_a = (self.g.along(j.a.body, x) for x in frame(j.a))
        if j.kind == "inplane":
            self.row(where, j.name, dot_form(r, axis_a))
            return
        if j.kind in ("sliding", "cylindrical", "inline"):
            self.row(where, f"{j.name}: beside", dot_form(r, side_a))
            if space:
                self.row(where, f"{j.name}: above", dot_form(r, third_a))
            if j.kind == "inline" or (j.kind == "cylindrical" and not space):
                return
        assert isinstance(j.b, Marker)
        axis_b, side_b, _ = (self.g.along(j.b.body, x) for x in frame(j.b))
        if j.kind == "universal":
            self.row(where, f"{j.name}: cross", dot_form(axis_a, axis_b))
            return
        self.row(where, f"{j.name}: axis beside", dot_form(axis_b, side_a))
        if space:
            self.row(where, f"{j.name}: axis above", dot_form(axis_b, third_a))
            if j.kind == "sliding":
                self.row(where, f"{j.name}: turn", dot_form(side_b, third_a))

    def added(self) -> None:
        m = self.g.mechanism
        angle_names: list[str] = []
        for a in m.added:
            k, where = m.index(a.name), f"coordinate '{a.name}'"
            if isinstance(a, Angle):
                d, e, f = self.g.angle(a)
                self.angle_forms += [dot_form(d, e), dot_form(d, f), np.zeros((m.n + 1, m.n + 1))]
                self.places.append(k)
                angle_names.append(a.name)
                continue
            if isinstance(a, Elevation):
                one, none = np.zeros((m.n + 1, m.n + 1)), np.zeros((m.n + 1, m.n + 1))
                one[-1, -1] = 1.0
                self.angle_forms += [one, none, dot_form(self.g.unit(a.of), self.g.unit(a.normal))]
                self.places.append(k)
                angle_names.append(a.name)
                continue
            r = self.g.point(a.b) - self.g.point(a.a)
            own = np.zeros(m.n + 1)
            own[k] = 1.0
            if a.along is None:
                self.row(where, a.name, np.outer(own, own) - dot_form(r, r))  # s² = r·r, (38) squared
            else:
                self.row(where, a.name, linear_form(own) - dot_form(r, self.g.unit(a.along)))
        for rack in m.racks:
            line = np.zeros(m.n + 1)
            line[[m.index(rack.distance), m.index(rack.angle), -1]] = 1.0, -rack.radius, -rack.offset
            self.row(f"rack '{rack.name}'", rack.name, linear_form(line))
        for name in m.prescribed:
            line = np.zeros(m.n + 1)
            line[m.index(name)] = 1.0
            self.held.append(len(self.forms))
            self.row(f"coordinate '{name}'", f"{name}, prescribed", linear_form(line))
        self.names += angle_names
        self.owners += [f"coordinate '{name}'" for name in angle_names]
