"""The page of a fleet: verdict, tables and pictures are those of the run."""

from dataclasses import replace

import pytest

from studies.fleet_log import EXAMPLE, NAMES, WORN
from veridyn.report.fleet import fleet_page, fleet_verdict, parameter_figure, spread_blocks
from veridyn.studies.config.study import load_study
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
    odd = {**run.machines, "unit-2": replace(run.machines["unit-2"], left_out={"b.csv": "torn <b>"}), "x": MachineRun()}
    fleet = replace(run.fleet, failed={"x": "no log"})
    part = replace(run, machines=odd, fleet=fleet, missed=("too many.",))
    found = fleet_verdict(part)
    assert found.grade == "poor" and "Left out: x." in found.findings and "Missed: too many." in found.findings
    page = fleet_page(part, part.result("fleet", 0), "veridyn identify fleet.yaml")
    assert "x: no log" in page and "unit-2, b.csv: torn &lt;b&gt;" in page and "Limits that are missed" in page
    assert "8 of 9 machines are identified" in page
