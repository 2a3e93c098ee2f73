import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veridyn
from veridyn.cli.app import app

COMMANDS = ([], ["demo"], ["demo", "arm"], ["model"], ["model", "show"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    after = done.stdout.split("Example:\n")[1].splitlines()[0]
    assert after.strip().startswith(" ".join(["veridyn", *command]))


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"veridyn {veridyn.__version__}\n")


@pytest.mark.parametrize(
    "wrong", [["demo", "arm", "--seed", "x"], ["demo", "arm", "--seed", "-1"], ["demo", "leg"], ["fly"]]
)
def test_a_wrong_call_ends_with_2(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, wrong).exit_code == 2


def test_an_error_is_its_text_on_stderr_without_a_traceback(tmp_path: Path) -> None:
    missing = str(tmp_path / "robot.yaml")
    code = "from veridyn.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "model", "show", missing], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("FileError: robot.yaml, ")
    assert "Traceback" not in done.stderr
