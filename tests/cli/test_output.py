"""How much a command prints: quiet, in detail, and as JSON, with errors too; the options may stand anywhere."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from veridyn.cli.app import app
from veridyn.cli.output import flags_first, shown_progress

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
