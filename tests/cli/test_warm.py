import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app
from veridyn.symbolic.cache import folder


def test_models_and_studies_are_compiled_ahead(tmp_path: Path) -> None:
    study = Bench(tmp_path).write()
    done = CliRunner().invoke(app, ["warm", str(tmp_path / "model.urdf"), str(study)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'model.urdf'}: ") and lines[0].endswith(" s")
    assert lines[1].startswith(str(study)) and lines[-1] == f"kept in {folder()}"
    again = CliRunner().invoke(app, ["--json", "warm", str(study)])
    assert json.loads(again.stdout)["compiled"].keys() == {str(study)}


def test_what_cannot_be_compiled_ahead_is_refused(tmp_path: Path) -> None:
    for name, words in (("veridyn:crane.yaml", "joint coordinates"), (str(tmp_path / "none.urdf"), "none.urdf")):
        done = CliRunner().invoke(app, ["warm", name])
        assert done.exit_code == 2 and words in done.stderr, done.output


def test_a_file_of_bytes_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("bytes.yaml", "bytes.urdf", "bytes.xml", "bytes"):
        (tmp_path / name).write_bytes(bytes(range(128, 256)))
        done = CliRunner().invoke(app, ["warm", str(tmp_path / name)])
        assert done.exit_code == 2 and name in done.stderr, done.output


def test_a_cache_that_is_off_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bench(tmp_path).write()
    monkeypatch.setenv("VERIDYN_CACHE", "off")
    done = CliRunner().invoke(app, ["warm", str(tmp_path / "model.urdf")])
    assert done.exit_code == 0 and done.stdout.splitlines()[-1] == "nothing is kept: the cache is switched off"


def test_how_much_it_prints(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    done = CliRunner().invoke(app, ["warm", str(tmp_path / "model.urdf"), "-q"])
    assert done.exit_code == 0 and done.stdout == ""
