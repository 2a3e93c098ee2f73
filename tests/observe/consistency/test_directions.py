"""Innovations by direction: drawn from a known covariance they have the mean squares of that covariance, where NIS says nothing."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from observe.test_model_error import HOW, cart, recorded, truth
from veridyn.observe.consistency.directions import direction_checks, direction_line, wrong_directions
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates

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
