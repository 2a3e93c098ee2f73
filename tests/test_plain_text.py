"""What users' files hold does nothing on a terminal or in a spreadsheet, and tables read back as they were."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.files.log.load import load_log
from veridyn.files.log.tables import save_log
from veridyn.plain_text import harmless_cell, read_cell, visible
from veridyn.studies.result import csv_text

ARM = """veridyn: 2
name: "arm\\e]0;mine\\a\\e[31m[red]"
bodies:
  - {name: "b\\e[2J", antecedent: ground, joint: turning, coordinate: q1, inertia: {mass: 1, centre: [0.1, 0, 0]}}
"""


def test_control_characters_become_pictures() -> None:
    assert visible("a\x1b[31m\x07\x7f\x9b\r\nb\tc\rd\u202e") == "a␛[31m␇␡�\nb\tc␍d�"
    assert visible("0.3 ± 0.1 kg·m²") == "0.3 ± 0.1 kg·m²"


def test_a_model_sends_nothing_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM)
    environment = {**os.environ, "FORCE_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    for command in (["model", "show"], ["new", "--kind", "drives"]):
        args = [sys.executable, "-m", "veridyn", *command, str(tmp_path / "arm.yaml")]
        done = subprocess.run(args, capture_output=True, env=environment, timeout=120, cwd=tmp_path, check=False)
        said = done.stdout + done.stderr
        for sequence in (b"\x1b]0;", b"\x1b[31m", b"\x1b[2J", b"\x07"):
            assert sequence not in said, (command, said)
        assert command[0] != "model" or "arm␛]0;mine".encode() in said


@pytest.mark.parametrize("cell", ["=2+5", "@SUM(A1)", "+1-1", "-cmd|' /C calc'!A0", " =1", "\t=1"])
def test_formulas_are_texts_and_read_back(cell: str) -> None:
    written = harmless_cell(cell)
    assert isinstance(written, str) and written[0] == "'" and read_cell(written) == cell


@pytest.mark.parametrize("cell", ["-0.5", "+1e3", "-inf", "q1", "", "'a'", "–", 3.0, None])
def test_other_cells_stay(cell: object) -> None:
    assert harmless_cell(cell) is cell and (not isinstance(cell, str) or read_cell(cell) == cell)


def test_tables_hold_no_formulas(tmp_path: Path) -> None:
    assert csv_text(["=a", "b"], [["=1+1", "-1.5"]]) == "'=a,b\n'=1+1,-1.5\n"
    t = np.arange(3.0)
    log = vd.Experiment.from_arrays(t, {"=cmd()": t, "-x": t}, {"=cmd()": "m", "-x": "m"})
    file = save_log(log, tmp_path / "log.csv")
    assert all(cell[:2] == "\"'" for cell in file.read_text().splitlines()[0].split(",")[1:])
    assert set(load_log(file).names) == set(log.names)
