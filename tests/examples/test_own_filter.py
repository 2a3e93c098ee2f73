"""The example of a filter on one's own equations finds the drag that its car has."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_drag_is_found_within_its_deviation() -> None:
    found, sigma = runpy.run_path(str(EXAMPLES / "own_filter.py"))["main"]()
    assert abs(found - 4e-4) < 3.0 * sigma and sigma < 2e-5
