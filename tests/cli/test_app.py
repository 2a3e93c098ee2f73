import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veridyn
from veridyn.cli.app import app, printed_warnings
from veridyn.cli.output import print_warnings
from veridyn.errors import IdentificationWarning
from veridyn.files.access import shipped

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


@pytest.mark.parametrize("two", [["-q", "-v"], ["-q", "--json"], ["-v", "--json"]])
def test_one_way_of_printing_is_chosen(two: list[str]) -> None:
    done = CliRunner().invoke(app, [*two, "capabilities"])
    assert done.exit_code == 2 and "choose one of -q, -v and --json" in " ".join(done.output.split())


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


def test_warnings_have_the_units_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways in which a warning reaches the terminal write N·m, as the verdict and the page do; headers are quoted as they are."""
    with printed_warnings():
        warnings.warn("found 0.06 N*m in column 'tau1 [N*m]'.", IdentificationWarning, stacklevel=1)
    print_warnings(["found 2 kg*m^2."])
    said = capsys.readouterr().err
    assert said == "warning: found 0.06 N·m in column 'tau1 [N*m]'.\nwarning: found 2 kg·m².\n"


NOBODY = """
import os, pwd, sys

def unknown(user):
    raise KeyError(user)

pwd.getpwuid = unknown
from veridyn.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="users without an entry exist on POSIX systems")
def test_an_unknown_user_without_a_home_folder_gets_the_answer_and_one_warning() -> None:
    """As in a container that is run under any number: nothing can be kept, and everything works."""
    kept = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "VERIDYN_CACHE", "VERIDYN_SHARED_CACHE")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    command = [sys.executable, "-c", NOBODY, "model", "show", str(shipped("veridyn:fourbar.yaml"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=240)
    assert done.returncode == 0, done.stderr
    assert "base parameter" in done.stdout
    assert done.stderr.count("this user has no home folder") == 1 and "Traceback" not in done.stderr


@pytest.mark.parametrize(("kind", "title"), [("model", "bodies"), ("study", "identify")])
def test_schemas_for_editors_are_json(kind: str, title: str) -> None:
    done = CliRunner().invoke(app, ["schema", kind])
    assert done.exit_code == 0
    schema = json.loads(done.stdout)
    assert "$schema" in schema or "$defs" in schema
    assert title in done.stdout
