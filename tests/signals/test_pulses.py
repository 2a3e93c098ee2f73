"""Readings at edges: unbiased, with the noise they say, through reversals, and against the exact angle."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.pulses import (
    PulseReader,
    PulseWheel,
    count_of_rounded,
    edge_ages,
    edges_of_intervals,
    find_false_counts,
    readings_of_counts,
    readings_of_edges,
)

P = np.pi / 20
DT = 0.002
SIGNED = PulseWheel()


def counted(angle, wheel=SIGNED):
    """The count (N,) of exact angles, written out here."""
    n = np.floor((angle - wheel.phase) / P)
    return n if wheel.signed else np.concatenate([[0.0], np.cumsum(np.abs(np.diff(n)))])


@pytest.mark.parametrize("speed", [0.5, 7.3, 60.0, 150.0, 400.0])  # up to five edges in a sample
def test_readings_are_unbiased_and_have_the_noise_they_say(speed):
    """Over many start phases: mean error zero, and its square the stated variance; the speed is known."""
    rng = np.random.default_rng(1)
    errors, variances = [], []
    for start in rng.uniform(0.0, 10.0, 1500):
        angle = start + speed * DT * np.arange(2 + int(P / speed / DT))
        reader = PulseReader(PulseWheel(hole_sigma=1e-9))
        for k, n in enumerate(counted(angle)):
            reading = reader.step(DT * k, n, speed)
            if reading is not None:
                errors.append(reading.angle - angle[k])
                variances.append(reading.sigma**2)
    errors, stated = np.array(errors), np.mean(variances)
    assert len(errors) > 1000
    assert abs(errors.mean()) < 4.0 * np.sqrt(stated / len(errors))
    assert np.mean(errors**2) == pytest.approx(
        stated, rel=0.1
    )  # a uniform square has a deviation of 0.9: 0.025 of the mean
    assert np.sqrt(stated) <= min(speed * DT, P) / np.sqrt(12.0) * (1.0 + 1e-9)


def test_where_an_edge_may_lie():
    assert edge_ages(DT, 1, P, 10.0) == (0.0, DT)
    assert edge_ages(DT, 1, P, 0.0) == (0.0, DT)
    tau = P / 100.0  # of 1.57 ms: one edge in a sample of 2 ms cannot be older than tau, nor younger than DT − tau
    assert edge_ages(DT, 1, P, 100.0) == pytest.approx((DT - tau, tau))
    assert edge_ages(DT, 2, P, 100.0) == pytest.approx((0.0, DT - tau))
    assert edge_ages(DT, 5, P, 10.0) == (0.0, DT)  # a speed that does not go with five edges


@pytest.mark.parametrize("signed", [True, False])
def test_a_wheel_that_turns_back(signed):
    """The edge that is passed on the way back is the one passed last, at the same angle."""
    t = DT * np.arange(1001)
    angle, rate = 2.0 * np.sin(np.pi * t / 2.0), np.pi * np.cos(np.pi * t / 2.0)
    wheel = PulseWheel(signed=signed)
    count = Channel("count", t, counted(angle, wheel), "1")
    reading, sigma = readings_of_counts(count, wheel, "angle", speed=Channel("w", t, rate, "rad/s"))
    assert (reading.name, reading.unit, sigma.name) == ("angle", "rad", "angle.sigma") and len(reading) == 24
    error = reading.values - np.interp(reading.t, t, angle)
    assert np.abs(error).max() < 0.5 * np.pi * DT + 1e-4  # at most half of what it turns in a sample
    assert (np.abs(error) <= np.sqrt(3.0) * 1.01 * sigma.values + 1e-4).all()  # the ends of a uniform error


def test_without_a_speed_it_is_that_from_edge_to_edge():
    t = DT * np.arange(3000)
    angle = 0.4 * t**2 + 0.03
    count = Channel("count", t, counted(angle), "1")
    reading, sigma = readings_of_counts(count, PulseWheel(), "angle")
    edges = np.flatnonzero(np.diff(count.values)) + 1
    assert np.array_equal(reading.t, t[edges[1:]])  # the first has no speed
    z = (reading.values - angle[edges[1:]]) / sigma.values
    assert np.abs(z).max() < 2.5 and 0.6 < np.sqrt(np.mean(z**2)) < 1.3


def test_an_angle_that_was_rounded_is_a_count():
    t = DT * np.arange(1500)
    angle = 0.3 + 4.0 * t
    rounded = Channel("angle", t, np.round(angle / P) * P, "rad")
    count, wheel = count_of_rounded(rounded, SIGNED)
    reading, sigma = readings_of_counts(count, wheel, "angle", speed=Channel("w", t, np.full(len(t), 4.0), "rad/s"))
    error = reading.values - (0.3 + 4.0 * reading.t)
    assert len(reading) > 70 and np.abs(error).max() <= 2.0 * DT + 1e-12 and np.abs(error).max() < 2.0 * sigma.values[0]
    with pytest.raises(DataError, match=r"'angle': it is no rounded angle(.|\n)*whole steps of 0.15708 rad"):
        count_of_rounded(Channel("angle", t, angle, "rad"), SIGNED)


def test_readings_of_timed_edges():
    t = np.array([0.1, 0.13, 0.15])
    wheel = PulseWheel(holes=40, phase=0.01, hole_sigma=3e-4, clock_sigma=1e-4)
    angle, sigma = readings_of_edges(t, wheel, "angle", first=7)
    assert angle.values == pytest.approx(P * np.array([7.0, 8.0, 9.0]) + 0.01)
    assert sigma.values == pytest.approx(np.hypot(3e-4, 1e-4 * P / np.array([0.03, 0.03, 0.02])))
    assert edges_of_intervals(0.1, [0.03, 0.02]) == pytest.approx(t)


def test_a_false_count_is_no_edge():
    """Of an unsigned count the false ones are not counted on: the angle afterwards is right."""
    t = DT * np.arange(2000)
    angle = np.where(t < 1.0, 0.2, 0.2 + 3.0 * (t - 1.0))
    wheel = PulseWheel(signed=False)
    n = counted(angle, wheel)
    false = np.zeros(len(t), dtype=bool)
    false[100:130:3] = True
    count = Channel("count", t, n + np.cumsum(false), "1")
    speed = Channel("w", t, np.where(t < 1.0, 0.0, 3.0), "rad/s")
    reading, sigma, available = readings_of_counts(count, wheel, "angle", speed=speed, false=false)
    assert available.name == "angle.available" and available.values[:10].tolist() == [0.0] * 10
    assert (available.values[10:] == 1.0).all() and (sigma.values > 0.0).all()
    error = (reading.values - np.interp(reading.t, t, angle))[10:]
    offset = np.round(error / P)  # an unsigned count starts at zero, whatever the angle: a whole number of holes off
    assert len(set(offset.tolist())) == 1 and np.abs(error - offset * P).max() < 3.0 * DT


def test_what_is_no_count_and_no_wheel_is_refused():
    t = np.arange(4.0)
    with pytest.raises(DataError, match=r"'n': it is no count(.|\n)*not whole numbers"):
        readings_of_counts(Channel("n", t, np.array([0.0, 0.5, 1.0, 2.0]), "1"), PulseWheel(), "a")
    with pytest.raises(DataError, match=r"'n': it is no count(.|\n)*found rad"):
        readings_of_counts(Channel("n", t, t, "rad"), PulseWheel(), "a")
    with pytest.raises(DataError, match=r"(?s)it has no holes.*its hole_sigma is zero"):
        PulseWheel(holes=0, hole_sigma=0.0)
    with pytest.raises(DataError, match="it is no rate of a wheel"):
        readings_of_counts(Channel("n", t, t, "1"), PulseWheel(), "a", speed=Channel("v", t, t, "m/s"))
    with pytest.raises(DataError, match="times of edges do not increase"):
        readings_of_edges([0.1, 0.1], PulseWheel(), "a")
    with pytest.raises(DataError, match="an interval between edges is not usable"):
        edges_of_intervals(0.0, [0.1, -0.1])
    empty = readings_of_counts(Channel("n", t, np.zeros(4), "1"), PulseWheel(), "a")
    assert [len(c) for c in empty] == [0, 0]


T = np.arange(0.0, 12.0, 0.002)
WHEELS = ("fl", "fr", "rl", "rr")


def rolling(speeds=(1.0, 1.05, 0.97, 1.02)):
    """Stands for 4 s, moves off, stops at 10 s; wheels of slightly different speed."""
    pace = np.interp(T, [0.0, 4.0, 7.0, 10.0, 12.0], [0.0, 0.0, 6.0, 0.0, 0.0])
    angle = np.cumsum(pace) * 0.002
    return {w: np.floor((0.3 + k * angle) / P) for w, k in zip(WHEELS, speeds)}, pace


def log_of(counts, **more):
    channels = {w: Channel(w, T, n, "1") for w, n in counts.items()}
    return Experiment(channels | {k: Channel(k, T, v, "m/s") for k, v in more.items()}, "drive")


def test_rolling_wheels_count_no_false_edges():
    counts, _ = rolling()
    found = find_false_counts(log_of(counts), WHEELS)
    assert not any(mask.any() for mask in found.false.values()) and len(found.findings) == 0
    crawling, _ = rolling((0.02, 0.021, 0.019, 0.02))
    assert len(find_false_counts(log_of(crawling), WHEELS).findings) == 0


@pytest.mark.parametrize(("toggles", "words"), [(True, "it goes up and down"), (False, "it goes on")])
def test_a_vibrating_edge_is_found_and_named(toggles, words):
    counts, pace = rolling()
    beat = (np.arange(len(T)) // 20) % 2  # every 40 ms
    shaking = (T > 1.0) & (T < 3.0)
    added = np.where(shaking, beat, 0.0)
    if not toggles:
        added = np.cumsum(np.abs(np.diff(added, prepend=0.0)))
    true = counts["rl"].copy()
    counts["rl"] = true + added
    for still, witness in (({}, "'fl', 'fr', 'rr'"), ({"speed": 0.1}, "'speed'")):
        found = find_false_counts(log_of(counts, speed=0.34 * pace), WHEELS, still=still)
        changed = np.flatnonzero(np.diff(added)) + 1
        assert np.flatnonzero(found.false["rl"]).tolist() == changed.tolist()
        assert not any(found.false[w].any() for w in WHEELS if w != "rl")
        (finding,) = found.findings
        assert (finding.channel, finding.kind, finding.severity) == ("rl", "false count", "warning")
        assert finding.t_start == pytest.approx(1.0, abs=0.05) and finding.t_end == pytest.approx(3.0, abs=0.05)
        for word in (words, witness, f"it counts {len(changed)} edges at standstill"):
            assert word in finding.message


def test_all_wheels_may_shake_where_a_speed_tells():
    counts, pace = rolling()
    shaken = {
        w: n + np.where(T < 3.0, (np.arange(len(T)) // (15 + k)) % 2, 0.0) for k, (w, n) in enumerate(counts.items())
    }
    found = find_false_counts(log_of(shaken, speed=0.34 * pace), WHEELS, still={"speed": 0.1})
    assert {f.channel for f in found.findings} == set(WHEELS)
    assert all((T[mask] < 3.001).all() for mask in found.false.values())  # the last goes back where shaking ends


def test_without_a_witness_it_is_refused():
    counts, _ = rolling()
    with pytest.raises(DataError, match="nothing tells whether the machine stands"):
        find_false_counts(log_of(counts), ("fl",))
    with pytest.raises(DataError, match="there is no channel 'sped'"):
        find_false_counts(log_of(counts), WHEELS, still={"sped": 0.1})
