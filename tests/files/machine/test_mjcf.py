"""MJCF read without MuJoCo: the machine that MuJoCo's own compiler makes of the same file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.random_trees import random_open_machine
from veridyn.errors import DataWarning, FileError, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.mjcf import load_mjcf, mjcf_limits
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element, coulomb, damper, motor_inertia, offset
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]

ARM = """<mujoco model="arm">
  <compiler angle="degree" eulerseq="zYx" autolimits="true"/>
  <option gravity="0.3 -0.2 -9.7"/>
  <default>
    <joint damping="0.4" armature="0.03"/>
    <default class="stiff"><joint stiffness="3" springref="20" axis="1 1 0"/>
      <default class="rail"><joint type="slide" stiffness="30" springref="0.1" damping="2"/></default></default>
    <general gear="2"/>
  </default>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 1"/>
    <body name="shoulder" pos="0.1 0.2 0.3" euler="10 20 30">
      <inertial pos="0.1 0 0.05" euler="5 -10 40" mass="2" diaginertia="0.02 0.03 0.04"/>
      <joint name="yaw" pos="0.02 0.03 0.01" axis="0 1 1" range="-90 45" ref="15"/>
      <joint name="lift" class="rail" axis="0 0 2"/>
      <frame pos="0 0 0.2" axisangle="0 0 1 40">
        <body name="elbow" childclass="stiff" zaxis="0.2 0.1 1">
          <inertial pos="0 0.1 0" mass="1" fullinertia="0.02 0.03 0.04 0.001 -0.002 0.003"/>
          <joint name="bend" damping="0" frictionloss="0"/>
          <body name="hand" pos="0.1 0 0.2" xyaxes="1 1 0 0 1 0.5">
            <inertial pos="0 0 0.1" quat="1 0.2 0 0.1" mass="0.5" diaginertia="0.002 0.003 0.004"/>
            <joint name="turn" axis="0 0 1" class="main"/>
            <body name="tip" quat="0 0 1 0" pos="0 0 0.1"><inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/></body>
          </body>
        </body>
      </frame>
    </body>
  </worldbody>
  <tendon><fixed name="cable" stiffness="4" damping="0.2"><joint joint="bend" coef="1"/><joint joint="turn" coef="-0.5"/></fixed></tendon>
  <actuator>
    <motor name="m_yaw" joint="yaw" gear="50"/>
    <general name="m_lift" joint="lift" gainprm="3"/>
    <motor name="m_bend" joint="bend" gear="1"/>
  </actuator>
</mujoco>
"""


def write(tmp_path: Path, text: str, name: str = "robot.xml") -> Path:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def inverse_of_mujoco(file: Path, machine: Machine, q: Array, qd: Array, qdd: Array) -> Array:
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(model)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, c) for c in machine.coordinates]
    at, dof = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    out = np.empty_like(q)
    for k in range(len(q)):
        d.qpos[at], d.qvel[dof], d.qacc[dof] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, d)
        out[k] = d.qfrc_inverse[dof]
    return out


def test_inverse_dynamics_are_those_of_mujocos_compiler(tmp_path: Path) -> None:
    """Degrees, Euler sequences, nested classes, frames, several joints on a body, references, off-centre axes, tendons."""
    file = write(tmp_path, ARM)
    machine = load_mjcf(file)
    assert machine.coordinates == ("yaw", "lift", "bend", "turn") and machine.name == "arm"
    q, qd, qdd = np.random.default_rng(1).standard_normal((3, 6, 4))
    wanted = inverse_of_mujoco(file, machine, q, qd, qdd)
    found = inverse_dynamics(machine, Motion(np.arange(6.0), q, qd, qdd), engine="numpy")
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()
    assert machine.actuated == (True, True, True, False)
    assert machine.transmission is not None
    assert dict(zip(machine.transmission.joints, 1.0 / np.diag(machine.transmission.matrix), strict=True)) == {
        "yaw": pytest.approx(50.0),
        "lift": pytest.approx(6.0),
        "bend": pytest.approx(1.0),
    }
    limits = mjcf_limits(file)
    assert (limits["yaw"].lower, limits["yaw"].upper) == pytest.approx((-np.pi / 2, np.pi / 4))
    assert np.isinf(limits["bend"].upper)


def full(machine: Machine, rng: np.random.Generator) -> Machine:
    made: list[Element] = []
    for c in machine.coordinates:
        made.append(Element(kind="spring", on={c: 1.0}, value=rng.uniform(1, 5), constants={"rest": rng.normal()}))
        made += [
            damper(c, rng.uniform(0.1, 2)),
            motor_inertia(c, rng.uniform(0.1, 2)),
            coulomb(c, 0.2),
            offset(c, -0.3),
        ]
    return machine.with_elements(made)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_a_round_trip_keeps_parameters_and_placements(tmp_path: Path, seed: int, base: str) -> None:
    rng = np.random.default_rng(seed)
    machine = full(random_open_machine(rng, base=base, virtual=0.2), rng)  # type: ignore[arg-type]
    save_mjcf(machine, tmp_path / "again.xml")
    again = load_model(tmp_path / "again.xml")
    assert list(again.body_names) == [b.name for b in _preorder(tree_of(machine))] and again.base == machine.base
    assert np.allclose(again.gravity, machine.gravity, rtol=1e-15)
    assert sorted(again.parameters.names) == sorted(machine.parameters.names)
    sizes = {
        b.name: max(abs(machine.parameters[b.parameter(s)]) for s in ("XX", "YY", "ZZ", "M"))
        for b in machine.links
        if b.real
    }
    before = {b.name: b for b in tree_of(machine).bodies}
    for a in tree_of(again).bodies:
        b = before[a.name]
        assert (a.antecedent, a.joint, a.real, a.coordinate_name, a.actuated) == (
            b.antecedent,
            b.joint,
            b.real,
            b.coordinate_name,
            b.actuated,
        )
        assert np.abs(a.placement.rotation - b.placement.rotation).max() < 1e-12
        assert np.abs(a.placement.position - b.placement.position).max() < 1e-12
        if b.real:
            for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"):
                assert (
                    abs(again.parameters[a.parameter(s)] - machine.parameters[b.parameter(s)]) < 1e-12 * sizes[b.name]
                )
    for e in machine.elements:
        assert again.parameters[e.parameter_name] == pytest.approx(machine.parameters[e.parameter_name], rel=1e-12)
        twin = next(x for x in again.elements if x.parameter_name == e.parameter_name)
        if e.kind == "spring":
            assert twin.constant("rest") == pytest.approx(e.constant("rest"), rel=1e-12)


def _preorder(tree: Tree) -> list[Body]:
    """Bodies as a nested file has them."""
    out: list[int] = []

    def visit(j: int) -> None:
        out.append(j)
        for k, i in enumerate(tree.antecedent):
            if i == j:
                visit(k)

    for root in [k for k, i in enumerate(tree.antecedent) if i < 0]:
        visit(root)
    return [tree.bodies[j] for j in out]


def test_a_transmission_and_a_coupled_spring_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    plain = random_open_machine(rng, 3, kinds=("turning",), branched=False)
    a, b, c = plain.coordinates
    T = np.array([[0.5, 0.0], [0.3, -0.4]])
    machine = Machine.build(
        plain.links,
        plain.joints,
        gravity=plain.gravity,
        elements=[Element(kind="spring", on={b: 1.0, c: -1.0}, value=2.0, constants={"rest": 0.4}), offset(c, 0.1)],
        transmission=Transmission(("m2", "m3"), (b, c), T),
    )
    save_mjcf(machine, tmp_path / "t.xml")
    again = load_mjcf(tmp_path / "t.xml")
    assert again.transmission is not None and again.transmission.motors == ("m2", "m3", a)
    order = [again.transmission.joints.index(x) for x in (b, c)]
    assert again.transmission.matrix[np.ix_(order, [0, 1])] == pytest.approx(T, rel=1e-12, abs=1e-14)
    spring = next(e for e in again.elements if e.kind == "spring")
    assert dict(spring.on) == {b: 1.0, c: -1.0} and spring.constant("rest") == pytest.approx(0.4)
    assert again.parameters[f"off_{c}"] == pytest.approx(0.1, rel=1e-12)


_TEN = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
BODY = '<body name="a"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{}</body>'


def model(inside: str = "", after: str = "", before: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{BODY.format(inside)}</worldbody>{after}</mujoco>"


def test_files_of_the_folder_are_included(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path, "<mujocoinclude><default><joint damping='2'/></default></mujocoinclude>", "parts/common.xml")
    file = write(tmp_path, model(before='<include file="parts/common.xml"/>'))
    assert load_mjcf(file).parameters["h_j"] == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (model(before='<include file="../secret.xml"/>'), "lies in the folder of this one"),
        (model(before='<include file="/etc/passwd"/>'), "lies in the folder of this one"),
        (model(before='<include file="robot.xml"/>'), "included twice"),
        (model(before='<include file="gone.xml"/>'), "does not exist"),
        ('<!DOCTYPE mujoco [<!ENTITY a "b">]><mujoco/>', "document type"),
        ("<mujoco><worldbody>", "not XML"),
        ("<robot/>", "This is a URDF file"),
        ("", "is empty"),
    ],
)
def test_files_that_are_no_mjcf_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        load_mjcf(write(tmp_path, text))


ON_J = '<joint joint="j" coef="2"/>'
TWO_FREE = "<mujoco><worldbody>" + '<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>' * 2
TWO_FREE += "</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody/></mujoco>", "there is no body"),
        (model('<body name="a"/>'), "two bodies of this name"),
        (model('<body name="b"><joint name="j"/></body>'), "two joints of this name"),
        (model('<body name="b"><joint type="ball"/></body>'), "type 'ball' is not read"),
        (model('<body name="b"><freejoint/></body>'), "only a body on the ground"),
        (
            model().replace('<joint name="j"/>', '<freejoint/><joint name="j"/>'),
            "a body with a free joint has no other",
        ),
        (TWO_FREE, "there are two free bodies, and a machine has one base"),
        (model('<body name="b" euler="1 2"/>'), "has 2 numbers"),
        (model('<body name="b" pos="0 nan 0"/>'), "not finite"),
        (model('<body name="b" pos="0 x 0"/>'), "not a number"),
        (model('<body name="b" quat="0 0 0 0"/>'), "no direction"),
        (model('<body name="b" quat="1 0 0 0" euler="0 0 0"/>'), "more than once"),
        (model('<body name="b"><joint axis="0 0 0"/></body>'), "no direction"),
        (model('<body name="b"><joint class="gone"/></body>'), "no default class 'gone'"),
        (model('<body name="b"><inertial mass="1"/></body>'), "no mass or no pos"),
        (model('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'), "more than once"),
        (model('<body name="b"><joint dampin="1"/></body>'), "no attribute 'dampin' of <joint>"),
        (model('<body name="b"><jiont/></body>'), "no tag <jiont>"),
        (model('<replicate count="3"><body/></replicate>'), "makes bodies that this reader does not see"),
        (model(before='<compiler angle="turns"/>'), "angle is unknown"),
        (model(before='<compiler eulerseq="abc"/>'), "Euler angles is unknown"),
        (model(before='<compiler coordinate="global"/>'), "only local coordinates"),
        (model(after='<actuator><motor joint="gone"/></actuator>'), "'gone' is not one of this file"),
        (model(after='<tendon><fixed><joint joint="gone"/></fixed></tendon>'), "'gone' is not one of this file"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_mjcf(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (model(after='<equality><joint joint1="j"/></equality>'), "<joint> of <equality> is not read"),
        (model(after='<actuator><position joint="j" kp="3"/></actuator>'), "law of <position> is not read"),
        (model(after="<tendon><spatial/></tendon>"), "<spatial> of <tendon> is not read"),
        (model('<body name="b"><geom size="1"/></body>'), "inertia from geoms is not computed"),
        (model(before='<compiler settotalmass="3"/>'), "'settotalmass' of <compiler> is not applied"),
        (model(before='<option viscosity="1"/>'), "no fluid acts"),
        (model('<body name="b" gravcomp="1"/>'), "'gravcomp' is not read: gravity acts on the whole body"),
        (model('<body name="ground"/>'), "a body called 'ground' is renamed"),
        (model(after='<actuator><muscle joint="j"/></actuator>'), "muscle> .*is not read"),
        (model(after='<actuator><motor site="s"/></actuator>'), "neither on a hinge or slide nor on a fixed tendon"),
        (
            model(after=f'<tendon><fixed springlength="0 1" stiffness="2">{ON_J}</fixed></tendon>'),
            "the dead band of a tendon's spring is not read",
        ),
        (
            model(
                '<body name="b"><joint name="k"/></body>',
                after=f'<tendon><fixed name="t">{ON_J}<joint joint="k" coef="1"/></fixed></tendon>'
                '<actuator><motor tendon="t"/></actuator>',
            ),
            "gears of actuators are not read: there is not one motor",
        ),
        (model(after="<sensor><gyro/></sensor>"), "<gyro> of <sensor> is not read"),
    ],
)
def test_what_is_not_read_is_one_warning_of_each_kind(tmp_path: Path, text: str, message: str) -> None:
    with pytest.warns(DataWarning, match=message) as said:
        load_mjcf(write(tmp_path, text))
    assert len(said) == 1


def test_an_inertia_that_no_body_has_is_unknown_or_refused(tmp_path: Path) -> None:
    file = write(tmp_path, model().replace("1 1 1", "1 1 9"))
    with pytest.warns(DataWarning, match="no physical body has"):
        assert np.isnan(load_model(file).parameters["ZZ_a"])
    with pytest.raises(ModelError, match="triangle inequality"):
        load_model(file, strict=True)


def test_the_base_is_free_where_a_free_joint_says_so(tmp_path: Path) -> None:
    text = model('<body name="b"><joint name="k"/></body>').replace('<joint name="j"/>', '<freejoint name="f"/>')
    file = write(tmp_path, text)
    assert load_model(file).base == "free"
    assert load_model(file, base="fixed").base == "fixed"
    with pytest.raises(ModelError, match="cannot move freely"):
        load_model(write(tmp_path, model(), "fixed.xml"), base="free")
