"""The covariance of least-squares estimates under stationary noise of any spectrum, from sums over bands of frequency.

Scores h = Σ_j Q_jᵀ e_j of orthonormal columns Q_j (N, p), rows j, with independent noises e_j of spectra f_j, have the covariance

    S = Σ_j Q_jᵀ Σ_j Q_j = Σ_j Σ_b f_j(b) I_j(b),        I_j(b) = Σ_{ω in b} Re q_j(ω) q_j(ω)ᴴ,   q_j the Fourier transform of Q_j

so that one pass over the samples, which sums the p × p matrices I_j(b) and the power of the residuals in each band, is all that is needed.
Residuals have lost what the columns explain. With G = S, and n_b the degrees of freedom of a band,

    E P_j(b) = n_b f_j(b) − 2 f_j(b) tr I_j(b) + tr(I_j(b) G),

and what is lost is put back: f follows from P, S from f, and so on until both agree. Where the columns have their power, f is an
autoregression (order by Akaike's criterion for few samples: Hurvich and Tsai, 1989), because there the columns take most of the residuals
away and few degrees of freedom are left; above, where nearly nothing is lost, it is the mean power of each band.

f is an estimate. The relative variance s² of the variance along an axis of S follows from the information that the degrees of freedom
carry about the coefficients of f (Whittle, 1953), and it is stated (1 + s²) times as large. No direction of S is smaller than under white
noise of the same power.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len, rfft
from scipy.linalg import get_lapack_funcs, solve_triangular

Array = NDArray[np.float64]
BANDS_PER_OCTAVE = 8  # of the columns' power
CELLS_PER_BAND = 4  # of the residuals' power
PADDING = 1.5  # length of the transform over that of the samples: no end of a log is correlated with its beginning
COLUMNS_SHARE = 0.99  # of the columns' power that lies where the spectrum is an autoregression
ROUNDS = 12  # of putting back what the fit took; each gains a factor
POINTS = 4  # of a cell, at which f is computed
FEWEST_SAMPLES = 8.0  # where the columns have their power, for any coefficient
CONVERGED = 1e-2  # relative change of the mean variance
TINY = 1e-300  # power of no noise at all
(CHOLESKY,) = get_lapack_funcs(("potrf",))  # scipy.linalg.cholesky does not return the part before a failure


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of frequency from 0 to π rad a sample, `edges` (bands + 1,), each cut into cells: `cells` (cells + 1,) are their edges."""

    edges: Array
    cells: Array

    @classmethod
    @lru_cache(maxsize=16)
    def for_samples(cls, longest: int) -> Bands:
        """Single frequencies of a transform of `longest` samples at the low end, parts of an octave above."""
        step, ratio = 2.0 * np.pi / (PADDING * longest), 2.0 ** (1.0 / BANDS_PER_OCTAVE)
        edges = [0.0, 0.5 * step]
        while edges[-1] < np.pi:
            edges.append(max(edges[-1] + step, edges[-1] * ratio))
        edges[-1] = np.pi
        cells = [0.0]
        for low, high in pairwise(edges):
            parts = int(np.clip((high - low) / step, 1, CELLS_PER_BAND))
            cells += list(np.linspace(low, high, parts + 1)[1:])
        return cls(np.array(edges), np.array(cells))

    @property
    def band_of_cell(self) -> NDArray[np.intp]:
        middle = 0.5 * (self.cells[1:] + self.cells[:-1])
        return np.searchsorted(self.edges, middle) - 1


@dataclass(frozen=True, eq=False)
class BandSums:
    """Sums over stretches of samples: `power` (rows, cells) of the residuals, `gram` (rows, bands, p, p) of the columns.

    `freedom` (rows, cells): degrees of freedom of the residuals' power before the fit.
    """

    power: Array
    freedom: Array
    gram: Array

    @classmethod
    def zero(cls, rows: int, bands: Bands, p: int) -> BandSums:
        cells = len(bands.cells) - 1
        return cls(np.zeros((rows, cells)), np.zeros((rows, cells)), np.zeros((rows, len(bands.edges) - 1, p, p)))

    def __add__(self, o: BandSums) -> BandSums:
        return BandSums(self.power + o.power, self.freedom + o.freedom, self.gram + o.gram)


def band_sums(bands: Bands, columns: Array, residuals: Array, used: NDArray[np.bool_]) -> BandSums:
    """The sums of one stretch: columns (rows, p, N), residuals (rows, N), both zero where a sample is not `used` (rows, N)."""
    rows, p, N = columns.shape
    length = cast(int, next_fast_len(int(PADDING * N) + 1, real=True))
    cell, starts, weight = _layout(bands, length)
    once = [k for k in (0, length // 2) if weight[k] == 1.0]  # frequencies that have no conjugate
    total = BandSums.zero(rows, bands, p)
    free = np.bincount(cell, weight / length, len(bands.cells) - 1)
    for j in range(rows):
        r = _transform(residuals[j], length)
        total.power[j] = np.bincount(cell, (r.real**2 + r.imag**2) * weight / length, len(bands.cells) - 1)
        total.freedom[j] = used[j].sum() * free
        q = _transform(columns[j], length)
        q[:, once] *= np.sqrt(0.5)
        parts = q.view(np.float64)  # real and imaginary parts side by side
        for b in np.flatnonzero(np.diff(starts)):
            z = parts[:, 2 * starts[b] : 2 * starts[b + 1]]
            np.matmul(z, z.T, out=total.gram[j, b])
    total.gram[...] *= 2.0 / length
    return total


def _transform(x: Array, length: int) -> NDArray[np.complex128]:
    """Fourier transforms along the last axis, padded with zeros to a `length`."""
    return cast("NDArray[np.complex128]", rfft(x, length))


@lru_cache(maxsize=16)
def _layout(bands: Bands, length: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Of the frequencies of a transform: the cell of each, the first of each band, and how often each counts."""
    omega = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    weight = np.full(len(omega), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    cell = np.clip(np.searchsorted(bands.cells, omega, side="right") - 1, 0, len(bands.cells) - 2)
    band = np.searchsorted(bands.edges, omega, side="right") - 1
    starts = np.searchsorted(band, np.arange(len(bands.edges)))
    starts[-1] = len(omega)
    return cell, starts, weight


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseSpectrum:
    """What the residuals show of their noise: `spectra` f (rows, bands) and the covariance `scores` S (p, p).

    `white`: the mean of f, which is S over the unit matrix where noise is white. `sensitivity`: for each row ∂ ln f/∂θ (bands, k) and the
    covariance (k, k) of the coefficients θ. `gain`: logarithm of the likelihood over that of white noise in every row.
    """

    spectra: Array
    scores: Array
    white: float
    gram: Array
    sensitivity: tuple[tuple[Array, Array], ...]
    gain: float = 0.0
    coefficients: int = 0
    equations: float = 0.0

    @property
    def is_white(self) -> bool:
        """Whether the spectra are not worth their coefficients by Schwarz's criterion."""
        return self.gain <= 0.5 * self.coefficients * np.log(max(self.equations, 2.0))

    @property
    def memory(self) -> float:
        """Samples that are worth one of white noise, where the spectrum is largest; infinite where there is no noise at all."""
        if self.white <= 10.0 * TINY:
            return np.inf
        return 1.0 if self.is_white else float(self.spectra.max()) / self.white

    @property
    def independent(self) -> float:
        """How many independent equations those with this noise are worth."""
        return self.equations / self.memory

    @property
    def stated_scores(self) -> Array:
        """S as it is stated: that of white noise where the spectra show nothing else, and nowhere less."""
        if self.is_white:
            return self.white * np.eye(len(self.scores))
        values, V = np.linalg.eigh(self.scores)
        return np.asarray((V * np.maximum(values, self.white)) @ V.T, dtype=np.float64)

    def covariance(self, half: Array) -> tuple[Array, Array]:
        """C = H S Hᵀ of parameters x = H h, each direction of S widened by what is not known of its spectra; and s² of each parameter."""
        values, V = np.linalg.eigh(self.stated_scores)
        H = half @ V
        C = (H * values) @ H.T
        wide = (H * (values * (1.0 + self.uncertainty(V.T)))) @ H.T
        return np.asarray(wide, dtype=np.float64), np.diag(wide) / np.maximum(np.diag(C), TINY) - 1.0

    def uncertainty(self, directions: Array) -> Array:
        """s², the relative variance of the variance of D h, of each row of D."""
        squares, variance = np.zeros(len(directions)), np.zeros(len(directions))
        for f, gram, (slopes, uncertainty) in zip(self.spectra, self.gram, self.sensitivity, strict=True):
            weights = np.column_stack([f, f[:, None] * slopes])  # of the bands
            combined = (weights.T @ gram.reshape(len(f), -1)).reshape(-1, *gram.shape[1:])
            share = ((directions @ combined) * directions).sum(axis=2)
            gradient = share[1:].T
            squares += ((gradient @ uncertainty) * gradient).sum(axis=1)
            variance += share[0]
        return squares / np.maximum(variance**2, TINY)


def noise_spectrum(bands: Bands, sums: BandSums, seen: float = 1.0) -> NoiseSpectrum:
    """The spectra of all rows; `seen`: the share of the equations that the sums are of."""
    where = bands.band_of_cell
    rows, count, p, _ = sums.gram.shape
    flat = sums.gram.reshape(rows * count, p * p)
    t = np.trace(sums.gram, axis1=2, axis2=3)
    n = np.array([np.bincount(where, own, count) for own in sums.freedom], dtype=np.float64)
    shape = _Shape(bands, _autoregressive_limit(bands, t), float(sums.freedom.sum()) / rows)

    def agreed(lost: Array) -> tuple[list[_Model], Array, Array, Array]:
        """Models and densities of noise of which so much was lost, the S of these, and what is lost by that."""
        put_back = np.divide(lost, n, out=np.zeros_like(n), where=n > 0.0)[:, where] * sums.freedom
        models = shape.fitted(sums.power + put_back, sums.freedom, t)
        f = np.array([m.density for m in models])
        S = (f.ravel() @ flat).reshape(p, p) / seen
        return models, f, S, 2.0 * f * t - (flat @ S.ravel()).reshape(rows, count)

    models, f, S, lost = agreed(np.zeros_like(n))
    for _ in range(ROUNDS - 1):
        last = float(np.trace(S))
        models, f, S, lost = agreed(lost)
        if abs(float(np.trace(S)) - last) <= CONVERGED * last:
            break
    own = (f * n).sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    gain = 0.5 * float((n * (np.log(np.maximum(own, TINY)) - np.log(f))).sum())
    return NoiseSpectrum(
        spectra=f,
        scores=S,
        white=float((f * n).sum() / n.sum()),
        gram=sums.gram / seen,
        sensitivity=tuple(shape.sensitivity(m, free) for m, free in zip(models, sums.freedom, strict=True)),
        gain=gain,
        coefficients=sum(m.order for m in models) + rows * (count - shape.inside),
        equations=float(n.sum()),
    )


def _autoregressive_limit(bands: Bands, power: Array) -> int:
    """The number of bands below which the columns, of `power` (rows, bands), have nearly all of it."""
    total = np.cumsum(power.sum(axis=0))
    return min(int(np.searchsorted(total, COLUMNS_SHARE * total[-1])) + 1, len(bands.edges) - 1)


@dataclass(frozen=True, eq=False)
class _Model:
    """`density` f of all bands; coefficients 1, a_1 … a_k and the transfer function A at the points of the lower ones."""

    density: Array
    coefficients: Array
    transfer: NDArray[np.complex128]

    @property
    def order(self) -> int:
        return len(self.coefficients) - 1


class _Shape:
    """How spectra are described: by an autoregression in the first `inside` bands, in which time counts in half periods of the last of
    their frequencies, and by the mean power of each band above.

    f may be steep where cells are wide, so that each cell has several points.
    """

    def __init__(self, bands: Bands, inside: int, samples: float) -> None:
        where = bands.band_of_cell
        self.inside, self.count, self.where = inside, len(bands.edges) - 1, where
        self.cells = int(np.searchsorted(where, inside))
        low, high = bands.cells[: self.cells], bands.cells[1 : self.cells + 1]
        stretch = np.pi / high[-1]
        n = samples / stretch
        most = int(min(10.0 * np.log10(max(n, 1.0)), n / 4.0)) if n >= FEWEST_SAMPLES else 0
        lags = stretch * np.arange(1, most + 1)[:, None]
        self.wave = (np.sin(high * lags) - np.sin(low * lags)) / (lags * (high - low))
        points = (low[:, None] + (high - low)[:, None] * (np.arange(POINTS) + 0.5) / POINTS).ravel()
        self.powers = np.exp(-1j * stretch * np.arange(most + 1)[:, None] * points)
        self.widths = np.repeat((high - low) / POINTS, POINTS)
        self.starts = np.searchsorted(np.repeat(where[: self.cells], POINTS), np.arange(inside))
        self.band_widths = np.add.reduceat(self.widths, self.starts)

    def fitted(self, power: Array, freedom: Array, taken: Array) -> list[_Model]:
        """The spectra of all rows from the power of their noise and the degrees of freedom of that (rows, cells).

        `taken` (rows, bands): degrees of freedom that the fit took.
        """
        below, n = power[:, : self.cells], freedom[:, : self.cells].sum(axis=1)
        left = n - taken[:, : self.inside].sum(axis=1)
        R = np.column_stack([below.sum(axis=1), below @ self.wave.T]) / n[:, None]
        found = []
        for (a, news), mean, P, m in zip(autoregressions(R, left), R[:, 0], power, freedom, strict=True):
            A = a @ self.powers[: len(a)]
            f = np.empty(self.count)
            share = self.widths * news / (A.real**2 + A.imag**2)
            f[: self.inside] = np.add.reduceat(share, self.starts) / self.band_widths
            P, m = (np.bincount(self.where, x, self.count)[self.inside :] for x in (P, m))
            f[self.inside :] = np.divide(P, m, out=np.full(len(P), mean), where=m > 0.0)
            found.append(_Model(np.maximum(f, TINY), a, A))
        return found

    def sensitivity(self, model: _Model, freedom: Array) -> tuple[Array, Array]:
        """∂ ln f/∂θ (bands, k + 1) of θ = (ln σ², a_1 … a_k), and the covariance of θ by Whittle's information."""
        order = model.order
        slopes = np.concatenate(
            [np.ones((1, len(self.widths))), -2.0 * (self.powers[1 : order + 1] / model.transfer).real]
        )
        share = self.widths / (model.transfer.real**2 + model.transfer.imag**2)
        by_band = np.zeros((order + 1, self.count))
        by_band[:, : self.inside] = np.add.reduceat(share * slopes, self.starts, axis=1) / np.add.reduceat(
            share, self.starts
        )
        information = 0.5 * (slopes * np.repeat(freedom[: self.cells] / POINTS, POINTS)) @ slopes.T
        return by_band.T, np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64)


def autoregressions(R: Array, samples: Array) -> list[tuple[Array, float]]:
    """Of each row of autocovariances R_0 … R_L (rows, L + 1) the coefficients (1, a_1 … a_k) and the variance of the news.

    With the Toeplitz matrix T = L Lᵀ of a row, the squares of L's diagonal are the variances of the news of every order. Orders end where
    R is no longer that of a stationary process; k has the least AICc for so many samples.
    """
    lags = np.arange(R.shape[1])
    return [_autoregression(own, float(n), np.abs(lags[:, None] - lags)) for own, n in zip(R, samples, strict=True)]


def _autoregression(R: Array, samples: float, lags: NDArray[np.intp]) -> tuple[Array, float]:
    if R[0] <= TINY:
        return np.ones(1), TINY
    T = R[lags]
    L, failed = CHOLESKY(T, lower=1, clean=0)
    if failed:
        L, _ = CHOLESKY(T[: failed - 1, : failed - 1], lower=1, clean=0)
    news = np.maximum(np.diagonal(L) ** 2, TINY)
    orders = np.arange(len(news))
    spare = samples - orders - 2.0  # the mean and the variance are not free either
    cost = np.where(spare > 0.0, samples * np.log(news) + 2.0 * orders * samples / np.maximum(spare, 1e-9), np.inf)
    k = int(np.argmin(cost)) if spare[0] > 0.0 else 0
    last = np.zeros(k + 1)
    last[k] = L[k, k]
    a = solve_triangular(L[: k + 1, : k + 1], last, lower=True, trans=1, check_finite=False)
    return np.asarray(a[::-1], dtype=np.float64), float(news[k])
