"""From work to a run folder: what is kept, what is printed, and what a failure leaves behind."""

import json
import os
from pathlib import Path

import pytest
import typer

from studies.bench_robot import STUDY
from veridyn.cli import main
from veridyn.cli.recording import Recorded, recorded, recorded_study
from veridyn.errors import FileError
from veridyn.report.blocks import Block, Text, attempted
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


@pytest.mark.parametrize("failure", [ZeroDivisionError, TypeError, KeyboardInterrupt])
def test_a_page_that_cannot_be_made_costs_no_result(
    tmp_path: Path, failure: type[BaseException], capsys: pytest.CaptureFixture
) -> None:
    def page(result: Result, command: str) -> str:
        raise failure("of a picture\nand more")

    done = Recorded(RESULT, page, lambda result: None, lambda run: run.write_text("a", "b"))
    with pytest.raises(failure):
        recorded(tmp_path, "x", "veridyn x", lambda run, progress: done)
    run = tmp_path / "x-001"
    assert {f.name for f in run.iterdir()} == {"a", "parameters.csv", "result.json"}
    said = f"report.html is not written: it could not be made ({failure.__name__}: of a picture)."
    kept = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert kept["figures"] == {"x": 1.0} and kept["warnings"] == ["its own", said]
    assert f"{said} The results are complete, in {run}." in capsys.readouterr().err


def test_a_picture_that_fails_is_among_the_warnings(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    def fail() -> Block:
        raise ValueError("of no width")

    def page(result: Result, command: str) -> str:
        block = attempted("The machine", fail)
        assert isinstance(block, Text)
        return block.text

    recorded(tmp_path, "x", "veridyn x", lambda run, progress: Recorded(RESULT, page, lambda result: None))
    run = tmp_path / "x-001"
    assert "The picture “The machine” cannot be drawn" in (run / "report.html").read_text(encoding="utf-8")
    warnings = json.loads((run / "result.json").read_text(encoding="utf-8"))["warnings"]
    assert warnings[0] == "its own" and "picture “The machine”: it cannot be drawn" in warnings[1]
    assert "warning: picture “The machine”" in capsys.readouterr().err


def test_work_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        recorded(tmp_path, "x", "veridyn x", lambda run, progress: 1 // 0)  # pyright: ignore[reportArgumentType]
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


def test_a_defect_shows_where_and_is_not_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """1 says that a limit of the study is missed, 2 that the input is bad."""

    def broken(prog_name: str) -> None:
        raise ValueError("max() arg is an empty sequence")

    monkeypatch.setattr("veridyn.cli.app.app", broken)
    monkeypatch.setattr("veridyn.cli.show_everything", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "Traceback" in (said := capsys.readouterr().err) and "max() arg is an empty sequence" in said


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
