"""The equations of motion over scalars of any kind: the mass matrix by composite bodies, and the columns, one for each parameter.

Each body with all it carries, rigid for the moment, is one composite body: the column of a coordinate in the mass matrix is what a unit
acceleration of it asks of the composite body, carried inwards by the same equations (11) to (17).

The rows are linear in the parameters, L = D φ (18, 20). A column of D is what the recursion gives for one unit parameter and zeros
elsewhere; constants fold, so only what the unit touches is computed, and only on the path from its body to the ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.forces import all_rows, element_rows
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
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import (
    ARRAYS,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    dot,
    is_zero,
    mul,
    plus,
    product,
    rotate,
    scaled,
    skew,
    transposed,
)
from veridyn.spatial.inertia import inertia_matrix

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
    machine: Machine, motion: Motion, wanted: Iterable[int]
) -> tuple[list[Scalar], Iterator[tuple[int, dict[int, Scalar]]]]:
    """By the recursion on arrays along a motion: the rows that its wrenches ask for, and :func:`columns` of the wanted parameters."""
    tree = tree_of(machine)
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, needs_velocity(tree))
    return rigid_rows(tree, o, {}, acting_of(tree, motion)), columns(tree, state, o, motion.signals, ARRAYS, wanted)


def structure(machine: Machine | Tree) -> tuple[tuple[int, ...], ...]:
    """For each row, the columns that can enter it: those of the bodies it carries and of its elements.

    The inertia J of a body asks for moments only, so it enters neither the force rows of a free base nor a sliding joint.
    """
    tree = tree_of(machine)
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
