"""A fit of flexible joints is good only where other logs show the same stiffness and deflection, and no sensor speaks against it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from identify.flexible import flexible_arm as arm
from veridyn.inference.finding import FoundCause
from veridyn.model.experiment import Channel

HUNG = slice(2000, 2200)  # samples of 1 ms


@cache
def logs() -> tuple[vd.Experiment, vd.Experiment]:
    run = arm.simulated(arm.swing, 8.0, friction=8.0)
    parts = (slice(500, 4500), slice(3500, None))
    first, second = (
        arm.log(*(x[own] for x in run), delay=2.8e-3, noise=2e-6, seed=k, name=f"run {k}")
        for k, own in enumerate(parts)
    )
    return first, second


@cache
def fit() -> vd.estimators.FlexibleFit:
    first, second = logs()
    return vd.estimators.identify_flexible(arm.machine(), first, validation=second)


def test_two_logs_of_one_joint_are_good() -> None:
    found = fit()
    assert found.verdict.grade == "good" and found.findings == () and found.summary().endswith("verdict: good")
    assert [r.row for r in found.held_out_rows] == ["hip"] and found.std_percent["hip"] < 1.0
    assert "viscous of hip" in " ".join(found.verdict.may_not)
    assert found.held_out_rows[0].rms < 0.01 * found.held_out_rows_defaults[0].rms  # the file states 4000 N*m/rad


def against(name: str) -> vd.estimators.FlexibleFit:
    found, joint = fit(), fit().joints["hip"]
    estimate = joint.estimate
    if name == "not validated":
        return replace(found, again=None)
    if name == "undetermined":
        wide = estimate.covariance + np.diag(np.append(9.0, np.zeros(len(estimate.values) - 1)))
        return replace(found, joints={"hip": replace(joint, estimate=replace(estimate, covariance=wide))})
    if name == "logs disagree":
        assert found.again is not None
        other = found.again.joints["hip"]
        moved = other.estimate.values + np.append(
            10.0 * other.estimate.sigma[0], np.zeros(len(other.estimate.values) - 1)
        )
        again = replace(found.again, joints={"hip": replace(other, estimate=replace(other.estimate, values=moved))})
        return replace(found, again=again)
    right = joint.mean.copy()  # the file was right, and the fit is not
    right[[0, 1, 2, 4]] = estimate.values[[0, 1, 2, 4]]
    values = estimate.values.copy()
    values[0] += 0.5
    wrong = replace(joint, mean=right, sigma=np.full(5, 0.05), estimate=replace(estimate, values=values, free=None))
    return replace(found, joints={"hip": wrong})


@pytest.mark.parametrize(
    ("name", "grade", "kind"),
    [
        ("not validated", "not validated", "validation"),
        ("undetermined", "poor", "undetermined"),
        ("logs disagree", "fair", "disagreement"),
        ("worse than file", "poor", "worse than file"),
    ],
)
def test_what_speaks_against_it(name: str, grade: str, kind: str) -> None:
    verdict = against(name).verdict
    assert verdict.grade == grade and kind in [r.kind for r in verdict.reasons]


def test_a_link_encoder_that_hangs_is_named() -> None:
    first, second = logs()
    c = second["q.hip"]
    values = c.values.copy()
    values[HUNG] = values[HUNG.start]
    hung = vd.Experiment({**second.channels, "q.hip": Channel(c.name, c.t, values, c.unit)}, second.name)
    found = vd.estimators.identify_flexible(arm.machine(), first, validation=hung)
    assert [(f.cause, f.place, f.rank) for f in found.findings] == [("frozen", "run 1, channel 'q.hip'", 1)]
    assert isinstance(found.findings[0], FoundCause) and found.verdict.grade != "good"
    assert any("frozen" in note for note in found.notes())
