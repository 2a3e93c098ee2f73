"""What was found wrong with a log: a tuple of findings, each with its channel, kind, severity, times and a message.

"fatal": the data cannot be resampled or filtered; "warning": what follows is biased by it; "note": worth knowing.
Times are in seconds. A finding is a :class:`veridyn.errors.Fault` that did not have to be raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from veridyn.errors import DataError, Fault

Kind = Literal[
    "empty",
    "clock nan",
    "backwards",
    "duplicate",
    "gap",
    "jitter",
    "nan",
    "constant",
    "clipping",
    "spike",
    "dropout",
    "frozen",
    "held",
    "coarse",
    "standstill",
    "missing",
    "unit",
    "range",
    "contradiction",
    "false count",
    "clock offset",
]
Severity = Literal["note", "warning", "fatal"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of trouble on one channel, from the first place to the last (s), `count` times."""

    channel: str
    kind: Kind
    severity: Severity
    t_start: float
    t_end: float
    count: int
    message: str
    fault: Fault

    def summary(self) -> str:
        return f"{self.severity}, {self.kind}: {self.message}"


@dataclass(frozen=True)
class Findings:
    """Everything found in the experiment `name`, channel by channel; iterates and counts like a tuple."""

    name: str
    findings: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def of(self, kind: Kind | None = None, channel: str | None = None) -> tuple[Finding, ...]:
        """Those of one kind, of one channel, or both."""
        return tuple(f for f in self if kind in (None, f.kind) and channel in (None, f.channel))

    @property
    def fatal(self) -> tuple[Finding, ...]:
        return tuple(f for f in self if f.severity == "fatal")

    def summary(self) -> str:
        """All findings, gravest first, one paragraph each."""
        if not self.findings:
            return f"{self.name}: nothing found."
        rank = {"fatal": 0, "warning": 1, "note": 2}
        ordered = sorted(self.findings, key=lambda f: rank[f.severity])
        return "\n".join([f"{self.name}: {len(self)} finding(s).", *(f.summary() for f in ordered)])

    def raise_if_fatal(self) -> None:
        """Raise all fatal findings as one DataError; return where there is none."""
        if self.fatal:
            raise DataError([f.fault for f in self.fatal], self.name)
