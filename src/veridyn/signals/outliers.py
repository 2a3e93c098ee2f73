"""Samples that a sensor's limits or an electrical fault made, separated from those that a machine made.

- A plateau is clipped where the signal meets its extreme at speed; a machine that comes to rest arrives slowly.
- A spike is a patch of some samples off the curve of those before and behind it (:mod:`veridyn.signals.patches`).
- A dropout is such a patch of exact zeros, or a run of them that the noise around it does not give.
- A frozen stretch repeats one value where noise stops, where the machine had a way to go (:mod:`veridyn.signals.rest`), or where the signal
  is elsewhere when it moves again; a held signal repeats every value, equally often.

One signal (N,) of finite numbers; indices count samples. All look at the signal's own innovations and at its quantum (the smallest
difference of two values), so no unit or sensor range is needed. `chance` is the probability that a clean signal has any.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.signals.innovations import FEWEST, extreme_limit, innovations
from veridyn.signals.patches import LONGEST, find_patches, quantum
from veridyn.signals.rest import comes_to_rest, stuck

Array = NDArray[np.float64]
Spans = Sequence[tuple[int, int]]
CHANCE = (
    0.005 / 12
)  # of a clean channel: one log in two hundred of four channels, for each of spikes, dropouts and freezes
FALL = 6.0  # quanta below an extreme, from where its top is seen whole (chosen)
LONGEST_STEP = 10  # samples over which the speed of a signal in coarse steps is taken (chosen)
AROUND = 100  # samples on each side of a run that show how often its signal repeats a value (chosen: a median of noise to an eighth)
SHORTEST_FREEZE = 5  # equal samples: fewer are repaired by any filter (chosen)
MIN_HOLDS, HELD_ALIKE = 10, 0.8  # values that are held, and the share of them that are held equally long (chosen)
HELD_SHARE = 0.2  # of all values are held for two samples or more: a slow sensor on a fast clock (chosen)
WHITE_CORRELATION = -0.5  # of third differences, between −3/4 of white noise and 0 (chosen)
FINE = 0.05  # share of third differences, whose smallest show how fine a signal is resolved (chosen)
STOPPING = 0.3  # of the median step while moving: a machine that comes to rest is slower (chosen)
PACE = 5  # steps on either side of a run that show how fast the signal is there (chosen)
LONG_FREEZE = 10  # samples: a shorter frozen stretch biases little (chosen)


def runs(mask: NDArray[np.bool_], least: int = 1) -> list[tuple[int, int]]:
    """First and last index of every run of at least `least` true entries."""
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a + 1 >= least]


def plateaus(x: Array, value: float, least: int = 3) -> list[tuple[int, int]]:
    """Runs of at least `least` samples that equal `value`, an extreme, and that the signal enters or leaves at speed.

    At speed: by a step above 0.3 of its median step while moving and above two quanta; where quanta are coarse beside steps, over as many
    samples as it takes that the former is the larger one, at most `LONGEST_STEP`. A run as long as the signal takes to fall by `FALL`
    quanta q on both sides together, or shorter, is the rounded top of a smooth signal: on a parabola of second difference d a run lasts at
    most 2√(2q/d) samples, and both falls take at least 1.24 times as long. Runs that begin or end the record are left out, since nothing is
    known of how they were met.
    """
    steps = np.abs(np.diff(x))
    if not np.any(steps > 0.0):
        return []
    met = [(a, b) for a, b in runs(x == value, least) if a >= 2 and b <= len(x) - 3]
    if not met:
        return []
    grain = quantum(x)
    w = int(np.clip(np.ceil(2.0 * grain / (0.3 * steps.mean())), 1, LONGEST_STEP))
    steps = np.abs(x[w:] - x[:-w])
    least_speed = max(0.3 * float(np.median(steps[steps > 0.0])), 2.0 * grain)

    def speed(a: int, b: int) -> float:
        """The steps before the one that meets the limit, and behind the one that leaves it: those that the limit did not shorten."""
        before = steps[a - 1 - w] if a > w else 0.0
        return float(max(before, steps[b + 1] if b + 1 < len(steps) else 0.0))

    return [(a, b) for a, b in met if speed(a, b) > least_speed and b - a + 1 > _fall(x, a, b, value, FALL * grain)]


def _fall(x: Array, a: int, b: int, value: float, depth: float) -> float:
    """Samples before a and after b until x is `depth` away from `value`, together; infinite where it never is on one side."""
    away = np.abs(x - value) >= depth * (1.0 - 1e-9)
    before, after = np.flatnonzero(away[:a]), np.flatnonzero(away[b + 1 :])
    return float(a - before[-1] + after[0] + 1) if len(before) and len(after) else np.inf


def spikes(x: Array, chance: float = CHANCE, patches: Spans | None = None) -> NDArray[np.intp]:
    """Indices of samples, alone or in patches, that are off the signal and do not repeat one value as a dropout or a freeze does."""
    found = find_patches(x, chance) if patches is None else patches
    hit = [np.arange(a, b + 1) for a, b in found if a == b or not _repeating(x, a, b)]
    return np.concatenate([np.empty(0, dtype=np.intp), *hit])


def _repeating(x: Array, a: int, b: int) -> bool:
    """Whether a patch is one value, zero or for as long as the shortest freeze."""
    return bool(np.all(x[a : b + 1] == x[a])) and (x[a] == 0.0 or b - a + 1 >= SHORTEST_FREEZE)


def by_chance(x: Array, first: int, last: int) -> float:
    """How many runs of equal samples as long as this one a record of this length would hold by chance.

    N p^(L−1), with p the share of samples around the run that repeat their neighbour, one more than were counted: a coarse sensor at
    rest repeats its values often, a noisy one of fine resolution never.
    """
    left, right = x[max(0, first - AROUND) : first], x[last + 1 : last + 1 + AROUND]
    pairs = max(len(left) - 1, 0) + max(len(right) - 1, 0)
    equal = np.count_nonzero(np.diff(left) == 0.0) + np.count_nonzero(np.diff(right) == 0.0)
    return len(x) * float((equal + 1) / (pairs + 2)) ** (last - first)


def smooth(x: Array) -> bool:
    """Whether the steps of a signal continue each other; steps of white noise alternate, with a correlation of −1/2."""
    steps = np.diff(x)
    moving = steps - steps.mean() if len(steps) > 2 else np.zeros(3)
    return bool(moving[1:] @ moving[:-1] > 0.0)


def white_noise_beside(x: Array, first: int, last: int) -> bool:
    """Whether white noise, finely resolved, lies on a signal on both sides of a run of equal samples, however fast it moves there.

    Third differences of white noise have a correlation of −3/4 and √20 times its deviation σ, and a twentieth of them is below 0.28 σ;
    those of a signal that is sampled well continue each other, and those of coarse steps q are multiples of q, with σ = 0.29 q.
    """
    if not _noise_beside(x, first, last):
        return False
    third = np.concatenate(_third_differences(x, first, last))
    third = third[
        np.abs(third) > 0.5 * quantum(x)
    ]  # numbers written with few digits are not quite multiples of a resolution
    return bool(white_deviation(third) > np.quantile(np.abs(third), FINE))


def white_deviation(third: Array) -> Array:
    """σ of white noise from third differences (N, …) of a smooth signal with it: they have √20 times as much."""
    return np.asarray(1.4826 * np.median(np.abs(third), axis=0) / np.sqrt(20.0))


def _third_differences(x: Array, first: int, last: int) -> tuple[Array, Array]:
    """Of the samples before a run, and of those behind it."""
    return np.diff(x[max(0, first - AROUND) : first], 3), np.diff(x[last + 1 : last + 1 + AROUND], 3)


def _noise_beside(x: Array, first: int, last: int, most: float = WHITE_CORRELATION) -> bool:
    """Whether third differences beside a run are noise, of whatever resolution: their correlation is at `most` that."""
    left, right = _third_differences(x, first, last)
    size = left @ left + right @ right
    enough = np.count_nonzero(left) + np.count_nonzero(right) >= AROUND // 2
    return bool(enough and left[1:] @ left[:-1] + right[1:] @ right[:-1] <= most * size)


def stopped(x: Array, chance: float = CHANCE) -> list[tuple[int, int]]:
    """First and last index of the one run of equal samples that chance does not give, by how often the signal repeats a value elsewhere.

    With noise on both sides, of whatever resolution, and longer than the rounded top of a smooth signal (:func:`plateaus`). Positions of a
    coarse encoder stand still like that where a machine rests once; a force does not. A signal with two such runs may rest.
    """
    every = sorted(runs(np.diff(x) == 0.0), key=lambda span: span[0] - span[1])
    if not every:
        return []
    a, b = every[0]
    equal = sum(d - c + 1 for c, d in every[1:])
    p = (equal + 1) / (len(x) - (b - a + 1))

    def rare(span: tuple[int, int]) -> bool:
        return len(x) * p ** (span[1] - span[0] + 1) < chance

    inside = a >= AROUND and b + 2 + AROUND <= len(x)
    alone = inside and rare((a, b)) and not (len(every) > 1 and rare(every[1]))
    top = alone and b - a + 2 <= _fall(x, a, b + 1, x[a], FALL * quantum(x))
    return [(a, b + 1)] if alone and not top and _noise_beside(x, a, b + 1, 0.0) else []


def dropouts(x: Array, chance: float = CHANCE, patches: Spans | None = None) -> list[tuple[int, int]]:
    """First and last index of runs of 2 to `LONGEST` exact zeros that no measurement gives.

    Such a run is a patch; or noise makes the steps of the signal, or lies on them, and so many equal samples do not come by chance. At an
    end of the record, where it does not come back, the signal must jump by more than any other step, and further than it moves in `LONGEST`
    usual ones: a command that is switched on has steps alike. A signal that is often zero, in more than a hundredth of its samples, has
    none: it rests there.
    """
    zero = x == 0.0
    hit = [(a, b) for a, b in runs(zero, 2) if b - a < LONGEST]
    if not hit or np.count_nonzero(zero) > max(0.01 * len(x), 2 * LONGEST) or np.count_nonzero(~zero) < 3:
        return []
    live = x[~zero]
    noisy, steps = not smooth(live), np.abs(np.diff(live))
    most = max(float(steps.max()), LONGEST * float(np.median(steps)))
    off = find_patches(x, chance) if patches is None else patches

    def jumps(a: int, b: int) -> bool:
        if a > 0 and b < len(x) - 1:
            return any(c <= a and b <= d for c, d in off)
        return bool(abs(x[b + 1] if a == 0 else x[a - 1]) > most)

    def among_noise(a: int, b: int) -> bool:
        return (noisy or white_noise_beside(x, a, b)) and by_chance(x, a, b) < chance

    return [(a, b) for a, b in hit if jumps(a, b) or among_noise(a, b)]


def held(x: Array) -> int:
    """How many samples a signal keeps each value, where that is one and the same number of 2 or more nearly always; 1 elsewhere.

    A sensor slower than the clock it was recorded on does that, and so does resampling by the last value.
    """
    lengths = np.diff(np.flatnonzero(np.diff(x) != 0.0))
    if len(lengths) < MIN_HOLDS:
        return 1
    usual = int(np.median(lengths))
    return usual if usual > 1 and np.mean(lengths == usual) > HELD_ALIKE else 1


def repeats(x: Array) -> float:
    """Share of the values that are held for two samples or more; one long freeze is one value."""
    lengths = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(x) != 0.0) + 1, [len(x)]]))
    return float(np.mean(lengths > 1)) if len(x) > 1 else 0.0


def frozen(x: Array, chance: float = CHANCE) -> list[tuple[int, int]]:
    """First and last index of runs of at least `SHORTEST_FREEZE` equal samples in the middle of a signal that moves.

    Of a noisy signal that is any run that does not come by chance. Of a smooth one it is such a run between noise, where the signal does
    not come to rest; a run of `LONG_FREEZE` samples when the signal had a way to go; and a run behind which the signal is elsewhere: it
    jumps by more than its fastest step beside the run and the limit of its innovations. A run that ends the record counts by the jump
    before it. One that begins it, while sensors start, is left out. So are several runs at one extreme, which are a limit of the sensor,
    and a signal more than `HELD_SHARE` of whose values are held: its runs say nothing.
    """
    found = [(a, b + 1) for a, b in runs(np.diff(x) == 0.0, SHORTEST_FREEZE - 1) if a > 0]
    if not found or repeats(x) > HELD_SHARE or len(x) < FEWEST:
        return []
    for extreme in (float(x.min()), float(x.max())):
        at = [(a, b) for a, b in found if x[a] == extreme]
        found = found if len(at) < 2 else [span for span in found if span not in at]
    if not found:
        return []
    steps = np.diff(x)
    if not smooth(x[np.concatenate([[True], steps != 0.0])]):
        return [(a, b) for a, b in found if by_chance(x, a, b) < chance]
    steps = np.abs(steps)
    usual, grain = float(np.median(steps[steps > 0.0])), quantum(x)
    seen = innovations(x).rounded(grain)
    limit = extreme_limit(seen.both() / seen.scale, chance)
    least = seen.rounding(grain)

    def elsewhere(a: int, b: int) -> bool:
        ends = b + 1 == len(x)
        jump, over = (steps[a - 1], seen.scale[a]) if ends else (steps[b], seen.scale[b])
        beside = np.concatenate([steps[max(0, a - 1 - PACE) : a - 1], steps[b + 1 : b + 1 + PACE]])
        return bool(jump - beside.max(initial=0.0) > max(limit * over, least))

    def between_noise(a: int, b: int) -> bool:
        rare = by_chance(x, a, b) < chance and white_noise_beside(x, a, b)
        return rare and not comes_to_rest(x, a, b, grain, max(STOPPING * usual, 2.0 * grain))

    return [
        (a, b)
        for a, b in found
        if elsewhere(a, b) or between_noise(a, b) or (b - a + 1 >= LONG_FREEZE and stuck(x, a, b, grain))
    ]
