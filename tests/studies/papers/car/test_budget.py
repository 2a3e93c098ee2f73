"""The budget against experiments: a zero that is really off, a carrier that is really not a point."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.identify.estimate import identify
from veridyn.identify.estimators.coloured import Hac
from veridyn.identify.result import Fit
from veridyn.machines.car import TEN_ROWS, car_38
from veridyn.machines.car_paths import informed
from veridyn.machines.car_record import CarKinematics
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.model.motion import BaseMotion, Motion
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import speed_variation
from veridyn.simulate.vehicle.run import VehicleRun, drive, to_motion
from veridyn.studies.papers.car import budget as car_budget
from veridyn.studies.papers.car.bent import Bent, bent
from veridyn.studies.papers.car.budget import Budget, budget, remembered, weighted
from veridyn.studies.papers.car.models import corrected, thirty_three, with_unsprung

TREE = thirty_three(car_38())
HOW = corrected(TREE)
NONE = dict.fromkeys(("gyro", "accelerometer", "clearance", "speed", "steering", "force", "moment"), 0.0)


def driven(vehicle: Vehicle) -> VehicleRun:
    road = rough_road("C", np.random.default_rng(0), length=600.0, track=1.5)
    return drive(vehicle, speed_variation(), road, 10.0, every=2)


def known(r: VehicleRun) -> Motion:
    return informed(to_motion(r, TREE), TREE, CarKinematics.of(r.vehicle), r.vehicle.aerodynamics)


@cache
def points() -> tuple[Motion, Fit]:
    """A car of straight springs whose carriers are points, identified."""
    car = Vehicle()
    simple = car.simplified()
    m = known(driven(replace(car, carriers=simple.carriers, suspension=simple.suspension, driveline=simple.driveline)))
    return m, fit_of(m)


def fit_of(m: Motion) -> Fit:
    sigma = dict.fromkeys(TEN_ROWS, 10.0)
    return identify(TREE, m, rows=TEN_ROWS, sampling=HOW, sigma=sigma)


@cache
def curved() -> Bent:
    m, _ = points()
    return bent(TREE, [m], m, TEN_ROWS, HOW)


def parts(zeros: dict[str, float]) -> Budget:
    m, fit = points()
    return budget(fit, with_unsprung(car_38()), [m], HOW, NONE | zeros, curved())


def moved(m: Motion) -> np.ndarray:
    return fit_of(m).values - points()[1].values


def test_a_zero_does_what_the_budget_says() -> None:
    """One instrument at a time, refitted with its zero off: root sum of squares over instruments of a kind; 15 %, as filters are left "
    "out."""
    m, fit = points()
    assert m.base is not None
    size = 0.01
    found = []
    for k in range(3):
        a = m.base.acceleration + size * np.eye(3)[k]
        base = BaseMotion(m.base.omega, m.base.omega_dot, a, m.base.velocity)
        found.append(moved(replace(m, base=base)))
    actual = np.sqrt(np.sum(np.square(found), axis=0))
    stated = parts({"accelerometer": size}).zeros
    large = [fit.names.index(n) for n in ("M_c", "MX_c", "MY_c", "M1", "M3", "off_1", "zero_fx")]
    assert stated[large] == pytest.approx(actual[large], rel=0.15)


def test_force_zeros() -> None:
    m, fit = points()
    found = []
    for body in ("unsprung1", "unsprung2", "unsprung3", "unsprung4"):
        for k in range(3):
            w = m.wrenches[body].copy()
            w[:, k] += 5.0
            found.append(moved(replace(m, wrenches={**m.wrenches, body: w})))
    actual = np.sqrt(np.sum(np.square(found), axis=0))
    stated = parts({"force": 5.0}).zeros
    large = [fit.names.index(n) for n in ("M_c", "MX_c", "MY_c", "off_2", "zero_fx", "ZZ_c")]
    assert stated[large] == pytest.approx(actual[large], rel=0.05)


def test_what_is_left_out_does_what_the_budget_says() -> None:
    """A carrier with its centre off the wheel's, in the simulator, against the change that the columns left out predict."""
    car = Vehicle()
    simple = car.simplified()
    real = replace(car, suspension=simple.suspension, driveline=simple.driveline)
    change = fit_of(known(driven(real))).values - points()[1].values
    m, fit = points()
    equations = weighted(fit, with_unsprung(car_38()), [m], HOW)
    answer = dict(zip(equations.more_names, equations.moved(equations.more).T, strict=True))
    predicted = np.zeros(len(fit.values))
    for i in range(4):
        ten = dict(
            zip(
                ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"),
                real.carriers[i // 2].ten(bool(i % 2)),
                strict=True,
            )
        )
        predicted += sum(ten[s] * answer[f"{s}{i + 1}"] for s in car_budget.LEFT_OUT)
    for name in ("XX_c", "MZ_c", "XZ_c", "M_c", "M1", "M3"):
        k = fit.names.index(name)
        assert change[k] == pytest.approx(predicted[k], rel=0.1, abs=0.02 * abs(predicted[fit.names.index("XX_c")])), (
            name
        )
    stated = parts({}).left_out
    assert all(
        abs(change[fit.names.index(n)]) < 2.0 * stated[fit.names.index(n)] for n in ("XX_c", "MZ_c", "M_c", "MX_c")
    )


def test_bends_and_sums() -> None:
    m, fit = points()
    value = float(fit.values[fit.names.index("k_1")])
    other = replace(curved(), secants={"k_1": value + 100.0})
    found = budget(fit, with_unsprung(car_38()), [m], HOW, NONE, other)
    assert (
        found.bend[fit.names.index("k_1")] == pytest.approx(100.0 / np.sqrt(3.0))
        and found.bend[fit.names.index("M_c")] == 0.0
    )
    squares = found.noise**2 + found.zeros**2 + found.left_out**2 + found.bend**2
    assert found.total == pytest.approx(np.sqrt(squares)) and not found.zeros.any()


def test_noise_with_and_without_memory() -> None:
    """Against the streamed sandwich of the same residuals, which gives back what the fit took out of windows; white noise alike."""
    m, _ = points()
    rng = np.random.default_rng(0)
    noisy = replace(m, wrenches={b: w + rng.normal(0.0, 20.0, w.shape) for b, w in m.wrenches.items()})
    fit = identify(TREE, noisy, rows=TEN_ROWS, sampling=HOW, covariance=Hac(0))
    equations = weighted(fit, TREE, [noisy], HOW)
    assert remembered(equations, equations, 0) == pytest.approx(fit.sigma, rel=0.02)  # but for degrees of freedom
    longer = identify(TREE, noisy, rows=TEN_ROWS, sampling=HOW, covariance=Hac(40))
    ratio = remembered(equations, equations, 40) / longer.sigma
    assert ((ratio > 0.7) & (ratio < 1.05)).all()
