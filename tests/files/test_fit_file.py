"""Fits of a car and of drives are saved and loaded bit for bit, and damaged files are refused by name."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.demo_leg import fitted_leg, recorded_leg

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import FileError
from veridyn.estimators import CarFit, Innovations
from veridyn.identify.drives.drive_result import DrivesFit
from veridyn.model.experiment import Channel
from veridyn.model.single_track import PriorValue, car_machine

UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}


@pytest.fixture(scope="module")
def fit() -> CarFit:
    truth = Bicycle(duration=6.0, rate=20.0)
    d = truth.drive(5)
    log = vd.Experiment({n: Channel(n, d["t"], d[n], u) for n, u in UNITS.items()}, "drive")
    given = {"mass": truth.mass, "front": truth.front, "rear": truth.rear, "yaw_inertia": truth.inertia}
    given |= {"front_stiffness": PriorValue(11.0, 4.0), "rear_stiffness": PriorValue(20.0, 6.0, upper=60.0)}
    found = vd.identify(car_machine("bicycle", given), log, Innovations(tuned=("ay", "bank")))
    assert isinstance(found, CarFit)
    return found


def test_what_is_loaded_is_what_was_saved(fit: CarFit, tmp_path: Path) -> None:
    again = vd.load(vd.save(fit, tmp_path / "car.json"))
    assert isinstance(again, CarFit) and again.names == fit.names and again.units == fit.units
    for name in ("values", "covariance", "standard_values", "prior_share"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fit, name))
    assert again.noise == fit.noise and again.rows == fit.rows and again.formulation == "single_track"
    assert again.fit.values == fit.fit.values and again.fit.guesses == fit.fit.guesses
    assert again.summary() == fit.summary() and again.not_shown == fit.not_shown
    one, other = again.machine(), fit.machine()
    np.testing.assert_array_equal(one.parameters.values, other.parameters.values)
    np.testing.assert_array_equal(one.uncertainty.covariance, other.uncertainty.covariance)
    assert one.sensors == other.sensors and one.formulation == "single_track"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["found"].pop("rear_stiffness"), "nothing is found of 'rear_stiffness'"),
        (lambda c: c["found"].update(ghost=c["found"]["rear_stiffness"]), "'ghost' is neither a value"),
        (lambda c: c["found"].pop("noise.ay"), "array 'search_covariance' does not fit"),
        (lambda c: c["noise"].update(bank=-1.0), "car.noise.bank"),
    ],
)
def test_a_damaged_file_is_refused(fit: CarFit, tmp_path: Path, change, words: str) -> None:
    file = vd.save(fit, tmp_path / "car.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content["car"])
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FileError, match=words):
        vd.load(file)


FINDING = {
    "cause": "rotor inertia",
    "place": "hip",
    "rank": 1,
    "moves": "ZZ",
    "recording": "",
    "remedy": "",
    "message": "m",
}
FINDING |= dict.fromkeys(("evidence", "size", "sigma", "shift"), 1.0) | {"alternatives": [["offset", "hip"]]}
FEASIBLE = {"least": {"body": 0.1}, "cost_percent": 0.2, "bound": ["body"], "broken": []}


def test_records_lack_nothing_that_files_of_this_format_have(fit: CarFit, tmp_path: Path) -> None:
    """Older files have rows without what came later; what they always had is not taken for unknown where it was cut out."""
    file = vd.save(fit, tmp_path / "car.json")
    whole = json.loads(file.read_text(encoding="utf-8")) | {"findings": [FINDING], "feasibility": FEASIBLE}
    for row in whole["rows"]:
        for later in ("measured_std", "noise", "unit", "nis"):
            row.pop(later)
    file.write_text(json.dumps(whole), encoding="utf-8")
    again = vd.load(file)
    assert [r.sigma for r in again.rows] == [r.sigma for r in fit.rows] and np.isnan(again.rows[0].noise)
    assert again.findings[0].alternatives == (("offset", "hip"),)
    assert again.feasibility is not None and again.feasibility.bound == ("body",)
    for part, keys in (("rows", ["sigma", "rms"]), ("findings", [*FINDING]), ("feasibility", [*FEASIBLE])):
        for key in keys:
            less = json.loads(json.dumps(whole))
            own = less[part] if part == "feasibility" else less[part][0]
            del own[key]
            file.write_text(json.dumps(less), encoding="utf-8")
            with pytest.raises(FileError, match=rf"(?s){part}.*(missing|required)"):
                vd.load(file)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    fit = fitted_leg()
    again = vd.load(vd.save(fit, tmp_path / "fit.json"))
    assert isinstance(again, DrivesFit)
    assert again.drives == fit.drives and again.open == fit.open and again.terms == fit.terms
    assert again.notes == fit.notes and again.rows == fit.rows and again.names == fit.names
    for name in ("values", "covariance", "standard_values", "prior_share"):
        assert np.array_equal(getattr(again, name), getattr(fit, name), equal_nan=True)
    for name in ("t", "measured", "simulated"):
        assert np.array_equal(getattr(again.replay, name), getattr(fit.replay, name))
    assert np.array_equal(again.replay_defaults.simulated, fit.replay_defaults.simulated)
    assert again.summary() == fit.summary()
    assert {f.name for f in fields(DrivesFit)} == {f.name for f in fields(type(again))}


def test_every_log_comes_back(tmp_path: Path) -> None:
    fit, other = fitted_leg(), recorded_leg().validation
    both = replace(fit, further=((fit.simulate(other), fit.simulate_defaults(other)),))
    again = vd.load(vd.save(both, tmp_path / "fit.json"))
    assert isinstance(again, DrivesFit) and [r.name for r in again.replays] == [r.name for r in both.replays]
    for name in ("replays", "replays_defaults"):
        for one, was in zip(getattr(again, name), getattr(both, name), strict=True):
            assert np.array_equal(one.t, was.t) and np.array_equal(one.simulated, was.simulated)
    assert again.rms_held_out == both.rms_held_out and again.summary() == both.summary()


def test_what_is_loaded_simulates_and_is_saved_alike(tmp_path: Path) -> None:
    fit, other = fitted_leg(), recorded_leg().validation
    again = vd.load(vd.save(fit, tmp_path / "fit.json"))
    assert isinstance(again, DrivesFit)
    assert np.array_equal(again.simulate(other).simulated, fit.simulate(other).simulated)
    assert vd.validate(again, other).rows == vd.validate(fit, other).rows
    own, was = (m.controller_constants for m in (again.machine(), fit.machine()))
    assert [(c.name, c.value) for c in own] == [(c.name, c.value) for c in was]
    vd.save(again, tmp_path / "twice.json")
    assert (tmp_path / "twice.npz").read_bytes() == (tmp_path / "fit.npz").read_bytes()


def test_files_that_were_changed_are_refused(tmp_path: Path) -> None:
    file = vd.save(fitted_leg(), tmp_path / "fit.json")
    text = file.read_text(encoding="utf-8")

    for change, words in (
        ({"joints": ["thigh"]}, "'drive_measured' does not fit"),
        ({"joints": ["thigh", "knee"]}, "'knee' is no joint"),
        ({"numbers": []}, "nothing is said of 'Ia_thigh'"),
        ({"between": "cubic"}, "drives.between"),
        ({"started": "veridyn: 2"}, "machine before the fit|bodies"),
        ({"mass": 1}, "drives.mass"),
    ):
        content = json.loads(text)
        content["drives"] |= change
        file.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(FileError, match=words):
            vd.load(file)
