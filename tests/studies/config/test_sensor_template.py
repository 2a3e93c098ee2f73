"""A first study file from a mechanism and a log: what is guessed is right, marked, and runs as it is.

The first study of a car: channels by name and unit, guesses marked, and a study that runs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from strangers.walks import SPATIAL, walked
from studies.crane_log import LOG, MECHANISM
from veridyn.errors import FileError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model
from veridyn.files.machine.write import save_model
from veridyn.files.yaml_reader import plain_yaml
from veridyn.machines import spatial
from veridyn.model.machine import Machine
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.papers.fourbar import fourbar_run
from veridyn.studies.config.observe import CarIdentifyFile, CarObserveFile
from veridyn.studies.config.sensor_template import car_template, observe_template
from veridyn.studies.config.study import load_study, parse_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.observer import observe_study

FOURBAR = shipped("veridyn:fourbar.yaml")
TRUTH = Bicycle(duration=20.0, rate=25.0)
DRIVE = TRUTH.drive(3)


def written(folder: Path, mechanism: Path, header: str, rows: np.ndarray):
    log = folder / "run.csv"
    log.write_text(
        header + "\n" + "\n".join(",".join(f"{x:.6g}" for x in row) for row in rows) + "\n", encoding="utf-8"
    )
    text = observe_template(mechanism, load_model(mechanism), log, folder / "new.yaml")
    (folder / "new.yaml").write_text(text, encoding="utf-8")
    return parse_study(plain_yaml(text, "new.yaml")), text


def crane_rows() -> np.ndarray:
    return np.loadtxt(LOG, delimiter=",", skiprows=1)


def fourbar_rows(samples: int = 400) -> np.ndarray:
    log = fourbar_run().log(np.random.default_rng(0))
    return np.column_stack([log["encoder"].t, log["encoder"].values])[:samples]


def test_mechanisms_are_told_from_trees() -> None:
    assert load_model(MECHANISM).formulation == load_model(FOURBAR).formulation == "natural"
    assert load_model(shipped("veridyn:arm.yaml")).formulation == "tree"


def test_the_crane_as_it_is(tmp_path: Path) -> None:
    study, text = written(tmp_path, MECHANISM, "time,trolley,angle", crane_rows())
    assert {k: (c.column, c.unit) for k, c in study.log.columns.items()} == {
        "travel": ("trolley", "mm"),
        "tilt": ("angle", "deg"),
    }
    assert study.filter.unknown == ("motor",) and study.filter.independents == ("x", "swing")
    assert study.start.coordinates == {"x": 0.4687, "swing": 0.02014}
    assert study.settle == pytest.approx(0.5, abs=2e-3) and study.log.file == "run.csv"
    for line in text.splitlines():
        if any(key in line for key in ("  tilt:", "  travel:", "unknown:", "gate:", "coordinates:", "settle:")):
            assert "guessed" in line, line
    found = observe_study(load_study(tmp_path / "new.yaml"))
    assert found.observation.nis().consistent and found.figures["white"] == 1.0


def test_the_four_bar_runs_as_it_is_written(tmp_path: Path) -> None:
    study, text = written(tmp_path, FOURBAR, "t,phi", fourbar_rows())
    assert study.log.columns["encoder"].unit == "rad" and "guessed by what the sensor is on" in text
    with collected_warnings():  # a step as long as that of the log may be told to be too long
        found = observe_study(load_study(tmp_path / "new.yaml"))
    truth = fourbar_run().truth.q[:400, 0]
    assert np.sqrt(((found.observation.q[:, 0] - truth)[40:] ** 2).mean()) < 0.012  # one reading: 2 m · 1° = 0.035 m


@pytest.mark.parametrize(
    ("header", "scale", "column", "unit"),
    [
        ("t,crank angle [deg]", 180.0 / np.pi, "crank angle", "deg"),
        ("t,Encoder", 180.0 / np.pi, "Encoder", "deg"),
        ("stamp,anything", 1.0, "anything", "rad"),
        ("time [ms],crank_encoder_value", 1000.0, "crank_encoder_value", "mrad"),
    ],
)
def test_other_ways_to_name_columns(tmp_path: Path, header: str, scale: float, column: str, unit: str) -> None:
    study, _ = written(tmp_path, FOURBAR, header, fourbar_rows() * np.array([1.0, scale]))
    assert (study.log.columns["encoder"].column, study.log.columns["encoder"].unit) == (column, unit)


def test_a_machine_with_an_inertial_unit(tmp_path: Path) -> None:
    machine = spatial()
    _, log = walked(machine, SPATIAL, np.random.default_rng(0))
    names = ("shoulder_encoder", "base_encoder", *(f"{s}.{a}" for s in ("gyro", "accelerometer") for a in "xyz"))
    rows = np.column_stack([log["gyro.x"].t, *(log[n].values for n in names)])
    header = "t,shoulder,base,gyro_x,gyro_y,gyro_z,acc_x,acc_y,acc_z"
    study, text = written(tmp_path, shipped("veridyn:spatial.yaml"), header, rows)
    assert {k: c.column for k, c in study.log.columns.items()} == dict(zip(names, header.split(",")[1:]))
    assert study.log.columns["accelerometer.z"].unit == "m/s^2" and study.log.columns["gyro.x"].unit == "rad/s"
    assert set(study.filter.unknown) == {"shoulder_motor", "elbow_motor", "base_motor"} and not study.without
    assert text.count("kind: position") == 3


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    study, text = written(
        tmp_path, MECHANISM, "time,trolley travel [mm],fuel,hour", np.c_[crane_rows(), crane_rows()[:, 0]]
    )
    assert study.without == ("tilt",) and list(study.log.columns) == ["travel"]
    assert "# columns not used: fuel, hour" in text
    study, text = written(tmp_path, MECHANISM, "time,a,b", crane_rows())
    assert not study.log.columns and not study.without
    assert "# not found, and needed: travel, tilt" in text and "# columns not used: a, b" in text


def test_a_force_that_is_known(tmp_path: Path) -> None:
    rows = np.c_[crane_rows(), np.zeros(500)]
    study, text = written(tmp_path, MECHANISM, "time,trolley,angle,motor force [N]", rows)
    assert study.log.columns["motor"].unit == "N" and "a force that is known" in text
    assert study.filter.unknown is None


def car(sigma: float) -> Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    tyres = {n: PriorValue(15.0, sigma) for n in ("front_stiffness", "rear_stiffness")}
    return car_machine("my car", {**given, **tyres})


def car_written(folder: Path, header: str, *names: str, factors: dict[str, float] | None = None) -> tuple[Path, Path]:
    rows = np.column_stack([(factors or {}).get(n, 1.0) * DRIVE[n] for n in names])
    np.savetxt(folder / "run.csv", rows, delimiter=",", header=header, comments="")
    save_model(car(4.0), folder / "car.yaml")
    return folder / "car.yaml", folder / "run.csv"


@pytest.mark.filterwarnings("ignore:.*too cautious:veridyn.errors.IdentificationWarning")  # noise is less than stated
def test_a_log_with_units_gives_a_study_that_runs(tmp_path: Path) -> None:
    names = ("t", "speed", "steer", "yaw_rate", "ay", "sideslip")
    header = "time [s],vehicle_speed [km/h],SteeringAngle [deg],gyro_z [rad/s],ay [m/s^2],spare [V]"
    model, log = car_written(tmp_path, header, *names, factors={"speed": 3.6, "steer": 180.0 / np.pi})
    study = tmp_path / "study.yaml"
    study.write_text(car_template(model, car(4.0), [log], study), encoding="utf-8")
    text = study.read_text(encoding="utf-8")
    assert "    ay: ay [m/s^2]\n" in text and "speed: vehicle_speed [km/h] # guessed by its name" in text
    assert "# columns not used: spare" in text and "needed" not in text
    loaded = load_study(study)
    assert isinstance(loaded.study, CarIdentifyFile)
    found = run_identify(loaded)
    values = {p.name: p for p in found.result("car", 0).parameters}
    assert abs(values["front_stiffness"].value - TRUTH.cf) < 4.0 * values["front_stiffness"].sigma


def test_units_are_guessed_by_size_and_what_is_missing_is_named(tmp_path: Path) -> None:
    model, log = car_written(
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
    model, log = car_written(
        tmp_path, "t [s],speed [m/s],steer [rad],yaw_rate [rad/s]", "t", "speed", "steer", "yaw_rate"
    )
    (tmp_path / "study.yaml").write_text(
        car_template(model, car(0.0), [log], tmp_path / "study.yaml"), encoding="utf-8"
    )
    assert isinstance(load_study(tmp_path / "study.yaml").study, CarObserveFile)


@pytest.mark.filterwarnings("ignore:.*too cautious:veridyn.errors.IdentificationWarning")  # noise is less than stated
def test_two_drives_are_two_logs(tmp_path: Path) -> None:
    """They were refused; the first is learnt from as a whole, and the second judges."""
    header, names = (
        "t [s],speed [m/s],steer [rad],yaw_rate [rad/s],ay [m/s^2]",
        ("t", "speed", "steer", "yaw_rate", "ay"),
    )
    model, first = car_written(tmp_path, header, *names)
    rows = np.loadtxt(first, delimiter=",", skiprows=1)
    second = tmp_path / "second.csv"
    np.savetxt(second, rows[: len(rows) // 2], delimiter=",", header=header, comments="")
    study = tmp_path / "study.yaml"
    study.write_text(car_template(model, car(4.0), [first, second], study), encoding="utf-8")
    loaded = load_study(study)
    assert isinstance(loaded.study, CarIdentifyFile) and loaded.study.validation == "second.csv"
    found = run_identify(loaded)
    checked = found.result("car", 0)
    assert {"validation_nis_yaw_rate", "validation_nis_ay"} <= set(checked.figures)
    assert all(0.9 < 2.0 * v["samples"] / len(rows) <= 1.0 for v in checked.validation.values())  # some settle
    assert {"run.csv", "second.csv"} <= set(checked.inputs)
    whole = study.read_text(encoding="utf-8").replace("# training: [0, 60]", f"training: [0, {rows[-1, 0] + 1.0}]")
    study.write_text(whole, encoding="utf-8")
    again = {p.name: p.value for p in run_identify(load_study(study)).result("car", 0).parameters}
    assert again == {p.name: p.value for p in checked.parameters}  # all of the first was learnt from
    study.write_text(whole.replace("second.csv", "third.csv"), encoding="utf-8")
    with pytest.raises(FileError, match="there is no such log"):
        run_identify(load_study(study))


def test_more_drives_than_a_study_takes_are_refused(tmp_path: Path) -> None:
    model, log = car_written(tmp_path, "t,speed", "t", "speed")
    with pytest.raises(FileError, match="learnt from one drive and judged by another"):
        car_template(model, car(4.0), [log, log, log], tmp_path / "study.yaml")
    with pytest.raises(FileError, match="one drive is observed"):
        car_template(model, car(0.0), [log, log], tmp_path / "study.yaml")
