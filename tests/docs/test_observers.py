"""The page on observers: its programs run, they print what it says, and the study file it shows is the one that is written."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veridyn.cli.app import app
from veridyn.files.access import shipped

MODEL_FILE = Path(__file__).parents[2] / "docs" / "model-file.md"
PAGE = Path(__file__).parents[2] / "docs" / "observers.md"
END = "\n--- end of a program ---\n"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def without_numbers(text: str) -> str:
    """A processor may round otherwise in the last digit that is shown."""
    return re.sub(r"\d+", "#", text)


def test_every_program_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as a reader would type them; text that follows a program is what it prints."""
    programs = [k for k, (language, _) in enumerate(BLOCKS) if language == "python"]
    whole = tmp_path / "page.py"
    whole.write_text(f"print({END!r}, end='')\n".join(BLOCKS[k][1] for k in programs), encoding="utf-8")
    runpy.run_path(str(whole))
    for k, printed in zip(programs, capsys.readouterr().out.split(END), strict=True):
        if k + 1 < len(BLOCKS) and BLOCKS[k + 1][0] == "text":
            assert without_numbers(printed) == without_numbers(BLOCKS[k + 1][1])
    assert len(programs) == 6


def test_the_walk_from_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page, in a folder that holds nothing."""
    monkeypatch.chdir(tmp_path)
    texts = [text for language, text in BLOCKS if language == "text" and text.startswith("$ veridyn")]
    assert [t.splitlines()[0] for t in texts] == [
        "$ veridyn new veridyn:crane.yaml veridyn:crane.csv",
        "$ veridyn observe study.yaml",
    ]
    made = CliRunner().invoke(app, texts[0].splitlines()[0].split()[2:])
    assert made.exit_code == 0 and made.stdout == texts[0].split("\n", 1)[1]
    shown = next(text for language, text in BLOCKS if language == "yaml" and text.startswith("# An observer"))
    assert shown == (tmp_path / "study.yaml").read_text(encoding="utf-8")
    done = CliRunner().invoke(app, texts[1].splitlines()[0].split()[2:])
    assert done.exit_code == 0, done.output
    printed = {without_numbers(line.strip()) for line in (done.stdout + done.stderr).splitlines()}
    for line in texts[1].splitlines()[1:]:
        assert line == "…" or without_numbers(line.strip()) in printed, line


def test_the_mechanism_of_the_page_on_model_files_is_the_crane() -> None:
    assert shipped("veridyn:crane.yaml").read_text(encoding="utf-8") in MODEL_FILE.read_text(encoding="utf-8")
