"""Real cars as study files: sideslip of a race car, steering of a car on a motorway, wheel scales and gaps, roll gradients, and a
multibody car beside a single track."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from real_logs import folder
from veridyn.cli.app import app
from veridyn.files.machine.load import load_model

STUDIES = Path(__file__).parents[2] / "examples" / "studies"


def run(kind: str, study: str, data: str, out: Path) -> dict:
    root = folder(data).parent
    done = CliRunner().invoke(app, [kind, str(STUDIES / f"{study}.yaml"), "--out", str(out), "--data", str(root)])
    assert done.exit_code == 0, done.output
    return json.loads((out / f"{study}-001" / "result.json").read_text(encoding="utf-8"))


def test_the_sideslip_of_a_race_car(tmp_path: Path) -> None:
    """Tyres from the first 100 s, sideslip on 100–350 s: at most 0.34° rms, below a linear filter, 90–99 % inside its own 2σ."""
    result = run("observe", "ferrari", "ferrari_250lm", tmp_path)
    figures = result["figures"]
    linear = ("rms_sideslip_linear", "rms_sideslip_linear_identified")
    print({n: figures[n] for n in ("rms_sideslip", "share_inside_two_sigma", *linear)})
    assert np.degrees(figures["rms_sideslip"]) <= 0.34 < np.degrees(figures["rms_sideslip_linear"])
    assert figures["rms_sideslip"] < figures["rms_sideslip_linear_identified"]
    assert 0.90 <= figures["share_inside_two_sigma"] <= 0.99
    for p in result["parameters"]:
        if p["name"] in ("front_stiffness", "rear_stiffness", "front_friction", "rear_friction"):
            assert p["sigma_percent"] < 10.0
    text = (STUDIES / "ferrari.yaml").read_text(encoding="utf-8")
    assert "Filt" not in text and text.count("beta") == 1  # the reference alone


@pytest.mark.slow
def test_a_car_on_a_motorway_and_what_it_cannot_show(tmp_path: Path) -> None:
    result = run("identify", "rav4", "rav4_comma", tmp_path)
    found = {p["name"]: p for p in result["parameters"]}
    ratio = found["steering_ratio"]
    assert abs(ratio["value"] - 14.3) < 2.5 * ratio["sigma"]  # 14.3 : 1, the maker's data sheet
    assert ratio["sigma"] < 4.0 and found["steering_offset"]["sigma"] < 0.006
    assert found["rear_stiffness"]["sigma_percent"] < 30.0
    said = "\n".join(result["warnings"])
    for name in ("mass", "front_friction", "rear_friction"):
        assert f"not shown by this drive: {name}:" in said
    wheels = np.mean([found[f"wheel_{w}_scale"]["value"] for w in ("rl", "rr")])
    assert wheels == pytest.approx(1.0, abs=0.005)


def test_wheel_scales_of_one_half_hold_on_the_other(tmp_path: Path) -> None:
    """Within 0.5 %; the rear wheels' scale was found to be 1.000 by others."""
    result = run("identify", "indy_wheels", "indy_av21", tmp_path)
    errors = [v for n, v in result["figures"].items() if n.endswith("_scale_error_percent")]
    assert len(errors) == 4 and max(errors) < 0.5
    found = {p["name"]: p["value"] for p in result["parameters"]}
    assert found["wheel_rl_scale"] == pytest.approx(1.0, abs=0.002) == pytest.approx(found["wheel_rr_scale"], abs=0.002)


def test_speed_and_heading_through_gaps(tmp_path: Path) -> None:
    figures = run("observe", "indy", "indy_av21", tmp_path)["figures"]
    assert figures["rms_speed_gap"] < 0.1 and figures["rms_heading_gap"] < 0.04
    assert figures["share_inside_two_sigma_speed_gap"] > 0.9 and figures["share_inside_two_sigma_heading_gap"] > 0.9
    assert figures["suspicions"] == 0  # a study that is shipped does not contradict its own checks
    assert abs(figures["clock_offset"]) < 3.0 * figures["clock_offset_sigma"]


def test_roll_gradients_of_a_formula_car(tmp_path: Path) -> None:
    result = run("identify", "formula", "formula_suspension", tmp_path)
    found = {p["name"]: p for p in result["parameters"]}
    for axle in ("front", "rear"):
        assert found[f"{axle}_roll_gradient"]["value"] > 0.0 and found[f"{axle}_roll_gradient"]["sigma_percent"] < 10.0
    assert "front_roll_share" not in found and any("axle_rates" in w for w in result["warnings"])


@pytest.mark.slow
def test_a_multibody_car_beside_a_single_track(tmp_path: Path) -> None:
    """Sensors withheld for 30 s and predicted, by both on the same log: the multibody car is better in place and worse in yaw rate."""
    multibody = run("observe", "indy_four_wheels", "indy_av21", tmp_path)["figures"]
    single = run("observe", "indy_yaw", "indy_av21", tmp_path)["figures"]
    place = np.hypot(multibody["rms_withheld_gps.x"], multibody["rms_withheld_gps.y"])
    assert (
        place < np.hypot(single["rms_east_gap"], single["rms_north_gap"]) and place < 4.0
    )  # m; 2.5 and 4.6 were found
    rate = np.sqrt(np.mean(recorded_yaw_rate(340.0, 370.0) ** 2))  # rad/s, 0.22
    assert single["rms_withheld_yaw_rate"] < multibody["rms_withheld_gyro.z"] < 0.2 * rate
    assert multibody["share_inside_two_sigma_withheld_gyro.z"] > single["share_inside_two_sigma_withheld_yaw_rate"]
    assert multibody["rms_withheld_speed.x"] < 0.2 and multibody["rms_withheld_heading"] < 0.06  # m/s, rad


def recorded_yaw_rate(low: float, high: float) -> np.ndarray:
    rows = np.loadtxt(folder("indy_av21") / "Putnam_park2023_run4_2.csv", delimiter=",")
    t = rows[:, 0] - rows[0, 0]
    return rows[(t >= low) & (t <= high), 7]


def test_the_multibody_car_weighs_what_its_team_says() -> None:
    """790 kg in eleven bodies: chassis, four hubs, two knuckles without mass, four wheels."""
    car = load_model(STUDIES / "indy_four_wheels_model.yaml")
    assert sum(link.inertia[9] for link in car.links if link.inertia is not None) == pytest.approx(790.0)
    assert car.prescribed == ("steer",) and len(car.links) == 11
