"""Patches of samples that are off, and what a machine makes that looks like them."""

import numpy as np
import pytest

from veridyn.signals.patches import LONGEST, find_patches, quantum

T = np.arange(3000) / 200.0
CHANCE = 1e-3


def force(seed: int) -> np.ndarray:
    """Three sines and white noise of 0.05."""
    waves = sum(a * np.sin(2 * np.pi * f * T) for a, f in ((5.0, 0.3), (2.0, 0.7), (1.0, 1.3)))
    return waves + 0.05 * np.random.default_rng(seed).normal(size=len(T))


def test_values_that_differ_by_rounding_are_one() -> None:
    assert quantum(np.arange(100) * 0.1 * 3.0) == pytest.approx(0.3)
    assert quantum(np.array([1.0, 1.0 + 1e-15, 2.0])) == pytest.approx(1.0)


@pytest.mark.parametrize("length", [1, 2, 5, 12, LONGEST])
def test_a_patch_is_found_whole(length: int) -> None:
    """Forty deviations of the noise: the rule that a clean log in a thousand breaks is met with certainty."""
    for seed in range(5):
        x = force(seed)
        assert find_patches(x, CHANCE) == []
        x[1200 : 1200 + length] += 4.0
        assert find_patches(x, CHANCE) == [(1200, 1199 + length)]


def test_samples_off_by_amounts_that_differ_are_one_patch() -> None:
    x = force(3)
    x[1500:1508] += 5.0 * np.array([1.0, -1.5, 0.8, 2.0, -1.0, 1.2, -2.0, 1.0])
    found = find_patches(x, CHANCE)
    assert found and found[0][0] == 1500 and found[-1][1] == 1507


def test_a_step_and_its_reversal_are_no_patch_where_others_are_as_high() -> None:
    """Dry friction that turns twice within ten samples, beside turns that stay."""
    sign = np.where(T % 3.0 < 1.5, 1.0, -1.0)
    x = force(4) + sign
    assert find_patches(x, CHANCE) == []
    x[1100:1110] -= 2.0 * sign[1100:1110]
    assert find_patches(x, CHANCE) == []


def test_several_spikes_close_together_are_found_and_nothing_else() -> None:
    x = force(5)
    hit = [700, 703, 707, 1500]
    x[hit] += [6.0, -5.0, 7.0, 4.0]
    assert find_patches(x, CHANCE) == [(k, k) for k in hit]


def test_short_records_are_left_alone() -> None:
    assert find_patches(np.array([0.0, 1.0, 50.0, 1.0, 0.0]), CHANCE) == []
