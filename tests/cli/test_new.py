from pathlib import Path

from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app
from veridyn.studies.config.study import load_study


def test_a_study_is_written_and_never_over_another(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    args = ["new", str(tmp_path / "model.urdf"), str(tmp_path / "training.csv"), "--out", str(tmp_path / "new.yaml")]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{tmp_path / 'new.yaml'} (1")
    assert len(load_study(tmp_path / "new.yaml").study.log.columns) == 9
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "nothing is written over" in again.stderr


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    done = CliRunner().invoke(
        app, ["new", str(tmp_path / "model.yaml"), str(tmp_path / "none.csv"), "--out", str(tmp_path / "n.yaml")]
    )
    assert done.exit_code == 2 and "does not exist" in done.stderr
    assert not (tmp_path / "n.yaml").exists()


def test_a_mechanism_gets_a_study_to_observe_it_by(tmp_path: Path) -> None:
    """From nothing at all: mechanism and log come with veridyn."""
    study = tmp_path / "study.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:crane.yaml", "veridyn:crane.csv", "--out", str(study)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{study} (10 guesses")
    read = load_study(study, "observe").study
    assert (read.model.file, read.log.file) == ("veridyn:crane.yaml", "veridyn:crane.csv")


def test_bad_files_for_an_observer(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "n.yaml")]
    for args, words in (
        (["veridyn:crane.yaml", "veridyn:crane.csv", "veridyn:crane.csv"], "an observer reads one log"),
        (["veridyn:kran.yaml", "veridyn:crane.csv"], "veridyn brings no file 'kran.yaml'"),
        (["veridyn:crane.yaml", "veridyn:kran.csv"], "veridyn brings no file 'kran.csv'"),
        (["veridyn:crane.yaml", str(tmp_path / "none.csv")], "does not exist"),
    ):
        done = CliRunner().invoke(app, ["new", *args, *out])
        assert done.exit_code == 2 and words in done.stderr, done.output
        assert not (tmp_path / "n.yaml").exists()
