"""Samples that a sensor's limits or an electrical fault made, separated from those that a machine made.

- A plateau is clipped where the signal meets its extreme at speed; a machine that comes to rest arrives slowly.
- A spike leaves both its neighbours in the same direction and comes back; a step does not come back. In a smooth signal, a position above
  all, one sample that is off the curve of its neighbours is one too, if it is much smaller than the range of the signal.
- A dropout is a short run of exact zeros, which no noisy measurement gives, or to which a smooth one jumps.
- A frozen stretch repeats one value while the machine moves on. A machine that comes to rest brakes, so that the last samples before a run
  of equal ones lead to its value: with speed v and acceleration a at its first sample, from a cubic through the samples before it, the
  place without speed is v²/2|a| away. A stuck sensor stops at a distance from it that noise and resolution do not explain. At a reversal,
  where a sensor may be stuck at no speed, the braking machine would turn round; only the other channels of the machine tell that from a
  rest.

One signal (N,) of finite numbers; indices count samples, speeds and accelerations are per sample. All look at the signal's own steps and at
its quantum (the smallest difference of two values), so no unit or sensor range is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array

FALL = 6.0  # quanta below an extreme, from where its top is seen whole (chosen)
LONGEST_STEP = 10  # samples over which the speed of a signal in coarse steps is taken (chosen)
REST_SAMPLES = 20  # equal ones in a row: a quantity that may be at rest, which says nothing about noise (chosen)
DROPOUT_SCATTERS = 8.0  # robust deviations of the steps by which a signal must jump to zero and back (chosen)
BENDS = 6  # samples on either side of one, whose bends it is compared with (chosen)
OFF_CURVE = 10.0  # times those bends, by which one sample must be off (chosen)
OFF_STEP = 2.5  # times the bends of a step beside it (chosen)
OFF_END = 5.0  # times the largest step of twice as many samples, by which an end of the record must be off (chosen)
RARE_RUNS = 1e-4  # runs that a record would hold by chance: fewer are no chance (chosen)
AROUND = 100  # samples on each side of a run that show how often its signal repeats a value
SHORTEST_FREEZE = 5  # equal samples, and steps that show how fast a signal was (chosen)
HELD_SHARE = 0.2  # of all values are held for two samples or more: a slow sensor on a fast clock (chosen)
STOPPING_SHARE = 0.8  # of the fastest of them, that the last may still have (chosen)
WHITE_CORRELATION = -0.5  # correlation of third differences: below it they are noise (chosen)
COLOURED_CORRELATION = -0.2  # the same of noise that is not white (chosen)
FINE = 0.05  # share of third differences, whose smallest show how fine a signal is resolved (chosen)
FEW_FREEZES = 3  # runs of equal samples of a signal that else repeats no value (chosen)
REPEATS_SHARE = 0.001  # of its samples, which may repeat the one before (chosen)
LONG_FREEZE = 10  # samples: a shorter frozen stretch biases little (chosen)
FROZEN_JUMP = 3.0  # times the steps beside a frozen stretch that a signal must jump at its end (chosen)
WINDOWS, DEGREE = (12, 24, 48), 3  # samples that a polynomial of this degree is fitted to
SAME_SPEED = 3.0  # standard errors of the narrowest window
SAME_RESIDUAL = (
    3.0  # times the variance of the narrowest window: one in a hundred of F with 20 and 8 degrees of freedom is above 5
)
STUCK_ERRORS = 12.0  # standard errors: one in a million of Student's t with 12 − DEGREE − 1 = 8 degrees of freedom
STUCK_QUANTA = 3.0  # resolutions of the sensor that are left of the way: rounding explains one
SMALL_SHARE = 0.005  # of the range of a signal: less biases nothing, and a clock that jitters makes it (chosen)
STOP_SAMPLES = 2.0  # before a rest, in which samples do not show when the machine stopped


def runs(mask: NDArray[np.bool_], least: int = 1) -> list[tuple[int, int]]:
    """First and last index of every run of at least `least` true entries."""
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a + 1 >= least]


def quantum(x: Array) -> float:
    """The smallest difference of two different values; 0 where all are equal."""
    steps = np.diff(np.unique(x))
    return float(steps.min()) if len(steps) else 0.0


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


def spikes(x: Array, factor: float = 10.0) -> NDArray[np.intp]:
    """Indices of samples, alone or in pairs, that stand out from the sample before and the sample after.

    By more than `factor` robust standard deviations of the steps, a fifth of the range that holds 98 % of the samples,
    and three quanta, whichever is most; or as :func:`off_curve` and :func:`off_end` say.
    """
    if len(x) < 3:
        return np.empty(0, dtype=np.intp)
    return np.unique(np.concatenate([_sharp(x, factor), off_curve(x), off_end(x)]))


def off_end(x: Array) -> NDArray[np.intp]:
    """The first or the last sample, where it is off by more than any other step of the signal and `OFF_END` times those beside it."""
    steps = np.abs(np.diff(x))
    if len(steps) < 2 * BENDS + 2 or (others := steps[1:-1].max()) >= max(steps[0], steps[-1]):
        return np.empty(0, dtype=np.intp)
    ends = ((0, steps[0], steps[1 : 1 + 2 * BENDS]), (len(x) - 1, steps[-1], steps[-1 - 2 * BENDS : -1]))
    usual = np.median(steps)
    off = [k for k, step, near in ends if step > max(others, OFF_END * max(near.max(), usual))]
    return np.array(off, dtype=np.intp)


def off_curve(x: Array) -> NDArray[np.intp]:
    """Indices of single samples that are off the curve of their neighbours: small spikes of smooth signals.

    A sample that is off by g leaves bends b_i = x_i − (x_{i−1} + x_{i+1})/2 of −g/2, g, −g/2, and nothing beyond. It counts where |g| is
    `OFF_CURVE` times any such bend of the `BENDS` samples beside these three on both sides, and of the median bend, above three quanta, and
    above `SMALL_SHARE` of the range that holds 98 % of the samples: a clock that jitters puts samples off the curve by less. A step
    leaves two bends, of either sign, and is no such bend; |g| must be `OFF_STEP` times as large.
    """
    if len(x) < 2 * BENDS + 5:
        return np.empty(0, dtype=np.intp)
    bends = x[1:-1] - 0.5 * (x[:-2] + x[2:])
    size = np.abs(bends)
    low, high = np.percentile(x, (1.0, 99.0))
    least = max(OFF_CURVE * float(np.median(size)), SMALL_SHARE * float(high - low))
    if size.max() <= least:
        return np.empty(0, dtype=np.intp)
    least = max(least, 3.0 * quantum(x))
    pointed = _pointed(bends)
    hits = []
    for k in np.flatnonzero(size > least):
        if not 1 <= k < len(bends) - 1:
            continue
        g = bends[k]
        near = np.r_[max(0, k - 1 - BENDS) : k - 1, k + 2 : min(k + 2 + BENDS, len(bends))]
        beside = max(OFF_CURVE * pointed[near].max(initial=0.0), OFF_STEP * size[near].max(initial=0.0))
        alike = np.abs(bends[[k - 1, k + 1]] + 0.5 * g) < 0.1 * abs(g)
        if alike.all() and abs(g) > beside:
            hits.append(int(k) + 1)
    return np.asarray(hits, dtype=np.intp)


def _pointed(bends: Array) -> Array:
    """What of each bend a single sample that is off can have left: at most twice the bends beside it, which have the other sign."""
    padded = np.concatenate([[0.0], bends, [0.0]])
    against = -np.sign(bends) * np.stack([padded[:-2], padded[2:]])
    return np.minimum(np.abs(bends), np.maximum(2.0 * against.min(axis=0), 0.0))


def _sharp(x: Array, factor: float) -> NDArray[np.intp]:
    """Samples, alone or in pairs, that stand out by more than a share of the range of the signal."""
    steps = np.diff(x)
    scatter = 1.4826 * float(np.median(np.abs(steps - np.median(steps))))
    low, high = np.percentile(x, (1.0, 99.0))
    least = max(factor * scatter, 0.2 * float(high - low))
    if np.abs(steps).max() <= least:  # no step is that large, so nothing stands out
        return np.empty(0, dtype=np.intp)
    least = max(least, 3.0 * quantum(x))
    hits: list[int] = []
    for width in (1, 2):
        if len(x) < width + 2:
            break
        before, after = x[: -width - 1], x[width + 1 :]
        within = np.stack([x[1 + i : len(x) - width + i] for i in range(width)])
        up = within.min(axis=0) - np.maximum(before, after)
        down = np.minimum(before, after) - within.max(axis=0)
        for i in np.flatnonzero(np.maximum(up, down) > least):
            hits.extend(range(int(i) + 1, int(i) + 1 + width))
    return np.unique(np.asarray(hits, dtype=np.intp))


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
    if not noise_beside(x, first, last):
        return False
    third = np.concatenate(_third_differences(x, first, last))
    return bool(white_deviation(third) > np.quantile(np.abs(third[third != 0.0]), FINE))


def white_deviation(third: Array) -> Array:
    """σ of white noise from third differences (N, …) of a smooth signal with it: they have √20 times as much."""
    return np.asarray(1.4826 * np.median(np.abs(third), axis=0) / np.sqrt(20.0))


def _third_differences(x: Array, first: int, last: int) -> tuple[Array, Array]:
    """Of the samples before a run, and of those behind it."""
    return np.diff(x[max(0, first - AROUND) : first], 3), np.diff(x[last + 1 : last + 1 + AROUND], 3)


def noise_beside(x: Array, first: int, last: int, most: float = WHITE_CORRELATION) -> bool:
    """Whether third differences beside a run are noise, of whatever resolution: their correlation is at `most` that."""
    left, right = _third_differences(x, first, last)
    size = left @ left + right @ right
    enough = np.count_nonzero(left) + np.count_nonzero(right) >= AROUND // 2
    return bool(enough and left[1:] @ left[:-1] + right[1:] @ right[:-1] <= most * size)


def dropouts(x: Array) -> list[tuple[int, int]]:
    """First and last index of runs of 2 to `REST_SAMPLES` exact zeros that no measurement gives.

    The signal enters and leaves such a run by more than `DROPOUT_SCATTERS` robust standard deviations of the steps and three quanta; or
    by more than three quanta, and noise makes its steps, or lies on them, and so many zeros do not come by chance: a slow signal
    that passes through zero keeps it for long, and of the runs that chance makes as many are zeros as other samples are. At an end of
    the record it must jump by more than any other step, since it does not come back (a command that is switched on has steps alike); noise
    counts at the end alone, since sensors start with zeros. A signal that is often zero, in more than a hundredth of its samples, has none:
    it rests there.
    """
    zero = x == 0.0
    hit = [(a, b) for a, b in runs(zero, 2) if b - a < REST_SAMPLES]
    if not hit or np.count_nonzero(zero) > max(0.01 * len(x), 2 * REST_SAMPLES):
        return []
    live = x[~zero]
    if len(live) < 3:
        return []
    noisy, steps = not smooth(live), np.diff(live)
    scatter = 1.4826 * float(np.median(np.abs(steps - np.median(steps))))
    resolved = 3.0 * quantum(x)
    least = max(DROPOUT_SCATTERS * scatter, resolved)
    most = max(least, float(np.abs(steps).max()))

    def jump(a: int, b: int) -> float:
        return float(min(abs(x[k]) for k in (a - 1, b + 1) if 0 <= k < len(x)))

    def jumps(a: int, b: int) -> bool:
        return jump(a, b) > (least if a > 0 and b + 1 < len(x) else most)

    def among_noise(a: int, b: int) -> bool:
        elsewhere = np.count_nonzero(zero) - (b - a + 1)
        chance = by_chance(x, a, b) * float(elsewhere + 1) / (len(x) + 2)
        return a > 0 and jump(a, b) > resolved and (noisy or white_noise_beside(x, a, b)) and chance < RARE_RUNS

    return [(a, b) for a, b in hit if jumps(a, b) or among_noise(a, b)]


def repeats(x: Array) -> float:
    """Share of the values that are held for two samples or more; one long freeze is one value."""
    lengths = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(x) != 0.0) + 1, [len(x)]]))
    return float(np.mean(lengths > 1)) if len(x) > 1 else 0.0


def frozen(x: Array, least: int = SHORTEST_FREEZE, *, may_rest: bool = True) -> list[tuple[int, int]]:
    """First and last index of runs of at least `least` equal samples in the middle of a signal that moves.

    Of a noisy signal that is any run that does not come by chance; of a smooth one, a run between noise, where the signal repeats no value
    elsewhere (in more than `REPEATS_SHARE` of its samples, or in more than `FEW_FREEZES` runs) and does not come to rest, or a run of
    `LONG_FREEZE` samples when the signal had a way to go (:func:`stuck`), or a run that it enters at speed (the last
    two steps before it are above 0.3 of the median step while moving and above two quanta) and leaves by a jump (above the median step and
    three quanta), or not at all where it is no long rest or is entered without braking, or a run that ends in a jump `FROZEN_JUMP` times as
    large as the steps on both sides, or a run that begins and ends in jumps which are that large beside the steps around them and the
    median step. A run that begins the record, while sensors start, is left out, so are several runs at one extreme, which are a limit of
    the sensor, and so is a signal more than `HELD_SHARE` of whose values are held: its runs say nothing. `may_rest`: False where others
    say whether the machine rests, so that a run between noise need not show by itself that it is no rest.
    """
    found = [(a, b) for a, b in runs(np.diff(x) == 0.0, least - 1) if a > 0]
    if not found or repeats(x) > HELD_SHARE:
        return []
    for extreme in (float(x.min()), float(x.max())):
        at = [(a, b) for a, b in found if x[a] == extreme]
        found = found if len(at) < 2 else [span for span in found if span not in at]
    if not found:
        return []
    steps = np.diff(x)
    if not smooth(x[np.concatenate([[True], steps != 0.0])]):
        return [(a, b + 1) for a, b in found if by_chance(x, a, b + 1) < RARE_RUNS]
    steps = np.abs(steps)
    usual, grain = float(np.median(steps[steps > 0.0])), quantum(x)
    speed, jump = max(0.3 * usual, 2.0 * grain), max(usual, 3.0 * grain)
    elsewhere = np.count_nonzero(steps == 0.0) - sum(b - a + 1 for a, b in found)
    never = len(found) <= FEW_FREEZES and elsewhere <= REPEATS_SHARE * len(x)
    return [
        (a, b + 1)
        for a, b in found
        if (
            a >= 2
            and min(steps[a - 1], steps[a - 2]) > speed
            and (steps[b + 1] > jump if b + 1 < len(steps) else b - a < HELD_SHARE * len(x) or stops_dead(steps, a))
        )
        or (b + 1 < len(steps) and steps[b + 1] > max(FROZEN_JUMP * _pace(steps, a, b), FROZEN_JUMP * grain))
        or (b + 1 < len(steps) and min(steps[a - 1], steps[b + 1]) > FROZEN_JUMP * max(usual, _pace(steps, a - 1, b)))
        or (
            never
            and white_noise_beside(x, a, b + 1)
            and by_chance(x, a, b + 1) < RARE_RUNS
            and not (may_rest and comes_to_rest(x, a, b + 1, grain, speed))
        )
        or (b - a + 2 >= LONG_FREEZE and stuck(x, a, b + 1, grain))
    ]


def stops_dead(steps: Array, first: int) -> bool:
    """Whether a signal is as fast in its last step before `first` as in the five before: a machine that brakes is slower."""
    before = steps[max(0, first - SHORTEST_FREEZE) : first]
    return first >= SHORTEST_FREEZE and bool(steps[first - 1] >= STOPPING_SHARE * before.max())


def _pace(steps: Array, first: int, last: int) -> float:
    """The largest of five steps before a run of zero steps, and of five behind the step that ends it."""
    before, behind = steps[max(0, first - SHORTEST_FREEZE) : first], steps[last + 2 : last + 2 + SHORTEST_FREEZE]
    return float(max(before.max(initial=0.0), behind.max(initial=0.0)))


@dataclass(frozen=True)
class Arrival:
    """How a signal comes to the first sample of a run: `speed`, `acceleration` and their covariance (2, 2), from `count` samples."""

    speed: float
    acceleration: float
    covariance: Array
    count: int

    def way(self) -> tuple[float, float]:
        """How far it is from where it has no speed, v²/2|a|, ahead if it brakes and behind if it does not, and the standard error of that;
        no more than within as many samples as were seen."""
        v, a = abs(self.speed), abs(self.acceleration)
        t = min(float(self.count), v / a) if a > 0.0 else float(self.count)
        slope = np.array([t, -0.5 * t * t]) * np.sign([self.speed, self.acceleration])
        return v * t - 0.5 * a * t * t, float(np.sqrt(slope @ self.covariance @ slope))

    def excursion(self, length: int) -> float:
        """How far it would be from the first sample of the run at most, with that acceleration throughout."""
        t = np.arange(1.0, length + 1.0)
        return float(np.abs(self.speed * t + 0.5 * self.acceleration * t * t).max())


def arrival(x: Array, first: int, grain: float) -> Arrival | None:
    """How a signal of resolution `grain` comes to its sample `first`; None where too few samples lie before it.

    Of the windows in `WINDOWS` the widest counts whose residual and speed are those of the narrowest: a coarse or noisy signal needs it.
    """
    found, least, near, allowed = None, 0.0, 0.0, 0.0
    for count in WINDOWS:
        if first + 1 < count:
            break
        A, inverse = _cubic(count)
        y = x[first + 1 - count : first + 1] - x[first]
        c = inverse @ (A.T @ y)
        r = y - A @ c
        variance = max(float(r @ r) / (count - DEGREE - 1), grain**2 / 12.0)
        if found is None:
            least, near, allowed = variance, c[1], SAME_SPEED * np.sqrt(variance * inverse[1, 1])
        elif variance > SAME_RESIDUAL * least or abs(c[1] - near) > allowed:
            break
        scale = np.array([1.0, 2.0])  # a = 2 c_2
        found = Arrival(float(c[1]), float(2.0 * c[2]), variance * inverse[1:3, 1:3] * np.outer(scale, scale), count)
    return found


@cache
def _cubic(count: int) -> tuple[Array, Array]:
    """Powers of the times −count + 1 … 0, and (AᵀA)⁻¹."""
    A = np.arange(1.0 - count, 1.0)[:, None] ** np.arange(DEGREE + 1)
    return A, np.asarray(np.linalg.inv(A.T @ A), dtype=np.float64)


def moves_on(x: Array, first: int, last: int, grain: float) -> bool:
    """Whether the signal had a way to go when it began to repeat one value: the sensor is stuck, and the machine is not."""
    met = arrival(x, first, grain)
    if met is None:
        return False
    if abs(met.speed) <= STOP_SAMPLES * abs(met.acceleration):
        return False
    way, error = met.way()
    enough = met.excursion(last - first) > SMALL_SHARE * float(np.ptp(x))
    return enough and way > max(STUCK_ERRORS * error, STUCK_QUANTA * grain)


def stuck(x: Array, first: int, last: int, grain: float) -> bool:
    """Whether a signal had a way to go before a run of equal samples, and comes back along it behind the run, where the record goes on.

    A signal that goes on in the same direction from where it stood was halted: behind a stuck sensor it would be elsewhere by then.
    """
    if not moves_on(x, first, last, grain):
        return False
    back, start = x[::-1], len(x) - 1 - last
    if start == 0:
        return True
    met, left = arrival(x, first, grain), arrival(back, start, grain)
    assert met is not None  # it moves on
    return left is not None and left.speed * met.speed > 0.0 and moves_on(back, start, start + last - first, grain)


def comes_to_rest(x: Array, first: int, last: int, grain: float, slow: float) -> bool:
    """Whether a run inside the record is met and left slowly, below `slow` per sample, with no way to go at either end.

    A machine that moved on behind a stuck sensor is elsewhere when the sensor recovers, or meets it at speed.
    """
    if last + WINDOWS[0] > len(x) or moves_on(x, first, last, grain):
        return False
    back = x[::-1]
    start = len(x) - 1 - last
    if moves_on(back, start, start + last - first, grain):
        return False
    ends = arrival(x, first, grain), arrival(back, start, grain)
    return all(met is not None and abs(met.speed) < slow for met in ends)
