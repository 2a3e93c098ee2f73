"""One step of the index-3 form: what it solves, what it projects, and what it does with redundant constraints."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from veridyn.errors import SimulationError
from veridyn.mechanics.natural.dynamics import NaturalState, Stabilisation, initial_state, solve_accelerations
from veridyn.mechanics.natural.index3 import index3_step
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.position import independent, position, velocity
from veridyn.mechanics.natural.system import system_of
from veridyn.model.point_parts import MechanismJoint, Point, uniform_bar

HOW = Stabilisation()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_a_step_stays_closed_and_nears_the_exact_motion(seed: int, dim: int) -> None:
    """With springs, dampers and all loads: Φ, Φ̇ and Φ̈ vanish, and the error of one step falls with h³."""
    rng = np.random.default_rng(800 + seed)
    system = system_of(random_mechanism(rng, dim).mechanism)
    q = position(system)
    names = independent(system, q)
    if not names:
        pytest.skip("a structure does not move")
    qd = velocity(system, q, dict(zip(names, 0.2 * rng.normal(size=len(names)), strict=True)))
    qdd, lam = solve_accelerations(system, q, qd)
    start = NaturalState(0.0, q, qd, qdd, lam)
    ends = []
    for count in (1, 2, 4):
        state = start
        for _ in range(count):
            state = index3_step(system, state, 1e-3 / count, system.forces.values, HOW)
        phi, J = system.constraints.evaluate(state.q)
        bend = system.constraints.jacobian_rate(state.q, state.qd) @ state.qd
        assert np.abs(phi).max() <= 1e-9
        assert np.abs(J @ state.qd).max() <= 1e-9 * max(1.0, np.abs(state.qd).max())
        assert np.abs(J @ state.qdd + bend).max() <= 1e-9 * max(1.0, np.abs(state.qdd).max())
        ends.append(np.concatenate([state.q, state.qd]))
    first, second = np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - ends[2]).max()
    assert second <= max(0.4 * first, 1e-10)  # halving the steps divides the difference by four


def test_multipliers_are_those_of_the_exact_form() -> None:
    """They start warm and follow M q̈ + Φ_qᵀ λ = Q to the order of the step; the projected accelerations do better."""
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    for _ in range(5):
        state = index3_step(system, state, 1e-3, system.forces.values, HOW)
    qdd, lam = solve_accelerations(system, state.q, state.qd)
    assert state.multipliers == pytest.approx(lam, abs=1e-3 * np.abs(lam).max())
    assert state.qdd == pytest.approx(qdd, abs=1e-5)


def test_redundant_constraints_do_no_harm() -> None:
    points = [Point("A", (0, 0), True), Point("P", (1, 0))]
    bar, tie = [uniform_bar("bar", "A", "P", 1, 1)], [MechanismJoint("tie", "distance", "A", "P", 1.0)]
    states = []
    for joints in ((), tie):
        system = system_of(Mechanism.build(points, bar, joints=joints, gravity=(0, -9.81)))
        state = initial_state(system, redundant="keep")
        for _ in range(100):
            state = index3_step(system, state, 5e-3, system.forces.values, HOW)
        states.append(state)
    assert states[1].q == pytest.approx(states[0].q, abs=1e-10)
    assert states[1].qdd == pytest.approx(states[0].qdd, abs=1e-8)


def test_a_step_that_cannot_converge_says_when() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    with pytest.raises(SimulationError, match=r"(?s)fourbar: the step to 0.005 s does not converge in 1 iterations"):
        index3_step(system, state, 5e-3, system.forces.values, Stabilisation(iterations=1))
    wild = NaturalState(0.0, state.q, np.full(5, 1e200), state.qdd, state.multipliers)
    with pytest.raises(SimulationError, match="does not converge"), np.errstate(all="ignore"):
        index3_step(system, wild, 5e-3, system.forces.values, HOW)
