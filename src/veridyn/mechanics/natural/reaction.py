"""Reactions of joints: force and moment about the joint's place, in the ground's axes, with exact derivatives.

A joint that the description names has equations, and its multipliers λ give its force. Bodies that share a point or a vector are joined
without an equation, and the equilibrium of one of them gives it: with points and vectors of its own, in place of shared ones, body b has

    f = M_b q̈ + Φ_qᵀ λ − Q_b        on these, with the rows, springs, loads and markers that are its own,

which is what the others do to it there. Over the shared elements f adds up to a force Σ f_p and a moment Σ (r_p − c) × f_p + Σ v × f_v.

What a motor, spring or damper on the angle of a bearing does to it is a couple about the axis of turning; it turns the bodies about the
axis and is no part of the reaction. An added angle φ of a direction d, counted from e towards f, is held by Φ = sin φ d·e − cos φ d·f.
Where d is not across the axis a = e × f, the force −λ ∂Φ/∂d makes, besides the couple about a, one across it that affects no motion and
that the bearing has to carry. It is handed to the bearing's reaction:

    −λ (d·a) (cos φ e + sin φ f)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.mechanics.formulation import QuantityReading
from veridyn.mechanics.natural.description.mechanism import AXES, Mechanism
from veridyn.mechanics.natural.equations.dynamics import refuse_vehicle
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.model.load import Force
from veridyn.model.place import GROUND, Marker, PointRef
from veridyn.model.point_parts import (
    Added,
    Angle,
    Combination,
    DirectionRef,
    Elevation,
    MechanismJoint,
    Point,
    RigidBody,
)

PERPENDICULAR_TOLERANCE = 1e-6  # of sines and lengths: what still counts as a unit vector, perpendicular or parallel


@dataclass(frozen=True, eq=False)
class Across:
    """The part across the axis of one angle's row: `row` of Φ, `place` of its coordinate, maps of d, e and f, `sign` on the chosen body."""

    row: int
    place: int
    d: Array
    e: Array
    f: Array
    sign: float

    def at(self, q: Array, lam: Array) -> tuple[Array, Array, Array]:
        """The moment (3,) and its derivatives with respect to q (3, n) and to its own multiplier (3,)."""
        y, phi = np.append(q, 1.0), q[self.place]
        d, e, f = self.d @ y, self.e @ y, self.f @ y
        a = np.cross(e, f)
        along, p = float(d @ a), np.cos(phi) * e + np.sin(phi) * f
        by_along = a @ self.d[:, :-1] + np.cross(f, d) @ self.e[:, :-1] + np.cross(d, e) @ self.f[:, :-1]
        by_p = np.cos(phi) * self.e[:, :-1] + np.sin(phi) * self.f[:, :-1]
        by_p[:, self.place] += np.cos(phi) * f - np.sin(phi) * e
        per = -self.sign * along * p
        by_q = -self.sign * lam[self.row] * (np.outer(p, by_along) + along * by_p)
        return lam[self.row] * per, by_q, per


def across_of(system: NaturalSystem, body: str, other: str, axis: Array) -> tuple[Across, ...]:
    """Of each angle between two bodies about this axis (its map, (3, n+1)): the part across, as it acts on `body`."""
    m, g = system.mechanism, system.geometry
    y, out = np.append(g.guess, 1.0), []
    turn = _unit(axis @ y)
    for angle in m.added:
        if m.dimension != 3 or not isinstance(angle, Angle) or angle.towards is None:
            continue
        ends = owner_of(m, angle.of), owner_of(m, angle.reference), owner_of(m, angle.towards)
        sign = 1.0 if ends == (body, other, other) else -1.0 if ends == (other, body, body) else 0.0
        maps = g.angle(angle)
        _, e, f = (A @ y for A in maps)
        square = np.abs([e @ e - 1.0, f @ f - 1.0, e @ f]).max() < PERPENDICULAR_TOLERANCE
        if sign and square and float(np.linalg.norm(np.cross(np.cross(e, f), turn))) < PERPENDICULAR_TOLERANCE:
            out.append(Across(system.constraints.names.index(angle.name), m.index(angle.name), *maps, sign))
    return tuple(out)


def owner_of(m: Mechanism, ref: PointRef | DirectionRef) -> str | None:
    """The body a place or direction belongs to: its marker's, the ground where nothing in it moves, else the first that has all of it."""
    if isinstance(ref, Marker):
        return ref.body
    names = (ref,) if isinstance(ref, str) else tuple(ref)
    if not all(isinstance(name, str) for name in names):
        return GROUND  # components in the ground's axes
    if all(e.fixed for e in (*m.points, *m.vectors) if e.name in names):
        return GROUND
    return next((b.name for b in m.bodies if set(names) <= set(b.elements)), None)


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-300)


if TYPE_CHECKING:
    from veridyn.mechanics.natural.equations.tangent import Slopes


Indices = NDArray[np.intp]
OWN = "\0"  # before the name of a body's own copy of a point or vector; no file can hold it
WITHOUT_MOMENT = ("spherical", "inline", "inplane")


@dataclass(frozen=True, eq=False)
class Along:
    """The force along a distance joint (positive where it pulls) or on a rack: a multiple of one multiplier."""

    n: int
    unknown: int
    row: Array  # (1, m)
    components: tuple[str, ...] = ("",)
    units: tuple[str, ...] = ("N",)

    def at(self, q: Array, qd: Array, qdd: Array, lam: Array, values: Array, u: Array) -> QuantityReading:
        none = np.zeros((1, self.n))
        return QuantityReading(self.row @ lam, none, none, none, self.row, np.zeros((1, self.unknown)))


@dataclass(frozen=True, eq=False)
class Wrench:
    """Force, and moment about a place, on a body with points and vectors of its own; made by :func:`reaction_of`.

    `split` is the mechanism with these; its coordinates are E q + e. `parts`: the columns of f of each element that counts, and the map of
    its arm (of a vector: itself). `rows` (m', m) carries multipliers over. `whole`: f as above; else what the rows alone do.
    """

    split: NaturalSystem
    E: Array
    e: Array
    rows: Array
    unknown: Array  # (n', u): what the unknown forces do
    parts: tuple[tuple[Indices, Array, bool], ...]  # columns, arm (dim, n'+1), whether it is a point
    whole: bool
    sign: float
    moment: bool
    across: tuple[Across, ...] = ()

    @property
    def components(self) -> tuple[str, ...]:
        axes = AXES[: self.split.mechanism.dimension]
        turning = (("moment",) if len(axes) == 2 else tuple(f"moment.{a}" for a in axes)) if self.moment else ()
        return (*axes, *turning)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple("N*m" if c.startswith("moment") else "N" for c in self.components)

    def at(self, q: Array, qd: Array, qdd: Array, lam: Array, values: Array, u: Array) -> QuantityReading:
        """Value and derivatives; `values` of the loads, `u` of the unknown forces."""
        its, E = self.split, self.E
        x, xd, xdd, of_rows = E @ q + self.e, E @ qd, E @ qdd, self.rows @ lam
        J = its.constraints.jacobian(x)
        f, by_x = J.T @ of_rows, its.constraints.curvature(x, of_rows)
        if self.whole:
            K, C = its.forces.tangents(x, xd, values)
            f = f + its.mass @ xdd - its.forces.forces(x, xd, values) - self.unknown @ u
            by_x, by_xd, by_xdd, by_u = by_x + K, C, its.mass, -self.unknown
        else:  # the rows stand on the left of the equations of motion: what they do is −Φ_qᵀ λ
            f, by_x, J = -f, -by_x, -J
            by_xd, by_xdd, by_u = np.zeros((its.n, its.n)), np.zeros((its.n, its.n)), np.zeros(self.unknown.shape)
        W, turned = self._added_up(x, f)
        made, by_q, by_lam = W @ f, (W @ by_x + turned) @ E, W @ J.T @ self.rows
        for part in self.across:
            moment, moment_q, moment_lam = part.at(q, lam)
            made[3:] += moment
            by_q[3:] += moment_q
            by_lam[3:, part.row] += moment_lam
        s = self.sign
        return QuantityReading(s * made, s * by_q, s * W @ by_xd @ E, s * W @ by_xdd @ E, s * by_lam, s * W @ by_u)

    def by_parameters(self, q: Array, qd: Array, qdd: Array, slopes: Slopes) -> Array:
        """The derivative (k, p) by parameters with these slopes of `split`, at an unchanged motion and unchanged multipliers."""
        its, E = self.split, self.E
        x, xd, xdd = E @ q + self.e, E @ qd, E @ qdd
        W, _ = self._added_up(x, np.zeros(its.n))
        out = np.zeros((len(W), len(slopes.mass)))
        if not self.whole:
            return out
        still = np.zeros_like(its.forces.values)
        for k, (mass, force, struts, own, gains) in enumerate(zip(*slopes, strict=True)):
            laws = replace(its.forces.laws, gains=gains)
            acting = replace(its.forces, weight=np.append(force, 0.0), strut_laws=struts, line_laws=own, laws=laws)
            out[:, k] = W @ (mass @ xdd - acting.forces(x, xd, still))
        return self.sign * out

    def _added_up(self, x: Array, f: Array) -> tuple[Array, Array]:
        """W (k, n') with force and moment W f, and ∂(W f)/∂x for this f."""
        dim, n = self.split.mechanism.dimension, len(x)
        k = len(self.components)
        W, turned, y = np.zeros((k, n)), np.zeros((k, n)), np.append(x, 1.0)
        for columns, arm, is_point in self.parts:
            if is_point:
                W[:dim, columns] += np.eye(dim)
            if self.moment:
                W[dim:, columns] += _cross(arm @ y)
                turned[dim:] -= _cross(f[columns]) @ arm[:, :-1]
        return W, turned


def _cross(d: Array) -> Array:
    """The matrix of d × · (3, 3), in the plane (1, 2); d × f = −f × d in both."""
    if len(d) == 2:
        return np.array([[-d[1], d[0]]])
    x, y, z = d
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def reaction_of(system: NaturalSystem, on: str | tuple[str, str], unknown: tuple[str, ...] = ()) -> Along | Wrench:
    """The reaction of a joint or rack by its name, on its end b; or, by (body, point), what others do to a body there.

    The latter is for bodies that share points and vectors: all that the body shares with the same others as that point counts, at a
    fixed point all that it has fixed, and where that is more than the point, there is a moment. What is attached to a shared point, or to
    a direction of shared elements, belongs to the first body that has it. `unknown`: names as of a
    :class:`~veridyn.mechanics.natural.steps.minimal.Minimal`.
    """
    refuse_vehicle(system, "a reaction")
    m = system.mechanism
    if isinstance(on, tuple):
        return _at_shared(system, *on, unknown)
    joints, racks = {j.name: j for j in m.joints}, {r.name for r in m.racks}
    if on in racks or (on in joints and joints[on].kind == "distance"):
        owner = f"rack '{on}'" if on in racks else f"joint '{on}'"
        size = -1.0 if on in racks else 2.0 * joints[on].length  # of Φ = s − r φ and of Φ = r·r − L²
        row = np.array([[size if o == owner else 0.0 for o in system.constraints.owners]])
        return Along(system.n, len(unknown), row)
    if on in joints:
        return _of_joint(system, joints[on], unknown)
    raise DataError(
        f"there is no joint '{on}'.",
        where=m.name,
        expected="the name of a joint or rack, or [body, point] where bodies share the point",
        hint=did_you_mean(on, [*joints, *racks]),
    )


def _of_joint(system: NaturalSystem, j: MechanismJoint, unknown: tuple[str, ...]) -> Wrench:
    """Through the rows of the joint, on its end b; where that is the ground, the opposite of what acts on a."""
    m = system.mechanism
    end, sign = (j.a, -1.0) if _grounded(j.b) else (j.b, 1.0)
    if isinstance(end, Marker):
        split, elements = _split(m, end.body), m.body(end.body).elements
    else:
        own = OWN + end
        place = next(p for p in m.points if p.name == end)
        moved = replace(j, b=own) if sign > 0.0 else replace(j, a=own)
        split = replace(
            m, points=(*m.points, Point(own, place.at)), joints=tuple(moved if x is j else x for x in m.joints)
        )
        elements = (end,)
    made = system_of(split)
    about = made.geometry.point(next(x for x in made.mechanism.joints if x.name == j.name).b)
    owner = f"joint '{j.name}'"
    plane_pin = m.dimension == 2 and j.kind != "sliding"
    moment = j.kind not in WITHOUT_MOMENT and not plane_pin
    across: tuple[Across, ...] = ()
    if m.dimension == 3 and j.kind in ("turning", "cylindrical"):
        here, there = (owner_of(m, e) for e in ((j.b, j.a) if sign > 0.0 else (j.a, j.b)))
        across = across_of(system, str(here), str(there), system.geometry.direction(end))
    return _wrench(system, made, elements, about, unknown, owner, sign, moment, across)


def _grounded(ref: str | Marker) -> bool:
    return isinstance(ref, Marker) and ref.body == GROUND


def _at_shared(system: NaturalSystem, body: str, point: str, unknown: tuple[str, ...]) -> Wrench:
    m = system.mechanism
    b = m.body(body)
    owners = _owners(system)
    shared = [p for p in b.points if owners[p] - {body}]
    if point not in shared:
        what = f"'{point}' is no point of it" if point not in b.points else f"no other body has its point '{point}'"
        raise DataError(
            f"{what}, so nothing is joined there.",
            where=f"body '{body}'",
            expected="a fixed point, or one that it shares: " + (", ".join(shared) or "it has none"),
            hint="Ask for a joint of the description by its name.",
        )
    elements = tuple(e for e in b.elements if owners[e] == owners[point])
    made, across, maps = system_of(_split(m, body)), (), system.geometry.elements
    further = [maps[e] - (maps[point] if e in b.points else 0.0) for e in elements if e != point]
    others = owners[point] - {body}
    if len(further) == 1 and len(others) == 1:
        across = across_of(system, body, next(iter(others)), further[0])
    about = made.geometry.elements[OWN + point]
    return _wrench(system, made, elements, about, unknown, "", 1.0, len(elements) > 1, across)


def _owners(system: NaturalSystem) -> Mapping[str, frozenset[str]]:
    """Element → the bodies that have it; of a fixed one the ground alone, since that is what holds it."""
    m = system.mechanism
    out: dict[str, frozenset[str]] = {e.name: frozenset((GROUND,)) for e in (*m.points, *m.vectors) if e.fixed}
    for e in (*m.points, *m.vectors):
        if not e.fixed:
            out[e.name] = frozenset(b.name for b in m.bodies if e.name in b.elements)
    return out


def _split(m: Mechanism, body: str) -> Mechanism:
    """The mechanism in which a body has moving points and vectors of its own, and what belongs to it is attached to those."""
    b = m.body(body)

    def mine(ref: Any) -> Any:
        """A reference by names, to the own elements where this body is the first to have all of them."""
        if ref is None or isinstance(ref, Marker) or owner_of(m, ref) != body:
            return ref
        return OWN + ref if isinstance(ref, str) else tuple(OWN + name for name in ref)

    def added(a: Added) -> Added:
        if isinstance(a, Angle):
            return replace(a, of=mine(a.of), reference=mine(a.reference), towards=mine(a.towards))
        if isinstance(a, Elevation):
            return replace(a, of=mine(a.of), normal=mine(a.normal))
        return replace(a, a=mine(a.a), b=mine(a.b), along=mine(a.along))

    def strut(s: Any) -> Any:
        return s if isinstance(s.on, str | Combination) else replace(s, on=(mine(s.on[0]), mine(s.on[1])))

    owned = RigidBody(
        body,
        {OWN + p: at for p, at in b.points.items()},
        {OWN + v: along for v, along in b.vectors.items()},
        b.mass,
        b.centre,
        b.inertia,
    )
    return replace(
        m,
        points=(*m.points, *(replace(p, name=OWN + p.name, fixed=False) for p in m.points if p.name in b.points)),
        vectors=(*m.vectors, *(replace(v, name=OWN + v.name, fixed=False) for v in m.vectors if v.name in b.vectors)),
        bodies=tuple(owned if x is b else x for x in m.bodies),
        joints=tuple(replace(j, a=mine(j.a), b=mine(j.b)) for j in m.joints),
        added=tuple(added(a) for a in m.added),
        springs=tuple(strut(s) for s in m.springs),
        dampers=tuple(strut(s) for s in m.dampers),
        loads=tuple(replace(f, at=mine(f.at)) if isinstance(f, Force) else f for f in m.loads),
    )


def _wrench(
    system: NaturalSystem,
    split: NaturalSystem,
    elements: tuple[str, ...],
    about: Array,
    unknown: tuple[str, ...],
    owner: str,
    sign: float,
    moment: bool,
    across: tuple[Across, ...],
) -> Wrench:
    """`owner`: whose rows alone count; with none, the whole equilibrium."""
    m, there = system.mechanism, split.mechanism
    E, e = np.zeros((split.n, system.n)), np.zeros(split.n)
    fixed = {
        f"{x.name}.{axis}": value
        for x, at in (*((p, p.at) for p in m.points), *((v, v.along) for v in m.vectors))
        if x.fixed
        for axis, value in zip(AXES, at, strict=False)
    }
    for k, name in enumerate(there.coordinates):
        plain = name.removeprefix(OWN)
        if plain in fixed:
            e[k] = fixed[plain]
        else:
            E[k, m.index(plain)] = 1.0
    known = {name: k for k, name in enumerate(system.constraints.names)}
    rows = np.zeros((split.constraints.m, system.constraints.m))
    for k, (name, of) in enumerate(zip(split.constraints.names, split.constraints.owners, strict=True)):
        at = known.get(name.replace(OWN, ""))
        if at is not None and of == (owner or of):
            rows[k, at] = 1.0
    acting = np.zeros((split.n, len(unknown)))
    for k, name in enumerate(unknown):
        if name in split.forces.loads:
            acting[:, k] = split.forces.constant[:, split.forces.loads[name].start]
        else:
            element = name.rpartition(".")[0]
            first = next((b for b in there.bodies if OWN + element in b.elements or element in b.elements), None)
            mine = first is not None and OWN + element in first.elements
            acting[there.index(OWN + name if mine else name), k] = 1.0
    points = {p.name for p in m.points}
    parts = tuple(
        (
            np.array([there.index(f"{OWN}{name}.{a}") for a in AXES[: m.dimension]], dtype=np.intp),
            split.geometry.elements[OWN + name] - (about if name in points else 0.0),
            name in points,
        )
        for name in elements
    )
    return Wrench(split, E, e, rows, acting, parts, not owner, sign, moment, across)
