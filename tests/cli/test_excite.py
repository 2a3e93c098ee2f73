import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from identify.smooth_arm import truth
from veridyn.cli.app import app
from veridyn.files.machine.write import save_model
from veridyn.studies.config.study import load_study

STUDY = """
veridyn: 1
kind: excite
name: wrist
seed: 3
model: {file: arm.yaml}
limits:
  actuators:
    q1: {range: [-2, 2], speed: 2, acceleration: 8}
    q2: {range: [-2, 2], speed: 2, acceleration: 8}
    q3: {range: [-2, 2], speed: 2, acceleration: 8}
    q4: {range: [-pi/2, pi/2], speed: 3, acceleration: 8}
motion: {harmonics: 3, frequency: 0.1}
noise: {sigma: {q1: 0.6, q2: 0.6, q3: 0.2, q4: 0.05}, correlation: 0.3, memory: 0.2}
search: {starts: 1, iterations: 15}
rate: 50
periods: 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("excite")
    save_model(truth(), made / "arm.yaml")
    (made / "study.yaml").write_text(STUDY, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def done(folder: Path) -> Result:
    return CliRunner().invoke(app, ["excite", str(folder / "study.yaml")])


def test_a_run_folder_holds_what_a_controller_runs(done: Result, folder: Path) -> None:
    assert done.exit_code == 0, done.output
    run = folder / "runs" / "wrist-001"
    assert done.stdout.splitlines()[-1] == str(run / "report.html")
    names = {
        "trajectory.csv",
        "joint_trajectory.yaml",
        "result.json",
        "parameters.csv",
        "report.html",
        "study.yaml",
        "versions.json",
    }
    assert {p.name for p in run.iterdir()} == names
    rows = list(csv.reader((run / "trajectory.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0][:3] == ["time [s]", "q.q1 [rad]", "q.q2 [rad]"] and rows[0][-1] == "qdd.q4 [rad/s^2]"
    table = np.array(rows[1:], dtype=np.float64)
    t, q, qd, qdd = table[:, 0], table[:, 1:5], table[:, 5:9], table[:, 9:13]
    assert np.diff(t) == pytest.approx(np.full(len(t) - 1, 0.02))
    assert not qd[0].any() and not qdd[0].any()
    assert (np.abs(q[:, :3]) < 2.0).all() and (np.abs(qd[:, :3]) < 2.0).all() and (np.abs(qdd) < 8.0).all()
    # what is called a speed is the rate of what is called a position
    assert np.gradient(q, 0.02, axis=0)[2:-2] == pytest.approx(qd[2:-2], abs=0.01)
    assert q[-500:] == pytest.approx(q[-1000:-500], abs=1e-8)


def test_what_is_promised_is_in_the_result(done: Result, folder: Path) -> None:
    run = folder / "runs" / "wrist-001"
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert (result["study"], result["seed"], set(result["inputs"])) == ("wrist", 3, {"study", "model"})
    assert result["figures"]["base_parameters"] == len(result["parameters"]) == 30
    assert all(row["sigma"] > 0.0 for row in result["parameters"])
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Excitation of" in page and "Predicted deviations" in page and len(page) < 2_000_000
    assert load_study(run / "study.yaml").study == load_study(folder / "study.yaml").study


def test_a_deviation_that_is_too_large_is_told(folder: Path) -> None:
    (folder / "strict.yaml").write_text(STUDY + "accept: {ZZ4: 1e-9}\n", encoding="utf-8")
    found = CliRunner().invoke(app, ["excite", str(folder / "strict.yaml"), "--out", str(folder / "strict")])
    assert found.exit_code == 1 and "missed: ZZ4: the predicted deviation is" in found.output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("q4: {range", "q9: {range", "'q9' is no coordinate of this machine."),
        ("frequency: 0.1", "frequency: 0.3", "does not fit the sampling"),
        ("sigma: {q1", "sigma: {q7", "'q7' is no row"),
        ("search: {", "search: {criterium: d, ", "no key 'criterium'"),
        ("limits:", "limits:\n  force: {q9: 5}", "'q9' is no row"),
        ("limits:", "limits:\n  workspace: {'4': {low: [5, 5, 5], high: [6, 6, 6]}}", "no place to stand at"),
        ("motion: {", "motion: {start: {q1: 0}, ", "no place is given for q2"),
        ("frequency: 0.1", "frequency: [0.3, 0.1]", "the lower one first"),
    ],
)
def test_bad_input_is_answered_with_code_2(folder: Path, old: str, new: str, words: str) -> None:
    (folder / "bad.yaml").write_text(STUDY.replace(old, new), encoding="utf-8")
    found = CliRunner().invoke(app, ["excite", str(folder / "bad.yaml"), "--out", str(folder / "bad")])
    assert found.exit_code == 2 and words in found.output
    assert not list((folder / "bad").glob("*")) if (folder / "bad").exists() else True


def test_show_prints_every_default(folder: Path) -> None:
    found = CliRunner().invoke(app, ["excite", str(folder / "study.yaml"), "--show"])
    assert found.exit_code == 0 and "criterion: d" in found.output and "# Periods to record." in found.output


def words_of(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["excite", *arguments])
    return done.exit_code, " ".join((done.output + done.stderr).split())


def test_commands_of_drives_need_no_study_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, words = words_of("veridyn:leg.yaml", "--kind", "drive", "--ask", "thigh_drive.kp", "--duration", "4")
    assert code == 0, words
    assert "not all limits are those of the model file" in words and "guessed: range, speed" in words
    run = next((tmp_path / "runs").iterdir())
    result = json.loads((run / "result.json").read_text("utf-8"))
    assert result["figures"]["asked"] == 1 and result["figures"]["duration"] == 4 and len(result["warnings"]) == 1
    assert "veridyn excite leg.yaml --kind drive --ask thigh_drive.kp --duration 4" in (run / "report.html").read_text(
        "utf-8"
    )
    with (run / "commands.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    commands = np.array(rows[1:], dtype=float)
    assert rows[0] == ["time [s]", "command.thigh [rad]", "command.calf [rad]"] and len(commands) == 801
    assert np.abs(commands[:, 1:]).max() <= 1.0 and np.abs(np.diff(commands[:, 1:], axis=0)).max() <= 5.0 / 200.0 + 1e-9
    kept = load_study(run / "study.yaml", "excite").study  # what was done can be done again, with other limits
    assert kept.drives.ask == ("thigh_drive.kp",) and set(kept.limits) == {"thigh", "calf"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["veridyn:leg.yaml", "--kind", "drive", "--ask", "mass"], "leg.yaml, drives: 'mass' is no number"),
        (["veridyn:leg.yaml", "--kind", "drive", "--duration", "2"], "leg.yaml, drives: it is too short"),
        (["arm.yaml", "--kind", "drive"], "arm.yaml, --kp: it is not known how its drives follow commands"),
        (["study.yaml", "--kind", "drive"], "this study designs a motion"),
        (["study.yaml", "--kp", "20"], "a study file states everything itself. Found --kp"),
        (["veridyn:delta.yaml", "--kind", "drive", "--kp", "9"], "commands of drives are designed for an open machine"),
    ],
)
def test_drive_options_that_do_not_fit_are_named(
    arguments: list[str], expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, words = words_of(*arguments)
    assert code == 2 and expected in words, words
