"""``veridyn live``: it prints where the page is, serves it, and stops; what it cannot do is named."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app


def run(*args: str):
    return CliRunner().invoke(app, ["live", *args])


@pytest.fixture
def study(tmp_path: Path) -> Path:
    Bench(tmp_path).write()
    return tmp_path / "study.yaml"


def test_it_prints_the_address_and_stops(study: Path) -> None:
    done = run(str(study), "--port", "0", "--pace", "0", "--seconds", "0.1")
    assert done.exit_code == 0, done.output
    assert "bench robot: http://127.0.0.1:" in done.stdout and "(Ctrl-C stops)" in done.stdout
    assert "samples: replay of training.csv" in done.stdout


def test_for_other_hosts_there_is_a_token(study: Path) -> None:
    done = run(str(study), "--port", "0", "--host", "0.0.0.0", "--pace", "0", "--seconds", "0.1")
    assert done.exit_code == 0, done.output
    assert "/?token=" in done.stdout and ", token " in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["none.yaml"], "none.yaml"),
        (["cran"], "Did you mean 'crane'?"),
        (["STUDY", "--udp", "1", "--websocket", "2"], "choose one of"),
        (["STUDY", "--pace", "-1"], "0 or more"),
        (["crane", "--udp", "0"], "brings its own samples"),
        (["STUDY", "--follow", "none.csv"], "cannot be waited for"),
    ],
)
def test_bad_input_ends_with_2(study: Path, args: list[str], said: str) -> None:
    done = run(*(str(study) if a == "STUDY" else a for a in args))
    assert done.exit_code == 2 and said in done.output


def test_a_taken_port_is_named(study: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(str(study), "--port", str(taken.getsockname()[1]), "--seconds", "0")
    assert done.exit_code == 2 and "this port cannot be listened on" in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent on POSIX systems")
def test_ctrl_c_ends_it_well(study: Path) -> None:
    """Without --seconds it runs until somebody stops it: then everything is closed, and it is no error.

    Processes in the background of a shell ignore the signal, and their children with them: here it is heard again.
    """
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from veridyn.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "live", str(study), "--port", "0", "--pace", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert lines[0].endswith("(Ctrl-C stops)\n") and lines[1].startswith("samples: ")
    assert process.returncode == 0 and "Traceback" not in said
