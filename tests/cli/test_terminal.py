"""Every character has an ASCII form, and a command ends well on an ASCII terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from veridyn.cli import open_closed_streams, plain, show_everything
from veridyn.files.access import shipped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.3 ± 0.1 kg·m²", "0.3 +/- 0.1 kg*m^2"),
        ("5 m·s⁻² – 7 µm …", "5 m*s^-2 - 7 um ..."),
        ("Müller’s σ ≤ 2°", "Muller's sigma <= 2deg"),
        ("机 plain\t\n", "? plain\t\n"),
    ],
)
def test_signs_become_words_and_letters_lose_their_accents(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_only_what_the_encoding_lacks_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))
    show_everything()
    print("± ≤", flush=True)
    assert out.getvalue() == b"\xb1 <=" + os.linesep.encode()


def test_a_command_ends_well_on_an_ascii_terminal() -> None:
    command = [sys.executable, "-m", "veridyn", "model", "show", str(shipped("veridyn:arm.yaml"))]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="ascii", timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "base parameter" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the streams")
def test_a_command_ends_well_without_streams() -> None:
    arm = str(shipped("veridyn:arm.yaml"))
    for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
        command = f'"{sys.executable}" -m veridyn model show "{arm}" {closed}'
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), closed


def test_closed_streams_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    open_closed_streams()
    with sys.stdout as out:
        print("±")
        assert not out.isatty()
