"""The example notebook of the documentation runs, and gives the numbers that it shows."""

from __future__ import annotations

import ast
import copy
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FILE = Path(__file__).resolve().parents[2] / "docs" / "notebook.ipynb"
NUMBER = re.compile(r"[−-]?\d+\.\d+")


def shown(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """The text of each output: words and numbers of what is displayed, without markup and paths of curves."""
    out = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            html = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", data.get("text/html", ""), flags=re.S)
            out.append(re.sub(r"<[^>]*>", " ", html or data.get("text/plain", "")).split())
    return out


@pytest.mark.filterwarnings("ignore")
def test_every_cell_runs_and_shows_what_it_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, with 8 s of motion in place of 20: the same kinds of output, beginning with the same word."""
    monkeypatch.chdir(tmp_path)
    kept, names, short = nbformat.read(FILE, as_version=4), {"__name__": "notebook"}, 0
    for cell in (c for c in kept.cells if c.cell_type == "code"):
        short += "seconds=20.0" in cell.source
        *before, last = ast.parse(cell.source.replace("seconds=20.0", "seconds=8.0")).body
        exec(compile(ast.Module(before, []), FILE.name, "exec"), names)  # noqa: S102 - the notebook itself is under test
        if not cell.outputs:
            exec(compile(ast.Module([last], []), FILE.name, "exec"), names)  # noqa: S102
            continue
        assert isinstance(last, ast.Expr)
        value = eval(compile(ast.Expression(last.value), FILE.name, "eval"), names)
        data = (
            {"text/html": value._repr_html_()} if "text/html" in cell.outputs[0].data else {"text/plain": repr(value)}
        )
        again = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data)])
        (before,), (after,) = (shown(nbformat.v4.new_notebook(cells=[c])) for c in (cell, again))
        assert before and re.sub(r"\d+", "", before[0]) == re.sub(r"\d+", "", after[0])
    assert short == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kernels of notebooks need another event loop on Windows")
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = nbformat.read(FILE, as_version=4)
    again = copy.deepcopy(kept)
    NotebookClient(again, timeout=600, kernel_name="python3").execute()
    before, after = shown(kept), shown(again)
    assert len(before) == len(after) > 8
    for a, b in zip(before, after, strict=True):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            if NUMBER.fullmatch(x):  # another processor rounds differently
                assert float(y.replace("−", "-")) == pytest.approx(float(x.replace("−", "-")), rel=0.05, abs=0.02)
            elif not re.search(r"\d", x):
                assert x == y
    assert not any(o.output_type == "error" for c in again.cells for o in c.get("outputs", ()))
