"""The example of a filter on one's own equations finds the drag that its car has."""

import runpy
from pathlib import Path

import numba
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_drag_is_found_within_its_deviation(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its functions as they are written, by the filter's reference; compiled, which takes 16 s, in the slow form."""
    if not compiled:
        monkeypatch.setattr(numba, "njit", lambda function: function)
    found, sigma = runpy.run_path(str(EXAMPLES / "own_filter.py"))["main"]()
    assert abs(found - 4e-4) < 3.0 * sigma and sigma < 2e-5
