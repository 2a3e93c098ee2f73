"""Known forces and delayed readings on clocks of their own: the same estimate as if all had come together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.machines import crane
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.equations.dynamics import initial_state, solve_accelerations
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, NaturalMotion, integrate_natural
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.observation import Observation, Virtual
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer

SENSORS = (Sensor("travel", "coordinate", "x", 0.002), Sensor("tilt", "coordinate", "swing", 0.01))
PROCESS_NOISE = ProcessNoise(acceleration=1e-6, start=0.1, start_rate=0.1)
START = {"x": 0.5, "swing": 0.2}
HOW = ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, unknown=(), inputs=("motor",), start=START)
T = 0.01 * np.arange(201)
DELAY = 0.05
PUSH = 80.0 * np.sign(np.sin(7.0 * T + 0.1)) + 40.0 * np.sin(11.0 * T)


def machine(*sensors: Sensor) -> Machine:
    return replace(crane(), sensors=sensors)


@pytest.fixture(scope="module")
def motion() -> NaturalMotion:
    """The crane under a motor whose force changes at every stamp of T and is held in between."""
    system, method = natural_system(crane()), NaturalMethod("explicit", step=0.01)
    states = [initial_state(system, START, loads={"motor": PUSH[0]})]
    for begin, end, push, after in zip(T, T[1:], PUSH, PUSH[1:], strict=False):
        acting = {"motor": push}
        part = integrate_natural(system, [begin, end], states[-1], lambda _, acting=acting: acting, method=method)
        reached = part.state(1)
        qdd, multipliers = solve_accelerations(system, reached.q, reached.qd, {"motor": after})
        states.append(replace(reached, qdd=qdd, multipliers=multipliers))
    parts = ([getattr(state, part) for state in states] for part in ("q", "qd", "qdd", "multipliers"))
    return NaturalMotion(system.coordinates, T, *(np.array(rows) for rows in parts))


def readings(motion: NaturalMotion, noise: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    table = readout(natural_system(machine(*SENSORS)))
    exact = table.read(motion.q, motion.qd, motion.qdd)
    return {i.name: exact[:, j] + noise * i.sigma * rng.standard_normal(len(T)) for j, i in enumerate(SENSORS)}


def log(values: dict[str, np.ndarray], every: int = 1, delays: dict[str, float] | None = None) -> Experiment:
    channels = {
        name: Channel(name, T[::every] + (delays or {}).get(name, 0.0), y[::every], "m" if name == "travel" else "rad")
        for name, y in values.items()
    }
    return Experiment({**channels, "motor": Channel("motor", T, PUSH, "N")}, "log")


def observed(sensors: tuple[Sensor, ...], record: Experiment, **more: object) -> Observation:
    return observe(machine(*sensors), record, "ekf", replace(HOW, **more))


def test_a_delay_changes_nothing_once_all_readings_are_in(motion: NaturalMotion) -> None:
    """A reading stamped 50 ms late is put where it belongs, though T + 0.05 − 0.05 is not T to the last digit."""
    y = readings(motion)
    plain = observed(SENSORS, log(y))
    late = (SENSORS[0], replace(SENSORS[1], delay=DELAY))
    delayed = observed(late, log(y, delays={"tilt": DELAY}))
    assert len(delayed) == len(plain) == len(T)
    assert delayed.q == pytest.approx(plain.q, abs=1e-12)
    assert np.abs(delayed.track.P - plain.track.P).max() < 1e-12


@pytest.mark.filterwarnings("ignore:.*(reads beside what the model expects|the filter is)")  # a delay that is not there
def test_a_log_in_which_everything_begins_at_once(motion: NaturalMotion) -> None:
    """The first readings of a delayed sensor speak of times before the first force: it acted then as it does when it begins."""
    late = (SENSORS[0], replace(SENSORS[1], delay=DELAY))
    y = readings(motion)
    found = observed(late, log(y))
    assert found.t[0] == pytest.approx(-DELAY)
    assert (found.inputs[found.t < 0.0] == PUSH[0]).all()
    afterwards = Experiment({**log(y).channels, "motor": Channel("motor", T + 0.001, PUSH, "N")}, "log")
    with pytest.raises(DataError, match=r"log, channel 'motor': the input starts after the first reading"):
        observed(late, afterwards)


@pytest.mark.filterwarnings("ignore:.*(reads beside what the model expects|the filter is)")  # without noise
def test_a_known_force_on_a_quicker_clock_than_the_sensors_acts_all_the_same(motion: NaturalMotion) -> None:
    """With exact readings ten times slower than the force the estimate is the motion, to the second order of the filter's step."""
    record = log(readings(motion, noise=0.0), every=10)
    coarse, fine = (observed(SENSORS, record, step=step) for step in (0.005, 0.0025))
    assert fine.t == pytest.approx(T)
    assert [fine.estimates.counts()[i.name]["used"] for i in SENSORS] == [21, 21]
    errors = [np.abs(found.qd - motion.qd).max() for found in (coarse, fine)]
    print("rates off by", errors)
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_inputs_reach_an_observer_all_of_whose_sensors_are_delayed(motion: NaturalMotion) -> None:
    """The estimate of now is what the readings of 50 ms ago say, carried on under the force since then; virtual sensors are of now too."""
    y, n = readings(motion), round(DELAY / 0.01)
    delayed = Observer(machine(*(replace(i, delay=DELAY) for i in SENSORS)), "ekf", HOW)
    plain = Observer(machine(*SENSORS), "ekf", HOW)
    step = expected = None
    for k, t in enumerate(T):
        step = delayed.step(t, {name: v[k - n] for name, v in y.items()} if k >= n else {}, PUSH[k])
        expected = plain.step(t, {name: v[k] for name, v in y.items()} if k + n < len(T) else {}, PUSH[k])
    assert step is not None and expected is not None
    assert step.belief.t == T[-1]
    assert step.values == pytest.approx(expected.values, abs=1e-9)
    assert step.sigma == pytest.approx(expected.sigma, rel=1e-6)
    value, sigma = delayed.virtual(Virtual("x", "coordinate", "x"))
    assert (value[0], sigma[0]) == pytest.approx((step.values["x"], step.sigma["x"]), rel=1e-9)
