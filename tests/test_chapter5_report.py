"""The report with the figures of chapter 5: every quantity above its errors, and its numbers beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.chapter5 import HEADINGS, Job, main, printed

from veridyn.papers.buggy.observers import QUANTITIES


def test_each_table_has_the_thesis_beside_it() -> None:
    for table in HEADINGS:
        assert set(printed(table)) <= set(QUANTITIES)
    assert printed(5)["yaw"] == (0.0048, 0.0078) and printed(8)["x"] == (0.0706, 0.4301)
    assert [Job(table, "own", 0, True).kind for table in HEADINGS] == ["straight", "circular", "laps", "laps"]


@pytest.mark.slow
def test_a_drive_is_set(tmp_path: Path) -> None:
    assert main(["--tables", "5", "--engines", "own", "--quick", "--workers", "1", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.count('<div class="above">') == 14 and "errorEKF, thesis" in text
    figures = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["figures"]
    assert figures["table_5_own_rms_x_ekf"] < figures["table_5_own_rms_x_plain"]
