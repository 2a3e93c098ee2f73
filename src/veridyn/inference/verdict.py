"""The verdict of a result, whoever made it and at whatever door: how good it is, why it is no better, and what it may be used for.

    verdict = verdict_of(Outcome(name="tx40", fitted=fit.rows, held_out=check.rows, before=prior.rows, …))

The grade is the worst that any reason leaves; every reason is one sentence. Rows are judged by what noise of the measurement does not
explain of their error, on samples that the fit did not use. Whatever they say, a result is not good where the values that were there before
predict held-out samples better, where rows or logs contradict each other, or where a finding stands; and without held-out samples nobody
knows how it predicts: it is "not validated".

========================================================= =================
reason                                                    at best
========================================================= =================
error beyond noise of the worst row from CLOSE percent    fair
the same from USEFUL percent                              poor
no sample was held out, or none can be judged             not validated
some of the validation samples were used for the fit      fair
held-out error larger than with the values before         poor
rows contradict each other; logs disagree                 fair
a finding                                                 fair
a limit that its study sets is missed                     poor
========================================================= =================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from veridyn.errors import Fault, VeridynError
from veridyn.inference.error_measures import RowReport, std_errors
from veridyn.inference.finding import FoundCause
from veridyn.wording import listed, percent

Grade = Literal["good", "fair", "not validated", "poor"]
GRADES: tuple[Grade, ...] = get_args(Grade)  # the best first
CLOSE, USEFUL = 5.0, 15.0  # percent of a row's standard deviation, beyond noise: "closely", "usefully"
MIN_ROW_SHARE = (
    0.05  # of the largest standard deviation of its unit: what a row must carry to decide the grade (chosen)
)
CONTRADICTION_SIGMA = 1.3  # σ of (26) above which rows contradict each other; arms in order leave 1.1 to 1.2
FALSE_ALARM = 0.01  # of models whose values are right: as many results are called worse than these
NAMED_FAULTS = 3  # that stand in a summary; the section about them has all


@dataclass(frozen=True)
class Reason:
    """Why a result is no better than a `grade`, in one sentence; `kind` in a word or two."""

    grade: Grade
    kind: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """`grade` is "good", "fair", "not validated" or "poor"; `reasons` say why it is no better, the gravest first.

    The rest are sentences: what was found, and what the result may and may not be used for.
    """

    grade: Grade
    headline: str
    findings: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    may_not: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.grade not in GRADES:
            raise VeridynError(
                Fault("a verdict has no such grade.", where="grade", expected=", ".join(GRADES), found=str(self.grade))
            )

    def at_least(self, grade: Grade) -> bool:
        """Whether it is as good as `grade` or better."""
        return GRADES.index(self.grade) <= GRADES.index(grade)

    def with_reasons(self, more: Sequence[Reason]) -> Verdict:
        """The same with further reasons, and the grade that they leave."""
        every = tuple(sorted((*self.reasons, *more), key=lambda r: -GRADES.index(r.grade)))
        return replace(self, grade=worst([self.grade, *(r.grade for r in every)]), reasons=every)

    def against(self, missed: Sequence[str] = (), faults: Sequence[str] = ()) -> Verdict:
        """The same with what speaks against it first: limits of its study that are missed, and possible faults of data or model."""
        words, reasons = [self.headline], list[Reason]()
        if faults:
            n = len(faults)
            words.append("A possible fault is named below." if n == 1 else f"{n} possible faults are named below.")
            reasons.append(Reason("fair", "finding", words[-1]))
        if missed:
            n = len(missed)
            words.append("A limit of the study is missed." if n == 1 else f"{n} limits of the study are missed.")
            reasons.append(Reason("poor", "limit", words[-1]))
        shown = faults if len(faults) <= NAMED_FAULTS + 1 else faults[:NAMED_FAULTS]
        first = [f"Missed: {text}" for text in missed] + [f"Possible fault: {text}" for text in shown]
        if len(shown) < len(faults):
            first.append(f"{len(faults) - len(shown)} more possible faults stand below.")
        found = replace(self, headline=" ".join(words), findings=(*first, *self.findings))
        return found.with_reasons([r for r in reasons if r.kind not in {own.kind for own in self.reasons}])

    @property
    def record(self) -> dict[str, Any]:
        """What `result.json` keeps."""
        return {
            "grade": self.grade,
            "headline": self.headline,
            "reasons": [{"grade": r.grade, "kind": r.kind, "text": r.text} for r in self.reasons],
            "may": list(self.may),
            "may_not": list(self.may_not),
        }

    def summary(self) -> str:
        """The grade with its reasons, as plain text."""
        return "\n".join([f"verdict: {self.grade}", *(f"  {r.text}" for r in self.reasons)])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known of a result, whatever made it.

    `fitted`: rows on the samples of the fit; `held_out`: on validation samples, of which `share` were not used for the fit; `before`: on
    the same ones with the values from before the fit, empty where these are not known. `departure`: the probability that estimates lie
    as far from values that are right. `contradiction`: how much more all rows together leave unexplained than each by itself (26).
    `disagreement`: that logs, or parts of one, contradict each other, in a sentence. `findings`: causes that its diagnosis names.
    `bounds`: limits that were reached, in a sentence each: of a search, of an actuator, of a joint. `undetermined`: what the data leave
    open, by name. `missed`: sentences about limits of its study. `unjudged`: why no held-out row can be judged. `further`: reasons that
    only this kind of result has. `headlines`: a sentence for each grade, in the words of that kind.
    """

    name: str
    fitted: Sequence[RowReport] = ()
    held_out: Sequence[RowReport] = ()
    before: Sequence[RowReport] = ()
    share: float = 1.0
    departure: float = 0.0
    contradiction: float = 1.0
    disagreement: str = ""
    findings: Sequence[FoundCause] = ()
    bounds: Sequence[str] = ()
    undetermined: Sequence[str] = ()
    missed: Sequence[str] = ()
    unjudged: str = ""
    further: Sequence[Reason] = ()
    headlines: Mapping[Grade, str] = field(default_factory=dict)
    may: Sequence[str] = ()
    may_not: Sequence[str] = ()


def worst(grades: Sequence[Grade]) -> Grade:
    """The worst of several; good where there is none."""
    best: Grade = GRADES[0]
    return max((best, *grades), key=GRADES.index)


def verdict_of(o: Outcome) -> Verdict:
    """The verdict: every reason there is, the gravest first, and the grade that they leave."""
    reasons = [*_errors(o), *_held_out(o), *_against(o), *o.further]
    reasons.sort(key=lambda r: -GRADES.index(r.grade))
    grade = worst([r.grade for r in reasons])
    headline = o.headlines.get(grade, f"“{o.name}”: {grade}.")
    open_numbers = [f"{listed(list(o.undetermined))}: the data leave them open."] if o.undetermined else []
    return Verdict(grade, headline, may=tuple(o.may), may_not=(*o.may_not, *open_numbers), reasons=tuple(reasons))


def carrying(rows: Sequence[RowReport]) -> tuple[RowReport, ...]:
    """Judged rows that vary by at least MIN_ROW_SHARE of what the largest row of the same unit does."""
    most: dict[str, float] = {}
    for r in rows:
        most[r.unit] = max(most.get(r.unit, 0.0), r.measured_std)
    return tuple(r for r in rows if r.judged and r.measured_std > MIN_ROW_SHARE * most[r.unit])


def error_beyond_noise(rows: Sequence[RowReport]) -> float:
    """Percent of its standard deviation that noise does not explain in the worst row that carries something; NaN where none does."""
    return 100.0 * max((r.error_beyond_noise for r in carrying(rows)), default=math.nan)


def worse_than_before(o: Outcome) -> bool:
    """Whether held-out samples are predicted less well than by the values from before, and estimates lie further from these than chance.

    Values that are right predict better than any estimate of them, by what noise made of the estimates: both must hold.
    """
    now, then = std_errors(o.held_out), std_errors(o.before)
    shared = now.keys() & then.keys()
    return bool(shared) and o.departure < FALSE_ALARM and all(now[u] > then[u] for u in shared)


def _errors(o: Outcome) -> list[Reason]:
    """What noise of the measurement does not explain, of held-out rows or, where there are none, of those of the fit."""
    rows, where = (o.held_out, "held-out samples") if o.held_out else (o.fitted, "the samples of the fit")
    unknown = [r.row for r in carrying(rows) if not math.isfinite(r.error_beyond_noise)]
    if unknown:
        return [Reason("poor", "error", f"The error of {listed(unknown)} on {where} is not a number.")]
    error = error_beyond_noise(rows)
    if not error >= CLOSE:
        return []
    row = max(carrying(rows), key=lambda r: r.error_beyond_noise)
    what = f"Row {row.row} is off by {percent(error)} % of its standard deviation beyond noise, on {where}."
    return [Reason("poor" if error >= USEFUL else "fair", "error", what)]


def _held_out(o: Outcome) -> list[Reason]:
    """What is not known of samples that the fit did not use, or is worse there."""
    if not o.held_out or o.share <= 0.0:
        return [
            Reason("not validated", "validation", "No sample was held out: how it predicts other motion is not known.")
        ]
    out = []
    if o.unjudged:
        out.append(Reason("not validated", "validation", f"It cannot be judged: {o.unjudged}."))
    if o.share < 1.0:
        part = f"Only {100.0 * o.share:.0f} % of the validation samples were not used for the fit."
        out.append(Reason("fair", "validation", part))
    if worse_than_before(o):
        what = "Held-out samples are predicted less well than with the values of the model file."
        out.append(Reason("poor", "worse than file", what))
    return out


def _against(o: Outcome) -> list[Reason]:
    """What speaks against the data or the model."""
    out = [Reason("fair", "finding", str(f)) for f in o.findings]
    if o.contradiction > CONTRADICTION_SIGMA:
        what = f"The rows contradict each other: σ of the weighted residual is {o.contradiction:.2f}, 1 is right."
        out.append(Reason("fair", "contradiction", what))
    if o.disagreement:
        out.append(Reason("fair", "disagreement", o.disagreement))
    out += [Reason("fair", "bound", text) for text in o.bounds]
    out += [Reason("poor", "limit", text) for text in o.missed]
    return out
