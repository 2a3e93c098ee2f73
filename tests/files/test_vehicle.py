"""Vehicle files: read, written and read again, and faults by key and line."""

from pathlib import Path

import pytest

from veridyn.errors import FileError
from veridyn.files.machine.load import load_model
from veridyn.files.vehicle import load_vehicle, vehicle_text
from veridyn.model.car_machine import prior_of
from veridyn.model.differences import differences

TEXT = """veridyn: 2
vehicle:
  name: small
  mass: 900
  front: 1.0
  rear: 7/5
  tyre: magic
  front_stiffness: {value: 15, sigma: 5, upper: 30}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "car.yaml").write_text(text, encoding="utf-8")
    return folder / "car.yaml"


def test_a_car_of_a_few_lines_and_back(tmp_path: Path) -> None:
    car = load_vehicle(written(tmp_path, TEXT))
    assert (car.name, car.car.tyre, car.parameters["mass"], car.parameters["rear"]) == ("small", "magic", 900.0, 1.4)
    b = prior_of(car, "front_stiffness")
    assert (b.value, b.sigma, b.lower, b.upper) == (15.0, 5.0, 2.0, 30.0)
    again = load_vehicle(written(tmp_path, vehicle_text(car)))
    assert differences(again, car) == ("car",)  # the yaw inertia is stated now
    assert again.car.tyre == car.car.tyre


def test_faults_have_their_lines(tmp_path: Path) -> None:
    wrong = TEXT.replace("mass: 900", "mas: 900").replace("sigma: 5", "sigma: five")
    with pytest.raises(FileError) as error:
        load_vehicle(written(tmp_path, wrong))
    text = str(error.value)
    assert "(line 4): there is no key 'mas' here" in text and "Did you mean 'mass'" in text
    assert "vehicle 'front_stiffness' (line 8)" in text


def test_other_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="this is no vehicle file"):
        load_vehicle(written(tmp_path, "veridyn: 2\nbodies: {}\n"))
    with pytest.raises(FileError, match=r"older format.*\n.*veridyn model convert"):
        load_model(written(tmp_path, TEXT))
