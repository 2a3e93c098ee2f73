"""MJCF written: MuJoCo's inverse dynamics of the file are veridyn's."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.random_trees import random_motion, random_open_machine, random_rotation
from veridyn.errors import DataWarning, FileError, ModelError
from veridyn.files.machine.joint_laws import Carried
from veridyn.files.machine.load import load_model
from veridyn.files.machine.mjcf_write import mjcf_text, save_mjcf
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.controller import Controller
from veridyn.model.elements.element import Element, coulomb, damper, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import quaternion

mujoco = pytest.importorskip("mujoco")
Array = NDArray[np.float64]
LEG = """<mujoco model="leg">
  <!-- a leg that hangs -->
  <compiler angle="degree" eulerseq="zyx"/>
  <option timestep="0.001"/>
  <default>
    <joint damping="0.6" armature="0.01" frictionloss="0.2"/>
    <default class="knee"><joint range="-150 -40"/><motor ctrlrange="-45 45"/></default>
  </default>
  <worldbody>
    <light pos="0 0 3"/>
    <body name="thigh" pos="0 0 1">
      <inertial mass="1.1" pos="0 0 -0.1" euler="20 0 5" diaginertia="0.006 0.005 0.002"/>
      <joint name="hip" axis="0 1 0" range="-60 60" stiffness="3" springref="10"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" rgba="1 0 0 1"/>
      <site name="imu" pos="0 0 -0.1"/>
      <body name="shank" pos="0 0 -0.2">
        <joint name="knee" class="knee" axis="0 1 0"/>
        <inertial mass="0.3" pos="0 0.01 -0.1" fullinertia="0.002 0.002 0.0002 0 0 0.0001"/>
        <geom type="sphere" size="0.03" pos="0 0 -0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="hip_motor" joint="hip" ctrlrange="-23 23"/>
    <motor name="knee_motor" joint="knee" class="knee"/>
  </actuator>
  <sensor><framequat name="attitude" objtype="site" objname="imu"/></sensor>
</mujoco>
"""


def with_laws(machine: Machine, rng: np.random.Generator) -> Machine:
    """The tree with springs, dampers and motor inertias on every coordinate, and on a combination of two of one kind."""
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    made: list[Element] = []
    for c in machine.coordinates:
        a = float(rng.choice([1.0, -0.6]))
        made.append(Element(kind="spring", on={c: a}, value=rng.uniform(1, 5), constants={"rest": rng.normal()}))
        made += [damper(c, rng.uniform(0.1, 2)), motor_inertia(c, rng.uniform(0.1, 2))]
    alike = [(a, b) for a in kinds for b in kinds if a < b and kinds[a] == kinds[b]]
    if alike:
        two = {alike[0][0]: 1.0, alike[0][1]: -0.7}
        made.append(Element(kind="spring", on=two, value=2.0, name="both_k", constants={"rest": -1.0}))
        made += [damper(two, 0.4, "both_h"), motor_inertia(two, 0.3, "both_I")]
    machine = machine.with_elements(made)
    return machine.without_elements([name for names in Carried.of(machine).left_out.values() for name in names])


class Engine:
    """MuJoCo's own model of a text."""

    def __init__(self, text: str, machine: Machine) -> None:
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        ids = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, c) for c in machine.coordinates]
        self.at, self.dof = self.model.jnt_qposadr[ids], self.model.jnt_dofadr[ids]

    def inverse(self, q: Array, qd: Array, qdd: Array) -> Array:
        out = np.empty_like(q)
        for k in range(len(q)):
            d = self.data
            d.qpos[self.at], d.qvel[self.dof], d.qacc[self.dof] = q[k], qd[k], qdd[k]
            mujoco.mj_inverse(self.model, d)
            out[k] = d.qfrc_inverse[self.dof]
        return out


@pytest.mark.parametrize("seed", range(8))
def test_inverse_dynamics_of_random_trees_are_mujocos(seed: int) -> None:
    rng = np.random.default_rng(seed)
    machine = with_laws(random_open_machine(rng, virtual=0.2), rng)
    m = random_motion(rng, machine, 6, wrenches=False)
    wanted = inverse_dynamics(machine, m, engine="numpy")
    found = Engine(mjcf_text(machine), machine).inverse(m.q, m.qd, m.qdd)
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()


@pytest.mark.parametrize("seed", range(4))
def test_inverse_dynamics_of_a_free_base_are_mujocos(seed: int) -> None:
    """The engine gives the force in the world's axes and the moment in the base's; veridyn both in the base's."""
    rng = np.random.default_rng(100 + seed)
    machine = with_laws(random_open_machine(rng, base="free"), rng)
    e = Engine(mjcf_text(machine), machine)
    R, v, a = random_rotation(rng), rng.standard_normal(6), rng.standard_normal(6)
    q, qd, qdd = rng.standard_normal((3, 1, machine.n))
    e.data.qpos[:3], e.data.qpos[3:7], e.data.qvel[:6], e.data.qacc[:6] = rng.standard_normal(3), quaternion(R), v, a
    joints = e.inverse(q, qd, qdd)[0]
    found = np.concatenate([R.T @ e.data.qfrc_inverse[:3], e.data.qfrc_inverse[3:6], joints])
    base = BaseMotion(v[None, 3:], a[None, 3:], (R.T @ (a[:3] - machine.gravity))[None], (R.T @ v[:3])[None])
    wanted = inverse_dynamics(machine, Motion(np.zeros(1), q, qd, qdd, base), engine="numpy")[0]
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_friction_loss_slides_with_the_same_force() -> None:
    """A soft constraint in MuJoCo: it is saturated at these speeds (above 1 rad/s), and compared there only."""
    rng = np.random.default_rng(5)
    machine = random_open_machine(rng, 4, kinds=("turning",))
    machine = machine.with_elements([coulomb(c, rng.uniform(0.1, 1.0)) for c in machine.coordinates])
    q, qdd = rng.standard_normal((2, 5, machine.n))
    qd = rng.uniform(1.0, 3.0, q.shape) * rng.choice([-1.0, 1.0], q.shape)
    wanted = inverse_dynamics(machine, Motion(np.arange(5.0), q, qd, qdd), engine="numpy")
    found = Engine(mjcf_text(machine), machine).inverse(q, qd, qdd)
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_offsets_and_transmissions_act_in_forward_dynamics() -> None:
    """With the motors' forces of inverse dynamics at its actuators MuJoCo accelerates as asked."""
    rng = np.random.default_rng(6)
    machine = random_open_machine(rng, 4, kinds=("turning",), branched=False)
    a, b, c, d = machine.coordinates
    through = Transmission(("m1", "m2", "m3"), (a, c, d), np.array([[0.02, 0, 0], [0, 0.5, 0], [0, 0.3, -0.4]]))
    machine = Machine.build(
        machine.links,
        machine.joints,
        gravity=machine.gravity,
        elements=[offset(a, 0.7), offset(b, 0.3), offset(d, -0.2), offset({c: 1.0, d: 0.5}, 0.4, "off_cd")],
        transmission=through,
    )
    q, qd, qdd = rng.standard_normal((3, 1, 4))
    forces = inverse_dynamics(machine, Motion(np.zeros(1), q, qd, qdd), engine="numpy")
    e = Engine(mjcf_text(machine), machine)
    motors = dict(zip(through.motors, through.motor_forces(forces[:, [0, 2, 3]])[0], strict=True)) | {b: forces[0, 1]}
    for name, force in motors.items():
        e.data.ctrl[mujoco.mj_name2id(e.model, mujoco.mjtObj.mjOBJ_ACTUATOR, name)] = force
    e.data.qpos[e.at], e.data.qvel[e.dof] = q[0], qd[0]
    mujoco.mj_forward(e.model, e.data)
    assert e.data.qacc[e.dof] == pytest.approx(qdd[0], rel=1e-9, abs=1e-9)


def test_rods_plates_and_point_masses_are_taken() -> None:
    """MuJoCo asks for A + B >= C of the principal moments and for some inertia; rounding and points break that."""
    rng = np.random.default_rng(7)
    bodies, tens = [], {}
    for k, r in enumerate((rng.standard_normal((2, 3)), rng.standard_normal((3, 3)), rng.standard_normal((1, 3)))):
        m = rng.uniform(0.5, 1.0, len(r))
        J = np.einsum("k,kab->ab", m, (r**2).sum(1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None, :])
        bodies.append(Body(f"b{k}", bodies[-1].name if bodies else "ground"))
        tens[f"b{k}"] = np.concatenate([J[np.triu_indices(3)], m @ r, [m.sum()]])
    machine = Machine.of_bodies(bodies, inertia=tens)
    m = random_motion(rng, machine, 3, wrenches=False)
    wanted = inverse_dynamics(machine, m, engine="numpy")
    found = Engine(mjcf_text(machine), machine).inverse(m.q, m.qd, m.qdd)
    assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_limits_become_ranges() -> None:
    machine = Machine.of_bodies([Body("arm")], inertia={"arm": [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]})
    model = mujoco.MjModel.from_xml_string(mjcf_text(machine, {"arm": UrdfLimits(-1.0, 2.0, 3.0, 40.0)}))
    assert model.jnt_range[0].tolist() == [-1.0, 2.0] and model.jnt_limited[0]
    assert model.actuator_ctrlrange[0].tolist() == [-40.0, 40.0]


def test_a_body_called_world_is_renamed() -> None:
    ten = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
    machine = Machine.of_bodies(
        [Body("world", joint="fixed"), Body("arm", "world")], inertia={"arm": ten, "world": ten}
    )
    assert mujoco.MjModel.from_xml_string(mjcf_text(machine)).nbody == 3


def test_what_would_move_otherwise_is_refused() -> None:
    rng = np.random.default_rng(8)
    with pytest.raises(ModelError, match="closed loops"):
        mjcf_text(load_model("veridyn:linkage.yaml"))
    with pytest.raises(ModelError, match="share a coordinate"):
        mjcf_text(random_open_machine(rng, 12, kinds=("turning",), shared=True))
    with pytest.raises(ModelError, match="have no value"):
        mjcf_text(random_open_machine(rng, 2, inertia=False))
    arm = Machine.of_bodies(
        [Body("arm")], inertia={"arm": [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]}, elements=[damper("arm", -1.0)]
    )
    with pytest.raises(ModelError, match="damping is below zero"):
        mjcf_text(arm)
    with pytest.raises(ModelError, match="no distribution of mass"):
        mjcf_text(arm.with_parameters({"h_arm": 1.0, "ZZ_arm": 9.0}))


def test_what_is_left_out_is_named_once_for_each_kind(tmp_path: Path) -> None:
    machine = Machine.of_bodies(
        [Body("a"), Body("b", "a")],
        inertia={n: [1, 0, 0, 1, 0, 1, 0, 0, 0, 1] for n in "ab"},
        elements=[Element(kind="cubic", on={c: 1.0}, value=1.0) for c in "ab"] + [spring("a", 1.0)],
    )
    with pytest.warns(DataWarning, match="'cubic', left out: k3_a, k3_b") as said:
        save_mjcf(machine, tmp_path / "two.xml")
    assert len(said) == 1
    with pytest.raises(FileError, match="exists already"):
        save_mjcf(machine, tmp_path / "two.xml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_mjcf(machine, tmp_path / "two.xml", overwrite=True)


def leg(tmp_path: Path) -> tuple[Path, Machine]:
    file = tmp_path / "leg.xml"
    file.write_text(LEG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # sensors are not read
        return file, load_model(file)


def changed(machine: Machine) -> Machine:
    """Other inertias of the shank, and other values along both joints."""
    p = machine.parameters
    new = {n: 1.3 * v for n, v in zip(p.names, p.values, strict=True) if n.endswith("shank")}
    e = {e.kind: e.parameter_name for e in machine.elements if set(e.on) == {"hip"}}
    new |= {e["damper"]: 0.25, e["inertia"]: 0.019, e["coulomb"]: 0.14, e["spring"]: 4.5}
    return machine.with_parameters(np.array([new.get(n, v) for n, v in zip(p.names, p.values, strict=True)]))


def test_mujoco_has_the_values_and_all_else_as_it_was(tmp_path: Path) -> None:
    file, machine = leg(tmp_path)
    save_mjcf(changed(machine), tmp_path / "new.xml", like=file)
    old, new = (mujoco.MjModel.from_xml_path(str(f)) for f in (file, tmp_path / "new.xml"))
    hip, knee = 0, 1
    assert new.dof_damping[hip] == 0.25 and new.dof_armature[hip] == 0.019 and new.dof_frictionloss[hip] == 0.14
    assert new.jnt_stiffness[hip] == 4.5 and new.qpos_spring[hip] == pytest.approx(np.radians(10.0))
    assert new.dof_damping[knee] == 0.6 and new.dof_armature[knee] == 0.01
    shank = mujoco.mj_name2id(new, mujoco.mjtObj.mjOBJ_BODY, "shank")
    np.testing.assert_allclose(new.body_mass[shank], 1.3 * old.body_mass[shank], rtol=1e-12)
    np.testing.assert_allclose(np.sort(new.body_inertia[shank]), 1.3 * np.sort(old.body_inertia[shank]), rtol=1e-9)
    np.testing.assert_allclose(new.body_ipos[shank], old.body_ipos[shank], rtol=1e-12)
    for name in ("ngeom", "nsite", "nsensor", "nu", "nlight"):
        assert getattr(new, name) == getattr(old, name)
    np.testing.assert_array_equal(new.body_inertia[1], old.body_inertia[1])
    before, after = file.read_text().splitlines(), (tmp_path / "new.xml").read_text().splitlines()
    differing = [a for a, b in zip(before, after, strict=True) if a != b]
    assert [line.split()[0] for line in differing] == ["<joint", "<inertial"]


def test_the_mass_matrix_is_that_of_the_machine(tmp_path: Path) -> None:
    """MuJoCo's inverse dynamics of the edited file against veridyn's."""
    file, machine = leg(tmp_path)
    machine = changed(machine)
    machine = machine.without_elements([e.parameter_name for e in machine.elements if e.kind == "coulomb"])
    text = LEG.replace(' frictionloss="0.2"', "")  # a soft constraint in MuJoCo
    file.write_text(text)
    save_mjcf(machine, tmp_path / "new.xml", like=file)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "new.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 5, 2))
    wanted = inverse_dynamics(machine, Motion(np.arange(5.0), q, qd, qdd))
    for k in range(5):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(data.qfrc_inverse, wanted[k], rtol=1e-9, atol=1e-9)


def test_control_laws_become_servos(tmp_path: Path) -> None:
    """A PD law of 20 and 1.5 with 4 ms of delay: MuJoCo's force is kp (u − q) − kd q̇ within the limit, on commands as old as that."""
    file, machine = leg(tmp_path)
    laws = [
        Controller(
            name="hip_servo",
            kind="pd",
            on="hip",
            rate=1000.0,
            constants={"kp": 20.0, "kd": 1.5, "limit": 23.7, "command_delay": 0.004},
        ),
        Controller(name="knee_servo", kind="pid", on="knee", rate=1000.0, constants={"kp": 20.0, "ki": 1.0}),
    ]
    with pytest.warns(DataWarning) as said:
        save_mjcf(machine.with_controllers(laws), tmp_path / "new.xml", like=file)
    words = " ".join(str(w.message) for w in said)
    assert "take positions now: hip" in words and "'knee_servo' of kind pid is left out" in words
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "new.xml"))
    assert [model.actuator(k).name for k in range(2)] == ["hip_motor", "knee_motor"]
    np.testing.assert_array_equal(model.actuator_gainprm[0, :3], [20.0, 0.0, 0.0])
    np.testing.assert_array_equal(model.actuator_biasprm[0, :3], [0.0, -20.0, -1.5])
    np.testing.assert_array_equal(model.actuator_forcerange[0], [-23.7, 23.7])
    assert not model.actuator_ctrllimited[0] and model.actuator_delay[0] == 0.004
    np.testing.assert_array_equal(model.actuator_ctrlrange[1], [-45.0, 45.0])
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.3
    for k in range(8):
        q, qd = data.qpos[0], data.qvel[0]
        mujoco.mj_step(model, data)
        u = 0.3 if k >= 4 else 0.0
        assert data.actuator_force[0] == pytest.approx(np.clip(20.0 * (u - q) - 1.5 * qd, -23.7, 23.7), abs=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="shank" pos', 'name="calf" pos', "has no such"),
        ('pos="0 0 -0.2"', 'pos="0 0 -0.25"', "sits elsewhere"),
        ('angle="degree"', 'angle="degree" inertiafromgeom="true"', "takes inertias from geoms"),
        ("<worldbody>", '<include file="more.xml"/><worldbody>', "included files"),
    ],
)
def test_another_machine_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    file, machine = leg(tmp_path)
    (tmp_path / "more.xml").write_text("<mujoco/>")
    other = tmp_path / "other.xml"
    other.write_text(LEG.replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        save_mjcf(changed(machine), tmp_path / "new.xml", like=other)
    assert not (tmp_path / "new.xml").exists()
    assert file.read_text() == LEG


def test_friction_below_zero_is_not_written(tmp_path: Path) -> None:
    file, machine = leg(tmp_path)
    dry = next(e.parameter_name for e in machine.elements if e.kind == "coulomb" and set(e.on) == {"hip"})
    with pytest.raises(ModelError, match=r"'hip'.*its frictionloss is below zero[\s\S]*-0\.3"):
        save_mjcf(machine.with_parameters({dry: -0.3}), tmp_path / "new.xml", like=file)
    assert not (tmp_path / "new.xml").exists()


def test_what_an_mjcf_file_cannot_say_is_named(tmp_path: Path) -> None:
    """A constant force and one on two joints stay out of the file, whose joints are as they were."""
    file, machine = leg(tmp_path)
    more = machine.with_elements([offset("hip", 2.0), damper({"hip": 1.0, "knee": -1.0}, 0.4)])
    with pytest.warns(DataWarning) as said:
        save_mjcf(more, tmp_path / "new.xml", like=file)
    words = " ".join(str(one.message) for one in said)
    assert "constant forces stay as in the file: hip." in words
    assert "what acts on combinations of joints stays as in the file." in words
    assert (tmp_path / "new.xml").read_text() == LEG
