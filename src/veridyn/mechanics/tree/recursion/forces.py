"""What elements do: the rows that the column of each enters, over scalars of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.laws import Acting, constant_of, law, rates
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench, carry, rigid_rows, squared_speed
from veridyn.mechanics.tree.recursion.struts import Strut, strut_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.machine import Machine
from veridyn.spatial.algebra import Algebra, Scalar, add, mul
from veridyn.spatial.linalg import ZERO, Vec, minus


def needs_velocity(machine: Machine | Tree) -> bool:
    """True when some element needs the velocities of bodies."""
    tree = tree_of(machine)
    return any(e.kind == "drag" or e.wheel is not None for e in tree.elements)


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
