import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from studies.crane_log import EXAMPLE, TEXT, crane_log, written
from veridyn.cli.app import app
from veridyn.files.log.load import load_log
from veridyn.studies.config.study import load_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("observe")
    written(made)
    return made


@pytest.fixture(scope="module")
def done(folder: Path) -> Result:
    return CliRunner().invoke(app, ["observe", str(folder / "study.yaml")])


def test_a_run_folder_holds_states_and_report(done: Result, folder: Path) -> None:
    assert done.exit_code == 0, done.output
    run = folder / "runs" / "crane-001"
    assert done.stdout.splitlines()[-1] == str(run / "report.html")
    names = {"states.csv", "result.json", "parameters.csv", "report.html", "study.yaml", "versions.json"}
    assert {p.name for p in run.iterdir()} == names
    assert "running EKF" in done.stderr and "force.x" in done.stdout
    assert load_study(run / "study.yaml").study == load_study(folder / "study.yaml").study


def test_the_load_that_is_written_is_the_true_one(done: Result, folder: Path) -> None:
    states = load_log(folder / "runs" / "crane-001" / "states.csv")
    true = crane_log()[0].column("L.x")
    off = states["load.x"].values - true
    inside = (states["load.x.low"].values <= true) & (true <= states["load.x.high"].values)
    # The tilt reading alone is off by its bias: 0.02 rad on 6 m of rope. The share is that of one log: 0.95, less three of its
    # deviations (tests/studies/test_observe_run.py, which judges the mean over logs).
    assert np.sqrt((off[100:] ** 2).mean()) < 0.03 and inside.mean() > 0.6


def test_the_result_is_for_programs_and_the_page_for_people(done: Result, folder: Path) -> None:
    run = folder / "runs" / "crane-001"
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert result["study"] == "crane" and set(result["inputs"]) == {"study", "model", "log"}
    assert {"nis", "share_white", "white", "step_microseconds", "rejected", "rejected_tilt"} <= set(result["figures"])
    page = (run / "report.html").read_text(encoding="utf-8")
    for words in ("Observation of “crane”", "Virtual sensors", "Innovations", "Consistency", "load_speed.x", "player"):
        assert words in page
    assert len(page) < 2_000_000


def test_a_missed_limit_is_told_with_code_1(tmp_path: Path) -> None:
    rows = crane_log()[1][:100].copy()
    rows[40:60, 1] = np.nan
    study = written(tmp_path, TEXT.replace("nis: [0.8, 1.2]", "nis: [5, 6]"), rows)
    found = CliRunner().invoke(app, ["observe", str(study), "--out", str(tmp_path / "out")])
    assert found.exit_code == 1, found.output
    assert "missed: NIS:" in found.stderr and "missed: readings not used: 2" in found.stderr
    assert "warning: 'travel' sends no numbers from 0.8 s to 1.18 s" in found.stderr
    page = (tmp_path / "out" / "crane-001" / "report.html").read_text(encoding="utf-8")
    assert page.count("5 to 6 is accepted") == 1 and "sends no numbers" in page


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tilt: angle", "tlit: angle", "(line 12): 'tlit' is neither a sensor's output nor a load of 'crane'"),
        ("filter:", "filters: {}\nfilter:", "line 13: there is no key 'filters' here."),
        ("trolley [mm]", "trolly [mm]", "there is no column 'trolly'"),
        ("kind: observe", "kind: excite", "Run it with: veridyn excite"),
    ],
)
def test_bad_input_is_answered_with_code_2(tmp_path: Path, old: str, new: str, words: str) -> None:
    study = written(tmp_path, TEXT.replace(old, new), crane_log()[1][:20])
    found = CliRunner().invoke(app, ["observe", str(study), "--out", str(tmp_path / "out")])
    assert found.exit_code == 2 and words in found.output
    assert not list((tmp_path / "out").glob("*"))


def test_the_example_runs_from_any_folder(tmp_path: Path) -> None:
    """The one file, alone in a folder: mechanism and log come with veridyn."""
    (tmp_path / "crane.yaml").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    found = CliRunner().invoke(app, ["observe", str(tmp_path / "crane.yaml")])
    assert found.exit_code == 0, found.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crane.yaml", "runs"]


def test_show_and_help(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["observe", str(folder / "study.yaml"), "--show"])
    assert shown.exit_code == 0 and "frozen_after: auto" in shown.output and "# The filter" in shown.output
    helped = CliRunner().invoke(app, ["observe", "--help"])
    assert "veridyn observe crane.yaml --out runs" in helped.output and "Exit codes" in helped.output
