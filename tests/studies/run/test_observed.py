"""What came of an observation, of a drive: the columns of its table, its outputs in the result, and the way alone."""

import csv
from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.errors import DataError
from veridyn.studies.config.study import load_study
from veridyn.studies.run.observed import ObserveRun
from veridyn.studies.run.observer import observe_study

DRIVE = Bicycle(duration=12.0, rate=20.0).drive(1)
CHANNELS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2", "east": "m", "north": "m"}
STUDY = """veridyn: 1
kind: observe
model: {file: model.yaml}
log: {file: drive.csv, time: "t [s]", columns: {COLUMNS}}
noise: {slip_error: 0.001, bank: 0.001, sensors: {yaw_rate: 0.003, ay: 0.1}}
virtual: [sideslip, yaw_rate]
path: {gyro: 0.003}
checks: false
"""


def observed(folder: Path, *names: str) -> ObserveRun:
    write_csv(folder / "drive.csv", DRIVE)
    (folder / "model.yaml").write_text("veridyn: 2\ncar: {mass: 1200, front: 1.1, rear: 1.5}\n", encoding="utf-8")
    columns = ", ".join(f"{n}: '{n} [{CHANNELS[n]}]'" for n in names)
    (folder / "study.yaml").write_text(STUDY.replace("COLUMNS", columns), encoding="utf-8")
    return observe_study(load_study(folder / "study.yaml"))


def test_a_table_has_states_quantities_with_bands_and_the_way(tmp_path: Path) -> None:
    run = observed(tmp_path, *CHANNELS)
    head, *rows = csv.reader(run.table().splitlines())
    assert len(rows) == len(DRIVE["t"]) == run.figures["samples"]
    column = {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(head)}
    assert np.isfinite(column["yaw_rate [rad/s]"]).all() and np.isfinite(column["path.east.sigma [m]"]).all()
    half = 1.96 * column["virtual.sideslip.sigma [rad]"]
    high = column["virtual.sideslip [rad]"] + half
    np.testing.assert_allclose(column["virtual.sideslip.high [rad]"], high, atol=1e-9)
    found = run.result("drive", 0).validation
    assert set(found) == {"yaw_rate", "ay"} and found["ay"]["used"] == len(rows)
    assert found["ay"]["measured_rms"] == pytest.approx(np.sqrt((DRIVE["ay"] ** 2).mean()), rel=1e-6)
    assert "sideslip" in run.summary() and "NIS" in run.summary()


def test_the_way_alone_has_no_states_of_a_car(tmp_path: Path) -> None:
    run = observed(tmp_path, "east", "north", "yaw_rate")
    assert run.seen is None and run.parameters == () and run.result("way", 0).validation == {}
    assert run.table().startswith("t [s],path.east [m]") and "the way of" in run.summary()
    with pytest.raises(DataError, match="only the way of the car was observed"):
        _ = run.observation
