"""Parameters by innovations: closed forms, a Monte Carlo of their deviations, bounds, and what data do not show."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from observe.builders import pendulum, pendulum_log
from observe.linear import Kalman, Linear
from veridyn.errors import DataError, ModelError
from veridyn.model.parameters import ParameterGuess
from veridyn.observe.consistency.nis import innovation_whiteness, nis
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.fitting import fit_parameters, log_likelihood, tune
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


def walk(values):
    return Linear(("x",), ("y",), [[1.0]], [[1.0]], [values["q"]], [values["r"]])


def walk_log(rng, count, q, r):
    x = rng.standard_normal() + np.concatenate([[0.0], np.cumsum(np.sqrt(q) * rng.standard_normal(count - 1))])
    y = x + np.sqrt(r) * rng.standard_normal(count)
    return Measurements(np.arange(float(count)), y, ("y",)), Belief([0.0], [1.0])


def test_the_likelihood_is_the_density_of_the_whole_log():
    log, start = walk_log(np.random.default_rng(0), 25, 0.3, 0.7)
    k = np.arange(25)
    covariance = 1.0 + 0.3 * np.minimum.outer(k, k) + 0.7 * np.eye(25)
    expected = multivariate_normal(np.zeros(25), covariance).logpdf(log.values[:, 0])
    assert log_likelihood(Kalman(), walk({"q": 0.3, "r": 0.7}), [(log, start)]) == pytest.approx(expected, rel=1e-11)


def test_variances_are_found_again_within_their_deviations():
    rng = np.random.default_rng(1)
    runs = [walk_log(rng, 150, 0.02, 0.5) for _ in range(2)]
    t = tune(Kalman(gate=0.9), walk, {"q": 1.0, "r": 0.01}, runs)
    assert t.converged and t.readings == 300 and "converged" in t.summary()
    for name, truth in (("q", 0.02), ("r", 0.5)):
        assert abs(np.log(t.values[name] / truth)) < 3.0 * t.sigma_log[name] < 2.0
    # No neighbour is more likely, by a search that shares nothing with the optimiser.
    best = log_likelihood(Kalman(), walk(t.values), runs)
    for name in t.values:
        for factor in (0.93, 1.07):
            assert log_likelihood(Kalman(), walk(dict(t.values) | {name: factor * t.values[name]}), runs) < best
    # Judged on another log than it came from.
    other = run(Kalman(), walk(t.values), *walk_log(rng, 400, 0.02, 0.5))
    assert nis(other).mean == pytest.approx(1.0, abs=0.25) and innovation_whiteness(other)["y"].is_white


def test_deviations_are_those_of_a_variance_in_closed_form():
    """Pure noise of known mean: r is most likely the mean square, and the deviation of log r is √(2/N)."""
    y = np.random.default_rng(2).standard_normal(200)
    log = Measurements(np.arange(200.0), y, ("y",))
    t = tune(Kalman(), lambda v: walk({"q": 0.0, "r": v["r"]}), {"r": 30.0}, [(log, Belief([0.0], [0.0]))])
    assert t.values["r"] == pytest.approx(np.mean(y**2), rel=1e-4)
    assert t.sigma_log["r"] == pytest.approx(np.sqrt(2 / 200), rel=1e-3)


def test_what_the_data_do_not_tell_has_no_deviation():
    """A walk that is not there: the most likely variance runs towards zero, and the result says so."""
    rng = np.random.default_rng(3)
    y = rng.standard_normal(60)
    y -= np.linspace(y[:30].mean(), y[30:].mean(), 60)
    t = tune(Kalman(), walk, {"q": 1e-2, "r": 1.0}, [(Measurements(np.arange(60.0), y, ("y",)), Belief([0.0], [1.0]))])
    assert t.values["q"] < 1e-5 and np.isinf(t.sigma_log["q"]) and np.isfinite(t.sigma_log["r"])
    assert "the data do not determine it" in t.summary()


def test_noise_of_a_pendulum():
    _, log, start = pendulum_log(100, 0.05, np.random.default_rng(4))

    def build(v):
        return pendulum(density=v["density"], sigma=v["sigma"])

    t = tune(EKF(), build, {"density": 0.2, "sigma": 0.1}, [(log, start)])
    assert abs(np.log(t.values["density"] / 0.02)) < 3 * t.sigma_log["density"]
    assert abs(np.log(t.values["sigma"] / 0.05)) < 3 * t.sigma_log["sigma"] < 0.4
    assert t.evaluations < 150


def test_bad_questions_are_refused():
    log = walk_log(np.random.default_rng(5), 10, 1.0, 1.0)
    with pytest.raises(DataError, match=r"the guess of 'q' is not usable(.|\n)*found -1"):
        tune(Kalman(), walk, {"q": -1.0, "r": 1.0}, [log])
    with pytest.raises(DataError, match=r"2 faults(.|\n)*nothing to tune(.|\n)*no log"):
        tune(Kalman(), walk, {}, [])
    with pytest.raises(ModelError, match="the variance of 'x' is negative"):
        tune(Kalman(), lambda v: walk({"q": -v["q"], "r": 1.0}), {"q": 1.0}, [log])
    told = []
    tune(Kalman(), walk, {"q": 1.0, "r": 1.0}, [log], progress=lambda *a: told.append(a))
    assert told[0] == ("tuning", 1, None)
