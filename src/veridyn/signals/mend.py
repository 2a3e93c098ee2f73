"""A log as recorded, made fit to be filtered: cut where nothing was measured, repaired where that is justified, and reported.

mended(log, Mending(...)) → pieces without resets, gaps, repeated stamps or missing values, and what was done to get them.
Nothing is done that the settings do not say, and nothing is done silently. Whatever the settings refuse is raised, all at once.

Samples that an electrical fault made, spikes and short dropouts to zero, are bridged from their neighbours: x becomes the straight line
between the last sample before it and the first behind it. Nothing else changes: a frozen stretch is too long for a line, and clipped values
are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding, Findings
from veridyn.signals.mending import Mending
from veridyn.signals.outliers import dropouts, spikes
from veridyn.signals.quality import inspect

BRIDGED_GAP_S = 0.02  # s: a span that motion of some hertz crosses as a straight line; never called a hole (chosen)
SHORTEST_PIECE = 100  # samples; a shorter piece says less than the ends of its filters cost (chosen)
MOST_MISPLACED = 20  # stamps in a row that may be wrong in a clock that otherwise goes on (chosen)
STEP_SPREAD = 0.5  # of a step, by which the time over misplaced stamps may differ from as many usual steps (chosen)
REPAIRABLE = ("spike", "dropout")  # kinds of findings


@dataclass(frozen=True)
class Mended:
    """The pieces, in order, and what was found and done, each as a fault that did not have to be raised."""

    pieces: tuple[Experiment, ...]
    told: tuple[Fault, ...]
    findings: Findings


@checked
def mended(log: Experiment, how: Mending | None = None) -> Mended:
    """The pieces of a log that can be filtered and differentiated."""
    rule = how or Mending()
    found = inspect(log, rule.limits)
    refused = [_with_way_out(f) for f in found if _refuses(f.kind, rule)]
    if refused:
        raise DataError(refused, log.name)
    told = [f.fault for f in found if f.severity != "note"]
    parts = _split_at_resets(_without_misplaced(log, told), told) if found.of("backwards") else [log]
    done: list[Experiment] = []
    for part in parts:
        whole = Experiment({c.name: _mended(c, rule) for c in part.channels.values()}, part.name, part.notes)
        done += _pieces(whole, _holes(part, rule), told)
    if not done:
        expected = f"a piece of at least {SHORTEST_PIECE} samples without a gap"
        hint = "Bridge its gaps (gaps: bridge), or record again."
        raise DataError("nothing is left of it that could be filtered.", where=log.name, expected=expected, hint=hint)
    return Mended(tuple(done), tuple(told), found)


def _refuses(kind: str, rule: Mending) -> bool:
    answers = {
        "duplicate": rule.duplicates,
        "backwards": rule.backwards,
        "gap": rule.gaps,
        "nan": rule.missing,
        "spike": rule.spikes,
        "dropout": rule.dropouts,
        "constant": rule.dead,
    }
    return kind == "clock nan" or answers.get(kind) == "refuse"


def _with_way_out(f: Finding) -> Fault:
    """A refusal, with the setting that would go on all the same."""
    ways = {
        "duplicate": "duplicates: drop",
        "backwards": "backwards: cut",
        "gap": "gaps: cut",
        "nan": "missing: cut",
        "spike": "spikes: repair",
        "dropout": "dropouts: repair",
        "constant": "dead: warn",
    }
    return replace(f.fault, hint=f"{f.fault.hint} Or go on with '{ways[f.kind]}'.") if f.kind in ways else f.fault


def _mended(channel: Channel, rule: Mending) -> Channel:
    """Without repeated stamps and missing values; spikes and dropouts bridged from their neighbours."""
    keep = np.isfinite(channel.values)
    keep[1:] &= np.diff(channel.t) > 0.0
    answers = {"spike": rule.spikes, "dropout": rule.dropouts}
    kinds = tuple(kind for kind, answer in answers.items() if answer == "repair")
    return repaired(replace(channel, t=channel.t[keep], values=channel.values[keep]), rule.limits.spike, kinds)


def misplaced(t: Array) -> NDArray[np.bool_]:
    """Stamps (N,) that are wrong in a clock that goes on as if they were right: without them it increases, by as many steps as samples.

    A clock that is set back stays back, so that what follows is late by all that was repeated: such stamps are not misplaced.
    """
    wrong = np.zeros(len(t), dtype=bool)
    steps = np.diff(t)
    back = np.flatnonzero(steps < 0.0)
    usual = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    for k in back:
        ends = [(k, j) for j in range(k + 2, min(k + 2 + MOST_MISPLACED, len(t)))]  # stamps after the step are wrong
        ends += [(i, k + 1) for i in range(k - 1, max(k - 1 - MOST_MISPLACED, -1), -1)]  # or those before it
        for i, j in sorted(ends, key=lambda e: e[1] - e[0]):
            whole = (j - i) * usual
            if not wrong[i] and abs(float(t[j] - t[i]) - whole) <= STEP_SPREAD * usual:
                wrong[i + 1 : j] = True
                break
    return wrong


def _without_misplaced(log: Experiment, told: list[Fault]) -> Experiment:
    """The log without samples whose stamps are misplaced, each channel by its own clock."""
    masks = {c.name: misplaced(c.t) for c in log.channels.values()}
    most = max(int(mask.sum()) for mask in masks.values())
    if most == 0:
        return log
    told.append(Fault(f"{most} sample(s) left out whose stamps are out of order in a clock that goes on.", log.name))
    kept = [replace(c, t=c.t[~masks[n]], values=c.values[~masks[n]]) for n, c in log.channels.items()]
    return Experiment({c.name: c for c in kept}, log.name, log.notes)


def _split_at_resets(log: Experiment, told: list[Fault]) -> list[Experiment]:
    """The log cut where its clock was set back; pieces too short to be filtered are left out."""
    channels = list(log.channels.values())
    if all((np.diff(c.t) >= 0.0).all() for c in channels):
        return [log]
    first = channels[0].t
    if any(c.t is not first and not np.array_equal(c.t, first) for c in channels):
        what = "its clock was reset, and its channels have clocks of their own, so the pieces cannot be matched."
        hint = "Cut the files where the clock was reset, and give them as logs of their own."
        raise DataError(what, where=log.name, hint=hint)
    bounds = [0, *(np.flatnonzero(np.diff(first) < 0.0) + 1), len(first)]
    spans = [(int(a), int(b)) for a, b in pairwise(bounds)]
    long = [(a, b) for a, b in spans if b - a >= SHORTEST_PIECE]
    told.append(Fault(f"cut into {len(long)} pieces where its clock was reset{_left_out(spans, long)}.", log.name))
    return [
        Experiment({c.name: replace(c, t=c.t[a:b], values=c.values[a:b]) for c in channels}, log.name, log.notes)
        for a, b in long
    ]


def _left_out(spans: Sequence[tuple[int, int]], kept: Sequence[tuple[int, int]]) -> str:
    short = sum(b - a for a, b in spans) - sum(b - a for a, b in kept)
    return f", and {short} samples left out in pieces shorter than {SHORTEST_PIECE}" if short else ""


def _holes(log: Experiment, rule: Mending) -> list[tuple[float, float]]:
    """Spans without a measurement of some channel, in order, joined where they overlap."""
    found: list[tuple[float, float]] = []
    for channel in log.channels.values():
        keep = np.isfinite(channel.values)
        t = channel.t[keep]
        steps = np.diff(t)
        if len(steps) == 0:
            continue
        usual = float(np.median(np.diff(channel.t)[np.diff(channel.t) > 0.0])) if len(channel) > 2 else 0.0
        limit = rule.max_gap if rule.max_gap is not None else max(rule.limits.gap * usual, BRIDGED_GAP_S)
        if rule.gaps == "bridge":
            limit = np.inf
        # Missing values are holes however short, gaps in the clock only where they are long.
        numbers = np.flatnonzero(keep)
        missing = np.diff(numbers) > 1
        found += [(float(t[k]), float(t[k + 1])) for k in np.flatnonzero((steps > limit) | missing)]
    joined: list[tuple[float, float]] = []
    for start, end in sorted(found):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _pieces(log: Experiment, holes: Sequence[tuple[float, float]], told: list[Fault]) -> list[Experiment]:
    if not holes:
        return [log]
    edges = [-np.inf, *(x for hole in holes for x in hole), np.inf]
    out, short = [], 0
    for a, b in zip(edges[::2], edges[1::2]):
        channels = {}
        for c in log.channels.values():
            inside = (c.t >= a) & (c.t <= b)
            channels[c.name] = replace(c, t=c.t[inside], values=c.values[inside])
        if min(len(c) for c in channels.values()) < SHORTEST_PIECE:
            short += max(len(c) for c in channels.values())
        else:
            out.append(Experiment(channels, log.name, log.notes))
    left = f", and {short} samples left out in pieces shorter than {SHORTEST_PIECE}" if short else ""
    told.append(Fault(f"cut into {len(out)} pieces where {len(holes)} span(s) hold no measurement{left}.", log.name))
    return out


def damaged(x: Array, spike: float, kinds: tuple[str, ...] = REPAIRABLE) -> NDArray[np.intp]:
    """Indices of the samples of a signal (N,) that are spikes (`spike` as in ``QualityLimits``) or belong to a dropout."""
    hit = [spikes(x, spike)] if "spike" in kinds else []
    if "dropout" in kinds:
        hit += [np.arange(a, b + 1) for a, b in dropouts(x)]
    return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *hit]))


def repaired(channel: Channel, spike: float, kinds: tuple[str, ...] = REPAIRABLE) -> Channel:
    """The channel with damaged samples bridged; the same object where there are none."""
    x = channel.values
    bad = damaged(x, spike, kinds) if len(x) > 4 else []
    if not len(bad):
        return channel
    good = np.delete(np.arange(len(x)), bad)
    whole = x.copy()
    whole[bad] = np.interp(channel.t[bad], channel.t[good], x[good])
    return replace(channel, values=whole)


def note(finding: Finding) -> str:
    """What was done about a finding, in words."""
    what = {"spike": "spike(s)", "dropout": "sample(s) of dropouts to zero"}[finding.kind]
    return (
        f"repaired: {finding.count} {what} of channel '{finding.channel}', first at t = {finding.t_start:.6f} s, "
        "bridged from the neighbours"
    )
