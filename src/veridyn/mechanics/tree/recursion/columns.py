"""The columns of the equations of motion, one for each parameter, from the same recursion as inverse dynamics.

The rows are linear in the parameters, L = D φ (18, 20). A column is what the recursion gives for one unit parameter and zeros
elsewhere; constants fold, so only what the unit touches is computed, and only on the path from its body to the ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.forces import element_rows
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, body_wrench, carry
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.spatial.algebra import Algebra, Scalar, is_zero

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
