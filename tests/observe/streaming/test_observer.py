"""The door and the stream: same numbers, sensors that fail, delays, settings that are refused, noise chosen by likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers.natural_mechanisms import fourbar, turning_fourbar
from strangers.walks import CRANE, SPATIAL, walked
from veridyn.errors import DataError, ModelError, ModelWarning
from veridyn.machines import crane, spatial
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF, FILTERS, Smoother
from veridyn.observe.measurements import Status, measurements_of
from veridyn.observe.noise_choice import tuned
from veridyn.observe.observation import Virtual
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer

SHORT = replace(CRANE, samples=150)
PROCESS_NOISE = SHORT.process_noise


@pytest.fixture(scope="module")
def case() -> tuple[Machine, object, Experiment]:
    machine = crane()
    return machine, *walked(machine, SHORT, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["linear", "error_ekf_force", "ekf", "ukf", "smoother"])
def test_every_filter_follows_the_crane(case, name: str) -> None:
    machine, truth, log = case
    found = observe_with(SHORT.setup(name), machine, log)
    off = (found.q - truth.q)[20:]
    assert np.sqrt((off[:, truth.coordinates.index("x")] ** 2).mean()) < 2e-3
    assert np.abs(found.constraint_errors()).max() < 1e-9
    assert name in found.summary() and len(found) == len(truth)


def test_the_public_verb(case) -> None:
    machine, _, log = case
    found = vd.observe(
        machine,
        log,
        "ekf",
        vd.ObserveSettings(
            model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",), independents=("x", "swing")
        ),
    )
    again = observe_with(SHORT.setup("ekf"), machine, log)
    assert np.allclose(found.reduced, again.reduced, atol=1e-9)
    value, sigma = found.coordinate("L.x")
    assert value.shape == sigma.shape == (150,) and (sigma > 0.0).all()


def test_a_stream_gives_the_numbers_of_a_log(case) -> None:
    machine, _, log = case
    whole = observe_with(SHORT.setup("ekf"), machine, log)
    observer = Observer(
        machine,
        "ekf",
        ObserveSettings(
            model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",), independents=("x", "swing")
        ),
    )
    for k, t in enumerate(whole.t.tolist()):
        step = observer.step(t, {name: float(log[name].values[k]) for name in ("travel", "tilt")})
        assert np.allclose([*step.values.values()], whole.reduced[k], atol=1e-12)
        assert np.allclose([*step.sigma.values()], whole.sigma[k], atol=1e-12)
        assert step.messages == ()
        e = whole.estimates
        read = np.array([step.innovations[name] for name in e.outputs])
        assert np.allclose(read[:, 0], e.innovations[k], atol=1e-12) and (read[:, 1] > 0.0).all()
        assert (step.nis, step.dof) == (pytest.approx(e.nis[k]), e.dof[k])
    y, sigma = observer.virtual(Virtual("load", "velocity", "L"))
    reading = whole.virtual(Virtual("load", "velocity", "L"))["load"]
    assert y == pytest.approx(reading.values[-1]) and sigma == pytest.approx(reading.sigma[-1])
    low, high = reading.band()
    assert (low < high).all() and reading.units == ("m/s", "m/s")


def _with(log: Experiment, name: str, values: np.ndarray) -> Experiment:
    return log.replacing(replace(log[name], values=values))


@pytest.mark.parametrize("filter", ["linear", "ekf"])
@pytest.mark.parametrize("fault", ["dies", "freezes", "jumps", "nan"])
def test_a_sensor_that_fails(case, fault: str, filter: str) -> None:
    """The observer goes on, says so, and its band grows while the sensor is away; a jump back is let in again."""
    machine, truth, log = case
    y = log["travel"].values.copy()
    bad = slice(60, 110)
    y[bad] = {"dies": np.nan, "freezes": y[60], "jumps": y[bad] + 5.0, "nan": np.nan}[fault]
    broken = _with(log, "travel", y)
    if fault == "dies":
        kept = np.r_[0:60, 110:150]
        broken = log.replacing(Channel("travel", log["travel"].t[kept], log["travel"].values[kept], "m"))
    settings = SHORT.setup(FILTERS[filter](gate=0.9999)).replaced(frozen_after=3)
    found = observe_with(settings, machine, broken)
    status = {"dies": Status.MISSING, "freezes": Status.FROZEN, "jumps": Status.OUTLIER, "nan": Status.NOT_FINITE}[
        fault
    ]
    told = [e for e in found.episodes() if e.output == "travel"]
    assert [e.status for e in told] == [status] and told[0].count >= 45
    sigma = found.sigma[:, 0]
    assert (np.diff(sigma[64:110]) > 0.0).all() and sigma[109] > 5.0 * sigma[59]
    assert sigma[130] < 2.0 * sigma[59]  # it is back
    off = (found.q - truth.q)[:, truth.coordinates.index("x")]
    assert (np.abs(off[20:]) < 5.0 * sigma[20:]).all()


IN_SPACE = tuple(kind for kind in FILTERS if kind != "linear")  # which is for machines that move little: the crane
BAD = slice(30, 55)
BROKEN = {"dies": Status.MISSING, "freezes": Status.FROZEN, "jumps": Status.OUTLIER, "nan": Status.NOT_FINITE}
LESS = replace(SPATIAL, samples=70)


def _gated(filter: str) -> ObserverSetup:
    """The errorEKF estimates no forces: it trusts its accelerations to 1 (rad/s²)²/Hz instead."""
    given = LESS.setup(FILTERS[filter](gate=0.9999)).replaced(frozen_after=3)
    return (
        given.replaced(process_noise=replace(SPATIAL.process_noise, acceleration=1.0))
        if filter == "error_ekf"
        else given
    )


@pytest.fixture(scope="module")
def arms() -> tuple[Machine, object, Experiment, dict[str, object]]:
    machine = spatial()
    motion, log = walked(machine, LESS, np.random.default_rng(3))
    return machine, motion, log, {kind: observe_with(_gated(kind), machine, log) for kind in IN_SPACE}


def _broken(log: Experiment, name: str, fault: str) -> Experiment:
    channel = log[name]
    y = channel.values.copy()
    if fault == "dies":
        there = np.delete(np.arange(len(y)), BAD)
        return log.replacing(replace(channel, t=channel.t[there], values=y[there]))
    y[BAD] = {"freezes": y[BAD.start], "jumps": y[BAD] + 5.0, "nan": np.nan}[fault]
    return log.replacing(replace(channel, values=y))


@pytest.mark.parametrize(
    ("filter", "fault"),
    [
        pytest.param(kind, fault, marks=pytest.mark.slow if kind == "ukf" and fault != "dies" else ())
        for kind in IN_SPACE
        for fault in BROKEN
    ],
)
def test_every_filter_outlives_a_failing_sensor_in_space(arms, filter: str, fault: str) -> None:
    """It goes on, names the sensor, and the coordinate it measures has a wider band than in the healthy run; then it is back."""
    machine, truth, log, healthy = arms
    found = observe_with(_gated(filter), machine, _broken(log, "shoulder_encoder", fault))
    told = [e for e in found.episodes() if e.output == "shoulder_encoder"]
    assert [e.status for e in told] == [BROKEN[fault]] and told[0].count >= 22
    wider = found.sigma[:, 0] / healthy[filter].sigma[:, 0]
    assert (wider[BAD][4:] > 1.0).all() and wider[BAD].max() > 1.05 and wider[-1] < wider[BAD].max()
    assert np.isfinite(found.reduced).all() and np.abs(found.constraint_errors()).max() < 1e-9
    if filter != "error_ekf":  # which the unknown forces make inconsistent here
        off = (found.q - truth.q)[:, truth.coordinates.index("shoulder")]
        assert (np.abs(off[10:]) < 4.0 * found.sigma[10:, 0]).all()


@pytest.mark.parametrize(
    ("filter", "fault"),
    [
        pytest.param(kind, fault, marks=pytest.mark.slow if kind == "ukf" and fault != "dies" else ())
        for kind in IN_SPACE
        for fault in BROKEN
        if kind != "smoother"
    ],
)
def test_every_observer_says_that_a_sensor_failed_and_that_it_is_back(arms, filter: str, fault: str) -> None:
    machine, _, log, healthy = arms
    how = _gated(filter)
    observer = Observer(machine, how.method, how.settings)
    broken, said = _broken(log, "gyro.x", fault), []
    readings = {n: dict(zip(broken[n].t.tolist(), broken[n].values.tolist())) for n in observer.system.outputs}
    for k, t in enumerate(log["gyro.x"].t.tolist()):
        step = observer.step(t, {name: known[t] for name, known in readings.items() if t in known})
        said += [sentence for sentence in step.messages if "'gyro.x'" in sentence]
        if k == BAD.stop - 1:
            wider = np.array([*step.sigma.values()]) / healthy[filter].sigma[k]
            assert (wider[:6] > 1.0).all() and wider[0] > 1.1
    since = {"dies": 0.33, "freezes": 0.33, "jumps": 0.3, "nan": 0.3}[fault]  # three repeats, or pauses, tell
    why = {"dies": "silent", "freezes": "frozen", "jumps": "outlier", "nan": "not finite"}[fault]
    # The gate may see a frozen sensor before its third repeat.
    assert len(said) == 2 or (fault == "freezes" and "outlier" in said[0])
    assert said[-2:] == [
        f"{since:g} s: 'gyro.x' is not used ({why}); its band grows.",
        "0.55 s: 'gyro.x' is used again.",
    ]


@pytest.mark.parametrize("filter", IN_SPACE)
def test_without_any_sensor_the_model_goes_on_alone(arms, filter: str) -> None:
    machine, _, log, healthy = arms
    system = _gated(filter).system(machine)[0]
    readings = measurements_of(system, log)
    dead = np.zeros(readings.values.shape, dtype=bool)
    dead[BAD] = True
    found = observe_with(_gated(filter), machine, readings.flagged(dead, Status.MISSING))
    wider = found.sigma[:, :3] / healthy[filter].sigma[:, :3]
    assert (wider[BAD] > 1.0).all() and (wider[BAD].max(axis=0) > 2.0).all()
    assert {e.output for e in found.episodes() if e.status == Status.MISSING} == set(system.outputs)


@pytest.mark.parametrize("filter", ["linear", "ekf"])
def test_a_running_program_is_told_when_a_sensor_fails_and_when_it_is_back(case, filter: str) -> None:
    machine, _, log = case
    observer = Observer(
        machine,
        FILTERS[filter](gate=0.9999),
        ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",), frozen_after=3),
    )
    said: list[str] = []
    for k, t in enumerate(log["travel"].t.tolist()):
        travel = np.nan if 40 <= k < 60 else float(log["travel"].values[k])
        said += observer.step(t, {"travel": travel, "tilt": float(log["tilt"].values[k])}).messages
    assert said == ["0.8 s: 'travel' is not used (not finite); its band grows.", "1.2 s: 'travel' is used again."]


def test_nan_in_an_array_is_a_reading_that_is_not_there_and_infinity_is_a_fault(case) -> None:
    machine, _, log = case
    by_place, by_name = (
        Observer(
            machine,
            "ekf",
            ObserveSettings(
                model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",), independents=("x", "swing")
            ),
        )
        for _ in range(2)
    )
    places = [log[name].values for name in by_place.system.outputs]
    for k, t in enumerate(log["travel"].t[:60].tolist()):
        row = {name: float(x[k]) for name, x in zip(by_place.system.outputs, places, strict=True)}
        gone = {"travel"} if k % 3 else set()
        one = by_place.step(t, [np.nan if name in gone else x for name, x in row.items()])
        two = by_name.step(t, {name: x for name, x in row.items() if name not in gone})
        assert np.array_equal(one.belief.x, two.belief.x) and one.status == two.status
        assert one.messages == two.messages == ()
    wrong = by_place.step(60 * 0.02, [np.inf if name == "travel" else 0.0 for name in by_place.system.outputs])
    assert wrong.status["travel"] == Status.NOT_FINITE and "not finite" in wrong.messages[0]


def test_a_late_sensor_is_put_where_it_belongs(case) -> None:
    """A reading stamped t of a sensor with a delay speaks of t − delay: the log, and the stream that goes back in time for it."""
    machine, _, log = case
    delay = 0.04
    late = replace(
        machine,
        sensors=tuple(replace(i, delay=delay if i.name == "tilt" else 0.0) for i in machine.sensors),
    )
    tilt = log["tilt"]
    shifted = log.replacing(Channel("tilt", tilt.t + delay, tilt.values, tilt.unit))
    plain = observe_with(SHORT.setup("ekf"), machine, log)
    found = observe_with(SHORT.setup("ekf"), late, shifted)
    assert np.allclose(found.reduced, plain.reduced, atol=1e-9)
    observer = Observer(
        late,
        "ekf",
        ObserveSettings(
            model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",), independents=("x", "swing")
        ),
    )
    travel = log["travel"]
    for k, t in enumerate(travel.t.tolist()):
        readings = {"travel": float(travel.values[k])} | ({"tilt": float(tilt.values[k - 2])} if k >= 2 else {})
        values = observer.step(t, readings).values
        if k == len(travel) - 1:
            assert np.allclose([*values.values()], plain.reduced[-1], atol=0.05)


def test_a_smoother_of_late_readings(case) -> None:
    """ "use" and "rewind" smooth the log as if all had been on time; a horizon leaves out what came too late, and says so."""
    machine, _, log = case
    delay = 0.05
    late = replace(
        machine,
        sensors=tuple(replace(i, delay=delay if i.name == "tilt" else 0.0) for i in machine.sensors),
    )
    tilt = log["tilt"]
    shifted = log.replacing(Channel("tilt", tilt.t[:-3] + delay, tilt.values[:-3], tilt.unit))
    settings = SHORT.setup("smoother")
    plain = observe_with(settings, late, shifted)
    back = observe_with(replace(settings, method=Smoother(late="rewind")), late, shifted)
    assert np.array_equal(back.reduced, plain.reduced) and np.array_equal(back.sigma, plain.sigma)
    short = observe_with(replace(settings, method=Smoother(late="rewind", horizon=0.01)), late, shifted)
    dropped = observe_with(replace(settings, method=Smoother(late="drop")), late, shifted)
    assert np.array_equal(short.reduced, dropped.reduced)
    assert short.estimates.counts()["tilt"]["late"] == len(tilt) - 3 and "comes too late" in short.summary()


def test_sensors_on_clocks_of_their_own(case) -> None:
    machine, truth, log = case
    slow = log.replacing(Channel("travel", log["travel"].t[::7], log["travel"].values[::7], "m"))
    found = observe_with(SHORT.setup("ekf"), machine, slow)
    assert len(found) == len(truth) and not found.episodes()
    assert found.estimates.counts()["travel"]["used"] == len(log["travel"].t[::7])


def test_noise_is_chosen_by_likelihood_where_none_is_given(case) -> None:
    machine, _, log = case
    setup = SHORT.setup("ekf").replaced(process_noise=replace(PROCESS_NOISE, force=0.0))
    system = setup.system(machine)[0]
    process_noise, tuning = tuned(setup, machine, [measurements_of(system, log)], samples=150)
    assert isinstance(process_noise.force, dict) and tuning.readings == 300
    assert (
        400.0 / 20.0 < process_noise.force["x"] < 400.0 * 20.0
    )  # 150 samples tell a density of 400 to an order of magnitude


def test_an_input_is_a_channel_that_is_held(case) -> None:
    machine, _, log = case
    torque = Channel("motor", np.array([0.0, 1.0]), np.array([0.0, 500.0]), "N")
    noise = replace(PROCESS_NOISE, force=1.0)
    setup = SHORT.setup("ekf").replaced(process_noise=noise, unknown=("swing",), inputs=("motor",))
    system = setup.system(machine)[0]
    readings = measurements_of(system, log.replacing(torque))
    assert readings.inputs[49, 0] == 0.0 and readings.inputs[50, 0] == 500.0
    with pytest.raises(DataError, match="there is no channel 'motor'"):
        measurements_of(system, log)
    with pytest.raises(DataError, match="the input starts after the first reading"):
        measurements_of(system, log.replacing(Channel("motor", np.array([0.5]), np.array([1.0]), "N")))


def test_a_machine_with_redundant_constraints_is_observed_as_one_without() -> None:
    """The four-bar in the plane, and in space with all joints turning: the same estimates, bands and constraint errors from one log."""
    encoder = (Sensor("encoder", "coordinate", "phi", np.pi / 180.0),)
    t = 5e-3 * np.arange(300)
    swing = 1.0 + t - 0.4 * t**2 + np.pi / 180.0 * np.random.default_rng(0).standard_normal(len(t))
    log = Experiment({"encoder": Channel("encoder", t, swing, "rad")}, "log")
    given = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=1136.0, start_force=100.0),
        start={"phi": 1.0},
        independents=("phi",),
    )
    flat = observe(machine_of_mechanism(replace(fourbar(), sensors=encoder)), log, "ekf", given)
    with pytest.warns(ModelWarning, match=r"(?s)some constraints say nothing new.*besides 36 others") as told:
        found = observe(machine_of_mechanism(replace(turning_fourbar(), sensors=encoder)), log, "ekf", given)
    assert len(told) == 1
    assert np.allclose(found.reduced, flat.reduced, atol=1e-7 * np.abs(flat.reduced).max())
    assert np.allclose(found.sigma, flat.sigma, rtol=1e-6)
    assert found.constraint_errors().max() < 1e-9  # of all 39 rows


def test_observability_names_what_is_not_seen_and_the_sensor_that_helps(case) -> None:
    machine, _, log = case
    blind = replace(machine, sensors=machine.sensors[1:])
    found = observe(
        blind, log, "ekf", ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, unknown=("motor",))
    )
    extra = [
        Sensor("travel", "coordinate", "x", 0.002),
        Sensor("imu", "accelerometer", Marker("rope", (0.0, 0.0)), 0.1),
    ]
    seen = found.observability(part=slice(0, 100), extra=extra)
    assert not seen.observable and any("'x'" in d.text for d in seen.unseen)
    assert "travel" in seen.enough and "no reading changes with" in seen.summary()
    whole = observe_with(SHORT.setup("ekf"), machine, log)
    assert whole.observability(part=slice(0, 100)).observable


def test_bad_settings_are_named(case) -> None:
    machine, _, log = case
    with pytest.raises(ModelError, match=r"there is no method 'kalman'"):
        observe(machine, log, "kalman")
    with pytest.raises(ModelError, match=r"there is no argument 'gate'(.|\n)*observe\(machine, log, EKF\(gate=…\)\)"):
        observe(machine, log, "ekf", gate=0.9)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ModelError, match=r"the class EKF is given, not an object of it"):
        observe(machine, log, EKF)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match=r"EKF.gate: the value is not valid(.|\n)*above 0 and below 1"):
        EKF(gate=99.9)
    with pytest.raises(ModelError, match="the first readings are not there yet"):
        Observer(machine, "ekf", ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, start="readings"))
    with pytest.raises(ModelError, match=r"ObserveSettings\.start: the value is not valid(.|\n)*'first'"):
        observe(machine, log, "ekf", ObserveSettings(model_error="off", start="first"))
    with pytest.raises(ModelError, match="a smoother needs the whole log"):
        Observer(machine, "smoother", ObserveSettings(model_error="off", process_noise=PROCESS_NOISE))
    with pytest.raises(
        DataError, match=r"channel 'travel': its unit is not that of the sensor(.|\n)*Expected m, found mm"
    ):
        observe(
            machine,
            log.replacing(replace(log["travel"], unit="mm")),
            "ekf",
            ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0)),
        )
    observer = Observer(machine, "ekf", ObserveSettings(model_error="off", process_noise=PROCESS_NOISE))
    with pytest.raises(DataError, match="there is no output 'trvel'"):
        observer.step(0.0, {"trvel": 1.0})
    with pytest.raises(DataError, match="wrong shape"):
        observer.step(0.0, [1.0])


@pytest.mark.parametrize("count", [2, 3])
def test_another_number_of_inputs_is_refused_by_name(case, count: int) -> None:
    machine, _, _ = case
    observer = Observer(
        machine, "ekf", ObserveSettings(process_noise=PROCESS_NOISE, independents=("x", "swing"), inputs=("motor",))
    )
    with pytest.raises(DataError, match=r"step, inputs: the number of inputs .*\n?.*1: motor"):
        observer.step(0.0, {}, [0.0] * count)
