import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from studies.bench_robot import Bench, recording
from veridyn.cli.app import app
from veridyn.files.archive import load
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.studies.config.study import load_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def done(folder: Path) -> Result:
    bench = Bench(folder)
    bench.study = bench.study.replace("model.yaml", "model.urdf") + "estimator: {name: consistent}\nseed: 4\n"
    return CliRunner().invoke(app, ["identify", str(bench.write())])


def test_a_run_folder_holds_all_that_was_found(done: Result, folder: Path) -> None:
    assert done.exit_code == 0, done.output
    run = folder / "runs" / "bench-001"
    assert done.stdout.splitlines()[-1] == str(run / "report.html")
    assert {p.name for p in run.iterdir()} == {
        "result.json",
        "parameters.csv",
        "reduced.csv",
        "report.html",
        "study.yaml",
        "versions.json",
        "fit.json",
        "fit.npz",
        "identified.yaml",
        "identified.urdf",
    }
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert (result["study"], result["seed"]) == ("bench", 4)
    assert set(result["inputs"]) == {"study", "model", "training.csv", "validation.csv"}
    assert result["figures"]["suspicions"] == 0 and result["figures"]["physically_consistent"] == 1


def test_what_was_identified_is_read_back(done: Result, folder: Path) -> None:
    run = folder / "runs" / "bench-001"
    fit = load(run / "fit.json")
    assert load_model(run / "identified.yaml").parameters.values.tolist() == fit.standard.tolist()
    assert load_urdf(run / "identified.urdf").coordinates == ("q1", "q2", "q3")


def test_the_study_is_kept_with_its_defaults_and_runs_again(done: Result, folder: Path) -> None:
    kept = folder / "runs" / "bench-001" / "study.yaml"
    assert load_study(kept).study == load_study(folder / "study.yaml").study
    assert "  order: 4" in kept.read_text()


def test_show_prints_the_defaults_and_runs_nothing(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["identify", str(Bench(tmp_path).write()), "--show"])
    assert shown.exit_code == 0
    assert "# Speed below which a row leaves out its samples" in shown.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("limited", [False, True])
def test_a_log_that_rests_where_it_is_judged_is_no_error(tmp_path: Path, limited: bool) -> None:
    """All validation samples lie below the dead zone. A limit is missed where there is one, since nobody knows that it is kept."""
    bench, rng = Bench(tmp_path, validation=recording(2, 3.0)), np.random.default_rng(0)
    for name, column in bench.validation.items():
        if name != "t":
            at_rest = 0.0 if name.startswith("qd") else column[0]
            column[:] = at_rest + (0.1 if name.startswith("tau") else 2e-5) * rng.normal(size=len(column))
    bench.study += "sampling: {dead_zone: 0.05}\nchecks: false\n"
    if not limited:
        bench.study = bench.study.replace("accept: {validation_percent: 5}\n", "")
    done = CliRunner().invoke(app, ["identify", str(bench.write()), "--out", str(tmp_path / "runs")])
    assert done.exit_code == int(limited), done.output
    why = "no sample of the validation data is left: all lie in dead zones"
    assert "The model “bench robot” cannot be judged: " + why in done.stdout
    assert f"warning: validation: the fit cannot be judged: {why}" in done.stderr
    said = "missed: relative error on the validation logs, %: not known (no sample of the validation data is left"
    assert (said in done.stderr) == limited
    run = tmp_path / "runs" / "bench-001"
    figures = json.loads((run / "result.json").read_text(encoding="utf-8"))["figures"]
    assert figures["worst_cross_validation_percent"] is None and figures["training_percent"] < 5.0
    assert "cannot be judged" in (run / "report.html").read_text(encoding="utf-8")


def test_a_limit_that_is_missed_is_exit_code_1_and_the_folder_stays(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.study = bench.study.replace("{validation_percent: 5}", "{validation_percent: 0.001}")
    done = CliRunner().invoke(app, ["identify", str(bench.write()), "--out", str(tmp_path / "elsewhere")])
    assert done.exit_code == 1
    assert "missed: relative error on the validation logs" in done.stderr
    page = (tmp_path / "elsewhere" / "bench-001" / "report.html").read_text(encoding="utf-8")
    assert page.count("relative error on the validation logs") == 1


def test_bad_input_is_exit_code_2_with_lines_and_no_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.study = bench.study.replace("signals:", "signal:")
    done = CliRunner().invoke(app, ["identify", str(bench.write())])
    assert done.exit_code == 2
    assert done.stderr.startswith("FileError: study.yaml, line 19: there is no key 'signal' here.")
    assert not (tmp_path / "runs").exists()


def test_wrong_settings_of_an_estimator_are_exit_code_2_with_their_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.study += "estimator: {name: robust, settings: {iterations: many}}\n"
    done = CliRunner().invoke(app, ["identify", str(bench.write())])
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "FileError: study.yaml, estimator.settings.iterations (line 21): the value is not valid."
    )
    assert "Expected a whole number of at least 1, found 'many'." in done.stderr
    assert not list((tmp_path / "runs").iterdir())


def test_data_names_the_folder_of_the_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERIDYN_DATA", raising=False)
    bench = Bench(tmp_path)
    bench.study = bench.study.replace("[training.csv]", '["${VERIDYN_DATA}/training.csv"]')
    path = bench.write()
    lost = CliRunner().invoke(app, ["identify", str(path)])
    assert lost.exit_code == 2 and "the variable VERIDYN_DATA is not set" in lost.stderr
    found = CliRunner().invoke(app, ["identify", str(path), "--data", str(tmp_path)])
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("command", ["identify", "new", "compare"])
def test_help_has_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert f"Example:\n    veridyn {'new' if command == 'identify' else command} " in shown.stdout


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ("sampling: {decimate: 1}\nestimator: {covariance: white}\n", True),
        ("sampling: {decimate: 1}\n", False),
        ("sampling: {decimate: 1}\nestimator: {name: wls, covariance: hac}\n", False),
        ("sampling: {decimate: 14}\n", False),
    ],
)
def test_equations_taken_too_often_are_named_with_a_remedy(tmp_path: Path, added: str, named: bool) -> None:
    """Behind the low-pass of 8 Hz one equation in 14 is new; every one of them, taken as new, is reported on the terminal and in the
    results, and not where deviations allow for correlation."""
    bench = Bench(tmp_path)
    bench.study += added
    done = CliRunner().invoke(app, ["identify", str(bench.write())])
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "runs" / "bench-001" / "result.json").read_text(encoding="utf-8"))
    said = [w for w in result["warnings"] if "residuals correlated" in w]
    assert len(said) == result["figures"]["suspicions"] == int(named)
    assert ("residuals correlated" in done.stderr) == named
    assert all("decimate=1" in w and "auto" in w for w in said)
