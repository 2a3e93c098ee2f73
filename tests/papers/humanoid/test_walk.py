"""The humanoid in MuJoCo: it walks without being held, and its exact data identify all 94 base parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, TRUE, bending, swinging, walking
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine, random_rotation
from veridyn.errors import DataWarning, ModelError, SimulationError
from veridyn.identify.estimate import identify
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.ground.contact import sensor_wrench, with_contacts
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_motion
from veridyn.model.elements.element import damper
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.papers.humanoid.machine import BASE, FEET, MASS, machine, walk
from veridyn.papers.humanoid.walk import (
    SIGMA,
    Faulty,
    Performed,
    PrescribedJoints,
    Servo,
    engine_motion,
    mjcf,
    performed,
    read,
    recorded,
    sampling,
    signals,
)
from veridyn.signals.base_motion import moved_to_base
from veridyn.signals.motion import motion
from veridyn.spatial.rotations import Placement, rot_x, rot_z

PLAN = walk(CAD, 4)


def test_it_walks_four_steps_freely() -> None:
    run = walking()
    off = run.pose.position[-1] - PLAN.pose.position[-1]
    print(
        f"four free steps: {1e3 * run.pose.position[-1, 0]:.0f} mm forward, {1e3 * np.abs(off).max():.1f} mm from the plan"
    )
    assert "free" in run.how and np.abs(off).max() < 0.02
    # At rest at both ends the ground carries the weight; the feet share it.
    assert run.wrench[-1, 2] == pytest.approx(MASS * 9.81, rel=2e-3)
    assert run.feet is not None and run.feet[:, :, 2].min() > -1e-9
    assert run.feet.sum(axis=1) == pytest.approx(run.wrench)
    single = (run.feet[:, :, 2] < 1e-9).any(axis=1)
    assert single.mean() > 0.2  # on one foot for much of the time


@pytest.mark.parametrize("run", [walking, bending, swinging], ids=["walk", "bend", "swing"])
def test_engine_and_stranger_agree_along_every_run(run: object) -> None:
    """Base rows of Pinocchio with the engine's own state, acceleration and contact force: nothing is left."""
    motion = run().motion[::40]  # pyright: ignore[reportCallIssue]
    assert np.abs(PinModel(TRUE).inverse_dynamics(motion)[:, :6]).max() < 1e-9
    assert np.abs(inverse_dynamics(TRUE, motion, "base")).max() < 1e-9


@pytest.mark.parametrize("name", ["swings", "walk"])
def test_exact_data_give_all_94_base_parameters(name: str) -> None:
    motions = [swinging("right").motion, swinging("left").motion] if name == "swings" else [walking().motion]
    fit = identify(CAD, motions, "ols", rows="base")
    truth = fit.base.reduce(TRUE.parameters.values)
    error = np.abs(fit.values - truth) / CAD.parameters.typical[list(fit.base.columns)]
    print(
        f"exact data, {name}: {len(error)} base parameters, worst {error.max():.1e} of typical size, condition {fit.condition_scaled:.3g}"
    )
    assert len(error) == 94 and error.max() < 1e-6


def test_bending_is_sampled_without_bias() -> None:
    """Positions differentiated twice give the force: a controller that steps once a sample would break this by 0.5 N."""
    run = bending()
    rate = 1.0 / 0.003
    specific = np.gradient(np.gradient(run.pose.position[:, 2], axis=0), axis=0) * rate**2
    # The slow part only: the mean force over the motion is the weight, and the torso ends as it began.
    assert run.wrench[:, 2].mean() == pytest.approx(MASS * 9.81, rel=2e-4)
    assert np.abs(specific).max() < 5.0


def test_a_fall_is_an_error_with_its_time() -> None:
    with pytest.raises(SimulationError, match=r"the robot fell.\nFound the torso at 0\.\d+ m after \d\.\d+ s"):
        performed(TRUE, PLAN, Servo(stiffness=15.0, tilt=0.0, tilt_rate=0.0))


@pytest.mark.parametrize(
    "robot",
    [
        machine(),
        random_open_machine(np.random.default_rng(1), 6, "free"),
        random_open_machine(np.random.default_rng(8), 5, "free"),
    ],
)
def test_two_strangers_agree_on_the_ground_wrench(robot: Machine) -> None:
    rng = np.random.default_rng(0)
    N = 6
    pose = Pose(np.arange(N, dtype=float), np.stack([random_rotation(rng) for _ in range(N)]), rng.normal(size=(N, 3)))
    velocity, acceleration = rng.normal(size=(2, N, 6))
    q, qd, qdd = rng.normal(size=(3, N, robot.n))
    wrench = PrescribedJoints(robot).ground_wrench(pose, velocity, acceleration, q, qd, qdd)
    motion = engine_motion(robot, pose, velocity, acceleration, q, qd, qdd, wrench)
    left = PinModel(robot).inverse_dynamics(motion)[:, :6]
    assert np.abs(left).max() < 1e-10 * np.abs(wrench).max()


def test_what_the_engine_cannot_take_is_refused() -> None:
    machine = random_open_machine(np.random.default_rng(2), 3, "free", kinds=("turning",))
    with pytest.raises(ModelError, match="only a free tree"):
        mjcf(random_open_machine(np.random.default_rng(2), 3, "fixed"))
    with pytest.raises(ModelError, match="without elements"):
        mjcf(machine.with_elements([damper(machine.coordinates[0])]))
    with pytest.raises(ModelError, match="needs its mass and inertia"):
        mjcf(Machine.build([replace(link, inertia=None) for link in machine.links], machine.joints))


def left(vals: np.ndarray, reading: object) -> np.ndarray:
    rows = observation(CAD, reading.motion, "base", IdentifySettings(sampling=reading.sampling)).rows  # pyright: ignore[reportAttributeAccessIssue]
    return np.array([f.residual(vals[list(f.columns)]) / np.sqrt(f.samples) for f in rows])


def test_sensors_leave_little_with_the_true_parameters() -> None:
    for run, force, moment in ((walking(), 0.5, 0.08), (bending(), 0.25, 0.05)):
        reading = read(CAD, recorded(CAD, run, np.random.default_rng(0)))
        true, drawn = left(TRUE.parameters.values, reading), left(CAD.parameters.values, reading)
        print(f"{run.name}: true parameters leave {true.round(3)}, drawn ones {drawn.round(3)}")
        assert true[:3].max() < force and true[3:].max() < moment
        assert drawn[2] == pytest.approx(1.3 * 9.81, rel=0.05)


def test_what_is_recorded_is_what_the_paper_says() -> None:
    log = recorded(CAD, walking(), np.random.default_rng(1))
    assert log["plate.fz"].rate == pytest.approx(1 / 0.003)
    steps = np.round(log["plate.fz"].values / 0.7)
    assert log["plate.fz"].values == pytest.approx(0.7 * steps)
    assert sum(n.startswith("marker.") for n in log) == 18 and sum(n.startswith("q.") for n in log) == 12


def test_lost_markers_are_warned_of_and_left_out() -> None:
    log = recorded(CAD, walking(), np.random.default_rng(0), Faulty(lost=(1.2, 1.7)))
    with pytest.warns(DataWarning, match="fewer than three markers"):
        reading = read(CAD, log)
    whole = read(CAD, recorded(CAD, walking(), np.random.default_rng(0)))
    count = [
        observation(CAD, r.motion, "base", IdentifySettings(sampling=r.sampling)).rows[0].samples
        for r in (reading, whole)
    ]
    assert count[1] - count[0] == pytest.approx(0.8 / 0.03, abs=2)  # the half second and 0.15 s on either side
    assert left(TRUE.parameters.values, reading)[:3].max() < 0.55


def test_each_foot_or_the_total_is_the_same_to_base_rows() -> None:
    run = walking()
    reading = read(CAD, recorded(CAD, run, np.random.default_rng(0)))
    trial = reading.trial
    at = np.searchsorted(run.pose.t, trial.motion.t - 1e-9)
    assert run.feet is not None
    feet = with_contacts(CAD, trial.motion, trial.pose, {"right_foot": run.feet[at, 0], "left_foot": run.feet[at, 1]})
    total = with_contacts(CAD, trial.motion, trial.pose, {BASE: run.wrench[at]})
    rows = [observation(CAD, m, "base", IdentifySettings(sampling=reading.sampling)).rows for m in (feet, total)]
    for a, b in zip(*rows, strict=True):
        assert a.residual(TRUE.parameters.values[list(a.columns)]) == pytest.approx(
            b.residual(TRUE.parameters.values[list(b.columns)]), rel=1e-6
        )


def foot_wrenches(machine: Machine, run: Performed) -> dict[str, np.ndarray]:
    """What six-axis sensors in the soles read: the ground's wrench about the foot's origin, in its frame."""
    assert run.feet is not None
    exact = replace(run.motion, wrenches={})
    world = {foot: run.feet[:, k] for k, foot in enumerate(FEET)}
    return dict(with_contacts(machine, exact, run.pose, world).wrenches)


def test_an_inertial_unit_and_sensors_in_the_soles_need_no_motion_capture() -> None:
    """The unit sits elsewhere on the torso and is turned; the sensors are fixed in the feet; noise of good instruments (chosen)."""
    run, rng = walking(), np.random.default_rng(3)
    unit = Placement(rot_z(0.5) @ rot_x(1.0), (0.03, -0.02, 0.12))
    sensor = Placement(rot_x(0.3), (0.02, 0.0, 0.01))
    b = run.motion.base
    assert b is not None
    lever = np.cross(b.omega_dot, unit.position) + np.cross(b.omega, np.cross(b.omega, unit.position))
    t = run.pose.t
    values = {f"q.{c}": run.q[:, k] + 5e-4 * rng.standard_normal(len(t)) for k, c in enumerate(CAD.coordinates)}
    units = dict.fromkeys(values, "rad")
    for name, true, noise, unit_name in (
        ("omega", b.omega @ unit.rotation, 0.002, "rad/s"),
        ("acceleration", (b.acceleration + lever) @ unit.rotation, 0.02, "m/s^2"),
    ):
        for k, axis in enumerate("xyz"):
            values[f"base.{name}.{axis}"] = true[:, k] + noise * rng.standard_normal(len(t))
            units[f"base.{name}.{axis}"] = unit_name
    plain = motion(CAD, Experiment.from_arrays(t, values, units, "walk"), signals())
    assert plain.base is not None
    at = np.searchsorted(t, plain.t - 1e-9)
    felt = {}
    for foot, w in foot_wrenches(TRUE, run).items():
        R, p = sensor.rotation, sensor.position
        read_out = np.concatenate([w[:, :3] @ R, (w[:, 3:] - np.cross(p, w[:, :3])) @ R], axis=1)[at]
        noisy = read_out + np.array([0.2, 0.2, 0.2, 0.01, 0.01, 0.01]) * rng.standard_normal(read_out.shape)
        felt[foot] = sensor_wrench(noisy, sensor)
    whole = replace(plain, base=moved_to_base(plain.base, unit), wrenches=felt)
    fit = identify(CAD, whole, "map", rows="base", settings=IdentifySettings(sampling=sampling(), sigma=SIGMA))
    mass = float(fit.values[fit.names.index("M0R")])
    print(f"inertial unit and soles: {mass:.3f} kg, residuals {[round(r.rms, 3) for r in fit.rows]}")
    assert mass == pytest.approx(MASS, rel=0.005)
    assert max(r.rms for r in fit.rows[:3]) < 0.6 and max(r.rms for r in fit.rows[3:]) < 0.2


def test_a_sensor_in_the_ankle_weighs_what_is_above_it() -> None:
    """Exact data: the sensor feels the ground less what the foot below it needs, by Pinocchio; the model ends at the ankle."""
    run = walking()
    above = Machine.build(
        [link for link in TRUE.links if link.name not in FEET], [j for j in TRUE.joints if j.name not in FEET]
    )
    keep = [k for k, c in enumerate(TRUE.coordinates) if c not in FEET]
    thin = slice(None, None, 20)
    exact = replace(run.motion, wrenches={})[thin]
    felt = {}
    for foot, w in foot_wrenches(TRUE, run).items():
        alone = Machine.of_bodies([Body(foot, None, "fixed")], base="free", inertia={foot: TRUE.body(foot).ten})
        none = np.zeros((len(exact), 0))
        needs = PinModel(alone).inverse_dynamics(Motion(exact.t, none, none, none, body_motion(TRUE, exact, foot)))
        through = w[thin] - needs  # on the ankle, at the foot's origin and in its frame
        place = TRUE.attachment(TRUE.described.spanning.carriers[foot].joint.a).placement
        q = exact.q[:, TRUE.coordinates.index(foot)]
        turn = np.stack([place.rotation @ rot_z(a) for a in q])
        f, m = (np.einsum("nij,nj->ni", turn, x) for x in (through[:, :3], through[:, 3:]))
        felt[foot.replace("foot", "ankle")] = np.concatenate([f, m + np.cross(place.position, f)], axis=1)
    motion_above = Motion(exact.t, exact.q[:, keep], exact.qd[:, keep], exact.qdd[:, keep], exact.base, wrenches=felt)
    fit = identify(above, motion_above, "ols", rows="base")
    label = fit.names.index("M0R")
    feet = sum(TRUE.body(foot).ten[9] for foot in FEET)
    assert float(fit.values[label]) == pytest.approx(MASS - feet, rel=1e-9)
    assert fit.base.count == 10 + 7 * 10
