"""The page of a fleet: verdict, tables and pictures are those of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from report.browser import drive
from report.test_page import Balance
from studies.fleet_log import EXAMPLE, NAMES, WORN
from studies.small_arm import small_study
from veridyn.report.compared import (
    comparison_page,
    comparison_verdict,
    fleet_page,
    fleet_verdict,
    parameter_figure,
    spread_blocks,
)
from veridyn.studies.compare import Comparison, compare
from veridyn.studies.config.study import load_study
from veridyn.studies.result import Run
from veridyn.studies.run.fleet import FleetRun, MachineRun, run_fleet


@pytest.fixture(scope="module")
def run() -> FleetRun:
    return run_fleet(load_study(EXAMPLE))


def test_the_verdict_names_the_worn_machine(run: FleetRun) -> None:
    found = fleet_verdict(run)
    assert found.grade == "fair" and found.headline == f"8 of 8 machines are identified; {WORN} stands apart."
    assert found.findings[0].startswith(f"{WORN}: h_q2 is ")


def test_pictures_and_tables_are_of_all_machines(run: FleetRun) -> None:
    figure = parameter_figure(run)
    assert len(figure.plots) == 6 and figure.plots[0].title == "h_q2" and figure.plots[0].names == NAMES
    assert [c.label for c in figure.plots[0].legend] == ["fleet", "machine", "stands apart"]
    table = spread_blocks(run)[0]
    assert len(table.rows) == len(run.fleet.names)  # pyright: ignore[reportAttributeAccessIssue]


def test_what_was_left_out_is_on_the_page(run: FleetRun) -> None:
    """A machine and a log that were left out, and a limit that is missed: in the verdict and in sections of their own."""
    odd = {**run.machines, "x": MachineRun()}
    fleet = replace(run.fleet, failed={"x": "no log"}, logs_left_out={"unit-2": {"b.csv": "torn <b>"}})
    part = replace(run, machines=odd, fleet=fleet, missed=("too many.",))
    found = fleet_verdict(part)
    assert found.grade == "poor" and "Left out: x." in found.findings and "Missed: too many." in found.findings
    page = fleet_page(part, part.result("fleet", 0), "veridyn identify fleet.yaml")
    assert "x: no log" in page and "unit-2, b.csv: torn &lt;b&gt;" in page and page.count("too many.") == 1
    assert "8 of 9 machines are identified" in page


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
