"""A possible mistake in a log or its model, as a check of a fit reports it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from veridyn.errors import Fault
from veridyn.identify.found_cause import FoundCause

CONTRADICTION = "rows contradict"  # the kind of rows that together leave more unexplained than each by itself
UNEXPLAINED = "unexplained"  # of rows whose forces are left over for the most part, whatever the cause


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
