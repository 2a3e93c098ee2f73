"""How logs were made ready: loops that were closed, and what was not looked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from studies.closed_bench import ClosedBench
from veridyn.report.blocks import Table, Text
from veridyn.report.identification import identification_page
from veridyn.report.preparation import study_sections
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify


def test_of_a_machine_with_loops_the_page_says_how_they_were_closed(tmp_path: Path) -> None:
    bench = ClosedBench(tmp_path)
    for log in (bench.training, bench.validation):
        log["q3"] = log["q4"] - log["q2"] - np.pi  # an encoder at the elbow
    bench.study = bench.study.replace("columns:\n", "columns:\n    q.q3: q3 [rad]\n")
    found = run_identify(load_study(bench.write()))
    section = {s.title: s for s in study_sections(found)}["How its loops were closed"]
    assert "3 coordinates were measured (q1, q2 and q4)" in section.lead and "the other 2 follow" in section.lead
    text, table, spare = section.blocks
    assert isinstance(text, Text) and "at a singular position it is infinite" in text.text
    assert isinstance(table, Table) and isinstance(spare, Table)
    assert [row[2] for row in table.rows] == ["measured", "measured", "measured, and follows", "measured", "follows"]
    assert spare.rows[0][0] == "q3"
    page = identification_page(found.study, found.result("p", 0, ()), "veridyn identify study.yaml", [section])
    assert "How its loops were closed" in page and "measured, and follows" in page
