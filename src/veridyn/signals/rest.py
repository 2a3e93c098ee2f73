"""A signal that stands still: the machine rests, or the sensor is stuck while the machine moves on.

A machine that comes to rest brakes, so that the last samples before a run of equal ones lead to its value: with speed v and acceleration a
at its first sample, from a cubic through the samples before it, the place without speed is v²/2|a| away. A stuck sensor stops at a distance
from it that noise and resolution do not explain. At a reversal, where a sensor may be stuck at no speed, the braking machine
would turn round; only the other channels of the machine tell that from a rest.

One signal (N,) of finite numbers; speeds and accelerations here are per sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from veridyn.arrays import Array
from veridyn.model.experiment import Channel, Experiment

WINDOWS, DEGREE = (12, 24, 48), 3  # samples that a polynomial of this degree is fitted to
SAME_SPEED = 3.0  # standard errors of the narrowest window
SAME_RESIDUAL = (
    3.0  # times the variance of the narrowest window: one in a hundred of F with 20 and 8 degrees of freedom is above 5
)
STUCK_ERRORS = 12.0  # standard errors: one in a million of Student's t with 12 − DEGREE − 1 = 8 degrees of freedom
STUCK_QUANTA = 3.0  # resolutions of the sensor that are left of the way: rounding explains one
SMALL_SHARE = 0.005  # of the range of a signal: less biases nothing, and a clock that jitters makes it (chosen)
STOP_SAMPLES = 2.0  # before a rest, in which samples do not show when the machine stopped
POSITIONS, SPEEDS = ("q.", "q_motor."), ("qd.",)


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
