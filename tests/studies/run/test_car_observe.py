"""A drive observed as a study file says: by the filter that it names, and refused where a car has none of it."""

from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.errors import CapabilityError, FileError
from veridyn.files.machine.load import load_model
from veridyn.model.single_track import CarNoise
from veridyn.observe.result import Track
from veridyn.studies.config.study import load_study
from veridyn.studies.config.text import study_text
from veridyn.studies.run.observed import ObserveRun
from veridyn.studies.run.observer import observe_study

DRIVE = Bicycle(duration=12.0, rate=25.0).drive(3)
MODEL = """veridyn: 2
name: car
car: {mass: 1200, front: 1.1, rear: 1.5, yaw_inertia: 1900, front_stiffness: {value: 14, sigma: 1}, rear_stiffness: 16}
sensors:
  - {name: yaw_rate, kind: reading, on: yaw_rate, sigma: 0.003}
  - {name: ay, kind: reading, on: ay, sigma: 0.1}
"""
UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2", "east": "m", "north": "m"}
STUDY = f"""veridyn: 1
kind: observe
model: {{file: model.yaml}}
log:
  file: drive.csv
  time: t [s]
  columns: {{{", ".join(f"{n}: '{n} [{u}]'" for n, u in UNITS.items())}}}
noise: {{slip_error: 0.001, bank: 0.001}}
checks: false
"""


def observed(folder: Path, more: str) -> ObserveRun:
    write_csv(folder / "drive.csv", DRIVE)
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY + more, encoding="utf-8")
    return observe_study(load_study(folder / "study.yaml"))


def way_of(run: ObserveRun) -> Track:
    assert run.drive is not None and run.drive.path is not None
    return run.drive.path


@pytest.mark.parametrize("name", ["ekf", "ukf", "smoother"])
@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
def test_a_study_gives_what_the_verb_gives(tmp_path: Path, name: str) -> None:
    found = observed(tmp_path, f"filter: {{name: {name}, gate: 0.999}}\n").observation
    log = vd.Experiment.from_arrays(DRIVE["t"], {n: DRIVE[n] for n in UNITS}, UNITS)
    method = {"ekf": vd.EKF, "ukf": vd.filters.UKF, "smoother": vd.filters.Smoother}[name](gate=0.999)
    noise = CarNoise(slip_error=0.001, bank=0.001)
    own = vd.observe(load_model(tmp_path / "model.yaml"), log, method, vd.ObserveSettings(process_noise=noise))
    assert found.filter == name
    # A log in a file has nine digits.
    np.testing.assert_allclose(found.reduced, own.reduced, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.sigma, own.sigma, rtol=1e-5, atol=1e-9)


def test_a_smoother_is_nearer_to_the_way_through_a_gap(tmp_path: Path) -> None:
    gap = "path: {position: 0.02, gyro: 0.003, gaps: [[5, 7]]}\n"
    by = {n: observed(tmp_path, f"{gap}filter: {{name: {n}}}\n") for n in ("ekf", "ukf", "smoother")}
    error = {n: run.figures["rms_east_gap"] for n, run in by.items()}
    assert error["smoother"] < error["ekf"] and error["ukf"] == pytest.approx(error["ekf"], rel=0.05)
    smoothed, filtered = (way_of(by[n]) for n in ("smoother", "ekf"))
    assert (smoothed.sigma <= filtered.sigma * (1.0 + 1e-9)).all()  # more readings never make less known
    assert by["smoother"].figures["path_nis"] == pytest.approx(by["ekf"].figures["path_nis"], rel=1e-9)


def test_a_sensor_that_hangs_is_found(tmp_path: Path) -> None:
    stuck = {**DRIVE, "ay": np.where(DRIVE["t"] > 8.0, 0.5, DRIVE["ay"])}
    observed(tmp_path, "")
    write_csv(tmp_path / "drive.csv", stuck)
    (tmp_path / "study.yaml").write_text(STUDY + "filter: {frozen_after: 5}\n", encoding="utf-8")
    assert observe_study(load_study(tmp_path / "study.yaml")).figures["rejected_ay"] > 80.0  # 99 samples hang


def test_what_a_car_does_not_have_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="has no filter 'error_ekf'") as caught:
        observed(tmp_path, "filter: {name: error_ekf}\n")
    assert caught.value.faults[0].line == 10
    with pytest.raises(FileError, match="'unknown' belongs to machines of bodies and joints"):
        observed(tmp_path, "filter: {unknown: [x]}\n")


def test_the_study_with_its_defaults_is_read_again(tmp_path: Path) -> None:
    first = observed(tmp_path, "")
    text = study_text(load_study(tmp_path / "study.yaml").study, comments=False)
    (tmp_path / "again.yaml").write_text(text, encoding="utf-8")
    assert observe_study(load_study(tmp_path / "again.yaml")).figures == first.figures
