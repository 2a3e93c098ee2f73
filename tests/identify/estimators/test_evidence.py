"""The scale of a prior by its marginal likelihood: against machines whose drawings are wrong by a known amount."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.calibration_cases import NOISE, drawing, drawn_from, moved, noisy, path

from veridyn.errors import IdentificationError
from veridyn.identify.estimators import evidence
from veridyn.identify.estimators.evidence import SCALES, calibrate_prior
from veridyn.identify.estimators.prior import Prior, prior_moments


@pytest.mark.parametrize("spread", [0.03, 0.1])
def test_the_scale_is_that_of_the_drawings_errors(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Geometric mean over eight machines, each wrong by `spread` of its sizes; some twenty inertias give each scale to 1/√40, so within
    four standard errors of the mean and half a step of the grid."""
    monkeypatch.setattr("benchmarks.calibration_cases.SPREAD", spread)
    found = []
    for k in range(8):
        rng = np.random.default_rng([3, k])
        truth = drawn_from(drawing(), rng)
        found.append(calibrate_prior(drawing(), noisy(rng, moved(truth, path(rng), 800), NOISE)).groups["inertia"])
    mean = float(np.exp(np.mean(np.log(found))))
    step = 0.5 * np.log(SCALES[1] / SCALES[0])
    assert abs(np.log(mean / spread)) < 4.0 / np.sqrt(40.0 * 8.0) + step


def test_its_curve_is_least_at_the_scale_and_named_deviations_stay() -> None:
    rng = np.random.default_rng(4)
    log = noisy(rng, moved(drawn_from(drawing(), rng), path(rng), 800), NOISE)
    found = calibrate_prior(drawing(), log, Prior(sigma={"M3": 0.2}))
    assert set(found.groups) == {"inertia", "mass", "friction"} == set(found.curves)
    for group, curve in found.curves.items():
        assert min(curve) == 0.0 and SCALES[curve.index(0.0)] == found.groups[group]
    names = [drawing().parameters.names[k] for k in drawing().parameters.select("estimated")]
    assert prior_moments(drawing(), found.prior)[1][names.index("M3")] == 0.2


def test_the_likelihood_is_that_of_a_normal_sample() -> None:
    """_cost against the density of SciPy, up to a constant that no scale changes."""
    from scipy.stats import multivariate_normal

    from veridyn.identify.estimator import base_of
    from veridyn.identify.estimators.least_squares import solve
    from veridyn.identify.regression.observation import observation

    rng = np.random.default_rng(5)
    machine = drawing()
    s = solve(observation(machine, noisy(rng, moved(drawn_from(machine, rng), path(rng), 400), NOISE)))
    K = base_of(s).matrix[:, list(machine.parameters.select("estimated"))]
    both = []
    for scale in (0.02, 0.2):
        groups = dict.fromkeys(("inertia", "mass", "friction"), scale)
        mean, sigma = prior_moments(machine, Prior(groups=groups))
        cov = s.covariance / s.sigma**2 + K @ np.diag(sigma**2) @ K.T
        exact = -2.0 * multivariate_normal(K @ mean, cov).logpdf(s.values)
        both.append(evidence._cost(machine, Prior(), groups, s, K) - exact)  # pyright: ignore[reportPrivateUsage]
    assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_nothing_to_compare_with_is_refused() -> None:
    machine = drawing()
    named = {machine.parameters.names[k]: 1.0 for k in machine.parameters.select("estimated")}
    rng = np.random.default_rng(6)
    log = noisy(rng, moved(machine, path(rng), 400), NOISE)
    with pytest.raises(IdentificationError, match="how wrong it is"):
        calibrate_prior(machine, log, Prior(sigma=named))
