"""Many simulations at once: the motions of an independent integrator of high order. NumPy stands in for the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from batch_machines import arm, car
from numpy_processor import NumpyProcessor
from strangers.random_trees import random_open_machine
from veridyn.errors import DataError
from veridyn.mechanics.gpu_runs import integrate
from veridyn.mechanics.integrate import Inputs
from veridyn.mechanics.integrate import integrate as one_by_one

CPU = NumpyProcessor()
TIMES = np.linspace(0.0, 0.1, 3)


def starts(runs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return 0.3 * rng.normal(size=(runs, 7)), 0.3 * rng.normal(size=(runs, 7))


def test_runs_are_those_of_an_integrator_of_eighth_order() -> None:
    """The classical method at 5 ms leaves 1e-7 of these motions; DOP853 is at 1e-9."""
    q, qd = starts(2)
    torque = np.full((2, 7), 0.2)
    found = integrate(arm(), TIMES, q, qd, torque, steps=10, processor=CPU)
    for k in range(2):
        true = one_by_one(arm(), TIMES, q[k], qd[k], Inputs(forces=lambda t, q, qd: torque[0])).motion
        np.testing.assert_allclose(found.q[:, k], true.q, atol=1e-6)
        np.testing.assert_allclose(found.qd[:, k], true.qd, atol=1e-5)


def test_the_error_falls_with_the_fourth_power_of_the_step() -> None:
    machine = random_open_machine(np.random.default_rng(8), 2, kinds=("turning",))
    q, qd = np.ones((1, machine.n)), np.full((1, machine.n), 3.0)
    ends = [integrate(machine, TIMES[[0, 2]], q, qd, steps=n, processor=CPU).q[-1] for n in (5, 10, 80)]
    ratio = np.abs(ends[0] - ends[2]).max() / np.abs(ends[1] - ends[2]).max()
    assert 12 < ratio < 22


def test_sets_of_parameters_times_initial_states() -> None:
    q, qd = starts(2)
    draws = arm().parameters.values * np.array([[1.0], [1.3], [0.7]])
    every = integrate(arm(), TIMES, q, qd, parameters=draws, processor=CPU)
    assert every.q.shape == (3, 3, 2, 7)
    alone = integrate(arm(), TIMES, q, qd, parameters=draws[1], processor=CPU)
    np.testing.assert_allclose(every.q[:, 1], alone.q, rtol=1e-13, atol=1e-13)


def test_forces_may_follow_the_state() -> None:
    q, qd = starts(2)
    damped = integrate(arm(), TIMES, q, qd, lambda t, q, qd: -5.0 * qd, steps=5, processor=CPU)
    true = one_by_one(arm(), TIMES, q[0], qd[0], Inputs(forces=lambda t, q, qd: -5.0 * qd)).motion
    np.testing.assert_allclose(damped.q[:, 0], true.q, atol=1e-5)


def test_what_cannot_be_simulated_is_refused() -> None:
    q, qd = starts(1)
    with pytest.raises(DataError, match="machines on a fixed base"):
        integrate(car(), TIMES, np.zeros((1, 14)), np.zeros((1, 14)), processor=CPU)
    with pytest.raises(DataError, match="times must rise"):
        integrate(arm(), [0.0, 0.0], q, qd, processor=CPU)
    with pytest.raises(DataError, match="initial states have the wrong shape"):
        integrate(arm(), TIMES, q[:, :3], qd, processor=CPU)
