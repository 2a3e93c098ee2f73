"""``veridyn codegen`` writes what a C compiler takes."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veridyn.cli.app import app

RUN = CliRunner()


@pytest.fixture
def arm() -> str:
    return str(resources.files("veridyn.machines") / "arm.yaml")


def test_without_a_folder_both_files_are_printed(arm: str) -> None:
    shown = RUN.invoke(app, ["codegen", arm])
    assert shown.exit_code == 0, shown.output
    assert "#include <math.h>" in shown.output and "multiplications" in shown.output and "malloc" not in shown.output


def test_a_file_is_no_folder(arm: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    for out in (tmp_path / "there", tmp_path / "there" / "below"):
        done = RUN.invoke(app, ["codegen", arm, "--out", str(out)])
        assert done.exit_code == 2 and "it is no folder" in done.stderr, done.output
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("what", ["inverse", "forward", "regressor"])
def test_a_folder_gets_a_header_and_a_file_that_compile(arm: str, what: str, tmp_path: Path) -> None:
    made = RUN.invoke(
        app, ["codegen", arm, "--what", what, "--name", "arm_model", "--wrench", "6", "--out", str(tmp_path)]
    )
    assert made.exit_code == 0, made.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm_model.c", "arm_model.h"]
    again = RUN.invoke(app, ["codegen", arm, "--name", "arm_model", "--out", str(tmp_path)])
    assert again.exit_code == 2 and "nothing is written over" in again.output
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to compile the generated C with")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]
    subprocess.run(["gcc", *flags, "arm_model.c", "-o", "arm_model.o"], cwd=tmp_path, check=True)


def test_bad_names_are_refused(arm: str) -> None:
    refused = RUN.invoke(app, ["codegen", arm, "--name", "7 dof"])
    assert refused.exit_code == 2 and "no name for a C function" in refused.output
    unknown = RUN.invoke(app, ["codegen", arm, "--wrench", "nobody"])
    assert unknown.exit_code == 2 and "there is no body 'nobody'" in unknown.output
