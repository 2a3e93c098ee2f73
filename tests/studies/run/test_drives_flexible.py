"""A study of flexible joints from files to figures, on an arm that MuJoCo simulated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from identify.flexible import flexible_arm as arm
from veridyn.cli.app import app
from veridyn.files.machine.load import load_model
from veridyn.files.machine.write import save_model

STUDY = """veridyn: 1
kind: identify
name: arm
model: {file: arm.yaml}
log:
  time: t [s]
  columns:
    q.hip: link [deg]
    q.hip_motor: motor [rad]
    force.hip_motor: {column: torque, unit: N*m, times: 100}
training: [{file: a.csv, start: 0.5}]
validation: [b.csv]
flexible: {}
accept: {deflection_std_percent: {hip: 2}, agreement: 3}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("flexible")
    save_model(arm.machine(), out / "arm.yaml")
    run = arm.simulated(arm.swing, 8.0, friction=8.0)
    for seed, (name, part) in enumerate({"a": slice(0, 4500), "b": slice(3500, None)}.items()):
        log = arm.log(*(x[part] for x in run), delay=2.8e-3, noise=2e-6, seed=seed)
        link, motor, torque = (log.channels[n].values for n in ("q.hip", "q.hip_motor", "force.hip_motor"))
        columns = np.stack([log.channels["q.hip"].t, np.degrees(link), motor, torque / 100.0], axis=1)
        np.savetxt(out / f"{name}.csv", columns, delimiter=",", header="t,link,motor,torque", comments="", fmt="%.12g")
    (out / "study.yaml").write_text(STUDY, "utf-8")
    return out


def run(study: Path, out: Path):
    return CliRunner().invoke(app, ["identify", str(study), "--out", str(out)])


def test_from_files_to_figures(folder: Path, tmp_path: Path):
    done = run(folder / "study.yaml", tmp_path)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "arm-001" / "result.json").read_text("utf-8"))
    figures = result["figures"]
    assert figures["stiffness_1"] == pytest.approx(arm.STIFFNESS, rel=0.02)
    assert abs(figures["encoder_delay"] - 2.8e-3) < 2.5 * figures["sigma_encoder_delay"]
    assert figures["deflection_std_percent"] <= 2.0 and figures["stiffness_1_determined"] == 1.0
    named = {p["name"]: p["value"] for p in result["parameters"]}
    assert named["stiffness_hip"] == figures["stiffness_1"]
    identified = load_model(tmp_path / "arm-001" / "model.yaml").parameters
    assert identified["stiffness_hip"] == pytest.approx(figures["stiffness_1"])
    lines = (tmp_path / "arm-001" / "deflection.csv").read_text("utf-8").splitlines()
    assert lines[0] == "log,joint,t,measured,predicted" and len(lines) > 1000
    page = (tmp_path / "arm-001" / "report.html").read_text("utf-8")
    assert "The logs determine the stiffness of hip" in page and "Deflection on the validation log" in page


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("{hip: 2}", "{hip: 0.001}", 1, "at most 0.001 is accepted"),
        ("{hip: 2}", "{knee: 2}", 2, "'knee' is none of the joints"),
        ("link [deg]", "link [rad]", 2, "degrees, the motor's rad"),
        ("flexible: {}", "flexible: {joints: [knee]}", 2, "no flexible joint of this machine"),
        ("flexible: {}", "flexible: {}\nrows: all", 2, "no rows beside flexible"),
        ("start: 0.5", "share: [0, 0.5]", 2, "without share"),
    ],
)
def test_limits_and_faults(folder: Path, tmp_path: Path, old: str, new: str, code: int, message: str):
    assert old in STUDY
    study = folder / f"bad{abs(hash((old, new)))}.yaml"
    study.write_text(STUDY.replace(old, new), "utf-8")
    done = run(study, tmp_path)
    assert done.exit_code == code, done.output
    assert message in " ".join((done.output + done.stderr).split())
