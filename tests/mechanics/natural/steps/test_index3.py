"""Steps of the index-3 form: what they solve and project, what they do with redundant constraints, and compiled ones against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from strangers.natural_steps import index3_step, natural_step
from strangers.pinocchio_natural import natural
from veridyn.errors import SimulationError
from veridyn.mechanics.linear import plan_of
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation, initial_state, solve_accelerations
from veridyn.mechanics.natural.equations.position import independent, position, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, constraint_errors, integrate_natural
from veridyn.model.point_parts import MechanismJoint, Point, uniform_bar

HOW = Stabilisation()


def same(system: NaturalSystem, start: NaturalState, h: float) -> None:
    by_numpy, by_machine = start, start
    for _ in range(5):
        by_numpy = index3_step(system, by_numpy, h, system.forces.values, HOW)
        by_machine = natural_step(system, by_machine, h)
    # Both end their iterations at 1e-10 of the size; accelerations carry that over h².
    for part, tolerance in (("q", 1e-9), ("qd", 1e-7), ("qdd", 1e-5)):
        a, b = getattr(by_numpy, part), getattr(by_machine, part)
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(a).max()), part
    assert by_machine.t == by_numpy.t


def test_equals_numpy_on_random_mechanisms() -> None:
    """One test for all, so that one process compiles."""
    for seed in range(12):
        rng = np.random.default_rng(900 + seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        q = position(system)
        names = independent(system, q)
        if not names:
            continue
        qd = velocity(system, q, dict(zip(names, 0.1 * rng.normal(size=len(names)), strict=True)))
        qdd, lam = solve_accelerations(system, q, qd)
        same(system, NaturalState(0.0, q, qd, qdd, lam), 1e-3)


def test_equals_numpy_in_a_closed_loop_without_angles() -> None:
    system = system_of(natural())
    same(system, initial_state(system), 5e-3)


def test_four_bar() -> None:
    """FACTS 6 at 1 ms within 5e-5 rad, constraints below 1e-9 throughout."""
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    t = np.linspace(0.0, 4.0, 401)
    motion = integrate_natural(system, t, start, method=NaturalMethod(step=1e-3))
    assert motion.column("phi")[-1] == pytest.approx(2.53083926, abs=5e-5)
    assert (constraint_errors(system, motion) < 1e-9).all()


def test_many_steps_in_one_call_are_the_steps_one_by_one() -> None:
    """Loads that change with time, intervals cut differently, and the time of a step that fails."""
    system = system_of(fourbar())
    (load,) = system.forces.loads
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    t = np.array([0.0, 0.01, 0.013, 0.1])

    def push(time: float) -> dict[str, float]:
        return {load: -10.0 + 50.0 * time}

    fast = integrate_natural(system, t, start, push, method=NaturalMethod(step=2e-3))
    state, slow = start, [start]
    for begin, end in itertools.pairwise(t.tolist()):
        count = int(np.ceil((end - begin) / 2e-3 - 1e-9))
        h = (end - begin) / count
        for k in range(count):
            state = index3_step(system, state, h, system.forces.load_values(push(begin + (k + 1) * h)), HOW)
        slow.append(state)
    assert fast.q == pytest.approx(np.array([s.q for s in slow]), abs=1e-9)
    assert fast.qdd == pytest.approx(np.array([s.qdd for s in slow]), abs=1e-5)
    hasty = NaturalMethod(step=2e-3, stabilisation=Stabilisation(iterations=1))
    with pytest.raises(SimulationError, match=r"the step to 0.002 s does not converge"):
        integrate_natural(system, t, start, push, method=hasty)


def test_a_weak_pivot_falls_back_on_pivoting() -> None:
    """The same motion where the order was planned on numbers that have nothing to do with the mechanism's."""
    system = system_of(fourbar())
    start = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    planned = integrate_natural(system, [0.0, 0.5], start, method=NaturalMethod())
    e = system.elimination
    N = e.plan.size
    pattern = np.zeros((N, N), dtype=bool)
    pattern[e.plan.row, e.plan.column] = True
    blind = plan_of(np.eye(N), pattern)
    system.__dict__["elimination"] = e._replace(plan=blind)
    hard = integrate_natural(system, [0.0, 0.5], start, method=NaturalMethod())
    assert hard.q == pytest.approx(planned.q, abs=1e-9)
    assert (constraint_errors(system, hard) < 1e-9).all()


def test_a_compiled_step_that_cannot_converge_says_when() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    with pytest.raises(SimulationError, match=r"the step to 0.005 s does not converge in 1 iterations"):
        natural_step(system, state, 5e-3, method=NaturalMethod(stabilisation=Stabilisation(iterations=1)))
    wild = NaturalState(0.0, state.q, np.full(5, 1e200), state.qdd, state.multipliers)
    with pytest.raises(SimulationError, match=r"(?s)does not converge.*found inf"):
        natural_step(system, wild, 5e-3, method=NaturalMethod(stabilisation=HOW))


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
            state = natural_step(system, state, 1e-3 / count)
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
        state = natural_step(system, state, 1e-3)
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
            state = natural_step(system, state, 5e-3)
        states.append(state)
    assert states[1].q == pytest.approx(states[0].q, abs=1e-10)
    assert states[1].qdd == pytest.approx(states[0].qdd, abs=1e-8)
