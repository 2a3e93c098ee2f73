"""The verdict of a study: that of its fit, with the speeds of its logs, the reduced model, and that a log was simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from veridyn.identify.fit_verdict import outcome_of, verdict_of_outcome
from veridyn.inference.verdict import Verdict
from veridyn.wording import listed, number, percent

if TYPE_CHECKING:
    from veridyn.identify.pipeline.identified import IdentificationStudy

WITHIN_TWO = 0.9545  # of normal errors are within two standard deviations
SPEED_UNITS = {"turning": "rad/s", "sliding": "m/s"}
MOST_SPEEDS = 8  # that are named


def verdict_of_study(study: IdentificationStudy, missed: Sequence[str] = ()) -> Verdict:
    """`missed`: sentences about limits of the study that are not kept."""
    outcome = outcome_of(study.fit)
    may = [_use(study, outcome.may[0]), *(_true(study, text) for text in outcome.may[1:]), *_smaller(study)]
    may_not = [*outcome.may_not[:-1], *_worse_when_reduced(study), outcome.may_not[-1]]
    if np.isfinite(study.truth).any():
        may_not.append("Any statement about a real machine: everything here was simulated.")
    return verdict_of_outcome(replace(outcome, may=may, may_not=may_not, missed=missed))


def deviations_too_small(study: IdentificationStudy) -> bool:
    """Whether fewer true values lie within 2σ than chance explains: three deviations of a binomial share below 95.4 %."""
    share = study.figures.get("share_inside_two_sigma", 1.0)
    return share < WITHIN_TWO - 3.0 * math.sqrt(WITHIN_TWO * (1.0 - WITHIN_TWO) / len(study.truth))


def _use(study: IdentificationStudy, text: str) -> str:
    """What the model is for, up to the speeds of its logs."""
    machine, speed = study.model, np.abs(study.training.qd).max(axis=0)
    reach = [
        f"{machine.coordinates[k]}\N{NO-BREAK SPACE}{number(speed[k], 2)} {SPEED_UNITS[machine.coordinate_kinds[k]]}"
        for k in machine.independent
    ]
    return f"{text.removesuffix('.')}, up to the speeds seen: {listed(reach, MOST_SPEEDS)}."


def _true(study: IdentificationStudy, text: str) -> str:
    if not deviations_too_small(study):
        return text
    return text.replace(", with their deviations.", "; their true deviations are larger than stated.")


def _smaller(study: IdentificationStudy) -> list[str]:
    """The reduced model, which is decided by least squares on forces."""
    if not study.inessential or study.reduced_is_worse or study.by_simulation:
        return []
    worst = percent(study.figures["worst_cross_validation_essential_percent"])
    return [
        f"Leaving out {listed(study.inessential)}, if a smaller model is wanted: zero explains the data as well, and the worst "
        f"row is then off by {worst} %."
    ]


def _worse_when_reduced(study: IdentificationStudy) -> list[str]:
    if not study.reduced_is_worse:
        return []
    full, less = (percent(100.0 * v.relative_error) for v in (study.check, study.essential_check))
    return [
        f"The reduced model without {listed(study.inessential)}: on {study.judged_on} it is off by {less} %, the full one by {full} %."
    ]
