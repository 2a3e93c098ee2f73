"""What a standing robot can do without falling, and which of it tells most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD
from veridyn.errors import SimulationError
from veridyn.identify.selection import select_motions
from veridyn.papers.humanoid.machine import FOOT, HIP, centre_of_pressure
from veridyn.papers.humanoid.stand import candidates, feasible, largest, standing_motions
from veridyn.papers.humanoid.walk import SIGMA


@pytest.fixture(scope="module")
def motions() -> dict:
    return standing_motions(CAD, duration=3.0)


def test_every_motion_keeps_its_pressure_inside_the_soles(motions: dict) -> None:
    by_name = {c.name: c for c in candidates(3.0)}
    assert set(motions) == set(by_name) and len(motions) == 12
    for name, plan in motions.items():
        assert feasible(CAD, plan, by_name[name].stands_on), name
        cop = centre_of_pressure(CAD, plan)
        sides = [HIP if s == "left" else -HIP for s in by_name[name].stands_on]
        assert cop[:, 1].max() < max(sides) + FOOT[1][1] and cop[:, 1].min() > min(sides) + FOOT[1][0], name
        assert np.abs(plan.qd).max() > 0.3, name


def test_one_foot_does_not_carry_what_two_do(motions: dict) -> None:
    assert not feasible(CAD, motions["bow"], ("left",))


def test_what_no_size_makes_feasible_is_refused() -> None:
    wild = replace(candidates(3.0)[0], stands_on=("left",))
    with pytest.raises(SimulationError, match="no size of this motion"):
        largest(CAD, wild)


def test_free_legs_come_first_and_the_best_subset_tells_most(motions: dict) -> None:
    moves = {name: plan.motion(CAD)[::10] for name, plan in motions.items()}
    chosen = select_motions(CAD, moves, SIGMA, 4, "base")
    print(chosen.summary())
    assert all("free" in name for name in chosen.order[:2])
    assert chosen.stages[-1].excited == 94
    gains = [s.gain for s in chosen.stages]
    assert gains == sorted(gains, reverse=True)
