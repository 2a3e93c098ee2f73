"""What is taken of a log: a share of its time, a span, a range of speeds; the samples that single rows leave out; a load that it carries.

Shares are of the time recorded, without the gaps: logs are filtered whole and then shared out. Where nothing is named to be judged by, the
last HELD_OUT of each recording are kept for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, DataWarning, Fault, warn
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.outliers import runs

Mask = NDArray[np.bool_]
HELD_OUT = 0.3  # of each training log, where no validation logs are named
REST_S = 1.0  # s: a joint that moves less for longer stands still (chosen)
REST_SPEED_SHARE = 0.01  # of its largest speed: slower than this is rest (chosen)
REPORTED_REST_SHARE = 0.2  # of the samples at rest: more is reported (chosen)
MIN_SAMPLES = 20  # of a piece that is taken: a shorter one says nothing behind a filter


@dataclass(frozen=True, kw_only=True)
class Load:
    """A known load on `body`: `mass` (kg), its `centre` (m) in the body's frame, and `inertia` about that, XX XY XZ YY YZ ZZ (kg*m^2)."""

    body: str
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Recording:
    """What is taken of a `log`.

    `share` of its time, from 0 to 1; from `start` to `end` (s) on its clock; `speeds`: the share of its samples from the slowest to the
    fastest. `drop`: row → spans (s) that this row leaves out. `load`: a known one that it carries. `place`: where a study names it.
    `in_blocks`: its `log` is the first block of one that is read in blocks, all of which is looked at whatever its share of the whole.
    """

    log: Experiment
    share: tuple[float, float] = (0.0, 1.0)
    start: float | None = None
    end: float | None = None
    speeds: tuple[float, float] = (0.0, 1.0)
    drop: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    load: Load | None = None
    place: tuple[str | int, ...] = ()
    in_blocks: bool = False

    def of(self, motions: Sequence[Motion]) -> list[Motion]:
        """What is taken of the motions of the pieces of its log, in order; short remains of pieces are left out."""
        if self.in_blocks:
            return list(motions)
        lengths = [len(m) / _rate(m) for m in motions]
        low, high = (share * sum(lengths) for share in self.share)
        out, passed = [], 0.0
        for m, length in zip(motions, lengths, strict=True):
            at = passed + np.arange(len(m)) / _rate(m)
            passed += length
            inside = (at >= low) & (at < high)
            inside &= m.t >= (-np.inf if self.start is None else self.start)
            inside &= m.t <= (np.inf if self.end is None else self.end)
            numbers = np.flatnonzero(inside)
            if len(numbers):
                out.append(m[int(numbers[0]) : int(numbers[-1]) + 1])
        kept = [m for m in out if len(m) > MIN_SAMPLES]
        if not kept:
            spans = ", ".join(f"{m.t[0]:.6g} to {m.t[-1]:.6g} s" for m in motions)
            what = "nothing of this log lies in the span taken."
            where = ".".join(map(str, self.place)) or self.log.name
            raise DataError(Fault(what, where, found=f"a log of {spans}", at=self.place))
        return kept

    def cut(self) -> Experiment:
        """The channels of its log between its start and end."""
        if self.start is None and self.end is None:
            return self.log
        low = -np.inf if self.start is None else self.start
        high = np.inf if self.end is None else self.end
        kept = {n: (c, (c.t >= low) & (c.t <= high)) for n, c in self.log.channels.items()}
        channels = {n: replace(c, t=c.t[inside], values=c.values[inside]) for n, (c, inside) in kept.items()}
        return Experiment(channels, self.log.name)

    def overlaps(self, other: Recording) -> bool:
        """Whether both take the same samples of one log."""
        low, high = max(self.share[0], other.share[0]), min(self.share[1], other.share[1])
        spans = [(r.start or -np.inf, r.end or np.inf) for r in (self, other)]
        apart = any(a[1] <= b[0] or b[1] <= a[0] for a, b in (spans, (self.speeds, other.speeds)))
        return high > low and not apart


def split(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Recording]]:
    """Each recording without its last HELD_OUT, and these."""
    middle = [a + (1.0 - HELD_OUT) * (b - a) for a, b in (r.share for r in recordings)]
    first = [replace(r, share=(r.share[0], m)) for r, m in zip(recordings, middle, strict=True)]
    last = [replace(r, share=(m, r.share[1])) for r, m in zip(recordings, middle, strict=True)]
    return first, last


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A motion and the recording it was taken from."""

    motion: Motion
    recording: Recording


def plain(parts: Sequence[RecordedMotion]) -> list[Motion]:
    return [part.motion for part in parts]


def dropped(
    parts: Sequence[RecordedMotion], rows: Sequence[str], rests: Sequence[Mapping[str, Mask]]
) -> dict[str, Mask]:
    """Row → mask over all motions of the samples that it leaves out, by spans of time, by speed and at rest."""
    odd = [r for part in parts for r in part.recording.drop if r not in rows]
    if odd:
        raise DataError(f"'{odd[0]}' is not one of the rows.", where="drop", expected=", ".join(rows))
    by_speed = [wrong_speed(part) for part in parts]
    named = {r for part in parts for r in part.recording.drop} | {c for masks in rests for c in masks if c in rows}
    dropping = rows if any(mask.any() for mask in by_speed) else named
    out = {}
    for row in dropping:
        masks = []
        for part, wrong, still in zip(parts, by_speed, rests, strict=True):
            t, mask = part.motion.t, wrong | still.get(row, False)
            for start, end in part.recording.drop.get(row, ()):
                mask |= (t >= start) & (t <= end)
            masks.append(mask)
        out[row] = np.concatenate(masks)
    return out


def wrong_speed(part: RecordedMotion) -> Mask:
    """Samples slower or faster than those asked for."""
    low, high = part.recording.speeds
    speed = np.linalg.norm(part.motion.qd, axis=1)
    if (low, high) == (0.0, 1.0) or not len(speed):
        return np.zeros(len(speed), dtype=bool)
    slow, fast = np.quantile(speed, (low, high))
    # A sample at the bound belongs to the slower share.
    return ~((speed <= fast) & ((speed > slow) | (low == 0.0)))


def resting(machine: Machine, m: Motion) -> dict[str, Mask]:
    """Coordinate with an equation of its own → mask of the samples in which it has been at rest for a second or more, or will be."""
    rate, out = 1.0 / float(np.median(np.diff(m.t))) if len(m) > 1 else 1.0, {}
    for k, c in ((k, machine.coordinates[k]) for k in machine.independent):
        still = np.abs(m.qd[:, k]) < REST_SPEED_SHARE * float(np.abs(m.qd[:, k]).max(initial=0.0))
        mask = np.zeros(len(m), dtype=bool)
        for a, b in runs(still, max(2, round(REST_S * rate))):
            mask[a : b + 1] = True
        if mask.any():
            out[c] = mask
    return out


def warn_of_rest(machine: Machine, parts: Sequence[RecordedMotion]) -> None:
    """Joints that rest for much of the training logs, by name."""
    share: dict[str, float] = {}
    total = sum(len(part.motion) for part in parts)
    for part in parts:
        for c, mask in resting(machine, part.motion).items():
            share[c] = share.get(c, 0.0) + float(mask.sum()) / total
    much = {c: x for c, x in share.items() if x > REPORTED_REST_SHARE}
    if much:
        expected = f"at most {100 * REPORTED_REST_SHARE:.0f} % of the samples"
        listed = ", ".join(f"{c} {100 * x:.0f} %" for c, x in much.items())
        hint = "Friction may be anything there: say values: {standstill: drop}, or sampling: {dead_zone: 0.05}."
        fault = Fault("joints stand still in spans of a second and more.", "training", expected, listed, hint)
        warn(DataWarning, fault)


def _rate(m: Motion) -> float:
    return 1.0 / float(np.median(np.diff(m.t)))
