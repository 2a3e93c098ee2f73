"""What came of an identification, of a drive: its fit, what its run folder gets, and no forces of joints to judge by."""

from pathlib import Path

import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.errors import DataError
from veridyn.files.archive import load
from veridyn.files.machine.load import load_model
from veridyn.studies.config.study import load_study
from veridyn.studies.exporting import export_run
from veridyn.studies.result import new_run
from veridyn.studies.run.identified import IdentifyRun
from veridyn.studies.run.identify import run_identify

TRUTH = Bicycle(duration=20.0, rate=20.0)
MODEL = f"""veridyn: 2
name: Test car
car:
  {{mass: {TRUTH.mass}, front: {TRUTH.front}, rear: {TRUTH.rear}, yaw_inertia: {TRUTH.inertia}, front_stiffness: {TRUTH.cf},
  rear_stiffness: {{value: 20, sigma: 6}}}}
"""
STUDY = """veridyn: 1
kind: identify
model: {file: model.yaml}
log: {file: drive.csv, time: "t [s]", columns: {COLUMNS}}
noise: {slip_error: 0.001, bank: 0.001, sensors: {yaw_rate: 0.003, ay: 0.1}}
checks: false
"""
LATERAL = "speed: 'speed [m/s]', steer: 'steer [rad]', yaw_rate: 'yaw_rate [rad/s]', ay: 'ay [m/s^2]'"


def identified(folder: Path, columns: str) -> IdentifyRun:
    drive = TRUTH.drive(1)
    write_csv(folder / "drive.csv", drive | {"wheel_fl": 1.02 * drive["speed"]})
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY.replace("COLUMNS", columns), encoding="utf-8")
    return run_identify(load_study(folder / "study.yaml"))


def test_a_drive_leaves_its_fit_and_its_car(tmp_path: Path) -> None:
    found = identified(tmp_path, LATERAL)
    (row,) = found.result("car", 0).parameters
    assert row.name == "rear_stiffness" and abs(row.value - TRUTH.cr) < 4.0 * row.sigma
    run = new_run(tmp_path / "runs", "car")
    assert export_run(run, found, load_study(tmp_path / "study.yaml").study).refused == ()
    found.keep(run)
    assert load_model(run.folder / "identified.yaml").parameters["rear_stiffness"] == pytest.approx(row.value)
    assert load(run.folder / "fit.json").values == pytest.approx([row.value])
    assert found.drive is not None and "rear_stiffness" in found.drive.summary()
    with pytest.raises(DataError, match="no forces of joints to judge by"):
        _ = found.study


def test_lines_of_wheels_alone_are_no_fit(tmp_path: Path) -> None:
    found = identified(tmp_path, "speed: 'speed [m/s]', wheel_fl: 'wheel_fl [m/s]'")
    assert found.fit is None and found.machine.name == "Test car"
    (row,) = found.result("car", 0).parameters
    assert row.name == "wheel_fl_scale" and row.value == pytest.approx(1.02, abs=1e-6)
    run = new_run(tmp_path / "runs", "car")
    found.keep(run)
    assert not (run.folder / "fit.json").exists()
