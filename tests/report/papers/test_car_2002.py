"""The section on paper 001: Table 4, and Figures 2 to 4 as curves of the simulated drives."""

from __future__ import annotations

from studies.car_day import day
from veridyn.report.blocks import Figure, Table
from veridyn.report.papers.car_2002 import ROWS, second_section
from veridyn.studies.papers.car.bent_2002 import TEN_ROWS_2002


def test_sixteen_and_their_checks() -> None:
    made = second_section(day().second)
    tables = [b for b in made.blocks if isinstance(b, Table)]
    assert len(tables[0].rows) == 16 and len(tables[-1].rows) == 10
    assert {cells[0] for cells in tables[-1].rows} == set(TEN_ROWS_2002)


def test_figures_2_to_4_are_curves_of_measured_and_computed_rows() -> None:
    """Chassis and suspensions on the ramps, and braking, each with Y and W·X as two curves."""
    figures = [b for b in second_section(day().second).blocks if isinstance(b, Figure) and b.title.startswith("Figure")]
    assert [f.title[:8] for f in figures] == ["Figure 2", "Figure 3", "Figure 4"]
    assert [len(f.plots) for f in figures[:2]] == [6, 4] and len(figures[2].plots) >= 5
    assert [p.title for f in figures[:2] for p in f.plots] == list(ROWS.values())
    for figure in figures:
        assert {c.label for c in figure.legend} == {"measured, Y", "computed, W·X"}
        assert all(len(c.path) > 500 for p in figure.plots for c in p.curves if c.label)
