"""Blocks about designs, trials and cut-offs: every number that was found is on the page."""

from __future__ import annotations

import numpy as np

from veridyn.identify.estimators.gauss_markov import ArrayEstimate
from veridyn.identify.estimators.likelihood import Scan
from veridyn.identify.excitation.problem import Growth
from veridyn.papers.hexapod.comparison import ESTIMATORS, Trials
from veridyn.papers.hexapod.page_trials import design_trials_blocks, growth_blocks, scan_blocks
from veridyn.papers.hexapod.trials import DesignTrials

NAMES = (*"ABCDEFGHIJ", "r1", "v1")


def made(size: float, seed: int) -> Trials:
    rng = np.random.default_rng(seed)
    values = {name: 1.0 + size * rng.normal(size=(30, 12)) for name in ESTIMATORS}
    return Trials(
        NAMES, np.ones(12), values, {n: np.full((30, 12), size) for n in ESTIMATORS}, np.full((30, 12), 0.6 * size)
    )


def test_trials_of_two_designs() -> None:
    both = DesignTrials(made(0.1, 0), made(0.2, 1))
    figure, table, estimators = design_trials_blocks(both, {"A": "p1"})
    assert len(figure.plots) == 10 and figure.plots[0].title == "p1"
    assert len(table.rows) == 12 and table.rows[0][0] == "p1" and table.rows[11][0] == "v1"
    assert [row[0] for row in estimators.rows][-1] == "Gauss-Markov across rows, memory ignored"
    assert 0.3 < float(table.rows[0][4]) < 0.8


def test_the_staircase_of_the_cut_off() -> None:
    h = np.arange(1, 9)
    cost = np.where(h < 5, 1e9, 100.0 - h)
    found = Scan(
        harmonics=h,
        cost=cost,
        aic=cost + 12 * h,
        bic=cost + 40 * h,
        criterion="bic",
        chosen=5,
        estimate=ArrayEstimate(np.zeros(1), np.eye(1)),
    )
    text, figure = scan_blocks(found)
    assert "prefers 8 harmonics, AIC 5 and BIC 5" in text.text and len(figure.legend) >= 3


def test_the_growth_of_the_friction_model() -> None:
    grown = (Growth("rigid bodies", 10, 100.0, 0.9, ("A", "B")), Growth("dry friction", 12, 250.0, 0.95, ("A", "r1")))
    table, text = growth_blocks(grown, {"A": "p1"})
    assert table.rows[1] == ["dry friction", "12", "250", "2.50", "0.950", "p1 and r1"]
    assert "2.50 times, is by dry friction" in text.text
