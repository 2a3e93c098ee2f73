"""The door and the stream: same numbers, sensors that fail, delays, settings that are refused, noise chosen by likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError, ModelError
from veridyn.machines.spatial import CRANE, crane, walked
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.instrument import Instrument
from veridyn.model.natural import Marker
from veridyn.observe.measurements import Status
from veridyn.observe.mechanism import Unsure
from veridyn.observe.observer import Observer, Settings, measurements_of, observe, observe_with, tuned
from veridyn.observe.virtual import Virtual

SHORT = replace(CRANE, samples=150)
UNSURE = SHORT.unsure


@pytest.fixture(scope="module")
def case() -> tuple[NaturalSystem, object, Experiment]:
    machine = system_of(crane())
    return machine, *walked(machine, SHORT, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["error_ekf_force", "ekf", "ukf", "smoother"])
def test_every_filter_follows_the_crane(case, name: str) -> None:
    machine, truth, log = case
    found = observe_with(SHORT.settings(name), machine, log)
    off = (found.q - truth.q)[20:]
    assert np.sqrt((off[:, machine.mechanism.index("x")] ** 2).mean()) < 2e-3
    assert np.abs(found.constraint_errors()).max() < 1e-9
    assert name in found.summary() and len(found) == len(truth)


def test_the_public_verb(case) -> None:
    machine, _, log = case
    found = vd.observe(
        machine.mechanism, log, filter="ekf", unsure=UNSURE, unknown=("motor",), independents=("x", "swing")
    )
    again = observe_with(SHORT.settings("ekf"), machine, log)
    assert np.allclose(found.reduced, again.reduced, atol=1e-9)
    value, sigma = found.coordinate("L.x")
    assert value.shape == sigma.shape == (150,) and (sigma > 0.0).all()


def test_a_stream_gives_the_numbers_of_a_log(case) -> None:
    machine, _, log = case
    whole = observe_with(SHORT.settings("ekf"), machine, log)
    observer = Observer(machine, "ekf", unsure=UNSURE, unknown=("motor",), independents=("x", "swing"))
    for k, t in enumerate(whole.t.tolist()):
        step = observer.step(t, {name: float(log[name].values[k]) for name in ("travel", "tilt")})
        assert np.allclose([*step.values.values()], whole.reduced[k], atol=1e-12)
        assert np.allclose([*step.sigma.values()], whole.sigma[k], atol=1e-12)
        assert step.said == ()
    y, sigma = observer.virtual(Virtual("load", "velocity", "L"))
    reading = whole.virtual(Virtual("load", "velocity", "L"))["load"]
    assert y == pytest.approx(reading.values[-1]) and sigma == pytest.approx(reading.sigma[-1])
    low, high = reading.band()
    assert (low < high).all() and reading.unit == "m/s"


def _with(log: Experiment, name: str, values: np.ndarray) -> Experiment:
    return log.replacing(replace(log[name], values=values))


@pytest.mark.parametrize("fault", ["dies", "freezes", "jumps", "nan"])
def test_a_sensor_that_fails(case, fault: str) -> None:
    """The observer goes on, says so, and its band grows while the sensor is away; a jump back is let in again."""
    machine, truth, log = case
    y = log["travel"].values.copy()
    bad = slice(60, 110)
    y[bad] = {"dies": np.nan, "freezes": y[60], "jumps": y[bad] + 5.0, "nan": np.nan}[fault]
    broken = _with(log, "travel", y)
    if fault == "dies":
        kept = np.r_[0:60, 110:150]
        broken = log.replacing(Channel("travel", log["travel"].t[kept], log["travel"].values[kept], "m"))
    settings = replace(SHORT.settings("ekf"), gate=0.9999, frozen_after=3)
    found = observe_with(settings, machine, broken)
    status = {"dies": Status.MISSING, "freezes": Status.FROZEN, "jumps": Status.OUTLIER, "nan": Status.NOT_FINITE}[
        fault
    ]
    told = [e for e in found.episodes() if e.output == "travel"]
    assert [e.status for e in told] == [status] and told[0].count >= 45
    sigma = found.sigma[:, 0]
    assert (np.diff(sigma[64:110]) > 0.0).all() and sigma[109] > 5.0 * sigma[59]
    assert sigma[130] < 2.0 * sigma[59]  # it is back
    off = (found.q - truth.q)[:, machine.mechanism.index("x")]
    assert (np.abs(off[20:]) < 5.0 * sigma[20:]).all()


def test_a_running_program_is_told_when_a_sensor_fails_and_when_it_is_back(case) -> None:
    machine, _, log = case
    observer = Observer(machine, "ekf", unsure=UNSURE, unknown=("motor",), gate=0.9999, frozen_after=3)
    said: list[str] = []
    for k, t in enumerate(log["travel"].t.tolist()):
        travel = np.nan if 40 <= k < 60 else float(log["travel"].values[k])
        said += observer.step(t, {"travel": travel, "tilt": float(log["tilt"].values[k])}).said
    assert said == ["0.8 s: 'travel' is not used (not finite); its band grows.", "1.2 s: 'travel' is used again."]


def test_a_late_sensor_is_put_where_it_belongs(case) -> None:
    """A reading stamped t of a sensor with a delay speaks of t − delay: the log, and the stream that goes back in time for it."""
    machine, _, log = case
    delay = 0.04
    late = replace(
        machine.mechanism,
        sensors=tuple(replace(i, delay=delay if i.name == "tilt" else 0.0) for i in machine.mechanism.sensors),
    )
    tilt = log["tilt"]
    shifted = log.replacing(Channel("tilt", tilt.t + delay, tilt.values, tilt.unit))
    plain = observe_with(SHORT.settings("ekf"), machine, log)
    found = observe_with(SHORT.settings("ekf"), late, shifted)
    assert np.allclose(found.reduced, plain.reduced, atol=1e-9)
    observer = Observer(late, "ekf", unsure=UNSURE, unknown=("motor",), independents=("x", "swing"))
    travel = log["travel"]
    for k, t in enumerate(travel.t.tolist()):
        readings = {"travel": float(travel.values[k])} | ({"tilt": float(tilt.values[k - 2])} if k >= 2 else {})
        values = observer.step(t, readings).values
        if k == len(travel) - 1:
            assert np.allclose([*values.values()], plain.reduced[-1], atol=0.05)


def test_sensors_on_clocks_of_their_own(case) -> None:
    machine, truth, log = case
    slow = log.replacing(Channel("travel", log["travel"].t[::7], log["travel"].values[::7], "m"))
    found = observe_with(SHORT.settings("ekf"), machine, slow)
    assert len(found) == len(truth) and not found.episodes()
    assert found.estimates.counts()["travel"]["used"] == len(log["travel"].t[::7])


def test_noise_is_chosen_by_likelihood_where_none_is_given(case) -> None:
    machine, _, log = case
    settings = replace(SHORT.settings("ekf"), unsure=replace(UNSURE, force=0.0))
    system = settings.system(machine, UNSURE)[0]
    unsure, tuning = tuned(settings, machine, [measurements_of(system, log)], samples=150)
    assert isinstance(unsure.force, dict) and tuning.readings == 300
    assert (
        400.0 / 20.0 < unsure.force["motor"] < 400.0 * 20.0
    )  # 150 samples tell a density of 400 to an order of magnitude


def test_an_input_is_a_channel_that_is_held(case) -> None:
    machine, _, log = case
    torque = Channel("motor", np.array([0.0, 1.0]), np.array([0.0, 500.0]), "N")
    settings = replace(SHORT.settings("ekf"), unknown=("swing",), inputs=("motor",))
    system = settings.system(machine, replace(UNSURE, force=1.0))[0]
    readings = measurements_of(system, log.replacing(torque))
    assert readings.inputs[49, 0] == 0.0 and readings.inputs[50, 0] == 500.0
    with pytest.raises(DataError, match="there is no channel 'motor'"):
        measurements_of(system, log)
    with pytest.raises(DataError, match="the input starts after the first reading"):
        measurements_of(system, log.replacing(Channel("motor", np.array([0.5]), np.array([1.0]), "N")))


def test_observability_names_what_is_not_seen_and_the_sensor_that_helps(case) -> None:
    machine, _, log = case
    blind = replace(machine.mechanism, sensors=machine.mechanism.sensors[1:])
    found = observe(blind, log, "ekf", unsure=UNSURE, unknown=("motor",))
    extra = [
        Instrument("travel", "coordinate", "x", 0.002),
        Instrument("imu", "accelerometer", Marker("rope", (0.0, 0.0)), 0.1),
    ]
    seen = found.observability(part=slice(0, 100), extra=extra)
    assert not seen.observable and any("'x'" in d.text for d in seen.unseen)
    assert "travel" in seen.enough and "no reading changes with" in seen.summary()
    whole = observe_with(SHORT.settings("ekf"), machine, log)
    assert whole.observability(part=slice(0, 100)).observable


def test_bad_settings_are_named(case) -> None:
    machine, _, log = case
    with pytest.raises(ModelError, match=r"there is no filter 'kalman'(.|\n)*error_ekf"):
        Settings("kalman")
    with pytest.raises(ModelError, match="a smoother needs the whole log"):
        Observer(machine, "smoother", unsure=UNSURE)
    with pytest.raises(
        DataError, match=r"channel 'travel': its unit is not that of the sensor(.|\n)*Expected m, found mm"
    ):
        observe(machine, log.replacing(replace(log["travel"], unit="mm")), "ekf", unsure=Unsure(force=1.0))
    observer = Observer(machine, "ekf", unsure=UNSURE)
    with pytest.raises(DataError, match="there is no output 'trvel'"):
        observer.step(0.0, {"trvel": 1.0})
    with pytest.raises(DataError, match="wrong shape"):
        observer.step(0.0, [1.0])
