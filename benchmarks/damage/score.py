"""How a damaged log was answered, and whether any test could have found the damage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

import veridyn as vd
from benchmarks.damage.bench import Answer, Bench, Finding, Level
from benchmarks.damage.kinds import Damage, Table
from veridyn.identify.diagnosis.score_test import Projected, best_power, limit_of
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.machine import Machine

WEAKEST, SILENT = 5.0, 3.0  # deviations
FALSE_ALARMS, HALF = 0.01, 0.5  # of the best test, and the power below which it finds nothing
BISECTIONS = 7
CLOSE = 0.2  # of that
Kind = Literal["named", "warned", "silent", "undetectable", "harmless"]
KINDS: tuple[Kind, ...] = ("named", "warned", "silent", "undetectable", "harmless")


@dataclass(frozen=True)
class Outcome:
    """`visible`: deviations of the noise by which the damage shows beside the parameters, NaN where it was found or did no harm.

    `said`: what was blamed first, where something was.
    """

    kind: Kind
    size: float
    visible: float = float("nan")
    said: str = ""


def damaged(bench: Bench, d: Damage, size: float, quiet: bool = False) -> tuple[Table, Machine]:
    """The log with a damage, and the model that is said to be its own."""
    x = bench.log(quiet) if d.log is None else d.log(size, quiet)
    d.apply(x, size, np.random.default_rng([bench.seed, 2]))
    return x, d.machine(bench.machine, size)


def moved(found: Answer, bench: Bench, level: Level) -> float:
    """By how many deviations the worst parameter is off that of the undamaged log."""
    other = bench.good(level)
    if other.names != found.names:
        return np.inf
    return float(np.max(np.abs(found.values - other.values) / other.sigma))


def weakest(d: Damage, bench: Bench) -> float:
    """The size that moves a parameter by `WEAKEST` deviations, or by at most a fifth more, where nothing is repaired.

    By proportion, which a small damage follows, within a bracket that is halved where it does not.
    """
    assert d.sizes is not None
    low, high = d.sizes
    size = float(np.sqrt(low * high))
    for _ in range(BISECTIONS):
        found = bench.identified(*damaged(bench, d, size), "off")
        by = np.inf if found.names is None else moved(found, bench, "off")
        low, high = (low, size) if by > WEAKEST else (size, high)
        if 0.0 <= by - WEAKEST < CLOSE * WEAKEST:
            break
        guess = (1.0 + 0.5 * CLOSE) * WEAKEST / by * size if 0.0 < by < np.inf else 0.0
        size = guess if low < guess < high else float(np.sqrt(low * high))
    return high


def visible(d: Damage, size: float, bench: Bench, level: Level) -> float:
    """‖δ_⊥‖: by how many deviations of the noise a test that knows the shape of a damage sees it beside the parameters.

    δ is what the damage makes of the equations of that level themselves, from the log without noise; the noise of a row is that of the
    damaged log, because a damage that makes a force larger makes its noise larger, too. It is taken for one of first order, as that of
    Pinocchio's machines is, and equations are replaced by their innovations.
    """
    fit, noisy, how = bench.prepared(bench.log(), bench.machine, level)
    before = bench.prepared(bench.log(quiet=True), bench.machine, level)[1]
    other, after, _ = bench.prepared(*damaged(bench, d, size, quiet=True), level)
    told, with_noise, _ = bench.prepared(*damaged(bench, d, size), level)
    rows = [r.row for r in fit.rows]
    if not fit.names == other.names == told.names:
        return np.inf
    if len({tuple(len(m) for m in some) for some in (noisy, before, after, with_noise)}) > 1:
        return np.inf
    every = replace(how, dead_zone={}, drop={})
    a = samples_of(fit, before, rows, every, window=1)
    b, c = (samples_of(other, motions, rows, every, window=1) for motions in (after, with_noise))
    # Dry friction whose speed has another sign with the damage is beside the noise of speeds, whatever the damage is.
    used = _used(fit.described, noisy, rows, how) & _alike(fit.described, before, after, how)[:, None]
    noise = _misfit(c, fit) - _misfit(b, fit)
    if not used.any(axis=0).all():  # a reversed gear may turn the dry friction of a row round at every sample
        return np.inf
    memory = np.sum(noise[1:] * noise[:-1] * used[1:], axis=0) / np.sum(noise[:-1] ** 2 * used[1:], axis=0)
    apart = np.where(used, _innovations(noise, memory), 0.0)
    weight = used / np.sqrt(np.sum(apart**2, axis=0) / used.sum(axis=0))
    delta = _innovations(_misfit(b, fit) - _misfit(a, fit), memory) * weight
    W = _innovations(b.W, memory[:, None]) * weight[:, :, None]
    return float(np.linalg.norm(Projected.of(W, delta).residual))


def _innovations(x: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """x_k − a x_(k−1) of each row: white where x is noise of first order; the first sample as it is."""
    return np.concatenate([x[:1], x[1:] - memory * x[:-1]])


def _used(machine: Machine, motions: Sequence[vd.Motion], rows: Sequence[str], how: Sampling) -> np.ndarray:
    """Which equations (N, R) of the undamaged log a fit uses, among those that neither decimation nor trimming leaves out."""
    parts, start = [], 0
    for m in motions:
        numbers = np.arange(len(m))[:: how.decimate]
        numbers = numbers[(numbers >= how.trim) & (numbers < len(m) - how.trim)]
        parts.append(np.stack([how.uses(machine, row, m.qd[numbers], numbers, len(m), start) for row in rows], axis=1))
        start += len(m)
    return np.concatenate(parts)


def _alike(machine: Machine, before: Sequence[vd.Motion], after: Sequence[vd.Motion], how: Sampling) -> np.ndarray:
    """Samples (N,), those that :func:`_used` speaks of, at which all speeds of dry friction, also of motors that turn several joints, have
    the same sign before and after a damage."""
    turns = np.array([[e.on.get(c, 0.0) for c in machine.coordinates] for e in machine.elements if e.jumps])
    axes, parts = np.concatenate([np.eye(machine.n), turns.reshape(-1, machine.n)]).T, []
    for a, b in zip(before, after, strict=True):
        numbers = np.arange(len(a))[:: how.decimate]
        numbers = numbers[(numbers >= how.trim) & (numbers < len(a) - how.trim)]
        same = np.all(np.sign(a.qd[numbers] @ axes) == np.sign(b.qd[numbers] @ axes), axis=1)
        same[1:] &= same[:-1]  # innovations look back at the sample before
        parts.append(same)
    return np.concatenate(parts)


def _misfit(x: Samples, fit: vd.Fit) -> np.ndarray:
    return x.y - x.W @ fit.values


def power(seen: float, shapes: int) -> float:
    """How often the best test finds a damage that shows by `seen` deviations and has one of so many shapes."""
    return best_power(seen, limit_of(FALSE_ALARMS, shapes))


def outcome(d: Damage, size: float, bench: Bench, level: Level) -> Outcome:
    """How a damaged log was answered. Warnings and findings that the undamaged log raises, too, do not count."""
    x, machine = damaged(bench, d, size)
    found, before = bench.identified(x, machine, level), bench.good(level)
    plain, known = {_plain(text) for text in before.said}, {(f.cause, f.place) for f in before.findings}
    said = [text for text in found.said if found.names is None or _plain(text) not in plain]
    blamed = [f for f in found.findings if (f.cause, f.place) not in known]
    first = f"{blamed[0].cause} {blamed[0].place}".strip() if blamed else said[0].partition("\n")[0] if said else ""
    if named(d, blamed, said, _places(d, bench, x)):
        return Outcome("named", size, said=first)
    if said or blamed:
        return Outcome("warned", size, said=first)
    if moved(found, bench, level) <= SILENT:
        return Outcome("harmless", size)
    seen = visible(d, size, bench, level)
    return Outcome("undetectable" if power(seen, len(bench.machine.coordinates)) < HALF else "silent", size, seen)


def named(d: Damage, findings: Sequence[Finding], said: Sequence[str], places: Sequence[str]) -> bool:
    """Whether the first finding, or a cause that it is said not to be told from, is the damage, at one of these places if there are any.

    Where there are no findings, or the damage is one of signals, a word of it in any warning counts.
    """
    if findings and d.causes:
        first = min(findings, key=lambda f: f.rank)
        blamed = [(first.cause, first.place), *first.alternatives]
        return any(_matches(d.causes, cause) and _there(place, places) for cause, place in blamed)
    return any(word in text for word in d.words for text in said)


def _matches(causes: Sequence[str], cause: str) -> bool:
    return any(word in cause.lower() for word in causes)


def _there(place: str, places: Sequence[str]) -> bool:
    words = re.findall(r"\w+", place)
    return not places or any(p in words for p in places)


def _places(d: Damage, bench: Bench, x: Table) -> tuple[str, ...]:
    """Joints or motors whose columns are damaged; none where all are, or none is."""
    if d.log is not None:
        return d.places
    changed = {k.partition(".")[2] for k in x if k != "t" and not np.array_equal(x[k], bench.table[k])}
    return tuple(changed) if len(changed) < len(bench.machine.coordinates) else ()


def _plain(text: str) -> str:
    """What a message says and where, without its numbers."""
    return re.sub(r"(?<![\w'.])[-+]?\d[\d.e+-]*", "#", text.partition("\n")[0])
