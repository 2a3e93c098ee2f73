"""What elements do: the rows that the column of each enters, over scalars of any kind.

An element between two places acts along their distance ℓ. With r the way from one place to the other, in the frame of the last body that
carries both, ℓ² = r·r and ∂ℓ/∂q_k = r·(∂r/∂q_k)/ℓ. Joints that carry both places, and the motion of a free base, do not change ℓ, so they
do not occur here; ℓ̇ = Σ (∂ℓ/∂q_k) q̇_k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.laws import Acting, constant_of, law, rates
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench, carry, rigid_rows, squared_speed
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, Marker
from veridyn.model.elements.kinds import KINDS
from veridyn.model.machine import Machine
from veridyn.spatial.algebra import (
    IDENTITY,
    ZERO,
    Algebra,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    minus,
    mul,
    plus,
    product,
    rotate,
    scaled,
)


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
    machine: Machine | Tree,
    e: Element,
    state: State,
    signals: Mapping[str, Scalar],
    algebra: Algebra,
    strut: Strut | None = None,
) -> Acting:
    """What the law of an element is a function of: its combination of coordinates, or the distance of its two places."""
    tree = tree_of(machine)
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
