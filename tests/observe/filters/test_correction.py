"""The compiled correction against the Python one, on drawn cases with everything that may be wrong with a reading."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.compiled import Bound, Codes, Matrix, Vector, kept, opened
from veridyn.observe.filters.correction import CERTAIN, NOT_POSITIVE, VARIANCE, Corrected, correct_into, corrected_of
from veridyn.observe.filters.update import Correction, Expectation, certain, correct, not_positive, threshold
from veridyn.observe.measurements import Status

ROUNDING = 1e-12  # of the largest number of each field: orders of summation differ


Array = NDArray[np.float64]


class Given(NamedTuple):
    """One correction as the door hands it over."""

    P: Matrix
    H: Matrix
    R: Matrix
    residual: Vector
    flags: Codes
    limit: float
    c: Corrected


@kept
def code_of(address: NDArray[np.int64]) -> int:
    d = opened(address, Given)
    return correct_into(d.P, d.H, d.R, d.residual, d.flags, d.limit, d.c)


def correct_compiled(
    P: Array,
    expected: Expectation,
    innovations: Array,
    flags: NDArray[np.int8],
    gate: float | None = None,
    considered: NDArray[np.bool_] | None = None,
) -> Correction:
    """:func:`veridyn.observe.filters.update.correct` by machine code: same arguments, same answer to rounding, same faults."""
    c = corrected_of(len(P), len(innovations), considered)
    limit = np.inf if gate is None else threshold(gate)
    P, H, R, nu = (np.array(x, dtype=np.float64, order="C") for x in (P, expected.H, expected.R, innovations))
    given = Given(P=P, H=H, R=R, residual=nu, flags=np.array(flags, dtype=np.int8), limit=limit, c=c)
    code = code_of(Bound(given).address)
    if code == NOT_POSITIVE:
        raise not_positive()
    if code == CERTAIN:
        raise certain(float(c.statistics[VARIANCE]))
    nis, dof, log_likelihood, _ = c.statistics.tolist()
    return Correction(c.dx, c.P, c.innovations, c.variances, c.status, nis, int(dof), log_likelihood, c.K)


def same(a: Correction, b: Correction) -> None:
    assert a.status.tolist() == b.status.tolist() and a.dof == b.dof
    for name in ("dx", "P", "innovations", "variances", "nis", "log_likelihood", "K"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert x.shape == y.shape
        assert np.array_equal(np.isnan(x), np.isnan(y)), name
        size = np.nanmax(np.abs(x), initial=0.0)
        assert np.nanmax(np.abs(x - y), initial=0.0) <= ROUNDING * max(size, 1.0), name


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 9),
    st.integers(0, 7),
    st.sampled_from(["diagonal", "correlated", "in pairs"]),
    st.sampled_from([None, 0.5, 0.99]),
    st.integers(0, 2**32 - 1),
)
def test_agrees_with_the_reference(n: int, m: int, noise: str, gate: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    P = A @ A.T / n + 0.1 * np.eye(n)
    R = B @ B.T / max(m, 1) + 0.2 * np.eye(m)
    if noise == "diagonal":
        R = np.diag(np.diag(R))
    if noise == "in pairs":  # blocks: some selections of readings are independent, others are not
        R = R * (np.arange(m)[:, None] // 2 == np.arange(m) // 2)
    flags = rng.choice([int(s) for s in Status], size=m, p=[0.6, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]).astype(np.int8)
    nu = 2.0 * rng.normal(size=m)
    wild = rng.random(m)
    nu[wild < 0.1] = np.nan
    nu[wild > 0.95] = np.inf
    expected = Expectation(np.zeros(m), rng.normal(size=(m, n)), R)
    kept = P.copy()
    for considered in (None, rng.random(n) < 0.3):
        arguments = (P, expected, nu, flags, gate, considered)
        same(correct(*arguments), correct_compiled(*arguments))
    assert np.array_equal(P, kept)


def test_a_perfect_sensor_on_a_state_that_is_not_known() -> None:
    expected = Expectation(np.zeros(1), np.array([[1.0, 2.0]]), np.zeros((1, 1)))
    arguments = (np.eye(2), expected, np.array([0.5]), np.zeros(1, dtype=np.int8))
    same(correct(*arguments), correct_compiled(*arguments))


def test_faults_are_those_of_the_reference() -> None:
    H, flags, nu = np.eye(2), np.zeros(2, dtype=np.int8), np.zeros(2)
    cases = {
        "the noise of the sensors is not positive definite": (np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])),
        "a reading without any uncertainty meets a state without any": (np.zeros((2, 2)), np.zeros((2, 2))),
    }
    for words, (P, R) in cases.items():
        for how in (correct, correct_compiled):
            with pytest.raises(ModelError, match=words):
                how(P, Expectation(np.zeros(2), H, R), nu, flags)


def test_nearly_exact_sensors_leave_a_positive_definite_covariance() -> None:
    """Eigenvalues of the correlations; in two products, P − k vᵀ − v kᵀ, they fall to −.2 here."""
    rng = np.random.default_rng(0)
    n = 8
    for _ in range(40):
        A = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-4.0, 4.0, n)
        P = A.T @ A
        for _ in range(n - 2):
            h = rng.normal(size=n) * 10.0 ** rng.uniform(-3.0, 3.0, n)
            expected = Expectation(np.zeros(1), h[None, :], np.array([[1e-14 * h @ P @ h]]))
            P = correct_compiled(P, expected, np.zeros(1), np.zeros(1, dtype=np.int8)).P
            scale = 1.0 / np.sqrt(np.diag(P))
            assert np.linalg.eigvalsh(P * np.outer(scale, scale))[0] > -1e-12


def all_at_once(P: Array, H: Array, R: Array, nu: Array) -> tuple[Array, Array]:
    """dx and P after the textbook's P Hᵀ (H P Hᵀ + R)⁻¹, in fractions: nothing is rounded but the result."""
    P, H, R, y = (np.vectorize(Fraction, otypes=[object])(x) for x in (P, H, R, nu[:, None]))
    S, right = H @ P @ H.T + R, np.hstack([H @ P, y])
    for i in range(len(S)):
        for k in range(len(S)):
            if k != i:
                share = S[k, i] / S[i, i]
                S[k], right[k] = S[k] - share * S[i], right[k] - share * right[i]
    solved = right / S.diagonal()[:, None]
    gain = P @ H.T
    return (gain @ solved[:, -1]).astype(float), (P - gain @ solved[:, :-1]).astype(float)


@pytest.mark.parametrize("exact", [1e-3, 1e-8, 1e-12], ids=str)
def test_some_states_are_known_and_sensors_nearly_exact(exact: float) -> None:
    """Against fractions, one sensor read twice: the covariance after is right to rounding of the one before, and known states stay."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        n, m = int(rng.integers(2, 8)), 2
        A = rng.normal(size=(n, n))
        P = A @ A.T + 0.01 * np.eye(n)
        known = rng.random(n) < 0.3
        known[0] = False
        P[known], P[:, known] = 0.0, 0.0
        H, R = rng.normal(size=(m, n)), np.diag(exact * (1.0 + rng.random(m)))
        H[-1] = H[0]
        nu = np.sqrt((H @ P * H).sum(axis=1)) * rng.normal(size=m)
        nu[-1] = nu[0] + np.sqrt(exact) * rng.normal()
        found = correct_compiled(P, Expectation(np.zeros(m), H, R), nu, np.zeros(m, dtype=np.int8))
        dx, after = all_at_once(P, H, R, nu)
        sigma = np.where(known, 1.0, np.sqrt(P.diagonal()))
        assert not found.dx[known].any() and not found.P[known].any()
        assert np.abs((found.P - after) / np.outer(sigma, sigma)).max() < 1e-14
        # Of two readings of one sensor their difference, rounded, counts for as much as their noise is small.
        assert np.abs((found.dx - dx) / sigma).max() < 1e-14 / exact + 1e-12
        assert (found.P == found.P.T).all() and np.linalg.eigvalsh(found.P / np.outer(sigma, sigma))[0] > -1e-14
