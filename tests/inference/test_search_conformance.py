"""What every problem of the damped search passes: its minimum is that of scipy.optimize, its gradient that of finite differences, bounds
are kept, order and units of unknowns do not matter, and a search that does not converge says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize
from tests.identify.drives.mujoco_leg import KD, KP, leg, recorded

from identify.hanging_arm import SOFT, drawn, noisy, truth
from identify.test_constants import friction, measured
from observe.test_fitting import walk, walk_log
from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.constants import ConstantPoint, first_constants
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_search import DrivePoint, DriveProblem
from veridyn.identify.drives.drive_unknowns import drive_unknowns, with_drives
from veridyn.identify.output_error.log_runs import cut
from veridyn.identify.output_error.output_problem import OutputProblem
from veridyn.identify.output_error.output_search import OutputModel, OutputPoint
from veridyn.identify.output_error.shooting import Shooting
from veridyn.inference.quadratic import Quadratic
from veridyn.inference.residual_problem import ResidualProblem
from veridyn.inference.search import Damping, Minimum, StopRules, search
from veridyn.model.elements.element import Element, coulomb, damper
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.fitting import LikelihoodPoint, LikelihoodProblem

TIGHT = StopRules(iterations=100, tolerance=1e-5, slack=1e-12, kink=1e-3)
T = np.linspace(0.0, 3.0, 60)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem of so many `unknowns` where a search `start`s, in another order of them and, in that, in other `units`.

    `residuals` of x around a point: their squares are its cost; None where it has none. `step`: of differences, `away` from the start,
    which agree with derivatives to a relative `accurate`. `tolerance`: of a search, in deviations.
    """

    start: Callable[[Sequence[int] | None], Any]
    unknowns: int
    residuals: Callable[[Any], Callable[[Array], Array]] | None = None
    units: Array | float = 1.0
    step: float = 1e-5
    accurate: float = 1e-4
    away: float = 0.0
    tolerance: float = 1e-5


def decay(order: Sequence[int] | None) -> Any:
    """a e^(−k t) + c from noisy samples, with priors; c ≥ 0 would be negative."""
    own = list(order or range(3))
    y = 2.0 * np.exp(-1.5 * T) - 0.05 + 0.02 * np.random.default_rng(0).normal(size=len(T))
    mean, sigma = np.array([1.5, 1.0, 0.1]), np.array([1.0, 1.0, 0.3])

    def residuals(p: Array) -> Array:
        x = np.empty(3)
        x[own] = p
        return (x[0] * np.exp(-x[1] * T) + x[2] - y) / 0.02

    low = np.array([-np.inf, 0.0, 0.0])
    return ResidualProblem(residuals=residuals, mean=mean[own], sigma=sigma[own], low=low[own]).at(mean[own])


def residuals_of_decay(point: Any) -> Callable[[Array], Array]:
    own = point.problem
    return lambda x: np.concatenate([own.residuals(x), (x - own.mean) / own.sigma])


@cache
def leg_group() -> tuple[Any, Any]:
    with TemporaryDirectory() as folder:
        machine = with_drives(leg(Path(folder)), KP, KD, 1000.0)
    return machine, tuple(drive_records(machine, recorded(1.5)))


def drives(order: Sequence[int] | None) -> DrivePoint:
    """A leg with two joints, whose true delay of measurements is zero: its bound."""
    machine, records = leg_group()
    keys = ("armature", "viscous", "coulomb", "kp", "measurement_delay")
    unknowns = drive_unknowns(machine, machine.coordinates, "leg", keys)
    unknowns = tuple(unknowns[k] for k in order or range(len(unknowns)))
    group = DriveGroup(machine, machine.coordinates, unknowns)
    problem = DriveProblem(
        group=group, records=records, active=tuple(range(len(unknowns))), weights=np.full(2, 1.0 / 5e-3)
    )
    z = np.zeros(len(unknowns))
    return DrivePoint(problem, z, problem.cost(z))


def residuals_of_drives(point: Any) -> Callable[[Array], Array]:
    return lambda z: np.concatenate([(point.problem.raw(z) * point.problem.weights).ravel(), z])


NAMES, OUTPUT_UNITS = ("ZZ2", "MX1", "MX2", "h_q1", "fs_q2"), np.array([1.0, 10.0, 0.1, 1.0, 3.0])


def output_error(order: Sequence[int] | None) -> OutputPoint:
    """Five parameters of an arm, in units of their own order, and the states of two runs."""
    machine, own = truth(), list(order or range(len(NAMES)))
    groups = cut(machine, [noisy(np.random.default_rng(0))[:100]], 0.5)
    sizes = np.ones(len(NAMES)) if order is None else OUTPUT_UNITS
    columns = [np.eye(len(machine.parameters))[machine.parameters.index(n)] for n in NAMES]
    spread = (np.stack(columns, axis=1) * sizes)[:, own]
    start = drawn().parameters.values
    problem = OutputProblem(
        shooting=Shooting(machine=machine, friction_speed=SOFT),
        free=4,
        groups=groups,
        values_of=lambda x: start + spread @ x,
        spread=spread,
    )
    initial = [g.initial for g in groups]
    sigma, x = np.array([0.002, 0.003]), np.zeros(len(NAMES))
    residuals = problem.residuals(x, initial)
    assert residuals is not None
    cost = float(sum(np.sum((r / sigma) ** 2) for r in residuals))
    return OutputPoint(
        problem=problem, parameters=x, initial=initial, residuals=residuals, given=sigma, sigma=sigma, cost=cost
    )


def residuals_of_output_error(point: Any) -> Callable[[Array], Array]:
    def residuals(x: Array) -> Array:
        there = point.at(x)
        return np.concatenate([(r / point.sigma).ravel() for r in there.residuals])

    return residuals


@cache
def curved() -> Any:
    machine, motion = measured(0, lambda q, qd: friction(qd))
    curve = Element(kind="stribeck", on={"q1": 1.0}, constants={"speed": 0.2, "exponent": 1.7})
    return machine.with_elements([coulomb("q1"), damper("q1"), curve]), motion


def constants(order: Sequence[int] | None) -> ConstantPoint:
    """Speed and exponent of a Stribeck curve, all else linear."""
    names = ["fst_q1.speed", "fst_q1.exponent"]
    return first_constants(*curved(), [names[k] for k in order or range(2)])


def likelihood(order: Sequence[int] | None) -> LikelihoodPoint:
    """Logarithms of the two variances of a walk that is measured, with priors of their own size."""
    own, (log, start) = list(order or range(2)), walk_log(np.random.default_rng(1), 60, 0.02, 0.5)
    mean = np.log([0.03, 0.4])

    def terms(z: Array) -> Array:
        q, r = np.exp(mean + z[np.argsort(own)])
        return run(EKF(gate=None), walk({"q": q, "r": r}), log, start).log_likelihood

    point = LikelihoodProblem(terms, np.full(2, -5.0), np.full(2, 5.0)).at(np.zeros(2))
    assert point is not None
    return point


CASES = {
    "function": Case(start=decay, unknowns=3, residuals=residuals_of_decay),
    # Differences lie within the bounds.
    "drives": Case(start=drives, unknowns=9, residuals=residuals_of_drives, away=0.1),
    "output error": Case(start=output_error, unknowns=5, residuals=residuals_of_output_error, units=OUTPUT_UNITS),
    "constants": Case(start=constants, unknowns=2),
    # Its own slopes are one-sided differences over 1e-4 of a deviation.
    "likelihood": Case(start=likelihood, unknowns=2, step=1e-3, accurate=1e-3, tolerance=1e-2),
}
CASE = pytest.mark.parametrize("name", CASES)


@cache
def minimum(name: str) -> Minimum[Any]:
    return searched(name, None)


def searched(name: str, order: Sequence[int] | None) -> Minimum[Any]:
    case = CASES[name]
    return search(case.start(order), replace(TIGHT, tolerance=case.tolerance), Damping(), where=name, hint="")


@CASE
def test_the_minimum_is_that_of_scipy(name: str) -> None:
    """From the same start, within the same bounds and with the same weights: by less than a hundredth of a deviation, and no higher."""
    case, end = CASES[name], minimum(name)
    assert end.converged
    model, point = end.point.model(), end.point
    low, high = (getattr(model, key, end * np.inf) for key, end in (("low", -1.0), ("high", 1.0)))
    x = case.start(None).x
    if case.residuals is not None:
        reference = least_squares(
            case.residuals(point), x, bounds=(low, high), x_scale="jac", ftol=1e-14, xtol=1e-12, gtol=1e-14
        ).x
    else:
        reference = minimize(
            lambda v: point.at(v).cost, x, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
        ).x
    assert model.length(reference - point.x) < 0.01 + 2.0 * case.tolerance
    assert point.cost <= point.at(reference).cost + 1e-3


@CASE
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    case = CASES[name]
    start = case.start(None)
    point = start.at(start.x + case.away)
    scale = np.full(len(point.x), case.step) * np.maximum(np.abs(point.x), 1.0)
    slope = np.array(
        [(point.at(point.x + h).cost - point.at(point.x - h).cost) / (4.0 * h.sum()) for h in np.diag(scale)]
    )
    found = gradient(point)
    assert found == pytest.approx(slope, rel=case.accurate, abs=case.accurate * float(np.abs(slope).max()))


def gradient(point: Any) -> Array:
    """Half of that of the cost by all unknowns; of output error from the triangles of its runs."""
    model = point.model()
    if isinstance(model, Quadratic):
        return model.gradient
    assert isinstance(model, OutputModel)
    p, free = len(point.parameters), point.problem.free
    own, states = np.zeros(p), []
    for T in model.factors:
        g = -np.einsum("rki,rk->ri", T[:, :, :-1], T[:, :, -1])
        own += g[:, free:].sum(axis=0)
        states.append(g[:, :free].ravel())
    return np.concatenate([own, *states])


@CASE
def test_order_and_units_of_unknowns_do_not_matter(name: str) -> None:
    case, end = CASES[name], minimum(name)
    order = np.random.default_rng(0).permutation(case.unknowns).tolist()
    other = searched(name, order)
    x = end.point.x.copy()
    x[order] = other.point.x[: case.unknowns]
    x[: case.unknowns] *= case.units
    x[case.unknowns :] = other.point.x[case.unknowns :]
    assert end.point.model().length(x - end.point.x) < 100.0 * case.tolerance


@pytest.mark.parametrize(("name", "on_bound"), [("function", 2), ("drives", 8)])
def test_bounds_are_kept_and_reached(name: str, on_bound: int) -> None:
    """An offset that data would have negative; a delay of measurements that is zero."""
    end = minimum(name)
    low = end.point.model().low
    assert (end.point.x >= low).all() and end.point.x[on_bound] == low[on_bound]


@CASE
def test_a_search_that_does_not_converge_is_an_error(name: str) -> None:
    """It names the place, the step that is left, and that more iterations may help; with a number of steps it is told instead."""
    start, never = CASES[name].start(None), replace(TIGHT, iterations=1)
    with pytest.raises(IdentificationError) as error:
        search(start, never, Damping(), where=name, hint="Look again.")
    (fault,) = error.value.faults
    assert fault.where == name and "next step" in fault.found and "iterations" in fault.hint
    assert not search(start, replace(TIGHT, steps=1), Damping(), where=name, hint="").converged


@dataclass(frozen=True, eq=False)
class Kinked:
    """A problem whose cost has `weight` |x₀ − place| more, as dry friction makes that just stops a joint, or just does not."""

    point: Any
    place: float
    weight: float
    settled: bool = True

    @property
    def x(self) -> Array:
        return self.point.x

    @property
    def cost(self) -> float:
        return self.point.cost + self.weight * abs(self.x[0] - self.place)

    def at(self, x: Array) -> Kinked | None:
        there = self.point.at(x)
        return None if there is None else replace(self, point=there)

    def renewed(self) -> Kinked:
        return self

    def model(self) -> Quadratic:
        """Of the side that it is on."""
        model = self.point.model()
        slope = np.zeros(len(self.x))
        slope[0] = 0.5 * self.weight * (1.0 if self.x[0] > self.place else -1.0)
        return replace(model, gradient=model.gradient + slope)


@pytest.mark.parametrize("name", ["function", "drives", "constants", "likelihood"])
def test_a_minimum_may_be_a_kink(name: str) -> None:
    """Half a deviation beside the smooth minimum, and steep enough to hold it: the search ends there, and says how far its model would go
    on. Without the rule that is an error."""
    end = minimum(name)
    model = end.point.model()
    place = float(end.point.x[0] + 0.5 / np.sqrt(model.hessian[0, 0]))
    start = CASES[name].start(None)
    kinked = Kinked(start, place, 10.0 * float(np.sqrt(model.hessian[0, 0])))
    found = search(kinked, replace(TIGHT, kink=np.inf), Damping(), where=name, hint="")
    assert found.reason == "kink" and found.beyond > 0.0
    assert found.point.x[0] == pytest.approx(place, abs=0.01 / np.sqrt(model.hessian[0, 0]))
    with pytest.raises(IdentificationError) as error:
        search(kinked, replace(TIGHT, kink=0.0), Damping(), where=name, hint="")
    assert error.value.faults[0].where == name
