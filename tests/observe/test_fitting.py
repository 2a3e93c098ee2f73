"""Parameters by innovations: closed forms, a Monte Carlo of their deviations, bounds, and what data do not show."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.parameters import ParameterGuess
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.fitting import fit_parameters
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import Discrete


def constant(values):
    """A constant level, measured: with no process noise the fit is a weighted mean."""
    level = values["level"]
    one = np.eye(1)
    return Discrete(("x",), ("y",), lambda x, u, t, dt: x, lambda x, u, t: x + level, [0.0], [0.25],
                    lambda x, u, t, dt: one, lambda x, u, t: one)  # fmt: skip


def logs(seed: int = 0, count: int = 40):
    rng = np.random.default_rng(seed)
    y = 3.0 + 0.5 * rng.normal(size=count)
    return y, [(Measurements(np.arange(count) * 1.0, y, ("y",)), Belief(np.zeros(1), np.zeros(1)))]


def test_prior_and_data_weigh_as_they_should() -> None:
    """Gaussian mean with known variance: 1/σ² = n/r + 1/σ₀² in closed form."""
    y, runs = logs()
    guess = ParameterGuess(value=2.0, sigma=0.3)
    fit = fit_parameters(EKF(), constant, {"level": guess}, runs, memory=0.0)
    precision = len(y) / 0.25 + 1.0 / 0.09
    assert fit.values["level"] == pytest.approx((y.sum() / 0.25 + 2.0 / 0.09) / precision, abs=0.12 * precision**-0.5)
    assert fit.sigma["level"] == pytest.approx(
        precision**-0.5, rel=0.25
    )  # the sample's own information, not the expected one
    assert fit.converged and not fit.uninformed


def test_deviations_are_those_of_many_runs() -> None:
    """100 logs: the z-scores against the truth have deviation one."""
    guess = {"level": ParameterGuess(value=3.0, sigma=10.0)}
    fits = [fit_parameters(EKF(), constant, guess, logs(seed)[1], memory=0.0) for seed in range(100)]
    z = [(f.values["level"] - 3.0) / f.sigma["level"] for f in fits]
    assert 0.88 < np.std(z) < 1.15 and abs(np.mean(z)) < 0.2


def test_bounds_hold_and_are_reported() -> None:
    _, runs = logs()
    fit = fit_parameters(EKF(), constant, {"level": ParameterGuess(value=2.0, sigma=1.0, upper=2.5)}, runs)
    assert fit.values["level"] == 2.5 == fit.at_bound["level"]
    assert "at its bound" in fit.summary()


def test_what_data_do_not_show_keeps_its_prior() -> None:
    _, runs = logs()

    def build(values):
        return constant({"level": values["level"]})

    guesses = {
        "level": ParameterGuess(value=2.0, sigma=1.0),
        "ghost": ParameterGuess(value=5.0, sigma=2.0, positive=True),
    }
    fit = fit_parameters(EKF(), build, guesses, runs)
    assert fit.uninformed == ("ghost",)
    assert (fit.values["ghost"], fit.sigma["ghost"]) == pytest.approx((5.0, 2.0), rel=1e-6)


def test_correlated_innovations_count_less() -> None:
    """Ten-fold repeated samples: with a memory the deviation is about √10 times that of white noise."""
    rng = np.random.default_rng(3)
    y = np.repeat(3.0 + 0.5 * rng.normal(size=200), 10)
    runs = [(Measurements(np.arange(len(y)) * 0.1, y, ("y",)), Belief(np.zeros(1), np.zeros(1)))]
    guess = {"level": ParameterGuess(value=3.0, sigma=10.0)}
    white, aware = (fit_parameters(EKF(), constant, guess, runs, memory=m).sigma["level"] for m in (0.0, 3.0))
    assert 2.0 < aware / white < 3.6


def test_faults_come_together() -> None:
    wrong = {
        "a": ParameterGuess(value=1.0, sigma=0.0),
        "b": ParameterGuess(value=-1.0, sigma=1.0, positive=True, lower=-2.0),
    }
    with pytest.raises(DataError) as error:
        fit_parameters(EKF(), constant, wrong, [])
    assert len(error.value.faults) == 3
