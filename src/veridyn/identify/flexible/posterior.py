"""Estimates with priors under autocorrelated residuals: Gauss-Newton on y = f(p) + e, p ~ N(m, S), e first-order noise beside white noise.

The covariance of e between samples Δt apart is s² ((1 − w) exp(−|Δt|/τ) + w δ). τ and w are those of the largest marginal likelihood on a
grid, in which the parameters are integrated out by their linearisation, and s² follows from the residuals (a step of expectation
maximisation). So standard deviations are those of coloured residuals, and a slow error of an encoder costs the evidence that it looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import get_lapack_funcs

from veridyn.arrays import Array
from veridyn.identify.statistics.agreement import posterior_covariance

# without the checks of SciPy's own, which take longer than the solution
(SOLVE_TRIANGULAR,) = get_lapack_funcs(("trtrs",))
MEMORIES_S = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # τ that are tried
WHITE_SHARES = (0.03, 0.3, 1.0)  # w that are tried
LARGEST_BLOCK = 1200  # samples whose correlations are held at once; those between blocks are left out
ITERATIONS = 30
CONVERGED = 1e-4  # of a standard deviation: a smaller step ends the iteration
SCALE_STEPS = 8  # of expectation maximisation
NOISE_TURNS = 5  # iterations after which the noise stays as it was chosen


@dataclass(frozen=True, eq=False)
class ColouredPosterior:
    """Values and covariance of the parameters, the noise: s, τ (s) and w, and the log of the marginal likelihood."""

    values: Array
    covariance: Array
    noise: tuple[float, float, float]
    converged: bool
    evidence: float

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
) -> ColouredPosterior:
    """The estimate of p from `measured` = predict(p) + e, with the prior N(mean, sigma²); `noises`: those that are tried.

    `step`: of the central differences by which predict is linearised. `start`: where to begin, the prior's mean by default.
    """
    tried = noises
    p, found, converged = (mean if start is None else start).copy(), None, False
    for turn in range(ITERATIONS):
        J = np.stack([(predict(p + h) - predict(p - h)) / (2.0 * h.sum()) for h in np.diag(step)], axis=1)
        z = measured - predict(p) + J @ (p - mean)
        found = min((_marginal(w, J, z, sigma) for w in tried), key=lambda one: one[0])
        if turn == NOISE_TURNS:  # two noises of nearly one likelihood would be chosen in turn for ever
            tried = [w for w in tried if (w.memory, w.white) == found[3][1:]]
        new = mean + found[1]
        converged = bool(np.all(np.abs(new - p) <= CONVERGED * np.sqrt(np.diag(found[2]))))
        p = new
        if converged:
            break
    assert found is not None
    return ColouredPosterior(p, found[2], found[3], converged, -found[0])


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
