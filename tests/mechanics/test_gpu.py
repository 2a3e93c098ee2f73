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
from veridyn.mechanics import gpu
from veridyn.mechanics.derivatives import inverse_derivatives
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
