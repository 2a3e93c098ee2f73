from pathlib import Path

import pytest

from studies.bench_robot import Bench
from veridyn.report.page import identification_page
from veridyn.report.study import study_sections
from veridyn.studies.config.study import load_study
from veridyn.studies.identify_run import IdentifyRun, run_identify
from veridyn.studies.result import collected_warnings


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
    assert [s.title for s in sections] == ["Limits that are missed", "Suspicions", "Cut-off of the low-pass", "Delays"]
    assert "not to be used" in sections[1].lead
    assert "Proposed: " in sections[2].lead


def test_the_sections_are_set_on_the_page(run: IdentifyRun) -> None:
    result = run.result("bench", 0, ())
    page = identification_page(run.study, result, "veridyn identify study.yaml", study_sections(run))
    assert "its sign seems to be wrong" in page
    assert "Cut-off of the low-pass" in page


def test_a_run_without_trouble_has_no_section_about_it(tmp_path: Path) -> None:
    plain = run_identify(load_study(Bench(tmp_path).write()))
    assert [s.title for s in study_sections(plain)] == ["Delays"]
