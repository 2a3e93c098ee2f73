"""Studies of a car by the command: a drive by a stranger, parameters with deviations, bands, a simulated drive, bad input by name."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.cli.app import app
from veridyn.files.archive import load
from veridyn.files.machine.load import load_model
from veridyn.model.single_track import prior_of

CAR = Bicycle(duration=40.0, rate=50.0)
CHANNELS = "{speed: 'speed [m/s]', steer: 'steer [rad]', yaw_rate: 'yaw_rate [rad/s]', ay: 'ay [m/s^2]'}"
MODEL = f"""veridyn: 2
formulation: single_track
car:
  mass: {CAR.mass}
  front: {CAR.front}
  rear: {CAR.rear}
  yaw_inertia: {{value: 1700, sigma: 400}}
  front_stiffness: {{value: 11, sigma: 4}}
  rear_stiffness: {{value: 20, sigma: 6}}
  steering_offset: {{value: 0, sigma: 0.01}}
"""
STUDY = f"""veridyn: 1
kind: KIND
name: car
model: {{file: model.yaml, formulation: single_track}}
log:
  file: drive.csv
  time: t [s]
  rate: 25
  columns: {CHANNELS}
training: [0, 25]
# Samples are means of two, so that their noise is 0.71 times that of the log.
noise: {{slip_error: 0.001, bank: 0.001, lateral: 0.02, yaw: 0.02, sensors: {{yaw_rate: 0.0021, ay: 0.071}}}}
"""


@pytest.fixture(scope="module")
def drive() -> dict[str, np.ndarray]:
    return Bicycle(duration=40.0, rate=50.0, offset=0.003, gyro_bias=0.0).drive(11)


def run(folder: Path, kind: str, text: str, drive: dict, exit_code: int = 0, model: str = MODEL) -> tuple[dict, str]:
    write_csv(folder / "drive.csv", drive)
    (folder / "model.yaml").write_text(model, encoding="utf-8")
    (folder / "study.yaml").write_text(text.replace("KIND", kind), encoding="utf-8")
    done = CliRunner().invoke(app, [kind, str(folder / "study.yaml"), "--out", str(folder / "runs")])
    assert done.exit_code == exit_code, done.output
    results = sorted((folder / "runs").glob("*/result.json"))
    return (json.loads(results[-1].read_text(encoding="utf-8")) if results else {}), done.output


def test_a_drive_gives_parameters_with_deviations_and_a_model_file(tmp_path: Path, drive: dict) -> None:
    result, _ = run(tmp_path, "identify", STUDY, drive)
    truth = {"front_stiffness": CAR.cf, "rear_stiffness": CAR.cr, "yaw_inertia": CAR.inertia, "steering_offset": 0.003}
    found = {p["name"]: p for p in result["parameters"]}
    for name, value in truth.items():
        assert abs(found[name]["value"] - value) < 4.0 * found[name]["sigma"], name
        assert found[name]["sigma"] < 0.2 * abs(value), name
    assert 0.7 < result["figures"]["validation_nis_ay"] < 1.4
    car = load_model(tmp_path / "runs" / "car-001" / "identified.yaml")
    assert car.parameters["front_stiffness"] == pytest.approx(found["front_stiffness"]["value"])
    assert prior_of(car, "front_stiffness").sigma == pytest.approx(found["front_stiffness"]["sigma"], rel=1e-3)
    page = (tmp_path / "runs" / "car-001" / "report.html").read_text(encoding="utf-8")
    assert "front_stiffness" in page and "Not shown" not in page


@pytest.mark.parametrize("word", ["", pytest.param(", formulation: single_track", marks=pytest.mark.slow)])
def test_it_is_observed_with_bands_from_the_identified_file(tmp_path: Path, drive: dict, word: str) -> None:
    """And from the fit itself, whose study may name the formulation, which is slow, or leave it to the fit."""
    learned, _ = run(tmp_path, "identify", STUDY, drive)
    tail = STUDY.replace("training: [0, 25]\n", "").replace("model.yaml", "runs/car-001/identified.yaml")
    reference = "reference: {file: drive.csv, time: 't [s]', columns: {sideslip: 'sideslip [rad]'}}\n"
    text = tail.replace("  rate: 25", "  rate: 25\n  start: 25")
    result, output = run(tmp_path, "observe", text + reference + "accept: {rms_sideslip: [0, 0.003]}\n", drive)
    figures = result["figures"]
    assert figures["rms_sideslip"] < 0.003 and figures["share_inside_two_sigma"] > 0.9
    assert "a linear filter" not in output
    states = (tmp_path / "runs" / "car-002" / "states.csv").read_text(encoding="utf-8").splitlines()
    assert "virtual.sideslip.sigma [rad]" in states[0] and len(states) > 300
    assert "sideslip angle" in (tmp_path / "runs" / "car-002" / "report.html").read_text(encoding="utf-8").lower()
    fit = load(tmp_path / "runs" / "car-001" / "fit.json")
    assert {p["name"]: p["value"] for p in learned["parameters"]}.items() >= dict(zip(fit.names, fit.values)).items()
    own = text.replace("file: runs/car-001/identified.yaml", "fit: runs/car-001")
    again, _ = run(tmp_path, "observe", own.replace(", formulation: single_track", word) + reference, drive)
    assert again["figures"]["rms_sideslip"] == pytest.approx(figures["rms_sideslip"], rel=1e-9)


def test_frozen_parameters_and_missed_limits_are_reported(tmp_path: Path) -> None:
    straight = Bicycle(duration=12.0, amplitude=2e-5).drive(3)
    text = STUDY.replace("training: [0, 25]", "estimate: [rear_stiffness]\naccept: {frozen: [0, 0]}")
    result, output = run(tmp_path, "observe", text, straight, exit_code=1)
    assert result["figures"]["frozen"] == 1.0
    assert "'rear_stiffness' is frozen" in result["warnings"][0]
    assert "missed: frozen: 1" in output


def test_a_steering_wheel_angle_and_an_offset_of_clocks_are_named(tmp_path: Path, drive: dict) -> None:
    """Steering wheel angles 15 times those of the wheels; positions 0.2 s late."""
    late = {n: np.interp(drive["t"] - 0.2, drive["t"], drive[n]) for n in ("east", "north")}
    wrong = {**drive, "steer": 15.0 * drive["steer"], **late}
    places = "east: 'east [m]', north: 'north [m]', "
    text = STUDY.replace("training: [0, 25]\n", "").replace("{speed:", "{" + places + "speed:")
    result, output = run(tmp_path, "observe", text, wrong)
    said = "\n".join(result["warnings"])
    assert "the angle of the steering wheel" in said and "steering_ratio: {value: 1" in said
    assert "the clocks of the positions and of the inertial unit differ" in said
    assert result["figures"]["clock_offset"] == pytest.approx(0.2, abs=0.03)
    assert result["figures"]["suspicions"] == 2.0
    assert "warning:" in output


def test_degrees_and_minutes_are_refused_by_name(tmp_path: Path, drive: dict) -> None:
    metres = 111_194.9  # of a degree
    lat, lon = 37.5 + drive["north"] / metres, -122.3 + drive["east"] / metres
    minutes = {n: np.trunc(v) * 100.0 + 60.0 * np.fmod(v, 1.0) for n, v in (("lat", lat), ("lon", lon))}
    text = STUDY.replace("{speed:", "{latitude: 'lat [deg]', longitude: 'lon [deg]', speed:")
    _, output = run(tmp_path, "observe", text, {**drive, **minutes}, exit_code=2)
    assert "degrees and minutes, ddmm.mmmm" in output and "line 9" in output


@pytest.mark.parametrize("kind", ["identify", *(pytest.param(k, marks=pytest.mark.slow) for k in ("observe", "learn"))])
def test_exchanged_axles_are_named_where_the_tyres_are_known(tmp_path: Path, drive: dict, kind: str) -> None:
    """By identify, and, slow, by observe with and without a part of the log to learn from, which does not name right ones."""
    right = MODEL.replace("{value: 11, sigma: 4}", "{value: 14, sigma: 1.4}").replace(
        "{value: 20, sigma: 6}", "{value: 16, sigma: 1.6}"
    )
    wrong = right.replace(f"front: {CAR.front}", f"front: {CAR.rear}").replace(
        f"rear: {CAR.rear}", f"rear: {CAR.front}", 1
    )
    told = "front and the rear axle seem to be exchanged"
    if kind == "identify":
        result, _ = run(tmp_path, "identify", STUDY, drive, model=wrong)
        assert any(told in w for w in result["warnings"])
        return
    extent = STUDY if kind == "learn" else STUDY.replace("training: [0, 25]\n", "")
    result, output = run(tmp_path, "observe", extent, drive, model=wrong)
    assert any(told in w for w in result["warnings"]) and told in output
    result, _ = run(tmp_path, "observe", STUDY.replace("training: [0, 25]\n", ""), drive, model=right)
    assert not result["warnings"]


def test_a_simulated_drive_is_identified_by_the_study_beside_it(tmp_path: Path) -> None:
    """The true values are those of the model file. The positions have a clock of their own."""
    (tmp_path / "model.yaml").write_text(MODEL, encoding="utf-8")
    course = "{speed: 20 + 2*sin(0.3*t), steer: 0.03*sin(0.9*t) + 0.02*sin(2.3*t)}"
    text = f"veridyn: 1\nkind: simulate\nname: drive\nseed: 4\nmodel: {{file: model.yaml}}\ninputs: {{formulas: {course}}}\n"
    places = "sensors: {east: {noise: 0.05, rate: 5}, north: {noise: 0.05, rate: 5}}\n"
    (tmp_path / "simulate.yaml").write_text(f"{text}duration: 40\nrate: 25\n{places}", encoding="utf-8")
    done = CliRunner().invoke(app, ["simulate", str(tmp_path / "simulate.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "runs" / "drive-001"
    assert {"log.csv", "log-2.csv", "truth.csv", "identify.yaml", "report.html"} <= {f.name for f in folder.iterdir()}
    made = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert made["figures"]["coarser_difference"] < 1e-6 and made["figures"]["channels"] == 7.0
    assert {p["name"]: p["truth"] for p in made["parameters"]}["mass"] == CAR.mass
    done = CliRunner().invoke(app, ["identify", str(folder / "identify.yaml"), "--out", str(tmp_path / "found")])
    assert done.exit_code == 0, done.output
    found = json.loads((next((tmp_path / "found").iterdir()) / "result.json").read_text(encoding="utf-8"))
    for name, value in (("front_stiffness", 11.0), ("rear_stiffness", 20.0), ("yaw_inertia", 1700.0)):
        row = next(p for p in found["parameters"] if p["name"] == name)
        assert abs(row["value"] - value) < 4.0 * row["sigma"] and row["sigma_percent"] < 5.0, name
    assert found["figures"]["suspicions"] == 0.0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mass:", "mas:", "there is no key 'mas' here"),
        ("speed: 'speed [m/s]'", "speed: 'speed [km]'", "its unit is not that of this channel"),
        ("file: drive.csv", "file: nowhere.csv", "there is no such log"),
        ("speed:", "velocity:", "'velocity' is no channel of a car"),
        ("training: [0, 25]", "training: [100, 200]", "fewer than fifty samples"),
        (f"front: {CAR.front}", "front: 0.1", "far nearer to one axle"),
        ("file: model.yaml", "file: other.yaml", "there is no such file"),
        ("sensors: {yaw_rate", "sensors: {yawrate", "the car has no sensor 'yawrate'"),
        ("sigma: 400}", "lower: 1000}", "'yaw_inertia' has no prior deviation"),
    ],
)
def test_what_is_wrong_with_a_study_is_named(tmp_path: Path, drive: dict, old: str, new: str, words: str) -> None:
    study, model = STUDY.replace(old, new), MODEL.replace(old, new)
    _, output = run(tmp_path, "identify", study, drive, exit_code=2, model=model)
    assert words in output


def _coasting(throttle_off: bool) -> dict[str, np.ndarray]:
    """A car of 1500 kg that is driven and rolls by turns, −a = 0.13 + 0.0003 V² while it rolls."""
    rng, t = np.random.default_rng(5), np.arange(0.0, 200.0, 0.02)
    v, a, rolls = np.full(len(t), 12.0), np.zeros(len(t)), (t % 50.0 > 15.0) & throttle_off
    for k in range(len(t) - 1):
        a[k] = -0.13 - 3e-4 * v[k] ** 2 if rolls[k] else 1.2 - 0.02 * v[k]
        v[k + 1] = v[k] + 0.02 * a[k]
    throttle = np.where(rolls, 0.0, 0.4)
    throttle[0] = 0.0 if throttle_off else 0.6
    brake = np.where(t > 199.9, 0.3, 0.0)
    noisy = a + 0.05 * rng.standard_normal(len(t))
    return {"t [s]": t, "speed [m/s]": v, "ax [m/s^2]": noisy, "throttle [1]": throttle, "brake [1]": brake}


ROLLING = "veridyn: 2\ncar: {mass: 1500, front: 1.2, rear: 1.4}\n"
COASTING = """veridyn: 1
kind: identify
name: coasting
model: {file: model.yaml, formulation: single_track}
log:
  file: drive.csv
  time: t [s]
  columns: {speed: "speed [m/s]", ax: "ax [m/s^2]", throttle: 'throttle [1]', brake: 'brake [1]'}
"""


def test_drag_shows_in_an_ordinary_drive_where_it_coasts(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "identify", COASTING, _coasting(True), model=ROLLING)
    found = {p["name"]: p for p in result["parameters"]}
    assert abs(found["drag"]["value"] - 0.45) < 4.0 * found["drag"]["sigma"] and found["drag"]["sigma"] < 0.06
    assert found["rolling"]["value"] == pytest.approx(0.13, abs=4.0 * found["rolling"]["sigma"])
    car = load_model(tmp_path / "runs" / "coasting-001" / "identified.yaml")
    assert car.parameters["drag"] == pytest.approx(found["drag"]["value"], rel=1e-6)


def test_a_drive_that_never_coasts_does_not_show_drag(tmp_path: Path) -> None:
    result, output = run(tmp_path, "identify", COASTING, _coasting(False), model=ROLLING)
    assert any("not shown by this drive: drag: the car hardly ever coasts" in w for w in result["warnings"])
    assert "drag" in output


@pytest.mark.parametrize("wrong", [{"speed": 3.6}, {"ay": -1.0}, {"yaw_rate": 57.3}], ids=str)
def test_innovations_far_larger_than_stated_are_a_suspicion(tmp_path: Path, drive: dict, wrong: dict) -> None:
    """km/h as m/s, a sign, degrees: no check names the cause, and NIS of thousands passed in silence."""
    spoilt = {**drive, **{name: factor * drive[name] for name, factor in wrong.items()}}
    result, output = run(tmp_path, "observe", STUDY.replace("training: [0, 25]\n", ""), spoilt)
    assert result["figures"]["nis"] > 1000.0 and result["figures"]["suspicions"] == 1.0
    assert "the filter is too sure of itself" in result["warnings"][0] and "units and signs" in result["warnings"][0]
    assert "too sure of itself" in output


def test_a_drive_as_the_car_expects_it_raises_no_suspicion(tmp_path: Path, drive: dict) -> None:
    """With considered parameters, whose deviations make the filter cautious, and with those of a training span."""
    for text in (STUDY, STUDY.replace("training: [0, 25]\n", "")):
        result, _ = run(tmp_path, "observe", text, drive)
        assert result["figures"]["suspicions"] == 0.0 and result["warnings"] == []
