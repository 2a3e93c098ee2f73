"""Drifting parameters beside a running machine: frozen until the readings determine them; truth in closed steps, and a drive by SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from observe.car.test_observation import AGED, DRIFTS, marked
from observe.car.test_observation import NOISE as CAR_NOISE
from observe.test_drifting import DRIFT, FRICTION, NOISE, log, rotor
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer, ObserverStep

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
