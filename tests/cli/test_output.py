"""How much a command prints: quiet, in detail, and as JSON, with errors too; the options may stand anywhere."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from studies.bench_robot import STUDY as BENCH
from veridyn.cli import main
from veridyn.cli.app import app
from veridyn.cli.output import Recorded, flags_first, mode, recorded, recorded_study, shown_progress
from veridyn.errors import FileError
from veridyn.report.blocks import Block, Text, attempted
from veridyn.studies.config.study import load_study
from veridyn.studies.result import Result

STUDY = str(Path(__file__).resolve().parents[2] / "examples" / "studies" / "crane.yaml")


def test_options_of_output_may_stand_anywhere_before_a_double_dash() -> None:
    assert flags_first(["identify", "a.yaml", "-q"]) == ["-q", "identify", "a.yaml"]
    assert flags_first(["new", "--", "-q"]) == ["new", "--", "-q"]


@pytest.mark.parametrize("args", [["--json", "model", "show"], ["model", "show", "--json"]])
def test_a_model_as_json(args: list[str]) -> None:
    at = args.index("show") + 1
    done = CliRunner().invoke(app, [*args[:at], "veridyn:linkage.yaml", *args[at:]])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["coordinates"] == {"q1": "turning", "q2": "turning", "q3": "turning"}
    assert found["loops"] == ["pin"] and len(found["base_parameters"]) > 5


def test_errors_as_json_have_every_fault_with_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("veridyn: 2\nbodies:\n  - {name: a, antecedent: b, joint: turning}\n  - {name: c, joint: turnig}\n")
    done = CliRunner().invoke(app, ["model", "show", str(file), "--json"])
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert found["error"] == "ModelError" and len(found["faults"]) == 2
    assert all({"what", "where"} <= set(f) for f in found["faults"])


def test_how_much_is_printed_ends_with_the_command(tmp_path: Path) -> None:
    """Whatever became of it: done, bad input, a wrong call."""
    (tmp_path / "bad.yaml").write_text("veridyn: 2\n")
    for command in (["model", "show", "veridyn:arm.yaml"], ["model", "show", str(tmp_path / "bad.yaml")], ["fly"]):
        for flag in ("--json", "-q", "-v"):
            CliRunner().invoke(app, [flag, *command])
            assert mode() == "normal"


def test_a_study_quietly_in_detail_and_as_json(tmp_path: Path) -> None:
    quiet = CliRunner().invoke(app, ["observe", STUDY, "--out", str(tmp_path), "-q"])
    assert quiet.exit_code == 0 and all(line.startswith("warning:") for line in quiet.stderr.splitlines())
    assert quiet.stdout.strip().endswith("report.html") and len(quiet.stdout.splitlines()) == 1
    detailed = CliRunner().invoke(app, ["-v", "observe", STUDY, "--out", str(tmp_path)])
    assert " s  " in detailed.stderr and detailed.stdout.splitlines()[-1].endswith("report.html")
    as_json = CliRunner().invoke(app, ["observe", STUDY, "--out", str(tmp_path), "--json"])
    found = json.loads(as_json.stdout)
    kept = json.loads((Path(found["report"]).parent / "result.json").read_text(encoding="utf-8"))
    assert found["exit_code"] == 0 and found["figures"]["nis"] == kept["figures"]["nis"]


def test_two_modes_at_once_are_refused() -> None:
    done = CliRunner().invoke(app, ["-q", "--json", "model", "show", "veridyn:arm.yaml"])
    assert done.exit_code == 2 and "choose one" in done.stderr


def test_new_writes_over_a_file_only_when_told(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("mine")
    args = ["new", "veridyn:crane.yaml", "veridyn:crane.csv", "--out", str(file)]
    refused = CliRunner().invoke(app, args)
    assert refused.exit_code == 2 and "--force" in refused.stderr and file.read_text() == "mine"
    assert CliRunner().invoke(app, [*args, "--force"]).exit_code == 0
    assert "kind: observe" in file.read_text()


def test_completion_is_offered() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert "--install-completion" in done.stdout


def test_without_a_terminal_each_task_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(Console(file=io.StringIO())) as progress:
        for done in range(3):
            progress("simulating", done, 2.0)
        progress("identifying", 0.0, None)
    shown = capsys.readouterr()
    assert shown.err == "simulating\nidentifying\n"
    assert shown.out == ""


def test_on_a_terminal_there_is_a_bar_with_the_time_left() -> None:
    screen = io.StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, width=100)) as progress:
        progress("simulating", 0.0, 4.0)
        progress("simulating", 2.0, 4.0)
        progress("simulating", 0.0, 8.0)
        progress("looking", 1.0, None)
    assert "simulating" in screen.getvalue()
    assert "-:--:--" in screen.getvalue()


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
    file.write_text(BENCH + f"out: {out}\n")
    done = Recorded(RESULT, lambda result, command: "", lambda result: None)
    recorded_study(file, None, load_study(file), lambda run, progress: done, show=False)
    said = capsys.readouterr().err
    assert ("leaves the folder of the study" in said) == leaves
    assert not leaves or str(tmp_path / "elsewhere") in said
    recorded_study(file, tmp_path / "asked", load_study(file), lambda run, progress: done, show=False)
    assert "leaves the folder" not in capsys.readouterr().err  # the user's own --out is no news
