from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench
from studies.closed_bench import ClosedBench
from veridyn.report.blocks import Table, Text
from veridyn.report.page import identification_page
from veridyn.report.study import study_sections
from veridyn.studies.config.study import load_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.identify import IdentifyRun, run_identify


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    bench = Bench(tmp_path_factory.mktemp("study"))
    for log in (bench.training, bench.validation):
        log["tau2"] = -log["tau2"]
    bench.study = bench.study.replace("{lowpass: 8}", "{candidates: [4, 8]}")
    with collected_warnings():
        return run_identify(load_study(bench.write()))


def test_what_may_make_all_else_worthless_stands_first(run: IdentifyRun) -> None:
    sections = study_sections(run)
    first = ["Limits that are missed", "Possible faults", "Cut-off of the low-pass", "Delays"]
    assert [s.title for s in sections] == [*first, "What was not looked for"][: len(sections)] and len(sections) >= 4
    assert "not to be used" in sections[1].lead
    assert "Proposed: " in sections[2].lead


def test_the_sections_are_set_on_the_page(run: IdentifyRun) -> None:
    result = run.result("bench", 0, ())
    page = identification_page(run.study, result, "veridyn identify study.yaml", study_sections(run))
    assert "its sign seems to be wrong" in page
    assert "Cut-off of the low-pass" in page


def test_a_run_without_trouble_has_no_section_about_it(tmp_path: Path) -> None:
    plain = run_identify(load_study(Bench(tmp_path).write()))
    assert [s.title for s in study_sections(plain)] == ["Delays", "What was not looked for"]


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
