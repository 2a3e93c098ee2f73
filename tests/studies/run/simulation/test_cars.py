"""From a study to a car and what its driver does."""

from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from studies.arm_simulation import STEERED, written
from veridyn.errors import CapabilityError, FileError
from veridyn.files.machine.load import load_model
from veridyn.simulate.car import Steered
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import simulate_study
from veridyn.studies.run.simulation.cars import CarSetup, car_setup

MODEL = "veridyn: 2\nname: saloon\ncar: {mass: 1200, front: 1.1, rear: 1.5}\n"


def setup(folder: Path, text: str) -> CarSetup:
    written(folder, MODEL, "car.yaml")
    return car_setup(load_study(written(folder, text)))


def test_speed_steering_and_bank_over_time(tmp_path: Path) -> None:
    text = STEERED.replace("speed: 20", "bank: 0.02*step(t - 1), speed: 20 - t")
    drive = setup(tmp_path, text + "start: {rates: {yaw_rate: 0.1}}\nintegrator: {step: 0.01}\n").drive
    speed, bank = drive.speed, drive.bank
    assert callable(speed) and callable(bank) and speed(3.0) == 17.0 and (bank(0.9), bank(1.1)) == (0.0, 0.02)
    assert drive.start == (0.0, 0.1) and drive.step == 0.01 and (drive.duration, drive.rate) == (4.0, 25.0)


def test_the_slope_of_a_table_of_speeds_is_known_at_its_ends(tmp_path: Path) -> None:
    """v = 20 − 0.5 t: an acceleration of −0.5 m/s² from the first sample to the last."""
    t = np.arange(5.0)
    rows = np.column_stack([t, 20.0 - 0.5 * t])
    np.savetxt(tmp_path / "speeds.csv", rows, delimiter=",", header="t [s],v [m/s]", comments="")
    table = "file: speeds.csv, time: 't [s]', columns: {speed: 'v [m/s]'}"
    text = STEERED.replace("{speed: 20, ", "{").replace("inputs: {", f"inputs: {{{table}, ")
    setup(tmp_path, text)
    run = simulate_study(load_study(written(tmp_path, text)))
    np.testing.assert_allclose(run.truth["ax"].values, -0.5, rtol=1e-9)
    with pytest.raises(FileError, match="a speed that jumps"):
        setup(tmp_path, text.replace("inputs: {", "inputs: {between: hold, "))


def test_its_log_is_that_of_the_verb(tmp_path: Path) -> None:
    setup(tmp_path, STEERED)
    run = simulate_study(load_study(written(tmp_path, STEERED + "seed: 7\n")))
    drive = Steered(4.0, 25.0, speed=20.0, steer=lambda t: 0.05 * np.sin(0.9 * t))
    log = vd.simulate(load_model(tmp_path / "car.yaml"), drive, rng=np.random.default_rng(7))
    assert set(run.log.names) == set(log.names)
    for name in log.names:
        np.testing.assert_allclose(run.log[name].values, log[name].values, rtol=1e-9, atol=1e-12)


def test_a_machine_of_joints_is_no_car(tmp_path: Path) -> None:
    text = STEERED.replace("{file: car.yaml}", "{file: 'veridyn:crane.yaml', formulation: single_track}")
    with pytest.raises(CapabilityError, match="no car of a few numbers"):
        setup(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed: 20, ", "", "driven by its speed, and nothing says what it is"),
        ("speed: 20", "speed: 20, ax: 1", "'ax' is no input of this machine"),
        ("rate: 25", "rate: 25\nmotion: {file: motion.csv}", "has no bodies and joints"),
        ("rate: 25", "rate: 25\nstart: {coordinates: {x: 1}}", "starts at the origin, heading east"),
        ("rate: 25", "rate: 25\nstart: {rates: {speed: 1}}", "no 'speed' to start with(.|\n)*lateral_speed"),
        ("rate: 25", "rate: 25\nintegrator: {name: LSODA}", "a drive is integrated by RK4"),
        ("{file: car.yaml}", "{file: car.yaml, priors: forget}", "has no bodies and joints"),
        ("{file: car.yaml}", "{file: lorry.yaml}", "there is no such file"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        setup(tmp_path, STEERED.replace(old, new))
