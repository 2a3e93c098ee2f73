"""The page of a comparison: runs side by side, parameters that differ by more than their deviations first to be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from veridyn.report.blocks import Block, Figure, Key, Listing, Section, Table, Text, Verdict
from veridyn.report.page import page
from veridyn.report.plots import bars
from veridyn.report.words import count, listed, measured, number, unit_text
from veridyn.studies.compare import APART, Comparison, Difference
from veridyn.studies.result import Result

HASH_DIGITS = 10  # of a SHA-256 that the table of inputs shows


def comparison_page(found: Comparison, command: str) -> str:
    """Verdict, parameters, figures and inputs of two runs or more; `command` is what makes the page again."""
    sections = [
        Section("Parameters", _parameters(found)),
        Section("Figures", _figures(found), "What each run reports of itself; SI units, or as the name says."),
        Section("Inputs", _inputs(found), "What went into the runs; the same hash is the same content."),
    ]
    result = Result("comparison", None, False, {}, {}, (), {})
    return page(
        f"Comparison of {count(len(found.runs), 'run')}",
        comparison_verdict(found),
        _keys(found),
        sections,
        result,
        command,
        {"runs": listed(found.runs, most=len(found.runs))},
        beside="",
    )


def comparison_verdict(found: Comparison) -> Verdict:
    """Good where no parameter differs by more than three deviations, fair where some do, poor where most do or none can be compared."""
    known = [d for d in found.parameters if math.isfinite(d.apart)]
    off = found.differing
    grade = "poor" if not known or 2 * len(off) > len(known) else "fair" if off else "good"
    headline = (
        f"{len(off)} of {count(len(known), 'parameter')} differ by more than {APART:g} deviations."
        if off
        else f"No parameter differs by more than {APART:g} deviations."
        if known
        else "These runs have no parameters with deviations in common."
    )
    findings = (
        [f"Furthest apart: {listed([_worst(d) for d in sorted(off, key=lambda d: -d.apart)[:4]])}."] if off else []
    )
    other = [key for key, hashes in found.inputs.items() if len(set(hashes)) > 1]
    findings.append(f"Not the same in all runs: {listed(other)}." if other else "All runs have the same inputs.")
    if len(set(found.versions)) > 1:
        findings.append(f"They were made with different versions: {listed(found.versions)}.")
    return Verdict(grade, headline, tuple(findings))


def _worst(d: Difference) -> str:
    return f"{d.name} by {number(d.apart, 3)}"


def _keys(found: Comparison) -> list[Key]:
    return [
        Key(str(len(found.runs)), "runs"),
        Key(str(len(found.parameters)), "parameters in two runs or more"),
        Key(str(len(found.differing)), f"of them more than {APART:g} deviations apart"),
    ]


def _parameters(found: Comparison) -> list[Block]:
    if not found.parameters:
        return [Text("No parameter is in two runs or more."), *_lacking(found)]
    known = [d for d in found.parameters if math.isfinite(d.apart)]
    blocks: list[Block] = []
    if known:
        shown = {run: [_from_mean(d, k) for d in known] for k, run in enumerate(found.runs)}
        picture = bars("Distance from the mean of the runs", [d.name for d in known], shown, "deviations")
        blocks.append(
            Figure([picture], picture.title, "Each value less the mean of all runs, in deviations of that run.")
        )
    rows = [
        (
            d.name,
            unit_text(d.unit),
            *(_value(v, s) for v, s in zip(d.values, d.sigmas, strict=True)),
            number(d.apart, 3),
            "differs" if d.apart > APART else "",
        )
        for d in found.parameters
    ]
    n = len(found.runs)
    columns = ("parameter", "unit", *found.runs, "deviations apart", f"more than {APART:g}")
    caption = "Values with one standard deviation. Apart: the difference of the two runs that differ most, over its own deviation."
    return [*blocks, Table(columns, rows, caption, left=(1, n + 3), strong=(n + 2,)), *_lacking(found)]


def _from_mean(d: Difference, k: int) -> float:
    known = [v for v in d.values if math.isfinite(v)]
    return (d.values[k] - sum(known) / len(known)) / d.sigmas[k] if d.sigmas[k] > 0.0 else math.nan


def _value(value: float, sigma: float) -> str:
    v, s = measured(value, sigma)
    return v if s == "–" else f"{v} ± {s}"


def _lacking(found: Comparison) -> Sequence[Block]:
    lines = [f"{run} lacks {listed(names)}." for run, names in zip(found.runs, found.lacking, strict=True) if names]
    return [Listing(lines)] if lines else []


def _figures(found: Comparison) -> list[Block]:
    rows = [(d.name, *(number(v, 5) for v in d.values)) for d in found.figures]
    return [Table(("figure", *found.runs), rows)] if rows else [Text("No figure is in two runs or more.")]


def _inputs(found: Comparison) -> list[Block]:
    rows = [
        (key, *(h[:HASH_DIGITS] or "–" for h in hashes), "yes" if len(set(hashes)) == 1 else "no")
        for key, hashes in found.inputs.items()
    ]
    rows.append(("veridyn", *found.versions, "yes" if len(set(found.versions)) == 1 else "no"))
    return [Table(("input", *found.runs, "the same?"), rows, left=(len(found.runs) + 1,))]
