"""Instrumental variables: free of the bias that noise on the motion gives least squares; in closed loop; weak instruments refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
import veridyn.identify.regression.equation_plan as streaming
from identify.hanging_arm import SOFT, STEP, drawn, truth
from identify.smooth_arm import clean, shaken
from identify.smooth_arm import noisy as noisy_smooth
from identify.smooth_arm import path as smooth_path
from identify.smooth_arm import truth as smooth_arm
from identify.undiagnosed import identify
from veridyn.errors import DataError, IdentificationError, IdentificationWarning
from veridyn.identify.estimators.instrument_sums import summed, weakest_of
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.lag_window import bartlett
from veridyn.mechanics.control.law import Tracker
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.motion import Motion
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

LAGS = 7


def path():
    limits = JointLimits(np.full(2, -2.0), np.full(2, 0.5), np.full(2, 6.0), np.full(2, 30.0))
    return FourierTrajectory.random(np.random.default_rng(3), limits, harmonics=5, frequency=0.2, fill=0.95)


LAW = Tracker(path(), np.array([20.0, 8.0]), np.array([2.0, 0.8]))


@pytest.fixture(scope="module")
def loop():
    """10 s in closed loop, exact, with the friction of the simulation rounded off below SOFT."""
    q, qd, _ = path().at(0.0)
    method = Method("RK4", step=STEP / 4, friction_speed=SOFT)
    return integrate(truth(), STEP * np.arange(1001), q, qd, LAW, method=method).motion


def noisy(loop, rng, size=1.0):
    """White noise on rates, accelerations and forces: what differences of positions leave, if without its colour."""
    shape = loop.q.shape
    return replace(
        loop,
        qd=loop.qd + size * 0.02 * rng.normal(size=shape),
        qdd=loop.qdd + size * 4.0 * rng.normal(size=shape),
        forces=loop.forces + size * 0.03 * rng.normal(size=shape),
    )


WHERE = vd.estimators.Sampling(dead_zone={"q1": 20 * SOFT / 4, "q2": 20 * SOFT / 4})
HOW = Instrumental(law=LAW, start="tree", friction_speed=SOFT)


def errors(fit):
    return fit.values - fit.base.reduce(truth().parameters.values)


def test_least_squares_is_biased_and_instruments_are_not(loop):
    """Mean over 6 logs, in deviations of that mean: least squares loses inertia, instrumental variables do not."""
    logs = [noisy(loop, np.random.default_rng(seed)) for seed in range(6)]
    fits = [identify(drawn(), log, HOW, settings=IdentifySettings(sampling=WHERE)) for log in logs]
    fit = fits[0]
    least = [
        identify(drawn(), log, settings=IdentifySettings(sampling=WHERE)) for log in logs
    ]  # it would call M(q) impossible
    found = {"wls": [errors(f) for f in least], "iv": [errors(f) for f in fits]}
    means = {name: np.mean(e, axis=0) / (np.std(e, axis=0, ddof=1) / np.sqrt(6)) for name, e in found.items()}
    ZZ2 = fit.names.index("ZZ2")
    print({name: np.round(m, 1) for name, m in means.items()})
    assert means["wls"][ZZ2] < -20.0
    assert np.mean(means["iv"] ** 2) < 2.5
    scatter = np.std(found["iv"], axis=0, ddof=1)
    assert np.median(fit.sigma / scatter) == pytest.approx(1.0, abs=0.3)
    assert "simulated in closed loop" in fit.notes[-1]


def test_exact_data_stay_exact_in_closed_loop(loop):
    """Equations hold to the accuracy with which the simulation rounds friction off, which the dead zone leaves out."""
    fit = identify(drawn(), loop, HOW, settings=IdentifySettings(sampling=WHERE))
    least = identify(drawn(), loop, settings=IdentifySettings(sampling=WHERE))
    assert np.abs(errors(fit)).max() < 3.0 * np.abs(errors(least)).max() + 1e-6


def test_the_reference_as_instruments(loop):
    log = noisy(loop, np.random.default_rng(0))
    fit = identify(drawn(), log, Instrumental(reference=path()), settings=IdentifySettings(sampling=WHERE))
    assert np.sqrt(np.mean((errors(fit) / fit.sigma) ** 2)) < 2.0
    assert "along the reference" in fit.notes[-1]


def test_residuals_that_remember_widen_deviations(loop):
    log = noisy(loop, np.random.default_rng(0))
    wander = np.cumsum(np.random.default_rng(1).normal(size=log.q.shape), axis=0)
    log = replace(log, forces=log.forces + 0.2 * (wander - wander.mean(axis=0)) / wander.std(axis=0))
    method = Instrumental(reference=path())
    white, hac = (
        identify(drawn(), log, method, IdentifySettings(covariance=c, sampling=WHERE)) for c in ("white", "hac")
    )
    assert np.array_equal(white.values, hac.values)
    assert np.median(hac.sigma / white.sigma) > 1.5
    assert "residuals that remember" in hac.notes[-1]


def test_instruments_of_another_motion_are_refused(loop):
    limits = JointLimits(np.full(2, -2.0), np.full(2, 0.5), np.full(2, 6.0), np.full(2, 30.0))
    other = FourierTrajectory.random(np.random.default_rng(8), limits, harmonics=5, frequency=0.31, fill=0.9)
    with pytest.raises(IdentificationError, match="the instruments hardly resemble the motion"):
        identify(drawn(), loop, Instrumental(reference=other), settings=IdentifySettings(sampling=WHERE))


def test_what_it_cannot_do_is_refused(loop):
    with pytest.raises(IdentificationError, match=r"need a motion without noise[\s\S]*found neither"):
        identify(truth(), loop, "iv")
    with pytest.raises(IdentificationError, match=r"found both"):
        identify(truth(), loop, Instrumental(law=LAW, reference=path()))
    with pytest.raises(DataError, match="wrenches act during the motion"):
        identify(truth(), replace(loop, wrenches={"2": np.zeros((1001, 6))}), HOW)
    with pytest.warns(IdentificationWarning, match="have not settled after 1 iterations"):
        fit = identify(
            drawn(),
            noisy(loop, np.random.default_rng(0)),
            replace(HOW, iterations=1),
            settings=IdentifySettings(sampling=WHERE),
        )
    with pytest.raises(
        IdentificationError, match="cannot be simulated with the previous estimate: the motion has run away"
    ):
        identify(drawn(), noisy(loop, np.random.default_rng(0)), replace(HOW, start="data"))
    empty = vd.Machine.of_bodies(tree_of(truth()).bodies, elements=truth().elements)
    with pytest.raises(IdentificationError, match="the tree has no values to start from"):
        identify(empty, loop, HOW)
    assert "NOT CONVERGED" in fit.notes[-1]


def test_a_motion_is_no_reference_and_the_error_says_what_is(loop):
    with pytest.raises(
        IdentificationError, match=r"Instrumental\.reference[\s\S]*SampledTrajectory[\s\S]*found Motion"
    ):
        Instrumental(reference=loop)


def test_a_reference_of_another_machine_or_without_accelerations_is_refused(loop):
    class Short:
        def at(self, t):
            return path().at(t)[:2]

    class Wide:
        def at(self, t):
            return tuple(np.hstack([x, x]) for x in path().at(t))

    for reference in (Short(), Wide()):
        with pytest.raises(DataError, match=r"Instrumental\.reference: the reference is no motion of this machine"):
            identify(drawn(), loop, Instrumental(reference=reference), settings=IdentifySettings(sampling=WHERE))


def test_products_and_scatter_are_those_of_stored_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """In jobs of 211 and blocks of 64 samples, with a dead zone, decimated, and with scores that remember 7 samples."""
    monkeypatch.setattr(streaming, "JOB_SAMPLES", 211)
    log = shaken(np.random.default_rng(0), clean(600), 0.3)
    other = Motion(log.t, *smooth_path().at(log.t))
    how = Sampling(decimate=3, dead_zone={"q2": 0.2}, trim=9, block=64)
    samples = stream(smooth_arm(), log, settings=IdentifySettings(sampling=how, engine="numpy"))
    s = solve(samples.observe())
    sums = summed(samples, [other], s, LAGS)

    back = np.linalg.inv(s.triangle)
    numbers = np.arange(0, 600, 3)
    W, Z = (regressor(smooth_arm(), m)[numbers][:, :, list(s.columns)] / s.row_sigma[:, None] for m in (log, other))
    y = log.forces[numbers] / s.row_sigma
    used = (numbers >= 9) & (numbers < 591)
    used = np.stack([used] * 4, axis=1)
    used[:, 1] &= np.abs(log.qd[numbers, 1]) >= 0.2
    W, Z, y = W * used[..., None], Z * used[..., None], y * used
    W, Z = W @ back, Z @ back
    r = y - W @ (s.triangle @ s.values)
    assert sums.columns == pytest.approx(np.einsum("tri,trj->ij", Z, W), rel=1e-8, abs=1e-9)
    assert sums.measured == pytest.approx(np.einsum("tri,tr->i", Z, y), rel=1e-8, abs=1e-7)
    assert sums.own == pytest.approx(np.einsum("tri,trj->ij", Z, Z), rel=1e-8, abs=1e-9)
    assert sums.meat == pytest.approx(bartlett(np.einsum("tri,tr->ti", Z, r), LAGS), rel=1e-6, abs=1e-9)
    assert sums.samples == len(numbers)


def test_columns_are_their_own_best_instruments() -> None:
    log = noisy_smooth(np.random.default_rng(0), clean(600))
    samples = stream(smooth_arm(), log)
    s = solve(samples.observe())
    assert weakest_of(summed(samples, [log], s, 0)) == pytest.approx(1.0, abs=1e-9)
    mixed = Motion(log.t, log.q[::-1], log.qd[::-1], log.qdd[::-1])
    assert weakest_of(summed(samples, [mixed], s, 0)) < 0.1
