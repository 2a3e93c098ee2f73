"""Tables of readings, and those of a log: availability flags mute readings, and the covariance goes on as if without the sensor."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.measurements import Measurements, Status, frozen, measurements_of, muted
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.spatial.inertia import from_centre

T = np.arange(5) / 10


def test_booleans_say_available_and_values_that_are_not_finite_are_flagged():
    values = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.inf], [5.0, 6.0], [np.nan, 7.0]])
    available = np.ones((5, 2), dtype=bool)
    available[3, 1] = available[4, 0] = False
    m = Measurements(T, values, ("a", "b"), available)
    assert m.flags.tolist() == [[0, 0], [2, 0], [0, 2], [0, 1], [1, 0]]
    assert m.inputs.shape == (5, 0) and len(m) == 5


def test_one_column_may_be_a_line():
    m = Measurements(T, np.arange(5.0), ("a",), np.ones(5, dtype=bool), np.zeros(5), T + 1)
    assert m.values.shape == m.flags.shape == m.arrival.shape == m.inputs.shape == (5, 1)


def test_columns_are_selected_by_name():
    m = Measurements(T, np.arange(10.0).reshape(5, 2), ("a", "b"), arrival=np.tile(T[:, None], 2))
    s = m.select(["b", "a"])
    assert s.names == ("b", "a") and np.array_equal(s.values, m.values[:, ::-1]) and s.arrival.shape == (5, 2)
    with pytest.raises(DataError, match=r"there is no output 'gyro'(.|\n)*Known: a, b"):
        m.select(["gyro"])


def test_flagging_leaves_older_words_alone():
    m = Measurements(T, np.array([1.0, np.nan, 3.0, 4.0, 5.0]), ("a",))
    f = m.flagged(np.ones((5, 1), dtype=bool), Status.FROZEN)
    assert f.flags[:, 0].tolist() == [3, 2, 3, 3, 3] and not m.flags[0, 0]


def test_channels_on_clocks_of_their_own_share_the_union_of_their_stamps():
    e = Experiment(
        {
            "fast": Channel("fast", np.arange(5) * 0.1, np.arange(5.0), "rad"),
            "slow": Channel("slow", np.array([0.15, 0.3]), np.array([7.0, np.nan]), "m"),
        },
        "log",
    )
    m = Measurements.from_experiment(e, ["slow", "fast"])
    assert m.t == pytest.approx([0.0, 0.1, 0.15, 0.2, 0.3, 0.4])  # 3 · 0.1 is not 0.3, and yet one stamp
    used = m.flags == Status.USED
    assert used[:, 1].sum() == 5 and used[:, 0].sum() == 1 and (m.flags == Status.NOT_FINITE).sum() == 1
    assert m.values[used[:, 0], 0].tolist() == [7.0]
    back = Experiment({"a": Channel("a", np.array([0.0, 2.0, 1.0]), np.zeros(3), "m")}, "log")
    with pytest.raises(DataError, match=r"log, channel 'a': the clock stands still or runs backwards"):
        Measurements.from_experiment(back, ["a"])


def test_frozen_looks_backwards_only():
    v = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 3.0])
    assert frozen(v, 1).tolist() == [False, False, True, True, False, True]
    assert frozen(v, 2).tolist() == [False, False, False, True, False, False]
    assert frozen(np.column_stack([v, np.zeros(6)]), 2).sum(axis=0).tolist() == [1, 4]
    assert not frozen(np.full(6, np.nan), 1).any()
    with pytest.raises(DataError, match="the number of repeats"):
        frozen(v, 0)


def test_a_slow_sensor_that_hangs_is_found_between_the_readings_of_others():
    """On the union of all clocks a slow sensor has gaps, and they are no change of its reading."""
    slow = np.full(9, np.nan)
    slow[::2] = [1.0, 2.0, 2.0, 2.0, np.inf]
    assert np.flatnonzero(frozen(slow, 2)).tolist() == [6]
    assert np.flatnonzero(frozen(np.column_stack([np.arange(9.0), slow]), 1)[:, 1]).tolist() == [4, 6]


def test_bad_tables_are_refused_with_all_their_faults():
    with pytest.raises(DataError, match=r"measurements.values: wrong shape(.|\n)*\(5, 2\), found \(5, 3\)"):
        Measurements(T, np.zeros((5, 3)), ("a", "b"))
    with pytest.raises(DataError, match=r"2 faults(.|\n)*flags: wrong shape(.|\n)*inputs: wrong shape"):
        Measurements(T, np.zeros((5, 2)), ("a", "b"), np.ones((4, 2), dtype=bool), np.zeros((3, 1)))
    with pytest.raises(DataError, match="the clock is not a line of times"):
        Measurements(np.zeros((2, 2)), np.zeros((2, 1)), ("a",))
    with pytest.raises(DataError, match="times that are not finite"):
        Measurements(np.array([0.0, np.nan]), np.zeros((2, 1)), ("a",))
    with pytest.raises(DataError, match="two outputs have one name"):
        Measurements(T, np.zeros((5, 2)), ("a", "a"))
    with pytest.raises(DataError, match="the inputs are not finite at sample 2"):
        Measurements(T, np.zeros((5, 1)), ("a",), inputs=np.array([0, 0, np.nan, 0, 0]))
    with pytest.raises(DataError, match=r"a reading of 'b' arrives before it is taken(.|\n)*at sample 1"):
        Measurements(T, np.zeros((5, 2)), ("a", "b"), arrival=np.column_stack([T, T - 0.1 * (T == 0.1)]))


def test_deviations_of_single_readings():
    sigma = np.column_stack([np.full(5, np.nan), np.linspace(0.1, 0.5, 5)])
    m = Measurements(T, np.zeros((5, 2)), ("a", "b"), sigma=sigma, arrival=np.tile(T[:, None], 2))
    assert m.select(["b"]).sigma.tolist() == sigma[:, 1:].tolist()
    begun = m.first(2)
    assert len(begun) == 2 and begun.sigma.shape == begun.arrival.shape == (2, 2)
    assert m.flagged(np.ones((5, 2), dtype=bool), Status.LATE).sigma is m.sigma
    with pytest.raises(DataError, match=r"sigma: a deviation of 'b' is not usable(.|\n)*found 0 at sample 2"):
        Measurements(T, np.zeros((5, 2)), ("a", "b"), sigma=np.where(np.arange(5)[:, None] == 2, [np.nan, 0.0], sigma))
    with pytest.raises(DataError, match=r"measurements.sigma: wrong shape"):
        Measurements(T, np.zeros((5, 2)), ("a", "b"), sigma=sigma[:3])


def test_deviations_from_a_channel_beside_the_readings():
    t = np.array([0.0, 0.2])
    log = Experiment(
        {
            "a": Channel("a", T, np.zeros(5), "rad"),
            "b": Channel("b", t, np.ones(2), "rad"),
            "b.sigma": Channel("b.sigma", t, np.array([0.3, 0.4]), "rad"),
        },
        "log",
    )
    m = Measurements.from_experiment(log, ("a", "b"))
    assert np.isnan(m.sigma[:, 0]).all() and m.sigma[np.isfinite(m.sigma)].tolist() == [0.3, 0.4]
    assert Measurements.from_experiment(log, ("a",)).sigma is None
    moved = log.replacing(Channel("b.sigma", t + 0.01, np.array([0.3, 0.4]), "rad"))
    with pytest.raises(DataError, match=r"channel 'b.sigma': it has another clock"):
        Measurements.from_experiment(moved, ("b",))


NOISE = ProcessNoise(force=0.5, start=0.02, start_rate=0.2)
CLOCK = np.arange(60) * 0.01


@cache
def turntable() -> Machine:
    """A balanced table with an encoder and a receiver on its rim, 30 ms late."""
    return Machine.of_bodies(
        [Body("table")],
        name="turntable",
        inertia={"table": from_centre(5.0, [0.0, 0.0, 0.0], np.diag([1.0, 1.0, 2.0]))},
        sensors=[
            Sensor("angle", "coordinate", "table", 0.01),
            Sensor("rim", "velocity", Marker("table", (0.5, 0.0, 0.0)), 0.05, axes="xy", delay=0.03),
        ],
    )


def log(**flags: tuple[np.ndarray, np.ndarray]) -> Experiment:
    rng = np.random.default_rng(0)
    q = 0.3 + 2.0 * CLOCK
    values = {
        "angle": (q + 0.01 * rng.standard_normal(60), "rad"),
        "rim.x": (-np.sin(q - 0.06) + 0.05 * rng.standard_normal(60), "m/s"),
        "rim.y": (np.cos(q - 0.06) + 0.05 * rng.standard_normal(60), "m/s"),
    }
    channels = {n: Channel(n, CLOCK, v, u) for n, (v, u) in values.items()}
    return Experiment(channels | {n: Channel(n, *f, "1") for n, f in flags.items()}, "log")


def test_flags_act_from_their_sample_to_the_next() -> None:
    given = log(**{"rim.available": (np.array([0.1, 0.2, 0.405]), np.array([1.0, 0.0, 1.0]))})
    off = muted(given, "rim.x", "rim")
    assert np.array_equal(off, (CLOCK < 0.1 - 1e-9) | ((CLOCK > 0.2 - 1e-9) & (CLOCK < 0.405)))
    assert not muted(given, "angle", "angle").any()
    both = log(**{"rim.available": (CLOCK[:1], np.ones(1)), "rim.y.available": (CLOCK[:1], np.zeros(1))})
    assert muted(both, "rim.y", "rim").all() and not muted(both, "rim.x", "rim").any()


def test_muted_readings_are_missing_at_the_time_they_speak_of() -> None:
    system, *_ = machine_system(turntable(), ObserveSettings(model_error="off", process_noise=NOISE))
    given = log(**{"rim.available": (np.array([0.0, 0.2, 0.4]), np.array([1.0, 0.0, 1.0]))})
    table, plain = measurements_of(system, given), measurements_of(system, log())
    assert np.array_equal(table.t, plain.t)  # the rows stay
    changed = np.argwhere(table.flags != plain.flags)
    assert set(changed[:, 1]) == {1, 2} and (table.flags[tuple(changed.T)] == Status.MISSING).all()
    stamps = table.t[changed[:, 0]]
    assert stamps.min() == pytest.approx(0.2 - 0.03) and stamps.max() == pytest.approx(0.39 - 0.03)


def test_the_covariance_goes_on_while_a_sensor_is_muted() -> None:
    """As if that sensor had no readings then, with the variance F P Fᵀ + Q after each step and nothing taken off."""
    flag = (np.array([0.0, 0.2, 0.4]), np.array([1.0, 0.0, 1.0]))
    flags = {"rim.available": flag, "angle.available": flag}
    found = observe(
        turntable(),
        log(**flags),
        settings=ObserveSettings(model_error="off", process_noise=NOISE, start={"table": 0.3}, rates={"table": 2.0}),
    )
    e = found.estimates
    silent = np.flatnonzero((found.t > 0.2 + 1e-6) & (found.t < 0.36))
    assert (e.dof[silent] == 0).all() and (e.status[silent] == Status.MISSING).all()
    assert np.array_equal(e.P[silent], e.P_predicted[silent])
    for k in silent[1:]:
        grown = e.F[k] @ e.P[k - 1] @ e.F[k].T
        assert (np.linalg.eigvalsh(e.P[k] - grown) > -1e-15).all() and np.trace(e.P[k] - grown) > 0.0
    sigma = found.sigma[:, 0]
    assert sigma[silent[-1]] > 2.0 * sigma[silent[0] - 1] and sigma[-1] < 0.7 * sigma[silent[-1]]
    without = dict(log().channels)
    for name in ("angle", "rim.x", "rim.y"):
        c = without[name]
        kept = (c.t < 0.2 - 1e-9) | (c.t > 0.4 - 1e-9)
        without[name] = Channel(name, c.t[kept], c.values[kept], c.unit)
    gone = observe(
        turntable(),
        Experiment(without, "gone"),
        settings=ObserveSettings(model_error="off", process_noise=NOISE, start={"table": 0.3}, rates={"table": 2.0}),
    )
    assert gone.reduced[-1] == pytest.approx(found.reduced[-1], abs=1e-9)
    assert gone.sigma[-1] == pytest.approx(found.sigma[-1], rel=1e-6)  # one long step in place of many


def test_what_is_no_flag_is_refused() -> None:
    given = log(**{"rim.available": (CLOCK, np.linspace(0.0, 12.0, 60))})  # a number of satellites
    with pytest.raises(DataError, match=r"log, channel 'rim.available': it is no flag(.|\n)*0 where the sensor is not"):
        muted(given, "rim.x", "rim")
