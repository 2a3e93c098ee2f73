"""An error of position that goes round many times while a joint goes along its way: of a gear's teeth, or of the lines of an encoder.

    θ − q as measured = what the equations say + A cos(w θ + φ)

At low speed it is slow enough to be seen, at high speed it is beyond the low-pass. What the fit leaves between its own band and the
low-pass of predictions shows it. w is searched for the wave that explains most of each quarter of a log when its amplitude and phase are
those of the other three, which an error at one turn of the motion does not. Samples at standstill, where friction decides, are left out.
The wave stays where the residual so falls by more than Schwarz's criterion charges for its numbers, and the search. Where logs count
their angles from is not known: φ is a number of each log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize_scalar

from veridyn.arrays import Array
from veridyn.identify.flexible.recording import ORDER, JointSamples
from veridyn.signals.butterworth import Butterworth, zero_phase

STEP_PER_WAY = 1.5  # of the search for w, over the way: a wave is resolved to 2π/way
PARTS = 4  # of a log
AT_ONCE = 4  # waves that are filtered together: their eight columns fill the widest registers
FEWEST_TURNS = 2.0  # of a wave over the way: a slower one is part of the spring


@dataclass(frozen=True)
class Ripple:
    """The wave number w (1/rad or 1/m), the amplitude A (rad or m), and the speed that counts as motion."""

    wave: float
    amplitude: float
    slowest: float

    def fitted(self, samples: JointSamples, left: Array, band: float) -> Array:
        """The wave along a log, its phase the one that fits best what is `left` above the band."""
        X = waves(samples, [self.wave])[:, 0]
        own = np.abs(samples.speed) > self.slowest
        c = np.linalg.lstsq(above(samples, X, band)[own], above(samples, left, band)[own], rcond=None)[0]
        size = float(np.hypot(*c))
        return X @ c * (self.amplitude / size) if size > 0.0 else np.zeros(len(samples))


def waves(samples: JointSamples, numbers: Sequence[float]) -> Array:
    """cos(w θ) and sin(w θ) (K, W, 2) of each number w, low-passed as the samples, which are all that the low-pass leaves."""
    phase = np.multiply.outer(samples.path, np.array(numbers))
    return samples.passed(np.stack([np.cos(phase), np.sin(phase)], axis=2))[samples.kept]


def above(samples: JointSamples, x: Array, band: float) -> Array:
    """What of x (K, …) lies above a band."""
    low = Butterworth(band, ORDER)
    return x - zero_phase(x, samples.rate, low)


def find_ripple(
    logs: Sequence[JointSamples], left: Sequence[Array], band: float, lowpass: float, slowest: float
) -> Ripple | None:
    """The wave in what is `left` of the deflection of each log; None where there is none. `slowest`: the speed that counts as motion."""
    moves = [np.abs(one.speed) > slowest for one in logs]
    rest = [above(one, e, band)[own] for one, e, own in zip(logs, left, moves, strict=True)]
    power = sum(float(y @ y) for y in rest)
    way = max(float(np.ptp(one.path)) for one in logs)
    fastest = max(float(np.abs(one.speed).max()) for one in logs)
    low = max(2.0 * np.pi * FEWEST_TURNS / way, 2.0 * np.pi * band / fastest)
    high = 2.0 * np.pi * lowpass / slowest

    def columns(numbers: Sequence[float]) -> list[Array]:
        """Of each log, the waves (K, W, 2) above the band."""
        return [above(one, waves(one, numbers), band)[own] for one, own in zip(logs, moves, strict=True)]

    def explained(own: Sequence[Array]) -> tuple[float, list[Array]]:
        """What one wave explains, from its columns (K, 2) in each log, and its two amplitudes there."""
        total, found = 0.0, []
        for X, y in zip(own, rest, strict=True):
            parts = np.array_split(np.arange(len(y)), PARTS)
            grams, sums = [X[k].T @ X[k] for k in parts], [X[k].T @ y[k] for k in parts]
            G, g = sum(grams, np.zeros((2, 2))), sum(sums, np.zeros(2))
            for gram, slope in zip(grams, sums, strict=True):
                c = np.linalg.lstsq(G - gram, g - slope, rcond=None)[0]
                total += float(2.0 * slope @ c - c @ gram @ c)
            found.append(np.linalg.lstsq(G, g, rcond=None)[0])
        return total, found

    if not (power > 0.0 and high > low and lowpass > band):
        return None
    step = STEP_PER_WAY / way
    tried = np.arange(low, high, step)
    gains: list[float] = []
    for k in range(0, len(tried), AT_ONCE):
        made = columns(tried[k : k + AT_ONCE].tolist())
        gains += [explained([np.ascontiguousarray(X[:, i]) for X in made])[0] for i in range(made[0].shape[1])]
    start = float(tried[np.argmax(gains)])
    near = (start - step, start + step)

    def of_one(wave: float) -> tuple[float, list[Array]]:
        return explained([X[:, 0] for X in columns([wave])])

    wave = float(cast(Any, minimize_scalar(lambda w: -of_one(w)[0], bounds=near, method="bounded")).x)
    gain, found = of_one(wave)
    independent = 2.0 * (lowpass - band) * sum(len(y) / one.rate for one, y in zip(logs, rest, strict=True))
    price = (1.0 + 2.0 * len(logs)) * np.log(max(independent, 2.0)) + 2.0 * np.log(len(tried))
    if -independent * np.log(max(1.0 - gain / power, 1e-12)) <= price:
        return None
    return Ripple(wave, float(np.sqrt(np.mean([c @ c for c in found]))), slowest)
