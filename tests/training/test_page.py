"""The page on training loops: its blocks run as they are printed, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_blocks_of_the_page_run() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    names: dict = {}
    for text in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(text, str(PAGE), "exec"), names)  # noqa: S102  the page of this repository
    assert names["gamma"].shape == (50, 1000, 6) and names["slope"].shape == names["values"].shape
    assert names["phi"].grad.shape == names["phi"].shape
