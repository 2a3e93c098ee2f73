"""``veridyn identify`` with a section fleet: one command, the files it leaves, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from studies.fleet_log import EXAMPLE, FOLDER, NAMES, WORN
from veridyn.cli.app import app
from veridyn.files.archive import load


def test_the_example_is_one_command(tmp_path: Path) -> None:
    """Exit code 0; means, machines and outliers in result.json, machines.csv and fleet.json, and on the page; a fit of each machine."""
    text = EXAMPLE.read_text(encoding="utf-8").replace("fleet_model.yaml", str(FOLDER / "fleet_model.yaml"))
    text = text.replace("fleet/{machine}.csv", f"{FOLDER}/fleet/{{machine}}.csv").replace(
        "fleet:\n", "fleet:\n  fits: true\n"
    )
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml"), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "fleet-001"
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    fleet = json.loads((folder / "fleet.json").read_text(encoding="utf-8"))
    assert result["figures"]["machines"] == 8 and list(result["validation"]) == list(NAMES)
    assert [o["machine"] for o in fleet["outliers"]] == [WORN] and WORN in done.stdout
    assert (folder / "machines.csv").read_text(encoding="utf-8").count("\n") == 1 + 8 * result["figures"]["parameters"]
    assert f"{WORN} stands apart" in (folder / "report.html").read_text(encoding="utf-8")
    page = (FOLDER.parents[1] / "docs" / "scale.md").read_text(encoding="utf-8")
    shown = page.split("The example prints\n\n```text\n")[1].split("```")[0]
    assert done.stdout.startswith(shown)
    fit = load(folder / "fits" / f"{WORN}.json")
    assert fit.names == tuple(p["name"] for p in result["parameters"])


def test_limits_that_are_missed_are_exit_code_1(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("fleet_model.yaml", str(FOLDER / "fleet_model.yaml"))
    text = text.replace("fleet/{machine}.csv", f"{FOLDER}/fleet/{{machine}}.csv")
    (tmp_path / "study.yaml").write_text(text + "accept: {outliers: 0, validation_percent: 0.1}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml"), "--out", str(tmp_path)])
    assert done.exit_code == 1 and "missed: machines that stand apart: 1, and at most 0" in done.stderr
    assert "relative error of 'unit-1' on its validation logs" in done.stderr
