"""The fit of a car is good only where the filter predicts samples that it did not use as closely as it states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import Fault, IdentificationWarning
from veridyn.estimators import CarFit, Innovations
from veridyn.files.archive import load, save
from veridyn.filters import CarNoise
from veridyn.identify.car_verdict import verdict_of_drive
from veridyn.inference.finding import Mistake
from veridyn.model.experiment import Channel
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.signals.drive import Line

TRUTH = Bicycle(duration=20.0, rate=25.0)
NOISE = CarNoise(slip_error=2e-4, bank=2e-4, lateral=2e-3, yaw=2e-3)  # next to nothing, as the drive has it
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
SENSORS = (vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.003), vd.Sensor("ay", "reading", "ay", 0.1))
FINDING = Mistake("drive", Fault("it was seen.", "here")).finding(1)
identified: Any = vd.identify


def log(seed: int, **changes: np.ndarray) -> vd.Experiment:
    d = {**TRUTH.drive(seed), **changes}
    return vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")


def car() -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {"front_stiffness": PriorValue(13.0, 4.0), "rear_stiffness": PriorValue(17.0, 6.0)}
    return car_machine("bicycle", given, sensors=SENSORS)


@pytest.fixture(scope="module")
def fit() -> CarFit:
    return identified(car(), log(5), Innovations(noise=NOISE))


def test_the_last_part_of_a_drive_judges_by_default(fit: CarFit) -> None:
    assert fit.verdict.grade == "good" and fit.findings == () and fit.summary().endswith("verdict: good")
    assert fit.unseen is not None
    held = {r.row: r.samples for r in fit.unseen.rows}
    assert held == {"yaw_rate": 130, "ay": 130}  # 30 % of 500 samples, without 20 of the start
    assert all(now.rms < before.rms for now, before in zip(fit.unseen.rows, fit.unseen.before, strict=True))


def test_every_sample_or_another_drive(fit: CarFit) -> None:
    whole = identified(car(), log(5), Innovations(noise=NOISE), validation="none")
    assert whole.verdict.grade == "not validated" and whole.unseen is None
    assert sum(r.samples for r in whole.rows) > sum(r.samples for r in fit.rows)
    other = identified(car(), log(5), Innovations(noise=NOISE), validation=log(6))
    np.testing.assert_array_equal(other.values, whole.values)
    assert other.verdict.grade == "good" and {r.samples for r in other.unseen.rows} == {480}


CASES = {
    "search": ("poor", lambda f: replace(f, fit=replace(f.fit, converged=False))),
    "bound": ("fair", lambda f: replace(f, fit=replace(f.fit, at_bound={"rear_stiffness": 16.0}))),
    "disagreement": ("fair", lambda f: replace(f, disagreement="parts disagree.")),
    "finding": ("fair", lambda f: replace(f, findings=(FINDING,))),
    "undetermined": ("fair", lambda f: replace(f, fit=replace(f.fit, sigma=dict.fromkeys(f.names, 5.9)))),
    "worse than file": (
        "poor",
        lambda f: replace(f, unseen=replace(f.unseen, rows=f.unseen.before, before=f.unseen.rows)),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_speaks_against_it(fit: CarFit, kind: str) -> None:
    grade, change = CASES[kind]
    verdict = change(fit).verdict
    assert verdict.grade == grade and kind in [r.kind for r in verdict.reasons]


def test_a_gyroscope_that_hangs_is_named() -> None:
    yaw = TRUTH.drive(5)["yaw_rate"].copy()
    yaw[150:190] = yaw[150]
    with pytest.warns(IdentificationWarning):
        found = identified(car(), log(5, yaw_rate=yaw), Innovations(noise=NOISE))
    assert ("frozen", "drive, channel 'yaw_rate'") in [(f.cause, f.place) for f in found.findings]
    assert found.verdict.grade != "good" and [f.rank for f in found.findings] == [*range(1, len(found.findings) + 1)]


def test_a_loaded_fit_has_the_same_verdict(fit: CarFit, tmp_path) -> None:
    against = replace(fit, disagreement="parts disagree.", findings=(FINDING,))
    for one in (fit, against):
        assert load(save(one, tmp_path / f"{one.verdict.grade}.json")).verdict == one.verdict


def test_straight_lines_are_judged_by_the_rest_of_a_drive(fit: CarFit) -> None:
    one, other = (Line({"scale": x}, {"scale": 1e-3}, 0.1, 500) for x in (1.0, 1.01))
    lines = {"wheel_fl_scale": one}
    grades = {
        name: verdict_of_drive("car", None, findings, {}, lines, checked).grade
        for name, findings, checked in (
            ("same", (), lines),
            ("apart", (), {"wheel_fl_scale": other}),
            ("unchecked", (), {}),
            ("finding", (FINDING,), lines),
        )
    }
    assert grades == {"same": "good", "apart": "fair", "unchecked": "not validated", "finding": "fair"}
    assert verdict_of_drive("car", fit, (FINDING,), {"drag": "it hardly coasts."}, {}, {}).grade == "fair"
