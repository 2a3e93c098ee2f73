"""The pages on filters and on one's own car: programs run and print what they say, and the study is the one that is shipped."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from veridyn.files.yaml_reader import plain_yaml

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
END = "\n--- end of a program ---\n"


def test_every_program_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "filters.md").read_text(encoding="utf-8"))
    programs = [k for k, (language, _) in enumerate(blocks) if language == "python"]
    whole = tmp_path / "page.py"
    whole.write_text(f"print({END!r}, end='')\n".join(blocks[k][1] for k in programs), encoding="utf-8")
    runpy.run_path(str(whole))
    for k, printed in zip(programs, capsys.readouterr().out.split(END), strict=True):
        if k + 1 < len(blocks) and blocks[k + 1][0] == "text":
            assert printed == blocks[k + 1][1]
    assert len(programs) == 4


def test_the_study_of_the_page_is_the_one_that_is_shipped() -> None:
    """Every number that the page shows stands in the example."""
    page = BLOCK.findall((ROOT / "docs" / "own-car.md").read_text(encoding="utf-8"))
    model, shown = (plain_yaml(text).values for text in [t for language, t in page if language == "yaml"][:2])
    studies = ROOT / "examples" / "studies"
    car = plain_yaml((studies / "ferrari_model.yaml").read_text(encoding="utf-8")).values
    shipped = plain_yaml((studies / "ferrari.yaml").read_text(encoding="utf-8")).values
    assert {key: car["car"][key] for key in model["car"]} == model["car"]
    assert (car["sensors"], shipped["model"]) == (model["sensors"], shown["model"])
    for key in ("rate", "columns", "start", "end", "time"):
        assert shipped["log"][key] == shown["log"][key]
    assert shipped["training"] == shown["training"]
