"""A filter beside a running program, on the caller's clock."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from observe import textbook
from observe.builders import start_of, system_of
from observe.car.test_observation import AGED, DRIFTS, marked
from observe.car.test_observation import NOISE as CAR_NOISE
from observe.linear import Kalman, from_rates
from observe.test_drifting import DRIFT, FRICTION, NOISE, log, rotor
from veridyn.errors import DataError
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer, ObserverStep
from veridyn.observe.streaming.stream import Stream

CASE = textbook.oscillator()


def moving(W=0.5):
    return from_rates(("x", "v"), ("p", "q"), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [0.0, W], [0.1, 0.2])


def test_readings_by_name_and_what_became_of_them():
    s = Stream(Kalman(gate=0.999), moving(), Belief([0.0, 0.0], [1.0, 1.0]))
    assert s.step(0.0, {"p": 0.1}).status == {"p": Status.USED, "q": Status.MISSING}
    assert s.step(0.1, {"p": np.nan, "q": 500.0}).status == {"p": Status.NOT_FINITE, "q": Status.OUTLIER}
    with pytest.raises(DataError, match=r"there is no output 'gps'(.|\n)*Known: p, q"):
        s.step(0.2, {"gps": 1.0})
    with pytest.raises(DataError, match="wrong shape"):
        s.step(0.2, [1.0])
    with pytest.raises(DataError, match="the stamp is not a time"):
        s.step(np.nan, [1.0, 1.0])


def test_readings_in_any_order_give_the_same_belief():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.05, 0.15, 40))
    y = rng.standard_normal((40, 2))
    expected = run(Kalman(), moving(), Measurements(t, y, ("p", "q")), Belief([0.0, 0.0], [1.0, 1.0], t=0.0))
    order = np.argsort(t + rng.uniform(0.0, 0.4, 40))  # each up to 0.4 s late; stamps not on any common grid
    assert (np.diff(order) < 0).any()
    s = Stream(Kalman(late="rewind", horizon=1.0), moving(), Belief([0.0, 0.0], [1.0, 1.0], t=0.0))
    for k in order:
        s.step(t[k], y[k])
    assert np.abs(s.belief.x - expected.x[-1]).max() < 1e-10 and np.abs(s.belief.P - expected.P[-1]).max() < 1e-10
    assert s.belief.t == t[-1]


def test_two_sensors_with_one_stamp_may_come_one_after_the_other():
    _, y = CASE.simulate(10, np.random.default_rng(1))  # correlated noise
    x, P = textbook.kalman(CASE, y)
    for late in ("use", "drop", "rewind"):
        s = Stream(EKF(late=late, horizon=0.3), system_of(EKF, CASE), start_of(CASE))
        for k in range(10):
            s.step(CASE.step * k, {"y1": y[k, 1]})
            s.step(CASE.step * k, {"y0": y[k, 0]})
        assert np.abs(s.belief.x - x[-1]).max() < 1e-10 and np.abs(s.belief.P - P[-1]).max() < 1e-10


def test_what_comes_too_late_is_dropped_and_said():
    for settings in (Kalman(late="drop"), Kalman(late="rewind", horizon=0.5)):
        s = Stream(settings, moving(), Belief([0.0, 0.0], [1.0, 1.0]))
        for k in range(20):
            s.step(0.1 * k, [0.0, 0.0])
        before = s.belief
        step = s.step(0.7, {"p": 5.0})
        assert step.status == {"p": Status.LATE, "q": Status.MISSING} and step.correction is None
        assert s.belief is before
    assert len(s._past) <= 8  # half a second of past, and no more


def test_a_clock_that_runs_backwards_is_refused_unless_late_readings_are_allowed():
    s = Stream(Kalman(), moving(), Belief([0.0, 0.0], [1.0, 1.0]))
    s.step(1.0, [0.0, 0.0])
    with pytest.raises(DataError, match=r"step at 0.5 s: the clock runs backwards(.|\n)*1 s or later(.|\n)*rewind"):
        s.step(0.5, [0.0, 0.0])


def test_inputs_go_on_acting_until_new_ones_come():
    system = from_rates(("x", "v"), ("p",), [[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]], [0.0, 0.0], [1.0], [[0.0], [1.0]])
    s = Stream(Kalman(), system, Belief([0.0, 0.0], [1.0, 1.0]))
    s.step(0.0, [np.nan], 2.0)
    s.step(1.0, [np.nan])
    assert s.step(2.0, [np.nan], 0.0).belief.x == pytest.approx([4.0, 4.0])
    assert s.step(3.0, [np.nan]).belief.x == pytest.approx([8.0, 4.0])


def test_prediction_between_readings_changes_nothing():
    s = Stream(Kalman(), moving(), Belief([1.0, 2.0], [0.1, 0.1]))
    with pytest.raises(DataError, match="nothing to predict from"):
        s.predict(1.0)
    s.step(0.0, [np.nan, np.nan])
    ahead = s.predict(0.5)
    assert ahead.x == pytest.approx([2.0, 2.0]) and ahead.P[0, 0] > 0.1 and s.belief.t == 0.0


SETTINGS = ObserveSettings(process_noise=NOISE, unknown=(), inputs=("force.wheel",))


def followed(observer: Observer, friction: float, amplitude: float, samples: int) -> list[ObserverStep]:
    of = log(friction, amplitude, samples)
    rows = zip(of["encoder"].t, of["encoder"].values, of["force.wheel"].values, strict=True)
    return [observer.step(float(t), {"encoder": float(y)}, [float(u)]) for t, y, u in rows]


def test_a_wheel_that_stands_still_keeps_its_friction() -> None:
    """P(t) = by² (1 + t/within), as along a log."""
    observer = Observer(rotor(), "ekf", SETTINGS)
    steps = followed(observer, 1.4 * FRICTION, 0.0, 400)
    assert observer.frozen == ("c",) and {s.values["parameter.c"] for s in steps} == {FRICTION}
    assert steps[-1].sigma["parameter.c"] == pytest.approx(DRIFT.by * np.sqrt(1.0 + steps[-1].t / DRIFT.within))
    assert not any(s.messages for s in steps)


@pytest.mark.parametrize("late", ["use", "rewind"])
def test_one_that_moves_has_its_friction_followed(late: str) -> None:
    observer = Observer(rotor(), EKF(late=late, horizon=0.1), SETTINGS)  # pyright: ignore[reportArgumentType]
    steps = followed(observer, 1.4 * FRICTION, 5.0, 1500)
    said = [(s.t, text) for s in steps for text in s.messages]
    assert observer.frozen == () and len(said) == 1 and "the readings determine parameter 'c'" in said[0][1]
    before = [s.values["parameter.c"] for s in steps if s.t < said[0][0]]
    assert before and set(before) == {FRICTION}
    end = steps[-1]
    assert end.sigma["parameter.c"] < 0.2 * DRIFT.by
    assert abs(end.values["parameter.c"] - 1.4 * FRICTION) < 3.0 * end.sigma["parameter.c"]


def test_a_car_follows_its_bias_and_not_the_friction_that_no_tyre_reaches() -> None:
    drive = AGED.drive(3)
    observer = vd.Observer(marked(), "ekf", vd.ObserveSettings(process_noise=CAR_NOISE))
    rows = zip(*(drive[n] for n in ("t", "yaw_rate", "ay", "speed", "steer")), strict=True)
    end = None
    for t, yaw_rate, ay, speed, steer in rows:
        end = observer.step(float(t), {"yaw_rate": float(yaw_rate), "ay": float(ay)}, [speed, steer])
    assert end is not None and observer.frozen == ("front_friction",)
    assert end.values["front_friction"] == 1.0
    for name, truth in (("front_stiffness", AGED.cf), ("gyro_bias", AGED.gyro_bias)):
        assert abs(end.values[name] - truth) < 3.0 * end.sigma[name] < 1.5 * DRIFTS[name].by
