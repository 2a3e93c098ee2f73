"""The equations of motion over scalars of any kind: what elements do, the mass matrix, and the columns, one for each parameter.

An element between two places acts along their distance ℓ. With r the way from one place to the other, in the frame of the last body that
carries both, ℓ² = r·r and ∂ℓ/∂q_k = r·(∂r/∂q_k)/ℓ. Joints that carry both places, and the motion of a free base, do not change ℓ, so they
do not occur here; ℓ̇ = Σ (∂ℓ/∂q_k) q̇_k.

Each body with all it carries, rigid for the moment, is one composite body: the column of a coordinate in the mass matrix is what a unit
acceleration of it asks of the composite body, carried inwards by the same equations (11) to (17).

The rows are linear in the parameters, L = D φ (18, 20). A column of D is what the recursion gives for one unit parameter and zeros
elsewhere; constants fold, so only what the unit touches is computed, and only on the path from its body to the ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.laws import Acting, constant_of, law, rates
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import acting_of, needs_velocity, state_of
from veridyn.mechanics.tree.recursion.newton_euler import (
    Outward,
    State,
    Wrench,
    body_wrench,
    carry,
    joint_forces,
    outward,
    rigid_rows,
    squared_speed,
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker
from veridyn.model.elements.kinds import KINDS
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import (
    ARRAYS,
    IDENTITY,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    is_zero,
    minus,
    mul,
    plus,
    product,
    rotate,
    scaled,
    skew,
    transposed,
)
from veridyn.spatial.inertia import inertia_matrix


@dataclass(frozen=True, eq=False)
class Strut:
    """`square` is ℓ², `slopes` are r·∂r/∂q_k = ½ ∂ℓ²/∂q_k by number of the coordinate; both are regular where ℓ is zero."""

    square: Scalar
    slopes: dict[int, Scalar]
    algebra: Algebra

    @cached_property
    def length(self) -> Scalar:
        """ℓ."""
        return self.algebra.sqrt(self.square)

    def rate(self, qd: Sequence[Scalar]) -> Scalar:
        """ℓ̇."""
        total: Scalar = 0.0
        for k, slope in self.slopes.items():
            total = add(total, mul(slope, qd[k]))
        return total / self.length


def strut_of(tree: Tree, between: tuple[Marker, Marker], o: Outward, algebra: Algebra) -> Strut:
    """The distance of two places from the poses of an outward pass."""
    a, b = (_end(tree, o, way, at) for way, at in zip(tree.ways(between), between, strict=True))
    r = minus(b[0], a[0])
    ways = dict(b[1])
    for k, way in a[1].items():
        ways[k] = minus(ways.get(k, ZERO), way)
    return Strut(dot(r, r), {k: dot(r, way) for k, way in ways.items()}, algebra)


def _end(tree: Tree, o: Outward, way: tuple[int, ...], at: Marker) -> tuple[Vec, dict[int, Vec]]:
    """A place in the frame of what carries the bodies of `way` (its own first), and its slopes by number of the coordinate."""
    A, P = IDENTITY, ZERO
    joints: list[tuple[int, Vec, Vec]] = []
    for j in reversed(way):
        A, P = product(A, o.A[j]), plus(P, rotate(A, o.P[j]))
        if tree.coordinate[j] >= 0:
            joints.append((j, (A[0][2], A[1][2], A[2][2]), P))
    x, y, z = at.at
    place = plus(P, rotate(A, (float(x), float(y), float(z))))
    slopes: dict[int, Vec] = {}
    for j, axis, origin in joints:
        k, ratio = tree.coordinate[j], tree.bodies[j].ratio
        moved = cross(axis, minus(place, origin)) if tree.sigma[j] == 0 else axis
        slopes[k] = plus(slopes.get(k, ZERO), scaled(ratio, moved))
    return place, slopes


def element_rows(
    tree: Tree, e: Element, state: State, o: Outward, signals: Mapping[str, Scalar], algebra: Algebra
) -> dict[int, Scalar]:
    """The rows an element enters with unit parameter: row → value (5), (6), (31), (32); between two places law · ∂ℓ/∂q."""
    if e.wheel is not None:
        tyre = tyre_of(tree, e, state, o, signals, algebra)
        force, moment = tyre.wrench()
        return carry(tree, o, tree.index(e.wheel.body), (minus(ZERO, force), minus(ZERO, moment)))
    if e.on_body is not None:
        return _wrench_rows(tree, e, o)
    first = len(tree.rows) - tree.n
    if e.between is None:
        column = law(e, acting(tree, e, state, signals, algebra))
        return {first + tree.coordinates.index(c): mul(a, column) for c, a in e.on.items()}
    strut = strut_of(tree, e.between, o, algebra)
    if e.kind == "spring" and "rest" not in e.constants:
        return {first + k: slope for k, slope in strut.slopes.items()}  # ℓ ∂ℓ/∂q, also where ℓ is zero
    column = law(e, acting(tree, e, state, signals, algebra, strut))
    return {first + k: mul(column, slope) / strut.length for k, slope in strut.slopes.items()}


def acting(
    tree: Tree,
    e: Element,
    state: State,
    signals: Mapping[str, Scalar],
    algebra: Algebra,
    strut: Strut | None = None,
) -> Acting:
    """What the law of an element is a function of: its combination of coordinates, or the distance of its two places."""
    return Acting(
        position=lambda: combination(tree, e, state.q) if strut is None else strut.length,
        rate=lambda: combination(tree, e, state.qd) if strut is None else strut.rate(state.qd),
        acceleration=lambda: combination(tree, e, state.qdd),
        constant=lambda key: constant_of(tree, e, key, algebra),
        state=lambda key: signals[f"{e.parameter_name}.{key}"],
        coordinate=lambda name: state.q[tree.coordinates.index(name)],
        speed=lambda name: state.qd[tree.coordinates.index(name)],
        signals=signals,
        algebra=algebra,
    )


def state_rates(tree: Tree, state: State, o: Outward, signals: Mapping[str, Scalar], algebra: Algebra) -> list[Scalar]:
    """The rates of the states that elements have of their own, in the order of ``tree.states``; `signals` holds the states too."""
    found: dict[str, Scalar] = {}
    for e in tree.elements:
        if KINDS[e.kind].states:
            if e.wheel is not None:
                made = tyre_of(tree, e, state, o, signals, algebra).slip_rates()
                found |= {f"{e.parameter_name}.{key}": rate for key, rate in made.items()}
                continue
            strut = None if e.between is None else strut_of(tree, e.between, o, algebra)
            made = rates(e, acting(tree, e, state, signals, algebra, strut))
            found |= {f"{e.parameter_name}.{key}": rate for key, rate in made.items()}
    return [found[s.name] for s in tree.states]


def all_rows(
    tree: Tree,
    state: State,
    o: Outward,
    X: Mapping[int, Sequence[Scalar]],
    gains: Sequence[Scalar],
    acting: Mapping[int, Wrench],
    signals: Mapping[str, Scalar],
    algebra: Algebra,
) -> list[Scalar]:
    """Γ, complete: bodies with parameters X, elements with parameters `gains`, wrenches acting on bodies (17)."""
    rows = rigid_rows(tree, o, X, acting)
    for e, gain in zip(tree.elements, gains, strict=True):
        for r, value in element_rows(tree, e, state, o, signals, algebra).items():
            rows[r] = add(rows[r], mul(gain, value))
    return rows


def combination(tree: Tree, e: Element, values: Sequence[Scalar]) -> Scalar:
    """c = Σ aᵢ qᵢ of an element, or of any rate in place of q."""
    c: Scalar = 0.0
    for name, a in e.on.items():
        c = add(c, mul(a, values[tree.coordinates.index(name)]))
    return c


def _wrench_rows(tree: Tree, e: Element, o: Outward) -> dict[int, Scalar]:
    """V², or 1 for an offset, as one component of a wrench the body exerts on its surroundings, carried inwards like any other."""
    target = e.on_body
    assert target is not None  # the tree was checked when it was built
    j, component = tree.index(target[0]), target[1]
    coefficient = next(iter(e.on.values()))
    six: list[Scalar] = [0.0] * 6
    six[component] = mul(coefficient, squared_speed(o.v[j])) if e.kind == "drag" else coefficient
    f: Vec = (six[0], six[1], six[2])
    m: Vec = (six[3], six[4], six[5])
    return carry(tree, o, j, (f, m))


Ten = tuple[Scalar, ...]
NOTHING: Ten = (0.0,) * 10


def moved_inertia(X: Ten, A: Mat, P: Vec) -> Ten:
    """Ten parameters of a body in its antecedent's frame, over scalars of any kind (see ``spatial.inertia.moved``)."""
    m, s = X[9], rotate(A, (X[6], X[7], X[8]))
    J = product(product(A, inertia_matrix(X)), transposed(A))
    h = plus(scaled(m, P), scaled(2.0, s))
    both = dot(P, h)  # m P·P + 2 P·s
    flat = [J[0][0], J[0][1], J[0][2], J[1][1], J[1][2], J[2][2]]
    for k, (a, b) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
        outer = add(mul(mul(m, P[a]), P[b]), add(mul(P[a], s[b]), mul(s[a], P[b])))
        flat[k] = add(flat[k], add(both if a == b else 0.0, mul(-1.0, outer)))
    ms = plus(scaled(m, P), s)
    return (*flat, *ms, m)


def composites(tree: Tree, o: Outward, X: Mapping[int, Sequence[Scalar]]) -> list[Ten]:
    """For each body, the parameters of itself and all it carries, in its frame."""
    total: list[Ten] = [tuple(X.get(j, NOTHING)) for j in range(len(tree.bodies))]
    for j in range(len(total) - 1, -1, -1):
        i = tree.antecedent[j]
        if i >= 0:
            moved = moved_inertia(total[j], o.A[j], o.P[j])
            total[i] = tuple(add(a, b) for a, b in zip(total[i], moved, strict=True))
    return total


def mass_entries(
    tree: Tree, o: Outward, X: Mapping[int, Sequence[Scalar]], gains: Sequence[Scalar]
) -> dict[tuple[int, int], Scalar]:
    """The upper and lower entries of the mass matrix: (row, row) → scalar; absent where zero by structure."""
    first = len(tree.rows) - tree.n
    entries: dict[tuple[int, int], Scalar] = {}

    def enter(a: int, b: int, value: Scalar) -> None:
        entries[a, b] = add(entries.get((a, b), 0.0), value)

    total = composites(tree, o, X)
    for j in range(len(tree.bodies)):
        k = tree.coordinate[j]
        if k < 0:
            continue
        unit = (0.0, 0.0, tree.bodies[j].ratio)
        turning = tree.sigma[j] == 0
        wrench = _accelerated(total[j], ZERO if turning else unit, unit if turning else ZERO)
        own = first + k
        # On the path inwards, the joint's own row comes once, every other one stands for itself and its mirror image.
        for at, (r, value) in enumerate(joint_forces(tree, o, j, wrench)):
            enter(r, own, value)
            if at > 0:
                enter(own, r, value)
    if tree.base == "free":
        for c in range(6):
            e = [float(c == i) for i in range(6)]
            f, m = _accelerated(total[0], (e[0], e[1], e[2]), (e[3], e[4], e[5]))
            for r, value in enumerate((*f, *m)):
                enter(r, c, value)
    for e, gain in zip(tree.elements, gains, strict=True):
        if e.kind == "inertia":
            on = [(first + tree.coordinates.index(c), a) for c, a in e.on.items()]
            for a, x in on:
                for b, y in on:
                    enter(a, b, mul(mul(x, y), gain))
    return entries


def _accelerated(X: Ten, vd: Vec, wd: Vec) -> Wrench:
    """(11) and (12) from rest."""
    return body_wrench(ZERO, wd, skew(wd), vd, X)


def equations_of_motion(
    tree: Tree,
    state: State,
    X: Mapping[int, Sequence[Scalar]],
    gains: Sequence[Scalar],
    acting: Mapping[int, Wrench],
    signals: Mapping[str, Scalar],
    algebra: Algebra,
) -> tuple[dict[tuple[int, int], Scalar], list[Scalar]]:
    """Mass entries, and the forces needed while nothing accelerates but by gravity: Γ = M a + bias."""
    still = [0.0] * tree.n
    rest = replace(state, qdd=still, wd=ZERO, vd=ZERO) if tree.base == "free" else replace(state, qdd=still)
    o = outward(tree, rest, algebra, needs_velocity(tree))
    bias = all_rows(tree, rest, o, X, gains, acting, signals, algebra)
    return mass_entries(tree, o, X, gains), bias


UNITS = tuple(tuple(float(k == i) for i in range(10)) for k in range(10))


def columns(
    tree: Tree,
    state: State,
    o: Outward,
    signals: Mapping[str, Scalar],
    algebra: Algebra,
    wanted: Iterable[int],
) -> Iterator[tuple[int, dict[int, Scalar]]]:
    """For each wanted parameter, the rows it enters: (column, row → scalar). Structural zeros are absent."""
    for c in wanted:
        j, k = tree.columns[c]
        if j < 0:
            entries = element_rows(tree, tree.elements[k], state, o, signals, algebra)
        else:
            wrench = body_wrench(o.w[j], o.wd[j], o.U[j], o.vd[j], UNITS[k])
            entries = carry(tree, o, j, wrench)
        yield c, {r: value for r, value in entries.items() if not is_zero(value)}


def motion_columns(
    machine: Machine | Tree, motion: Motion, wanted: Iterable[int]
) -> tuple[list[Scalar], Iterator[tuple[int, dict[int, Scalar]]]]:
    """By the recursion on arrays along a motion: the rows that its wrenches ask for, and :func:`columns` of the wanted parameters."""
    tree = tree_of(machine)
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, needs_velocity(tree))
    return rigid_rows(tree, o, {}, acting_of(tree, motion)), columns(tree, state, o, motion.signals, ARRAYS, wanted)


def structure(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """For each row, the columns that can enter it: those of the bodies it carries and of its elements.

    The inertia J of a body asks for moments only, so it enters neither the force rows of a free base nor a sliding joint.
    """
    touched: list[set[int]] = [set() for _ in tree.rows]
    first = len(tree.rows) - tree.n
    for c, (j, k) in enumerate(tree.columns):
        on = None if j >= 0 else tree.elements[k].on_body
        if j < 0 and on is None:
            for coordinate in tree.acts_on(tree.elements[k]):
                touched[first + coordinate].add(c)
            for r in range(first if tree.elements[k].wheel is not None else 0):
                touched[r].add(c)
            continue
        body, moment_only = (j, k < 6) if on is None else (tree.index(on[0]), on[1] >= 3)
        for i in tree.path(body):
            if tree.coordinate[i] >= 0 and not (moment_only and tree.sigma[i] == 1):
                touched[first + tree.coordinate[i]].add(c)
        for r in range(3 if moment_only else 0, first):
            touched[r].add(c)
    return tuple(tuple(sorted(row)) for row in touched)
