"""Prescribed coordinates in observers: a driven cart, a driven closed machine; the force they need is a virtual sensor."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mechanics.test_prescribed import bob_way, cart, closed
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observation import Virtual
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.observe.system import numeric_jacobian
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

STEP = 0.005
T = np.arange(0.0, 0.7, STEP)


@cache
def driven(first: float) -> np.ndarray:
    """q, q̇ and q̈ (3, N) at T of a motion whose acceleration is constant between samples."""
    qdd = -4.8 * np.sin(4.0 * T)
    qd = 1.2 + np.concatenate([[0.0], np.cumsum(qdd[:-1]) * STEP])
    q = first + np.concatenate([[0.0], np.cumsum(STEP * qd[:-1] + 0.5 * STEP**2 * qdd[:-1])])
    return np.array([q, qd, qdd])


def between(first: float, time: float) -> tuple[float, float, float]:
    q, qd, qdd = driven(first)
    k = min(int(time / STEP + 1e-9), len(T) - 1)
    s = time - T[k]
    return float(q[k] + s * qd[k] + 0.5 * s**2 * qdd[k]), float(qd[k] + s * qdd[k]), float(qdd[k])


def log_of(tree: Machine, motion: Motion, name: str, first: float, every: int = 1) -> Experiment:
    table, rng = tree_readout(tree_of(tree)), np.random.default_rng(0)
    y = table.read(motion.q, motion.qd, motion.qdd)
    y = y + rng.standard_normal(y.shape) * np.sqrt(table.variances)
    channels = {n: Channel(n, T, y[:, j], u) for j, (n, u) in enumerate(zip(table.names, table.units, strict=True))}
    for symbol, values in zip(("q", "qd", "qdd"), driven(first), strict=True):
        channels[f"{symbol}.{name}"] = Channel(f"{symbol}.{name}", T[::every], values[::every], "SI")
    return Experiment(channels, tree.name)


@cache
def on_the_cart() -> tuple[Machine, Motion, Experiment]:
    tree = replace(machine_of_tree(cart()), sensors=(Sensor("swing", "coordinate", "swing", 2e-3),))
    inputs = Inputs(prescribed=lambda time: {"x": between(0.0, time)})
    motion = integrate(tree, T, [0.0, 0.4], [1.2, 0.2], inputs, method=Method("RK4", step=STEP / 10)).motion
    return tree, motion, log_of(tree, motion, "x", 0.0)


SETTINGS = ObserveSettings(
    model_error="off",
    process_noise=ProcessNoise(start=0.01, start_rate=0.05, force=1e-8),
    start={"swing": 0.41, "x": 0.0},
    rates={"swing": 0.15},
    step=1e-3,
)


def test_a_pendulum_on_a_driven_cart_and_the_force_of_the_cart() -> None:
    """States within their bands; the force against Newton's law with the pendulum's true motion."""
    tree, motion, log = on_the_cart()
    found = observe(tree, log, "ekf", SETTINGS)
    assert found.system.inputs == ("q.x", "qd.x", "qdd.x") and found.states[:2] == ("swing", "swing_dot")
    assert found.nees(motion.q, motion.qd, skip=40).mean < 2.0
    assert np.abs(found.q[:, 0] - motion.q[:, 0]).max() < 1e-9
    force = found.virtual(Virtual("drive", "force", "x"))["drive"]
    way = bob_way(cart())
    for k in range(60, len(T), 20):
        out, across = way(motion.q[k, 1])
        bob = motion.qdd[k, 0] + 0.7 * (motion.qdd[k, 1] * across[0] - motion.qd[k, 1] ** 2 * out[0])
        exact = 3.0 * motion.qdd[k, 0] + 0.4 * bob
        assert force.units == ("N",) and abs(force.values[k, 0] - exact) < 4.0 * force.sigma[k, 0] + 1e-6
    assert force.sigma[60:].max() < 0.1


def test_engines_agree_and_streaming_is_the_same() -> None:
    tree, _, log = on_the_cart()
    a, b = (observe(tree, log, EKF(engine=engine), SETTINGS) for engine in ("compiled", "python"))
    for one, two in ((a.estimates.x, b.estimates.x), (a.estimates.P, b.estimates.P), (a.estimates.H, b.estimates.H)):
        assert np.abs(one - two).max() <= 1e-12 * np.abs(two).max()
    observer = Observer(tree, "ekf", replace(SETTINGS, inputs=("q.x", "qd.x", "qdd.x")))
    values = log["swing"].values
    steps = [observer.step(float(t), {"swing": float(values[k])}, driven(0.0)[:, k]) for k, t in enumerate(T)]
    last = steps[-1]
    np.testing.assert_allclose(list(last.values.values()), a.reduced[-1], rtol=1e-9, atol=1e-12)
    force, sigma = observer.virtual(Virtual("drive", "force", "x"))
    assert np.isfinite(force).all() and (sigma > 0.0).all()


def test_inputs_at_a_slower_clock_go_on_with_their_acceleration() -> None:
    """The same motion with inputs at every second sample, exact where the acceleration stays: the cart is where it was."""
    tree, motion, _ = on_the_cart()
    log = log_of(tree, motion, "x", 0.0, every=2)
    found = observe(tree, log, "ekf", SETTINGS)
    jerk = 4.8 * 4.0
    assert np.abs(found.q[:, 0] - motion.q[:, 0]).max() < jerk * STEP**3
    system = found.system
    later = system.later(np.array([1.0, 2.0, 3.0]), 0.1)  # pyright: ignore[reportAttributeAccessIssue]
    assert later == pytest.approx([1.0 + 0.2 + 0.015, 2.3, 3.0])


@cache
def in_the_loop() -> tuple[Machine, Motion, Experiment]:
    """The crank of a four-bar is driven; the link on its coupler swings, seen by an encoder and a gyroscope on the rocker."""
    sensors = (Sensor("arm", "coordinate", "arm", 2e-3), Sensor("gyro", "gyroscope", "rocker", 0.01, axes="z"))
    tree = replace(machine_of_tree(closed()), sensors=sensors)
    start = closed_motion(tree, [0.0], [[1.2, 0.1]], [[1.2, 0.0]], [[0.0, 0.0]])
    inputs = Inputs(prescribed=lambda time: {"crank": between(1.2, time)})
    motion = integrate(tree, T, start.q[0], start.qd[0], inputs, method=Method("RK4", step=STEP / 4)).motion
    return tree, motion, log_of(tree, motion, "crank", 1.2)


def test_a_driven_crank_moves_what_its_loop_ties() -> None:
    tree, motion, log = in_the_loop()
    noise = ProcessNoise(start=0.01, start_rate=0.05, force=1e-4)
    settings = replace(SETTINGS, process_noise=noise, start={"arm": 0.1, "crank": 1.2}, rates={})
    found = observe(tree, log, "ekf", settings)
    assert found.states[:2] == ("arm", "arm_dot")
    assert found.nees(motion.q, motion.qd, skip=40).mean < 2.5
    assert np.abs(found.q - motion.q)[60:].max() < 0.01
    force = found.virtual(Virtual("torque", "force", "crank"))["torque"]
    assert motion.forces is not None
    left = (force.values[60:, 0] - motion.forces[60:, 0]) / force.sigma[60:, 0]
    assert np.abs(left).mean() < 2.0 and force.units == ("N*m",)
    python = observe(tree, log, EKF(engine="python"), settings)
    assert np.abs(found.estimates.x - python.estimates.x).max() <= 1e-11


@pytest.mark.parametrize("machine", [on_the_cart, in_the_loop])
def test_derivatives_with_a_prescribed_coordinate(machine) -> None:
    tree = machine()[0]
    acc = Sensor("acc", "accelerometer", tree.body_names[-1], 0.1)
    tree = replace(tree, sensors=(*tree.sensors, acc))
    name = tree.prescribed[0]
    inputs = tuple(f"{symbol}.{name}" for symbol in ("q", "qd", "qdd"))
    held = {name: float(driven(1.2 if tree.closed else 0.0)[0, 10])}
    system, q, qd = machine_system(
        tree,
        ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), inputs=inputs, start=held, step=0.02),
    )
    u = driven(1.2 if tree.closed else 0.0)[:, 10]
    x = system.add(system.belief(q, qd).x, np.array([0.2, 0.5, 1.0]))
    moved, F = system.move_and_jacobian(x, u, 0.0, 0.02)
    H = system.sense_and_jacobian(x, u, 0.0)[1]
    for function, given in (
        (lambda a: system.subtract(system.move(a, u, 0.0, 0.02), moved), F),
        (lambda a: system.sense(a, u, 0.0), H),
    ):
        numeric, accuracy = numeric_jacobian(function, x, np.full(3, 0.01), system.add)
        scale = np.abs(numeric).max(axis=1, keepdims=True) + 1e-9
        assert (np.abs(given - numeric) <= 1e-6 * scale + 3.0 * accuracy).all()


def test_prescribed_coordinates_named_in_another_order_are_not_mixed_up() -> None:
    """Two driven slides under a pendulum: each is where its own input puts it, whatever the order of the names."""
    ten = from_centre(1.0, (0.3, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    bodies = [
        Body("x", joint="sliding"),
        Body("y", "x", "sliding", MDH(alpha=np.pi / 2)),
        Body("bob", "y", placement=MDH(alpha=0.4), actuated=False),
    ]
    tree = Machine.of_bodies(bodies, inertia=dict.fromkeys(("x", "y", "bob"), ten)).with_prescribed(("y", "x"))
    tree = replace(tree, sensors=(Sensor("swing", "coordinate", "bob", 1e-3),))
    given = {"x": (0.5, 0.1, 0.0), "y": (-0.2, 0.0, 0.3)}
    inputs = tuple(f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in ("y", "x"))
    system, q, qd = machine_system(
        tree, ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), inputs=inputs, step=0.01)
    )
    u = np.array([given[name][k] for k in range(3) for name in ("y", "x")])
    x = system.move(system.belief(q, qd).x, u, 0.0, 0.01)
    h = 0.01
    for name, (p, v, a) in given.items():
        assert x[tree.coordinates.index(name)] == pytest.approx(p + h * v + 0.5 * h**2 * a, abs=1e-12)
