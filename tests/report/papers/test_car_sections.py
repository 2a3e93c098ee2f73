"""Sections of the car's page: what stands in them is what the study found."""

from __future__ import annotations

from studies.car_day import day
from veridyn.report.blocks import Listing, Table
from veridyn.report.papers.car_sections import (
    degrees_section,
    reduction_section,
    schemes_section,
    signed,
)


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
