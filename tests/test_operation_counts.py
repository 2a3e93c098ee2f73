"""Operations of the cars of paper 000, mixed Newton-Euler form against Lagrange's with six virtual joints: run with -s for the table.

The counts to compare with were made with another generator that folds zeros, ones and shared subexpressions; absolute counts depend on such
rules, so ten percent are allowed. Of the regressor D_S the mixed form saves what the paper calls about 30 %; of inverse dynamics with
contact wrenches it saves the same 72 operations each time. Both are multiplications plus additions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from strangers.cars import car_20, car_38
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import all_rows
from veridyn.mechanics.tree.recursion.inputs import Request, minus_gravity
from veridyn.mechanics.tree.recursion.newton_euler import State, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.symbolic.expression import Count, Graph, Number, count

ALLOWED = 1.10
CARS: dict[str, Callable[[], Tree]] = {"38 dof": lambda: tree_of(car_38()), "20 dof": lambda: tree_of(car_20())}
MODELS = ("5 bodies x 10", "M-only unsprung")

# (quantity, car, model): operations of the mixed and of Lagrange's form.
EXPECTED = {
    ("regressor", "38 dof", MODELS[0]): (1518, 2337),
    ("regressor", "38 dof", MODELS[1]): (342, 621),
    ("regressor", "20 dof", MODELS[0]): (420, 1019),
    ("regressor", "20 dof", MODELS[1]): (148, 427),
    ("inverse", "38 dof", MODELS[0]): (1122, 1194),
    ("inverse", "38 dof", MODELS[1]): (546, 618),
    ("inverse", "20 dof", MODELS[0]): (654, 726),
    ("inverse", "20 dof", MODELS[1]): (288, 360),
}


def regressor_count(tree: Tree, model: str) -> Count:
    """All rows; the columns of the chassis and of the unsprung bodies, ten each or their masses only."""
    columns = [c for c, (j, k) in enumerate(tree.columns) if model == MODELS[0] or j == tree.columns[0][0] or k == 9]
    f = formula(tree, Request("regressor", tuple(range(len(tree.rows))), tuple(columns)))
    return count(f.graph, f.outputs)


def inverse_count(tree: Tree, model: str) -> Count:
    """The recursion on symbols, a contact wrench on each unsprung body; parameters are symbols, those a model leaves out are zero."""
    g = Graph()

    def vector(name: str) -> tuple[Number, Number, Number]:
        return (g.input(name + "x"), g.input(name + "y"), g.input(name + "z"))

    q, qd, qdd = ([g.input(f"{s}{k}") for k in range(tree.n)] for s in ("q", "qd", "qdd"))
    if tree.base == "free":
        state = State(q, qd, qdd, vector("w"), vector("wd"), vector("vd"))
    else:
        state = State(q, qd, qdd, vd=minus_gravity(tree))
    chassis, *unsprung = (j for j, b in enumerate(tree.bodies) if b.real)
    X: dict[int, list[Number]] = {j: [g.input(f"X{j}.{k}") for k in range(10)] for j in (chassis, *unsprung)}
    if model == MODELS[1]:
        X |= {j: [0.0] * 9 + X[j][9:] for j in unsprung}
    acting = {j: (vector(f"f{j}"), vector(f"m{j}")) for j in unsprung}
    return count(g, all_rows(tree, state, outward(tree, state, g), X, [], acting, {}, g))


COUNTS = {"regressor": regressor_count, "inverse": inverse_count}


@cache
def counted(quantity: str, car: str, model: str) -> tuple[Count, Count]:
    mixed = tree_of(CARS[car]())
    return COUNTS[quantity](mixed, model), COUNTS[quantity](on_six_joints(mixed), model)


def saving(mixed: float, lagrange: float) -> float:
    return 100.0 * (1.0 - mixed / lagrange)


@pytest.mark.parametrize("case", EXPECTED, ids=", ".join)
def test_no_more_operations_than_expected(case: tuple[str, str, str]) -> None:
    for found, expected in zip(counted(*case), EXPECTED[case], strict=True):
        assert found.total <= ALLOWED * expected
        assert found.divisions == 0


@pytest.mark.parametrize("case", EXPECTED, ids=", ".join)
def test_the_mixed_form_saves_what_it_should(case: tuple[str, str, str]) -> None:
    """Within two points of the percentage expected."""
    mixed, lagrange = counted(*case)
    assert abs(saving(mixed.total, lagrange.total) - saving(*EXPECTED[case])) < 2.0


@pytest.mark.parametrize("car", CARS)
@pytest.mark.parametrize("model", MODELS)
def test_inverse_dynamics_saves_the_virtual_base(car: str, model: str) -> None:
    """Six virtual joints cost the same whatever they carry: 72 operations, and the sine and cosine of three angles."""
    mixed, lagrange = counted("inverse", car, model)
    assert lagrange.total - mixed.total == 72
    assert lagrange.trigonometric - mixed.trigonometric == 6


def test_the_regressor_of_the_full_car_saves_a_third() -> None:
    mixed, lagrange = counted("regressor", "38 dof", MODELS[0])
    # "About 30 %"; rules of folding make ± 10 %.
    assert saving(mixed.total, lagrange.total) == pytest.approx(30.0, abs=10.0)


@pytest.mark.parametrize("car", CARS)
def test_sine_and_cosine_once_for_each_turning_joint(car: str) -> None:
    """Of joints that carry a body with inertia; the wheels of these models have none."""
    tree = tree_of(CARS[car]())
    real = {j for j, b in enumerate(tree.bodies) if b.real}
    turning = {i for j in real for i in tree.path(j) if tree.sigma[i] == 0}
    assert counted("regressor", car, MODELS[0])[0].trigonometric == 2 * len(turning)


def test_the_table() -> None:
    print(f"\n{'':<34}{'mixed':>22}{'Lagrange':>22}{'saves':>9}{'expected':>24}")
    for case, (a, b) in EXPECTED.items():
        mixed, lagrange = counted(*case)
        sums = [f"{c.multiplications} + {c.additions} = {c.total}" for c in (mixed, lagrange)]
        share = f"{saving(mixed.total, lagrange.total):.1f} %"
        print(f"{', '.join(case):<34}{sums[0]:>22}{sums[1]:>22}{share:>9}{f'{a} / {b}, {saving(a, b):.1f} %':>24}")
    assert set(EXPECTED) == {(quantity, car, model) for quantity in COUNTS for car in CARS for model in MODELS}
