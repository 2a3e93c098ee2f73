"""The page of chapter 5 is the one that its runs make."""

from __future__ import annotations

import pytest
from docs.claims_rules import Done, results
from docs.thesis_tables import COMMAND, FOREIGN, OBSERVERS, PAGE, SEEDS, THESIS, ThesisTable, page, table, virtual_table

from veridyn.papers.buggy import virtual_sensors
from veridyn.papers.buggy.observers import UNITS


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(results())


@pytest.mark.parametrize("of", [*THESIS, *FOREIGN], ids=lambda of: of.case)
def test_cells_are_means_over_the_seeds(of: ThesisTable) -> None:
    runs = {}
    for seed in SEEDS:
        figures = {f"{end}_{q}_{name}": 1.0 + seed for q in UNITS for name in OBSERVERS for end in ("rms", "max")}
        figures |= {f"nees_{name}": 0.5 for name in OBSERVERS if name != "plain"}
        runs[COMMAND.format(case=of.case, seed=seed)] = Done(0.1, figures)
    lines = table(of, runs)
    assert len(lines) == 3 + len(UNITS)
    assert all(line.count("3 (3)") == len(OBSERVERS) for line in lines[2:-1])
    assert lines[-1].count("0.5") == len(OBSERVERS) - 1
    without = {
        run: Done(0.1, {k: v for k, v in d.figures.items() if "force_alone" not in k and "nees" not in k})
        for run, d in runs.items()
    }
    assert len(table(of, without)) == 2 + len(UNITS) and table(of, without)[2].count("| – |") == 1
    assert table(of, {}) == [f"{of.heading}: no runs yet."]


def test_a_run_that_lost_the_vehicle_is_told() -> None:
    of, runs = THESIS[3], {}
    for seed in SEEDS:
        kept = [name for name in OBSERVERS if seed != 2 or name != "force_alone"]
        figures = {f"{end}_{q}_{name}": 1.0 + seed for q in UNITS for name in kept for end in ("rms", "max")}
        figures |= {f"nees_{name}": 0.5 for name in kept if name != "plain"}
        runs[COMMAND.format(case=of.case, seed=seed)] = Done(0.1, figures)
    lines = table(of, runs)
    assert lines[-1] == "“forces alone” lost the vehicle in 1 of 5 runs; its means are of the others."
    assert lines[2].count("3 (3)") == len(OBSERVERS)


def test_virtual_sensors_have_their_errors_and_shares() -> None:
    of, figures = THESIS[1], {}
    for q in virtual_sensors.UNITS:
        figures[f"virtual_changes_{q}"] = 9.0
        for name in OBSERVERS:
            figures |= {f"virtual_rms_{q}_{name}": 2.0, f"virtual_inside_{q}_{name}": 0.95}
    runs = {COMMAND.format(case=of.case, seed=seed): Done(0.1, figures) for seed in SEEDS}
    lines = virtual_table(of, runs)
    assert len(lines) == 2 + len(virtual_sensors.UNITS)
    assert all(line.count("2 (0.95)") == 4 and "| 9 |" in line for line in lines[2:])
    assert virtual_table(of, {}) == [f"{of.heading}: no runs yet."]
