"""What sensors read: every H against finite differences, a gyroscope against ω, an accelerometer against Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from mechanics.test_formulations import MACHINES
from strangers.natural_mechanisms import random_mechanism
from strangers.pinocchio_natural import GRAVITY, Stranger, natural
from veridyn.errors import CapabilityError, DataError, ModelError
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.formulation import RunSettings
from veridyn.mechanics.natural.channels import exact_readings, readout
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.integrate import NaturalMotion
from veridyn.mechanics.system.simulation import Inputs
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import check_jacobian


def test_every_h_and_its_derivative() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        dim = 2 + seed % 2
        system = system_of(random_mechanism(rng, dim).mechanism)
        place, turned = Marker("b2", rng.normal(size=dim)), Marker("b1", rng.normal(size=dim), rng.normal(size=dim))
        table = readout(
            system,
            [
                Sensor("e", "coordinate", "theta", 0.1, bias=0.7),
                Sensor("r", "rate", "s", 0.1),
                Sensor("p", "position", place, 0.1),
                Sensor("v", "velocity", "O", 0.1),
                Sensor("w", "velocity", turned, 0.1, axes="y"),
                Sensor("g", "gyroscope", "b2", 0.1),
                Sensor("h", "gyroscope", turned, 0.1),
                Sensor("a", "accelerometer", place, 0.1),
                Sensor("b", "accelerometer", turned, 0.1, axes="x"),
            ],
        )
        n = system.n
        x = np.concatenate([position(system), *rng.normal(size=(2, n))])
        found = check_jacobian(
            lambda x, table=table, n=n: table.read(x[:n], x[n : 2 * n], x[2 * n :]),
            lambda x, table=table, n=n: np.hstack(table.derivatives(x[:n], x[n : 2 * n], x[2 * n :])),
            x,
            outputs=table.names,
        )
        assert found.error < 1e-9
        assert table.read(x[:n], x[n : 2 * n], x[2 * n :])[0] == x[system.mechanism.index("theta")] + 0.7


def test_a_gyroscope_reads_the_angular_velocity_in_the_bodys_axes() -> None:
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(3), 1.0)
    x, xd, _ = stranger.natural_state(q, v, np.zeros(len(v)))
    table = readout(system, [Sensor("gyro", "gyroscope", "rod", 0.1)])
    omega = system.geometry.angular_velocity("rod", x, xd)
    R = system.geometry.rotation("rod", x)
    assert np.abs(table.read(x, xd, xd) - R.T @ omega).max() < 1e-12
    assert np.abs(table.read(x, xd, xd) - stranger.data.v[stranger.joint["rod"]].angular).max() < 1e-10


def test_an_accelerometer_reads_the_specific_acceleration_of_pinocchio() -> None:
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(4), 1.0)
    a = stranger.acceleration(q, v)
    x, xd, xdd = stranger.natural_state(q, v, a)
    place = (1.2, 0.4, 1.4)  # in the rod's frame, which is the ground's in the reference pose
    table = readout(system, [Sensor("imu", "accelerometer", Marker("rod", place), 0.1)])
    joint, data = stranger.joint["rod"], stranger.data
    arm = np.array(place) - stranger.origin["rod"]
    V, A = data.v[joint], data.a[joint]
    speed = V.linear + np.cross(V.angular, arm)
    felt = A.linear + np.cross(A.angular, arm) + np.cross(V.angular, speed) - data.oMi[joint].rotation.T @ GRAVITY
    assert np.abs(table.read(x, xd, xdd) - felt).max() < 1e-9


def test_exact_readings_are_channels_with_units() -> None:
    rng = np.random.default_rng(0)
    system = system_of(random_mechanism(rng, 2).mechanism)
    q = np.tile(position(system), (4, 1))
    motion = NaturalMotion(system.coordinates, np.arange(4.0), q, 0 * q, 0 * q, np.zeros((4, system.constraints.m)))
    table = readout(system, [Sensor("e", "coordinate", "theta", 0.1), Sensor("p", "position", "O", 0.1)])
    log = exact_readings(system, motion, table)
    assert log.names == ("e", "p.x", "p.y") and log["e"].unit == "rad" and log["p.x"].unit == "m"
    assert (log["e"].values == q[:, system.mechanism.index("theta")]).all()


def test_a_velocity_along_the_axes_of_its_marker() -> None:
    """The twist of a body from the geometry's own ω: Rᵀ (v + ω × r), written out here."""
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(5), 1.0)
    x, xd, _ = stranger.natural_state(q, v, np.zeros(len(v)))
    place, axis, side = (1.2, 0.4, 1.4), np.array([0.0, 3.0, 4.0]), np.array([1.0, 0.0, 0.0])
    turned = Sensor("along", "velocity", Marker("rod", place, axis, side), 0.1)
    table = readout(system, [turned, Sensor("plain", "velocity", Marker("rod", place), 0.1)])
    own = np.column_stack([axis / 5.0, side, np.cross(axis / 5.0, side)])
    found = table.read(x, xd, 0 * xd)
    assert np.abs(found[:3] - own.T @ system.geometry.rotation("rod", x).T @ found[3:]).max() < 1e-12
    joint, data = stranger.joint["rod"], stranger.data
    local = data.v[joint].linear + np.cross(data.v[joint].angular, np.array(place) - stranger.origin["rod"])
    assert np.abs(found[:3] - own.T @ local).max() < 1e-10


def test_sensors_that_cannot_be_read_are_refused() -> None:
    system = system_of(natural())
    turned = Marker("rod", (1.2, 0.4, 1.4), (1.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="sensor 'p': a position is read in the ground's axes"):
        readout(system, [Sensor("p", "position", turned, 0.1)])
    with pytest.raises(ModelError, match=r"(?s)sensor 'd': natural coordinates read a distance as a coordinate"):
        readout(system, [Sensor("d", "distance", turned, 0.1, to="TA")])


NAMES = tuple(f"wrench.rod.{row}" for row in WRENCH_ROWS)
GIVEN = dict(zip(NAMES, (3.0, -2.0, 0.7, 0.2, -0.3, 0.4), strict=True))


@pytest.mark.parametrize("name", ["slider-crank", "rssr"])
def test_accelerations_and_derivatives_of_steps_are_those_of_the_tree(name: str) -> None:
    found = []
    for formulation in ("tree", "natural"):
        form = formulated(MACHINES[name]().with_formulation(formulation)).taking(NAMES)
        assert form.inputs_in([*NAMES, "other"]) == NAMES
        model, q, qd = form.prepared(RunSettings(inputs=NAMES, start={"phi": 0.6}, rates={"phi": 2.0}))
        loads, u = model.loads(GIVEN), model.start_unknown
        at, f = model.instant(q, qd, u, loads), model.f
        still = model.instant(q, qd, u, model.loads(dict.fromkeys(NAMES, 0.0)))
        assert np.abs(at.qdd - still.qdd).max() > 1e-3  # it acts
        step = model.advanced(q, qd, u, 1e-3, loads, True, 0.0, 0)
        slopes = model.accelerated(at)[:, : 2 * f]
        found.append((model.local(q, at.qdd)[f:], slopes, step.found.F[: 2 * f, : 2 * f]))
    for by_tree, by_points in zip(*found, strict=True):
        np.testing.assert_allclose(by_points, by_tree, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("filter", [vd.EKF(), vd.EKF(engine="python")])
def test_an_observer_takes_the_wrench_of_its_log_in_both_formulations(filter: vd.EKF) -> None:
    machine = replace(MACHINES["slider-crank"](), sensors=(vd.Sensor("crank", "coordinate", "phi", 1e-3),))
    push = Inputs(wrenches=lambda t, q, qd: {"rod": [5.0 * np.sin(8.0 * t), 2.0, 0.0, 0.0, 0.0, 0.3]})
    q = formulated(machine.with_formulation("tree")).prepared(RunSettings(unknown=()))[1]
    log = vd.simulate(machine, vd.manoeuvres.Driven(0.4, 200.0, q, 0.0 * q, push), rng=np.random.default_rng(0))
    how = ObserverSetup(
        filter,
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(acceleration=1e-2, start=1e-2, start_rate=1e-2),
            unknown=(),
            step=1e-3,
        ),
    )
    tree, natural = (observe_with(how, machine.with_formulation(f), log) for f in ("tree", "natural"))
    assert natural.system.inputs == tree.system.inputs and set(NAMES) <= set(natural.system.inputs)
    assert (np.abs(natural.reduced - tree.reduced) / tree.sigma).max() < 0.05
    blind = observe_with(how.replaced(inputs=()), machine.with_formulation("natural"), log)
    assert (np.abs(blind.reduced - tree.reduced) / tree.sigma).max() > 1.0


def test_what_has_no_frame_or_is_no_body_is_refused() -> None:
    """The load of the crane is one point; a wrench in the plane of a point has no direction."""
    crane = formulated(vd.load_model("veridyn:crane.yaml"))
    with pytest.raises(CapabilityError, match="its points and vectors do not fix its orientation"):
        crane.taking([f"wrench.load.{row}" for row in WRENCH_ROWS]).prepared(RunSettings())
    with pytest.raises(DataError, match=r"a wrench acts on 'hook', which is no body"):
        crane.taking(["wrench.hook.fx"])
