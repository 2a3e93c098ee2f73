"""The damped search: minima of known functions, the reasons for which it ends, bounds, kinks and several starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.inference.residual_problem import ResidualPoint, ResidualProblem
from veridyn.inference.search import Damping, Minimum, StopRules, search, search_from_each

CLOSE = StopRules(iterations=200, tolerance=1e-9)


def start(problem: ResidualProblem, x: Array) -> ResidualPoint:
    point = problem.at(x)
    assert point is not None
    return point


def found(problem: ResidualProblem, x: Array, stop: StopRules = CLOSE) -> Minimum[ResidualPoint]:
    return search(start(problem, x), stop, Damping(), where="test", hint="Try another start.")


def rosenbrock(x: Array) -> Array:
    """Zero at (1, 1), along a bent valley."""
    return np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


def test_a_bent_valley() -> None:
    """Undamped steps of Gauss and Newton leave it by far; the minimum is (1, 1)."""
    end = found(ResidualProblem(residuals=rosenbrock), np.array([-1.2, 1.0]))
    assert end.reason == "short step" and end.converged and end.beyond == 0.0
    assert end.point.x == pytest.approx([1.0, 1.0], abs=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_those_of_non_negative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(12, 5)), rng.normal(size=12)
    end = found(ResidualProblem(residuals=lambda x: A @ x - b, low=0.0), np.ones(5))
    assert end.point.x == pytest.approx(nnls(A, b)[0], abs=1e-6) and (end.point.x >= 0.0).all()


def test_a_sum_that_is_limited() -> None:
    """The nearest point of x + y ≤ 1 to (1, 1) is (½, ½)."""
    limit = (-np.ones((1, 2)), np.ones(1))
    end = found(ResidualProblem(residuals=lambda x: x - 1.0, inequalities=limit), np.zeros(2))
    assert end.point.x == pytest.approx([0.5, 0.5], abs=1e-9)


def kinked(x: Array) -> Array:
    """|x| at zero keeps a slope of ±1 on either side, and the second residual wants x = 1: the least is at the kink of 3|x| at 0."""
    return np.array([3.0 * np.abs(x[0]) + 1.0, x[0] - 1.0])


def test_a_minimum_that_is_a_kink() -> None:
    """No step from it reduces the cost though the model of one side would go on; without the rule it is an error that names the place."""
    problem = ResidualProblem(
        residuals=kinked, jacobian=lambda x: np.array([[3.0 if x[0] > 0.0 else -3.0], [1.0]]), low=-1.0
    )
    end = found(problem, np.array([0.7]), replace(CLOSE, kink=1.0))
    assert end.reason == "kink" and 0.0 < end.beyond <= 1.0
    assert end.point.x == pytest.approx([0.0], abs=1e-6)
    with pytest.raises(IdentificationError) as error:
        found(problem, np.array([0.7]))
    assert error.value.faults[0].where == "test" and "Try another start." in error.value.faults[0].hint


def test_small_decreases_end_it() -> None:
    """Within `near` of the minimum of the model at once, after `patience` of them otherwise."""
    problem = ResidualProblem(residuals=rosenbrock)
    loose = StopRules(iterations=200, decrease=100.0)
    assert found(problem, np.array([-1.2, 1.0]), replace(loose, near=np.inf)).iterations == 1
    assert found(problem, np.array([-1.2, 1.0]), replace(loose, near_step=np.inf)).iterations == 1
    end = found(problem, np.array([-1.2, 1.0]), replace(loose, patience=3))
    assert end.iterations == 3 and end.reason == "small decrease" and end.converged


def test_so_many_steps_and_no_more() -> None:
    end = found(ResidualProblem(residuals=rosenbrock), np.array([-1.2, 1.0]), replace(CLOSE, steps=2))
    assert end.iterations == 2 and end.reason == "number of steps" and not end.converged


@pytest.mark.parametrize("limit", [{"iterations": 2}, {"trials": 3}])
def test_a_search_that_does_not_converge_is_an_error(limit: dict[str, int]) -> None:
    """It says where, how far it is from the end, and what to try."""
    with pytest.raises(IdentificationError) as error:
        found(ResidualProblem(residuals=rosenbrock), np.array([-1.2, 1.0]), replace(CLOSE, **limit))
    (fault,) = error.value.faults
    assert fault.where == "test" and "1e-09" in fault.expected and "next step" in fault.found
    assert "iterations" in fault.hint and "another start" in fault.hint


def test_where_nothing_can_be_evaluated_steps_get_shorter() -> None:
    """√x is none below zero, where the first steps would lead."""
    problem = ResidualProblem(
        residuals=lambda x: np.sqrt(x) - 0.1 if x[0] >= 0.0 else np.full(1, np.nan),
        jacobian=lambda x: 0.5 / np.sqrt(x)[:, None],
    )
    assert found(problem, np.array([4.0])).point.x == pytest.approx([0.01], rel=1e-6)


def test_the_least_of_several_minima() -> None:
    """(x² − 1)² + 0.1 x has minima near −1 and 1, and the left one is the lower; a start without an end is left out."""

    def residuals(x: Array) -> Array:
        return np.array([x[0] ** 2 - 1.0, 0.1 * (x[0] + 2.0)])

    problem = ResidualProblem(residuals=residuals)
    starts = [start(problem, np.array([x])) for x in (1.5, -1.5)]
    stop = replace(CLOSE, tolerance=1e-7)
    assert search(starts[0], stop, Damping(), where="", hint="").point.x[0] == pytest.approx(1.0, abs=0.1)
    assert search_from_each(starts, stop, Damping(), where="", hint="").point.x[0] == pytest.approx(-1.0, abs=0.1)
    with pytest.raises(IdentificationError):
        search_from_each(starts, replace(stop, iterations=1), Damping(), where="here", hint="")


def test_progress_is_told() -> None:
    told: list[tuple[str, float, float | None]] = []
    search(
        start(ResidualProblem(residuals=rosenbrock), np.array([-1.2, 1.0])),
        CLOSE,
        Damping(),
        where="",
        hint="",
        task="valley",
        progress=lambda *a: told.append(a),
    )
    assert told[0] == ("valley", 0.0, 200.0) and told == sorted(told)


def test_damping_is_raised_and_lowered_within_its_limits() -> None:
    damping = Damping(least=1e-4, first=0.0)
    assert damping.raised(1e-2) == pytest.approx(0.1) and damping.lowered(5e-4) == 1e-4
    off = Damping()
    assert off.raised(0.0) == 1e-3 and off.lowered(1e-3) == 0.0 and off.lowered(1e-2) == pytest.approx(1e-3)
