"""The table of a friction ladder: one row for each term, numbers with their standard errors, and what became of it in words.

The reduced model beside the full one: values, what was removed and why, errors of both, and when it is worse.
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench
from studies.closed_bench import ClosedBench
from studies.small_arm import small_study
from veridyn.identify.friction_ladder import FrictionLadder, LadderStep
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.selection import EliminationStep, Essential
from veridyn.inference.finding import Mistake
from veridyn.inference.verdict import Verdict
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.report.blocks import Table, Text
from veridyn.report.insight import reduced_line, reduced_rows, reduced_section, reduced_table
from veridyn.report.page import identification_page
from veridyn.report.study import (
    friction_section,
    identified_page,
    identified_verdict,
    named_faults,
    study_sections,
    trouble_sections,
)
from veridyn.report.verdict import verdict
from veridyn.studies.config.study import load_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.identify import run_identify

NUMBERS = {"before_percent": 12.3, "after_percent": 4.56, "fall_percent": 86.3, "sigma_percent": 5.1}
STEPS = (
    LadderStep(term="viscous", on="q1", **NUMBERS, enters=True, last=(80.0, 4.0)),
    LadderStep(term="stribeck", on="q1", **NUMBERS, last=(0.1, 0.4)),
    LadderStep(term="load", on="q1", **NUMBERS),
    LadderStep(term="temperature", on="q1", reason="not tried: no temperature is named"),
)
LADDER = FrictionLadder(machine=Machine.of_bodies([Body("1")]), steps=STEPS, standard_errors=1.0, after_percent=4.56)


def without_the_last() -> IdentificationStudy:
    """A study whose reduced model lacks the last parameter of the fit."""
    study = small_study()
    fit = study.fit
    base = replace(fit.base, columns=fit.base.columns[:-1], matrix=fit.base.matrix[:-1])
    name = study.model.parameters.names[fit.base.columns[-1]]
    lean = replace(fit, base=base, values=fit.values[:-1], covariance=fit.covariance[:-1, :-1], removed=(name,))
    step = EliminationStep(name, 250.0, 0.16, 0.69, 0.7)
    return replace(study, essential=Essential(lean, (step,)), essential_own=study.own, essential_check=study.check)


def test_both_models_stand_side_by_side() -> None:
    study = without_the_last()
    rows = reduced_rows(study)
    assert [row[0] for row in rows] == list(study.fit.names)
    assert rows[0][2:4] == rows[0][4:6] and rows[-1][4:] == ("0", "–", "250", "0.16", "0.69")
    section = reduced_section(study)
    assert section is not None and "by this rule: relative deviations at most 30 times the smallest" in section.lead
    errors, values = section.blocks
    assert (
        isinstance(errors, Table) and isinstance(values, Table) and [r[0] for r in errors.rows] == ["full", "reduced"]
    )
    assert "noticeably worse" not in section.lead
    cells = list(csv.DictReader(io.StringIO(reduced_table(study))))
    assert float(cells[0]["full"]) == float(cells[0]["reduced"]) and cells[-1]["reduced"] == "0"
    assert cells[-1]["joint_p_value"] == "0.7" and cells[0]["p_value"] == ""
    assert reduced_line(study).startswith(f"reduced model: {len(rows) - 1} of {len(rows)} parameters")


def test_a_worse_one_is_said_to_be_worse() -> None:
    study = without_the_last()
    assert study.before is not None and study.before.relative_error > 1.1 * study.check.relative_error
    worse = replace(study, essential_check=study.before)
    section = reduced_section(worse)
    assert worse.reduced_is_worse and section is not None and "noticeably worse" in section.lead


def test_without_removals_there_is_no_section() -> None:
    study = small_study()
    assert reduced_section(replace(study, essential=Essential(study.fit, ()))) is None


def test_rows_and_lead() -> None:
    section = friction_section(LADDER)
    (table,) = section.blocks
    assert isinstance(table, Table) and len(table.rows) == 4
    assert table.rows[0] == ("viscous", "q1", "12", "4.6", "86.3 ± 5.1", "80 ± 4", "enters")
    assert table.rows[1][-2:] == ("0.1 ± 0.4", "entered, and is not needed beside the others")
    assert table.rows[2][-2:] == ("–", "stays out")
    assert table.rows[3] == ("temperature", "q1", *("–",) * 4, "not tried: no temperature is named")
    assert "1 term of 3 entered" in section.lead and "more than its standard error" in section.lead
    assert "Load-dependent" not in section.lead


def test_signals_of_loads_and_other_thresholds_are_said() -> None:
    lead = friction_section(replace(LADDER, standard_errors=2.0, needs_loads=("load_q1",))).lead
    assert "2 of its standard errors" in lead and "Load-dependent friction reads load_q1" in lead


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> IdentifyRun:
    bench = Bench(tmp_path_factory.mktemp("study"))
    for log in (bench.training, bench.validation):
        log["tau2"] = -log["tau2"]
    bench.study = bench.study.replace("{lowpass: 8}", "{candidates: [4, 8]}")
    with collected_warnings():
        return run_identify(load_study(bench.write()))


def test_what_may_make_all_else_worthless_stands_first(run: IdentifyRun) -> None:
    sections = [*trouble_sections(run), *study_sections(run)]
    first = ["Limits that are missed", "Possible faults", "Cut-off of the low-pass", "Delays"]
    assert [s.title for s in sections] == [*first, "What was not looked for"][: len(sections)] and len(sections) >= 4
    assert "not to be used" in sections[1].lead
    assert "Proposed: " in sections[2].lead
    page = identified_page(run, run.result("bench", 0, ()), "veridyn identify study.yaml")
    titles = ("Limits that are missed", "Possible faults", "Forces, row by row", "Cut-off of the low-pass")
    places = [page.index(f"<h2>{title}</h2>") for title in titles]
    assert places == sorted(places)


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
    late = [Mistake.of("delay", "it is late", f"force of 'q{k}'") for k in range(1, 7)]
    sign = Mistake.of("sign", "its sign seems to be wrong", "force of 'q2'")
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
    assert not trouble_sections(plain) and identified_verdict(plain) == verdict(plain.study)


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
