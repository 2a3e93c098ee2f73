import json
from pathlib import Path

from typer.testing import CliRunner

from studies.small_arm import small_study
from veridyn.cli.app import app
from veridyn.studies.result import new_run


def test_two_runs_are_printed_and_written(tmp_path: Path) -> None:
    runs = [new_run(tmp_path, "small") for _ in range(2)]
    for run in runs:
        run.write_result(small_study().result("small", seed=1, quick=False, inputs={"log": "0"}))
    out = tmp_path / "difference.json"
    done = CliRunner().invoke(app, ["compare", *(str(run.folder) for run in runs), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "small-001" in done.stdout and "0 of " in done.stdout
    assert json.loads(out.read_text())["runs"] == ["small-001", "small-002"]


def test_a_page_of_three_runs_is_written(tmp_path: Path) -> None:
    runs = [new_run(tmp_path, "small") for _ in range(3)]
    for run in runs:
        run.write_result(small_study().result("small", seed=1, quick=False, inputs={"log": "0"}))
    page = tmp_path / "compared.html"
    done = CliRunner().invoke(app, ["compare", *(str(run.folder) for run in runs), "--page", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "small-003" in text and "No parameter differs" in text and str(page) in done.stdout.replace("\n", "")


def test_one_run_is_exit_code_2(tmp_path: Path) -> None:
    run = new_run(tmp_path, "small")
    run.write_result(small_study().result("small", seed=1, quick=False, inputs={}))
    done = CliRunner().invoke(app, ["compare", str(run.folder)])
    assert done.exit_code == 2 and "two runs or more" in done.stderr


def test_what_is_no_run_is_exit_code_2(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", str(tmp_path), str(tmp_path)])
    assert done.exit_code == 2 and "there is no result of a run" in done.stderr
