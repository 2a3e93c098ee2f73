"""A study of drives from files to figures, on a leg that MuJoCo simulated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from tests.identify.drives.mujoco_leg import JOINTS, KD, KP, TRUE_KP, TRUTH, leg, recorded
from typer.testing import CliRunner

import veridyn as vd
from veridyn.cli.app import app
from veridyn.files.machine.load import load_model
from veridyn.studies.config.excite_drives import DriveExciteFile
from veridyn.studies.config.study import load_study

STUDY = f"""veridyn: 1
kind: identify
name: leg
model: {{file: leg.xml, base: fixed}}
log:
  time: t [s]
  columns:
    command.thigh: thigh_cmd [rad]
    command.calf: calf_cmd [rad]
    position.thigh: thigh_enc [deg]
    position.calf: calf_enc [deg]
training: [a.csv]
validation: [{{file: b.csv, end: 3}}]
drives: {{kp: {KP}, kd: {KD}, until: 5, friction: coulomb}}
accept: {{rms_held_out: 0.001, rms_validation: 0.001}}
"""


def csv(log: vd.Experiment, file: Path) -> None:
    """Commands in rad and encoders in degrees, as the study reads them."""
    rows = [log.channels[f"command.{j}"].values for j in JOINTS]
    rows += [np.degrees(log.channels[f"position.{j}"].values) for j in JOINTS]
    columns = np.stack([log.channels["command.thigh"].t, *rows], axis=1)
    head = "t,thigh_cmd,calf_cmd,thigh_enc,calf_enc"
    np.savetxt(file, columns, delimiter=",", header=head, comments="", fmt="%.10g")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("drives")
    leg(out)
    for name, seed in (("a", 0), ("b", 1)):
        csv(recorded(6.0, seed), out / f"{name}.csv")
    return out


def run(folder: Path, text: str, out: Path):
    study = folder / f"study{abs(hash(text))}.yaml"
    study.write_text(text, "utf-8")
    return CliRunner().invoke(app, ["identify", str(study), "--out", str(out)])


def test_from_files_to_figures(folder: Path, tmp_path: Path):
    done = run(folder, STUDY, tmp_path)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "leg-001" / "result.json").read_text("utf-8"))
    figures = result["figures"]
    assert figures["rms_held_out"] < 0.05 * figures["rms_held_out_defaults"]
    assert figures["rms_validation"] < 1e-3 and figures["cpu_seconds"] > 0.0
    named = {p["name"]: p["value"] for p in result["parameters"]}
    assert named["Ia_thigh"] == pytest.approx(TRUTH["i0"], rel=0.05)
    assert "thigh_drive.kd" not in named and any("not determined" in w for w in result["warnings"])
    made = load_model(tmp_path / "leg-001" / "model.yaml")
    gains = {c.on: c.constant("kp") for c in made.controllers}
    assert [gains[j] for j in JOINTS] == pytest.approx(TRUE_KP, rel=0.02)
    lines = (tmp_path / "leg-001" / "replay.csv").read_text("utf-8").splitlines()
    assert lines[0] == "log,t,thigh.measured,thigh.simulated,calf.measured,calf.simulated"
    assert len(lines) == 1 + 1201 + 601
    page = (tmp_path / "leg-001" / "report.html").read_text("utf-8")
    assert "What the log does not determine" in page and "Measured and simulated" in page


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("enc [deg]", "enc [rad]", 2, "degrees"),
        ("command.calf: calf_cmd", "command.knee: calf_cmd", 2, "command.calf"),
        ("friction: coulomb", "friction: lugre", 2, "friction"),
        ("friction: coulomb", "estimate: [mass]", 2, "'mass' cannot be estimated"),
        ("until: 5, ", "", 2, "rms_held_out needs drives"),
        ("training:", "rows: all\ntraining:", 2, "no rows beside drives"),
        ("until: 5, ", "until: 5, runs: [{}, {kd: 2}], ", 2, "one for each training log"),
        ("until: 5, ", "until: 5, runs: [{model: {file: none.xml}}], ", 2, "there is no such model file"),
    ],
)
def test_faults_are_named(folder: Path, tmp_path: Path, old: str, new: str, code: int, message: str):
    assert old in STUDY
    done = run(folder, STUDY.replace(old, new), tmp_path)
    assert done.exit_code == code, done.output
    assert message in " ".join((done.output + done.stderr).split())


def test_a_limit_that_is_missed(folder: Path, tmp_path: Path):
    few = STUDY.replace("rms_held_out: 0.001", "rms_held_out: 0.000001").replace(
        "friction: coulomb", "friction: coulomb, estimate: [coulomb, viscous]"
    )
    done = run(folder, few, tmp_path)
    assert done.exit_code == 1 and "at most 1e-06 is accepted" in " ".join((done.output + done.stderr).split())


def test_logs_with_other_gains_and_loads_join(folder: Path, tmp_path: Path):
    """kd and viscous friction, which one log leaves open, as in tests/identify/drives/test_drive_method.py; the truth is MuJoCo's."""
    (folder / "loaded").mkdir()
    leg(folder / "loaded", 0.6)
    csv(recorded(6.0, 1, kd=2.0, mass=0.6), folder / "c.csv")
    runs = "runs: [{}, {kd: 2, model: {file: loaded/leg.xml, base: fixed}}], "
    text = STUDY.replace("until: 5, ", "until: 5, " + runs).replace("training: [a.csv]", "training: [a.csv, c.csv]")
    done = run(folder, text, tmp_path)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "leg-001" / "result.json").read_text("utf-8"))
    named = {p["name"]: p["value"] for p in result["parameters"]}
    assert [named[f"{j}_drive.kd"] for j in JOINTS] == pytest.approx([KD, KD], rel=0.03)  # MuJoCo's friction creeps
    assert "model_2" in result["inputs"]
    figures = result["figures"]
    for name in ("rms_fitted", "rms_held_out"):  # of both logs, each under its own gains and load
        each = [figures[f"{name}_log_{k}"] for k in (1, 2)]
        assert max(each) < 1e-3  # rad: noise of 1e-4, and friction that creeps in MuJoCo
        assert figures[name] == pytest.approx(np.sqrt(np.mean(np.square(each))), rel=1e-6)
        assert all(figures[f"{name}_defaults_log_{k}"] > 10 * x for k, x in enumerate(each, 1))
    assert result["validation"]["calf"]["samples"] == 2 * 201 + 601
    lines = (tmp_path / "leg-001" / "replay.csv").read_text("utf-8").splitlines()
    logs = [line.split(",")[0] for line in lines[1:]]
    assert {name: logs.count(name) for name in dict.fromkeys(logs)} == {
        "a.csv": 1201,
        "c.csv": 1201,
        "b.csv": 601,
    }


def test_a_fit_that_is_worse_than_the_file_says_so(tmp_path: Path):
    """Drives at a limit of 2 N·m that nobody told of, of a file with the true values: held out .06 rad, and .016 with those of the file."""
    leg(tmp_path, values=TRUTH)
    for name, seconds, seed, limit in (("a", 6.0, 0, 2.0), ("b", 3.0, 1, np.inf), ("d", 3.0, 2, np.inf)):
        csv(recorded(seconds, seed, limit=limit), tmp_path / f"{name}.csv")
    text = STUDY.replace("until: 5, ", "iterations: 100, ").replace(", end: 3}", "}, d.csv")
    before = "accept: {rms_held_out: 0.001, rms_validation: 0.001}"
    done = run(tmp_path, text.replace(before, "accept: {worse_than_file: 0}"), tmp_path / "runs")
    assert done.exit_code == 1 and "worse than file: 2" in done.output + done.stderr, done.output
    result = json.loads((tmp_path / "runs" / "leg-001" / "result.json").read_text("utf-8"))
    figures = result["figures"]
    assert figures["worse_than_file"] == 2 and figures["rms_validation"] > 2.0 * figures["rms_validation_defaults"]
    assert figures["rms_validation"] == max(figures[f"rms_validation_log_{k}"] for k in (1, 2))
    assert [(f["cause"], f["place"]) for f in result["findings"]] == [
        ("worse than the model file", name) for name in ("b.csv", "d.csv")
    ]
    assert sum("less closely than with the values of the model file" in w for w in result["warnings"]) == 2
    page = (tmp_path / "runs" / "leg-001" / "report.html").read_text("utf-8")
    assert '<h1 class="poor">' in page and "less closely than with the values of the model file" in page
    plain = run(
        tmp_path, text.replace(before, ""), tmp_path / "runs"
    )  # without a limit the finding is there all the same
    assert plain.exit_code == 0 and "less closely than with" in " ".join((plain.output + plain.stderr).split())
    blind = text.replace(before, "accept: {worse_than_file: 0}").replace("validation: [{file: b.csv}, d.csv]\n", "")
    refused = run(tmp_path, blind, tmp_path / "runs")
    assert refused.exit_code == 2 and "worse_than_file needs" in " ".join((refused.output + refused.stderr).split())


COMMANDS_STUDY = """veridyn: 1
kind: excite
name: leg
model: {file: "veridyn:leg.yaml"}
drives: {ask: [kp], duration: 6, tries: 4}
limits:
  thigh: {range: [0.2, 1.6], speed: 12, force: 15}
  calf: {range: [-2.2, -1.0], speed: 12, force: 15}
accept: {thigh_drive.kp: 0.5}
"""


def excite(folder: Path, text: str) -> Result:
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["excite", str(folder / "study.yaml"), "--out", str(folder / "runs")])


def test_from_a_study_to_commands(tmp_path: Path) -> None:
    done = excite(tmp_path, COMMANDS_STUDY)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "runs" / "leg-001"
    figures = json.loads((folder / "result.json").read_text("utf-8"))["figures"]
    assert figures["asked"] == 2 and figures["sigma_to_chirp"] <= 1.0 and figures["largest_share_of_limit"] <= 1.0
    log = vd.load_log(folder / "commands.csv")
    assert set(log.names) == {"command.thigh", "command.calf"} and log["command.thigh"].unit == "rad"
    page = (folder / "report.html").read_text("utf-8")
    assert "Predicted deviations" in page and "What these commands do not determine" in page


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("thigh_drive.kp: 0.5", "thigh_drive.kp: 0.0001", 1, "at most 0.0001 is accepted"),
        ("thigh_drive.kp: 0.5", "thigh.kp: 1", 2, "'thigh.kp' is no number of these drives"),
        ("ask: [kp]", "ask: [mass]", 2, "'mass' is no number of these drives"),
        ("  calf:", "  knee:", 2, "'knee' is no coordinate"),
        ("[0.2, 1.6]", "[1.6, 0.2]", 2, "the lower one first"),
        ("tries: 4", "starts: 4", 2, "there is no key 'starts'"),
    ],
)
def test_faults_of_commands_are_named(old: str, new: str, code: int, words: str, tmp_path: Path) -> None:
    assert old in COMMANDS_STUDY
    done = excite(tmp_path, COMMANDS_STUDY.replace(old, new))
    assert done.exit_code == code and words in " ".join((done.output + done.stderr).split()), done.output


def test_new_writes_such_a_study(tmp_path: Path) -> None:
    out = tmp_path / "commands.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:leg.yaml", "--kind", "drives", "--out", str(out)])
    assert done.exit_code == 0, done.output
    study = load_study(out, "excite").study
    assert isinstance(study, DriveExciteFile) and set(study.limits) == {"thigh", "calf"}
    assert "no limit of force is known" in out.read_text("utf-8")
