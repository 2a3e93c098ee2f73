"""What is wrong with a log, found and reported, with nothing changed: inspect(experiment) → Findings.

Each channel is checked for the same kinds of faults. A finding names the channel, the time of the first place, what was
expected, what was found and what to try. "fatal" findings keep the data from being resampled or filtered at all;
"warning" findings bias what follows; "note" findings are only worth knowing.

Assumptions: times in seconds, values in the channel's unit. What counts as a gap, jitter, clipping or a spike is set
in :class:`QualityLimits`; the defaults look for what a well-kept acquisition does not produce.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding, Findings, Kind, Severity, coarse_fault
from veridyn.signals.mending import DEFAULT, QualityLimits
from veridyn.signals.outliers import (
    AROUND,
    COLOURED_CORRELATION,
    LONG_FREEZE,
    SMALL_SHARE,
    dropouts,
    frozen,
    moves_on,
    noise_beside,
    plateaus,
    quantum,
    runs,
    smooth,
    spikes,
)

BOTH_LIMITS = 0.5  # of the samples are at one of two limits, neither of them zero: what lay between is lost (chosen)
RESTING_SHARE = 0.3  # of the samples are zero: a quantity that rests there, such as the force of a contact (chosen)
MIN_HOLDS, HELD_ALIKE = 10, 0.8  # values that are held, and the share of them that are held equally long (chosen)
FEWEST = 5  # values of a channel that are looked at (chosen)
STOP_RATIO = 20.0  # times the next longest run (chosen)
POSITIONS, SPEEDS = ("q.", "q_motor."), ("qd.",)

HINTS: dict[Kind, str] = {
    "empty": "Check that the sensor was connected and that the log was not cut off.",
    "clock nan": "Drop those samples.",
    "backwards": "Cut the log where the clock was reset, or sort it if samples only arrived out of order.",
    "duplicate": "Keep one sample of each time; a clock too coarse for the rate needs a finer one.",
    "gap": "Leave those spans out (resample with on_gap='report' names them), or cut the log there.",
    "jitter": "Resample onto a uniform clock before filtering; derivatives of such a channel are noisy.",
    "nan": "Cut those spans or fill them from another sensor; a filter would spread them over everything.",
    "constant": "Check the sensor and its wiring; leave the channel out if the quantity is truly constant.",
    "spike": "Replace those samples by their neighbours', or identify with a robust estimator.",
    "clipping": "Compare with the range of the sensor; leave those samples out, or measure again with a wider range.",
    "dropout": "Bridge or leave out those samples, and look at the connection of the sensor.",
    "standstill": "Friction cannot be separated from offsets there; leave those samples out of the rows that hold friction.",
    "frozen": "Leave those samples out: the sensor or its bus stood still, and the machine did not.",
    "held": "Load it with the clock of its own, or keep every sample that is new: held values are late by half of that time.",
}


@checked
def inspect(experiment: Experiment, limits: QualityLimits = DEFAULT) -> Findings:
    """Look at every channel; the data are not changed."""
    return _inspected(experiment, limits, whole=True)


def inspect_clocks(experiment: Experiment, limits: QualityLimits = DEFAULT) -> Findings:
    """Clocks, and values that are no numbers: the part of :func:`inspect` without which a log is of no use, and which costs little."""
    return _inspected(experiment, limits, whole=False)


def _inspected(experiment: Experiment, limits: QualityLimits, *, whole: bool) -> Findings:
    found: list[Finding] = []
    for group in _by_clock(experiment):
        found.extend(_clock(group[0], limits, len(group) - 1))
        for channel in group:
            found.extend(_not_finite(channel))
            if whole:
                found.extend(_values(channel, limits, experiment))
    return Findings(experiment.name, tuple(found))


def _by_clock(experiment: Experiment) -> list[list[Channel]]:
    """Channels by clock: a table's one clock is checked once, not for every column."""
    clocks: list[list[Channel]] = []
    for channel in experiment.channels.values():
        for group in clocks:
            if group[0].t is channel.t or np.array_equal(group[0].t, channel.t, equal_nan=True):
                group.append(channel)
                break
        else:
            clocks.append([channel])
    return clocks


def _finding(
    channel: Channel,
    kind: Kind,
    severity: Severity,
    places: NDArray[np.intp],
    what: str,
    expected: str,
    found: str,
    hint: str = "",
    last: int | None = None,
    others: int = 0,
) -> Finding:
    where = f"channel '{channel.name}'" + (f" and {others} more on its clock" if others else "")
    fault = Fault(what, where, expected, found, hint or HINTS[kind])
    finding = Finding.of(channel, kind, severity, places, fault)
    return finding if last is None else replace(finding, t_end=float(channel.t[last]))


def _clock(channel: Channel, limits: QualityLimits, others: int) -> Iterator[Finding]:
    t, n = channel.t, len(channel)
    if n < limits.shortest:
        severity = "fatal" if n < 2 else "warning"
        what = "it has no samples." if n == 0 else "it is very short."
        expected = f"at least {limits.shortest} samples"
        yield _finding(channel, "empty", severity, np.arange(n), what, expected, f"{n}", others=others)
    bad = np.flatnonzero(~np.isfinite(t))
    if len(bad):
        what = f"{len(bad)} of its time stamps are not finite numbers."
        found = f"{t[bad[0]]} at sample {bad[0]}"
        yield _finding(channel, "clock nan", "fatal", bad, what, "seconds", found, others=others)
        return  # steps and times mean nothing now
    steps = np.diff(t)
    back = np.flatnonzero(steps < 0.0)
    if len(back):
        k = back[0]
        what = f"its clock runs backwards {len(back)} time(s), first at t = {t[k]:.6f} s."
        found = f"{t[k]:.6f} s then {t[k + 1]:.6f} s (sample {k + 1})"
        yield _finding(channel, "backwards", "fatal", back, what, "times that increase", found, others=others)
    same = np.flatnonzero(steps == 0.0)
    if len(same):
        k = same[0]
        what = f"{len(same)} of its time stamps repeat the one before, first at t = {t[k]:.6f} s."
        found = f"{t[k]:.6f} s twice (samples {k} and {k + 1})"
        yield _finding(channel, "duplicate", "fatal", same, what, "times that increase", found, others=others)
    forward = steps[steps > 0.0]
    if len(forward) < 2:
        return
    median = float(np.median(forward))
    gap = np.flatnonzero(steps > limits.gap * median)
    if len(gap):
        k, longest = gap[0], gap[int(np.argmax(steps[gap]))]
        what = f"{len(gap)} gap(s) without a sample, first at t = {t[k]:.6f} s."
        expected = f"a sample every {median:.4g} s"
        found = f"{steps[k]:.4g} s there, the longest {steps[longest]:.4g} s at t = {t[longest]:.6f} s"
        yield _finding(channel, "gap", "warning", gap, what, expected, found, last=int(gap[-1]) + 1, others=others)
    off = np.flatnonzero(
        (np.abs(steps - median) > limits.jitter * median) & (steps > 0.0) & (steps <= limits.gap * median)
    )
    if len(off) > 0.01 * len(steps):  # a rare odd step is bridged well by interpolation
        worst = off[int(np.argmax(np.abs(steps[off] - median)))]
        what = f"{len(off)} of {len(steps)} steps of its clock jitter, first at t = {t[off[0]]:.6f} s."
        expected = f"steps within {100 * limits.jitter:g} % of {median:.4g} s"
        found = f"{steps[worst]:.4g} s at t = {t[worst]:.6f} s at the worst"
        yield _finding(channel, "jitter", "warning", off, what, expected, found, others=others)


def _not_finite(channel: Channel) -> Iterator[Finding]:
    t, x = channel.t, channel.values
    bad = np.flatnonzero(~np.isfinite(x))
    if len(bad):
        what = f"{len(bad)} of its {len(x)} values are not finite numbers, first at t = {t[bad[0]]:.6f} s."
        yield _finding(channel, "nan", "fatal", bad, what, "finite numbers", f"{x[bad[0]]} at sample {bad[0]}")


def _values(channel: Channel, limits: QualityLimits, log: Experiment) -> Iterator[Finding]:
    t, x, unit = channel.t, channel.values, channel.unit
    good = np.flatnonzero(np.isfinite(x) & np.isfinite(t))
    if len(good) < FEWEST:
        return
    x, numbers = x[good], good
    low, high = float(x.min()), float(x.max())
    if low == high:
        what = f"it never changes between t = {t[numbers[0]]:.6f} s and t = {t[numbers[-1]]:.6f} s."
        found = f"{low:g} {unit} in all {len(x)} samples"
        yield _finding(channel, "constant", "warning", numbers, what, "a signal that moves", found)
        return
    yield from _clipping(channel, x, numbers, limits)
    sharp = spikes(x, limits.spike)
    if len(sharp):
        k = sharp[0]
        what = f"{len(sharp)} spike(s), first at t = {t[numbers[k]]:.6f} s."
        expected = f"values near {x[k - 1 if k else 1]:.4g} {unit}, as beside it"
        yield _finding(channel, "spike", "warning", numbers[sharp], what, expected, f"{x[k]:.4g} {unit}")
    yield from _repeated(channel, x, numbers, log)
    yield from _coarse(channel, x, numbers)
    if limits.standstill is not None:
        yield from _standstill(channel, x, numbers, limits.standstill)


def _clipping(channel: Channel, x: Array, numbers: NDArray[np.intp], limits: QualityLimits) -> Iterator[Finding]:
    low, high = float(x.min()), float(x.max())
    switched = low != 0.0 != high and float(np.mean((x == low) | (x == high))) > BOTH_LIMITS
    for value, name in ((high, "largest"), (low, "smallest")):
        hit = runs(x == value, limits.plateau) if switched else plateaus(x, value, limits.plateau)
        if hit:
            inside = np.concatenate([np.arange(a, b + 1) for a, b in hit])
            # many quantities rest at nothing; few sensors end there
            severity = "warning" if value != 0.0 else "note"
            what = (
                f"it looks clipped: its {name} value repeats in {len(hit)} plateau(s), first at "
                f"t = {channel.t[numbers[hit[0][0]]]:.6f} s."
            )
            expected = "an extreme that is touched once and left"
            found = f"{value:g} {channel.unit} in {len(inside)} samples"
            yield _finding(channel, "clipping", severity, numbers[inside], what, expected, found)


def _repeated(channel: Channel, x: Array, numbers: NDArray[np.intp], log: Experiment) -> Iterator[Finding]:
    """Runs of one value that no moving machine gives: dropouts to zero, frozen stretches, and values held on a faster clock."""
    t, unit = channel.t[numbers], channel.unit
    lost, resting, longer = repeated_runs(channel, x, t, log)
    if lost:
        a, b = lost[0]
        what = f"it drops to zero {len(lost)} time(s), first from t = {t[a]:.6f} s to t = {t[b]:.6f} s."
        expected = f"values near {x[a - 1] if a else x[b + 1]:.4g} {unit}, as beside it"
        places = numbers[_inside(lost)]
        yield _finding(channel, "dropout", "warning", places, what, expected, f"exactly 0 in {b - a + 1} samples")
    if resting:
        a, b = max(resting, key=lambda span: span[1] - span[0])
        longest = f"the longest from t = {t[a]:.6f} s to t = {t[b]:.6f} s."
        what = f"it stands still in {len(resting)} span(s) in which the machine rests, {longest}"
        found = f"{x[a]:.6g} {unit} in {b - a + 1} samples"
        places = numbers[_inside(resting)]
        yield _finding(channel, "standstill", "note", places, what, "a rest, or values that change", found)
    if longer:
        a, b = max(longer, key=lambda span: span[1] - span[0])
        jumps = unit in ("rad", "m") and smooth(x) and _jump(x, longer) > SMALL_SHARE * float(np.ptp(x))
        short = b - a + 1 < LONG_FREEZE and not jumps
        # Some quantities rest at nothing for long. A packet lost here and there biases nothing, but a jump of a position does.
        severity = "note" if short or np.mean(x == 0.0) > RESTING_SHARE else "warning"
        what = f"it is frozen in {len(longer)} span(s), the longest from t = {t[a]:.6f} s to t = {t[b]:.6f} s."
        found = f"{x[a]:.6g} {unit} in {b - a + 1} samples"
        places = numbers[_inside(longer)]
        yield _finding(channel, "frozen", severity, places, what, "values that change as before and after", found)
    step = held(x)
    if step > 1:
        what = f"it keeps each value for {step} samples."
        found = f"{len(x)} samples of a sensor {step} times slower"
        yield _finding(channel, "held", "warning", numbers, what, "a new value at every stamp of its clock", found)


def _inside(spans: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
    """The numbers of all samples of these spans."""
    return np.concatenate([np.arange(a, b + 1) for a, b in spans])


class RepeatedRuns(NamedTuple):
    """First and last number of the runs of one value in a channel: `lost` zeros, those of a `resting` machine, and `frozen` ones."""

    lost: list[tuple[int, int]]
    resting: list[tuple[int, int]]
    frozen: list[tuple[int, int]]


def repeated_runs(channel: Channel, x: Array, t: Array, log: Experiment) -> RepeatedRuns:
    """The runs of one value among the finite values x at the times t of a channel that are looked at; `log` shows whether all rests."""
    lost = dropouts(x)
    of_a_machine = any(name.startswith(POSITIONS) for name in log.channels)
    longer = [span for span in frozen(x, may_rest=channel.unit in ("rad", "m") or not of_a_machine) if span not in lost]
    if channel.unit not in ("rad", "m"):
        longer += [span for span in stopped(x) if span not in longer + lost]
    resting = [span for span in longer if _at_rest(channel, x, t, span, log)]
    return RepeatedRuns(lost, resting, [span for span in longer if span not in resting])


def unread_samples(log: Experiment, name: str) -> NDArray[np.bool_]:
    """Which values (N,) of a channel its sensor did not read, though they are numbers: what :func:`inspect` calls a dropout or frozen."""
    channel = log[name]
    good = np.flatnonzero(np.isfinite(channel.values) & np.isfinite(channel.t))
    out = np.zeros(len(channel), dtype=np.bool_)
    x = channel.values[good]
    if len(good) < FEWEST or np.ptp(x) == 0.0:
        return out
    runs_of = repeated_runs(channel, x, channel.t[good], log)
    if runs_of.lost or runs_of.frozen:
        out[good[_inside([*runs_of.lost, *runs_of.frozen])]] = True
    return out


def _at_rest(channel: Channel, x: Array, t: Array, span: tuple[int, int], log: Experiment) -> bool:
    """Whether a channel repeats one value because the machine rests. The other channels say so, all of them where a position had a way to
    go or jumps."""
    a, b = span
    moved = channel.unit in ("rad", "m") and (moves_on(x, a, b, quantum(x)) or _jump(x, [span]) > _usual_step(x))
    return rests(log, channel.name, float(t[a]), float(t[b]), whole=moved)


def _usual_step(x: Array) -> float:
    """The median step of a signal while it moves."""
    steps = np.abs(np.diff(x))
    return float(np.median(steps[steps > 0.0]))


def _coarse(channel: Channel, x: Array, numbers: NDArray[np.intp]) -> Iterator[Finding]:
    fault = coarse_fault(channel.name, x, channel.unit)
    if fault is not None:
        yield _finding(channel, "coarse", "warning", numbers, fault.what, fault.expected, fault.found, fault.hint)


def _jump(x: Array, spans: Sequence[tuple[int, int]]) -> float:
    """The largest step that ends one of these runs of equal samples, or by which one begins beyond the step before."""
    ends = [abs(float(x[b + 1] - x[b])) for _, b in spans if b + 1 < len(x)]
    starts = [abs(float(x[a] - x[a - 1])) - abs(float(x[a - 1] - x[a - 2])) for a, _ in spans if a > 1]
    return max([*ends, *starts], default=0.0)


def _standstill(channel: Channel, x: Array, numbers: NDArray[np.intp], shortest: float) -> Iterator[Finding]:
    t = channel.t[numbers]
    still = [(a, b + 1) for a, b in runs(np.diff(x) == 0.0, 1) if t[b + 1] - t[a] >= shortest]
    if still:
        a, b = still[0]
        places = numbers[np.concatenate([np.arange(a, b + 1) for a, b in still])]
        what = f"it stands still in {len(still)} span(s), first from t = {t[a]:.6f} s to t = {t[b]:.6f} s."
        expected = f"no single value for {shortest:g} s"
        yield _finding(channel, "standstill", "note", places, what, expected, f"{x[a]:g} {channel.unit} throughout")


def held(x: Array) -> int:
    """How many samples a signal keeps each value, where that is one and the same number of 2 or more nearly always; 1 elsewhere.

    A sensor slower than the clock it was recorded on does that, and so does resampling by the last value.
    """
    lengths = np.diff(np.flatnonzero(np.diff(x) != 0.0))
    if len(lengths) < MIN_HOLDS:
        return 1
    usual = int(np.median(lengths))
    return usual if usual > 1 and np.mean(lengths == usual) > HELD_ALIKE else 1


def stopped(x: Array) -> list[tuple[int, int]]:
    """First and last index of the one run of half of `AROUND` equal samples or more that is `STOP_RATIO` times as long as any other.

    With noise on both sides, of whatever resolution. Positions of a coarse encoder stand still like that where a machine rests once; a
    force does not.
    """
    every = sorted(runs(np.diff(x) == 0.0), key=lambda span: span[0] - span[1])
    if not every:
        return []
    (a, b), second = every[0], every[1][1] - every[1][0] + 2 if len(every) > 1 else 1
    length = b - a + 2
    inside = a >= AROUND and b + 2 + AROUND <= len(x)
    found = (
        length >= AROUND // 2
        and length > STOP_RATIO * second
        and inside
        and noise_beside(x, a, b + 1, COLOURED_CORRELATION)
    )
    return [(a, b + 1)] if found else []


def noise_range(x: Array) -> float:
    """The peak-to-peak value that white noise and the resolution of a signal explain over some hundred samples: 6 deviations, 2 steps."""
    steps = np.diff(np.unique(x))
    grain = float(steps.min()) if len(steps) else 0.0
    third = np.abs(np.diff(x, 3))
    return max(6.0 * 1.4826 * float(np.median(third)) / np.sqrt(20.0), 2.0 * grain) if len(third) else 0.0


def stands_still(channel: Channel, start: float, end: float) -> bool:
    """Whether a channel changes by no more than its noise between two times (s)."""
    part = channel.values[(channel.t >= start) & (channel.t <= end)]
    return len(part) > 1 and bool(np.isfinite(part).all()) and float(np.ptp(part)) <= noise_range(channel.values)


def rests(log: Experiment, name: str, start: float, end: float, whole: bool = False) -> bool:
    """Whether the other channels of a log say that the machine rests while channel `name` repeats one value from `start` to `end` (s).

    Of a position: its speed where that is measured, else all other positions, or both where the `whole` machine must rest. Of a speed: it
    is zero, and its position stands still. Of anything else, such as a force: the position of its coordinate stands still, or all
    positions do where none has its name.
    """
    kind, _, own = name.partition(".")
    positions = [c for n, c in log.channels.items() if n.startswith(POSITIONS) and n != name]
    speed, position = log.channels.get(f"qd.{own}"), log.channels.get(f"q.{own}")
    if name.startswith(POSITIONS):
        if speed is not None and not _zero(speed, start, end):
            return False
        return _all_still(positions, start, end) if whole or speed is None else True
    if name.startswith(SPEEDS):
        here = log[name].values[(log[name].t >= start) & (log[name].t <= end)]
        zero = not len(here) or abs(float(here[0])) * (end - start) <= (
            0.0 if position is None else noise_range(position.values)
        )
        return zero and (_all_still(positions, start, end) if position is None else stands_still(position, start, end))
    if kind == "force" and position is not None:
        return stands_still(position, start, end)
    return _all_still(positions, start, end)


def _zero(speed: Channel, start: float, end: float) -> bool:
    """Whether a measured speed is zero but for its noise."""
    part = speed.values[(speed.t >= start) & (speed.t <= end)]
    return len(part) > 1 and bool(np.abs(part).max() <= noise_range(speed.values))


def _all_still(channels: Iterable[Channel], start: float, end: float) -> bool:
    every = list(channels)
    return bool(every) and all(stands_still(c, start, end) for c in every)
