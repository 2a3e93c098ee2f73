"""From a study to a machine and its manoeuvre: what is chosen, and what is refused by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from studies.arm_simulation import ARM, FREE, LED, PUSHED, REPOSITORY, STUDIES, frictionless, written
from veridyn.errors import DataError, FileError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.closure import closed_home, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.model.motion import Motion
from veridyn.simulate.commanded import Commanded
from veridyn.simulate.simulator import Driven, Prescribed, Tracking
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import simulate_study
from veridyn.studies.run.simulation_setups import as_signals, mechanism_setup, tree_setup


def setup(folder: Path, text: str):
    return tree_setup(load_study(written(folder, text)))


def test_free_driven_led_and_tracked(tmp_path: Path) -> None:
    free = setup(tmp_path, FREE + "start: {coordinates: {q2: 0.3}, rates: {q1: 1}}\n")
    assert isinstance(free.manoeuvre, Driven) and free.manoeuvre.method.name == "LSODA" and not free.conservative
    assert (list(free.manoeuvre.q), list(free.manoeuvre.qd)) == ([0.0, 0.3, 0.0], [1.0, 0.0, 0.0])
    smooth = setup(tmp_path, FREE.replace(str(ARM), str(frictionless(tmp_path))))
    assert smooth.conservative and smooth.manoeuvre.method.name == "DOP853" and smooth.manoeuvre.inputs is None
    pushed = setup(tmp_path, FREE + "inputs: {formulas: {force.q1: 2*t, wrench.3.mz: 1}}\n").manoeuvre
    acting, none = pushed.inputs, np.zeros(3)
    assert acting is not None and acting.forces is not None and acting.wrenches is not None
    assert list(acting.forces(0.5, none, none)) == [1.0, 0.0, 0.0]
    assert list(acting.wrenches(0.5, none, none)["3"]) == [0, 0, 0, 0, 0, 1]
    assert isinstance(setup(tmp_path, LED).manoeuvre, Prescribed)
    tracked = setup(tmp_path, LED + "controller: {kp: 100, kd: {q1: 1, q2: 2, q3: 3}}\n").manoeuvre
    assert isinstance(tracked, Tracking) and list(tracked.kp) == [100.0] * 3 and list(tracked.kd) == [1.0, 2.0, 3.0]
    rk4 = setup(tmp_path, FREE + "integrator: {name: RK4}\n").manoeuvre.method
    assert (rk4.name, rk4.step, rk4.friction_speed) == ("RK4", 1e-3, 0.02)
    holds = setup(tmp_path, FREE + "integrator: {friction_speed: 0}\n").manoeuvre.method
    assert (holds.name, holds.step, holds.friction_speed) == ("RK4", 1e-3, 0.0)
    with pytest.raises(FileError, match="'LSODA' cannot step with dry friction that holds"):
        setup(tmp_path, FREE + "integrator: {name: LSODA, friction_speed: 0}\n")


def test_the_gains_are_those_of_a_damped_oscillator(tmp_path: Path) -> None:
    """A joint of inertia M under kp and kd alone: ω² = kp/M and 2 ζ ω = kd/M with ζ = 1."""
    made = setup(tmp_path, LED + "controller: {bandwidth: 3, feedforward: false}\n")
    kp, kd = np.asarray(made.manoeuvre.kp), np.asarray(made.manoeuvre.kd)
    assert kd**2 / kp == pytest.approx(4.0 * kp / (2.0 * np.pi * 3.0) ** 2)
    assert made.manoeuvre.feedforward is None
    # joint 3 alone moves the inertia of body 3 about its axis: ZZ3
    assert kp[2] == pytest.approx((2.0 * np.pi * 3.0) ** 2 * made.machine.parameters["ZZ3"])


def test_a_wrong_belief_leaves_an_error(tmp_path: Path) -> None:
    text = ARM.read_text(encoding="utf-8").replace("mass: 6,", "mass: 9,")
    written(tmp_path, text, "heavier.yaml")
    errors = []
    for more in ("", ", model: heavier.yaml"):
        made = setup(tmp_path, LED.replace("duration: 0.5", "duration: 0.2") + f"controller: {{bandwidth: 4{more}}}\n")
        m = made.manoeuvre.run(made.machine).motion
        errors.append(np.abs(m.q - made.led.at(m.t)[0]).max())
    assert errors[0] < 1e-4 < 1e-3 < errors[1]


def test_drives_that_are_measured_by_current_get_a_current(tmp_path: Path) -> None:
    gains = "".join(f"  - {{kind: drive_gain, on: q{k}, value: {k}, signal: i{k}}}\n" for k in (1, 2, 3))
    written(tmp_path, ARM.read_text(encoding="utf-8") + gains, "currents.yaml")
    for more in ("", "controller: {bandwidth: 4}\n"):
        made = setup(tmp_path, LED.replace(str(ARM), "currents.yaml").replace("duration: 0.5", "duration: 0.1") + more)
        found = as_signals(made.machine, made.manoeuvre.run(made.machine)).motion
        assert not found.forces.any() and np.abs(found.signals["i2"]).min() > 1.0
        at_speed = np.abs(found.qd).min(axis=1) > 0.3  # where rounding friction off does not matter
        off = inverse_dynamics(made.machine, replace(found, forces=None))[at_speed]
        assert at_speed.any() and off == pytest.approx(0.0, abs=1e-2)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("start: {coordinates: {q9: 1}}", r"start.coordinates.q9 \(line 8\): 'q9' is no coordinate"),
        ("start: {base: {}}", "the base of 'three-joint arm' is fixed"),
        ("integrator: {name: index3}", "'index3' integrates mechanisms"),
        ("inputs: {formulas: {signal.i: 1}}", "'signal.i' is no input"),
        ("motion: {fourier: {frequency: 1}}\ninputs: {formulas: {force.q1: 1}}", "'force.q1' is no input"),
        ("motion: {fourier: {frequency: 1}}\ncontroller: {kp: {q1: 1}}", "no gain is given for q2, q3"),
        ("motion: {fourier: {frequency: 1}}\ncontroller: {model: no.yaml}", "there is no such file"),
        ("motion: {file: two.csv}", "its table has no q.q3"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, more: str, words: str) -> None:
    rows = "".join(f"{0.1 * k},0,0\n" for k in range(9))
    (tmp_path / "two.csv").write_text("time [s],q.q1 [rad],q.q2 [rad]\n" + rows, encoding="utf-8")
    with pytest.raises(FileError, match=words):
        setup(tmp_path, FREE + more + "\n")


def test_a_passive_joint_cannot_be_led(tmp_path: Path) -> None:
    text = ARM.read_text(encoding="utf-8").replace(
        "    mdh: {d: upper_arm}", "    actuated: false\n    mdh: {d: upper_arm}"
    )
    written(tmp_path, text, "passive.yaml")
    with pytest.raises(DataError, match="a passive joint cannot be made to follow"):
        setup(tmp_path, LED.replace(str(ARM), "passive.yaml"))


CLOSED = """
veridyn: 1
kind: simulate
model: {file: "veridyn:MACHINE.yaml"}
duration: 0.1
rate: 100
"""


def test_a_machine_with_loops_starts_closed(tmp_path: Path) -> None:
    linkage = CLOSED.replace("MACHINE", "linkage")
    home = setup(tmp_path, linkage).manoeuvre
    assert home.q[0] == pytest.approx(1.0) and not np.any(home.qd)
    begun = setup(tmp_path, linkage + "start: {coordinates: {q3: 1.8}, rates: {q2: 2}}\n")
    q, qd = np.asarray(begun.manoeuvre.q), np.asarray(begun.manoeuvre.qd)
    loops = loop_values(tree_of(begun.machine), q[None], qd[None])[0]
    assert (q[2], qd[1]) == pytest.approx((1.8, 2.0)) and np.abs(loops[:, 3]).max() < 1e-10
    assert np.abs(loops[:, :3] @ qd).max() < 1e-10
    with pytest.raises(FileError, match=r"start \(line 7\): 2 coordinates \(q1, q2\) cannot determine"):
        setup(tmp_path, linkage + "start: {coordinates: {q1: 1, q2: 2}}\n")


def test_a_platform_is_led_by_its_pose(tmp_path: Path) -> None:
    """A table of the platform's place becomes one of the drives; led so, the platform is where the table says."""
    t = np.linspace(0.0, 1.0, 51)
    place = np.column_stack([0.05 * np.sin(5 * t), 0.04 * np.cos(4 * t), -0.55 + 0.05 * t])
    head = "time [s],q.x [m],q.y [m],q.z [m]"
    np.savetxt(tmp_path / "pose.csv", np.column_stack([t, place]), delimiter=",", header=head, comments="")
    made = setup(tmp_path, CLOSED.replace("MACHINE", "delta").replace("duration: 0.1", "motion: {file: pose.csv}"))
    m = made.manoeuvre.run(made.machine).motion
    at = [made.machine.coordinates.index(c) for c in "xyz"]
    assert m.q[::2, at] == pytest.approx(place, abs=1e-9)
    assert np.isfinite(m.forces[:, list(made.machine.independent)]).all()


def test_the_gains_of_a_closed_machine_are_those_of_what_its_drives_move(tmp_path: Path) -> None:
    """ω² times ∂(∂T/∂q̇)/∂q̇ of the one degree of freedom: twice the kinetic energy at unit rate."""
    motion = "motion: {fourier: {frequency: 1, centre: {q1: 1}}}\ncontroller: {bandwidth: 2}\n"
    made = setup(tmp_path, CLOSED.replace("MACHINE", "linkage") + motion)
    q = closed_home(made.machine)[None]
    unit = loop_jacobian(made.machine, q)[:, :, 0]
    twice = 2.0 * energy(made.machine, Motion(np.zeros(1), q, unit, 0 * q)).kinetic[0]
    assert np.asarray(made.manoeuvre.kp)[0] == pytest.approx((4.0 * np.pi) ** 2 * twice)


URDF = """<robot name="two">
  <link name="base"/>
  <link name="a">
    <inertial><origin xyz="0.1 0 -0.2"/><mass value="2"/><inertia ixx="0.03" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.02"/></inertial>
  </link>
  <link name="b">
    <inertial><origin xyz="0 0.05 -0.3"/><mass value="1"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial>
  </link>
  <joint name="j1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
  <joint name="j2" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0 0 -0.5"/><axis xyz="1 0 0"/></joint>
</robot>
"""


def test_a_urdf_is_a_machine_too(tmp_path: Path) -> None:
    """Pinocchio reads the same file, and says the same accelerations of every state of the simulated motion."""
    (tmp_path / "two.urdf").write_text(URDF, encoding="utf-8")
    text = FREE.replace(str(ARM), "two.urdf") + "start: {coordinates: {j1: 1}, rates: {j2: 3}}\n"
    made = setup(tmp_path, text)
    m = made.manoeuvre.run(made.machine).motion
    stranger = pin.buildModelFromUrdf(str(tmp_path / "two.urdf"))
    data = stranger.createData()
    for q, qd, qdd in zip(m.q, m.qd, m.qdd):
        turned = np.array([np.cos(q[0]), np.sin(q[0]), np.cos(q[1]), np.sin(q[1])])
        assert qdd == pytest.approx(pin.aba(stranger, data, turned, qd, np.zeros(2)), abs=1e-10)
    assert made.conservative and np.ptp(m.q, axis=0).min() > 0.5


SERVOS = LED + "controller: {own: true}\n"


def test_the_controllers_of_the_model_follow_the_motion(tmp_path: Path) -> None:
    laws = "".join(
        f"  s{k}: {{kind: pd, on: q{k}, rate: 400, kp: {kp}, kd: {kp / 10}}}\n" for k, kp in ((1, 90), (2, 80), (3, 20))
    )
    (tmp_path / "arm.yaml").write_text(f"{ARM.read_text(encoding='utf-8')}controllers:\n{laws}", encoding="utf-8")
    made = setup(tmp_path, SERVOS.replace(str(ARM), "arm.yaml"))
    manoeuvre, method = made.manoeuvre, made.manoeuvre.method
    assert isinstance(manoeuvre, Commanded)
    assert (method.name, method.step, method.friction_speed) == ("RK4", 1e-3, 0.02)
    start, speed, _ = made.led.at(0.0)
    assert list(manoeuvre.q) == list(start) and list(manoeuvre.qd) == list(speed)
    with pytest.raises(FileError, match="'three-joint arm' has no controller of q1, q2, q3"):
        setup(tmp_path, SERVOS)
    with pytest.raises(FileError, match="no kp where the machine's own controllers follow"):
        setup(tmp_path, LED + "controller: {own: true, kp: 3}\n")


def test_a_study_of_servos_records_commands_and_its_steps_are_shorter_than_ticks(tmp_path: Path) -> None:
    text = (
        (STUDIES / "servo_arm.yaml")
        .read_text(encoding="utf-8")
        .replace("servo_arm_model.yaml", str(STUDIES / "servo_arm_model.yaml"))
    )
    loaded = load_study(written(tmp_path, text.replace("duration: 4", "duration: 0.05")))
    assert tree_setup(loaded).manoeuvre.method.step == 2.5e-4  # half a tick of the current loop of 2 kHz
    run = simulate_study(loaded)
    assert {"command.shoulder", "command.elbow", "signal.elbow_motor.i"} <= set(run.log.names)
    assert run.settings["drive"] == "commands followed by its own controllers"
    assert 0.0 < run.figures["coarser_difference"] < 1e-4


def mechanism(folder: Path, text: str):
    return mechanism_setup(load_study(written(folder, text)))


def test_loads_over_time(tmp_path: Path) -> None:
    made = mechanism(tmp_path, PUSHED)
    assert made.loads is not None and not made.conservative and made.method.formulation == "index3"
    assert made.loads(1.0)["motor"][0] == pytest.approx(120.0 * np.sin(2.0 * np.pi * 0.2))
    assert made.loads(2.1)["motor"][0] == 0.0
    assert mechanism(tmp_path, PUSHED.replace("{step: 0.01}", "{name: RK4, step: 0.01}")).method.rule == "RK4"


def test_a_mechanism_without_friction_and_loads_keeps_its_energy(tmp_path: Path) -> None:
    text = (REPOSITORY / "src/veridyn/machines/crane.yaml").read_text(encoding="utf-8")
    friction = "elements:\n  - {kind: damper, on: x, value: 40, name: rail_friction}\n"
    assert friction in text
    written(tmp_path, text.replace(friction, ""), "free.yaml")
    lines = [line for line in PUSHED.splitlines() if not line.startswith(("model", "inputs"))]
    assert mechanism(tmp_path, "\n".join([*lines, "model: {file: free.yaml}\n"])).conservative


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("swing: 0.1", "swin: 0.1", r"'swin' is no coordinate of 'crane'(.|\n)*'swing'"),
        ("motor: 120", "moter: 120", r"'moter' is no input(.|\n)*'motor'"),
        ("{step: 0.01}", "{name: LSODA}", "'LSODA' integrates trees"),
        ("crane.yaml", "crabe.yaml", "there is no such model file"),
        ("start: {", "start: {base: {}, ", "a mechanism stands on the ground"),
        ("coordinates: {x: 0.5, swing: 0.1}", "rates: {T.x: 1, x: 1, swing: 1}", "follows from the others"),
    ],
)
def test_what_a_mechanism_cannot_do_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        mechanism(tmp_path, PUSHED.replace(old, new))
