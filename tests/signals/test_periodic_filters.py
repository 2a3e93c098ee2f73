"""Ways from positions to accelerations, against exact trigonometric motions."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.periodic_filters import (
    advanced,
    amplitudes,
    dft_filter,
    fourier_fit,
    unfiltered,
    zero_phase_periodic,
)
from veridyn.signals.trajectory import FourierTrajectory

RATE, FREQUENCY, N = 160.0, 0.32, 500
rng = np.random.default_rng(3)
MOTION = FourierTrajectory(np.ones(3), 0.1 * rng.normal(size=(3, 5)), 0.1 * rng.normal(size=(3, 5)), FREQUENCY)
T = np.arange(N) / RATE
EXACT = MOTION.at(T)


def test_the_explicit_filter_is_exact_on_what_it_keeps() -> None:
    for found, exact in zip(dft_filter(EXACT[0], RATE, 5), EXACT, strict=True):
        assert found == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("seconds", [0.0, 0.5 / 960.0, -0.3, 2.0])
def test_a_period_some_time_later(seconds: float) -> None:
    """A band-limited signal between its samples, as its own formula has it."""
    assert advanced(EXACT[0], RATE, seconds) == pytest.approx(MOTION.at(T + seconds)[0], abs=1e-12)


def test_explicit_and_implicit_filters_are_one() -> None:
    """Fact 4.5: equal to 5e-14 on one period of uniform samples at the nominal frequency, with noise or without."""
    x = EXACT[0] + 1e-3 * np.random.default_rng(0).normal(size=EXACT[0].shape)
    fit = fourier_fit(x, T, FREQUENCY, 5)
    for a, b in zip(dft_filter(x, RATE, 5), fit.at(T), strict=True):
        assert a == pytest.approx(b, abs=1e-11)
    assert fit.sine == pytest.approx(MOTION.sine, abs=5e-4)


def test_a_wrong_frequency_spoils_both() -> None:
    """Fact 4.5: 0.5 % of the period give 1 to 3.4 % of the acceleration, roughly in proportion."""
    errors = []
    for share in (0.0025, 0.005):
        slow = MOTION.at(T / (1.0 + share))[0]
        truth = MOTION.at(T / (1.0 + share))[2] / (1.0 + share) ** 2
        both = (dft_filter(slow, RATE, 5)[2], fourier_fit(slow, T, FREQUENCY, 5).at(T)[2])
        errors += [np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)) for found in both]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6) and errors[2] == pytest.approx(errors[3], rel=1e-6)
    assert 0.005 < errors[2] < 0.05 and errors[2] / errors[0] == pytest.approx(2.0, rel=0.15)


def test_the_printed_sign_of_17_is_wrong() -> None:
    """With + for the cosines, as printed, the ν_k of (14) have the wrong sign: velocities are wrong by the size of their sine part."""
    k = 2.0 * np.pi * FREQUENCY * np.arange(1, 6)
    angle = T[:, None] * k
    B = np.column_stack([np.ones(N), np.sin(angle) / k, np.cos(angle) / k])
    Xi = np.linalg.lstsq(B, EXACT[0], rcond=None)[0]

    def velocity(nu: np.ndarray) -> np.ndarray:
        return np.cos(angle) @ Xi[1:6] + np.sin(angle) @ nu

    size = np.sqrt(np.mean(EXACT[1] ** 2))
    assert np.sqrt(np.mean((velocity(Xi[6:]) - EXACT[1]) ** 2)) > 0.5 * size
    assert velocity(-Xi[6:]) == pytest.approx(EXACT[1], abs=1e-10)
    assert FourierTrajectory.from_rates(MOTION.centre, Xi[1:6].T, -Xi[6:].T, FREQUENCY).at(T)[2] == pytest.approx(
        EXACT[2], abs=1e-9
    )


def test_time_domain_filters_join_the_ends() -> None:
    x, xd, xdd = zero_phase_periodic(EXACT[0], RATE, Butterworth(20.0))
    assert x == pytest.approx(EXACT[0], abs=1e-6) and xdd == pytest.approx(EXACT[2], abs=1e-4)
    raw = unfiltered(EXACT[0], RATE)
    k = 2.0 * np.pi * FREQUENCY * 5 / RATE
    assert np.abs(raw[2] - EXACT[2]).max() < 2.0 * (1.0 - (np.sin(k) / k) ** 2) * np.abs(EXACT[2]).max()
    assert xd == pytest.approx(EXACT[1], abs=1e-5)


def test_amplitudes() -> None:
    assert amplitudes(EXACT[0])[1:6] == pytest.approx(np.hypot(MOTION.sine, MOTION.cosine).T, abs=1e-12)
    assert amplitudes(EXACT[0])[0] == pytest.approx(np.ones(3))


def test_too_many_harmonics_are_refused() -> None:
    with pytest.raises(DataError, match="no such harmonics"):
        dft_filter(np.zeros(10), 1.0, 5)
