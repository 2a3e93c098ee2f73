"""URDF files written: the new numbers, the same forces, and not another byte changed; new ones are the same machine, by Pinocchio too."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import veridyn as vd
from strangers.random_trees import random_inertia, random_motion, random_open_machine
from veridyn.errors import DataWarning, FileError, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.identify.estimate import identify
from veridyn.machines.leg import leg
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.model.elements.element import Element, coulomb, damper, motor_inertia, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import INERTIAL
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
DATA = os.environ.get("VERIDYN_DATA", "")

ROBOT = """<?xml version='1.0'?>
<robot name="two links"><!-- drawn by hand: é, "quotes" and all -->
  <link name="base"/>
  <link name='upper'>
    <!-- from the drawing -->
    <inertial>
      <mass  value = '3.0' />
      <origin rpy="0.3 -0.2 0.9"
              xyz="0.1 0.02 0"/>
      <inertia ixx="0.02" ixy="0" ixz="0"
               iyy="0.03" iyz="0" izz="0.03"/>
    </inertial>
    <visual><geometry><mesh filename="upper.stl" scale="1 1 1"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/> <child link="upper"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="50"/>
    <dynamics damping="0.5"/>
  </joint>
  <link name="lower">
    <inertial><mass value="1.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
  </link>
  <joint name="elbow" type="revolute">
    <origin xyz="0.4 0 0" rpy="0 0.3 0"/>
    <parent link="upper"/> <child link="lower"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="3" effort="20"/>
  </joint>
  <link name="jaw">
    <inertial><mass value="0.2"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
  </link>
  <joint name="bite" type="continuous">
    <parent link="lower"/> <child link="jaw"/>
    <axis xyz="1 0 0"/>
    <mimic joint="elbow" multiplier="-2" offset="0.1"/>
    <dynamics damping="0.02" friction="0.1"/>
  </joint>
</robot>
"""
ARMATURE = "a URDF has no place for Ia_thigh, Ia_calf"


@pytest.fixture
def like(tmp_path: Path) -> Path:
    file = tmp_path / "robot.urdf"
    file.write_bytes(ROBOT.encode())
    return file


def forces(machine: Machine, motion: Motion) -> Array:
    return inverse_dynamics(machine, motion, engine="numpy")


def assert_same_forces(a: Machine, b: Machine, seed: int = 0) -> None:
    motion = random_motion(np.random.default_rng(seed), a, wrenches=False)
    wanted = forces(a, motion)
    np.testing.assert_allclose(forces(b, motion), wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())


def with_inertia(machine: Machine, rng: np.random.Generator) -> Machine:
    """Another machine of the same build, whose inertia is possible."""
    new = {
        link.parameter(symbol): x
        for link in machine.links
        if link.real
        for symbol, x in zip(INERTIAL, random_inertia(rng), strict=True)
    }
    return machine.with_parameters(new | {e.parameter_name: float(rng.uniform(0.1, 1.0)) for e in machine.elements})


def with_elements(machine: Machine, elements: list[Element]) -> Machine:
    built = Machine.build(machine.links, machine.joints, name=machine.name, gravity=machine.gravity, elements=elements)
    kept = {n: machine.parameters[n] for n in machine.parameters.names if n in built.parameters.names}
    return built.with_parameters(kept)


def pin_forces(text: str, machine: Machine, motion: Motion) -> Array:
    model = pin.buildModelFromXML(text)
    data = model.createData()
    S = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]])
    assert list(model.names)[1:] == ["shoulder", "elbow", "bite"] and machine.coordinates == ("shoulder", "elbow")
    out = []
    for q, qd, qdd in zip(motion.q, motion.qd, motion.qdd):
        a, b, c = S @ q + [0.0, 0.0, 0.1]
        out.append(S.T @ pin.rnea(model, data, np.array([a, b, np.cos(c), np.sin(c)]), S @ qd, S @ qdd))
    return np.array(out)


# What comes back


def test_nothing_new_is_the_same_file(like: Path, tmp_path: Path) -> None:
    save_urdf(load_urdf(like), tmp_path / "same.urdf", like)
    assert (tmp_path / "same.urdf").read_bytes() == like.read_bytes()


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_new_parameters_come_back(like: Path, tmp_path: Path, base: str) -> None:
    rng = np.random.default_rng(0)
    machine = with_inertia(load_urdf(like, base), rng)
    save_urdf(machine, tmp_path / "new.urdf", like)
    again = load_urdf(tmp_path / "new.urdf", base)
    assert again.parameters.names == machine.parameters.names
    np.testing.assert_allclose(again.parameters.values, machine.parameters.values, rtol=1e-12, atol=1e-13)
    assert_same_forces(machine, again)


def test_pinocchio_reads_the_same_machine(like: Path, tmp_path: Path) -> None:
    machine = with_inertia(load_urdf(like), np.random.default_rng(1))
    save_urdf(machine, tmp_path / "new.urdf", like)
    motion = random_motion(np.random.default_rng(2), machine, wrenches=False)
    rigid = machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})
    wanted = forces(rigid, motion)
    found = pin_forces((tmp_path / "new.urdf").read_text(), machine, motion)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-12 * np.abs(wanted).max())


def test_only_numbers_change(like: Path, tmp_path: Path) -> None:
    machine = with_inertia(load_urdf(like), np.random.default_rng(3))
    save_urdf(machine, tmp_path / "new.urdf", like)
    new = (tmp_path / "new.urdf").read_text()
    assert '<origin rpy="0.3 -0.2 0.9"\n              xyz="' in new  # the file's own axes stay
    inserted = re.compile(r'\n?\s*<origin xyz="[^"]*" rpy="0 0 0"/>')
    number = re.compile(r"""(["'])[-+0-9.e ]+\1""")
    assert inserted.search(new)
    friction = new.replace('<dynamics damping="', '<dynamics "')
    friction = re.sub(r' friction="[^"]*"', "", friction)
    bare = re.sub(r' friction="[^"]*"', "", ROBOT.replace('<dynamics damping="', '<dynamics "'))
    assert number.sub("N", inserted.sub("", friction)) == number.sub("N", bare)


def test_marks_and_line_ends_stay(tmp_path: Path) -> None:
    like = tmp_path / "dos.urdf"
    like.write_bytes(b"\xef\xbb\xbf" + ROBOT.replace("\n", "\r\n").encode())
    machine = with_inertia(load_urdf(like), np.random.default_rng(4))
    save_urdf(machine, tmp_path / "new.urdf", like)
    new = (tmp_path / "new.urdf").read_bytes()
    assert new.startswith(b"\xef\xbb\xbf<?xml") and new.count(b"\r\n") == new.count(b"\n")
    assert_same_forces(machine, load_urdf(tmp_path / "new.urdf"))


def test_friction_goes_to_its_joint(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like)
    rigid = with_elements(machine, [])
    # A damper on 3 q of the elbow is nine dampers on q; one named after the follower is put there, at ratio −2.
    elements = [
        damper({"elbow": 3.0}, 0.1, "viscous"),
        coulomb({"elbow": -4.0}, 0.5, "fs_bite"),
        coulomb("shoulder", 0.25),
    ]
    rubbed = with_elements(rigid, elements)
    save_urdf(rubbed, tmp_path / "new.urdf", like)
    again = load_urdf(tmp_path / "new.urdf")
    assert_same_forces(rubbed, again)
    found = {e.parameter_name: (dict(e.on), e.value) for e in again.elements}
    assert found == {
        "fs_shoulder": ({"shoulder": 1.0}, 0.25),
        "h_elbow": ({"elbow": 1.0}, pytest.approx(0.9)),
        "fs_bite": ({"elbow": -2.0}, 1.0),
    }
    text = (tmp_path / "new.urdf").read_text()
    assert '<dynamics damping="0.0" friction="0.25"/>' in text  # the tree has no damper on the shoulder
    assert '<joint name="elbow" type="revolute">\n    <dynamics damping="0.9' in text


def test_what_a_urdf_cannot_hold_is_left_out_by_name(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like)
    extra = [motor_inertia("elbow", 0.3), spring("shoulder", 2.0), damper({"shoulder": 1.0, "elbow": 1.0}, 0.1)]
    more = with_elements(machine, [*machine.elements, *extra])
    with pytest.warns(DataWarning, match=r"new.urdf: .* no place for Ia_elbow, k_shoulder, h_shoulder_elbow: left out"):
        save_urdf(more, tmp_path / "new.urdf", like)
    assert (tmp_path / "new.urdf").read_bytes() == like.read_bytes()
    unknown = with_elements(machine, [*machine.elements, spring("shoulder")])
    with pytest.warns(DataWarning, match="left out"):
        save_urdf(unknown, tmp_path / "new.urdf", like, overwrite=True)


def test_a_fit_is_written_as_its_standard_parameters(like: Path, tmp_path: Path) -> None:
    """The machine differs from the drawing; noise-free data give its forces back, through the file and on another motion."""
    rng = np.random.default_rng(5)
    drawn = load_urdf(like)
    true = with_inertia(drawn, rng)
    motion = random_motion(rng, true, 400, wrenches=False)
    fit = identify(drawn, replace(motion, forces=forces(true, motion)), "ols", diagnose="off")
    with pytest.raises(ModelError, match=r"no distribution of mass has this inertia.*\nEstimate under the laws") as e:
        save_urdf(fit, tmp_path / "fit.urdf", like)
    assert not (tmp_path / "fit.urdf").exists()
    assert all(fault.where.startswith("link '") for fault in e.value.faults)
    save_urdf(fit, tmp_path / "fit.urdf", like, allow_impossible=True)
    with pytest.warns(DataWarning, match=r"links? ha.* that no physical body has .* kept as in the file"):
        again = load_urdf(tmp_path / "fit.urdf", impossible="keep")
    np.testing.assert_allclose(again.parameters.values, fit.standard, rtol=1e-9, atol=1e-9)
    other = random_motion(rng, true, 50, wrenches=False)
    np.testing.assert_allclose(forces(again, other), forces(true, other), rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("name", ["kuka_lwr4/kuka_lwr4.urdf", "ur10e/ur10e.urdf", "icub/model.urdf"])
def test_real_machines_come_back(name: str, tmp_path: Path) -> None:
    like = Path(DATA) / name
    if not DATA or not like.exists():
        pytest.skip(f"VERIDYN_DATA has no {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of the original: see test_urdf.py
        machine = load_urdf(like, "free" if "icub" in name else "fixed")
        save_urdf(machine, tmp_path / "same.urdf", like)
        assert (tmp_path / "same.urdf").read_bytes() == like.read_bytes()
        new = with_inertia(machine, np.random.default_rng(6))
        save_urdf(new, tmp_path / "new.urdf", like)
        again = load_urdf(tmp_path / "new.urdf", machine.base)
    assert_same_forces(new, again)
    changed, kept = ((tmp_path / "new.urdf").read_text(), like.read_text())
    assert re.findall("<!--.*?-->", changed, re.DOTALL) == re.findall("<!--.*?-->", kept, re.DOTALL)
    assert changed.count("<") == kept.count("<")


# What is refused


def test_impossible_sets_are_refused_with_all_reasons(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like)
    odd = machine.with_parameters({"ZZ_upper": 9.0, "M_lower": -1.0, "h_shoulder": -0.5})
    with pytest.raises(ModelError) as e:
        save_urdf(odd, tmp_path / "odd.urdf", like)
    text = str(e.value)
    assert text.startswith("two links, 3 faults:\n1. link 'upper': no distribution of mass has this inertia: ")
    assert "breaks the triangle inequality" in text
    assert "2. link 'lower': no distribution of mass has this inertia: the mass is -1 kg, below zero" in text
    assert "3. joint 'shoulder': its damping is below zero, so it would drive the joint.\nFound -0.5." in text
    assert "allow_impossible=True" in text
    save_urdf(odd, tmp_path / "odd.urdf", like, allow_impossible=True)
    with pytest.warns(DataWarning) as warned:
        assert_same_forces(odd, load_urdf(tmp_path / "odd.urdf", impossible="keep"))
    assert [str(w.message) for w in warned] == [
        "odd.urdf, 2 of 3 links have inertias that no physical body has (upper, lower); they are kept as in the file.",
        "odd.urdf, joint 'shoulder' (line 19): its friction is below zero.\nFound -0.5.",
    ]


def test_first_moments_without_mass_cannot_be_written(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like)
    with pytest.raises(ModelError, match="link 'lower': a URDF states the centre of mass, and there is none"):
        save_urdf(
            machine.with_parameters({"M_lower": 0.0, "MX_lower": 0.5}), tmp_path / "n.urdf", like, allow_impossible=True
        )
    tiny = machine.with_parameters({"M_lower": 1e-14, "MX_lower": 0.5})
    with pytest.raises(ModelError, match=r"(?s)row '.*': read again, .* nothing was written.*very small beside"):
        save_urdf(tiny, tmp_path / "n.urdf", like, allow_impossible=True)
    assert list(tmp_path.iterdir()) == [like]
    none = {name: 0.0 for name in machine.parameters.names if name.endswith("_lower")}
    save_urdf(machine.with_parameters(none), tmp_path / "n.urdf", like)
    assert load_urdf(tmp_path / "n.urdf").parameters["M_lower"] == 0.0


def test_parameters_without_values_are_refused(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like).with_parameters({"XX_upper": float("nan"), "h_shoulder": float("nan")})
    with pytest.raises(ModelError, match="2 parameters have no value: XX_upper, h_shoulder"):
        save_urdf(machine, tmp_path / "n.urdf", like)


def test_another_machine_is_refused(like: Path, tmp_path: Path) -> None:
    machine = load_urdf(like)
    other = tmp_path / "other.urdf"
    text = ROBOT.replace('xyz="0.4 0 0"', 'xyz="0.5 0 0"').replace(
        'name="bite" type="continuous"', 'name="bite" type="fixed"'
    )
    other.write_text(text.replace('"jaw"', '"tooth"'))
    with pytest.raises(ModelError) as e:
        save_urdf(machine, tmp_path / "n.urdf", other)
    text = str(e.value)
    assert "1. the tree is not the machine of other.urdf.\nSave it like the file it was loaded from." in text
    assert "body 'jaw': the file has no such link" in text
    assert "link 'tooth': the tree has no such body" in text
    assert "body 'lower': its frame sits elsewhere in the file" in text
    other.write_text(ROBOT.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="shoulder"/>'))
    with pytest.raises(
        ModelError, match=r"body 'lower': its coordinate is another one .*\nExpected shoulder, found elbow"
    ):
        save_urdf(machine, tmp_path / "n.urdf", other)
    with pytest.raises(ModelError, match=r"body 'base_x'.*: the file has no such link"):
        save_urdf(on_six_joints(load_urdf(like, "free")), tmp_path / "n.urdf", like)


def test_nothing_is_written_over(like: Path, tmp_path: Path) -> None:
    machine = with_inertia(load_urdf(like), np.random.default_rng(7))
    with pytest.raises(FileError, match="it exists already"):
        save_urdf(machine, like, like)
    assert like.read_bytes() == ROBOT.encode()
    save_urdf(machine, like, like, overwrite=True)
    assert_same_forces(machine, load_urdf(like))
    with pytest.raises(FileError, match="there is no such file"):
        save_urdf(machine, tmp_path / "n.urdf", tmp_path / "lost.urdf")
    assert list(tmp_path.iterdir()) == [like]


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_a_new_urdf_is_the_same_machine(tmp_path: Path, seed: int, base: str) -> None:
    rng = np.random.default_rng(seed)
    machine = random_open_machine(rng, base=base, virtual=0.2)  # type: ignore[arg-type]
    machine = machine.with_elements([e for c in machine.coordinates for e in (damper(c, 0.3), coulomb(c, 0.2))])
    save_urdf(machine, tmp_path / "new.urdf")
    again = load_urdf(tmp_path / "new.urdf", gravity=machine.gravity)
    assert again.base == machine.base and again.coordinates == machine.coordinates
    m = random_motion(rng, machine, 5, wrenches=False)
    wanted = inverse_dynamics(machine, m, engine="numpy")
    assert np.abs(inverse_dynamics(again, m, engine="numpy") - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_pinocchio_reads_a_new_urdf_as_the_same_machine(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(7)
    machine = random_open_machine(rng, 5, kinds=("turning", "sliding"), branched=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        save_urdf(machine.with_elements([spring(machine.coordinates[0], 1.0)]), tmp_path / "new.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "new.urdf"))
    model.gravity.linear = machine.gravity
    q, qd, qdd = rng.standard_normal((3, 5))
    parts = [
        (np.cos(x), np.sin(x)) if kind == "turning" else (x,)
        for x, kind in zip(q, machine.coordinate_kinds, strict=True)
    ]
    wanted = pin.rnea(model, model.createData(), np.array([x for part in parts for x in part]), qd, qdd)
    m = random_motion(rng, machine, 1, wrenches=False)
    found = inverse_dynamics(machine, type(m)(m.t, q[None], qd[None], qdd[None]), engine="numpy")[0]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_joints_that_share_a_coordinate_mimic_the_first(tmp_path: Path) -> None:
    ten = [1.0, 0, 0, 1, 0, 1, 0.1, 0, 0, 1]
    bodies = [Body("a", coordinate="c"), Body("b", "a", placement=MDH(d=0.3), coordinate="c", ratio=-2.0)]
    machine = Machine.of_bodies(bodies, inertia={"a": ten, "b": ten}, elements=[damper("c", 0.4)])
    save_urdf(machine, tmp_path / "new.urdf")
    again = load_urdf(tmp_path / "new.urdf")
    assert again.coordinates == ("c",) and again.joints[1].ratio == -2.0
    turned = Machine.of_bodies([Body("a", coordinate="c", ratio=2.0)], inertia={"a": ten})
    with pytest.raises(ModelError, match="ratio of its own coordinate"):
        save_urdf(turned, tmp_path / "turned.urdf")


def test_loops_and_missing_values_are_refused(tmp_path: Path) -> None:
    linkage = load_model("veridyn:linkage.yaml")
    with pytest.raises(ModelError, match="closed loops"):
        save_urdf(linkage, tmp_path / "no.urdf")
    with pytest.raises(ModelError, match="no value"):
        save_urdf(random_open_machine(np.random.default_rng(1), 2, inertia=False), tmp_path / "no.urdf")
    assert not (tmp_path / "no.urdf").exists()


def test_what_a_urdf_has_no_place_for_is_named(tmp_path: Path) -> None:
    machine = random_open_machine(np.random.default_rng(1), 2, kinds=("turning",))
    with pytest.warns(DataWarning, match="no place for k_q1"):
        save_urdf(machine.with_elements([spring("q1", 2.0)]), tmp_path / "new.urdf")


def changed(machine: vd.Machine, **constants: float) -> vd.Machine:
    return machine.with_controllers([replace(c, constants={**c.constants, **constants}) for c in machine.controllers])


def gains(file: Path) -> dict[str, dict[str, float]]:
    root = ElementTree.parse(file).getroot()  # written here, a moment ago
    found = {}
    for joint in root.findall("ros2_control/joint"):
        found[joint.get("name", "")] = {p.get("name", ""): float(p.text or "nan") for p in joint.findall("param")}
    return found


def test_gains_are_written_and_the_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "leg.urdf"
    with pytest.warns(DataWarning, match=ARMATURE):
        save_urdf(changed(leg(), kp=21.5, kd=0.9), file)
    assert gains(file) == {j: {"pos_kp": 21.5, "pos_ki": 0.0, "pos_kd": 0.9} for j in ("thigh", "calf")}
    root = ElementTree.parse(file).getroot()
    assert [e.get("name") for e in root.findall("ros2_control/joint/command_interface")] == ["position_pid"] * 2
    again = load_urdf(file, "fixed")
    assert again.coordinates == ("thigh", "calf")
    assert again.parameters["fs_calf"] == 0.2


@pytest.mark.filterwarnings(f"ignore:.*{ARMATURE}")
def test_what_the_tags_cannot_hold_is_named(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="no place for delays of commands, encoder zeros, limits of force: left out"):
        save_urdf(changed(leg(), command_delay=0.004, zero=0.01, limit=20.0), tmp_path / "leg.urdf")
    with pytest.warns(
        DataWarning, match="no place for friction that grows with load, friction of backdriven gears: left"
    ):
        save_urdf(changed(leg(), load_friction=0.1, backdrive_friction=0.1), tmp_path / "gears.urdf")
    other = leg().with_controllers([replace(c, feedforward="gravity") for c in leg().controllers])
    with pytest.warns(DataWarning, match="no place for controller thigh_drive, controller calf_drive: left out"):
        save_urdf(other, tmp_path / "other.urdf")
    assert gains(tmp_path / "other.urdf") == {}


@pytest.mark.filterwarnings(f"ignore:.*{ARMATURE}")
def test_a_file_keeps_its_own_tags(tmp_path: Path) -> None:
    file, copy = tmp_path / "leg.urdf", tmp_path / "copy.urdf"
    save_urdf(leg(), file)
    with pytest.warns(DataWarning, match="of its own, which stays as it is"):
        save_urdf(changed(leg(), kp=99.0), copy, file)
    assert gains(copy) == gains(file)
    bare = leg().with_controllers([])
    save_urdf(bare, tmp_path / "bare.urdf")
    save_urdf(changed(leg(), kp=33.0), tmp_path / "with.urdf", tmp_path / "bare.urdf")
    assert gains(tmp_path / "with.urdf")["calf"]["pos_kp"] == 33.0
