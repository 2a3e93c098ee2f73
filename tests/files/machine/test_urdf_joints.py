"""Planar, floating and mimic joints of a URDF, and names that are taken; forces judged by Pinocchio's own joints."""

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from strangers.random_trees import random_motion
from veridyn.errors import ModelError
from veridyn.files.machine.urdf import UrdfFile, read_urdf
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose

Array = NDArray[np.float64]

HEAVY = (
    '<link name="{}"><inertial><origin xyz="0.1 -0.2 0.05" rpy="0.3 0.1 -0.4"/><mass value="{}"/>'
    '<inertia ixx="0.3" ixy="0.02" ixz="-0.01" iyy="0.4" iyz="0.03" izz="0.5"/></inertial></link>\n'
)
MOVED = (
    '<robot name="cart">\n<link name="world"/>\n<link name="stand"/>\n'
    '<joint name="mount" type="fixed"><parent link="world"/><child link="stand"/><origin rpy="0.2 -0.1 0.4"/></joint>\n'
    + HEAVY.format("cart", 3.0)
    + HEAVY.format("arm", 1.0)
    + '<joint name="drive" type="KIND"><parent link="stand"/><child link="cart"/>'
    '<origin xyz="0.4 -0.3 0.2" rpy="0.5 0.3 -0.7"/><axis xyz="AXIS"/></joint>\n'
    '<joint name="swing" type="revolute"><parent link="cart"/><child link="arm"/><origin xyz="0 0.2 0.1"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>\n</robot>'
)


def moved(kind: str, axis: str = "0 0 1") -> str:
    return MOVED.replace("KIND", kind).replace("AXIS", axis)


def told(text: str) -> UrdfFile:
    return read_urdf(text.encode(), "robot.urdf")


def planar_rates(q: Array) -> Array:
    """Pinocchio's rates of a planar joint are those of the moving frame."""
    return np.block([[pin.utils.rotate("z", q[2])[:2, :2].T, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])


def planar_pose(q: Array) -> Array:
    return np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])


def floating_rates(q: Array) -> Array:
    """Likewise of a free flyer: velocity of the origin and angular velocity, in the body's axes."""
    Rz, Ry, Rx = (pin.utils.rotate(a, x) for a, x in zip("zyx", q[3:], strict=True))
    E = np.column_stack([Rx.T @ Ry.T @ [0.0, 0.0, 1.0], Rx.T @ [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    return np.block([[(Rz @ Ry @ Rx).T, np.zeros((3, 3))], [np.zeros((3, 3)), E]])


def floating_pose(q: Array) -> Array:
    R = pin.utils.rotate("z", q[3]) @ pin.utils.rotate("y", q[4]) @ pin.utils.rotate("x", q[5])
    return np.concatenate([q[:3], pin.Quaternion(R).coeffs()])


@pytest.mark.parametrize(
    ("kind", "names", "rates", "pose"),
    [
        ("planar", ("x", "y", "yaw"), planar_rates, planar_pose),
        ("floating", ("x", "y", "z", "yaw", "pitch", "roll"), floating_rates, floating_pose),
    ],
)
def test_it_moves_as_pinocchios_joint(
    kind: str, names: tuple[str, ...], rates: Callable[[Array], Array], pose: Callable[[Array], Array]
) -> None:
    said = told(moved(kind))
    machine = said.machine("fixed")
    assert not said.notes
    assert machine.coordinates == (*(f"drive_{n}" for n in names), "swing")
    assert machine.actuated_coordinates == ("swing",)
    motion = random_motion(np.random.default_rng(3), machine, 5, wrenches=False)
    found = inverse_dynamics(machine, motion, engine="numpy")
    model = pin.buildModelFromXML(moved(kind))
    model.gravity.linear = np.array(machine.gravity)
    data, n, h = model.createData(), len(names), 1e-6
    for k, (q, qd, qdd) in enumerate(zip(motion.q, motion.qd, motion.qdd, strict=True)):
        S = np.eye(n + 1)
        S[:n, :n] = rates(q[:n])
        bias = (rates(q[:n] + h * qd[:n]) - rates(q[:n] - h * qd[:n])) @ qd[:n] / (2.0 * h)
        full = np.concatenate([pose(q[:n]), q[n:]])
        acceleration = S @ qdd + np.append(bias, 0.0)
        expected = S.T @ pin.rnea(model, data, full, S @ qd, acceleration)
        # Central differences of sines: h² and rounding over h are near 1e-10 of the rates.
        np.testing.assert_allclose(found[k], expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())
        pin.framesForwardKinematics(model, data, full)
        R, p = body_pose(machine, q[None], "arm")
        at = data.oMf[model.getFrameId("arm")]
        np.testing.assert_allclose(R.reshape(3, 3), at.rotation, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(p.reshape(3), at.translation, rtol=0.0, atol=1e-12)


def test_a_planar_joint_moves_across_its_axis() -> None:
    """The format calls the axis the normal of the plane; x where none is given."""
    for text in (moved("planar", "1 0 0"), moved("planar").replace('<axis xyz="0 0 1"/></joint>', "</joint>", 1)):
        machine = told(text).machine("fixed")
        q = np.zeros((4, 4))
        q[1, 0], q[2, 1], q[3, 2] = 0.3, 0.3, 0.3
        R, p = body_pose(machine, q, "cart")
        normal = R[0].reshape(3, 3)[:, 0]
        steps = (p - p[0]).reshape(4, 3)
        np.testing.assert_allclose(steps @ normal, 0.0, atol=1e-15)
        np.testing.assert_allclose(np.linalg.norm(steps, axis=1), [0.0, 0.3, 0.3, 0.0], atol=1e-15)
        assert abs(steps[1] @ steps[2]) < 1e-15
        np.testing.assert_allclose(R[3].reshape(3, 3)[:, 0], normal, atol=1e-15)
        assert np.trace(R[0].reshape(3, 3).T @ R[3].reshape(3, 3)) == pytest.approx(1.0 + 2.0 * np.cos(0.3))


def test_what_one_coordinate_would_have_is_reported_of_a_planar_joint() -> None:
    text = moved("planar").replace(
        '<axis xyz="0 0 1"/></joint>', '<axis xyz="0 0 1"/><dynamics damping="1"/></joint>', 1
    )
    said = told(text)
    assert [str(n) for n in said.notes.found] == ["joint 'drive' (line 7): <dynamics> of a planar joint is not read."]
    assert not said.machine("fixed").elements


def test_split_joints_take_no_name_twice() -> None:
    machine = told(moved("planar").replace('"swing"', '"drive_x"').replace('"arm"', '"drive_y"')).machine("fixed")
    assert machine.coordinates == ("drive_x_", "drive_y", "drive_yaw", "drive_x")
    assert len(set(machine.body_names)) == len(machine.links)


FOLLOWING = moved("revolute").replace(
    '<limit lower="-1"', '<mimic joint="LEADER" multiplier="RATIO" offset="0.3"/><limit lower="-1"', 1
)


def following(leader: str, ratio: str, kind: str = "revolute") -> str:
    text = FOLLOWING.replace("LEADER", leader).replace("RATIO", ratio)
    return text.replace('"swing" type="revolute"', f'"swing" type="{kind}"')


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
@pytest.mark.parametrize(("leader", "ratio"), [("mount", "2"), ("drive", "0")])
def test_a_mimic_that_never_moves_is_fixed_at_its_offset(leader: str, ratio: str, kind: str) -> None:
    said = told(following(leader, ratio, kind))
    machine = said.machine("fixed")
    assert machine.coordinates == ("drive",)
    (note,) = said.notes.found
    assert "it is read as fixed" in note.what and note.at == ("joint", "swing")
    free = told(moved("revolute").replace('"swing" type="revolute"', f'"swing" type="{kind}"')).machine("fixed")
    q = np.array([[0.4]])
    for found, expected in zip(
        body_pose(machine, q, "arm"), body_pose(free, np.array([[0.4, 0.3]]), "arm"), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("leader", "kind", "what"),
    [("driv", "revolute", "not in this file"), ("drive", "prismatic", "of another kind")],
)
def test_a_mimic_that_cannot_be_followed_has_a_coordinate_of_its_own(leader: str, kind: str, what: str) -> None:
    said = told(following(leader, "2", kind))
    assert said.machine("fixed", impossible="unknown").coordinates == ("drive", "swing")
    with pytest.raises(ModelError, match=rf"joint 'swing' \(line 8\): it mimics a joint .*{what}"):
        said.machine("fixed", impossible="refuse")


def test_a_constant_passes_through_a_chain_of_mimics() -> None:
    more = HEAVY.format("tip", 0.5) + (
        '<joint name="nod" type="revolute"><parent link="arm"/><child link="tip"/><axis xyz="1 0 0"/>'
        '<mimic joint="swing" multiplier="-2" offset="0.1"/></joint></robot>'
    )
    machine = told(following("mount", "2").replace("</robot>", more)).machine("fixed")
    assert machine.coordinates == ("drive",)
    R = machine.attachment(machine.described.spanning.carriers["tip"].joint.a).placement.rotation
    np.testing.assert_allclose(R, pin.utils.rotate("x", -2 * 0.3 + 0.1), rtol=0.0, atol=1e-15)


def test_a_link_called_ground_keeps_its_place_under_another_name() -> None:
    for old in ("cart", "world"):
        text = moved("revolute").replace(f'"{old}"', '"ground"')
        if old == "world":
            text = text.replace('<link name="ground"/>', HEAVY.format("ground", 2.0).strip())
        said = told(text)
        machine, other = said.machine("fixed"), told(moved("revolute")).machine("fixed")
        assert "M_ground_link" in machine.parameters.names
        (note,) = said.notes.found
        assert str(note).endswith("'ground' is what the machine stands on, so this link is called 'ground_link'.")
        motion = random_motion(np.random.default_rng(5), machine, 3, wrenches=False)
        a, b = (inverse_dynamics(t, motion, engine="numpy") for t in (machine, other))
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12)


def test_a_bare_root_called_ground_moves_with_a_free_base() -> None:
    machine = told(moved("revolute").replace('"world"', '"ground"')).machine("free")
    other = told(moved("revolute")).machine("free")
    assert (machine.base, machine.root, other.root) == ("free", "ground_link", "world")
    motion = random_motion(np.random.default_rng(6), machine, 3, wrenches=False)
    a, b = (inverse_dynamics(t, motion, engine="numpy") for t in (machine, other))
    np.testing.assert_array_equal(a, b)


def test_a_joint_called_as_rows_are_gets_another_name() -> None:
    more = HEAVY.format("tip", 0.5) + (
        '<joint name="nod" type="revolute"><parent link="arm"/><child link="tip"/><mimic joint="base"/></joint></robot>'
    )
    said = told(moved("revolute").replace('"drive"', '"base"').replace("</robot>", more))
    assert said.machine("fixed").coordinates == ("base_joint", "swing")
    assert [str(n) for n in said.notes.found] == [
        "joint 'base' (line 7): 'base' names rows, so this joint is called 'base_joint'."
    ]
