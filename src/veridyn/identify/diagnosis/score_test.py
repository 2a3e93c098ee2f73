"""Score tests of columns appended to a regressor: is there something in the residual that these columns explain?

W φ + c s = y + noise, weighted. With s_⊥ = s − W W⁺ s and the residual r = y − W W⁺ y, the score is g = Σ_t s_⊥tᵀ r_t, summed over the
rows of a sample t, and

    ĉ = g/‖s_⊥‖²,    z = g/√V,    V = long-run variance of the terms of g  (:mod:`veridyn.identify.estimators.coloured`)

z is standard normal where c = 0, whether neighbouring samples are correlated or not; few windows of that correlation make it Student's t.
V is no less than that of uncorrelated samples, which all of them together show, and z is normal where it is that. Columns that W explains
whole have s_⊥ = 0: no test of these data can see them, whatever their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri, stdtr  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import ROUNDING
from veridyn.identify.estimators.coloured import window_of
from veridyn.inference.lag_window import MIN_SHARE_OF_BARTLETT, andrews_each

# Eigenvalues of AᵀA from which products once leave errors below ROUNDING; below ROUNDING itself too many digits are lost
ONE_STEP = float(np.finfo(float).eps) / ROUNDING
LIKELY = 4.0  # deviations from which a column is taken out of the noise (chosen)
NOISE_KNOWN_TO = 0.2  # of scores that noise makes: to a fifth one log states a bias (:mod:`veridyn.identify.diagnosis.position_noise`)
# Of ‖s‖: what is left beside the regressor is no more than errors of the columns themselves (chosen)
INSEPARABLE = 1e-3
ROTOR = "rotor inertia"
MACHINE = ""  # in place of a coordinate, of what is said of the machine as a whole


@dataclass(frozen=True, eq=False)
class Scores:
    """`sizes` ĉ (k,) of the columns with deviations `sigma`, z scores, and tail probabilities `chance` (two-sided, of one test alone).

    Inseparable columns have a size and score of zero, an infinite deviation and a chance of one.
    """

    sizes: Array
    sigma: Array
    z: Array
    chance: Array


@dataclass(frozen=True, eq=False)
class Projected:
    """Equations of N samples with R rows: `columns` (N, R, p) of the weighted regressor A; `residual` (N, R).

    `back` (p, rank): A back = Z has orthonormal columns, parameters per unit of each; `share`: N R over the number of equations, the rest
    being zeros. `appended` (N, R, k): orthonormal columns beside A that were put into the regressor. Z itself is not made: what it asks
    for few columns, Z Zᵀ v = A back backᵀ Aᵀ v, is less than making it.
    """

    columns: Array
    residual: Array
    back: Array
    share: float
    appended: Array

    @classmethod
    def of(cls, W: Array, y: Array) -> Projected:
        """From the weighted regressor W (N, R, p) and measurement y (N, R), zero where a row leaves a sample out."""
        N, R, p = W.shape
        A = W.reshape(-1, p)
        G = A.T @ A
        norms = np.sqrt(np.diag(G))
        norms[norms == 0.0] = 1.0
        back = _orthonormalising(A, G, norms)
        flat = y.ravel()
        for _ in range(2):  # once more for the digits that an ill-conditioned regressor costs
            flat = flat - A @ (back @ (back.T @ (A.T @ flat)))
        share = N * R / max(np.count_nonzero(A.any(axis=1)), 1)
        return cls(W, flat.reshape(N, R), back, share, np.empty((N, R, 0)))

    @property
    def basis(self) -> Array:
        """Z (N, R, rank)."""
        return np.asarray(self.columns @ self.back, dtype=np.float64)

    def _inside(self, flat: Array) -> Array:
        """Zᵀ s (rank, k) of columns (N R, k)."""
        return np.asarray(self.back.T @ (self.columns.reshape(len(flat), -1).T @ flat), dtype=np.float64)

    def beside(self, S: Array) -> Array:
        """s_⊥ of columns S (N, R, k), zero where nothing is left."""
        flat = S.reshape(self.residual.size, S.shape[2])
        left = flat - self.columns.reshape(len(flat), -1) @ (self.back @ self._inside(flat))
        return self._left(left, flat, self.appended, squared(flat)).reshape(S.shape)

    def further(self, rest: Array, before: Projected, whole: Array) -> Array:
        """The same of columns whose rest `before` some were appended is known already; `whole` (k,): ‖s‖² of them."""
        flat = rest.reshape(self.residual.size, rest.shape[2])
        more = self.appended[:, :, before.appended.shape[2] :]
        return self._left(flat.copy(), flat, more, whole).reshape(rest.shape)

    def _left(self, left: Array, flat: Array, appended: Array, whole: Array) -> Array:
        """Columns `left` (N R, k) of some (N R, k) without what appended ones explain of these, zero where next to nothing is left."""
        if appended.shape[2]:
            more = appended.reshape(len(flat), -1)
            left -= more @ (more.T @ flat)
        left[:, squared(left) <= INSEPARABLE**2 * whole] = 0.0
        return left

    def tested(self, S: Array) -> Scores:
        """Each column of S (N, R, k) by itself; columns that are likely to be there are taken out of the noise, lest one hide another."""
        return self.tested_beside(self.beside(S))

    def tested_beside(self, rest: Array, by_noise: Callable[[Array], Array | None] = lambda _: None) -> Scores:
        """The same of columns beside the regressor, as :meth:`beside` gives them.

        `by_noise` makes of z scores the scores (k,) that noise of the columns makes by itself, which say nothing: z and chance are those of
        what is beyond them.
        """
        squares = np.einsum("nrk,nrk->nk", rest, rest)
        norms = squares.sum(axis=0)
        seen = norms > 0.0
        safe = np.where(seen, norms, 1.0)
        g = self.residual.ravel() @ rest.reshape(-1, rest.shape[2])
        noise = self._noise(rest, g, safe)
        terms = np.einsum("nrk,nr->nk", rest, noise)
        variance, windows = _long_run(terms - terms.sum(axis=0) / safe * squares)
        # No less than white noise: where a few samples hold most of s_⊥, ĉ takes the noise of these terms away.
        white = self._white(noise) * safe
        windows = np.where(variance > white, windows, float(len(rest)))
        variance = np.maximum(variance, white)
        sizes = np.where(seen, g / safe, 0.0)
        sigma = np.where(seen, np.sqrt(variance) / safe, np.inf)
        z = np.where(seen, g / np.sqrt(variance), 0.0)
        made = by_noise(z)
        if made is not None:
            beyond = np.sign(g) * np.maximum(np.abs(g) - np.abs(made), 0.0)
            z = np.where(seen, beyond / np.sqrt(variance + (NOISE_KNOWN_TO * made) ** 2), 0.0)
        chance = 2.0 * stdtr(windows, -np.abs(z))
        return Scores(sizes, sigma, z, np.where(seen, chance, 1.0))

    def _noise(self, rest: Array, g: Array, norms: Array) -> Array:
        """The residual (N, R) without the columns whose scores g (k,) are many deviations of what all of them together leave."""
        together = self.unexplained(rest)
        white = self._white(together) * norms
        if not np.any(g**2 > LIKELY**2 * white):
            return self.residual
        variance = np.maximum(_long_run(np.einsum("nrk,nr->nk", rest, together))[0], white)
        likely = g**2 > LIKELY**2 * variance
        return self.unexplained(rest[:, :, likely]) if likely.any() else self.residual

    @property
    def white_variance(self) -> float:
        """The variance of an equation, of the residual as it is."""
        return self._white(self.residual)

    def variance_beside(self, rest: Array) -> float:
        """The variance of an equation with columns beside the regressor (N, R, k) appended, for their number."""
        equations = self.residual.size / self.share - self.back.shape[1] - self.appended.shape[2]
        return self._white(self.unexplained(rest)) * equations / max(equations - rest.shape[2], 0.5 * equations)

    def sizes_of(self, rest: Array) -> Array:
        """Least-squares sizes (k,) of columns beside the regressor, all at once; zero of those that others make up."""
        flat = rest.reshape(-1, rest.shape[2])
        G, g = flat.T @ flat, self.residual.ravel() @ flat
        norms = np.sqrt(np.diag(G))
        scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        sizes = np.linalg.lstsq(G * scale[:, None] * scale, g * scale, rcond=ROUNDING)[0] * scale
        return np.asarray(sizes, dtype=np.float64)

    def deviation_of_first(self, rest: Array) -> float:
        """Of the first of :meth:`sizes_of`, for white noise with these columns in the regressor."""
        flat = rest.reshape(-1, rest.shape[2])
        norms = np.linalg.norm(flat, axis=0)
        there = norms > 0.0
        if not there[0]:
            return np.inf
        unit = flat[:, there] / norms[there]
        inverse = np.linalg.pinv(unit.T @ unit, rcond=ROUNDING, hermitian=True)
        return float(np.sqrt(inverse[0, 0] * self.variance_beside(rest)) / norms[0])

    def gain_together(self, rest: Array) -> float:
        """By how much columns beside the regressor lessen the sum of squared residuals, all at once: gᵀ ĉ of least squares."""
        g = self.residual.ravel() @ rest.reshape(-1, rest.shape[2])
        return float(g @ self.sizes_of(rest))

    def gains_together(self, rest: Array, groups: NDArray[np.intp]) -> Array:
        """The same (m,) of several `groups` (m, k) of columns beside the regressor (N, R, K)."""
        columns = rest.reshape(-1, rest.shape[2]).T[groups]  # (m, k, N R)
        G, g = columns @ columns.transpose(0, 2, 1), columns @ self.residual.ravel()
        norms = np.sqrt(np.diagonal(G, axis1=1, axis2=2))
        scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        inverse = np.linalg.pinv(G * scale[:, :, None] * scale[:, None], rcond=ROUNDING, hermitian=True)
        return np.asarray(np.einsum("mk,mkl,ml->m", g * scale, inverse, g * scale), dtype=np.float64)

    def scores(self, rest: Array) -> Array:
        """Σ s_⊥ᵀ r of columns beside the regressor (N, R, k): their sizes have its sign."""
        return np.asarray(self.residual.ravel() @ rest.reshape(-1, rest.shape[2]), dtype=np.float64)

    def gains(self, rest: Array) -> Array:
        """By how much each column beside the regressor lessens the sum of squared residuals (k,)."""
        g, norms = self.scores(rest), np.einsum("nrk,nrk->k", rest, rest)
        return np.divide(g**2, norms, out=np.zeros_like(g), where=norms > 0.0)

    def scores_of_row(self, row: int, lines: Array, sums: Array) -> Array:
        """z scores (m,) of columns lines @ sums, (N, k) (k, m), of one row by themselves, for white noise; zero for inseparable ones."""
        inside = np.concatenate([self.back.T @ (self.columns[:, row].T @ lines), self.appended[:, row].T @ lines])
        squares, taken, g = lines.T @ lines, inside.T @ inside, self.residual[:, row] @ lines
        whole = np.einsum("km,km->m", squares @ sums, sums)
        left = whole - np.einsum("km,km->m", taken @ sums, sums)
        seen = left > INSEPARABLE**2 * whole
        return np.where(seen, g @ sums, 0.0) / np.sqrt(self._white(self.residual) * np.where(seen, left, 1.0))

    def _white(self, noise: Array) -> float:
        """The variance of an equation, from its noise (N, R)."""
        return max(float(np.mean(noise**2)) * self.share, np.finfo(float).tiny)

    def effects(self, S: Array) -> Array:
        """W⁺ s (p, k) of columns S (N, R, k): by how much one unit of each moves the parameters where it is not in the regressor."""
        return np.asarray(self.back @ self._inside(S.reshape(self.residual.size, S.shape[2])), dtype=np.float64)

    def unexplained(self, rest: Array) -> Array:
        """The residual (N, R) that is left with columns (N, R, k), as :meth:`beside` gives them, in the regressor all at once."""
        return np.asarray(self.residual - rest @ self.sizes_of(rest), dtype=np.float64)

    def with_columns(self, S: Array, rest: Array | None = None) -> Projected:
        """The same with columns S (N, R, k) in the regressor; what the others explain whole adds nothing. `rest`: s_⊥ if known."""
        rest = (self.beside(S) if rest is None else rest).reshape(self.residual.size, S.shape[2])
        least, residual = INSEPARABLE * np.linalg.norm(S.reshape(rest.shape), axis=0), self.residual.ravel()
        units: list[Array] = []
        for k, own in enumerate(rest.T.copy()):
            for unit in units:
                own -= unit * float(unit @ own)
            size = float(np.linalg.norm(own))
            if size > least[k]:
                units.append(own / size)
                residual = residual - units[-1] * float(units[-1] @ residual)
        if not units:
            return self
        more = np.stack(units, axis=1).reshape(*self.residual.shape, -1)
        appended = np.concatenate([self.appended, more], axis=2)
        return replace(self, appended=appended, residual=residual.reshape(self.residual.shape))


def squared(S: Array) -> Array:
    """‖s‖² of columns (..., k)."""
    flat = S.reshape(math.prod(S.shape[:-1]), S.shape[-1])
    return np.asarray(np.einsum("nk,nk->k", flat, flat), dtype=np.float64)


def _orthonormalising(A: Array, G: Array, norms: Array) -> Array:
    """T (p, rank) such that A T has orthonormal columns, G = AᵀA and `norms` those of its columns.

    By products where A is well conditioned, twice where that takes digits, else by its R factor. ‖L⁻¹‖² in Frobenius' norm, L Lᵀ = G with
    columns of norm one, is at least the reciprocal of the smallest eigenvalue.
    """
    try:
        T = np.linalg.inv(np.linalg.cholesky(G / norms[:, None] / norms)).T
    except np.linalg.LinAlgError:
        pass
    else:
        smallest = 1.0 / float(np.sum(T**2))
        T /= norms[:, None]
        if smallest > ONE_STEP:
            return np.asarray(T, dtype=np.float64)
        if smallest > ROUNDING:
            B = A @ T
            return np.asarray(T @ np.linalg.inv(np.linalg.cholesky(B.T @ B)).T, dtype=np.float64)
    _, s, Vt = np.linalg.svd(np.linalg.qr(A / norms, mode="r"), full_matrices=False)
    kept = s > ROUNDING * s.max(initial=0.0)
    return Vt[kept].T / s[kept] / norms[:, None]


def _long_run(terms: Array) -> tuple[Array, Array]:
    """The long-run variance of sums over each column of terms (N, k), and how many windows of its correlation the samples hold."""
    N = len(terms)
    square = np.einsum("nk,nk->k", terms, terms)
    product = np.einsum("nk,nk->k", terms[1:], terms[:-1])
    widths = np.array([window_of(int(lags)) for lags in andrews_each(square, product, N)])
    variance, windows = square.copy(), np.full(len(square), float(N))
    sums = np.vstack([np.zeros((1, terms.shape[1])), np.cumsum(terms, axis=0)])
    for W in np.unique(widths[widths > 1]):
        own = widths == W
        wide, narrow = (_bartlett(sums[:, own], w) for w in (int(W), int(W) // 2))
        variance[own] = np.maximum(2.0 * wide - narrow, MIN_SHARE_OF_BARTLETT * wide)
        windows[own] = max(2.0, N / W)
    return variance, windows


def _bartlett(sums: Array, width: int) -> Array:
    """Bartlett's estimate for each column from its running sums (N + 1, k), zero first: Σ of squared sums over all windows, by their width.

    Windows that begin before the first sample or end behind the last are cut there.
    """
    inside = sums[width:] - sums[:-width]
    first, last = sums[1:width], sums[-1] - sums[-width:-1]
    return np.asarray(((inside**2).sum(axis=0) + (first**2).sum(axis=0) + (last**2).sum(axis=0)) / width)


def of_several(chance: Array, columns: NDArray[np.intp]) -> Array:
    """Chances (k,) of z scores of combinations that were chosen among so many columns each: z² is χ² of that many degrees of freedom."""
    z = -ndtri(np.maximum(0.5 * chance, np.finfo(float).tiny))
    return np.where(columns > 1, chdtrc(columns, z**2), chance)


def limit_of(alpha: float, tests: int) -> float:
    """The tail probability below which one of so many tests is significant, `alpha` being that of any of them (Šidák)."""
    return float(-np.expm1(np.log1p(-alpha) / max(tests, 1)))


def best_power(noncentrality: float, alpha: float = 0.01) -> float:
    """How often a test that knows the shape of a damage finds it at a rate `alpha` of false alarms.

    `noncentrality`: ‖c s_⊥‖ in deviations of the noise.
    """
    limit = -float(ndtri(alpha / 2.0))
    return float(ndtr(noncentrality - limit) + ndtr(-noncentrality - limit))
