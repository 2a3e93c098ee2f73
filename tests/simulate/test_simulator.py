"""Machines simulated, and cars of a few numbers: a motion integrated elsewhere, sensors with noise, and the way back to parameters."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import DataError, DataWarning, ModelError, SimulationError
from veridyn.estimators import Innovations
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.elements.element import coulomb, damper, drive_gain, spring
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import CarNoise, PriorValue, car_machine
from veridyn.signals.motion import Signals, motion
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.simulator import (
    Driven,
    Prescribed,
    Steered,
    Tracking,
    car_truth,
    clock,
    exact,
    record,
    simulate,
    steered_run,
)
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

PRECISE = Method(rtol=1e-10, atol=1e-12)
TEN = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))


def slider(**settings):
    """2 kg on a horizontal rail."""
    body = Body("1", joint="sliding", placement=MDH(alpha=np.pi / 2))
    return Machine.of_bodies([body], name="slider", inertia={"1": from_centre(2.0, (0, 0, 0), np.eye(3))}, **settings)


def test_a_damped_oscillator_follows_its_closed_form():
    k, h, m = 50.0, 1.2, 2.0
    machine = slider(elements=[spring("q1", k), damper("q1", h)])
    found = Driven(3.0, 50.0, [0.1], [0.0], method=PRECISE).run(machine).motion
    decay = h / (2 * m)
    w = np.sqrt(k / m - decay**2)
    exact = 0.1 * np.exp(-decay * found.t) * (np.cos(w * found.t) + decay / w * np.sin(w * found.t))
    assert np.allclose(found.q[:, 0], exact, atol=1e-8)


def test_dry_friction_brakes_evenly_until_it_is_rounded_off():
    f, m, s = 3.0, 2.0, 0.002
    how = Method(rtol=1e-9, atol=1e-11, friction_speed=s)
    found = Driven(0.6, 100.0, [0.0], [0.6], method=how).run(slider(elements=[coulomb("q1", f)])).motion
    fast = found.t < 0.35  # v = v₀ − f t/m ends at 0.4 s; above 0.07 m/s, 35 s, friction is full to 1/(2·35²)
    assert np.allclose(found.qd[fast, 0], 0.6 - f / m * found.t[fast], atol=1e-3)
    assert np.abs(found.qd[found.t > 0.45, 0]).max() < 2 * s  # and never turns round


def test_a_free_body_falls_and_is_pushed():
    body = Machine.of_bodies(
        [Body("box", None, "fixed")],
        base="free",
        inertia={"box": from_centre(2.0, (0, 0, 0), np.diag([1.0, 2.0, 2.5]))},
    )
    push = Inputs(wrenches=lambda t, q, qd: {"box": [4.0, 0, 0, 0, 0, 0]})
    found = Driven(1.0, 10.0, [], [], push, BaseState(velocity=(0, 0, 3.0)), PRECISE).run(body)
    t = found.motion.t
    exact = np.column_stack([t**2, 0 * t, 3 * t - 9.81 / 2 * t**2])
    assert np.allclose(found.base_position, exact, atol=1e-9)
    assert np.allclose(found.motion.base.acceleration, [2.0, 0, 0], atol=1e-9)


def test_tracking_obeys_the_machine_whatever_the_controller_believes():
    machine = slider(elements=[spring("q1", 5.0)])
    reference = FourierTrajectory(np.zeros(1), np.array([[0.2, 0.1]]), np.zeros((1, 2)), 0.5, 0.5)
    believed = machine.with_parameters(1.2 * machine.parameters.values)
    found = Tracking(reference, 2.0, 100.0, [400.0], [40.0], believed, PRECISE).run(machine).motion
    assert np.array_equal(found.t, np.arange(201) / 100.0)
    assert np.allclose(inverse_dynamics(machine, found), found.forces, atol=1e-10)
    error = np.abs(found.q - reference.position(found.t)).max()
    assert 1e-5 < error < 0.02  # a fifth of the force is left to the feedback


def test_what_cannot_follow_is_refused():
    reference = FourierTrajectory(np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)), 1.0)
    passive = Machine.of_bodies([Body("1", actuated=False)], name="passive")
    with pytest.raises(
        DataError, match=r"2 faults(.|\n)*1 coordinates, found 2(.|\n)*cannot be made to follow(.|\n)*q1"
    ):
        Tracking(reference, 1.0, 100.0, [1.0, 1.0], [1.0, 1.0]).run(passive)
    free = Machine.of_bodies([Body("1", None, "fixed")], base="free")
    with pytest.raises(DataError, match="a base that is held"):
        Tracking(reference, 1.0, 100.0, [1.0, 1.0], [1.0, 1.0]).run(free)


def test_the_clock_ends_with_the_duration():
    assert np.array_equal(clock(0.3, 10.0), [0.0, 0.1, 0.2, 0.3])
    assert len(clock(1.0, 3.3)) == 4
    for duration, rate in ((0.0, 10.0), (1.0, 0.0), (1.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(DataError, match="nothing to sample"):
            clock(duration, rate)


def test_a_prescribed_motion_is_made_and_its_forces_are_those_it_takes():
    """2 kg on a rail with a spring, a damper, dry friction and a push from outside: F = m a + k x + h v + f sign(v) − push."""
    machine = slider(elements=[spring("q1", 5.0), damper("q1", 0.5), coulomb("q1", 0.7)])
    reference = FourierTrajectory([0.1], [[0.2, 0.1]], [[0.0, 0.05]], 0.5)
    push = Inputs(wrenches=lambda t, q, qd: {"1": [0, 0, 3.0 * t, 0, 0, 0]})
    found = Prescribed(reference, 2.0, 100.0, push).run(machine).motion
    x, v, a = (y[:, 0] for y in reference.at(found.t))
    wanted = 2.0 * a + 5.0 * x + 0.5 * v + 0.7 * np.sign(v) - 3.0 * found.t
    assert np.allclose(found.q[:, 0], x) and np.allclose(found.forces[:, 0], wanted, atol=1e-12)
    with pytest.raises(DataError, match="a base that is held"):
        Prescribed(reference, 1.0, 10.0).run(Machine.of_bodies([Body("1", None, "fixed")], base="free"))


def test_tracking_against_a_wrench_from_outside():
    """A constant push that the controller does not know of leaves an error of push/kp."""
    still = FourierTrajectory([0.1], [[0.0]], [[0.0]], 1.0)
    push = Inputs(wrenches=lambda t, q, qd: {"1": [0, 0, 8.0, 0, 0, 0]})
    found = Tracking(still, 3.0, 20.0, [400.0], [60.0], slider(), PRECISE, push).run(slider()).motion
    assert found.q[-1, 0] == pytest.approx(0.1 + 8.0 / 400.0, abs=1e-5)
    assert found.forces[-1, 0] == pytest.approx(-8.0, abs=1e-2)


def arm(**settings):
    """A turning and a sliding joint."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", "sliding", MDH(alpha=0.3, d=0.4))]
    return Machine.of_bodies(bodies, name="arm", inertia={"1": TEN, "2": TEN}, elements=[damper("q1", 0.4)], **settings)


@pytest.fixture(scope="module")
def tracked():
    limits = JointLimits(np.array([-1.0, -0.1]), np.array([1.0, 0.2]), np.array([2.0, 0.5]), np.array([9.0, 3.0]))
    reference = FourierTrajectory.random(np.random.default_rng(4), limits, frequency=0.5, harmonics=3, start=0.5)
    return Tracking(reference, 2.0, 200.0, [60.0, 900.0], [6.0, 60.0], arm(), PRECISE).run(arm())


def test_a_log_without_imperfections_becomes_the_motion_again(tracked):
    truth = tracked.motion
    found = motion(arm(), record(arm(), tracked), Signals(trim=0.1))
    inside = slice(20, -20)
    assert np.array_equal(found.q, truth.q[inside]) and np.array_equal(found.forces, truth.forces[inside])
    # The start's polynomial ends with a jump of its third derivative at 0.5 s, which 17 points cannot follow; the rest is
    # the solver's 1e-10 times the rate, once and twice.
    assert np.allclose(found.qd, truth.qd[inside], atol=1e-3)
    assert np.allclose(found.qdd, truth.qdd[inside], atol=0.3)
    late = found.t > 0.6
    assert np.allclose(found.qd[late], truth.qd[inside][late], atol=1e-7)
    assert np.allclose(found.qdd[late], truth.qdd[inside][late], atol=1e-4)
    assert np.allclose(inverse_dynamics(arm(), found)[late], found.forces[late], atol=1e-4)


def test_channels_have_names_units_and_notes(tracked):
    log = record(arm(), tracked)
    assert log.names == ("q.q1", "q.q2", "force.q1", "force.q2")
    assert [log[n].unit for n in log] == ["rad", "m", "N*m", "N"]
    assert log.notes == {"source": "simulated", "machine": "arm"}
    everything = exact(arm(), tracked)
    assert [everything[n].unit for n in ("qd.q1", "qd.q2", "qdd.q1", "qdd.q2")] == ["rad/s", "m/s", "rad/s^2", "m/s^2"]
    assert np.array_equal(everything["qdd.q2"].values, tracked.motion.qdd[:, 1])


def test_sensors_spoil_the_log_and_not_the_truth(tracked):
    before = tracked.motion.q.copy()
    sensors = {
        "q.*": Imperfection(quantum=1e-4),
        "qd.q1": Imperfection(),
        "force.q1": Imperfection(noise=0.1, rate=50.0),
    }
    log = record(arm(), tracked, sensors, np.random.default_rng(5))
    assert log.names == ("q.q1", "q.q2", "qd.q1", "force.q1")
    assert log["force.q1"].rate == pytest.approx(50.0) and log["q.q1"].rate == pytest.approx(200.0)
    assert np.array_equal(tracked.motion.q, before)
    assert np.abs(log["q.q1"].values - before[:, 0]).max() <= 0.5e-4 + 1e-12


def test_a_free_machine_logs_its_base_wrenches_and_signals():
    tree = Machine.of_bodies(
        [Body("trunk", None, "fixed"), Body("2", "trunk", placement=MDH(d=0.1)), Body("3", "trunk", actuated=False)],
        name="walker",
        base="free",
        inertia=dict.fromkeys(("trunk", "2", "3"), TEN),
        elements=[drive_gain("q2", "current", 0.3)],
    )
    inputs = Inputs(
        wrenches=lambda t, q, qd: {"trunk": [0.0, 0.0, 58.86, 0.1, 0.0, np.sin(t)]},
        signals=lambda t, q, qd: {"current": np.cos(9.0 * t)},
    )
    seen = []
    manoeuvre = Driven(0.3, 200.0, [0.1, 0.2], [0.0, 0.0], inputs, BaseState(omega=(0.1, 0.2, 0.3)), PRECISE)
    log = simulate(tree, manoeuvre, progress=lambda task, done, total: seen.append((task, done, total)))
    # the driven joint is told by its current, the passive one has no motor: neither has a force
    assert not any(n.startswith("force.") for n in log)
    assert (
        log["signal.current"].unit == "A"
        and log["wrench.trunk.mz"].unit == "N*m"
        and log["base.omega.x"].unit == "rad/s"
    )
    assert seen and seen[-1][2] == 0.3
    found = motion(tree, log, Signals(trim=0.05))
    assert (
        np.abs(inverse_dynamics(tree, found)).max() < 1e-2
    )  # of 59 N: every force is a wrench, a signal or an inertia


def test_a_machine_records_its_own_sensors_and_drives():
    sensors = [
        Sensor("encoder", "coordinate", "q1", 1e-3, quantum=1e-4),
        Sensor("tip", "position", Marker("2", (0.1, 0.0, 0.0)), 1e-3, rate=20.0, axes="xz"),
        Sensor("turn", "coordinate", "q1", 1e-9, turns=True),
    ]
    tree = arm(sensors=sensors, loads=[Drive("motor", "q1", 3.0)])
    run = Driven(1.0, 100.0, [3.0, 0.1], [4.0, 0.0])
    log = simulate(tree, run, rng=np.random.default_rng(1))
    assert log.names == ("encoder", "tip.x", "tip.z", "turn", "motor", "force.q2")
    assert (
        len(log["tip.x"]) == 21 and (log["motor"].values == 3.0).all()
    )  # what the model has it at, since nothing else is given
    truth = run.run(tree).motion
    assert 5e-4 < np.std(log["encoder"].values - truth.q[:, 0]) < 2e-3
    assert np.abs(log["turn"].values).max() <= np.pi and truth.q[:, 0].max() > np.pi
    R, p = body_pose(tree, truth.q, "2")
    tip = (p + R @ np.array([0.1, 0.0, 0.0]))[::5]
    assert 5e-4 < np.std(log["tip.z"].values - tip[:, 2]) < 2e-3
    only = simulate(
        tree, run, rng=np.random.default_rng(1), sensors=["encoder"], imperfections={"qd.q1": Imperfection()}
    )
    assert only.names == ("encoder", "qd.q1")
    without = simulate(tree, run, rng=np.random.default_rng(1), sensors={"tip": None})
    assert without.names == ("encoder", "turn", "motor", "force.q2")
    with pytest.raises(ModelError, match=r"the machine has no sensor 'encodr'(.|\n)*Did you mean 'encoder'"):
        simulate(tree, run, sensors=["encodr"])
    with pytest.raises(DataError, match="a noisy sensor needs random numbers"):
        simulate(tree, run)


def test_loads_act_as_equal_wrenches_do():
    """A force at a place and a torque, given as loads, against the same as wrenches of bodies, whose sign and frame have other tests."""
    force, torque = (
        Force("push", Marker("2", (0.1, 0.0, 0.05)), (1.0, -2.0, 3.0)),
        Torque("twist", "1", (0.0, 0.3, 0.1)),
    )
    loaded = arm(loads=[force, torque])
    pushed = Driven(0.4, 100.0, [0.2, 0.1], [0.3, 0.0], method=PRECISE).run(loaded)
    plain = arm()

    def wrenches(t, q, qd):
        R1, R2 = (body_pose(plain, q[None], name)[0][0] for name in ("1", "2"))
        f = R2.T @ np.array(force.value)
        return {
            "2": np.concatenate([f, np.cross(force.at.at, f)]),
            "1": np.concatenate([np.zeros(3), R1.T @ np.array(torque.value)]),
        }

    same = Driven(0.4, 100.0, [0.2, 0.1], [0.3, 0.0], Inputs(wrenches=wrenches), method=PRECISE).run(plain)
    assert np.allclose(pushed.motion.q, same.motion.q, atol=1e-9) and np.ptp(same.motion.q) > 0.1
    log = record(loaded, pushed)
    assert (log["push.y"].values == -2.0).all() and (log["twist.z"].values == 0.1).all()
    with pytest.raises(DataError, match=r"there is no load 'psh'(.|\n)*Did you mean 'push'"):
        Driven(0.4, 100.0, [0.2, 0.1], [0.3, 0.0], Inputs(loads=lambda t: {"psh": 1.0})).run(loaded)


def test_an_absurd_amplitude_is_reported():
    """Ten radians at 2 Hz are up to 126 rad/s; a wheel that rolls on as fast is in order."""
    shaken = FourierTrajectory([0.0, 0.0], [[10.0], [0.01]], [[0.0], [0.0]], 2.0)
    expected = r"coordinate 'q1': it moves too fast\.\nExpected up to 60 rad/s, found 125"
    with pytest.warns(DataWarning, match=expected) as told:
        simulate(arm(), Prescribed(shaken, 0.5, 100.0))
    assert len(told) == 1
    flywheel = Machine.of_bodies([Body("1")], inertia={"1": from_centre(1.0, (0.0, 0.0, 0.0), np.eye(3))})
    log = simulate(flywheel, Driven(0.5, 100.0, [0.0], [200.0]))  # without a warning
    assert log["q.q1"].values[-1] == pytest.approx(100.0)


TRUTH = Bicycle(duration=10.0, rate=25.0, noise={"yaw_rate": 0.0, "ay": 0.0, "steer": 0.0, "position": 0.0})
EXACT = tuple(vd.Sensor(n, "reading", n, 1e-12) for n in ("yaw_rate", "ay", "sideslip"))


def car(**more: float | PriorValue) -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {
        "front_stiffness": TRUTH.cf,
        "rear_stiffness": TRUTH.cr,
        "height": 0.05,
        "brake_share": 0.5,
        "drive_share": 0.5,
    }
    return car_machine("bicycle", {**given, **more}, sensors=EXACT)


def drive(**more: object) -> Steered:
    given = {"duration": 10.0, "rate": 25.0, "speed": 20.0, "steer": TRUTH.steer}
    return Steered(**{**given, **more})


class Steady(Bicycle):
    """The stranger at a constant speed: it knows no drive force."""

    def speed(self, t):
        return 20.0 + 0.0 * t


def test_the_motion_is_that_of_a_stranger() -> None:
    other = Steady(duration=10.0, rate=25.0, noise=TRUTH.noise).drive(0)
    log = vd.simulate(car(), drive(start=(0.0, 0.0)), rng=np.random.default_rng(0))
    n = len(other["t"])
    np.testing.assert_allclose(log["speed"].t[:n], other["t"])
    for name in ("yaw_rate", "ay", "sideslip"):
        size = np.abs(other[name]).max()
        np.testing.assert_allclose(log[name].values[:n], other[name], atol=2e-5 * size)


def test_the_way_and_the_forces_are_those_of_a_stranger() -> None:
    other = Steady(duration=10.0, rate=25.0, noise=TRUTH.noise).drive(0)
    truth = car_truth(steered_run(car(), drive()))
    for name in ("east", "north", "heading", "front_force", "rear_force"):
        size = np.abs(other[name]).max()
        np.testing.assert_allclose(truth[name].values[: len(other["t"])], other[name], atol=2e-5 * size)
    np.testing.assert_array_equal(truth["bank"].values, 0.0)


def test_half_the_step_changes_nothing() -> None:
    whole = vd.simulate(car(), drive(), rng=np.random.default_rng(0))["yaw_rate"].values
    half = vd.simulate(car(), drive(step=0.001), rng=np.random.default_rng(0))["yaw_rate"].values
    np.testing.assert_allclose(whole, half, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*too cautious:veridyn.errors.IdentificationWarning")  # noise is less than stated
def test_a_simulated_drive_gives_its_parameters_back() -> None:
    sensors = [vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.002), vd.Sensor("ay", "reading", "ay", 0.05)]
    log = vd.simulate(
        car().with_sensors(sensors), drive(speed=lambda t: 20.0 + np.sin(0.3 * t)), rng=np.random.default_rng(1)
    )
    assert log.names == ("yaw_rate", "ay", "speed", "steer", "ax")
    uncertain = car(front_stiffness=PriorValue(11.0, 4.0), rear_stiffness=PriorValue(20.0, 6.0)).with_sensors(sensors)
    fit = vd.identify(uncertain, log, Innovations(noise=CarNoise(slip_error=5e-4, bank=5e-4)))
    assert (np.abs(fit.values - [TRUTH.cf, TRUTH.cr]) < 4.0 * fit.sigma).all() and (fit.relative_sigma < 3.0).all()


def test_a_bank_pushes_the_car_aside_and_inputs_may_be_noisy() -> None:
    noisy = {"speed": Imperfection(noise=0.1)}
    rng = np.random.default_rng(2)
    log = vd.simulate(car(), drive(steer=0.0, bank=0.05), rng=rng, imperfections=noisy)
    assert log["sideslip"].values[-1] != pytest.approx(0.0, abs=1e-4)
    assert np.std(log["speed"].values) == pytest.approx(0.1, rel=0.2) and not log["steer"].values.any()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="has no motors on joints"):
        vd.simulate(car(), vd.manoeuvres.Driven(1.0, 100.0, [0.0] * 3, [0.0] * 3))
    with pytest.raises(DataError, match="only a car of a few numbers is steered"):
        vd.simulate(vd.load_model("veridyn:crane.yaml"), drive())
    with pytest.raises(SimulationError, match=r"at 1.92 s the speed is 2.72 m/s"):
        vd.simulate(car(), drive(speed=lambda t: 20.0 - 9.0 * t), rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="needs random numbers"):
        vd.simulate(car(), drive())
