"""A fit of drives on disk and back: every number bit for bit, the same machine and the same simulation; files that were changed."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.demo_leg import fitted_leg, recorded_leg

import veridyn as vd
from veridyn.errors import FileError
from veridyn.identify.drives.drive_result import DrivesFit


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
