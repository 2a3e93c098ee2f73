import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from veridyn.cli.app import app
from veridyn.errors import DataWarning, Fault, SimulationError, warn
from veridyn.machines import arm


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "runs"


@pytest.fixture(scope="module")
def done(out: Path) -> Result:
    return CliRunner().invoke(app, ["demo", "arm", "--out", str(out), "--seed", "3", "--quick"])


def test_the_demo_ends_well_and_its_last_line_is_the_report(done: Result, out: Path) -> None:
    assert done.exit_code == 0, done.output
    report = out / "arm-001" / "report.html"
    assert done.stdout.splitlines()[-1] == str(report)
    assert sorted(p.name for p in report.parent.iterdir()) == ["parameters.csv", "report.html", "result.json"]
    assert "This was a quick run." in done.stdout


def test_the_result_says_how_it_was_made_and_what_was_found(done: Result, out: Path) -> None:
    result = json.loads((out / "arm-001" / "result.json").read_text(encoding="utf-8"))
    assert (result["study"], result["seed"], result["quick"]) == ("demo arm", 3, True)
    assert set(result["inputs"]) == {"model", "training log", "validation log"}
    figures = result["figures"]
    # 86 standard parameters; 60 base parameters of this arm with its friction, motor inertias and coupled wrist.
    assert (figures["parameters_estimated"], figures["base_parameters"]) == (86, 60)
    assert figures["base_parameters_excited"] == 60
    assert figures["well_identified"] >= 25
    assert figures["worst_cross_validation_percent"] < 15
    assert figures["share_inside_two_sigma"] > 0.8
    assert len(result["parameters"]) == 60
    assert "veridyn demo arm --seed 3 --quick" in (out / "arm-001" / "report.html").read_text(encoding="utf-8")


def test_a_demo_that_fails_leaves_no_folder_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        warn(DataWarning, Fault("the encoder slips.", "log"))
        raise SimulationError(Fault("it did not reach its end.", "arm"))

    monkeypatch.setattr(arm, "demonstration", fail)
    failed = CliRunner().invoke(app, ["demo", "arm", "--out", str(tmp_path)])
    assert failed.exit_code == 2
    assert failed.stderr == "warning: log: the encoder slips.\nSimulationError: arm: it did not reach its end.\n"
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_folder_is_noticed_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arm, "demonstration", None)
    (tmp_path / "runs").write_text("a file")
    failed = CliRunner().invoke(app, ["demo", "arm", "--out", str(tmp_path / "runs")])
    assert failed.exit_code == 2
    assert "no run folder can be made there" in failed.stderr


@pytest.mark.slow
def test_the_car_ends_well(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "car", "--out", str(tmp_path), "--seed", "1", "--quick"])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "car-001" / "result.json").read_text(encoding="utf-8"))
    assert result["figures"]["parameters_estimated"] == 33 and result["figures"]["worst_cross_validation_percent"] < 5.0
    assert done.stdout.splitlines()[-1] == str(tmp_path / "car-001" / "report.html")


def test_drives_of_a_leg_from_its_encoders(tmp_path: Path) -> None:
    """Its log has no torques; what the log cannot separate is named, and no number of it stands in the result."""
    done = CliRunner().invoke(app, ["demo", "drives", "--out", str(tmp_path), "--quick"])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "drives-001"
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    figures = result["figures"]
    assert figures["rms_held_out"] < 0.05 * figures["rms_held_out_defaults"]
    assert figures["rms_validation"] < 5e-4  # rad; noise and quantum of the encoders leave 1.2e-4
    assert figures["share_inside_two_sigma"] >= 0.7
    assert result["quick"] and {"Ia_thigh", "thigh_drive.kp"} <= {p["name"] for p in result["parameters"]}
    assert not any(p["name"].endswith(".kd") for p in result["parameters"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(title in page for title in ("Measured less simulated", "The machine on held-out data", "held out"))
    assert (folder / "replay.csv").is_file() and (folder / "model.yaml").is_file()
