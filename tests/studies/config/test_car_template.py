"""The first study of a car: channels by name and unit, guesses marked, and a study that runs."""

from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.errors import FileError
from veridyn.files.machine.write import save_model
from veridyn.model.machine import Machine
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.studies.config.car import CarIdentifyFile, CarObserveFile
from veridyn.studies.config.car_template import car_template
from veridyn.studies.config.study import load_study
from veridyn.studies.run.car.identify import identify_car_study

TRUTH = Bicycle(duration=20.0, rate=25.0)
DRIVE = TRUTH.drive(3)


def car(sigma: float) -> Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    tyres = {n: PriorValue(15.0, sigma) for n in ("front_stiffness", "rear_stiffness")}
    return car_machine("my car", {**given, **tyres})


def written(folder: Path, header: str, *names: str, factors: dict[str, float] | None = None) -> tuple[Path, Path]:
    rows = np.column_stack([(factors or {}).get(n, 1.0) * DRIVE[n] for n in names])
    np.savetxt(folder / "run.csv", rows, delimiter=",", header=header, comments="")
    save_model(car(4.0), folder / "car.yaml")
    return folder / "car.yaml", folder / "run.csv"


def test_a_log_with_units_gives_a_study_that_runs(tmp_path: Path) -> None:
    names = ("t", "speed", "steer", "yaw_rate", "ay", "sideslip")
    header = "time [s],vehicle_speed [km/h],SteeringAngle [deg],gyro_z [rad/s],ay [m/s^2],spare [V]"
    model, log = written(tmp_path, header, *names, factors={"speed": 3.6, "steer": 180.0 / np.pi})
    study = tmp_path / "study.yaml"
    study.write_text(car_template(model, car(4.0), [log], study), encoding="utf-8")
    text = study.read_text(encoding="utf-8")
    assert "    ay: ay [m/s^2]\n" in text and "speed: vehicle_speed [km/h] # guessed by its name" in text
    assert "# columns not used: spare" in text and "needed" not in text
    loaded = load_study(study)
    assert isinstance(loaded.study, CarIdentifyFile)
    found = identify_car_study(loaded)
    values = {p.name: p for p in found.parameters}
    assert abs(values["front_stiffness"].value - TRUTH.cf) < 4.0 * values["front_stiffness"].sigma


def test_units_are_guessed_by_size_and_what_is_missing_is_named(tmp_path: Path) -> None:
    model, log = written(
        tmp_path, "t,speed,yawrate", "t", "speed", "yaw_rate", factors={"speed": 36.0, "yaw_rate": 57.3}
    )
    text = car_template(model, car(0.0), [log], tmp_path / "study.yaml")
    assert "kind: observe" in text and "speed: speed [km/h] # unit guessed: its numbers go up to" in text
    assert (
        "yaw_rate: yawrate [deg/s] # guessed by its name; unit guessed" in text
        and "# not found, and needed: steer" in text
    )
    assert "kind: identify" in car_template(model, car(0.0), [log], tmp_path / "study.yaml", "identify")


def test_an_observer_is_written_for_a_car_that_is_known(tmp_path: Path) -> None:
    model, log = written(tmp_path, "t [s],speed [m/s],steer [rad],yaw_rate [rad/s]", "t", "speed", "steer", "yaw_rate")
    (tmp_path / "study.yaml").write_text(
        car_template(model, car(0.0), [log], tmp_path / "study.yaml"), encoding="utf-8"
    )
    assert isinstance(load_study(tmp_path / "study.yaml").study, CarObserveFile)


def test_several_files_are_left_to_the_user(tmp_path: Path) -> None:
    model, log = written(tmp_path, "t,speed", "t", "speed")
    with pytest.raises(FileError, match="guessed from one log"):
        car_template(model, car(4.0), [log, log], tmp_path / "study.yaml")
