"""URDF files: the mechanics they mean, judged by Pinocchio's own reader, and every fault named with its line."""

import math
import os
import re
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from strangers.pinocchio_urdf import exact_urdf, pin_forces
from strangers.random_trees import random_inertia, random_motion
from veridyn.errors import DataError, DataWarning, FileError, ModelError, VeridynError
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.urdf import load_urdf, read_urdf, urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.files.machine.write import model_text
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import INERTIAL

Array = NDArray[np.float64]
DATA = os.environ.get("VERIDYN_DATA", "")
REAL = ("kuka_lwr4/kuka_lwr4.urdf", "ur10e/ur10e.urdf", "icub/model.urdf")

ROBOT = """<?xml version="1.0"?>
<!-- one joint of every kind -->
<robot name="all kinds" xmlns:xacro="http://ros.org/wiki/xacro">
  <link name="world"/>
  <link name="column">
    <inertial>
      <origin xyz="0.01 -0.02 0.2" rpy="0.1 -0.4 0.7"/>
      <mass value="4.2"/>
      <inertia ixx="0.05" ixy="0.002" ixz="-0.001" iyy="0.06" iyz="0.003" izz="0.03"/>
    </inertial>
    <visual><geometry><mesh filename="$(find here)/column.stl" scale="0.001 0.001 0.001"/></geometry></visual>
  </link>
  <joint name="foot" type="fixed">
    <origin xyz="0.1 0 0.3" rpy="0 0 1.5707963267948966"/>
    <parent link="world"/><child link="column"/>
    <axis xyz="0 0 0"/>
    <dynamics damping="0.1"/>
  </joint>
  <joint name="turn" type="revolute">
    <origin xyz="0 0 0.4" rpy="1.5707963267948966 0 0.2"/>
    <parent link="column"/><child link="arm"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2.5" velocity="3" effort="80"/>
    <dynamics damping="0.7" friction="0.3"/>
  </joint>
  <link name="arm">
    <inertial>
      <origin xyz="0.2 0 0.03"/>
      <mass value="2.1"/>
      <inertia ixx="0.01" ixy="0" ixz="0.001" iyy="0.05" iyz="0" izz="0.05"/>
    </inertial>
  </link>
  <joint name="spin" type="continuous">
    <origin xyz="0.4 0.05 0" rpy="0.3 0.2 -1.1"/>
    <parent link="arm"/><child link="forearm"/>
    <axis xyz="0.6 0 -0.8"/>
    <limit velocity="9" effort="20"/>
    <dynamics friction="0.05"/>
  </joint>
  <link name="forearm">
    <inertial>
      <origin xyz="0 0.03 0.1" rpy="0 0 0"/>
      <mass value="1.3"/>
      <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.015" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="slide" type="prismatic">
    <origin rpy="0 0.5 0"/>
    <parent link="forearm"/><child link="finger"/>
    <limit lower="0" upper="0.04" velocity="0.1" effort="15"/>
  </joint>
  <link name="finger">
    <inertial><mass value="0.2"/><inertia ixx="2e-4" ixy="0" ixz="0" iyy="3e-4" iyz="0" izz="2e-4"/></inertial>
  </link>
  <joint name="slide2" type="prismatic">
    <origin xyz="0 0.02 0"/>
    <parent link="forearm"/><child link="finger2"/>
    <axis xyz="0 0 1"/>
    <mimic joint="slide" multiplier="-1.5" offset="0.02"/>
    <limit lower="0" upper="0.04" velocity="0.1" effort="15"/>
    <dynamics damping="3" friction="2"/>
  </joint>
  <link name="finger2">
    <inertial><mass value="0.25"/><inertia ixx="2e-4" ixy="0" ixz="0" iyy="3e-4" iyz="0" izz="2e-4"/></inertial>
  </link>
  <joint name="lever" type="revolute">
    <origin xyz="0 0 0.1" rpy="0.4 0 0"/>
    <parent link="column"/><child link="flap"/>
    <axis xyz="0 0 -1"/>
    <mimic joint="flap2_joint" multiplier="0.5" offset="-0.3"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/>
  </joint>
  <link name="flap">
    <inertial><origin xyz="0.1 0 0"/><mass value="0.5"/>
      <inertia ixx="1e-3" ixy="0" ixz="0" iyy="3e-3" iyz="0" izz="3e-3"/></inertial>
  </link>
  <joint name="flap2_joint" type="continuous">
    <parent link="flap"/><child link="flap2"/>
    <axis xyz="0 1 0"/>
    <mimic joint="turn" multiplier="2" offset="0.7"/>
  </joint>
  <link name="flap2">
    <inertial><origin xyz="0 0 0.1" rpy="0.2 0 0"/><mass value="0.4"/>
      <inertia ixx="1e-3" ixy="0" ixz="0" iyy="3e-3" iyz="0" izz="3e-3"/></inertial>
  </link>
</robot>
"""
# Coordinate, ratio and offset of the joints that follow others: lever = 0.5 (2 q + 0.7) − 0.3.
FOLLOWERS = {"slide2": ("slide", -1.5, 0.02), "flap2_joint": ("turn", 2.0, 0.7), "lever": ("turn", 1.0, 0.05)}


def load(text: str, base: str = "fixed", **options: object) -> Machine:
    said = read_urdf(text.encode(), "robot.urdf")
    assert not said.notes, said.notes.found
    return said.machine(base, **options)


def real_file(name: str) -> Path:
    file = Path(DATA) / name
    if not DATA or not file.exists():
        pytest.skip(f"VERIDYN_DATA has no {name}")
    return file


def forces(machine: Machine, motion: Motion) -> Array:
    """By the reference: a few samples of many machines would be compiled for nothing."""
    return inverse_dynamics(machine, motion, engine="numpy")


def without_friction(machine: Machine) -> Machine:
    return machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})


def assert_close(a: Array, b: Array) -> None:
    # Two recursions of sums and products: rounding only.
    np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12 * max(1.0, float(np.abs(b).max())))


def random_urdf(rng: np.random.Generator, links: int) -> str:
    """A tree of joints with any axes and frames; numbers are written in full."""

    def numbers(values: Array) -> str:
        return " ".join(repr(float(v)) for v in values)

    out = ['<robot name="random">', '<link name="l0"/>']
    for k in range(1, links):
        X = random_inertia(rng)
        c = X[6:9] / X[9]
        J = np.zeros((3, 3))
        J[np.triu_indices(3)] = X[:6]
        J = J + np.triu(J, 1).T - X[9] * (c @ c * np.eye(3) - np.outer(c, c))
        turned = rng.uniform(-3, 3, 3)
        R = pin.rpy.rpyToMatrix(turned)
        six = (R.T @ J @ R)[np.triu_indices(3)]
        inertia = " ".join(f'{n}="{float(x)!r}"' for n, x in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), six))
        kind = ("revolute", "continuous", "prismatic", "fixed")[int(rng.integers(4))]
        axis = np.eye(3)[int(rng.integers(3))] if rng.random() < 0.5 else rng.standard_normal(3)
        axis = rng.choice([-1.0, 1.0]) * axis / np.linalg.norm(axis)
        out += [
            f'<link name="l{k}"><inertial><origin xyz="{numbers(c)}" rpy="{numbers(turned)}"/>',
            f'<mass value="{float(X[9])!r}"/><inertia {inertia}/></inertial></link>',
            f'<joint name="j{k}" type="{kind}"><parent link="l{rng.integers(k)}"/><child link="l{k}"/>',
            f'<origin xyz="{numbers(rng.standard_normal(3))}" rpy="{numbers(rng.uniform(-3, 3, 3))}"/>',
            f'<axis xyz="{numbers(axis)}"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>',
        ]
    return "\n".join([*out, "</robot>"])


# What a file means


def test_every_kind_of_joint_moves_as_in_pinocchio() -> None:
    machine = load(ROBOT)
    motion = random_motion(np.random.default_rng(0), machine, wrenches=False)
    model = pin.buildModelFromXML(ROBOT.replace("$(find here)/", ""))
    assert_close(forces(without_friction(machine), motion), pin_forces(model, machine, motion, FOLLOWERS))


def test_a_free_base_moves_as_a_free_flyer() -> None:
    machine = load(ROBOT, "free")
    assert machine.root == "world"
    motion = random_motion(np.random.default_rng(1), machine, wrenches=False)
    model = pin.buildModelFromXML(ROBOT, pin.JointModelFreeFlyer())
    assert_close(forces(without_friction(machine), motion), pin_forces(model, machine, motion, FOLLOWERS))


@pytest.mark.parametrize("seed", range(12))
def test_random_machines_move_as_in_pinocchio(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(3, 12)))
    base = ("fixed", "free")[seed % 2]
    machine = load(text, base, gravity=rng.standard_normal(3))
    motion = random_motion(rng, machine, 6, wrenches=False)
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if base == "free" else pin.buildModelFromXML(text)
    assert_close(forces(machine, motion), pin_forces(model, machine, motion))


@pytest.mark.parametrize("seed", range(3))
def test_links_sit_where_pinocchio_has_them(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    text = random_urdf(rng, 9)
    machine, model = load(text), pin.buildModelFromXML(text)
    data = model.createData()
    q = rng.uniform(-1, 1, machine.n)
    full = pin.neutral(model)
    for name, joint in zip(list(model.names)[1:], model.joints[1:]):
        x = q[machine.coordinates.index(name)]
        full[joint.idx_q : joint.idx_q + joint.nq] = x if joint.nq == 1 else (math.cos(x), math.sin(x))
    pin.framesForwardKinematics(model, data, full)
    for k in range(1, 9):
        R, p = body_pose(machine, q[None], f"l{k}")
        pose = data.oMf[model.getFrameId(f"l{k}")]
        assert_close(R.reshape(3, 3), pose.rotation)
        assert_close(p.reshape(3), pose.translation)


@pytest.mark.filterwarnings("ignore:.*a quarter turn that was rounded:veridyn.errors.DataWarning")
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_real_machines_move_as_in_pinocchio(name: str, base: str) -> None:
    file = real_file(name)
    if name.startswith("kuka"):
        with pytest.warns(DataWarning, match=r"joint 'box_lwr_base_joint' \(line 55\): <origin> stands 2 times"):
            machine = load_urdf(file, base)
    else:
        machine = load_urdf(file, base)
    motion = random_motion(np.random.default_rng(2), machine, 8, wrenches=False)
    root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
    model = pin.buildModelFromXML(exact_urdf(file), *root)
    assert_close(forces(without_friction(machine), motion), pin_forces(model, machine, motion))
    limits = urdf_limits(file)
    assert set(limits) == set(machine.coordinates)
    told = [limits[name] for name in list(model.names)[1 + len(root) :]]
    np.testing.assert_array_equal([limit.lower for limit in told], model.lowerPositionLimit[7 * len(root) :])
    np.testing.assert_array_equal([limit.upper for limit in told], model.upperPositionLimit[7 * len(root) :])


def test_names_order_and_frames() -> None:
    machine = load(ROBOT)
    assert machine.name == "all kinds"
    assert machine.coordinates == ("turn", "spin", "slide")
    assert [link.name for link in machine.links if link.real] == [
        "column",
        "arm",
        "forearm",
        "finger",
        "finger2",
        "flap",
        "flap2",
    ]
    # z of the link's own frame: one body; any other axis: a virtual body carries the joint, and the link is fixed to it.
    bodies = {b.name: b for b in tree_of(machine).bodies}
    assert bodies["arm"].joint == "turning"
    assert bodies["forearm"].antecedent == "spin_axis"
    assert not bodies["spin_axis"].real
    assert machine.parameters["M_forearm"] == 1.3
    assert machine.parameters["MZ_forearm"] == 1.3 * 0.1
    assert machine.parameters["XX_forearm"] == pytest.approx(0.02 + 1.3 * (0.03**2 + 0.1**2), rel=1e-14)
    assert set(machine.parameters.states) == {"estimated"}
    assert machine.body_names[0] == "world" and not machine.links[0].real


def test_friction_becomes_elements_that_are_estimated() -> None:
    machine = load(ROBOT)
    found = {e.parameter_name: (e.kind, dict(e.on), e.value) for e in machine.elements}
    assert found == {
        "h_turn": ("damper", {"turn": 1.0}, 0.7),
        "fs_turn": ("coulomb", {"turn": 1.0}, 0.3),
        "fs_spin": ("coulomb", {"spin": 1.0}, 0.05),
        "h_slide2": ("damper", {"slide": -1.5}, 3.0),
        "fs_slide2": ("coulomb", {"slide": -1.5}, 2.0),
    }
    motion = random_motion(np.random.default_rng(3), machine, wrenches=False)
    turn, spin, slide = motion.qd.T
    # The power that friction takes is that of the joint's own rate: Γ q̇ = h (ρ q̇)² + fs |ρ q̇|.
    expected = np.column_stack(
        [
            0.7 * turn + 0.3 * np.sign(turn),
            0.05 * np.sign(spin),
            3.0 * 1.5**2 * slide + 2.0 * 1.5 * np.sign(slide),
        ]
    )
    assert_close(forces(machine, motion) - forces(without_friction(machine), motion), expected)


def test_limits_are_told_beside_the_tree(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    file.write_text(ROBOT)
    limits = urdf_limits(file)
    assert limits["turn"] == UrdfLimits(-2.0, 2.5, 3.0, 80.0)
    assert limits["spin"] == UrdfLimits(-math.inf, math.inf, 9.0, 20.0)
    assert limits["flap2_joint"] == UrdfLimits()
    assert list(limits) == ["turn", "spin", "slide", "slide2", "lever", "flap2_joint"]
    file.write_text(ROBOT.replace('lower="-2" upper="2.5"', 'lower="-115" upper="143"'))
    with pytest.warns(DataWarning, match=r"joint 'turn' \(line 23\): its limits look like degrees"):
        urdf_limits(file)
    file.write_text(ROBOT.replace('lower="-2" upper="2.5"', ""))
    with pytest.warns(DataWarning, match=r"leave no room to move"):
        urdf_limits(file)
    file.write_text(ROBOT.replace('lower="-2" upper="2.5"', 'lower="3" upper="x"'))
    with pytest.raises(
        ModelError, match=r"(?s)2 faults.*'upper' of <limit> is not a number.*lower limit is above"
    ) as e:
        urdf_limits(file)
    assert [fault.line for fault in e.value.faults] == [23, 23]


FLOATING = """<robot name="boat"><link name="sea"/>
<link name="hull"><inertial><mass value="5"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="swim" type="floating"><parent link="sea"/><child link="hull"/><origin xyz="0 0 1"/></joint>
<link name="mast"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="lean" type="revolute"><parent link="hull"/><child link="mast"/></joint>
</robot>"""


def test_a_floating_joint_on_the_ground_is_a_free_base() -> None:
    machine = load(FLOATING, "free")
    assert machine.body_names == ("hull", "lean_axis", "mast")
    assert machine.coordinates == ("lean",) and machine.base == "free"
    assert load(FLOATING, "auto").base == "free"
    massless = '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
    dummy = FLOATING.replace('<link name="sea"/>', f'<link name="sea">{massless}</link>')
    assert load(dummy, "auto").body_names == ("hull", "lean_axis", "mast")
    assert load(ROBOT, "auto").base == "fixed"
    # On a fixed base, or deeper in the tree, a floating joint has six coordinates: see test_urdf_joints.py.
    six = ("swim_x", "swim_y", "swim_z", "swim_yaw", "swim_pitch", "swim_roll")
    assert load(FLOATING, "fixed").coordinates == (*six, "lean")
    assert len(load(FLOATING.replace("revolute", "floating"), "free").coordinates) == 6


def test_a_bare_root_called_ground_is_the_ground() -> None:
    text = ROBOT.replace('"world"', '"ground"')
    machine, other = load(text), load(ROBOT)
    assert machine.body_names[0] == "column"
    motion = random_motion(np.random.default_rng(4), machine, 4, wrenches=False)
    assert_close(forces(machine, motion), forces(other, motion))


def test_a_virtual_body_takes_no_name_of_a_link() -> None:
    machine = load(ROBOT.replace('"finger2"', '"spin_axis"'))
    assert machine.attachment(machine.described.spanning.carriers["forearm"].joint.a).body == "spin_axis_"


def test_load_model_reads_urdf_and_the_native_file_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "robot.URDF"
    file.write_bytes(b"\xef\xbb\xbf" + ROBOT.replace("\n", "\r\n").encode())
    machine = load_model(file)
    again = parse_machine(model_text(machine))
    assert again.coordinates == machine.coordinates
    np.testing.assert_array_equal(again.parameters.values, machine.parameters.values)


def test_the_first_of_two_tags_counts_and_the_other_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "robot.urdf"
    twice = '<origin rpy="0 0.5 0"/>'
    file.write_text(ROBOT.replace(twice, twice + '\n<origin rpy="0 0.5 0"/>'))
    load_urdf(file)  # it says the same
    file.write_text(ROBOT.replace(twice, twice + '\n<origin rpy="0 9 0"/>'))
    with pytest.warns(DataWarning, match=r"joint 'slide' \(line 49\): <origin> stands 2 times; the first counts"):
        machine = load_urdf(file)
    np.testing.assert_array_equal(machine.parameters.values, load(ROBOT).parameters.values)


# Inertia that no body has

ODD = ROBOT.replace('ixx="0.01" ixy="0" ixz="0.001" iyy="0.05"', 'ixx="0.01" ixy="0" ixz="0.001" iyy="0.5"')


def test_impossible_inertia_is_unknown_kept_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.urdf"
    file.write_text(ODD)
    line = "odd.urdf, 1 of 7 links has an inertia that no physical body has (arm); it is "
    with pytest.warns(DataWarning) as warned:
        machine = load_urdf(file)
    assert [str(w.message) for w in warned] == [line + "taken as unknown, to be identified."]
    assert machine.parameters.missing() == tuple(f"{symbol}_arm" for symbol in INERTIAL[:6])
    assert machine.parameters["M_arm"] == 2.1 and machine.parameters["MX_arm"] == 2.1 * 0.2
    assert set(machine.parameters.states) == {"estimated"}
    with pytest.warns(DataWarning) as warned:
        machine = load_urdf(file, impossible="keep")
    assert [str(w.message) for w in warned] == [line + "kept as in the file."]
    model = pin.buildModelFromXML(ODD)
    motion = random_motion(np.random.default_rng(5), machine, 6, wrenches=False)
    assert machine.parameters.names == load(ROBOT).parameters.names
    assert_close(forces(without_friction(machine), motion), pin_forces(model, machine, motion, FOLLOWERS))
    law = r"odd.urdf, link 'arm' \(line 26\): no distribution of mass has this inertia: .*< 0.5 breaks the triangle"
    for refused in (lambda: load_urdf(file, impossible="refuse"), lambda: load_model(file, strict=True)):
        with pytest.raises(ModelError, match=law):
            refused()
    with pytest.raises(DataError, match=r"'unknown' or 'keep' or 'refuse', found 'warn'\. 'warn' is now"):
        load_urdf(file, impossible="warn")  # type: ignore[arg-type]


def test_a_mass_that_is_not_positive_is_unknown_with_all_its_moments(tmp_path: Path) -> None:
    file = tmp_path / "odd.urdf"
    massless = '<mass value="0"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1"/>'
    for mass in (massless, massless.replace('value="0"', 'value="-2"')):
        file.write_text(re.sub('<mass value="0.2"/><inertia[^>]*>', mass, ROBOT))
        with pytest.warns(DataWarning, match="1 of 7 links"):
            machine = load_urdf(file)
        assert machine.parameters.missing() == tuple(f"{symbol}_finger" for symbol in INERTIAL)


def test_the_base_of_a_model_file_is_its_own(tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    file.write_text(model_text(load(ROBOT)))
    with pytest.raises(ModelError, match="a model file says itself what its base is"):
        load_model(file, base="free")
    (tmp_path / "robot.urdf").write_text(ROBOT)
    assert load_model(tmp_path / "robot.urdf", base="free").base == "free"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '<mass value="2.1"/>',
            '<mass value="2100"/>',
            r"link 'arm' \(line 27\): its inertia does not look like SI.*gram",
        ),
        ('ixx="0.05" ixy="0.002"', 'ixx="5e9" ixy="0.002"', r"link 'column' \(line 6\).*does not look like SI"),
        ('xyz="0.4 0.05 0"', 'xyz="400 50 0"', r"joint 'spin' \(line 34\): its offset looks like millimetres.\nExp"),
        ('xyz="0.2 0 0.03"', 'xyz="200 0 30"', r"link 'arm' \(line 28\): its centre of mass looks like millim"),
        (
            'rpy="0.4 0 0"',
            'rpy="90 0 0"',
            r"joint 'lever' \(line 67\): its angles look like degrees.\nExpected radians",
        ),
        (
            'xyz="0.6 0 -0.8"',
            'xyz="3 0 -4"',
            r"joint 'spin' .*not of length 1; only its direction counts.\nFound length 5",
        ),
        ('damping="0.7"', 'damping="-0.7"', r"joint 'turn' \(line 24\): its friction is below zero.\nFound -0.7"),
        (
            'friction="0.05"',
            'friction="0.05" spring_stiffness="1"',
            r"'spring_stiffness' of its <dynamics> is not read",
        ),
    ],
)
def test_what_looks_wrong_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "robot.urdf"
    assert ROBOT.count(old) == 1
    file.write_text(ROBOT.replace(old, new))
    impossible = "keep" if "5e9" in new else "refuse"
    with pytest.warns(DataWarning) as warned:
        load_urdf(file, impossible=impossible)
    assert re.search("(?s)" + message, str(warned[-1].message))
    assert len(warned) == (2 if impossible == "keep" else 1)


def test_point_masses_and_links_without_mass_are_not_odd() -> None:
    text = ROBOT.replace('<mass value="0.2"/><inertia ixx="2e-4"', '<mass value="0.2"/><inertia ixx="0"')
    text = text.replace('iyy="3e-4" iyz="0" izz="2e-4"', 'iyy="0" iyz="0" izz="0"', 1)
    assert load(text).parameters["M_finger"] == 0.2
    assert load(text.replace('<mass value="0.2"/>', '<mass value="0"/>')).parameters["M_finger"] == 0.0


# What is refused


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        ('<parent link="arm"/>', '<parent link="armm"/>', '"spin"', "its parent 'armm' is not a link of this file.*'arm'?"),
        ('<child link="flap2"/>', '<child link="x"/>', '"flap2_joint" ', "joint 'flap2_joint'.*its child 'x' is not a link"),
        ('<parent link="arm"/>', "", '"spin"', "joint 'spin'.*it names no parent.\nExpected <parent link="),
        ('<child link="arm"/>', "<child/>", "<child/>", "joint 'turn'.*it names no child"),
        ('<link name="flap"', '<link name="lost"/><link name="flap"', '"lost"', "2 links are carried by no joint: world, lost"),
        ('<child link="flap2"/>', '<child link="flap"/>', '"flap2_joint" ', "carried by joint 'lever' .line 66. already.\nA URDF is"),
        ('<link name="finger"', '<link name="arm"', '<link name="arm"', "'arm'.*stands twice.\nFound the first on line 26"),
        ('<joint name="slide2"', '<joint name="turn"', '<joint name="turn"', "joint 'turn'.*the name stands twice"),
        ('<link name="finger2"', '<link name=" "', '<link name=" "', "a link has no name.\nExpected <link name="),
        ('"spin" type="continuous"', '"spin" type="revolut"', '"spin"', "'revolut' is no type of joint.*Did you mean 'revolute'"),
        ('"0.6 0 -0.8"', '"0 0 0.0"', '"0 0 0.0"', "joint 'spin'.*its axis has no direction.\nExpected a vector of length 1"),
        ('"0.6 0 -0.8"', '"0.6 0"', '"0.6 0"', "'xyz' of <axis> is no vector.\nExpected three numbers, found '0.6 0'"),
        ('"0.4 0.05 0"', '"0,4 0,05 0"', '"0,4 0,05 0"', "'xyz' of <origin> is not a number.*decimal point"),
        ('"0.4 0.05 0"', '"0.4, 0.05"', '"0.4, 0.05"', "is no vector.*Spaces part the numbers"),
        ('"0.4 0.05 0"', '"0.4 nan 0"', '"0.4 nan 0"', "'xyz' of <origin> is not a finite number.\nFound 'nan'"),
        ('"0.4 0.05 0"', '"0.4 1e60 0"', '"0.4 1e60 0"', "too large a number"),
        ('xyz="0.4 0.05 0"', 'xzy="0.4 0.05 0"', "xzy", "<origin> has no attribute 'xzy'.*Did you mean 'xyz'"),
        ('rpy="0 0.5 0"', 'quat_xyzw="0 0 0 1"', "quat_xyzw", "<origin> has no attribute 'quat_xyzw'"),
        ('<mass value="2.1"/>', '<mass value="inf"/>', '"inf"', "link 'arm'.*'value' of <mass> is not a finite number"),
        ('<mass value="2.1"/>', '<mass value="2_1"/>', '"2_1"', "'value' of <mass> is not a number.\nFound '2_1'"),
        ('<mass value="2.1"/>', "<mass/>", "<mass/>", "<mass> has no 'value'"),
        ('<inertial>\n      <origin xyz="0.2 0 0.03"/>\n      <mass value="2.1"/>', "<inertial  >", "<inertial  >", "has no <mass>"),
        ('<mass value="2.1"/>', '<mass value="-2.1"/>', '<link name="arm"', "link 'arm'.*no distribution of mass.*below zero"),
        ('ixx="0.05" ixy="0.002"', 'ixx="0.05"', 'ixx="0.05"', "link 'column'.*<inertia> has no 'ixy'"),
        ('<mimic joint="slide"', '<mimic joint="slid"', '"slide2"', "that is not in this file.\nFound 'slid'.*Did you mean 'slide'"),
        ('<mimic joint="slide"', '<mimic joint="turn"', '"slide2"', "of another kind.*both turning.*found prismatic after revolute"),
        ('<mimic joint="slide"', "<mimic", "<mimic mult", "its <mimic> names no joint"),
        ('<mimic joint="turn"', '<mimic joint="lever"', '<joint name="lever"', "in a circle.*lever → flap2_joint → lever"),
        ('<link name="forearm">', '<link name="forearm"><inertia/>', "<inertia/>", "no tag <inertia> here.*Did you mean 'inertial'"),
    ],
)  # fmt: skip
def test_every_fault_is_named_with_its_line(old: str, new: str, at: str, message: str) -> None:
    assert old in ROBOT
    text = ROBOT.replace(old, new, 1)
    line = text.count("\n", 0, text.rindex(at)) + 1
    with pytest.raises(ModelError) as e:
        load(text)
    assert e.value.source == "robot.urdf"
    own = [fault for fault in e.value.faults if fault.line == line and re.search("(?s)" + message, str(fault))]
    assert own, str(e.value)


def test_a_fault_has_no_echo() -> None:
    """One slip is one fault: what follows from it is not reported as well."""
    for old, new in (
        ('<child link="flap2"/>', '<child link="x"/>'),
        ('<child link="arm"/>', "<child/>"),
        ('"turn" type="revolute"', '"turn" type="revolut"'),
        ('<mass value="2.1"/>', '<mass value="x"/>'),
        ('xyz="0.6 0 -0.8"', 'xyz="0 0 x"'),
    ):
        with pytest.raises(ModelError) as e:
            load(ROBOT.replace(old, new))
        assert len(e.value.faults) == 1, str(e.value)


def test_a_circle_is_not_a_tree() -> None:
    text = ROBOT.replace('<parent link="world"/>', '<parent link="forearm"/>')
    with pytest.raises(ModelError, match=r"joint 'foot' .line 13.: its child is its own ancestor.*\nFound column → f"):
        load(text)
    with pytest.raises(ModelError, match="Found column → column"):
        load(ROBOT.replace('<parent link="world"/>', '<parent link="column"/>'))


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = (
        ODD.replace('"0.6 0 -0.8"', '"0 0 0"').replace('value="4.2"', 'value="x"').replace('joint="slide"', 'joint="s"')
    )
    with pytest.raises(ModelError, match=r"^robot.urdf, 4 faults:\n1. ") as e:
        load(text)
    assert [fault.line for fault in e.value.faults] == [8, 26, 36, 55]


def test_base_and_gravity_are_checked() -> None:
    with pytest.raises(ModelError, match="the base is of no known kind"):
        load(ROBOT, "floating")
    with pytest.raises(ModelError, match="gravity is not a vector"):
        load(ROBOT, gravity=(0.0, float("nan"), 0.0))
    with pytest.raises(ModelError, match="there is no link"):
        load('<robot name="x"/>')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("name: robot\n", r"line 1: this is not XML"),
        (ROBOT[:1000], r"this is not XML.*\n<.*of line \d+ is never closed. Is the file complete"),
        ("<robot>\n<link>\n</robot>", r"line 3: this is not XML: mismatched tag"),
        ("<robot>&x;</robot>", r"this is not XML: undefined entity"),
        ("<sdf version='1.6'/>", r"line 1: this is not a URDF file.\nExpected <robot>, found <sdf>. This is an SDF"),
        ('<!DOCTYPE robot [<!ENTITY a "b">]>\n<robot name="&a;"/>', r"line 1: a document type is declared"),
        ('<robot>\n<xacro:arm side="l"/>\n</robot>', r"line 2: this is a xacro file.*first <xacro:arm>.*Expand it"),
        (ROBOT.replace('"4.2"', '"${m}"'), r"line 8: this is a xacro file, not yet a URDF.\nFound 1 elements"),
    ],
)
def test_what_is_no_urdf_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "r.urdf"
    file.write_text(text)
    with pytest.raises(FileError, match="(?s)^r.urdf, .*" + message):
        load_urdf(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(ROBOT)
    with pytest.raises(FileError, match=r"there is no such file.*\n.*Did you mean 'robot.urdf'"):
        load_urdf(tmp_path / "robto.urdf")
    with pytest.raises(FileError, match="there is no such file"):
        load_urdf(tmp_path / "nowhere" / "robot.urdf")
    with pytest.raises(FileError, match="this is a folder"):
        load_urdf(tmp_path)


def test_damaged_files_end_in_an_error_of_ours(tmp_path: Path) -> None:
    """Cut short, with bytes changed or pieces moved, a file is read, or refused by a named error, and nothing else."""
    rng = np.random.default_rng(6)
    data, file = ROBOT.encode(), tmp_path / "robot.urdf"
    for k in range(250):
        raw = bytearray(data)
        if k % 3 == 0:
            raw = raw[: rng.integers(len(raw))]
        elif k % 3 == 1:
            for at in rng.integers(len(raw), size=4):
                raw[at] = rng.integers(256)
        else:
            a, b = sorted(rng.integers(len(raw), size=2))
            raw[a:b] = raw[a:b][: rng.integers(1, 40)]
        file.write_bytes(bytes(raw))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            with suppress(VeridynError):
                assert np.isfinite(load_urdf(file).parameters.values).all()


def test_ten_parameters_of_every_link_are_named() -> None:
    machine = load(ROBOT)
    assert machine.parameters.names[:10] == tuple(f"{s}_column" for s in INERTIAL)
