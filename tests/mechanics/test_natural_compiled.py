"""The compiled step against the NumPy one, on mechanisms with everything that can act, and on the four-bar of FACTS 6."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from strangers.pinocchio_natural import natural
from veridyn.errors import SimulationError
from veridyn.mechanics.natural_dynamics import NaturalState, Stabilisation, initial_state, solve_accelerations
from veridyn.mechanics.natural_index3 import index3_step
from veridyn.mechanics.natural_integrate import NaturalMethod, constraint_errors, integrate_natural
from veridyn.mechanics.natural_position import independent, position, velocity
from veridyn.mechanics.natural_system import NaturalSystem, system_of

HOW = Stabilisation()


def same(system: NaturalSystem, start: NaturalState, h: float) -> None:
    by_numpy, by_machine = start, start
    for _ in range(5):
        by_numpy = index3_step(system, by_numpy, h, system.forces.values, HOW)
        by_machine = index3_step(system, by_machine, h, system.forces.values, HOW, "compiled")
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
    motion = integrate_natural(system, t, start, method=NaturalMethod(step=1e-3, engine="compiled"))
    assert motion.column("phi")[-1] == pytest.approx(2.53083926, abs=5e-5)
    assert (constraint_errors(system, motion) < 1e-9).all()


def test_a_step_that_cannot_converge_says_when() -> None:
    system = system_of(fourbar())
    state = initial_state(system, {"phi": 1.0}, {"phi": 1.0})
    with pytest.raises(SimulationError, match=r"the step to 0.005 s does not converge in 1 iterations"):
        index3_step(system, state, 5e-3, system.forces.values, Stabilisation(iterations=1), "compiled")
    wild = NaturalState(0.0, state.q, np.full(5, 1e200), state.qdd, state.multipliers)
    with pytest.raises(SimulationError, match=r"(?s)does not converge.*found inf"):
        index3_step(system, wild, 5e-3, system.forces.values, HOW, "compiled")
