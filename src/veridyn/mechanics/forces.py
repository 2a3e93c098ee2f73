"""What elements do: the column of each, over scalars of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veridyn.mechanics.newton_euler import Outward, State, Wrench, carry, rigid_rows, squared_speed
from veridyn.model.elements import Element
from veridyn.model.tree import Tree
from veridyn.spatial.algebra import Algebra, Scalar, add, mul
from veridyn.spatial.linalg import Vec


def needs_velocity(tree: Tree) -> bool:
    """True when some element needs the velocities of bodies."""
    return any(e.kind == "drag" for e in tree.elements)


def element_rows(
    tree: Tree, e: Element, state: State, o: Outward, signals: Mapping[str, Scalar], algebra: Algebra
) -> dict[int, Scalar]:
    """The rows an element enters with unit parameter: row → value (5), (6), (31), (32)."""
    if e.on_body is not None:
        return _wrench_rows(tree, e, o)
    column = basis(tree, e, state, signals, algebra)
    first = len(tree.rows) - tree.n
    return {first + tree.coordinates.index(c): mul(a, column) for c, a in e.on.items()}


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


def basis(tree: Tree, e: Element, state: State, signals: Mapping[str, Scalar], algebra: Algebra) -> Scalar:
    """The column of an element that acts on coordinates, before its coefficients."""
    if e.kind == "spring":
        return combination(tree, e, state.q)
    if e.kind == "damper":
        return combination(tree, e, state.qd)
    if e.kind == "coulomb":
        return algebra.sign(combination(tree, e, state.qd))
    if e.kind in ("coulomb_forward", "coulomb_backward", "damper_forward", "damper_backward"):
        v = combination(tree, e, state.qd)
        s = algebra.sign(v)
        way = 1.0 if e.kind.endswith("forward") else -1.0
        return mul(0.5, mul(v if e.kind.startswith("damper") else s, add(1.0, mul(way, s))))  # 0 at standstill
    if e.kind == "stribeck":
        v = combination(tree, e, state.qd)
        x = mul(1.0 / e.speed, v)
        return algebra.sign(v) / add(1.0, mul(x, x))
    if e.kind == "inertia":
        return combination(tree, e, state.qdd)
    if e.kind == "drive_gain":
        return mul(-1.0, signals[e.signal])
    return 1.0  # offset


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
