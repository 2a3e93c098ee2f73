"""Errors of sensors by their formula; and mechanisms that are driven and led, each the inverse of the other, with their readings."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.files.machine.load import parse_machine
from veridyn.machines import crane
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, driven, led
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.pulses import PulseWheel, edges_of_intervals
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.simulate.imperfection import (
    Imperfection,
    Imperfections,
    edge_intervals,
    edge_times,
    mechanism_truth,
    own_sensors,
    wheel_count,
    wrapped,
)

T = np.arange(2001) / 1000.0
TRUTH = Experiment(
    {
        n: Channel(n, T, np.sin(3.0 * T + k), u)
        for k, (n, u) in enumerate((("q.a", "rad"), ("q.b", "m"), ("force.a", "N*m")))
    },
    "truth",
    {"source": "simulated"},
)
WHEEL = PulseWheel(holes=40, phase=0.02)
P = np.pi / 20


def test_without_imperfections_a_sensor_tells_the_truth():
    read = Imperfection().read(TRUTH["q.a"], None)
    assert np.array_equal(read.values, TRUTH["q.a"].values) and np.array_equal(read.t, T) and read.unit == "rad"


def test_noise_is_white_and_as_large_as_said():
    before = TRUTH["q.a"].values.copy()
    read = Imperfection(noise=0.3, bias=2.0).read(TRUTH["q.a"], np.random.default_rng(1))
    error = read.values - before
    # 2001 samples: the mean is known to 0.3/√2001, the deviation to 0.3/√4002, lag one to 1/√2001; 4 of each
    assert abs(error.mean() - 2.0) < 4 * 0.3 / np.sqrt(2001)
    assert abs(error.std() - 0.3) < 4 * 0.3 / np.sqrt(4002)
    centred = error - error.mean()
    assert abs(centred[1:] @ centred[:-1] / (centred @ centred)) < 4 / np.sqrt(2001)
    assert np.array_equal(TRUTH["q.a"].values, before)


def test_a_quantum_is_the_step_between_readings():
    read = Imperfection(quantum=0.05).read(TRUTH["q.a"], None)
    assert np.allclose(read.values / 0.05, np.round(read.values / 0.05), atol=1e-9)
    assert np.abs(read.values - TRUTH["q.a"].values).max() <= 0.025 + 1e-12


def test_a_sensor_has_its_own_clock_and_delay():
    read = Imperfection(rate=130.0, delay=0.02).read(TRUTH["q.a"], None)
    assert read.t[0] == pytest.approx(0.02) and read.t[-1] <= 2.0
    assert np.allclose(np.diff(read.t), 1 / 130.0)
    assert np.allclose(read.values, np.sin(3.0 * (read.t - 0.02)), atol=1e-10)
    late = Imperfection(delay=0.5).read(TRUTH["q.a"], None)
    assert late.t[0] == 0.5 and np.allclose(late.values, np.sin(3.0 * (late.t - 0.5)), atol=1e-10)
    every_fifth = Imperfection(rate=200.0).read(TRUTH["q.a"], None)
    assert np.allclose(every_fifth.values, TRUTH["q.a"].values[::5], atol=1e-12)


def test_patterns_choose_sensors_and_what_none_measures_is_not_recorded():
    sensors = Imperfections({"q.b": Imperfection(bias=1.0), "q.*": Imperfection()})
    read = sensors.read(TRUTH, None)
    assert read.names == ("q.a", "q.b")
    assert np.allclose(read["q.b"].values - TRUTH["q.b"].values, 1.0)
    assert read.notes == {"source": "simulated"}
    assert sensors.of("force.a") is None


def test_one_seed_gives_one_log():
    sensors = Imperfections({"*": Imperfection(noise=0.1)})
    a, b, c = (sensors.read(TRUTH, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a[n].values, b[n].values) for n in a)
    assert not np.array_equal(a["q.a"].values, c["q.a"].values)
    assert not np.allclose(a["q.a"].values - TRUTH["q.a"].values, a["q.b"].values - TRUTH["q.b"].values)


def test_bad_settings_and_unknown_names_are_refused():
    with pytest.raises(DataError, match=r"3 faults(.|\n)*noise is not usable(.|\n)*bias is not usable(.|\n)*rate"):
        Imperfection(noise=-1.0, bias=np.nan, rate=0.0)
    with pytest.raises(DataError, match=r"channel 'q.a': a noisy sensor needs random numbers"):
        Imperfection(noise=1.0).read(TRUTH["q.a"], None)
    with pytest.raises(DataError, match=r"truth: the sensor 'force.b' measures nothing(.|\n)*Did you mean 'force.a'"):
        Imperfections({"force.b": Imperfection()}).read(TRUTH, None)
    with pytest.raises(DataError, match="at least two readings"):
        Imperfection(delay=3.0).read(TRUTH["q.a"], None)


def test_a_band_passes_what_is_inside_and_halves_the_power_at_its_edge() -> None:
    """At the cut-off the amplitude is 1/√2; far below it is 1, and a decade above it is that of order 2 twice over, 2e-4."""
    t = np.arange(0.0, 20.0, 1e-3)
    for frequency, gain in ((1.0, 1.0), (10.0, np.sqrt(0.5)), (100.0, 2e-4)):
        truth = Channel("q.a", t, np.sin(2 * np.pi * frequency * t), "rad")
        seen = Imperfection(cutoff=10.0).read(truth, None).values[5000:15000]
        assert np.abs(seen).max() == pytest.approx(gain, rel=0.02)
    with pytest.raises(DataError, match="cutoff is not usable"):
        Imperfection(cutoff=-1.0)


def test_a_bias_walks_as_far_as_its_density_says():
    """Variance walk · t, over 400 sensors: a mean of squares of that many normals is within 3·√(2/400) of theirs."""
    t = np.arange(0.0, 1.0, 0.01)
    truth = Channel("q.a", t, np.zeros(len(t)), "rad")
    rng = np.random.default_rng(3)
    read = np.array([Imperfection(walk=0.25).read(truth, rng).values for _ in range(400)])
    assert not read[:, 0].any()
    for k in (25, 50, 99):
        assert (read[:, k] ** 2).mean() == pytest.approx(0.25 * t[k], rel=3.0 * np.sqrt(2.0 / 400))
    with pytest.raises(DataError, match="needs random numbers"):
        Imperfection(walk=1.0).read(truth, None)


def turning(rate=500.0, duration=2.0, speed=3.0, acceleration=1.5, start=0.1):
    t = np.arange(round(duration * rate) + 1) / rate
    return Channel("spin", t, start + speed * t + 0.5 * acceleration * t**2, "rad")


def test_edges_of_a_steady_acceleration():
    """φ₀ + ω t + a t²/2 = n p + phase has a root in closed form."""
    found = edge_times(turning(), WHEEL)
    n = np.arange(1, len(found) + 1)
    expected = (np.sqrt(9.0 + 3.0 * (n * P + 0.02 - 0.1)) - 3.0) / 1.5
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert len(found) == int((0.1 + 6.0 + 3.0 - 0.02) / P)


def test_the_count_changes_in_the_sample_after_an_edge():
    angle = turning()
    count, edges = wheel_count(angle, WHEEL, "count"), edge_times(angle, WHEEL)
    assert count.unit == "1" and count.values[0] == np.floor(0.08 / P)
    changed = np.flatnonzero(np.diff(count.values)) + 1
    assert np.array_equal(changed, np.searchsorted(angle.t, edges))
    slow = wheel_count(angle, WHEEL, "count", rate=50.0)
    assert np.array_equal(slow.values, count.values[::10])


def test_a_wheel_that_turns_back():
    t = np.arange(1001) / 500.0
    angle = Channel("spin", t, 2.0 * np.sin(np.pi * t / 2.0), "rad")  # two radians forward and back
    signed = wheel_count(angle, PulseWheel(), "n")
    assert signed.values.max() == np.floor(2.0 / P) == 12.0
    assert signed.values[[0, -1]] == pytest.approx([0.0, 0.0])
    unsigned = wheel_count(angle, PulseWheel(signed=False), "n")
    assert unsigned.values[-1] == 24.0 and (np.diff(unsigned.values) >= 0.0).all()
    edges = edge_times(angle, PulseWheel())
    assert (np.diff(edges) > 0.0).all()
    forward = np.arcsin(np.arange(1, 13) * P / 2.0) * 2.0 / np.pi
    np.testing.assert_allclose(edges[:12], forward, atol=1e-9)
    np.testing.assert_allclose(edges[12:24], (2.0 - forward)[::-1], atol=1e-9)


def test_intervals_are_those_between_edges():
    angle = turning()
    first, steps = edge_intervals(angle, WHEEL)
    np.testing.assert_allclose(edges_of_intervals(first, steps), edge_times(angle, WHEEL), atol=1e-12)
    first, ticks = edge_intervals(angle, WHEEL, clock=1e-4)
    assert np.allclose(ticks / 1e-4, np.round(ticks / 1e-4), atol=1e-6)
    error = edges_of_intervals(first, ticks) - edge_times(angle, WHEEL)
    assert (error <= 1e-12).all() and (error > -1e-4 - 1e-9).all()  # a tick that has passed, never more


def test_what_is_no_turning_wheel_is_refused():
    with pytest.raises(DataError, match="'spin': it is no angle of a wheel"):
        wheel_count(Channel("spin", np.arange(3.0), np.arange(3.0), "deg"), WHEEL, "n")
    with pytest.raises(DataError, match="the wheel passes no edge"):
        edge_intervals(Channel("spin", np.arange(3.0), np.zeros(3), "rad"), PulseWheel(phase=0.05))
    assert len(edge_times(Channel("spin", np.arange(3.0), np.zeros(3), "rad"), PulseWheel(phase=0.05))) == 0


PENDULUM = """
veridyn: 2
name: pendulum
gravity: [0, -9.81]
points: {O: {at: [0, 0], fixed: true}, P: {at: [0, -2]}}
bodies: {bob: {points: {O: [0, 0], P: [2, 0]}, mass: 5, centre: [2, 0], inertia: 0}}
coordinates: {swing: {of: [O, P], from: [0, -1]}}
loads:
  motor: {kind: drive, on: swing}
  wind: {kind: force, on: P, value: [0, 0]}
sensors: {encoder: {kind: coordinate, on: swing, sigma: 0.01, turns: true, bias_sigma: 0.1, delay: 0.1}}
"""


def pendulum():
    return natural_system(parse_machine(PENDULUM, "pendulum"))


def test_led_along_a_swing_the_motor_pushes_as_the_closed_form_says() -> None:
    """M = m l² θ̈ + m g l sin θ − l w cos θ under a wind w along x."""
    reference = FourierTrajectory([0.3], [[0.8, 0.1]], [[0.0, 0.2]], 0.7)
    run = led(pendulum(), 1.0, 50.0, reference, ["swing"], lambda t: {"wind": [3.0 * t, 0.0]})
    t = run.motion.t
    theta, _, accelerated = (x[:, 0] for x in reference.at(t))
    wanted = 5.0 * 4.0 * accelerated + 5.0 * 9.81 * 2.0 * np.sin(theta) - 2.0 * 3.0 * t * np.cos(theta)
    assert run.loads["motor"][:, 0] == pytest.approx(wanted, abs=1e-9)
    assert run.motion.column("swing") == pytest.approx(theta, abs=1e-12)
    assert run.motion.column("P.x") == pytest.approx(2.0 * np.sin(theta), abs=1e-12)


def test_driven_by_what_leading_took_it_moves_as_it_was_led() -> None:
    """Forward and inverse dynamics share no formula: index 3 by Newton's steps, and a projection."""
    reference = FourierTrajectory([0.3], [[0.8]], [[0.0]], 0.7)
    one = pendulum()
    taken = led(one, 0.5, 1000.0, reference, ["swing"])
    t, push = taken.motion.t, taken.loads["motor"][:, 0]
    q, qd, _ = reference.at(0.0)
    back = driven(
        one,
        0.5,
        100.0,
        lambda time: {"motor": np.interp(time, t, push)},
        start={"swing": q[0]},
        rates={"swing": qd[0]},
        method=NaturalMethod(step=1e-3),
    )
    # the trapezoidal rule at 1 ms: its error is of the order of h² times the third derivative, 1e-6 · 70
    assert back.motion.column("swing") == pytest.approx(reference.at(back.motion.t)[0][:, 0], abs=5e-5)


def test_the_truth_holds_sensors_coordinates_and_loads() -> None:
    machine = pendulum()
    run = driven(machine, 0.2, 50.0, lambda t: {"motor": 4.0, "wind": [1.0, 2.0]}, start={"swing": 0.5})
    truth = mechanism_truth(run)
    assert truth["encoder"].values == pytest.approx(truth["q.swing"].values)
    assert (truth["q.swing"].unit, truth["qdd.P.x"].unit, truth["load.motor"].unit) == ("rad", "m/s^2", "N*m")
    assert truth["load.wind.y"].values == pytest.approx(2.0) and truth["load.wind.y"].unit == "N"
    assert [name for name in truth.names if name.startswith("load.")] == ["load.motor", "load.wind.x", "load.wind.y"]


def test_sensors_are_those_of_the_file() -> None:
    machine = parse_machine(PENDULUM, "pendulum")
    drawn = [own_sensors(machine, np.random.default_rng(k))["encoder"] for k in range(200)]
    assert (drawn[0].noise, drawn[0].delay) == (0.01, 0.1)
    assert np.std([s.bias for s in drawn]) == pytest.approx(0.1, rel=3.0 / np.sqrt(400))
    run = driven(natural_system(machine), 0.2, 50.0, start={"swing": 0.5}, rates={"swing": 40.0})
    log = wrapped(machine.sensors, mechanism_truth(run))
    turned = log["encoder"].values
    assert (np.abs(turned) <= np.pi).all() and np.abs(log["q.swing"].values).max() > 4.0
    assert np.exp(1j * turned) == pytest.approx(np.exp(1j * log["q.swing"].values))


def test_what_cannot_be_led_is_refused() -> None:
    flat = FourierTrajectory([0.0], [[0.1]], [[0.0]], 1.0)
    with pytest.raises(DataError, match=r"no coordinate 'swng'(.|\n)*'swing'"):
        led(pendulum(), 1.0, 50.0, flat, ["swng"])
    with pytest.raises(DataError, match="found none"):
        led(pendulum(), 1.0, 50.0, flat, ["swing"], lambda t: {"motor": 0.0})
    both = FourierTrajectory([0.5, 0.0], np.ones((2, 1)), np.ones((2, 1)), 1.0)
    with pytest.raises(DataError, match="one free drive for each of x, swing, found motor"):
        led(natural_system(crane()), 1.0, 50.0, both, ["x", "swing"])  # nothing drives the swing of a crane
