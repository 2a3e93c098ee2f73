"""The ghost: with the forces that a motion takes it goes where the motion goes, and it begins again after every horizon."""

import numpy as np
import pytest

import veridyn as vd
from veridyn.model.body import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.transforms import MDH
from veridyn.view.prediction import predicted_poses


def arm() -> Machine:
    inertia = {
        "1": from_centre(3.0, [0.2, 0.0, 0.0], np.diag([0.01, 0.05, 0.05])),
        "2": from_centre(1.0, [0.15, 0.01, 0.0], np.diag([0.003, 0.01, 0.01])),
    }
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.4))]
    return Machine.of_bodies(bodies, inertia=inertia)


@pytest.fixture
def case():
    machine, t = arm(), np.arange(240) / 60.0
    q = np.column_stack([np.sin(2.0 * t), 0.5 * np.cos(3.0 * t)])
    qd = np.column_stack([2.0 * np.cos(2.0 * t), -1.5 * np.sin(3.0 * t)])
    qdd = np.column_stack([-4.0 * np.sin(2.0 * t), -4.5 * np.cos(3.0 * t)])
    return machine, t, q, vd.inverse_dynamics(machine, Motion(t, q, qd, qdd))


def test_with_the_right_forces_it_stays_with_the_machine(case):
    machine, t, q, forces = case
    ghost = predicted_poses(machine, t, q, forces)
    assert ghost is not None and np.abs(ghost - q).max() < 0.02
    assert np.array_equal(ghost[::30], q[::30])


def test_with_a_wrong_model_it_leaves_and_comes_back(case):
    machine, t, q, forces = case
    heavy = machine.with_parameters(1.3 * machine.parameters.values)
    off = np.abs(predicted_poses(heavy, t, q, forces) - q).max(axis=1)
    assert off[29::30].min() > 0.05 and np.array_equal(off[::30], np.zeros(8))


def test_where_nothing_can_be_predicted_there_is_none(case):
    machine, t, q, forces = case
    forces = forces.copy()
    forces[5, 0] = np.nan
    assert predicted_poses(machine, t, q, forces) is None
    ship = Machine.of_bodies([Body("hull"), Body("1", "hull"), Body("2", "1")], base="free")
    assert ship.coordinates == ("q1", "q2") and predicted_poses(ship, t, q, case[3]) is None
