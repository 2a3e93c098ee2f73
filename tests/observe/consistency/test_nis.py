"""Bands that hold what they promise: Monte Carlo over runs, wrong noises found, correlation in time accounted for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import veridyn as vd
from observe import textbook
from observe.builders import log_of, start_of, system_of
from observe.linear import Kalman, Linear
from observe.test_model_error import HOW, cart, recorded, truth
from veridyn.errors import DataError
from veridyn.observe.consistency.nis import (
    Consistency,
    DirectionCheck,
    direction_checks,
    direction_line,
    innovation_whiteness,
    nees,
    nis,
    pooled,
    wrong_directions,
)
from veridyn.observe.filters.run import run, smooth
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief, Estimates

WALK = Linear(("x",), ("y",), [[1.0]], [[1.0]], [0.01], [1.0])  # forgets in about ten steps


def walk_run(rng, count=100, system=WALK):
    x = rng.standard_normal() + np.concatenate([[0.0], np.cumsum(0.1 * rng.standard_normal(count - 1))])
    log = Measurements(np.arange(float(count)), x + rng.standard_normal(count), ("y",))
    return x[:, None], run(Kalman(), system, log, Belief([0.0], [1.0]))


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    return [walk_run(rng) for _ in range(100)]


def test_the_band_of_one_runs_mean_holds_its_share_of_runs(many):
    errors = [nees(e, x) for x, e in many]
    innovations = [nis(e) for _, e in many]
    spread = 4 * np.sqrt(0.05 * 0.95 / 100)
    assert np.mean([c.consistent for c in innovations]) == pytest.approx(0.95, abs=spread)
    assert np.mean([c.consistent for c in errors]) == pytest.approx(0.95, abs=spread)
    # Counting every sample as independent would reject far more than one run in twenty.
    naive = chi2.ppf([0.025, 0.975], 100) / 100
    assert np.mean([naive[0] <= c.mean <= naive[1] for c in errors]) < 0.8
    assert np.var([c.mean for c in errors]) == pytest.approx(2 / errors[0].independent, rel=0.5)


def test_independent_samples_are_counted_as_a_brute_force_covariance_counts_them():
    case = textbook.oscillator()
    truth, y = case.simulate(60, np.random.default_rng(1))
    e = run(Kalman(), system_of(Kalman, case), log_of(case, y), start_of(case))
    # cov(e_j, e_k) of all pairs, as one matrix: errors e_k = A_k e_{k-1} + fresh noise
    n, N = 3, 60
    C = np.zeros((N * n, N * n))
    for k in range(N):
        D = e.P[k]
        C[k * n : k * n + n, k * n : k * n + n] = D
        for j in range(k + 1, N):
            D = (np.eye(3) - e.K[j] @ e.H[j]) @ e.F[j] @ D
            C[j * n : j * n + n, k * n : k * n + n] = D
            C[k * n : k * n + n, j * n : j * n + n] = D.T
    Z = np.linalg.inv(np.linalg.cholesky(e.P))
    blocks = np.einsum("jab,jbkc,kdc->jakd", Z, C.reshape(N, n, N, n), Z)
    variance = 2 * (blocks**2).sum()  # of the sum of all NEES
    assert nees(e, truth).independent == pytest.approx(2 * (n * N) ** 2 / variance, rel=1e-3)


def test_independent_samples_of_a_smoother_are_those_of_least_squares_over_the_whole_log():
    """cov(e_j, e_k) of all pairs is the inverse information matrix of the log; nothing in it knows of gains."""
    case = textbook.oscillator()
    truth, y = case.simulate(60, np.random.default_rng(6))
    s = smooth(run(Kalman(), system_of(Kalman, case), log_of(case, y), start_of(case)))
    for skip, states in ((0, None), (7, ["s0", "s1"])):
        C = textbook.whole_log(case, y)[1][skip:, :, skip:][:, : len(states or "abc"), :, : len(states or "abc")]
        N, n = C.shape[:2]
        Z = np.linalg.inv(np.linalg.cholesky(C[np.arange(N), :, np.arange(N)]))
        variance = 2 * (np.einsum("jab,jbkc,kdc->jakd", Z, C, Z) ** 2).sum()
        found = nees(s, truth, skip=skip, states=states)
        assert found.independent == pytest.approx(2 * (n * N) ** 2 / variance, rel=1e-3)
        assert found.values.shape == (N,)


def test_the_band_of_a_smoothers_mean_holds_its_share_of_runs(many):
    smoothed = [nees(smooth(e), x) for x, e in many]
    assert np.mean([c.consistent for c in smoothed]) == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / 100))
    assert np.var([c.mean for c in smoothed]) == pytest.approx(2 / smoothed[0].independent, rel=0.5)


def test_pooled_runs_are_judged_at_every_sample(many):
    p = pooled([nees(e, x) for x, e in many])
    assert p.consistent and p.share_inside == pytest.approx(0.95, abs=0.06) and p.dof[0] == 100
    assert "NEES" in p.summary() and "consistent (95 % band" in p.summary()
    with pytest.raises(DataError, match="not of one length"):
        pooled([nis(many[0][1]), nis(many[0][1], skip=3)])


def test_wrong_noises_are_found_and_named():
    rng = np.random.default_rng(2)
    proud = Linear(("x",), ("y",), [[1.0]], [[1.0]], [1e-4], [0.5])
    shy = Linear(("x",), ("y",), [[1.0]], [[1.0]], [0.05], [3.0])
    x, e = walk_run(rng, 400, proud)
    assert nis(e).summary().startswith("NIS") and "overconfident" in nis(e).summary()
    assert "overconfident" in nees(e, x).summary()
    x, e = walk_run(rng, 400, shy)
    assert "too cautious" in nis(e).summary() and nees(e, x).mean < 0.7


def test_innovations_of_the_right_filter_are_white_and_of_a_sluggish_one_are_not():
    rng = np.random.default_rng(3)
    sluggish = Linear(("x",), ("y",), [[1.0]], [[1.0]], [1e-5], [1.0])
    right = [innovation_whiteness(walk_run(rng, 200)[1])["y"].is_white for _ in range(20)]
    wrong = [innovation_whiteness(walk_run(rng, 400, sluggish)[1])["y"].is_white for _ in range(6)]
    assert np.mean(right) >= 0.85 and np.mean(wrong) <= 0.35


def test_whiteness_leaves_out_what_was_not_used():
    rng = np.random.default_rng(4)
    case = textbook.oscillator()
    _, y = case.simulate(200, rng)
    y[:, 1] = np.nan
    y[::2, 0] = np.nan
    e = run(Kalman(), system_of(Kalman, case), log_of(case, y), start_of(case))
    found = innovation_whiteness(e)
    assert set(found) == {"y0"} and found["y0"].frequency[-1] < 2.5  # half of the mean rate, 5 Hz


def test_frequencies_are_those_of_the_log():
    """20 samples every half second, the first at 100 s: the frequencies of their transform are multiples of a tenth of a hertz."""
    _, e = walk_run(np.random.default_rng(8), 20)
    found = innovation_whiteness(replace(e, t=100.0 + 0.5 * np.arange(20)))["y"]
    assert found.frequency == pytest.approx(0.1 * np.arange(1, 10), rel=1e-12)


def test_innovations_are_judged_in_units_of_their_stated_deviations():
    """Sluggish at first, then white with a thousand times the deviation: unscaled, the end alone would be seen."""
    _, e = walk_run(np.random.default_rng(4), 400, Linear(("x",), ("y",), [[1.0]], [[1.0]], [1e-6], [1.0]))
    loud = np.arange(400) >= 300
    innovations, variances = e.innovations.copy(), e.innovation_variances.copy()
    innovations[loud, 0] = 1e3 * np.random.default_rng(5).standard_normal(100)
    variances[loud, 0] = 1e6
    mixed = replace(e, innovations=innovations, innovation_variances=variances)
    assert not innovation_whiteness(mixed)["y"].is_white
    assert innovation_whiteness(replace(mixed, innovation_variances=np.ones_like(variances)))["y"].is_white


def test_eight_readings_are_the_fewest_whose_whiteness_is_judged():
    _, e = walk_run(np.random.default_rng(6), 8)
    assert list(innovation_whiteness(e)) == ["y"] and innovation_whiteness(e, skip=1) == {}


def test_some_states_alone_and_states_that_are_no_vectors():
    case = textbook.oscillator()
    truth, y = case.simulate(100, np.random.default_rng(5))
    e = run(Kalman(), system_of(Kalman, case), log_of(case, y), start_of(case))
    one = nees(e, truth, states=["s1"])
    assert one.values == pytest.approx((e.x - truth)[:, 1] ** 2 / e.P[:, 1, 1])
    assert one.dof[0] == 1 and nees(e, truth, skip=40).values.shape == (60,)
    assert nees(e, truth, subtract=lambda a, b: a - b).mean == nees(e, truth).mean


def test_what_cannot_be_judged_is_refused():
    case = textbook.oscillator()
    e = run(Kalman(), system_of(Kalman, case), log_of(case, np.full((5, 2), np.nan)), start_of(case))
    with pytest.raises(DataError, match="no reading was used"):
        nis(e)
    with pytest.raises(DataError, match="wrong shape"):
        nees(e, np.zeros((5, 2)))
    with pytest.raises(DataError, match=r"there is no state 's9'"):
        nees(e, np.zeros((5, 3)), states=["s9"])
    sure = Belief(case.x0, np.zeros((3, 3)))
    known = run(Kalman(), system_of(Kalman, case), log_of(case, np.zeros((5, 2))), sure)
    with pytest.raises(DataError, match=r"a covariance is singular(.|\n)*skip the first"):
        nees(known, np.zeros((5, 3)))
    assert nees(known, np.zeros((5, 3)), skip=1).dof[0] == 3


def test_bands_are_those_of_the_exponential_distribution():
    """χ² of two degrees of freedom is exponential: its quantile of p is −2 ln(1 − p), 0.0506 and 7.378 for 95 %."""
    values = np.array([0.045, 0.055, 7.3, 7.5])
    one = Consistency("NIS", values, np.full(4, 2), 2.0, 0.95)
    assert one.share_inside == 0.5
    assert one.band == pytest.approx((-np.log(0.975), -np.log(0.025)))
    assert one.mean == pytest.approx(values.sum() / 8.0)


def test_a_single_run_pooled_is_itself():
    one = Consistency("NEES", np.array([1.0, 3.0]), np.array([2, 2]), 3.5, 0.9)
    p = pooled([one])
    assert (p.name, p.level, p.independent) == ("NEES", 0.9, 3.5)
    assert p.values == pytest.approx(one.values) and p.dof.tolist() == [2, 2]


def test_every_innovation_counts_unless_some_are_skipped(many):
    """The mean over n samples is Σ ν²/S over n, written out; with `skip` the first are left out."""
    _, e = many[0]
    assert nis(e).mean == pytest.approx(e.nis.sum() / e.dof.sum(), rel=1e-12)
    assert nis(e, skip=30).mean == pytest.approx(e.nis[30:].sum() / e.dof[30:].sum(), rel=1e-12)


N, P, R = 4000, 3.0, 1.0
STATED = P * np.ones((2, 2)) + R * np.eye(2)  # two sensors of one state: eigenvalues 7 along (1, 1), 1 along (1, -1)


def innovations(covariance: np.ndarray, silent: int = 0) -> Estimates:
    """Innovations with this covariance of a filter that states `STATED`; the last `silent` samples have one output alone."""
    nu = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, N)
    status = np.full((N, 2), Status.USED, dtype=np.int8)
    if silent:
        status[-silent:, 1] = Status.MISSING
    every = np.ones(N)
    return Estimates(
        t=np.arange(N) / 100.0,
        x=np.zeros((N, 1)),
        P=P * np.ones((N, 1, 1)),
        states=("angle",),
        filter="made",
        x_predicted=np.zeros((N, 1)),
        P_predicted=P * np.ones((N, 1, 1)),
        F=np.ones((N, 1, 1)),
        H=np.ones((N, 2, 1)),
        K=np.zeros((N, 1, 2)),
        innovations=np.where(status == Status.USED, nu, np.nan),
        innovation_variances=np.outer(every, STATED.diagonal()),
        status=status,
        nis=np.einsum("ki,ij,kj->k", nu, np.linalg.inv(STATED), nu),
        dof=2 * np.ones(N, dtype=np.int64),
        log_likelihood=np.zeros(N),
        outputs=("left", "right"),
    )


def test_both_directions_of_a_consistent_filter_are_one() -> None:
    """Of the 2000 samples that are taken a mean square has the standard deviation (2/2000)^½ = .03."""
    checks = direction_checks(innovations(STATED))
    assert [c.z2 for c in checks] == pytest.approx([1.0, 1.0], abs=0.1)
    assert wrong_directions(checks, 1e-4, 1.0) == () and checks[0].samples == 2000


def test_a_direction_shows_what_the_sum_hides() -> None:
    """1.9 times the variance along the difference and .1 along the mean: NIS is 1."""
    mean, difference = np.array([1.0, 1.0]) / 2**0.5, np.array([1.0, -1.0]) / 2**0.5
    e = innovations(7.0 * 0.1 * np.outer(mean, mean) + 1.9 * np.outer(difference, difference))
    assert e.nis.sum() / e.dof.sum() == pytest.approx(1.0, abs=0.07)
    worst, best = direction_checks(e)
    assert (worst.z2, best.z2) == (pytest.approx(1.9, abs=0.2), pytest.approx(0.1, abs=0.02))
    assert worst.named in ("0.71 left - 0.71 right", "0.71 right - 0.71 left")
    assert worst.weights == pytest.approx(difference * np.sign(worst.weights[0]))
    assert best.named in ("0.71 left + 0.71 right", "0.71 right + 0.71 left")
    ((named, text),) = wrong_directions((worst, best), 1e-4, 1.25)
    assert named is worst and "larger than stated: mean squared deviation 1.9" in text
    assert wrong_directions((worst, best), 1e-4, 4.0) == ()  # bands survive it
    assert direction_line((worst, best))[0].startswith("innovations by direction: z^2 0.")


def test_outputs_that_are_not_read_together_have_no_direction() -> None:
    assert direction_checks(innovations(STATED, silent=N)) == () and direction_line(()) == ()
    part = direction_checks(innovations(STATED, silent=N // 2))
    assert len(part) == 2 and part[0].samples == N // 2
    assert direction_checks(innovations(STATED), skip=N - 10) == ()  # too few


def test_the_summary_has_directions_horizons_and_muted_sensors() -> None:
    force, _, readings = truth(0, 1.0)
    states = vd.observe(cart(), recorded(force, readings), "ekf", HOW)
    text = states.summary()
    assert "innovations by direction: z^2" in text and "predicted over 1, 10, 100 samples without readings: z^2" in text
    assert "without sensor 'travel': z^2" in text and "without sensor 'angle': z^2" in text
    assert not any(f.cause == "directions" for f in states.findings)


def test_weights_of_less_than_three_tenths_of_the_largest_are_not_named() -> None:
    check = DirectionCheck(("a", "b", "c"), np.array([0.8, 0.25, -0.23]), 1.0, 100)
    assert check.named == "0.80 a + 0.25 b"
    assert replace(check, weights=np.array([-0.8, 0.1, 0.6])).named == "0.80 a - 0.60 c"


def test_fifty_samples_are_the_fewest_that_have_directions() -> None:
    assert direction_checks(innovations(STATED), skip=N - 49) == ()
    assert [c.samples for c in direction_checks(innovations(STATED), skip=N - 50)] == [50, 50]
