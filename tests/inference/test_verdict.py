"""A verdict is the worst that any reason leaves, whatever else speaks for the result."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from veridyn.errors import VeridynError
from veridyn.inference.error_measures import RowReport
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import GRADES, Outcome, Reason, Verdict, carrying, verdict_of


def row(percent: float, name: str = "q1", std: float = 10.0) -> RowReport:
    """A row whose error is so many percent of its standard deviation, and whose noise is nothing beside it."""
    return RowReport(name, 1000, 0.01 * percent * std, std, measured_std=std, noise=1e-6, unit="N*m")


GOOD = Outcome(name="arm", fitted=[row(2.0)], held_out=[row(2.1)], before=[row(40.0)])
CASES = {
    "nothing": (GOOD, "good", ()),
    "error": (replace(GOOD, held_out=[row(8.0)]), "fair", ("error",)),
    "large error": (replace(GOOD, held_out=[row(30.0)]), "poor", ("error",)),
    "no number": (replace(GOOD, held_out=[row(2.0), row(math.nan, "q2")]), "poor", ("error",)),
    "nothing held out": (replace(GOOD, held_out=[], before=[]), "not validated", ("validation",)),
    "nothing held out, and a large error": (
        replace(GOOD, fitted=[row(30.0)], held_out=[]),
        "poor",
        ("error", "validation"),
    ),
    "the same samples": (replace(GOOD, share=0.0), "not validated", ("validation",)),
    "some of the same samples": (replace(GOOD, share=0.5), "fair", ("validation",)),
    "nothing to judge": (replace(GOOD, unjudged="no force is measured"), "not validated", ("validation",)),
    "worse than before": (replace(GOOD, before=[row(1.0)]), "poor", ("worse than file",)),
    "a file that is right": (replace(GOOD, before=[row(2.05)], departure=0.3), "good", ()),
    "contradiction": (replace(GOOD, contradiction=1.4), "fair", ("contradiction",)),
    "disagreement": (replace(GOOD, disagreement="2 logs disagree."), "fair", ("disagreement",)),
    "finding": (
        replace(GOOD, findings=[FoundCause(cause="delay", place="q1", rank=1, message="late")]),
        "fair",
        ("finding",),
    ),
    "bound": (replace(GOOD, bounds=["the torque of q1 saturates in 4 % of the samples."]), "fair", ("bound",)),
    "limit": (replace(GOOD, missed=["condition: 900, and at most 100 is accepted."]), "poor", ("limit",)),
    "its own reason": (replace(GOOD, further=[Reason("fair", "NIS", "NIS is 4.")]), "fair", ("NIS",)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_worst_reason_decides(name: str) -> None:
    outcome, grade, kinds = CASES[name]
    verdict = verdict_of(outcome)
    assert verdict.grade == grade
    assert tuple(r.kind for r in verdict.reasons) == kinds
    assert verdict.record["grade"] == grade and len(verdict.record["reasons"]) == len(kinds)
    assert all(r.text in verdict.summary() for r in verdict.reasons)


@pytest.mark.parametrize("name", [name for name, (_, grade, _) in CASES.items() if grade != "good"])
def test_no_error_however_small_outweighs_a_reason(name: str) -> None:
    outcome = replace(CASES[name][0], fitted=[row(0.1)])
    assert not verdict_of(outcome).at_least("good")


def test_rows_that_carry_little_decide_nothing() -> None:
    rows = [row(2.0), row(60.0, "q2", std=0.3)]
    assert [r.row for r in carrying(rows)] == ["q1"]
    assert verdict_of(replace(GOOD, held_out=rows)).grade == "good"


def test_the_headline_is_that_of_the_grade() -> None:
    words = {grade: f"it is {grade}" for grade in GRADES}
    assert verdict_of(replace(GOOD, headlines=words)).headline == "it is good"
    assert verdict_of(replace(GOOD, headlines=words, held_out=[row(9.0)])).headline == "it is fair"


def test_missed_limits_and_faults_stand_first() -> None:
    found = Verdict("good", "Right.", ("a line",)).against(["a limit"], ["a fault", "another"])
    assert found.grade == "poor" and found.findings == (
        "Missed: a limit",
        "Possible fault: a fault",
        "Possible fault: another",
        "a line",
    )
    assert {r.kind for r in found.reasons} == {"limit", "finding"}


def test_an_unknown_grade_is_refused() -> None:
    with pytest.raises(VeridynError) as error:
        Verdict("splendid", "Right.")
    assert error.value.faults[0].where == "grade"
