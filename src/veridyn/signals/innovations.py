"""What each sample of a signal adds to what its neighbours predict, from before and from behind, and a limit for the largest of it.

    f_k = x_k − Σ c_j x_{k−j},    b_k = x_k − Σ c_j x_{k+j},    j = 1 … m

c extrapolates a polynomial of degree d, fitted to m samples, by one step. Of some pairs (m, d) the one with the smallest innovations is
taken: few samples for a smooth signal, many for a noisy one. A step, a corner, a start or a stop is seen from one side alone; only a
sample that is off by itself has innovations of one sign from both sides, and

    g_k = min(|f_k|, |b_k|) where f_k b_k > 0, else 0

is what it is off by. u_k = g_k/s_k with s_k the robust scale of the innovations around k, since noise may grow with the motion. The largest
u of N clean samples exceeds the quantile 1 − chance/N of their distribution with a probability of `chance` at most. That quantile is one of
a generalised Pareto distribution fitted to the tail of u itself: heavy tails of honest noise raise the limit, and
up to a hundredth of samples that are no noise, or a tenth that lie apart from all others, do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
PREDICTORS = ((1, 0), (2, 1), (3, 2), (4, 3), (6, 1), (8, 2), (8, 0), (12, 1), (12, 2))  # samples, degree (chosen)
FEWEST = 16  # samples (chosen)
BLOCK = 64  # samples that share a scale: a median of fewer varies by more than an eighth, more hide starts and stops (chosen)
TAIL = 0.99  # quantile beyond which samples may be damaged, and do not say what noise does (chosen)
BODY = 0.8  # quantile above which a tail is fitted: a higher one leaves too few of a short record (chosen)
FEWEST_CENSORED = 5  # samples of a short record (chosen)
SHAPES = np.linspace(-0.5, 1.0, 31)  # of tails: bounded noise to Cauchy's, which is heavier than any noise
TAIL_BINS = 24  # of exceedances, with as many in each
CONFIDENCE = 2.7060  # of the logarithm of a likelihood: half of the 98 % quantile of χ² with one degree of freedom, 99 % on one side
SEEN_BLOCKS = 256  # that choose a predictor: more do not change the choice (chosen)
LARGEST_OF_THREE = (
    1.12  # what the largest of three medians of 64 |z| is over their mean: 1 + 0.85 times their deviation, 0.146
)
PART = 8192  # samples that are predicted at once
HALF_NORMAL = 0.6744897501960817  # median of |z|, z standard normal
SMALLEST_BODY = 0.3  # scales: innovations that are zero nearly always do not show a tail (chosen)


@dataclass(frozen=True, eq=False)
class LocalInnovations:
    """Of a signal x (N,) of finite numbers: `forward` f, `backward` b and `scale` s (N,), from `weights` c (m,).

    f of the first m samples and b of the last m are zero, since nothing predicts them.
    """

    forward: Array
    backward: Array
    scale: Array
    weights: Array

    @property
    def gain(self) -> float:
        """Deviation of an innovation over that of white noise."""
        return float(np.sqrt(1.0 + self.weights @ self.weights))

    def both(self) -> Array:
        """g (N,): what a sample is off by, seen from both sides."""
        f, b = self.forward, self.backward
        return np.where(f * b > 0.0, np.minimum(np.abs(f), np.abs(b)), 0.0)

    def rounding(self, grain: float) -> float:
        """The largest innovation that rounding to multiples of `grain` makes by itself."""
        return 0.5 * grain * (1.0 + float(np.abs(self.weights).sum()))

    def rounded(self, grain: float) -> LocalInnovations:
        """The same with no scale below that of rounding, whose deviation is grain/√12."""
        return replace(self, scale=np.maximum(self.scale, self.gain * grain / np.sqrt(12.0)))

    def again(self, x: Array) -> LocalInnovations:
        """Those of another signal, by the same weights and on the same scale."""
        f, b = _both_sides(x, self.weights)
        return replace(self, forward=f, backward=b)


@cache
def weights(count: int, degree: int) -> Array:
    """c (m,), that of the nearest sample first: extrapolation of a polynomial, fitted to `count` samples, by one step."""
    powers = (-np.arange(1.0, count + 1.0))[:, None] ** np.arange(degree + 1)
    return np.asarray(np.linalg.pinv(powers)[0], dtype=np.float64)


def forward_innovations(x: Array, c: Array) -> Array:
    """f (N − m,) of the samples m … N − 1."""
    m, n = len(c), len(x) - len(c)
    out = np.empty(n)
    for start in range(0, n, PART):  # parts that stay in the cache
        stop = min(start + PART, n)
        part = x[start + m : stop + m].copy()
        for j, weight in enumerate(c, start=1):
            part -= weight * x[start + m - j : stop + m - j]
        out[start:stop] = part
    return out


def innovations(x: Array) -> LocalInnovations:
    """Of a signal of at least `FEWEST` samples."""
    c = _predictor(x)
    f, b = _both_sides(x, c)
    made = LocalInnovations(f, b, _local_scale(f, len(c)), c)
    least = made.gain * np.finfo(np.float64).eps * float(np.abs(x).max())
    return replace(made, scale=np.maximum(made.scale, least))


def _both_sides(x: Array, c: Array) -> tuple[Array, Array]:
    m = len(c)
    f, b = np.zeros(len(x)), np.zeros(len(x))
    f[m:] = forward_innovations(x, c)
    b[: len(x) - m] = forward_innovations(x[::-1], c)[::-1]
    return f, b


def _predictor(x: Array) -> Array:
    """The weights with the smallest innovations, the largest tenth of them left out, over blocks spread over the signal."""
    width = min(BLOCK, len(x))
    starts = np.linspace(0, len(x) - width, min(SEEN_BLOCKS, len(x) // width)).astype(np.intp)
    parts = np.lib.stride_tricks.sliding_window_view(x, width)[starts]
    parts = parts - parts[:, :1]
    best, least = weights(*PREDICTORS[0]), np.inf
    for m, degree in PREDICTORS:
        if 4 * m > width:
            continue
        c = weights(m, degree)
        size = np.abs(parts[:, m:] - sum(w * parts[:, m - j : width - j] for j, w in enumerate(c.tolist(), start=1)))
        kept = int(0.9 * size.size)
        score = float(np.mean(np.partition(size, kept, axis=None)[:kept]))
        if score < least:
            best, least = c, score
    return best


def _local_scale(f: Array, m: int) -> Array:
    """Robust standard deviation of innovations around each sample: the largest of the medians of its block and the blocks beside it."""
    n = len(f)
    count = max((n - 2 * m) // BLOCK, 1)
    stop = min(m + count * BLOCK, n - m)
    half = (stop - m) // count // 2
    blocks = np.abs(f[m:stop]).reshape(count, -1)
    blocks.partition(half, axis=1)
    medians = blocks[:, half]
    padded = np.concatenate([medians[:1], medians, medians[-1:]])
    widest = np.maximum(np.maximum(padded[:-2], padded[2:]), medians) / (HALF_NORMAL * LARGEST_OF_THREE)
    alive = widest[widest > 0.0]
    widest = np.maximum(widest, np.median(alive)) if len(alive) else widest
    return widest[np.clip((np.arange(n) - m) // BLOCK, 0, count - 1)]


def gauss_limit(chance: float) -> float:
    """What |z| of a standard normal z exceeds with this probability."""
    return float(-ndtri(0.5 * chance))


def extreme_limit(u: Array, chance: float) -> float:
    """The limit that the largest of clean `u` (N,), in units of their scale, exceeds with a probability of `chance` at most.

    Exceedances y of the quantile `BODY` have a generalised Pareto distribution, P(y > z) = (1 + ξ z/σ)^(−1/ξ) (Pickands, Annals of
    Statistics 3, 1975, 119-131). ξ is the largest that the likelihood does not exclude, with those beyond the quantile `TAIL`, and those
    that lie apart from all others, counted and not looked at. The limit is never below Gauss's.
    """
    n = len(u)
    least = gauss_limit(chance / n)
    beyond = np.sort(np.partition(u, int(BODY * n))[int(BODY * n) :])
    censored = max(round((1.0 - TAIL) * n), FEWEST_CENSORED, _apart(beyond, chance))
    start = max(float(beyond[0]), SMALLEST_BODY)
    y = beyond[beyond > start] - start
    if len(y) < 4 * censored:
        return least
    shape, scale = _pareto_tail(y, censored)
    rarer = chance / len(y)  # of exceedances
    return max(least, start + scale * float(-np.log(rarer) if abs(shape) < 1e-9 else (rarer**-shape - 1.0) / shape))


def _apart(beyond: Array, chance: float) -> int:
    """How many of the largest of sorted values, half of them at most, lie apart from the others; 0 where none do.

    Between ranks k and k + 1 a Pareto tail of shape ξ has a ratio above r with probability r^(−k/ξ); one that ξ = 1 explains with less than
    `chance` is no tail of noise.
    """
    top = np.maximum(beyond[::-1][: len(beyond) // 2 + 1], SMALLEST_BODY)
    ranks = np.arange(1, len(top))
    gaps = np.flatnonzero(np.log(top[:-1] / top[1:]) * ranks > -np.log(chance / len(top)))
    return int(ranks[gaps[-1]]) if len(gaps) else 0


def _pareto_tail(y: Array, censored: int) -> tuple[float, float]:
    """ξ and σ of sorted exceedances y > 0, the last so many only counted: the largest ξ within `CONFIDENCE` of the likelihood, its σ."""
    kept = len(y) - censored
    edges = np.unique(y[np.linspace(0, kept, TAIL_BINS + 1).astype(np.intp)[1:]])
    counts = np.diff(np.searchsorted(y, edges), prepend=0)
    sigma = float(np.median(y)) / np.log(2.0) * np.geomspace(0.2, 5.0, 30)[:, None]
    best = []
    for shape in SHAPES.tolist():
        survival = np.maximum(1.0 + shape * edges / sigma, 0.0)
        survival = (
            np.exp(-edges / sigma)
            if abs(shape) < 1e-9
            else survival ** (-1.0 / shape)
            if shape > 0.0
            else survival ** (1.0 / -shape)
        )
        inside = -np.diff(survival, axis=1, prepend=1.0)
        likelihood = counts @ np.log(np.maximum(inside, 1e-300)).T + (len(y) - counts.sum()) * np.log(
            np.maximum(survival[:, -1], 1e-300)
        )
        k = int(np.argmax(likelihood))
        best.append((float(likelihood[k]), shape, float(sigma[k, 0])))
    top = max(best)[0]
    _, shape, scale = max((b for b in best if b[0] >= top - CONFIDENCE), key=lambda b: b[1])
    return shape, scale
