import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.simulate.imperfection import Imperfection, Imperfections

T = np.arange(2001) / 1000.0
TRUTH = Experiment(
    {
        n: Channel(n, T, np.sin(3.0 * T + k), u)
        for k, (n, u) in enumerate((("q.a", "rad"), ("q.b", "m"), ("force.a", "N*m")))
    },
    "truth",
    {"source": "simulated"},
)


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
