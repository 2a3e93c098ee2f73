"""Estimates with priors under autocorrelated residuals: Gauss-Newton on y = f(p) + e, p ~ N(m, S), e first-order noise beside white noise.

The covariance of e between samples Δt apart is s² ((1 − w) exp(−|Δt|/τ) + w δ). τ and w are those of the largest marginal likelihood on a
grid, in which the parameters are integrated out by their linearisation, and s² follows from the residuals (a step of expectation
maximisation). So standard deviations are those of coloured residuals, and a slow error of an encoder costs the evidence that it looks like.

Every linearisation has its own noise, and data that contradict a bound leave the others where they have them: no cost falls from step to
step, by which those of :mod:`veridyn.inference.search` are damped, so that these are taken as they are, until none is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.special import chdtrc, ndtri

from veridyn.arrays import Array
from veridyn.inference.agreement import FALSE_ALARM_RATE
from veridyn.inference.posterior import posterior_covariance
from veridyn.inference.quadratic import inequality_step

# without the checks of SciPy's own, which take longer than the solution
(SOLVE_TRIANGULAR,) = get_lapack_funcs(("trtrs",))
MEMORIES_S = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # τ that are tried
WHITE_SHARES = (0.03, 0.3, 1.0)  # w that are tried
LARGEST_BLOCK = 1200  # samples whose correlations are held at once; those between blocks are left out
ITERATIONS = 30
CONVERGED = 1e-4  # of a standard deviation: a smaller step ends the iteration
SCALE_STEPS = 8  # of expectation maximisation
NOISE_TURNS = 5  # iterations after which the noise stays as it was chosen


@dataclass(frozen=True, eq=False, kw_only=True)
class ColouredPosterior:
    """Values and covariance of the parameters, the noise: s, τ (s) and w, and the log of the marginal likelihood.

    `beyond`: numbers at a bound that data contradict → what they would be without it, and its deviation. `free`: the values without
    bounds, which `covariance` is of; None where they are the values.
    """

    values: Array
    covariance: Array
    noise: tuple[float, float, float]
    converged: bool
    evidence: float
    beyond: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    free: Array | None = None

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, eq=False)
class Whitening:
    """The inverse Cholesky factors of the noise's correlation, block by block, and the log of its determinant."""

    memory: float
    white: float
    factors: tuple[Array, ...]
    log_determinant: float

    def __call__(self, x: Array) -> Array:
        parts, start = [], 0
        for L in self.factors:
            parts.append(SOLVE_TRIANGULAR(L, x[start : start + len(L)], lower=1)[0])
            start += len(L)
        return np.concatenate(parts)


def posterior(
    predict: Callable[[Array], Array],
    measured: Array,
    noises: Sequence[Whitening],
    mean: Array,
    sigma: Array,
    step: Array,
    start: Array | None = None,
    low: Array | None = None,
) -> ColouredPosterior:
    """The estimate of p from `measured` = predict(p) + e, with the prior N(mean, sigma²); `noises`: those that are tried.

    `step`: of the central differences by which predict is linearised. `start`: where to begin, the prior's mean by default. `low`: what p
    is at least. The covariance is that without bounds. Data that contradict a bound contradict the model, so that what the bound says of
    the other numbers is worth no more than what the data say: those stay where data have them, and how far the bound would move them is
    part of their covariance.
    """
    tried = noises
    p, found, converged = (mean if start is None else start).copy(), None, False
    free = kept = p
    for turn in range(ITERATIONS):
        J = np.stack([(predict(p + h) - predict(p - h)) / (2.0 * h.sum()) for h in np.diag(step)], axis=1)
        z = measured - predict(p) + J @ (p - mean)
        found = min((_marginal(w, J, z, sigma) for w in tried), key=lambda one: one[0])
        if turn == NOISE_TURNS:  # two noises of nearly one likelihood would be chosen in turn for ever
            tried = [w for w in tried if (w.memory, w.white) == found[3][1:]]
        free = mean + found[1]
        kept = free if low is None else bounded(free, found[2], low)
        new = kept if low is None or not beyond_bounds(free, low, found[2]) else np.maximum(free, low)
        converged = bool(np.all(np.abs(new - p) <= CONVERGED * np.sqrt(np.diag(found[2]))))
        p = new
        if converged:
            break
    assert found is not None
    beyond = {} if low is None else beyond_bounds(free, low, found[2])
    moved = kept - free if beyond else np.zeros(len(p))
    return ColouredPosterior(
        values=p,
        covariance=found[2] + np.outer(moved, moved),
        noise=found[3],
        converged=converged,
        evidence=-found[0],
        beyond=beyond,
        free=free,
    )


def bounded(free: Array, covariance: Array, low: Array) -> Array:
    """The most likely p of at least `low` where p ~ N(free, covariance): numbers at a bound move what is correlated with them."""
    if not (free < low).any():
        return free
    sigma, own = np.sqrt(np.diag(covariance)), np.flatnonzero(np.isfinite(low))
    H = np.asarray(np.linalg.inv(covariance / np.outer(sigma, sigma)), dtype=np.float64)
    kept, held = inequality_step(H, free / sigma, np.eye(len(free))[own], -(low / sigma)[own])
    p = kept * sigma
    p[own[held]] = low[own[held]]
    return np.maximum(p, low)


def beyond_bounds(free: Array, low: Array, covariance: Array) -> dict[int, tuple[float, float]]:
    """Numbers that data put farther beyond their bound than FALSE_ALARM_RATE of right ones are: what they would be, and its deviation."""
    sigma, limit = np.sqrt(np.diag(covariance)), float(ndtri(1.0 - FALSE_ALARM_RATE))
    return {int(k): (float(free[k]), float(sigma[k])) for k in np.flatnonzero(low - free > limit * sigma)}


def most_likely(tried: Sequence[ColouredPosterior]) -> tuple[int, Array, ColouredPosterior]:
    """The number of the model with the largest marginal likelihood among equally likely ones, the shares of all, and its estimate.

    How far the others' estimates lie from its own, by their shares, is part of its covariance.
    """
    evidence = np.array([one.evidence for one in tried])
    best = int(np.argmax(evidence))
    share = np.exp(evidence - evidence[best])
    share /= share.sum()
    apart = np.stack([one.values - tried[best].values for one in tried])
    wide = np.einsum("m,mij->ij", share, [one.covariance for one in tried]) + (share[:, None] * apart).T @ apart
    return best, share, replace(tried[best], covariance=wide)


def _marginal(w: Whitening, J: Array, z: Array, sigma: Array) -> tuple[float, Array, Array, tuple[float, float, float]]:
    """Minus the log marginal likelihood, the deviation of p from its prior mean, its covariance, and the noise."""
    both = w(np.column_stack([J, z]))
    X, y = np.ascontiguousarray(both[:, :-1]), np.ascontiguousarray(both[:, -1])
    n, prior, scale = len(y), np.diag(1.0 / sigma**2), np.outer(sigma, sigma)
    gram, cross, s2 = X.T @ X, X.T @ y, float(y @ y) / len(y)
    for _ in range(SCALE_STEPS):
        S = scale * posterior_covariance(scale * gram / s2)
        b = S @ cross / s2
        r = y - X @ b
        s2 = (float(r @ r) + float(np.trace(S @ gram))) / n
    S = scale * posterior_covariance(scale * gram / s2)
    b = S @ cross / s2
    r = y - X @ b
    fit = n * np.log(s2) + w.log_determinant + float(r @ r) / s2
    shrink = float(b @ prior @ b) - np.linalg.slogdet(S)[1]
    return 0.5 * (fit + shrink), b, S, (float(np.sqrt(s2)), w.memory, w.white)


def whitenings(times: Sequence[Array]) -> list[Whitening]:
    """The noises of samples at the `times` of each log, in order."""
    blocks = [t[k : k + LARGEST_BLOCK] for t in times for k in range(0, len(t), LARGEST_BLOCK)]
    out = []
    for memory in MEMORIES_S:
        for white in WHITE_SHARES:
            if white == 1.0 and memory != MEMORIES_S[0]:
                continue  # white noise has no memory
            factors = []
            for t in blocks:
                C = (1.0 - white) * np.exp(-np.abs(t[:, None] - t) / memory) + white * np.eye(len(t))
                factors.append(np.asfortranarray(np.linalg.cholesky(C)))  # as LAPACK reads it
            total = 2.0 * sum(float(np.log(np.diag(L)).sum()) for L in factors)
            out.append(Whitening(memory, white, tuple(factors), total))
    return out


def with_measurement(found: ColouredPosterior, k: int, mean: float, sigma: float) -> ColouredPosterior:
    """An estimate with what others say of its number k, as one more measurement of it; without bounds, which its deviations are of."""
    C, free = found.covariance, found.values if found.free is None else found.free
    gain = C[:, k] / (C[k, k] + sigma**2)
    values = free + gain * (mean - free[k])
    return replace(found, values=values, covariance=C - np.outer(gain, C[k]), free=values)


def pooled(values: Array, sigmas: Array) -> tuple[float, float, float]:
    """The mean of independent estimates of one number, its deviation, and the probability that they are so far apart by chance.

    Where that is below FALSE_ALARM_RATE, the deviation is wider by what they are farther apart (R. T. Birge, 1932, Phys. Rev. 40).
    """
    w = 1.0 / sigmas**2
    mean, freedom = float(w @ values / w.sum()), len(values) - 1
    apart = float(w @ (values - mean) ** 2)
    chance = float(chdtrc(freedom, apart)) if freedom else 1.0
    wider = (apart / freedom) ** 0.5 if chance < FALSE_ALARM_RATE else 1.0
    return mean, wider * float(w.sum() ** -0.5), chance
