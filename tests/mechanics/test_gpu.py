"""Batches by programs for a device: the numbers of Pinocchio, whatever the arrays come from. NumPy stands in for the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from batch_machines import MACHINES, arm, car, states
from numpy_processor import NumpyProcessor
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_tree
from veridyn.errors import DataError, DeviceError, ModelError
from veridyn.mechanics import gpu
from veridyn.mechanics.derivatives import inverse_derivatives
from veridyn.mechanics.tree.tree import Tree

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
    tree = MACHINES[name]()
    m, oracle = states(tree, SAMPLES), PinModel(tree)
    np.testing.assert_allclose(
        gpu.inverse_dynamics(tree, m, processor=CPU), oracle.inverse_dynamics(m), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(gpu.mass_matrix(tree, m, processor=CPU), oracle.mass_matrix(m.q), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gpu.regressor(tree, m, processor=CPU), oracle.regressor(m), rtol=1e-10, atol=1e-10)
    gamma = np.column_stack([np.zeros((SAMPLES, len(tree.rows) - tree.n)), m.forces])
    found = gpu.forward_dynamics(tree, m, processor=CPU)[:, len(tree.rows) - tree.n :]
    np.testing.assert_allclose(found, oracle.forward_dynamics(m, gamma).qdd, rtol=1e-8, atol=1e-8)


def test_derivatives_are_those_of_the_processor() -> None:
    tree = arm()
    m = states(tree, SAMPLES)
    expected = inverse_derivatives(tree, m)
    by_q, by_qd = gpu.inverse_derivatives(tree, m, processor=CPU)
    np.testing.assert_allclose(by_q, expected.by_q, atol=1e-10)
    np.testing.assert_allclose(by_qd, expected.by_qd, atol=1e-10)


def test_arrays_on_a_device_and_wrenches_are_taken() -> None:
    tree = car()
    m = states(tree, SAMPLES)
    wrench = np.random.default_rng(2).normal(size=(SAMPLES, 6))
    here = gpu.DeviceMotion(q=m.q, qd=m.qd, qdd=m.qdd, base=of_base(m), wrenches={tree.bodies[3].name: wrench})
    there = vd.Motion(m.t, m.q, m.qd, m.qdd, m.base, wrenches={tree.bodies[3].name: wrench})
    found = gpu.inverse_dynamics(tree, here, processor=CPU)
    np.testing.assert_allclose(found, PinModel(tree).inverse_dynamics(there), rtol=1e-10, atol=1e-10)


def test_every_set_of_parameters_is_applied_to_all_samples() -> None:
    tree = arm()
    m = states(tree, SAMPLES)
    draws = tree.parameters.values * np.array([[1.0], [1.5], [0.5]])
    found = gpu.inverse_dynamics(tree, m, draws, processor=CPU)
    assert found.shape == (3, SAMPLES, tree.n)
    for one, values in zip(found, draws, strict=True):
        np.testing.assert_allclose(one, vd.inverse_dynamics(tree, m, parameters=values), rtol=1e-12, atol=1e-12)
    assert gpu.mass_matrix(tree, m, draws, processor=CPU).shape == (3, SAMPLES, tree.n, tree.n)


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
    tree = arm()
    m = states(tree, SAMPLES)
    lent = gpu.DeviceMotion(q=Lent(m.q), qd=Lent(m.qd), qdd=Lent(m.qdd))
    found = gpu.inverse_dynamics(tree, lent, processor=CPU)
    np.testing.assert_array_equal(found, gpu.inverse_dynamics(tree, m, processor=CPU))
    single = gpu.DeviceMotion(q=Lent(m.q.astype(np.float32)), qd=m.qd, qdd=m.qdd)
    with pytest.raises(DataError, match=r"hold doubles.*\n.*float64, found float32"):
        gpu.inverse_dynamics(tree, single, processor=CPU)


def test_what_is_missing_or_wrong_is_named() -> None:
    tree = arm()
    m = states(tree, SAMPLES)
    with pytest.raises(DataError, match="no array for an input"):
        gpu.inverse_dynamics(tree, gpu.DeviceMotion(q=m.q, qd=m.qd), processor=CPU)
    with pytest.raises(DataError, match="wrong shape"):
        gpu.inverse_dynamics(tree, gpu.DeviceMotion(q=m.q, qd=m.qd[:3], qdd=m.qdd), processor=CPU)
    with pytest.raises(DataError, match=r"one row each.*\n.*found \(2, 3\)"):
        gpu.inverse_dynamics(tree, m, np.ones((2, 3)), processor=CPU)
    with pytest.raises(DeviceError, match="too little memory for the results of 6 samples"):
        gpu.regressor(tree, m, processor=NumpyProcessor(free=100))


def test_a_singular_mass_matrix_is_refused() -> None:
    tree = random_tree(np.random.default_rng(1), 2, kinds=("turning",))
    massless = Tree.build(tree.bodies, inertia={b.name: np.zeros(10) for b in tree.bodies})
    with np.errstate(all="ignore"), pytest.raises(ModelError, match="nearly singular"):
        gpu.forward_dynamics(massless, states(tree, 2), processor=CPU)
