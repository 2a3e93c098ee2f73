"""Products of instruments and columns, streamed, against the same products of stored matrices."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn.identify.equation_plan as streaming
from identify.smooth_arm import clean, noisy, path, shaken, truth
from veridyn.identify.estimators.instruments import summed, weakest_of
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.long_run import bartlett
from veridyn.identify.observation import stream
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.regressor import regressor
from veridyn.model.motion import Motion

LAGS = 7


def test_products_and_scatter_are_those_of_stored_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """In jobs of 211 and blocks of 64 samples, with a dead zone, decimated, and with scores that remember 7 samples."""
    monkeypatch.setattr(streaming, "JOB_SAMPLES", 211)
    log = shaken(np.random.default_rng(0), clean(600), 0.3)
    other = Motion(log.t, *path().at(log.t))
    how = Sampling(decimate=3, dead_zone={"q2": 0.2}, trim=9, block=64)
    samples = stream(truth(), log, sampling=how, engine="numpy")
    s = solve(samples.observe())
    sums = summed(samples, [other], s, LAGS)

    back = np.linalg.inv(s.triangle)
    numbers = np.arange(0, 600, 3)
    W, Z = (regressor(truth(), m)[numbers][:, :, list(s.columns)] / s.row_sigma[:, None] for m in (log, other))
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
    log = noisy(np.random.default_rng(0), clean(600))
    samples = stream(truth(), log)
    s = solve(samples.observe())
    assert weakest_of(summed(samples, [log], s, 0)) == pytest.approx(1.0, abs=1e-9)
    mixed = Motion(log.t, log.q[::-1], log.qd[::-1], log.qdd[::-1])
    assert weakest_of(summed(samples, [mixed], s, 0)) < 0.1
