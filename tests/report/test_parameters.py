"""Estimated numbers in one table: columns for what is known of them, and none for what is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import small_study
from veridyn.report.blocks import Cell, Listing, Text
from veridyn.report.parameters import QuantityLine, quantity_table, singular_values, sum_blocks

PLAIN = QuantityLine("k", "N*m/rad", 20.0, 0.5)


@pytest.mark.parametrize(
    ("more", "heads"),
    [
        ({}, []),
        ({"prior": 18.0}, ["prior"]),
        ({"prior": 18.0, "prior_sigma": 2.0}, ["prior", "± σ"]),
        ({"truth": 20.6}, ["truth", "within 2σ of the truth?"]),
        ({"more": ("estimated",)}, ["state"]),
    ],
)
def test_columns_are_those_that_something_is_known_for(more: dict, heads: list[str]) -> None:
    table = quantity_table([replace(PLAIN, **more)], more=["state"] if "more" in more else ())
    assert list(table.columns) == ["parameter", "unit", "value", "± σ", *heads]
    assert [str(c) for c in table.rows[0][:4]] == ["k", "N·m/rad", "20.00", "0.50"]
    assert table.unit == 1 and list(table.weak) == []


@pytest.mark.parametrize(("share", "filled"), [(1e-9, 0.0), (0.01, 0.0), (1.0, 50.0), (100.0, 100.0), (np.inf, 100.0)])
def test_bars_are_logarithmic(share: float, filled: float) -> None:
    value = 0.0 if np.isinf(share) else 1.0
    cell = quantity_table([QuantityLine("a", "m", value, 0.01 * share if value else 1.0)], percents=True).rows[0][4]
    assert isinstance(cell, Cell) and cell.form == "bar" and cell.percent == pytest.approx(filled)


def test_a_prior_that_is_not_known_has_no_bar() -> None:
    assert quantity_table([QuantityLine("a", "m", np.nan, 1.0)], percents=True).rows[0][4] == "–"


@pytest.mark.parametrize(
    ("off", "text", "place"), [(0.01, "yes, +0.0 σ", 50.1), (-3.0, "no, −3.0 σ", 12.5), (99.0, "no, +99.0 σ", 100.0)]
)
def test_the_truth_has_a_place_beside_the_estimate(off: float, text: str, place: float) -> None:
    cell = quantity_table([replace(PLAIN, truth=PLAIN.value - off * PLAIN.sigma)]).rows[0][-1]
    assert isinstance(cell, Cell) and (cell.form, cell.text) == ("strip", text)
    assert cell.percent == pytest.approx(place, abs=0.1)


def test_what_is_not_determined_is_pale_and_says_so() -> None:
    table = quantity_table([PLAIN, replace(PLAIN, given="not determined", weak=True)])
    assert list(table.weak) == [1] and table.rows[1][3] == "not determined"


def test_sums_and_what_has_no_effect_are_named() -> None:
    base = small_study().fit.base
    text, listing, *rest = sum_blocks(base)
    assert isinstance(text, Text) and isinstance(listing, Listing) and list(listing.items) == list(base.relations())
    names = [base.parameters.names[k] for k in base.dead]
    assert len(rest) == bool(names)
    never = sum_blocks(base, names)[2:]
    assert all("whatever the motion" in b.text for b in never if isinstance(b, Text)) and len(never) == bool(names)


def test_singular_values_show_what_is_kept_and_what_is_dropped() -> None:
    base = small_study().fit.base
    drawn = singular_values(base)
    assert drawn is not None
    assert [len(c.path.split()) for c in drawn.curves] == [base.count, len(base.singular_values) - base.count]
    whole = replace(base, singular_values=np.array([3.0, 1.0]), columns=base.columns[:2])
    drawn = singular_values(whole)
    assert drawn is not None
    assert [c.kind for c in drawn.curves] == ["kept"]
    assert singular_values(replace(base, singular_values=np.zeros(0))) is None


def test_a_table_without_units_has_no_column_for_them() -> None:
    table = quantity_table([replace(PLAIN, unit="")])
    assert list(table.columns) == ["parameter", "value", "± σ"] and list(table.strong) == [1] and table.unit is None
