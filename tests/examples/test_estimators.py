"""The second table of docs/estimators.md is what examples/estimators.py prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from veridyn.errors import IdentificationWarning

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_says_what_the_example_prints() -> None:
    """5 % for other processors; the order of estimators, which is what the page draws from it, exactly."""
    pytest.importorskip("cvxpy")
    page = (ROOT / "docs" / "estimators.md").read_text(encoding="utf-8").splitlines()
    with pytest.warns(IdentificationWarning, match="(?i)noise of the positions"):  # biases least squares
        lines = runpy.run_path(str(ROOT / "examples" / "estimators.py"))["table"]()
    print("\n".join(lines))
    errors = {}
    for line in lines[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
        printed = next((x for x in page if x.startswith(f"| {name} | ") and "mrad" in x), "")
        numbers = [[float(x) for x in re.findall(r"\d+\.\d+", text)] for text in (printed, " ".join(cells))]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.05, abs=0.011), name
        errors[name.split("`")[1]] = numbers[1][3]
    assert errors["OutputError(law=law)"] < errors["Instrumental(law=law)"] < 0.5 * errors["WLS()"]
