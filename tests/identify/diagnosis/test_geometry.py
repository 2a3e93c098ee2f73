from dataclasses import replace

import numpy as np
import pytest

from studies.bench_evidence import bench_evidence
from studies.bench_robot import robot
from studies.closed_bench import MACHINES
from studies.closed_bench import moved as recorded
from veridyn.identify.diagnosis.evidence import Evidence, evidence
from veridyn.identify.diagnosis.geometry import best_place
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.kinematics import body_pose
from veridyn.mechanics.loops.closure import closed_motion
from veridyn.mechanics.tree.elsewhere import ends_of, moved
from veridyn.model.machine import Machine


def elsewhere(machine: Machine, number: int, way: int, amount: float) -> Machine:
    """The machine with one of its ends elsewhere, by number."""
    return moved(machine, ends_of(machine)[number], way, amount)


@pytest.mark.parametrize(("body", "k", "amount"), [(2, 0, 0.2), (2, 0, -0.1), (2, 1, 0.1)])
def test_a_wrong_length_is_found_with_its_body_and_size(body: int, k: int, amount: float) -> None:
    e = bench_evidence()
    wrong = replace(e, machine=elsewhere(robot(), body, k, amount))
    found = best_place(wrong)
    assert found is not None
    assert (found.body, found.axis, found.turned) == (robot().body_names[body], "xyz"[k], False)
    assert found.amount == pytest.approx(-amount, abs=0.03)
    assert found.error < 0.6 * wrong.error()


def test_what_parameters_can_take_upon_themselves_is_not_suspected() -> None:
    """The zero of the last joint only turns the frame in which its body is described."""
    e = bench_evidence()
    wrong = replace(e, machine=elsewhere(robot(), 2, 5, 0.3))
    assert wrong.error() == pytest.approx(e.error(), rel=1e-9)


def test_a_wrong_zero_before_others_is_found_as_where_the_next_body_sits() -> None:
    e = bench_evidence()
    found = best_place(replace(e, machine=elsewhere(robot(), 1, 5, 0.3)))
    assert found is not None and found.error < 1.2 * e.error()
    # Joint 3 sits 0.4 m from joint 2, so 0.3 rad move it by 0.4 sin 0.3 m across, unless joint 2 is turned back.
    assert found.turned or found.amount == pytest.approx(-0.4 * np.sin(0.3), abs=0.02)


def test_good_geometry_has_nothing_to_gain() -> None:
    e = bench_evidence()
    found = best_place(e)
    assert found is None or found.error > 0.8 * e.error()


def test_a_body_is_moved_and_turned_as_said() -> None:
    """Along an axis of the frame that carries it; about an axis of its own: checked by where the frames are at q = 0."""
    machine, q = robot(), np.zeros((1, 3))
    R0, p0 = body_pose(machine, q, "2")
    R1, p1 = body_pose(elsewhere(machine, 1, 2, 0.05), q, "2")
    np.testing.assert_allclose(R1, R0, atol=1e-15)
    np.testing.assert_allclose(p1 - p0, [[0.0, 0.0, 0.05]], atol=1e-15)  # the frame that carries it stands upright
    for axis in range(3):
        R2, p2 = body_pose(elsewhere(machine, 1, 3 + axis, 0.4), q, "2")
        np.testing.assert_allclose(p2, p0, atol=1e-15)
        turn = R0[0].T @ R2[0]
        np.testing.assert_allclose(turn @ np.eye(3)[axis], np.eye(3)[axis], atol=1e-15)
        assert np.trace(turn) == pytest.approx(1.0 + 2.0 * np.cos(0.4))


def misread(b: int, k: int, amount: float) -> Evidence:
    """The palletizer's log as a model reads it in which one thing sits elsewhere."""
    machine, m = MACHINES["palletizer"](), recorded("palletizer", 1)
    wrong, own = elsewhere(machine, b, k, amount), list(machine.independent)
    whole = closed_motion(wrong, m.t, m.q[:, own], m.qd[:, own], m.qdd[:, own])
    return evidence(wrong, [replace(whole, forces=m.forces)], machine.actuated_coordinates, Sampling())


def test_a_wrong_length_within_a_loop_is_found() -> None:
    e = misread(2, 0, 0.02)  # the elbow sits 20 mm too far out, so the parallelogram is none
    found = best_place(e)
    assert found is not None and found.error < 0.01 * e.error()
    assert (found.where, found.amount) == ("body 'forearm'", pytest.approx(-0.02, abs=1e-3))


def test_an_end_of_a_cut_joint_is_one_of_the_places() -> None:
    """A rod that is too long opens the parallelogram as an upper arm does that is too short: both leave nothing."""
    e = misread(5, 0, 0.02)
    found = best_place(e)
    assert found is not None and found.error < 0.01 * e.error() and abs(found.amount) == pytest.approx(0.02, abs=1e-3)
    back = elsewhere(e.machine, 5, 0, -0.02)
    own = MACHINES["palletizer"]()
    places = [machine.ends(machine.cut_joints[0])[0].placement.position for machine in (back, own)]
    np.testing.assert_allclose(places[0], places[1])
