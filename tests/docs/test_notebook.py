"""The example notebook of the documentation runs, and gives the numbers that it shows."""

from __future__ import annotations

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


@pytest.mark.skipif(sys.platform == "win32", reason="kernels of notebooks need another event loop on Windows")
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_the_same_again() -> None:
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
