"""Pages of identifications: what may make all else worthless stands first, and once, and the verdict follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.bench_robot import Bench
from veridyn.errors import Fault
from veridyn.inference.verdict import Verdict
from veridyn.report.faults import named_faults
from veridyn.report.preparation import study_sections
from veridyn.report.study import identified_page, identified_verdict
from veridyn.report.verdict import verdict
from veridyn.studies.config.study import load_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.identify import run_identify


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    bench = Bench(tmp_path_factory.mktemp("study"))
    for log in (bench.training, bench.validation):
        log["tau2"] = -log["tau2"]
    bench.study = bench.study.replace("{lowpass: 8}", "{candidates: [4, 8]}")
    with collected_warnings():
        return run_identify(load_study(bench.write()))


def test_what_may_make_all_else_worthless_stands_first_and_once(run: IdentifyRun) -> None:
    titles = [s.title for s in study_sections(run)]
    assert titles[:2] == ["Cut-off of the low-pass", "Delays"]
    page = identified_page(run, run.result("bench", 0, ()), "veridyn identify study.yaml")
    head = page[: page.index('<section id="forces">')]
    assert all(s.fault.what.replace("'", "&#39;") in head for s in run.suspicions)
    assert page.index('<section id="forces">') < page.index("<h2>Cut-off of the low-pass</h2>")
    assert run.missed and all(page.count(text) == 1 for text in run.missed)
    assert run.suspicions and all(page.count(s.fault.what.replace("'", "&#39;")) == 1 for s in run.suspicions)


def test_the_headline_has_what_speaks_against_the_study(run: IdentifyRun) -> None:
    """A model that predicts as well as any is not good where a check fails, and is poor where a limit is missed."""
    said, found = identified_verdict(run), verdict(run.study)
    assert said.headline.startswith(found.headline) and said.grade == "poor"
    assert "named below" in said.headline and "of the study" in said.headline
    assert said.findings[0] == f"Missed: {run.missed[0]}" and said.findings[1].startswith(
        "Possible fault: force of 'q2'"
    )
    assert not any(line.startswith("Quoting") for line in said.may) and "possible faults" in said.may_not[0]
    good = Verdict("good", "It is identified.", (), ("Predicting.",), ("Other loads.",))
    missed = good.against(["mass: 3, and at most 2 is accepted."])
    assert (missed.grade, missed.headline) == ("poor", "It is identified. A limit of the study is missed.")
    assert missed.may == good.may and good.against() == good
    doubtful = good.against(faults=["its sign seems to be wrong", "it lags"])
    assert (doubtful.grade, doubtful.headline) == ("fair", "It is identified. 2 possible faults are named below.")
    assert good.against(faults=list("abcd")).findings == tuple(f"Possible fault: {x}" for x in "abcd")
    assert good.against(faults=list("abcde")).findings[3:] == ("2 more possible faults stand below.",)
    late = [Fault("it is late", f"force of 'q{k}'") for k in range(1, 7)]
    sign = Fault("its sign seems to be wrong", "force of 'q2'")
    assert named_faults([late[0], sign, *late[1:]]) == [
        "force of 'q1', force of 'q2', force of 'q3', force of 'q4' and 2 more: it is late",
        "force of 'q2': its sign seems to be wrong",
    ]


def test_the_sections_are_set_on_the_page(run: IdentifyRun) -> None:
    result = run.result("bench", 0, ())
    page = identified_page(run, result, "veridyn identify study.yaml")
    assert "its sign seems to be wrong" in page
    assert "Cut-off of the low-pass" in page


def test_a_run_without_trouble_has_no_section_about_it(tmp_path: Path) -> None:
    plain = run_identify(load_study(Bench(tmp_path).write()))
    assert [s.title for s in study_sections(plain)] == ["Delays", "What was not looked for"]
    assert "Possible faults" not in identified_page(plain, plain.result("bench", 0, ()), "veridyn")
    assert identified_verdict(plain) == verdict(plain.study)
