"""Commands of drives designed by a study: files, figures, limits that are missed, and the study that new writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import veridyn as vd
from veridyn.cli.app import app
from veridyn.studies.config.drive_excite import DriveExciteFile
from veridyn.studies.config.study import load_study

STUDY = """veridyn: 1
kind: excite
name: leg
model: {file: "veridyn:leg.yaml"}
drives: {ask: [kp], duration: 6, tries: 4}
limits:
  thigh: {range: [0.2, 1.6], speed: 12, force: 15}
  calf: {range: [-2.2, -1.0], speed: 12, force: 15}
accept: {thigh_drive.kp: 0.5}
"""


def run(folder: Path, text: str) -> Result:
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["excite", str(folder / "study.yaml"), "--out", str(folder / "runs")])


def test_from_a_study_to_commands(tmp_path: Path) -> None:
    done = run(tmp_path, STUDY)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "runs" / "leg-001"
    figures = json.loads((folder / "result.json").read_text("utf-8"))["figures"]
    assert figures["asked"] == 2 and figures["sigma_to_chirp"] <= 1.0 and figures["largest_share_of_limit"] <= 1.0
    log = vd.load_log(folder / "commands.csv")
    assert set(log.names) == {"command.thigh", "command.calf"} and log["command.thigh"].unit == "rad"
    page = (folder / "report.html").read_text("utf-8")
    assert "What they promise" in page and "What they leave open" in page


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
def test_faults_are_named(old: str, new: str, code: int, words: str, tmp_path: Path) -> None:
    assert old in STUDY
    done = run(tmp_path, STUDY.replace(old, new))
    assert done.exit_code == code and words in " ".join((done.output + done.stderr).split()), done.output


def test_new_writes_such_a_study(tmp_path: Path) -> None:
    out = tmp_path / "commands.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:leg.yaml", "--kind", "drives", "--out", str(out)])
    assert done.exit_code == 0, done.output
    study = load_study(out, "excite").study
    assert isinstance(study, DriveExciteFile) and set(study.limits) == {"thigh", "calf"}
    assert "no limit of force is known" in out.read_text("utf-8")
