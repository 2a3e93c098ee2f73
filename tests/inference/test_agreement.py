"""Stretches of data that agree are left alone; a parameter that changes between them is named, and deviations widen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import sqrtm
from scipy.stats import chi2

from veridyn.inference.agreement import (
    FALSE_ALARM_RATE,
    Agreement,
    PartSums,
    agreement,
)

Array = NDArray[np.float64]
SIZES = np.array([2.0, 0.5, 10.0, 1.0, 3.0, 1.0])  # of the columns of unit parameters


def compared(rng: np.random.Generator, change: Array, parts: int = 3, samples: int = 200) -> Agreement:
    """Of a linear fit of all parts with unit white noise, the first of which has other parameters than the rest."""
    W = rng.normal(size=(parts * samples, len(SIZES))) * SIZES
    y = rng.normal(size=len(W))
    y[:samples] += W[:samples] @ change
    Q, R = np.linalg.qr(W)
    r = y - Q @ (Q.T @ y)
    cut = [slice(k * samples, (k + 1) * samples) for k in range(parts)]
    sums = PartSums(np.array([Q[c].T @ Q[c] for c in cut]), np.array([Q[c].T @ r[c] for c in cut]))
    return agreement(sums, np.eye(len(SIZES)), R)


def test_parts_that_agree_have_a_ratio_of_one_and_seldom_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    found = [compared(rng, np.zeros(6)) for _ in range(400)]
    assert float(np.mean([f.ratio for f in found])) == pytest.approx(1.0, abs=0.04)  # four standard errors, √(2/12/400)
    alarms = sum(f.widening > 1.0 for f in found)
    assert alarms <= 400 * FALSE_ALARM_RATE + 4 * np.sqrt(400 * FALSE_ALARM_RATE)
    assert sum(bool(f.changed) for f in found) <= 400 * FALSE_ALARM_RATE + 4 * np.sqrt(400 * FALSE_ALARM_RATE)


def test_a_parameter_that_changes_is_named_first_and_widens_the_deviations() -> None:
    change = np.zeros(6)
    change[1] = 1.5  # its deviation in one part is 1/(.5 √200) = .14
    found = compared(np.random.default_rng(1), change)
    assert found.chance < 1e-6
    assert found.widening == found.ratio > 2.0
    assert found.changed[0] == 1
    # δ over its deviation: 1.5 of √(1/200 + 1/400)/.5
    assert abs(found.changes[1]) == pytest.approx(1.5 / (np.sqrt(1 / 200 + 1 / 400) / 0.5), abs=3.0)


def test_parts_that_see_nothing_of_a_parameter_say_nothing_of_it() -> None:
    rng = np.random.default_rng(2)
    W = rng.normal(size=(400, 2))
    W[:200, 1] = 0.0
    Q, R = np.linalg.qr(W)
    y = rng.normal(size=400)
    r = y - Q @ (Q.T @ y)
    both = (slice(0, 200), slice(200, 400))
    sums = PartSums(np.array([Q[c].T @ Q[c] for c in both]), np.array([Q[c].T @ r[c] for c in both]))
    found = agreement(sums, np.eye(2), R)
    assert found.chance > 1e-3
    assert abs(found.changes[1]) < 4.0


def definite(rng: np.random.Generator, size: int) -> Array:
    A = rng.normal(size=(size, 2 * size))
    return A @ A.T


def test_ratio_chance_and_changes_are_those_of_the_formulas_written_out() -> None:
    """Three unequal stretches, scores of any covariance S, small in their unit; square roots and inverses by SciPy."""
    rng = np.random.default_rng(4)
    p, parts, size = 3, 3, 1e-4
    gram = np.array([definite(rng, p) for _ in range(parts)])
    score = 1e-2 * rng.normal(size=(parts, p))
    S, triangle = size * definite(rng, p), np.triu(rng.normal(size=(p, p))) + 3.0 * np.eye(p)
    found = agreement(PartSums(gram, score), S, triangle)

    root = np.real(sqrtm(gram.sum(axis=0)))
    back, t = np.linalg.inv(root), root @ triangle
    S = back @ S @ back
    total, changes = 0.0, np.zeros((parts, p))
    for k in range(parts):
        H, h = back @ gram[k] @ back, back @ score[k]
        half = np.real(sqrtm(H))
        own = half @ S @ half
        V = np.linalg.inv(own - H @ own - own @ H + H @ S @ H)
        total += h @ V @ h
        move = (H - H @ H) @ t
        changes[k] = (move.T @ V @ h) / np.sqrt(np.einsum("ij,ik,kj->j", move, V, move))
    freedom = parts * p * (parts - 1) / parts
    assert found.stretches == parts
    assert found.ratio == pytest.approx(total / (parts * p), rel=1e-8)
    assert found.chance == pytest.approx(chi2.sf(found.ratio * freedom, freedom), rel=1e-8)
    largest = changes[np.abs(changes).argmax(axis=0), np.arange(p)]
    assert found.changes == pytest.approx(largest, rel=1e-7)


@pytest.mark.parametrize(("change", "named"), [(2.7, ()), (-2.9, (0,))])
def test_a_change_is_named_beyond_a_limit_of_both_signs(change: float, named: tuple[int, ...]) -> None:
    """A rate of .01 shared by two stretches of one parameter, to both sides: beyond −Φ⁻¹(.0025) = 2.807."""
    assert Agreement(2, 1.0, 1.0, np.array([change])).changed == named


def test_sums_of_parts_are_those_of_single_samples_and_add_up() -> None:
    rng = np.random.default_rng(5)
    Z, psi, slope = rng.normal(size=(2, 3, 9)), rng.normal(size=(2, 9)), rng.uniform(0.5, 1.0, size=(2, 9))
    ends, numbers = np.array([4, 9]), np.arange(9)
    found = PartSums.of(ends, numbers, Z, psi, slope)
    gram, score = np.zeros((2, 3, 3)), np.zeros((2, 3))
    for k in range(9):
        for row in range(2):
            gram[int(k >= 4)] += slope[row, k] * np.outer(Z[row, :, k], Z[row, :, k])
            score[int(k >= 4)] += psi[row, k] * Z[row, :, k]
    assert found.gram == pytest.approx(gram) and found.score == pytest.approx(score)
    halves = [
        PartSums.of(ends, numbers[c], Z[:, :, c], psi[:, c], slope[:, c]) for c in (slice(None, 6), slice(6, None))
    ]
    both = halves[0] + halves[1]
    assert both.gram == pytest.approx(gram) and both.score == pytest.approx(score)
    plain = PartSums.of(ends, numbers, Z, psi, None)
    assert plain.gram.sum(axis=0) == pytest.approx(np.einsum("rin,rjn->ij", Z, Z))


def test_directions_that_a_stretch_sees_by_rounding_alone_count_nothing() -> None:
    """Two stretches with unit S share one direction evenly, H (1 − H) = 1/4; two others belong to the second but for 1e-9."""
    share = np.array([0.5, 1e-9, 1e-9])
    score = np.array([0.7, 1e-4, -1e-4])
    sums = PartSums(np.array([np.diag(share), np.diag(1.0 - share)]), np.array([score, -score]))
    found = agreement(sums, np.eye(3), np.eye(3))
    assert found.ratio == pytest.approx(0.7**2 / 0.25)
    assert found.chance == pytest.approx(chi2.sf(found.ratio, 1))


def test_the_surest_change_comes_first() -> None:
    assert Agreement(2, 1.0, 1.0, np.array([5.0, -9.0, 0.3, 7.0])).changed == (1, 3, 0)


@pytest.mark.parametrize(
    ("ratio", "chance", "expected"), [(1.5, 1e-3, 1.5), (1.5, 0.02, 1.0), (0.2, 1e-3, 1.0), (1.5, 0.0099, 1.5)]
)
def test_variances_are_widened_by_the_ratio_where_chance_does_not_explain_it(
    ratio: float, chance: float, expected: float
) -> None:
    assert Agreement(2, ratio, chance, np.zeros(1)).widening == expected
