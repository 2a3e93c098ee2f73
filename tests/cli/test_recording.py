"""From work to a run folder: what is kept, what is printed, and what a failure leaves behind."""

import os
from pathlib import Path

import pytest
import typer

from studies.bench_robot import STUDY
from veridyn.cli.recording import Recorded, recorded, recorded_study
from veridyn.errors import FileError
from veridyn.studies.config.study import load_study
from veridyn.studies.result import Result

RESULT = Result("a study", 1, False, {}, {"x": 1.0}, (), {}, ("its own",))


def test_everything_is_kept_and_the_last_line_is_the_report(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    done = Recorded(RESULT, lambda result, command: command, lambda result: None, lambda run: run.write_text("a", "b"))
    recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
    assert {f.name for f in (tmp_path / "x-001").iterdir()} == {"a", "parameters.csv", "report.html", "result.json"}
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == str(tmp_path / "x-001" / "report.html")
    assert "warning: its own" in said.err


def test_a_missed_limit_is_told_and_ends_with_one(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    done = Recorded(RESULT, lambda result, command: "", lambda result: None, missed=("too large",))
    with pytest.raises(typer.Exit) as ended:
        recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
    assert ended.value.exit_code == 1
    assert "missed: too large" in capsys.readouterr().err


def test_a_page_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    done = Recorded(
        RESULT, lambda result, command: str(1 // 0), lambda result: None, lambda run: run.write_text("a", "b")
    )
    with pytest.raises(ZeroDivisionError):
        recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_leaves_no_folder_that_looks_like_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The disk is full from the n-th file on, whichever it is: nothing is there afterwards, and the next run is the first."""
    done = Recorded(RESULT, lambda result, command: "", lambda result: None, lambda run: run.write_text("a", "b"))
    sync = os.fsync
    for room in range(4):
        written = 0

        def full(file: int, room: int = room) -> None:
            nonlocal written
            written += 1
            if written > room:
                raise OSError(28, "No space left on device")
            sync(file)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="No space left on device"):
            recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "fsync", sync)
    recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
    assert [p.name for p in tmp_path.iterdir()] == ["x-001"]


@pytest.mark.parametrize(("out", "leaves"), [("runs", False), ("a/../runs", False), ("../elsewhere", True)])
def test_a_study_whose_runs_leave_its_folder_says_so(
    out: str, leaves: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    file = folder / "s.yaml"
    file.write_text(STUDY + f"out: {out}\n")
    done = Recorded(RESULT, lambda result, command: "", lambda result: None)
    recorded_study(file, None, load_study(file), lambda run, progress: done, show=False)
    said = capsys.readouterr().err
    assert ("leaves the folder of the study" in said) == leaves
    assert not leaves or str(tmp_path / "elsewhere") in said
    recorded_study(file, tmp_path / "asked", load_study(file), lambda run, progress: done, show=False)
    assert "leaves the folder" not in capsys.readouterr().err  # the user's own --out is no news
