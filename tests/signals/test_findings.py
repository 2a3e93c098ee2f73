"""Findings sort by gravity, can be picked, and raise once, all together."""

import pytest

from veridyn.errors import DataError, Fault
from veridyn.signals.findings import Finding, Findings


def finding(channel, kind, severity):
    fault = Fault(f"{kind} found.", f"channel '{channel}'")
    return Finding(
        channel=channel, kind=kind, severity=severity, t_start=0.0, t_end=1.0, count=1, message=str(fault), fault=fault
    )


FOUND = Findings(
    "run", (finding("a", "gap", "warning"), finding("b", "nan", "fatal"), finding("b", "backwards", "fatal"))
)


def test_picking():
    assert [f.kind for f in FOUND.of(channel="b")] == ["nan", "backwards"]
    assert [f.channel for f in FOUND.of("gap")] == ["a"]
    assert len(FOUND.of()) == len(FOUND) == 3
    assert FOUND[0].kind == "gap"


def test_summary_puts_the_gravest_first():
    lines = FOUND.summary().splitlines()
    assert lines[0] == "run: 3 finding(s)."
    assert lines[1] == "fatal, nan: channel 'b': nan found."
    assert lines[-1].startswith("warning, gap")


def test_fatal_findings_raise_together_and_others_do_not():
    with pytest.raises(
        DataError, match=r"run, 2 faults:\n1. channel 'b': nan found.\n2. channel 'b': backwards found."
    ):
        FOUND.raise_if_fatal()
    Findings("run", FOUND.of("gap")).raise_if_fatal()
