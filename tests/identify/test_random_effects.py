"""The mean and spread of one parameter over many machines, by closed forms and by simulated fleets."""

import numpy as np
import pytest

from veridyn.identify.random_effects import apart, spread_of


def test_equal_deviations_have_a_closed_form() -> None:
    x = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
    found = spread_of(x, np.full(5, 0.5))
    assert found.mean == pytest.approx(x.mean())
    assert found.between**2 == pytest.approx(x.var(ddof=1) - 0.25)
    assert found.sigma == pytest.approx(x.std(ddof=1) / np.sqrt(5))


def test_scatter_within_the_deviations_is_no_spread() -> None:
    found = spread_of([1.0, 1.1, 0.9], [0.5, 1.0, 0.5])
    assert found.between == 0.0
    assert found.mean == pytest.approx((1.0 * 4 + 1.1 + 0.9 * 4) / 9.0)
    assert spread_of([3.0], [0.1]).mean == 3.0


def test_mean_and_spread_of_simulated_fleets_are_unbiased() -> None:
    """400 fleets of 20 machines with deviations between a third and three times the spread."""
    rng, z, squares = np.random.default_rng(11), [], []
    for _ in range(400):
        s = np.exp(rng.uniform(-1.1, 1.1, 20))
        found = spread_of(5.0 + rng.normal(size=20) + s * rng.normal(size=20), s)
        z.append((found.mean - 5.0) / found.sigma)
        squares.append(found.between**2)
    assert np.mean(z) == pytest.approx(0.0, abs=4.0 / np.sqrt(400))
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert np.mean(squares) == pytest.approx(1.0, abs=4.0 * np.std(squares) / np.sqrt(400))


@pytest.mark.parametrize("fleets", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_sound_fleet_has_an_outlier_as_rarely_as_promised(fleets: int) -> None:
    """1 % of the fleets, with four standard errors of that share."""
    rng, found = np.random.default_rng(12), 0
    for _ in range(fleets):
        s = np.exp(rng.uniform(-1.1, 1.1, 12))
        found += bool(apart(rng.normal(size=12) + s * rng.normal(size=12), s, 0.01))
    assert found <= 0.01 * fleets + 4.0 * np.sqrt(0.01 * fleets)


def test_two_outliers_are_both_found_and_others_are_not() -> None:
    rng = np.random.default_rng(13)
    x, s = rng.normal(size=30), np.full(30, 0.3)
    x[[4, 17]] += [12.0, -9.0]
    found = apart(x, s, 0.01)
    assert list(found) == [4, 17]
    assert found[4] > 8.0 and found[17] < -6.0


def test_a_vague_estimate_is_no_outlier_and_few_machines_say_nothing() -> None:
    assert apart([1.0, 1.1, 0.9, 1.05, 0.95, 9.0], [0.1, 0.1, 0.1, 0.1, 0.1, 5.0], 0.01) == {}
    assert apart([1.0, 1.0, 50.0], [0.1, 0.1, 0.1], 0.01) == {}
