"""``veridyn identify`` with a section payload: one command, the files it leaves, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from studies.payload_log import EXAMPLE, FOLDER, MASS, RUNS
from veridyn.cli.app import app


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    out = tmp_path_factory.mktemp("payload")
    return CliRunner().invoke(app, ["identify", str(EXAMPLE), "--out", str(out)]), out / "payload-001"


def test_the_example_is_one_command(run: tuple[Result, Path]) -> None:
    """Exit code 0, no suspicion, the true mass within 3.3 deviations in result.json, payload.json and on the page."""
    done, folder = run
    assert done.exit_code == 0, done.output
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    figures, settings = result["figures"], json.loads((folder / "payload.json").read_text(encoding="utf-8"))
    assert abs(figures["payload_mass"] - MASS) < 3.3 * figures["payload_mass_sigma"]
    assert figures["suspicions"] == 0 and not result["warnings"]
    assert settings["mass"] == figures["payload_mass"] == settings["kuka"]["M"] == settings["franka"]["mass"]
    assert settings["flange"] == {"body": "hand", "position": [0.0, 0.0, 0.08], "rpy": [0.0, 0.0, 0.0]}
    assert settings["mass_sigma"] == figures["payload_mass_sigma"] and "mm" in settings["conventions"]["kuka"]
    assert set(result["inputs"]) == {"study", "model", *RUNS}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "The load weighs: 1.60" in page and "set_target_payload(1.6" in page and "$LOAD = {M 1.6" in page
    assert "The load weighs" in done.stdout and "calibrated from known loads of 2 kg" in done.stdout
    assert (folder / "fit.json").is_file() and (folder / "study.yaml").is_file()


def test_a_deviation_that_is_too_large_is_exit_code_1(tmp_path: Path) -> None:
    text = (
        EXAMPLE.read_text(encoding="utf-8").replace("largest_sigma: 0.05", "largest_sigma: 0.0001") + "checks: false\n"
    )
    for name in (*RUNS, "payload_model.yaml"):
        text = text.replace(name, str(FOLDER / name))
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml")])
    assert done.exit_code == 1 and "missed: standard deviation of the mass, kg: 0.00" in done.stderr


def test_bad_input_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(EXAMPLE.read_text(encoding="utf-8").replace("body: hand\n", "bdy: hand\n", 1))
    done = CliRunner().invoke(app, ["identify", str(tmp_path / "study.yaml")])
    assert done.exit_code == 2 and "there is no key 'bdy'" in str(done.exception) + done.output
