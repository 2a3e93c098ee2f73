"""What a paper shows, asked of a study of it: reasons of its verdict beside those of the common rule (:mod:`veridyn.inference.verdict`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.inference.verdict import Grade, Outcome, Reason, verdict_of
from veridyn.wording import number


@dataclass(frozen=True)
class Requirement:
    """Something that the study is to show. Where it is not `met`, `unmet` says so, and the verdict is at best `grade`."""

    met: bool
    unmet: str
    grade: Grade = "fair"


def at_least(what: str, value: float, least: float) -> Requirement:
    """`what` is the number, in words."""
    return Requirement(value >= least, f"{what}: {number(value, 2)}, less than {least:g}.")


def at_most(what: str, value: float, most: float) -> Requirement:
    """`what` is the number, in words."""
    return Requirement(value <= most, f"{what}: {number(value, 2)}, more than {most:g}.")


def reasons_of(requirements: Sequence[Requirement]) -> list[Reason]:
    """A reason for each that is not met."""
    return [Reason(r.grade, "paper", r.unmet) for r in requirements if not r.met]


def held_out_reasons(fit: Fit, check: Validation) -> list[Reason]:
    """What the common rule has against a fit that was validated on motion of its own."""
    return list(verdict_of(Outcome(name=fit.described.name, fitted=fit.rows, held_out=check.rows)).reasons)
