"""Values written into a copy of an MJCF file: MuJoCo's model of it has them, and everything else as it was."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import DataWarning, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.controller import Controller
from veridyn.model.elements.element import damper, offset
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

mujoco = pytest.importorskip("mujoco")

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
