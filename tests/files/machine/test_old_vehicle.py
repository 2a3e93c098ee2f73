"""Vehicle files of the older format become cars of today's, and keep what they say."""

import pytest

from veridyn.errors import FileError, VeridynError
from veridyn.files.machine.old_vehicle import has_vehicle, parse_vehicle
from veridyn.model.single_track import PriorValue, prior_of, uncertain

TEXT = """veridyn: 2
vehicle:
  name: small
  mass: 900
  front: 1.0
  rear: 7/5
  tyre: magic
  height: {value: 0.5, upper: 0.7}
  front_stiffness: {value: 15, sigma: 5, upper: 30}
"""


def test_a_vehicle_file_says_the_same_as_a_car() -> None:
    assert has_vehicle(TEXT, "old.yaml") and not has_vehicle("veridyn: 2\nbodies: []\n", "new.yaml")
    car = parse_vehicle(TEXT, "old.yaml")
    assert (car.name, car.formulation, car.car.tyre, car.parameters["rear"]) == ("small", "single_track", "magic", 1.4)
    assert prior_of(car, "front_stiffness") == PriorValue(15.0, 5.0, 2.0, 30.0)
    assert uncertain(car) == ("front_stiffness",) and prior_of(car, "height").upper == 0.7
    assert car.parameters.states[car.parameters.index("height")] == "known"


def test_a_study_with_a_vehicle_has_the_car_too() -> None:
    study = "veridyn: 1\nkind: observe\nname: drive\nvehicle: {mass: 900, front: 1.0, rear: 1.4}\nlog: {}\n"
    assert parse_vehicle(study, "study.yaml").name == "drive"
    with pytest.raises(FileError, match=r"names a vehicle file(.|\n)*Convert the file"):
        parse_vehicle("kind: observe\nvehicle: car.yaml\n", "study.yaml")


def test_faults_have_the_lines_of_the_old_file() -> None:
    with pytest.raises(VeridynError) as error:
        parse_vehicle(TEXT.replace("mass: 900", "mas: 900").replace("sigma: 5", "sigma: five"), "old.yaml")
    assert "(line 4): there is no key 'mas' here" in str(error.value)
    assert "car 'front_stiffness' (line 9)" in str(error.value)
