from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies import wrist_log
from studies.bench_evidence import bench_evidence
from studies.bench_robot import robot
from studies.closed_bench import MACHINES
from studies.closed_bench import moved as recorded
from veridyn.identify.diagnosis.evidence import Evidence, evidence
from veridyn.identify.diagnosis.geometry import MISSING, SIGN, best_gravity, best_place, other_gearings
from veridyn.identify.diagnosis.replacements import find_mistakes
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.elsewhere import ends_of, moved
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine

MATRIX = np.array([[1 / 60, 0.0, 0.0], [-1 / 60, 1 / 48, 0.0], [0.0, -1 / 48, 1 / 40]])


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


def test_a_change_is_that_of_the_matrices() -> None:
    """Of every question S T is a matrix that differs from T in what it names: one entry, one column, or couplings that were zero."""
    machine = wrist_log.truth()
    assert machine.transmission is not None
    asked = list(other_gearings(machine, machine.coordinates))
    for g in asked:
        other = g.change @ MATRIX
        changed = np.argwhere(~np.isclose(other, MATRIX, rtol=1e-9, atol=1e-15))
        if g.kind == SIGN:
            assert np.allclose([other[i, j] for i, j in changed], [-MATRIX[i, j] for i, j in changed])
            assert len({j for _, j in changed.tolist()}) == 1
        else:
            assert g.kind == MISSING
            assert all(MATRIX[i, j] == 0.0 and abs(other[i, j]) == pytest.approx(MATRIX[j, j]) for i, j in changed)
    assert any("motor 'm2'" in g.where and "joint" not in g.where for g in asked)


def damaged(e: Evidence, right: np.ndarray, wrong: np.ndarray) -> Evidence:
    """The same motors read with the wrong matrix: q = T q_m and Γ = T⁻ᵀ Γ_m with each."""
    S = wrong @ np.linalg.inv(right)
    moved, forced = e.with_coordinates(S), e.with_forces(np.linalg.inv(S).T)
    assert moved is not None
    return replace(e, motion=replace(moved, forces=forced.forces))


def test_a_missing_coupling_of_a_machine_without_a_transmission() -> None:
    """Joint 3 turns along with joint 2, and the model knows of no motors: the log of both is as motors have it."""
    e = bench_evidence()
    right = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    found = find_mistakes(damaged(e, right, np.eye(3)))
    assert MISSING in [m.kind for m in found]
    assert any("joint 'q3'" in m.fault.where for m in found), [str(m) for m in found]


@pytest.mark.parametrize(
    ("entry", "value", "kind", "where"),
    [
        ((1, 0), 0.0, MISSING, "transmission, joint 'q3'"),
        ((1, 1), -1 / 48, SIGN, "transmission, joint 'q3', motor 'm2'"),
    ],
)
def test_a_wrong_entry_of_a_transmission(entry: tuple[int, int], value: float, kind: str, where: str) -> None:
    """The last two joints of the bench robot as a coupled wrist, read with one entry wrong."""
    right = np.array([[1 / 60, 0.0], [-1 / 60, 1 / 48]])
    wrong = right.copy()
    wrong[entry] = value
    e = bench_evidence()
    whole = [np.eye(3), np.eye(3)]
    for T, small in zip(whole, (right, wrong), strict=True):
        T[1:, 1:] = small
    machine = replace(e.machine, transmission=Transmission(("m1", "m2"), ("q2", "q3"), wrong))
    found = find_mistakes(replace(damaged(e, *whole), machine=machine))
    assert (kind, where) in [(m.kind, m.fault.where) for m in found], [str(m) for m in found]


def test_a_right_transmission_raises_nothing() -> None:
    e = bench_evidence()
    machine = replace(
        e.machine, transmission=Transmission(("m1", "m2"), ("q2", "q3"), np.array([[0.1, 0.0], [-0.1, 0.2]]))
    )
    assert find_mistakes(replace(e, machine=machine)) == ()


@pytest.mark.parametrize(
    "believed", [[0.0, 0.0, -9.81], [9.81, 0.0, 0.0], [0.0, 0.0, 9.81], [0.0, 0.0, 0.0], [0.0, 3.0, -9.3]]
)
def test_the_gravity_of_the_log_is_found_whatever_the_model_says(believed: list[float]) -> None:
    e = bench_evidence()
    found = best_gravity(replace(e, machine=replace(e.machine, gravity=np.array(believed))))
    assert found is not None
    # Its direction is that of the weights; its size, which only inertia fixes, is known to some percent.
    np.testing.assert_allclose(found.gravity / np.linalg.norm(found.gravity), [0.0, 0.0, -1.0], atol=0.02)
    assert np.linalg.norm(found.gravity) == pytest.approx(9.81, rel=0.08)
    assert found.error == pytest.approx(e.error(), rel=0.2)


def test_a_free_base_measures_its_gravity() -> None:
    e = bench_evidence()
    free = Machine.of_bodies([Body("1", None, "fixed")], base="free")
    assert best_gravity(replace(e, machine=free)) is None
    assert best_gravity(replace(e, rows=())) is None
