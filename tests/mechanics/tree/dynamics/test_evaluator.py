"""One state a call: equal to the NumPy reference on random machines, and to Pinocchio on an arm; wrong states are refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import veridyn as vd
from batch_machines import MACHINES, states
from identify.wheel_rig import rig
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import DataError, ModelError
from veridyn.files.access import shipped
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.elements.element import drive_gain


@pytest.mark.parametrize("name", MACHINES)
def test_equal_to_the_reference_state_by_state(name: str) -> None:
    machine = MACHINES[name]()
    motion = states(machine, 5)
    one = Evaluator(machine)
    base, first = motion.base, len(machine.rows) - machine.n
    gamma, D = inverse_dynamics(machine, motion, engine="numpy"), regressor(machine, motion, engine="numpy")
    moved, M = forward_dynamics(machine, motion, engine="numpy"), mass_matrix(machine, motion.q, engine="numpy")
    assert motion.forces is not None
    for k in range(len(motion)):
        q, qd, qdd, forces = motion.q[k], motion.qd[k], motion.qdd[k], motion.forces[k]
        if base is not None:
            one.omega[:], one.omega_dot[:], one.acceleration[:] = base.omega[k], base.omega_dot[k], base.acceleration[k]
            assert base.velocity is not None
            one.velocity[:] = base.velocity[k]
        assert one.inverse_dynamics(q, qd, qdd) == pytest.approx(gamma[k], rel=1e-11, abs=1e-10)
        assert one.regressor(q, qd, qdd) == pytest.approx(D[k], rel=1e-11, abs=1e-10)
        assert one.mass_matrix(q) == pytest.approx(M[k], rel=1e-11, abs=1e-10)
        found = one.forward_dynamics(q, qd, forces)
        assert found[first:] == pytest.approx(moved.qdd[k], rel=1e-8, abs=1e-8)
        if moved.base is not None:
            assert found[:3] == pytest.approx(moved.base.acceleration[k], rel=1e-8, abs=1e-8)
            assert found[3:6] == pytest.approx(moved.base.omega_dot[k], rel=1e-8, abs=1e-8)


def test_equal_to_pinocchio_on_an_arm() -> None:
    machine = MACHINES["arm"]()
    theirs = PinModel(machine)
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, machine.n))
    wanted = theirs.S.T @ pin.rnea(theirs.model, theirs.data, theirs.S @ q, theirs.S @ qd, theirs.S @ qdd)
    one = Evaluator(machine)
    assert one.inverse_dynamics(q, qd, qdd) == pytest.approx(wanted, rel=1e-10, abs=1e-10)
    back = one.forward_dynamics(q, qd, wanted)
    assert back == pytest.approx(qdd, rel=1e-8, abs=1e-8)


def test_results_are_overwritten_and_any_array_is_taken() -> None:
    one = vd.load_model(shipped("veridyn:arm.yaml")).evaluator()
    q, qd, qdd = np.zeros(6), np.zeros(6), np.zeros(6)
    first = one.inverse_dynamics(q, qd, qdd)
    kept = first.copy()
    again = one.inverse_dynamics([0.1] * 6, qd, np.arange(12.0)[::2])  # a list, and an array with gaps
    assert again is first and not np.array_equal(first, kept)
    assert again == pytest.approx(one.inverse_dynamics(np.full(6, 0.1), qd, np.arange(12.0)[::2].copy()))


def test_other_parameters_and_signals() -> None:
    machine = MACHINES["arm"]()
    machine = machine.with_elements([drive_gain(machine.coordinates[0], "i1", 2.0)])
    motion = replace(states(machine, 1), signals={"i1": np.array([0.7])})
    twice = 2.0 * machine.parameters.values
    one = Evaluator(machine, twice)
    one.signals["i1"][0] = 0.7
    found = one.inverse_dynamics(motion.q[0], motion.qd[0], motion.qdd[0])
    assert found == pytest.approx(inverse_dynamics(machine, motion, parameters=twice, engine="numpy")[0], rel=1e-10)


def test_what_cannot_be_evaluated_is_refused_by_name() -> None:
    one, zero = Evaluator(MACHINES["arm"]()), np.zeros(7)
    with pytest.raises(DataError, match=r"wrong shape[\s\S]*\(7,\)[\s\S]*\(6,\)"):
        one.inverse_dynamics(np.zeros(6), zero, zero)
    bad = zero.copy()
    bad[2] = np.nan
    with pytest.raises(DataError, match="not usable"):
        one.regressor(zero, bad, zero)
    with pytest.raises(DataError, match="not usable"):
        one.mass_matrix(np.full(7, 1e9))
    with pytest.raises(ModelError, match="closed loops"):
        Evaluator(vd.load_model(shipped("veridyn:linkage.yaml")))
    with pytest.raises(DataError, match="no tyres"):
        Evaluator(rig())
