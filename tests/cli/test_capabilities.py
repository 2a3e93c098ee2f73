"""``veridyn capabilities``: the table of the documentation, and the row of one machine for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veridyn.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"


def test_without_a_model_it_prints_the_page_of_the_documentation() -> None:
    done = CliRunner().invoke(app, ["capabilities"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == (DOCS / "capabilities.md").read_text(encoding="utf-8").strip()


def test_the_row_of_one_machine_has_reasons() -> None:
    done = CliRunner().invoke(app, ["capabilities", "veridyn:crane.yaml"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "crane, formulation natural"
    told = {line[:38].strip(): line[38:] for line in lines[1:]}
    assert told["simulate"] == "yes" and told["regressor"] == "by its tree"
    assert told["identify innovations"].startswith("no: ")


@pytest.mark.parametrize("model", [[], ["veridyn:crane.yaml"]])
def test_programs_get_every_cell(model: list[str]) -> None:
    done = CliRunner().invoke(app, ["--json", "capabilities", *model])
    found = json.loads(done.stdout)
    assert done.exit_code == found["exit_code"] == 0
    rows = found["capabilities"]
    assert set(rows) == ({"crane"} if model else {"arm", "linkage", "free", "crane", "car"})
    assert all(len(row) > 30 for row in rows.values()) and "identify wls" in next(iter(rows.values()))


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    for name in ("none.urdf", "veridyn:kran.yaml"):
        done = CliRunner().invoke(app, ["capabilities", name])
        assert done.exit_code == 2 and name.partition(":")[2] in done.stderr and done.stdout == ""
