"""The condition of the correlation matrix, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.correlation import correlation, growing


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
