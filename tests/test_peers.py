"""The comparison with other tools: its simulations of the positioning axis agree, its fits find the parameters, its lines are complete."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peer_line import Line, lines_of
from benchmarks.peers_emps import by_scipy, by_veridyn, in_veridyn, simulated

TRUTH = np.array([95.0, 210.0, 20.0, -3.0])  # M, Fv, Fc, c
START = 0.01


@pytest.fixture(scope="module")
def force() -> np.ndarray:
    """N at 1 kHz: the axis moves both ways, rests in between, and turns round without a rest."""
    t = np.arange(3000) / 1000.0
    return 60.0 * np.sin(4.0 * t) * (t < 2.2) + (10.0 + 3.0 * np.sin(9.0 * t)) * (t >= 2.2) + TRUTH[3]


def test_the_axis_moves_alike_in_both_simulations(force: np.ndarray) -> None:
    """Steps of 1 ms of order one beside steps of 4 ms of order two, on 0.1 m of travel; both stand still in the end."""
    ours, theirs = in_veridyn(TRUTH, force, START), simulated(TRUTH, force, START)
    assert np.ptp(theirs) > 0.05
    assert np.abs(ours - theirs).max() < 1e-4
    assert (
        np.ptp(ours[-200:]) < 16e-6 * 6.0 / (12.0 * TRUTH[0]) and np.ptp(theirs[-200:]) == 0.0
    )  # h² ΔF/(12 M), see dry_friction


@pytest.mark.slow
def test_the_fit_by_scipy_finds_the_axis(force: np.ndarray) -> None:
    """On what its own simulation makes of the truth."""
    assert by_scipy(simulated(TRUTH, force, START), force, START) == pytest.approx(TRUTH, rel=2e-2)


@pytest.mark.slow
def test_the_fit_by_veridyn_finds_the_axis(force: np.ndarray) -> None:
    """On what its own simulation makes of the truth."""
    assert by_veridyn(in_veridyn(TRUTH, force, START), force, START) == pytest.approx(TRUTH, rel=2e-2)


def test_a_line_of_the_table() -> None:
    line = Line("EMPS, simulated", "veridyn", 5.2, "mm", 8.8, True, lines_of(by_veridyn))
    assert 5 < line.lines < 30
