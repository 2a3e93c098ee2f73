"""Availability flags mute readings; the covariance goes on as if the filter ran without the sensor."""

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
from veridyn.observe.measurements import Status
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.readings import measurements_of, muted
from veridyn.observe.settings import ObserveSettings
from veridyn.spatial.inertia import from_centre

NOISE = ProcessNoise(force=0.5, start=0.02, start_rate=0.2)
T = np.arange(60) * 0.01


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
    q = 0.3 + 2.0 * T
    values = {
        "angle": (q + 0.01 * rng.standard_normal(60), "rad"),
        "rim.x": (-np.sin(q - 0.06) + 0.05 * rng.standard_normal(60), "m/s"),
        "rim.y": (np.cos(q - 0.06) + 0.05 * rng.standard_normal(60), "m/s"),
    }
    channels = {n: Channel(n, T, v, u) for n, (v, u) in values.items()}
    return Experiment(channels | {n: Channel(n, *f, "1") for n, f in flags.items()}, "log")


def test_flags_act_from_their_sample_to_the_next() -> None:
    given = log(**{"rim.available": (np.array([0.1, 0.2, 0.405]), np.array([1.0, 0.0, 1.0]))})
    off = muted(given, "rim.x", "rim")
    assert np.array_equal(off, (T < 0.1 - 1e-9) | ((T > 0.2 - 1e-9) & (T < 0.405)))
    assert not muted(given, "angle", "angle").any()
    both = log(**{"rim.available": (T[:1], np.ones(1)), "rim.y.available": (T[:1], np.zeros(1))})
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
    given = log(**{"rim.available": (T, np.linspace(0.0, 12.0, 60))})  # a number of satellites
    with pytest.raises(DataError, match=r"log, channel 'rim.available': it is no flag(.|\n)*0 where the sensor is not"):
        muted(given, "rim.x", "rim")
