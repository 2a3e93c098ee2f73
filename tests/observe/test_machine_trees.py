"""Observers on trees: derivatives by differences, twins in natural coordinates, consistency on arms, free bodies and loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from strangers.twins import linkage_twin
from veridyn.errors import DataError, ModelError
from veridyn.machines.described import palletizer
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, integrate
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.observation import Virtual
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.observe.system import numeric_jacobian
from veridyn.spatial.inertia import INERTIAL, from_centre

STEP = 0.005
BODY = from_centre(2.0, [0.3, 0.02, 0.01], np.diag([0.02, 0.05, 0.06]))


@cache
def arm() -> Machine:
    """Two joints in a vertical plane with friction, an encoder on each, and an accelerometer at the tip."""
    from veridyn.spatial.rotations import Placement

    return Machine.of_bodies(
        [Body("upper"), Body("lower", "upper", placement=Placement(position=np.array([0.6, 0.0, 0.0])))],
        name="arm",
        inertia={"upper": BODY, "lower": BODY},
        gravity=(0.0, -9.81, 0.0),
        elements=[damper("upper", 0.5, "fv1"), damper("lower", 0.3, "fv2")],
        sensors=[
            Sensor("q1", "coordinate", "upper", 1e-2),
            Sensor("q2", "coordinate", "lower", 1e-2),
            Sensor("tip", "accelerometer", Marker("lower", (0.6, 0.0, 0.0)), 1.0, axes="xy", bias_sigma=0.5),
        ],
    )


@cache
def tumbling() -> Machine:
    """A free body with a pendulum, a receiver of positions and an inertial unit."""
    return Machine.of_bodies(
        [Body("hull", None, "fixed"), Body("arm", "hull", actuated=False)],
        name="tumbling",
        base="free",
        inertia={"hull": from_centre(5.0, [0.0, 0.0, 0.0], np.diag([0.3, 0.5, 0.6])), "arm": BODY},
        elements=[damper("arm", 0.2, "fv")],
        sensors=[
            Sensor("gps", "position", Marker("hull", (0.2, 0.1, 0.3)), 0.02),
            Sensor("speed", "velocity", Marker("hull", (0.2, 0.1, 0.3)), 0.05),
            Sensor("gyro", "gyroscope", "hull", 0.01),
            Sensor("acc", "accelerometer", Marker("hull", (0.1, 0.0, 0.0)), 0.1),
        ],
    )


def log_of(
    tree: Machine, trajectory, forces: np.ndarray, rng: np.random.Generator
) -> tuple[Experiment, np.ndarray, np.ndarray]:
    """Noisy readings of a simulated motion with its forces, and the true configuration and velocity."""
    m = trajectory.motion
    q, qd, qdd = m.q, m.qd, m.qdd
    if tree.base == "free":
        R, e = trajectory.base_rotation, quaternions(trajectory.base_rotation)
        q = np.hstack([trajectory.base_position, e, m.q])
        V = np.einsum("nij,nj->ni", R, m.base.velocity)
        A = np.einsum("nij,nj->ni", R, m.base.acceleration) + tree.gravity
        qd, qdd = np.hstack([V, m.base.omega, m.qd]), np.hstack([A, m.base.omega_dot, m.qdd])
    table = tree_readout(tree_of(tree))
    y = table.read(q, qd, qdd)
    y = y + rng.standard_normal(y.shape) * np.sqrt(table.variances)
    channels = {n: Channel(n, m.t, y[:, j], u) for j, (n, u) in enumerate(zip(table.names, table.units, strict=True))}
    for k, c in enumerate(tree.coordinates):
        if tree.actuated[k]:
            channels[f"force.{c}"] = Channel(f"force.{c}", m.t, forces[:, k], "N*m")
    return Experiment(channels, tree.name), q, qd


def quaternions(R: np.ndarray) -> np.ndarray:
    w = 0.5 * np.sqrt(np.maximum(1.0 + np.trace(R, axis1=1, axis2=2), 1e-12))
    v = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=1)
    return np.column_stack([w, v / (4.0 * w[:, None])])


def swing(tree: Machine, seed: int, T: float = 1.0) -> tuple[Experiment, np.ndarray, np.ndarray]:
    """A constant torque on each joint, so that nothing changes between samples; truth by RK4 with a quarter of the step."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, T + STEP / 2, STEP)
    torque = np.array([12.0, 3.0]) + rng.uniform(-4.0, 4.0, 2)
    inputs = Inputs(lambda time, q, qd: torque)
    found = integrate(tree, t, [0.4, -0.3], [0.5, -0.2], inputs, method=Method("RK4", step=STEP / 4))
    return log_of(tree, found, np.broadcast_to(torque, (len(t), 2)), rng)


def test_an_arm_is_observed_consistently() -> None:
    """NEES over eight logs, known start deviations, no process noise beyond the walk of forces."""
    values = []
    for seed in range(8):
        log, q, qd = swing(arm(), 100 + seed)
        rng = np.random.default_rng(seed)
        start = q[0] + 0.01 * rng.standard_normal(2)
        rates = qd[0] + 0.05 * rng.standard_normal(2)
        names = arm().coordinates
        found = observe(
            arm(),
            log,
            "ekf",
            ObserveSettings(
                model_error="off",
                process_noise=ProcessNoise(force=1e-6, start=0.01, start_rate=0.05),
                start=dict(zip(names, start, strict=True)),
                rates=dict(zip(names, rates, strict=True)),
                step=5e-4,
            ),
        )
        assert found.system.inputs == ("force.upper", "force.lower")
        values.append(found.nees(q, qd, skip=10).mean)
        assert np.sqrt(np.mean((found.qd - qd)[50:] ** 2)) < 0.05
    assert 0.6 < np.mean(values) < 1.5  # eight logs of four states, errors correlated over a log


def test_filters_agree_where_they_should() -> None:
    """EKF and UKF to a fraction of a deviation; the smoother below the filter."""
    log, q, qd = swing(arm(), 7)
    settings = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=1e-4, start=0.01, start_rate=0.05),
        step=1e-3,
        start={"upper": q[0, 0], "lower": q[0, 1]},
        rates={"upper": qd[0, 0], "lower": qd[0, 1]},
    )
    ekf, ukf, smooth = (observe(arm(), log, name, settings) for name in ("ekf", "ukf", "smoother"))
    assert np.abs((ekf.reduced - ukf.reduced)[5:, :4] / ekf.sigma[5:, :4]).max() < 0.2
    assert np.sqrt(np.mean((smooth.qd - qd) ** 2)) < np.sqrt(np.mean((ekf.qd - qd) ** 2))


@pytest.mark.parametrize("machine", [arm, tumbling, palletizer])
def test_derivatives_of_states_and_readings(machine) -> None:
    tree = machine()
    if not tree.sensors:
        moving = tree.body_names[-1]
        sensors = [Sensor(c, "coordinate", c, 1e-3) for c in tree.coordinates]
        sensors += [Sensor("acc", "accelerometer", Marker(moving, (0.1, 0.0, 0.1)), 0.1)]
        tree = replace(tree, sensors=tuple(sensors))
    system, q, qd = machine_system(
        tree, ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), step=0.02)
    )
    rng = np.random.default_rng(0)
    n = len(system.states)
    d = np.concatenate(
        [0.05 * rng.standard_normal(system.f), 0.3 * rng.standard_normal(system.f), np.zeros(n - 2 * system.f)]
    )
    x, u = system.add(system.belief(q, qd).x, d), np.zeros(0)
    moved, F = system.move_and_jacobian(x, u, 0.0, 0.02)
    y, H = system.sense_and_jacobian(x, u, 0.0)
    np.testing.assert_allclose(system.sense(x, u, 0.0), y, rtol=1e-12, atol=1e-12)
    for function, given in (
        (lambda a: system.subtract(system.move(a, u, 0.0, 0.02), moved), F),
        (lambda a: system.sense(a, u, 0.0), H),
    ):
        numeric, accuracy = numeric_jacobian(function, x, np.full(n, 0.01), system.add)
        scale = np.abs(numeric).max(axis=1, keepdims=True) + 1e-9
        assert (np.abs(given - numeric) <= 1e-6 * scale + 3.0 * accuracy).all()


def test_a_free_body_is_observed_through_full_turns() -> None:
    """It turns round several times about a horizontal axis; the attitude stays within its band."""
    tree = tumbling()
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 2.0 + STEP / 2, STEP)
    base = BaseState((0.0, 0.0, 10.0), (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 2.0), (0.5, 9.0, 0.3))
    truth = integrate(tree, t, [0.2], [0.0], base=base, method=Method("DOP853", rtol=1e-9, atol=1e-10))
    log, q, qd = log_of(tree, truth, np.zeros((len(t), 1)), rng)
    found = observe(
        tree,
        log,
        "ekf",
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(force=1e-6, start=0.02, start_rate=0.05),
            start={"base.z": 10.0, "arm": 0.2},
            rates={"base.x": 1.0, "base.z": 2.0, "base.roll": 0.5, "base.pitch": 9.0, "base.yaw": 0.3},
            step=STEP / 2,
        ),
    )
    angle = 2.0 * np.arccos(np.clip(np.abs((found.q[:, 3:7] * q[:, 3:7]).sum(axis=1)), 0.0, 1.0))
    assert angle[100:].max() < 0.02
    assert 0.5 < found.nees(q, qd, skip=50).mean < 1.6
    assert found.states[:6] == ("base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw")
    assert found.sigma.shape == found.reduced.shape and np.isfinite(found.sigma).all()
    assert found.energy().shape == (len(t), 3)


def uniform_bars(tree: Tree) -> Machine:
    """The linkage without friction, its bars of 1 kg as those of the twin in natural coordinates."""
    bare = tree.without_elements([e.parameter_name for e in tree.elements])
    values = dict.fromkeys((b.parameter(s) for b in bare.bodies for s in INERTIAL), 0.0)
    for body, length in zip(bare.bodies, (0.2, 0.5, 0.4), strict=True):
        values |= {body.parameter(s): length**2 / 3.0 for s in ("YY", "ZZ")}
        values |= {body.parameter("MX"): length / 2.0, body.parameter("M"): 1.0}
    return machine_of_tree(bare.with_parameters(values))


def test_twins_are_observed_alike() -> None:
    """One log of an encoder, the linkage as a closed tree and in natural coordinates: the same states to 1e-6 of their deviations."""
    twin = linkage_twin()
    encoder = Sensor("encoder", "coordinate", "q1", 0.002)
    tree = replace(uniform_bars(twin.tree), sensors=(encoder,))
    mechanism = machine_of_mechanism(replace(twin.mechanism, sensors=(encoder,)))
    t = np.arange(0.0, 0.5, STEP)
    start, rate = 1.2, 3.0
    plain, q, qd = machine_system(
        tree, ObserveSettings(model_error="off", unknown=(), start={"q1": start}, rates={"q1": rate})
    )
    rng, x, readings = np.random.default_rng(0), plain.belief(q, qd).x, []
    for _ in t:
        readings.append(plain.split(x)[0][0] + 0.002 * rng.standard_normal())
        x = plain.move(x, np.zeros(0), 0.0, STEP)
    log = Experiment({"encoder": Channel("encoder", t, np.array(readings), "rad")}, "linkage")
    settings = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=0.1, start=0.05, start_rate=0.5),
        start={"q1": start},
        rates={"q1": rate},
    )
    a = observe(tree, log, "ekf", replace(settings, independents=("q1",)))
    b = observe(mechanism, log, "ekf", replace(settings, independents=("q1",)))
    assert a.states == b.states
    np.testing.assert_allclose(a.reduced, b.reduced, atol=1e-6 * b.sigma.max())
    np.testing.assert_allclose(a.sigma, b.sigma, rtol=1e-6)
    assert a.constraint_errors().max() < 1e-8
    np.testing.assert_allclose(a.energy()[:, 0], b.energy()[:, 0], rtol=1e-6)


def test_a_load_mass_is_estimated_with_the_state() -> None:
    """A body a tenth heavier than the model says: its mass is found within its band. Half its mass more is beyond a linearisation."""
    heavy = arm().with_parameters({"M_lower": 2.2})
    log, q, qd = swing(heavy, 5, 1.5)
    found = observe(
        arm(),
        log,
        "ekf",
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(force=1e-8, start=1e-3, start_rate=1e-2, start_parameter=0.2),
            unknown=(),
            parameters=("M_lower",),
            step=1e-4,
            start={"upper": q[0, 0], "lower": q[0, 1]},
            rates={"upper": qd[0, 0], "lower": qd[0, 1]},
        ),
    )
    mass, sigma = found.state("parameter.M_lower"), found.sigma[:, found.states.index("parameter.M_lower")]
    assert found.units[found.states.index("parameter.M_lower")] == "kg"
    assert sigma[-1] < 0.01 and abs(mass[-1] - 2.2) < 3.0 * sigma[-1]


def test_streamed_and_played_back_are_the_same() -> None:
    log, q, qd = swing(arm(), 9)
    settings = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=1e-4, start=0.01, start_rate=0.05),
        step=1e-3,
        start={"upper": q[0, 0], "lower": q[0, 1]},
        rates={"upper": qd[0, 0], "lower": qd[0, 1]},
        inputs=("force.upper", "force.lower"),
    )
    found = observe(arm(), log, "ekf", settings)
    observer = Observer(arm(), "ekf", settings)
    names, steps = found.system.outputs, []
    for k, t in enumerate(log["q1"].t):
        inputs = [log["force.upper"].values[k], log["force.lower"].values[k]]
        steps.append(observer.step(float(t), {n: float(log[n].values[k]) for n in names}, inputs))
    np.testing.assert_allclose(list(steps[-1].values.values()), found.reduced[-1], rtol=1e-9, atol=1e-12)


def test_virtual_sensors_on_a_tree() -> None:
    log, q, qd = swing(arm(), 11)
    start = {"upper": q[0, 0], "lower": q[0, 1]}
    found = observe(
        arm(),
        log,
        "ekf",
        ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1e-4, start=0.01), start=start, step=1e-3),
    )
    tip = found.virtual(Virtual("tip_place", "position", Marker("lower", (0.6, 0.0, 0.0))))["tip_place"]
    exact = tree_readout(tree_of(arm()), [Sensor("p", "position", Marker("lower", (0.6, 0.0, 0.0)), 1.0)]).read(
        q, qd, qd
    )
    assert np.abs(tip.values - exact)[40:].max() < 5e-2 and (tip.sigma[:, :2] > 0.0).all()
    with pytest.raises(DataError, match="no virtual sensor of kind 'tension'"):
        found.virtual(Virtual("r", "tension", "upper"))  # pyright: ignore[reportArgumentType]


def test_dry_friction_acts_in_the_observer() -> None:
    """The model with friction explains the log; without it the estimated force is the friction."""
    rough = arm().with_elements([coulomb("upper", 2.0, "fs")])
    rough = rough.with_parameters({"fs": 2.0})
    log, q, qd = swing(rough, 13)
    start = {"upper": q[0, 0], "lower": q[0, 1]}
    rates = {"upper": qd[0, 0], "lower": qd[0, 1]}
    settings = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=20.0, start=0.01, start_rate=0.05),
        start=start,
        rates=rates,
        step=5e-4,
    )
    with_it, without = (observe(tree, log, "ekf", settings) for tree in (rough, arm()))
    moving = np.abs(qd[:, 0]) > 0.3
    moving[:40] = False
    assert moving.sum() > 40
    assert abs(with_it.state("force.upper")[moving].mean()) < 0.5
    friction = without.state("force.upper")[moving] * -np.sign(qd[moving, 0])
    assert abs(friction.mean() - 2.0) < 0.6


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"unknown": ("elbow",)}, ModelError, "'elbow' is no coordinate"),
        ({"parameters": ("M7",)}, ModelError, "there is no parameter 'M7'"),
        ({"inputs": ("force.elbow",)}, DataError, "there is no input 'force.elbow'"),
        ({"start": {"elbow": 1.0}}, DataError, "there is no coordinate 'elbow'"),
        ({"sensors": ()}, ModelError, "no sensors"),
        ({"step": -1.0}, ModelError, r"ObserveSettings\.step"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings: dict, error: type, message: str) -> None:
    log, _, _ = swing(arm(), 1, 0.1)
    with pytest.raises(error, match=message):
        observe(
            arm(), log, "ekf", ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), **settings)
        )


def test_what_is_no_machine_or_no_log_is_named() -> None:
    with pytest.raises(ModelError, match="argument 'machine': it is no machine"):
        observe("arm.yaml", Experiment({}, "x"))
    with pytest.raises(DataError, match="argument 'log': it is no log"):
        observe(arm(), np.zeros((3, 2)))
