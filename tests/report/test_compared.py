"""The page of a comparison: every run a column, every parameter a row, a verdict that follows the deviations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from report.browser import drive
from report.test_page import Balance
from studies.small_arm import small_study
from veridyn.report.compared import comparison_page, comparison_verdict
from veridyn.studies.compare import Comparison, compare
from veridyn.studies.result import Run


def compared(folder: Path, *shifts: float) -> Comparison:
    """Runs of one study whose first parameter is moved by so many of its deviations; the last run lacks the second parameter."""
    rows = small_study().parameters
    runs = []
    for k, shift in enumerate(shifts):
        moved = replace(rows[0], value=rows[0].value + shift * rows[0].sigma)
        kept = rows[2:] if k + 1 == len(shifts) else rows[1:]
        result = small_study().result("small", seed=1, quick=False, inputs={"log": f"{k:064}", "model": "1" * 64})
        runs.append(folder / f"run<{k}>")
        runs[-1].mkdir()
        Run(runs[-1]).write_result(replace(result, parameters=(moved, *kept)))
    return compare(*runs)


def test_the_page_holds_every_run_and_is_well_formed(tmp_path: Path) -> None:
    found = compared(tmp_path, 0.0, 1.0, 20.0)
    text = comparison_page(found, "veridyn compare a b c")
    parser = Balance()
    parser.feed(text)
    assert parser.open == [] and "run<" not in text and text.count("run&lt;2&gt;") >= 4
    assert all(f">{d.name}<" in text for d in found.parameters)
    assert "result.json" not in text and f"lacks {small_study().parameters[1].name}." in text


@pytest.mark.parametrize(("shift", "grade"), [(1.0, "good"), (20.0, "fair")])
def test_the_verdict_follows_the_deviations(tmp_path: Path, shift: float, grade: str) -> None:
    verdict = comparison_verdict(compared(tmp_path, 0.0, 0.0, shift))
    assert verdict.grade == grade and "log" in verdict.findings[-1]
    assert (small_study().parameters[0].name in verdict.findings[0]) == (grade == "fair")


def test_browser_bars_give_the_distance_of_each_run(tmp_path: Path) -> None:
    """Values 0, 1 and 20 deviations: 7 is their mean."""
    text = comparison_page(compared(tmp_path, 0.0, 1.0, 20.0), "veridyn compare a b c")
    script = 'const e = all(".canvas[data-x]")[0]; pointer(e, "pointermove", 0.01); return values(e);'
    found = drive(text, script, tmp_path)
    assert found == pytest.approx({"run<0>": -7.0, "run<1>": -6.0, "run<2>": 13.0}, abs=0.01)
