"""Runs of claims: shared between rows, made once, resumed, and written in one piece."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from docs.claims_rules import Claim, Done, Figure, results
from docs.claims_run import figures, left, longest, made, main, plan, written

from docs import claims_run

WRITES = "import json, sys; open(sys.argv[2] + '/result.json', 'w').write(json.dumps({'figures': {'x': 2.0 * int(sys.argv[1])}}))"
COMMAND = f'python -c "{WRITES}" {{seed}} {{out}}'
X, Y = (Figure(f"result.json#{key}", "1", (0.0, 1.0), "so") for key in "xy")
ROW = Claim("000", "(1)", "c", "result", "e", command=COMMAND, seeds=(0, 1, 2, 3, 4), figures=(X,))


def test_rows_share_runs_and_their_figures() -> None:
    found = plan([ROW, replace(ROW, item="(2)", figures=(X, Y))], 2)
    assert list(found) == [ROW.run(0), ROW.run(1)]
    assert list(found.values()) == [[X.name, Y.name]] * 2


def test_the_longest_goes_next() -> None:
    wanted = {"short 0": [X.name], "long 0": [X.name], "new 0": [X.name], "short 1": [X.name], "long 1": [X.name]}
    have = {"long 0": Done(5.0, {"x": 1.0}), "short 0": Done(1.0, {"x": 1.0})}
    assert left(wanted, have) == ["new 0", "short 1", "long 1"]
    assert longest(left(wanted, have), have) == "new 0"  # nobody knows
    assert longest(["short 1", "long 1"], have) == "long 1"
    assert left({"long 0": [X.name, Y.name]}, have) == ["long 0"]  # a figure is missing


def test_a_run_is_made_in_a_folder_of_its_own() -> None:
    done = made(ROW.run(3), [X.name])
    assert done.figures == {"x": 6.0} and done.minutes >= 0.0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        made("python -c \"1/0; '{out}'\"", [X.name])


def test_figures_are_those_of_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    content = {"figures": {"x": 1.23456789, "y": None, "z": 3.0}}
    (tmp_path / "run-1" / "result.json").write_text(json.dumps(content), encoding="utf-8")
    assert figures(tmp_path, [X.name]) == {"x": 1.23457, "z": 3.0}
    with pytest.raises(KeyError):
        figures(tmp_path, [X.name, Y.name])


def test_the_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = replace(ROW, item="(2)", command='python -c "raise SystemExit(3)" {seed} {out}', seeds=(0,))
    monkeypatch.setattr(claims_run, "claims", lambda: [ROW, broken])
    monkeypatch.setattr(claims_run, "RESULTS", tmp_path / "committed.json")
    file = tmp_path / "claims.json"
    written(file, {ROW.run(1): Done(9.0, {"x": -1.0})})
    assert main(["--run", "--out", str(file), "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert "6 runs, 5 to make" in printed and "FAILED RuntimeError" in printed and "4 runs made, 1 failed" in printed
    runs = results(file)
    assert {run: done.figures["x"] for run, done in runs.items()} == {
        ROW.run(k): -1.0 if k == 1 else 2.0 * k for k in range(5)
    }
    assert main(["--run", "001", "--out", str(file)]) == 0 and "0 runs, 0 to make" in capsys.readouterr().out
