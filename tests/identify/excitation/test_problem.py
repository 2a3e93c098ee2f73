"""Criteria of the information, against their definitions and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.excitation.problem import CRITERIA, check_criterion, correlation, criterion, growing


def information(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Psi = rng.normal(size=(40, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0])
    return Psi, Psi.T @ Psi


def test_values_are_those_of_the_definitions() -> None:
    Psi, M = information()
    typical = np.array([1.0, 0.1, 10.0, 0.3, 2.0])
    C = np.linalg.inv(M)
    scaled = C / np.outer(typical, typical)
    assert criterion("d", M, typical)[0] == pytest.approx(-np.log(np.linalg.det(M)) / 5)
    assert criterion("a", M, typical)[0] == pytest.approx(np.log(np.trace(scaled)))
    assert criterion("e", M, typical)[0] == pytest.approx(np.log(np.linalg.eigvalsh(scaled)[-1]))
    assert criterion("condition", M, typical)[0] == pytest.approx(np.log(np.linalg.cond(Psi)))


@pytest.mark.parametrize("name", CRITERIA)
def test_gradients_are_those_of_differences(name: str) -> None:
    _, M = information()
    typical = np.array([1.0, 0.1, 10.0, 0.3, 2.0])
    _, G = criterion(name, M, typical)
    rng = np.random.default_rng(1)
    for _ in range(5):
        E = rng.normal(size=M.shape) * np.sqrt(np.outer(np.diag(M), np.diag(M)))
        E, h = E + E.T, 1e-6
        slope = (criterion(name, M + h * E, typical)[0] - criterion(name, M - h * E, typical)[0]) / (2 * h)
        assert np.trace(G @ E) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_d_does_not_care_about_units() -> None:
    """det(SMS) = det(S)² det(M), so two designs keep their difference in any units: the reason for (22)."""
    _, M = information()
    _, other = information(1)
    S = np.diag([1.0, 1e3, 1e-3, 5.0, 0.2])
    ones = np.ones(5)
    plain = criterion("d", M, ones)[0] - criterion("d", other, ones)[0]
    scaled = criterion("d", S @ M @ S, ones)[0] - criterion("d", S @ other @ S, ones)[0]
    assert scaled == pytest.approx(plain)
    plain = criterion("condition", M, ones)[0] - criterion("condition", other, ones)[0]
    assert criterion("condition", S @ M @ S, ones)[0] - criterion("condition", S @ other @ S, ones)[0] != pytest.approx(
        plain, abs=1e-3
    )


def test_an_unknown_criterion_is_refused() -> None:
    with pytest.raises(DataError, match="no criterion 'c'"):
        check_criterion("c")


def test_growth_is_that_of_the_definition_and_units_do_not_count() -> None:
    rng = np.random.default_rng(0)
    Psi = rng.normal(size=(50, 4))
    Psi[:, 3] = Psi[:, 1] + 0.01 * rng.normal(size=50)  # almost the same column
    names, steps = ("a", "b", "c", "d"), {"first": ["a", "b"], "one more": ["c"], "one too many": ["d"]}
    found = growing(Psi.T @ Psi, names, steps)
    P = np.linalg.inv(Psi.T @ Psi)
    rho = P / np.sqrt(np.outer(np.diag(P), np.diag(P)))
    assert found[2].condition == pytest.approx(np.linalg.cond(rho)) and found[2].parameters == 4
    assert found[0].condition < 3.0 < 100.0 < found[2].condition and set(found[2].between) == {"b", "d"}
    S = np.diag([1.0, 1e3, 1e-3, 7.0])
    again = growing(S @ Psi.T @ Psi @ S, names, steps)
    assert [g.condition for g in again] == pytest.approx([g.condition for g in found])
    assert np.diag(correlation(P)) == pytest.approx(np.ones(4))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(DataError, match="no parameter 'z'"):
        growing(np.eye(2), ("a", "b"), {"x": ["z"]})


def test_correlation() -> None:
    """(11) of paper 002: ones on the diagonal, and what the covariance says beside it."""
    C = np.array([[4.0, 1.0], [1.0, 9.0]])
    assert correlation(C) == pytest.approx(np.array([[1.0, 1 / 6], [1 / 6, 1.0]]))
