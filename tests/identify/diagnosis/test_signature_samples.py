"""Windows of equations against their samples, and columns of damages against the dynamics."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from identify.smooth_arm import drawn, path, truth
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.estimate import identify
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase

HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})
ROWS = [f"q{k}" for k in range(1, 5)]


@cache
def fitted() -> tuple[Fit, Motion]:
    t = 0.005 * np.arange(1202)  # not a multiple of a window
    m = Motion(t, *path().at(t))
    noise = np.random.default_rng(4).normal(size=m.q.shape) * 0.05
    m = replace(m, forces=inverse_dynamics(truth(), m) + noise)
    return identify(drawn(1), m, settings=IdentifySettings(sampling=HOW), diagnose="off"), m


@cache
def of(window: int) -> Samples:
    fit, m = fitted()
    return samples_of(fit, [m], ROWS, HOW, window)


def test_a_sample_has_its_equation() -> None:
    """With windows of one sample W φ̂ are the forces of the fit, y those measured, and samples inside the dead zone are not used."""
    fit, m = fitted()
    one, used = of(1), np.abs(m.qd) >= 0.05
    some = used.any(axis=1)  # samples that some row uses
    np.testing.assert_array_equal(one.used, used[some])
    forces = np.where(used, inverse_dynamics(fit.described, m, ROWS, fit.standard, engine="numpy"), 0.0)
    np.testing.assert_allclose(one.forces, forces[some], atol=1e-9)
    np.testing.assert_allclose(one.W @ fit.values, forces[some], atol=1e-9)
    assert m.forces is not None
    np.testing.assert_allclose(one.misfit(fit.values), np.where(used, m.forces - forces, 0.0)[some], atol=1e-9)


def test_windows_are_sums_over_the_root_of_their_number() -> None:
    _, m = fitted()
    one, four, used = of(1), of(4), np.abs(m.qd) >= 0.05
    windows = (np.arange(len(m)) // 4)[used.any(axis=1)]
    for name in ("W", "y", "forces", "rates", "clock", "late"):
        lines = getattr(one, name)
        total = np.zeros((windows[-1] + 1, *lines.shape[1:]))
        np.add.at(total, windows, lines)
        count = np.zeros((windows[-1] + 1, 4))
        np.add.at(count, windows, one.used.astype(float))
        root = np.sqrt(np.maximum(count, 1.0)).reshape(*count.shape, *[1] * (lines.ndim - 2))
        np.testing.assert_allclose(getattr(four, name), (total / root)[count.any(axis=1)], atol=1e-9, err_msg=name)


def test_machine_code_gives_the_numbers_of_the_reference() -> None:
    fit, m = fitted()
    before = of(4).W
    observation(fit.described, m, ROWS, settings=IdentifySettings(engine="compiled"))  # its code is there now
    np.testing.assert_allclose(samples_of(fit, [m], ROWS, HOW, 4).W, before, atol=1e-9)


def test_columns_of_encoders_are_derivatives_of_the_forces() -> None:
    """−∂Γ̂/∂q at every sample, by central differences of inverse dynamics: to a tenth of what counts as inseparable (1e-3)."""
    fit, m = fitted()
    one, used = of(1), np.abs(m.qd) >= 0.05
    some = used.any(axis=1)
    for i, c in enumerate(ROWS):
        step = np.zeros(4)
        step[i] = 1e-5
        low, high = (inverse_dynamics(fit.described, replace(m, q=m.q + s), ROWS, fit.standard) for s in (-step, step))
        wanted = np.where(used, (low - high) / 2e-5, 0.0)[some]
        assert np.abs(one.turned[c] - wanted).max() < 1e-4 * max(np.abs(wanted).max(), 1.0)


@pytest.mark.parametrize("early", [False, True])
def test_late_friction_is_that_of_samples_before(early: bool) -> None:
    """s_d/d of row 1 against the sign of its own speed, moved by whole samples."""
    fit, m = fitted()
    one, used = of(1), np.abs(m.qd) >= 0.05
    friction = fit.standard[fit.described.parameters.index("fs_q1")] * np.sign(m.qd[:, 0])
    for k, d in enumerate(one.delays):
        n = 2**k
        assert d == pytest.approx(0.005 * n)
        moved = np.concatenate(
            [friction[n:], friction[-1:].repeat(n)] if early else [friction[:1].repeat(n), friction[:-n]]
        )
        wanted = np.where(used[:, 0], (moved - friction) / (-d if early else d), 0.0)
        inside = slice(n, -n)
        whole = np.zeros(len(m))
        whole[used.any(axis=1)] = one.late[:, 0, int(early), k]
        np.testing.assert_allclose(whole[inside], wanted[inside], atol=1e-9)


def test_behind_a_filter_a_delay_is_the_slope_of_the_whole_force() -> None:
    """Smooth part and step of friction together are −dΓ̂/dt of the filtered force, at reversals too: filtered, it has a slope everywhere.

    For the delay of two samples and its opposite, whose mean is a central difference, to 1 % of the largest slope.
    """
    fit, m = fitted()
    how = Sampling(filter=Butterworth(8.0))
    x = samples_of(fit, [m], ROWS, how)
    forces = zero_phase(inverse_dynamics(fit.described, m, ROWS, fit.standard), 200.0, how.filter)
    wanted = -(forces[4:] - forces[:-4]) / (m.t[4:] - m.t[:-4])[:, None]
    column = -x.rates + x.late[:, :, :, 1].mean(axis=2)
    inside = slice(100, -100)  # a filter starts up at the ends
    apart = np.abs(column[2:-2][inside] - wanted[inside]).max(axis=0)
    assert np.all(apart < 0.01 * np.abs(wanted[inside]).max(axis=0))
