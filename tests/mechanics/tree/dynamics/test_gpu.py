"""Batches by programs for a device: the numbers of Pinocchio, whatever the arrays come from. NumPy stands in for the GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from batch_machines import MACHINES, arm, car, states
from numpy_processor import NumpyProcessor
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine
from veridyn.errors import DataError, DeviceError, ModelError
from veridyn.mechanics.system.integrate import Inputs
from veridyn.mechanics.system.integrate import integrate as one_by_one
from veridyn.mechanics.tree.dynamics import gpu
from veridyn.mechanics.tree.dynamics.forward import inverse_derivatives
from veridyn.mechanics.tree.dynamics.gpu import integrate
from veridyn.model.machine import Machine

SAMPLES = 6
CPU = NumpyProcessor()


def of_base(m):
    b = m.base
    return (
        None
        if b is None
        else gpu.DeviceBase(omega=b.omega, omega_dot=b.omega_dot, acceleration=b.acceleration, velocity=b.velocity)
    )


@pytest.mark.parametrize("name", MACHINES)
def test_dynamics_are_pinocchios(name: str) -> None:
    machine = MACHINES[name]()
    m, oracle = states(machine, SAMPLES), PinModel(machine)
    np.testing.assert_allclose(
        gpu.inverse_dynamics(machine, m, processor=CPU), oracle.inverse_dynamics(m), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(
        gpu.mass_matrix(machine, m, processor=CPU), oracle.mass_matrix(m.q), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(gpu.regressor(machine, m, processor=CPU), oracle.regressor(m), rtol=1e-10, atol=1e-10)
    gamma = np.column_stack([np.zeros((SAMPLES, len(machine.rows) - machine.n)), m.forces])
    found = gpu.forward_dynamics(machine, m, processor=CPU)[:, len(machine.rows) - machine.n :]
    np.testing.assert_allclose(found, oracle.forward_dynamics(m, gamma).qdd, rtol=1e-8, atol=1e-8)


def test_derivatives_are_those_of_the_processor() -> None:
    machine = arm()
    m = states(machine, SAMPLES)
    expected = inverse_derivatives(machine, m)
    by_q, by_qd = gpu.inverse_derivatives(machine, m, processor=CPU)
    np.testing.assert_allclose(by_q, expected.by_q, atol=1e-10)
    np.testing.assert_allclose(by_qd, expected.by_qd, atol=1e-10)


def test_arrays_on_a_device_and_wrenches_are_taken() -> None:
    machine = car()
    m = states(machine, SAMPLES)
    wrench = np.random.default_rng(2).normal(size=(SAMPLES, 6))
    here = gpu.DeviceMotion(q=m.q, qd=m.qd, qdd=m.qdd, base=of_base(m), wrenches={machine.body_names[3]: wrench})
    there = vd.Motion(m.t, m.q, m.qd, m.qdd, m.base, wrenches={machine.body_names[3]: wrench})
    found = gpu.inverse_dynamics(machine, here, processor=CPU)
    np.testing.assert_allclose(found, PinModel(machine).inverse_dynamics(there), rtol=1e-10, atol=1e-10)


def test_every_set_of_parameters_is_applied_to_all_samples() -> None:
    machine = arm()
    m = states(machine, SAMPLES)
    draws = machine.parameters.values * np.array([[1.0], [1.5], [0.5]])
    found = gpu.inverse_dynamics(machine, m, draws, processor=CPU)
    assert found.shape == (3, SAMPLES, machine.n)
    for one, values in zip(found, draws, strict=True):
        np.testing.assert_allclose(one, vd.inverse_dynamics(machine, m, parameters=values), rtol=1e-12, atol=1e-12)
    assert gpu.mass_matrix(machine, m, draws, processor=CPU).shape == (3, SAMPLES, machine.n, machine.n)


class Lent:
    """An array of another library: all it has is DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_others_are_taken_by_dlpack() -> None:
    machine = arm()
    m = states(machine, SAMPLES)
    lent = gpu.DeviceMotion(q=Lent(m.q), qd=Lent(m.qd), qdd=Lent(m.qdd))
    found = gpu.inverse_dynamics(machine, lent, processor=CPU)
    np.testing.assert_array_equal(found, gpu.inverse_dynamics(machine, m, processor=CPU))
    single = gpu.DeviceMotion(q=Lent(m.q.astype(np.float32)), qd=m.qd, qdd=m.qdd)
    with pytest.raises(DataError, match=r"hold doubles.*\n.*float64, found float32"):
        gpu.inverse_dynamics(machine, single, processor=CPU)


def test_what_is_missing_or_wrong_is_named() -> None:
    machine = arm()
    m = states(machine, SAMPLES)
    with pytest.raises(DataError, match="no array for an input"):
        gpu.inverse_dynamics(machine, gpu.DeviceMotion(q=m.q, qd=m.qd), processor=CPU)
    with pytest.raises(DataError, match="wrong shape"):
        gpu.inverse_dynamics(machine, gpu.DeviceMotion(q=m.q, qd=m.qd[:3], qdd=m.qdd), processor=CPU)
    with pytest.raises(DataError, match=r"one row each.*\n.*found \(2, 3\)"):
        gpu.inverse_dynamics(machine, m, np.ones((2, 3)), processor=CPU)
    with pytest.raises(DeviceError, match="too little memory for the results of 6 samples"):
        gpu.regressor(machine, m, processor=NumpyProcessor(free=100))


def test_a_singular_mass_matrix_is_refused() -> None:
    machine = random_open_machine(np.random.default_rng(1), 2, kinds=("turning",))
    massless = Machine.build([replace(link, inertia=np.zeros(10)) for link in machine.links], machine.joints)
    with np.errstate(all="ignore"), pytest.raises(ModelError, match="nearly singular"):
        gpu.forward_dynamics(massless, states(machine, 2), processor=CPU)


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
