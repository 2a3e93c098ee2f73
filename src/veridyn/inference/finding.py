"""What was found against a fit or an observation: a cause, its place, how much there is, the evidence; and a mistake as a check has it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from veridyn.errors import Fault

NAN = float("nan")
CONTRADICTION = "rows contradict"  # the kind of rows that together leave more unexplained than each by itself
UNEXPLAINED = "unexplained"  # of rows whose forces are left over for the most part, whatever the cause


@dataclass(frozen=True, kw_only=True)
class FoundCause:
    """One cause, of those that a diagnosis names; ``str(finding)`` says what to do about it. `rank`: 1 first, 0 before they are ordered.

    `cause`: in the words of :mod:`veridyn.identify.diagnosis.causes` and of the other checks, such as "rotor inertia" or "force scale".
    `place`: a coordinate, a channel or a part of the model. `evidence`: 2 Δ log L, the gain in likelihood of the equations with the cause;
    of an observation, what :mod:`veridyn.observe.consistency.judge` says. `size` with deviation `sigma`, in the unit that the message
    states; NaN where a check states none. `moves`: the parameter that it moves
    most, by `shift` deviations. `alternatives`: causes that this log cannot tell from it, as (cause, place). `recording`: what to record to
    decide between them, or to confirm the cause; `remedy`: what to write into the model or the study to accept it, or to do about it.
    `message`: all of it in words.
    """

    cause: str
    place: str
    evidence: float = NAN
    rank: int = 0
    size: float = NAN
    sigma: float = NAN
    moves: str = ""
    shift: float = NAN
    alternatives: tuple[tuple[str, str], ...] = ()
    recording: str = ""
    remedy: str = ""
    message: str = ""

    def __str__(self) -> str:
        return self.message

    @property
    def record(self) -> dict[str, Any]:
        """What `result.json` keeps: all but the message, alternatives as {cause, place}."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "message"}
        return own | {"alternatives": [{"cause": cause, "place": place} for cause, place in self.alternatives]}


@dataclass(frozen=True)
class Mistake:
    """`kind`: the cause in one or two words; `fault`: the possible mistake, where, and the evidence for it; `measured`: the same in
    numbers, where there are some."""

    kind: str
    fault: Fault
    measured: FoundCause | None = None

    def finding(self, rank: int) -> FoundCause:
        """As one of several."""
        own = self.measured or FoundCause(cause=self.kind, place=self.fault.where, rank=rank)
        return replace(own, rank=rank, message=str(self.fault))

    @classmethod
    def of(cls, kind: str, what: str, where: str, expected: str = "", found: str = "", hint: str = "") -> Mistake:
        return cls(kind, Fault(what, where, expected, found, hint))

    def __str__(self) -> str:
        return str(self.fault)
