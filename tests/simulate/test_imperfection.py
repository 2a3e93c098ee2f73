import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.pulses import PulseWheel, edges_of_intervals
from veridyn.simulate.imperfection import Imperfection, Imperfections, edge_intervals, edge_times, wheel_count

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
