"""Output that nobody reads, and output that cannot be written, in processes of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from veridyn.cli.streams import PatientOutput, keep_writing
from veridyn.errors import FileError

COMMAND = f'"{sys.executable}" -m veridyn'
posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell makes the pipes")


def shell(line: str) -> tuple[int, str]:
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@posix
def test_a_reader_that_goes_ends_no_command(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for streams in ("", "2>&1"):
        _, said = shell(f'({COMMAND} schema model {streams}; echo $? > "{code}") | head -1 > /dev/null')
        assert (code.read_text().strip(), said) == ("0", ""), streams


@posix
def test_a_missed_limit_is_still_told_without_a_reader(tmp_path: Path) -> None:
    """The exit code is that of the work."""
    code = tmp_path / "code"
    shell(f'({COMMAND} model show "{tmp_path}/none.yaml"; echo $? > "{code}") | true')
    assert code.read_text().strip() == "2"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told_without_a_traceback() -> None:
    for command in ("schema model", "--version", "model show veridyn:fourbar.yaml"):
        code, said = shell(f"{COMMAND} {command} > /dev/full")
        assert code == 2 and "Traceback" not in said, said
        assert said.startswith("FileError: stdout, it cannot be written: No space left on device.")


def test_what_nobody_reads_leads_nowhere() -> None:
    read, write = os.pipe()
    os.close(read)
    with io.FileIO(write, "w") as raw:
        out = io.TextIOWrapper(io.BufferedWriter(PatientOutput(raw, "stdout")), write_through=True)
        print("a", file=out, flush=True)
        print("b", file=out, flush=True)
        assert out.fileno() == raw.fileno() and not out.isatty()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_what_cannot_be_written_is_told_once() -> None:
    with io.FileIO("/dev/full", "w") as raw:
        out = PatientOutput(raw, "stdout")
        with pytest.raises(FileError, match="it cannot be written"):
            out.write(b"a")
        assert out.write(b"abc") == 3


def test_streams_that_are_no_files_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = io.StringIO()
    monkeypatch.setattr(sys, "stdout", memory)
    keep_writing()
    assert sys.stdout is memory
