"""Sections of the car's page: what stands in them is what the study found."""

from __future__ import annotations

from papers.car.car_day import day
from veridyn.papers.car.known_2002 import TEN_ROWS_2002
from veridyn.papers.car.page_sections import (
    ROWS,
    degrees_section,
    reduction_section,
    schemes_section,
    second_section,
    signed,
)
from veridyn.report.blocks import Figure, Listing, Table


def test_signs() -> None:
    assert (signed(-1.25), signed(0.5, 2)) == ("−1.2", "+0.50")


def test_every_step_of_the_reduction_has_its_reason() -> None:
    made = reduction_section(day().study)
    table, reasons = made.blocks[0], made.blocks[1]
    assert isinstance(table, Table) and isinstance(reasons, Listing)
    assert len(table.rows) == len(reasons.items) == len(day().study.reductions)


def test_schemes_stand_side_by_side() -> None:
    table = schemes_section(day().study).blocks[1]
    assert isinstance(table, Table) and table.columns[1:] == ("as printed", *[v.name for v in day().study.schemes[1:]])


def test_differences_between_the_cars_are_listed() -> None:
    assert "agree within 1 %" in degrees_section(day().study).lead


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
