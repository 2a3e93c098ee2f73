"""The judge of observations: findings in order, rows of outputs as they were predicted, and a verdict that no finding escapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.house import arm, log

from veridyn.inference.finding import FoundCause
from veridyn.observe.consistency import judge
from veridyn.observe.consistency.findings import REFUSED_SHARE
from veridyn.observe.consistency.judge import judged_observation, pauses, predicted_rows, rejected_readings, remarks
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Observation
from veridyn.observe.pipeline import observation_run


@pytest.fixture(scope="module")
def states() -> Observation:
    return observation_run(arm(), log("observe", 0), withheld={"encoder2": [(2.0, 2.2)]}).states


def with_findings(states: Observation, *causes: FoundCause) -> Observation:
    other = replace(states)
    vars(other)["findings"] = causes
    return other


def test_rows_are_predictions_of_readings_before_they_are_used(states: Observation) -> None:
    units = {"encoder1": "rad", "encoder2": "rad"}
    rows = predicted_rows(states.estimates, states.readings, units)
    assert [r.row for r in rows] == ["encoder1", "encoder2", "encoder2, withheld"]
    e = states.estimates
    used = e.status[:, 1] == Status.USED
    assert rows[1].samples == used.sum() and rows[2].samples == 41
    assert rows[1].rms == pytest.approx(np.sqrt(np.mean(e.innovations[used, 1] ** 2)), rel=1e-12)
    spread = np.std(states.readings.values[:, 1])
    assert (rows[1].measured_std, rows[2].measured_std) == pytest.approx((spread, spread), rel=1e-12)
    late = predicted_rows(e, states.readings, units, settled=790)
    assert {r.row: r.samples for r in late} == {"encoder1": 10, "encoder2": 10}


CAUSE: dict[str, Any] = {"place": "here", "message": "It is so."}


@pytest.mark.parametrize(
    ("finding", "grade"),
    [
        (FoundCause(cause="frozen", **CAUSE), "fair"),
        (FoundCause(cause="predictions", **CAUSE), "fair"),
        (FoundCause(cause="lost track", **CAUSE), "poor"),
        (FoundCause(cause="log", **CAUSE), "poor"),
        (FoundCause(cause="outliers", size=2.0 * REFUSED_SHARE, **CAUSE), "fair"),
        (FoundCause(cause="outliers", size=0.5 * REFUSED_SHARE, **CAUSE), "good"),
        (FoundCause(cause="innovations", **CAUSE), "good"),  # the verdict says it in its own words
    ],
)
def test_a_finding_leaves_this_grade(states: Observation, finding: FoundCause, grade: str) -> None:
    assert judged_observation(with_findings(states)).grade == "good"
    verdict = judged_observation(with_findings(states, finding))
    assert verdict.grade == grade
    assert [r.text for r in verdict.reasons] == ([] if grade == "good" else ["It is so."])
    assert verdict.may == ("Reading its bands as they stand.",)


@pytest.mark.parametrize(
    ("factor", "coloured", "grade"), [(3.0, False, "fair"), (1.0, True, "fair"), (3.0, True, "poor")]
)
def test_innovations_decide_by_their_size_and_their_colour(
    states: Observation, factor: float, coloured: bool, grade: str
) -> None:
    e = states.estimates
    nu = e.innovations.copy()
    if coloured:  # each reading as far off as the one before
        nu = np.sqrt(e.innovation_variances) * np.sign(np.sin(np.arange(len(nu)) / 20.0))[:, None]
    scale = np.sqrt(factor)
    nis = np.nansum(np.where(e.status == Status.USED, scale**2 * nu**2 / e.innovation_variances, 0.0), axis=1)
    other = with_findings(replace(states, estimates=replace(e, innovations=scale * nu, nis=nis)))
    verdict = judged_observation(other)
    assert verdict.grade == grade and verdict.may == () and "as they stand" in verdict.may_not[0]
    assert ("innovations" in {r.kind for r in verdict.reasons}) == (factor > 1.0)
    assert ("coloured" in {r.kind for r in verdict.reasons}) == coloured


def test_without_any_reading_nothing_is_validated(states: Observation) -> None:
    e = states.estimates
    none = replace(e, status=np.full_like(e.status, Status.MISSING), dof=np.zeros_like(e.dof))
    verdict = judged_observation(with_findings(replace(states, estimates=none)))
    assert verdict.grade == "not validated" and verdict.may == verdict.may_not == ()


def test_findings_are_ranked_in_the_order_of_the_checks(states: Observation, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FoundCause(cause="a", place="x"), FoundCause(cause="b", place="y")
    monkeypatch.setattr(judge, "CHECKS", (lambda _: [first], lambda _: iter([second])))
    assert [(f.cause, f.rank) for f in judge.findings_of(states)] == [("a", 1), ("b", 2)]


def test_remarks_tell_what_a_summary_leaves_out(states: Observation) -> None:
    status = states.estimates.status.copy()
    status[[100, 300], 0] = Status.NOT_FINITE
    status[500:504, 1] = Status.NOT_FINITE
    other = replace(states, estimates=replace(states.estimates, status=status))
    assert rejected_readings(other) == {"encoder1": 2, "encoder2": 4}
    told = remarks(other)
    assert "2 readings of 'encoder1' not used." in told and any("sends no numbers" in text for text in told)


def test_pauses_are_told_and_counted() -> None:
    steady = 0.01 * np.arange(400)
    assert pauses(steady) == [] and pauses(steady[:1]) == []
    assert pauses(np.delete(steady, slice(101, 150))) == [
        "the log pauses from 1 s to 1.5 s: the model goes on alone, and its bands grow."
    ]
    often = pauses(np.delete(steady, [k for a in (20, 80, 140, 200, 260) for k in range(a, a + 30)]))
    assert len(often) == 4 and often[-1] == "the log has 2 more such pauses."


def test_sensors_of_several_rates_do_not_pause() -> None:
    slow, fast = 0.05 * np.arange(40), 0.01 * np.arange(200)
    assert pauses(np.unique(np.round(np.concatenate([slow, fast]), 6))) == []
