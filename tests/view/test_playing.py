"""Poses for a live view: columns matched to coordinates, on one clock, in the units of the machine."""

import numpy as np
import pytest

import veridyn as vd
from studies.small_arm import small_arm
from veridyn.errors import FileError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH
from veridyn.view.live import posable_mechanism, posable_tree
from veridyn.view.playing import predicted_poses, recorded


def write(tmp_path, text):
    path = tmp_path / "run.csv"
    path.write_text(text)
    return path


def test_positions_are_found_converted_and_brought_to_one_clock(tmp_path):
    machine = small_arm()
    path = write(tmp_path, "t [ms],q1 [deg],q2 [deg],tau1 [Nm]\n0,0,90,1\n500,45,nan,1\n1000,90,0,1\n")
    found, used = recorded(posable_tree(machine), machine, path)
    assert [g.column for g in used] == ["q1", "q2", "tau1"]
    assert found.forces is not None
    assert (found.forces[:, 0] == 1.0).all() and np.isnan(found.forces[:, 1]).all()
    assert (found.t[0], found.t[-1], len(found.t)) == (0.0, 1.0, 61)
    assert found.poses[30] == pytest.approx(np.radians([45.0, 45.0]))  # a missing value is bridged


def test_a_mechanism_is_played_by_the_names_of_its_coordinates(tmp_path):
    model = load_model(shipped("veridyn:crane.yaml"))
    machine = posable_mechanism(model)
    head = ",".join(["t [s]", *(f"{c} [{'deg' if c == 'swing' else 'm'}]" for c in machine.coordinates)])
    path = write(tmp_path, head + "\n0,9,0.1\n1,18,0.2\n2,0,0.3\n")
    found, _ = recorded(machine, model, path)
    swing = machine.coordinates.index("swing")
    assert found.poses[0, swing] == pytest.approx(np.radians(9.0) if swing == 0 else np.radians(0.1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t [s],q1 [rad]\n0,1\n1,2\n", r"these coordinates have no column.\nFound q2. Call it q.q2"),
        ("t [s],q1 [rad],q2 [rad]\n0,1,nan\n1,2,3\n", r"coordinate 'q2': it holds less than two samples"),
    ],
)
def test_what_cannot_be_played_is_named(tmp_path, text, said):
    machine = small_arm()
    with pytest.raises(FileError, match=said):
        recorded(posable_tree(machine), machine, write(tmp_path, text))


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
