"""Budgets in a report: shares that add up, sources beyond the colours drawn together, and a remedy for each."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.report.blocks import Figure, Table
from veridyn.report.budget import OTHERS, REMEDIES, budget_blocks, shares
from veridyn.report.plots import COLOURS


def test_shares_are_those_of_the_variance() -> None:
    found = shares({"noise": np.array([3.0, 1.0]), "zeros": np.array([4.0, 0.0]), "air": np.zeros(2)})
    assert found["noise"] == pytest.approx([0.36, 1.0]) and found["zeros"] == pytest.approx([0.64, 0.0])
    assert "air" not in found


def test_every_source_has_a_row_and_the_smallest_are_drawn_together() -> None:
    sources = list(REMEDIES)[: COLOURS + 2]
    parts = {name: np.full(14, 1.0 + k) for k, name in enumerate(sources)}
    figure, table = budget_blocks([f"p{k}" for k in range(14)], parts)
    assert isinstance(figure, Figure) and isinstance(table, Table)
    assert [c.label for c in figure.legend] == [*sources[:2:-1], OTHERS]
    assert len(figure.plots) == 2 and [len(p.names) for p in figure.plots] == [7, 7]
    assert [row[0] for row in table.rows] == sources[::-1] and all(row[3] for row in table.rows)
    assert budget_blocks(["a"], {"noise": np.zeros(1)}) == []
