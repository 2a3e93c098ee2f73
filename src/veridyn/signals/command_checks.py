"""Mistakes that commands and encoders of drives show by themselves: other clocks, turned signs, joints that stand, stops, limits, degrees.

What makes a comparison with a simulation meaningless is a fault; what leaves parts of it blind is a warning. Nothing is simulated here:

    clocks      positions that move before their commands, or later than drives with these gains can follow
    signs       positions that move against their commands
    stops       a joint that stands at the end of its way while its command goes on beyond
    limits      kp (r − q) − kd q̇ beyond the limit of the drive for much of the log
    degrees     joints that would turn faster than any
    rates       samples that are no whole number of the drives' ticks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, part_at
from veridyn.model.experiment import Channel
from veridyn.signals.findings import FASTEST_TURNING
from veridyn.signals.outliers import SMALL_SHARE

LONGEST_LAG_S = 1.0  # s that are searched, both ways
LATEST = 0.1  # s: no command is delayed by more, beside what a drive takes to follow
EARLIEST_STEPS = 1.5  # samples: positions that lead by more are not of these commands
LIKE = 0.8  # correlation from which on a position follows a command at all
RATES = np.linspace(0.9, 1.1, 81)  # of one clock to the other, which are tried
MORE_ALIKE = 0.05  # correlation that another rate, or the command of another joint, must add
TRIED = 3  # joints whose clocks are compared, those that move most
STOP_SHARE, STOP_SECONDS = 0.02, 0.1  # of the samples, and in a row: a joint that stands for less has just turned round
BEYOND = 0.25  # of the way of a joint: how far a command goes beyond a stop that is named
# Of how far it goes beyond: dry friction that holds a joint at an end of its way holds it elsewhere too, at an error of the same size but
# for gravity, which a stop does not.
HELD_ELSEWHERE = 0.5
SATURATED = 0.05  # of the samples at the limit of a drive
TICK_MISMATCH = 0.05  # relative, of the ticks between two samples
STILL = 1e-9  # rad or m
BEGUN = 0.05  # of a step: a position that has gone so far has begun to follow
CLEAR_SIGMAS = 5.0  # of an encoder's noise: one sample in two million is so far off
FEWEST_STEPS = 3  # of a command, whose median onset one odd step does not decide
LISTED = 4  # joints in a sentence
SAME_CLOCK = 0.1  # of the log without any command at its beginning
GAP_STEPS = 20  # of an even clock of commands, without one


@dataclass(frozen=True, eq=False, kw_only=True)
class CommandedLog:
    """Commands and positions (K, n) of joints every `step` seconds, and what is known of the drives (n,): gains, limits, `tick` s."""

    name: str
    joints: tuple[str, ...]
    turning: tuple[bool, ...]
    step: float
    command: Array
    position: Array
    kp: Array
    kd: Array
    limit: Array
    tick: float

    @cached_property
    def moved(self) -> NDArray[np.bool_]:
        """Which joints are commanded to move (n,)."""
        return np.ptp(self.command, axis=0) > STILL

    @cached_property
    def lags(self) -> Array:
        """By how many seconds each position follows its command (n,), NaN where it does not.

        Where commands are steps it is when positions begin to follow: how fast they go on is the drive's, and no clock's.
        """
        found = [likeness(r, q, self.longest) for r, q in zip(self.command.T, self.position.T, strict=True)]
        lags = np.array([lag if like >= LIKE else np.nan for lag, like in found])
        samples = max(2, round(LATEST / self.step))
        for j in np.flatnonzero(np.isfinite(lags)):
            began = onsets(self.command[:, j], self.position[:, j], samples)
            if len(began) >= FEWEST_STEPS and np.ptp(np.percentile(began, (25.0, 75.0))) <= samples:
                lags[j] = float(np.median(began))
        return self.step * lags

    @property
    def longest(self) -> int:
        """Samples by which positions and commands are shifted against each other, at most."""
        return max(2, min(int(LONGEST_LAG_S / self.step), len(self.command) // 4))


def likeness(r: Array, q: Array, most: int, least: int | None = None) -> tuple[float, float]:
    """By how many samples, `least` (−most by default) to `most`, q follows r where both are most alike, and their correlation there."""
    if np.ptp(r) <= STILL or np.ptp(q) <= STILL:
        return 0.0, 0.0
    n = 1 << int(np.ceil(np.log2(2 * len(r))))
    a, b = r - r.mean(), q - q.mean()
    both = np.fft.irfft(np.conj(np.fft.rfft(a, n)) * np.fft.rfft(b, n), n)
    first = -most if least is None else least
    window = np.roll(both, -first)[: most - first + 1] / float(np.linalg.norm(a) * np.linalg.norm(b))
    k = int(np.argmax(window))
    if k in (0, len(window) - 1):
        return float(first + k), float(window[k])
    left, top, right = window[k - 1 : k + 2]
    return first + k + 0.5 * float((left - right) / (left - 2.0 * top + right)), float(top)


def onsets(r: Array, q: Array, samples: int) -> Array:
    """By how many samples the position q follows each step of the command r until it has left where it stood by BEGUN of the step.

    Steps count behind a hold of 2 `samples`, in the middle of which, and for `samples` before, the position stands; q may be earlier.
    """
    noise = float(np.diff(q, 3).std()) / np.sqrt(20.0)  # what third differences of white noise make of its deviation
    jumps = np.flatnonzero(np.abs(np.diff(r)) > STILL) + 1
    ends, out = np.append(jumps[1:], len(r)), list[float]()
    for before, k, end in zip(np.append(0, jumps[:-1]), jumps, ends, strict=True):
        jump = float(r[k] - r[k - 1])
        least, middle = max(BEGUN * abs(jump), CLEAR_SIGMAS * noise), (before + k) // 2
        if k - before < 2 * samples or abs(jump) <= SMALL_SHARE * np.ptp(r) or least > 0.5 * abs(jump):
            continue
        if np.ptp(q[middle - samples : middle + 1]) > least:
            continue
        left = np.flatnonzero(np.sign(jump) * (q[middle:end] - q[middle]) > least)
        out += [float(middle + left[0] - k)] if len(left) else []
    return np.array(out)


def command_faults(log: CommandedLog) -> list[Fault]:
    """What makes a simulation from these commands meaningless."""
    if not log.moved.any():
        hint = "Record motion of the joints: steps, chirps or a gait."
        return [Fault("no command of it moves.", log.name, "commands that change", "constants", hint)]
    found = [*_degrees(log), *_signs(log), *_frozen(log), *_stops(log)]
    return found or _exchanged(log) or _rates(log) or _clocks(log)


def command_warnings(log: CommandedLog) -> list[Fault]:
    """What leaves parts of a comparison blind."""
    return [*_constant(log), *saturation_faults(log), *_rate(log)]


def clock_faults(commands: Sequence[Channel], t: Array) -> list[Fault]:
    """Commands whose own clock does not cover the positions at t (K,), and commands that pause although their clock is even."""
    out, span = [], float(t[-1] - t[0])
    for c in commands:
        if c.t[0] > t[0] + SAME_CLOCK * span or c.t[-1] < t[0]:
            out.append(
                Fault(
                    "its clock is not that of the positions.",
                    part_at("channel", c.name),
                    f"commands from about {t[0]:.6g} s on",
                    f"{c.t[0]:.6g} to {c.t[-1]:.6g} s",
                    "Take both times from one clock, or subtract what they differ by.",
                )
            )
            continue
        steps = np.diff(c.t)
        usual = float(np.median(steps)) if len(steps) else 0.0
        even = usual > 0.0 and float(np.mean(np.abs(steps - usual) < 0.5 * usual)) > 0.9
        if even and steps.max() > GAP_STEPS * usual:
            at = float(c.t[int(np.argmax(steps))])
            what = (
                f"it has no command for {steps.max():.3g} s from {at:.6g} s on, and one every {usual:.3g} s elsewhere."
            )
            out.append(Fault(what, part_at("channel", c.name), hint="Cut the log at the gap."))
    return out


def _named(log: CommandedLog, which: Sequence[int]) -> str:
    names = [log.joints[j] for j in which]
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")


def _degrees(log: CommandedLog) -> list[Fault]:
    speed = np.percentile(np.abs(np.diff(log.position, axis=0)), 99.0, axis=0) / log.step
    fast = [j for j, v in enumerate(speed) if log.turning[j] and v > FASTEST_TURNING]
    return (
        [
            Fault(
                "they look like degrees, commands and positions alike.",
                _named(log, fast),
                f"speeds below {FASTEST_TURNING:g} rad/s",
                f"up to {speed[fast].max():.3g} rad/s",
                "Name the unit where the log is loaded: units={…: 'deg'}.",
            )
        ]
        if fast
        else []
    )


def _signs(log: CommandedLog) -> list[Fault]:
    out, most = [], max(2, int(LATEST / log.step))
    for j in np.flatnonzero(log.moved):
        r, q = log.command[:, j], log.position[:, j]
        if likeness(-r, q, most)[1] >= LIKE > likeness(r, q, log.longest)[1]:
            out.append(
                Fault(
                    "it moves against its command.",
                    part_at("channel", f"position.{log.joints[j]}"),
                    hint="Turn its sign, or look for columns that were exchanged.",
                )
            )
    return out


def _exchanged(log: CommandedLog) -> list[Fault]:
    """Positions that are like the command of another joint, and not like their own."""
    out = []
    for j, joint in enumerate(log.joints):
        like = [likeness(r, log.position[:, j], log.longest, 0)[1] for r in log.command.T]
        k = int(np.argmax(like))
        if like[k] >= LIKE > like[j] and like[k] > like[j] + MORE_ALIKE:
            out.append(
                Fault(
                    f"it follows the command of '{log.joints[k]}', not its own.",
                    part_at("channel", f"position.{joint}"),
                    found=f"a correlation of {like[j]:.2f} with its own command, {like[k]:.2f} with the other",
                    hint="Look for columns that were exchanged.",
                )
            )
    return out


def _rates(log: CommandedLog) -> list[Fault]:
    """Positions that follow their commands better on a clock of another rate."""
    t = np.arange(len(log.command), dtype=np.float64)
    best = []
    for j in np.argsort(-np.ptp(log.command, axis=0))[:TRIED]:
        r, q = log.command[:, j], log.position[:, j]
        like = [likeness(r, np.interp(rate * t, t, q), log.longest)[1] for rate in RATES]
        k = int(np.argmax(like))
        if like[k] < LIKE or like[k] < likeness(r, q, log.longest)[1] + MORE_ALIKE:
            return []
        best.append(float(RATES[k]))
    rate = float(np.median(best))
    hint = "One of both rates is wrong, or samples of one are missing."
    found = f"positions that fit at {100.0 * rate:.1f} % of it"
    return [Fault("clocks of commands and positions run apart.", log.name, "one rate", found, hint)]


def _frozen(log: CommandedLog) -> list[Fault]:
    still = [j for j in np.flatnonzero(log.moved) if np.ptp(log.position[:, j]) <= STILL]
    hint = "Lock joints that are held: lock: [names] under model of a study, or welded(machine, {…})."
    what = "its position never changes, though its command does."
    return [Fault(what, part_at("channel", f"position.{log.joints[j]}"), hint=hint) for j in still]


def _clocks(log: CommandedLog) -> list[Fault]:
    lags = log.lags[np.isfinite(log.lags)]
    if not len(lags):
        return []
    lag = float(np.median(lags))
    if lag < -EARLIEST_STEPS * log.step:
        return [
            Fault(
                "positions move before their commands.",
                log.name,
                "positions that follow",
                f"{-lag:.3g} s before, in the middle of {len(lags)} joints",
                "Commands and positions are on different clocks: shift one of them.",
            )
        ]
    follow = float(np.max(log.kd[log.kp > 0.0] / log.kp[log.kp > 0.0], initial=0.0))
    if (log.kp > 0.0).any() and lag > LATEST + 2.0 * follow:
        return [
            Fault(
                "positions come too late behind their commands.",
                log.name,
                f"within {LATEST + 2.0 * follow:.2g} s with these gains",
                f"{lag:.3g} s, in the middle of {len(lags)} joints",
                "Commands and positions are on different clocks, or kp and kd are not those of the drives.",
            )
        ]
    return []


def _stops(log: CommandedLog) -> list[Fault]:
    out = []
    for j in np.flatnonzero(log.moved):
        q, r = log.position[:, j], log.command[:, j]
        way = float(np.ptp(q))
        if way <= STILL:
            continue
        held = _held_inside(q, r, max(2, round(STOP_SECONDS / log.step)), SMALL_SHARE * way)
        for end, sign in ((q.max(), 1.0), (q.min(), -1.0)):
            at = (np.abs(q - end) < SMALL_SHARE * way) & (sign * (r - end) > 0.0)
            seconds = log.step * _longest(at)
            beyond = float((sign * (r[at] - end)).max(initial=0.0))
            pushed = beyond > BEYOND * way and held < HELD_ELSEWHERE * beyond
            if at.mean() > STOP_SHARE and seconds > STOP_SECONDS and pushed:
                out.append(
                    Fault(
                        f"it stands at {end:.3g} for {seconds:.2g} s while its command goes {beyond:.2g} further: a stop, it seems.",
                        part_at("joint", log.joints[j]),
                        hint="Cut the log there, or command less: the simulation has no stops.",
                    )
                )
    return out


def _held_inside(q: Array, r: Array, samples: int, same: float) -> float:
    """The largest error at which a joint stands for so many samples, to within `same`, at neither end of its way."""
    if len(q) < samples:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(q, samples)
    low, high = windows.min(axis=1), windows.max(axis=1)
    still = (high - low < same) & (low > q.min() + same) & (high < q.max() - same)
    error = np.lib.stride_tricks.sliding_window_view(np.abs(r - q), samples).max(axis=1)
    return float(error[still].max(initial=0.0))


def _longest(true: NDArray[np.bool_]) -> int:
    """Samples of the longest run of true ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _constant(log: CommandedLog) -> list[Fault]:
    still = [int(j) for j in np.flatnonzero(~log.moved)]
    if not still:
        return []
    hint = "Nothing of their drives can be determined; lock them, or record motion of them."
    return [Fault(f"the command of {len(still)} joint(s) is constant: {_named(log, still)}.", log.name, hint=hint)]


def saturation_faults(log: CommandedLog) -> list[Fault]:
    """Drives that are at their limit in more than a share of the samples."""
    speed = np.gradient(log.position, log.step, axis=0)
    asked = np.abs(log.kp * (log.command - log.position) - log.kd * speed)
    share = (asked >= log.limit).mean(axis=0)
    return [
        Fault(
            f"it is at its limit of {log.limit[j]:.4g} for {100.0 * share[j]:.0f} % of the log, where kp and kd do not act.",
            part_at("drive", log.joints[j]),
            hint="Command slower or smaller motion, or check the limit.",
        )
        for j in np.flatnonzero(share > SATURATED)
    ]


def _rate(log: CommandedLog) -> list[Fault]:
    ticks = log.step / log.tick
    whole = max(1.0, round(ticks))
    if abs(ticks / whole - 1.0) <= TICK_MISMATCH:
        return []
    return [
        Fault(
            "its samples are no whole number of the drives' ticks.",
            log.name,
            f"{1.0 / log.tick:g} ticks a second, or a whole part of it",
            f"{1.0 / log.step:.4g} samples a second",
            f"The drives are simulated at {whole / log.step:.4g} Hz; state their rate, and that of the log.",
        )
    ]
