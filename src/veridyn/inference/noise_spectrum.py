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

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len, rfft

from veridyn.arrays import Array
from veridyn.inference.autoregression import NO_POWER, autoregressions, penalties

BANDS_PER_OCTAVE = 8  # of the columns' power
CELLS_PER_BAND = 4  # of the residuals' power
PADDING = 1.5  # length of the transform over that of the samples: no end of a log is correlated with its beginning
COLUMNS_SHARE = 0.99  # of the columns' power that lies where the spectrum is an autoregression
ROUNDS = 12  # of putting back what the fit took; each gains a factor
POINTS = 4  # of a cell, at which f is computed
FEWEST_SAMPLES = 8.0  # where the columns have their power, for any coefficient
CONVERGED = 1e-2  # relative change of the mean variance
BANDS_AT_ONCE = 16  # whose matrices are whole: the others are kept as triangles
FEW_SAMPLES = 4096  # up to which rows are transformed together
ROUNDING = 1e-15  # of the largest eigenvalue: below it no information is left


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
    """Sums over stretches of samples: `power` (rows, cells) of the residuals, `gram` (rows, bands, p (p + 1)/2) of the columns, the upper
    triangles of symmetric matrices.

    `freedom` (rows, cells): degrees of freedom of the residuals' power before the fit.
    """

    power: Array
    freedom: Array
    gram: Array

    @classmethod
    def zero(cls, rows: int, bands: Bands, p: int) -> BandSums:
        cells, count = len(bands.cells) - 1, len(bands.edges) - 1
        return cls(np.zeros((rows, cells)), np.zeros((rows, cells)), np.zeros((rows, count, p * (p + 1) // 2)))

    def __add__(self, o: BandSums) -> BandSums:
        return BandSums(self.power + o.power, self.freedom + o.freedom, self.gram + o.gram)


def band_sums(bands: Bands, columns: Array, residuals: Array, used: NDArray[np.bool_]) -> BandSums:
    """The sums of one stretch: columns (rows, p, N), residuals (rows, N), both zero where a sample is not `used` (rows, N)."""
    rows, p, N = columns.shape
    length = cast(int, next_fast_len(int(PADDING * N) + 1, real=True))
    layout = _layout(bands, length)
    r = cast("NDArray[np.complex128]", rfft(residuals, length))
    power = np.zeros((rows, len(bands.cells) - 1))
    power[:, layout.cells] = np.add.reduceat((r.real**2 + r.imag**2) * layout.weight, layout.cell_starts, axis=1)
    upper, _ = _triangle(p)
    gram = np.empty((rows, len(bands.edges) - 1, len(upper)))
    for own, first in _together(columns):
        q = cast("NDArray[np.complex128]", rfft(columns[own, first:], length))
        parts = q.view(np.float64)  # real and imaginary parts side by side
        parts *= layout.root_weight
        held = np.zeros((len(parts), BANDS_AT_ONCE, p, p))
        for bands_at_once, runs in layout.runs:
            for run, start, stop, size in runs:
                z = parts[:, :, start:stop].reshape(*parts.shape[:2], run.stop - run.start, size).swapaxes(1, 2)
                np.matmul(z, z.swapaxes(2, 3), out=held[:, run, first:, first:])
            whole = held.reshape(len(parts), BANDS_AT_ONCE, p * p)[:, : bands_at_once.stop - bands_at_once.start]
            gram[own, bands_at_once] = whole.take(upper, axis=2)
    return BandSums(power, used.sum(axis=1)[:, None] * layout.freedom, gram)


def _together(columns: Array) -> list[tuple[slice, int]]:
    """Rows that are transformed at once, and the first of the columns: of many samples each row by itself, without the columns of bodies
    before its own, which are zero; of few, where calls take longer than arithmetic, all rows."""
    rows, p, N = columns.shape
    if N <= FEW_SAMPLES:
        return [(slice(0, rows), 0)]
    return [(slice(j, j + 1), int(np.argmax(x.any(axis=1))) if p else 0) for j, x in enumerate(columns)]


@dataclass(frozen=True, eq=False)
class _Layout:
    """Of the frequencies of a transform: how often each counts over its length, and the roots of that, twice each; the `cells` that hold
    any, the first of each, and the degrees of freedom of a sample in every cell; and of bands that are dealt with at once the `runs` of as
    many frequencies each: (bands among these, first and last number, numbers of a band), where a frequency is two numbers."""

    weight: Array
    root_weight: Array
    cells: NDArray[np.intp]
    cell_starts: NDArray[np.intp]
    freedom: Array
    runs: tuple[tuple[slice, tuple[tuple[slice, int, int, int], ...]], ...]


@lru_cache(maxsize=16)
def _layout(bands: Bands, length: int) -> _Layout:
    omega = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    weight = np.full(len(omega), 2.0)
    weight[0] = 1.0
    if length % 2 == 0:
        weight[-1] = 1.0
    cell = np.clip(np.searchsorted(bands.cells, omega, side="right") - 1, 0, len(bands.cells) - 2)
    cells, cell_starts = np.unique(cell, return_index=True)
    band = np.searchsorted(bands.edges, omega, side="right") - 1
    starts = np.searchsorted(band, np.arange(len(bands.edges)))
    starts[-1] = len(omega)
    runs = []
    for low in range(0, len(starts) - 1, BANDS_AT_ONCE):
        own = starts[low : low + BANDS_AT_ONCE + 1]
        size = np.diff(own)
        change = [0, *(np.flatnonzero(np.diff(size)) + 1).tolist(), len(size)]
        each = [(slice(a, b), 2 * int(own[a]), 2 * int(own[b]), 2 * int(size[a])) for a, b in pairwise(change)]
        runs.append((slice(low, low + len(size)), tuple(each)))
    return _Layout(
        weight=weight / length,
        root_weight=np.repeat(np.sqrt(weight / length), 2),
        cells=cells,
        cell_starts=cell_starts,
        freedom=np.bincount(cell, weight / length, len(bands.cells) - 1).astype(np.float64),
        runs=tuple(runs),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseSpectrum:
    """What the residuals show of their noise: `spectra` f (rows, bands) and the covariance `scores` S (p, p).

    `white`: the mean of f, which is S over the unit matrix where noise is white. `sensitivity`: for each row ∂ ln f/∂θ (bands, k) and the
    covariance (k, k) of the coefficients θ. `gain`: logarithm of the likelihood over that of white noise in every row. `levels` (rows,):
    the mean of each f; `white_rows` (rows,): those whose f is not worth its coefficients, by itself or with all others, and is that mean
    for S; None where all are judged together.
    """

    spectra: Array
    scores: Array
    white: float
    gram: Array
    sensitivity: tuple[tuple[Array, Array], ...]
    gain: float = 0.0
    coefficients: int = 0
    equations: float = 0.0
    levels: Array | None = None
    white_rows: NDArray[np.bool_] | None = None

    @property
    def is_white(self) -> bool:
        """Whether no spectrum is worth its coefficients by Schwarz's criterion."""
        if self.white_rows is not None:
            return bool(self.white_rows.all())
        return self.gain <= 0.5 * self.coefficients * np.log(max(self.equations, 2.0))

    @cached_property
    def stated(self) -> Array:
        """The spectra (rows, bands) of which S is made: flat where a row is white beside others that are not."""
        if self.white_rows is None or self.levels is None:
            return self.spectra
        return np.where(self.white_rows[:, None], self.levels[:, None], self.spectra)

    @property
    def memory(self) -> float:
        """Samples that are worth one of white noise, where the spectrum is largest; infinite where there is no noise at all."""
        if self.white <= 10.0 * NO_POWER:
            return np.inf
        return 1.0 if self.is_white else float(self.stated.max()) / self.white

    @property
    def independent(self) -> float:
        """How many independent equations those with this noise are worth."""
        return self.equations / self.memory

    @property
    def stated_scores(self) -> Array:
        """S as it is stated: that of white noise where the spectra show nothing else, and nowhere less."""
        values, V = self._directions
        return np.asarray((V * values) @ V.T, dtype=np.float64)

    @cached_property
    def _directions(self) -> tuple[Array, Array]:
        """The variances of S as it is stated, and its axes: those of the spectra's S, definite where several variances are white's."""
        values, V = np.linalg.eigh(self.scores)
        return np.full(len(values), self.white) if self.is_white else np.maximum(values, self.white), V

    def covariance(self, half: Array) -> tuple[Array, Array]:
        """C = H S Hᵀ of parameters x = H h, each direction of S widened by what is not known of its spectra; and s² of each parameter."""
        values, V = self._directions
        H = half @ V
        C = (H * values) @ H.T
        wide = (H * (values * (1.0 + self.uncertainty(V.T)))) @ H.T
        return np.asarray(wide, dtype=np.float64), np.diag(wide) / np.maximum(np.diag(C), NO_POWER) - 1.0

    def uncertainty(self, directions: Array) -> Array:
        """s², the relative variance of the variance of D h, of each row of D."""
        squares, variance = np.zeros(len(directions)), np.zeros(len(directions))
        flat = np.zeros(len(self.gram), dtype=bool) if self.white_rows is None else self.white_rows
        rows = zip(self.stated, self.gram, self.sensitivity, flat, strict=True)
        for f, gram, (slopes, uncertainty), white in rows:
            if white:  # whose level so many equations state
                variance += ((directions @ _whole(f @ gram, directions.shape[1])) * directions).sum(axis=1)
                continue
            weights = np.column_stack([f, f[:, None] * slopes])  # of the bands
            combined = _whole(weights.T @ gram, directions.shape[1])
            share = ((directions @ combined) * directions).sum(axis=2)
            gradient = share[1:].T
            squares += ((gradient @ uncertainty) * gradient).sum(axis=1)
            variance += share[0]
        return squares / np.maximum(variance**2, NO_POWER)


def noise_spectrum(bands: Bands, sums: BandSums, seen: float = 1.0) -> NoiseSpectrum:
    """The spectra of all rows; `seen`: the share of the equations that the sums are of."""
    rows, count, numbers = sums.gram.shape
    p = math.isqrt(2 * numbers)
    flat = sums.gram.reshape(rows * count, numbers)
    diagonal, often = _triangle(p)[0] % (p + 1) == 0, _triangle(p)[1] / seen
    t = (flat @ diagonal).reshape(rows, count)
    shape = _shape(bands, _autoregressive_limit(bands, t), float(sums.freedom.sum()) / rows)
    n = np.add.reduceat(sums.freedom, shape.starts, axis=1)
    noise = _Noise(shape, sums.freedom, n, t)
    model, f = noise.fitted(sums.power)
    total = float((f * t).sum())  # the trace of S
    for _ in range(ROUNDS - 1):
        lost = 2.0 * f * t - (flat @ (often * (f.ravel() @ flat))).reshape(rows, count)
        model, f = noise.fitted(sums.power + noise.spread(lost))
        last, total = total, float((f * t).sum())
        if abs(total - last) <= CONVERGED * last:
            break
    levels = (f * n).sum(axis=1) / n.sum(axis=1)
    gains = 0.5 * (n * (np.log(np.maximum(levels, NO_POWER))[:, None] - np.log(_one_above(f, n, shape.inside)))).sum(
        axis=1
    )
    orders = np.array([len(a) - 1 for a in model.coefficients]) + int(shape.inside < count)
    white_rows = gains <= 0.5 * orders * np.log(np.maximum(n.sum(axis=1), 2.0))
    if gains.sum() > 0.5 * orders.sum() * np.log(max(float(n.sum()), 2.0)):
        white_rows[:] = False  # together they show what each by itself does not
    stated = np.where(white_rows[:, None], levels[:, None], f)
    return NoiseSpectrum(
        spectra=f,
        scores=_whole(stated.ravel() @ flat, p) / seen,
        white=float((f * n).sum() / n.sum()),
        gram=sums.gram if seen == 1.0 else sums.gram / seen,
        sensitivity=noise.sensitivity(model),
        gain=0.5 * float((n * (np.log(np.maximum(levels, NO_POWER))[:, None] - np.log(f))).sum()),
        coefficients=model.order + rows * (count - shape.inside),
        equations=float(n.sum()),
        levels=levels,
        white_rows=white_rows,
    )


def _one_above(f: Array, n: Array, inside: int) -> Array:
    """Spectra f (rows, bands) with the mean power of all bands from `inside` on in each: where columns have next to none, one number says
    as much of deviations as one for each band."""
    above, count = f[:, inside:], n[:, inside:]
    if not above.shape[1]:
        return f
    total = count.sum(axis=1, keepdims=True)
    mean = np.divide((above * count).sum(axis=1, keepdims=True), total, out=np.ones_like(total), where=total > 0.0)
    return np.concatenate([f[:, :inside], np.broadcast_to(np.maximum(mean, NO_POWER), above.shape)], axis=1)


@lru_cache(maxsize=16)
def _triangle(p: int) -> tuple[NDArray[np.intp], Array]:
    """Where the upper triangle of a matrix (p, p) lies among its numbers, and how often each counts in the trace of a symmetric product."""
    i, j = np.triu_indices(p)
    return i * p + j, np.where(i == j, 1.0, 2.0)


def _whole(triangles: Array, p: int) -> Array:
    """Symmetric matrices (…, p, p) of upper triangles."""
    where = np.empty(p * p, dtype=np.intp)
    upper = _triangle(p)[0]
    where[upper] = where[upper % p * p + upper // p] = np.arange(len(upper))
    return triangles.take(where, axis=-1).reshape(*triangles.shape[:-1], p, p)


def _autoregressive_limit(bands: Bands, power: Array) -> int:
    """The number of bands below which the columns, of `power` (rows, bands), have nearly all of it."""
    total = np.cumsum(power.sum(axis=0))
    return min(int(np.searchsorted(total, COLUMNS_SHARE * total[-1])) + 1, len(bands.edges) - 1)


@dataclass(frozen=True, eq=False)
class _Model:
    """Autoregressions of all rows: coefficients 1, a_1 … a_k of each."""

    coefficients: tuple[Array, ...]

    @property
    def order(self) -> int:
        """Coefficients of all rows, beside the variances."""
        return sum(len(a) - 1 for a in self.coefficients)


class _Shape:
    """How spectra are described: by an autoregression in the first `inside` bands, in which time counts in half periods of the last of
    their frequencies, and by the mean power of each band above. Autoregressions have an order of `most` at most.

    f may be steep where cells are wide, so that each cell has several points.
    """

    def __init__(self, bands: Bands, inside: int, most: int) -> None:
        self.where = bands.band_of_cell
        self.inside, self.count, self.most = inside, len(bands.edges) - 1, most
        self.starts = np.searchsorted(self.where, np.arange(self.count))  # the first cell of each band
        self.cells = int(np.searchsorted(self.where, inside))
        edges = bands.cells[: self.cells + 1]
        width, stretch = np.diff(edges), np.pi / edges[-1]
        sines = _powers(np.exp(1j * stretch * edges), most)[1:].imag
        self.waves = np.ones((self.cells, most + 1))  # of the autocovariances, cells first
        self.waves[:, 1:] = np.diff(sines, axis=1).T / (stretch * np.arange(1, most + 1) * width[:, None])
        points = (edges[:-1, None] + width[:, None] * (np.arange(POINTS) + 0.5) / POINTS).ravel()
        self.powers = _powers(np.exp(-1j * stretch * points), most)
        self.parts = np.hstack([self.powers.real, self.powers.imag])
        self.widths = np.repeat(width / POINTS, POINTS)
        self.point_starts = POINTS * self.starts[:inside]
        self.band_widths = np.add.reduceat(self.widths, self.point_starts)


def _shape(bands: Bands, inside: int, samples: float) -> _Shape:
    """The shape for so many samples of each row."""
    n = samples * bands.edges[inside] / np.pi
    return _kept_shape(bands, inside, int(min(10.0 * np.log10(max(n, 1.0)), n / 4.0)) if n >= FEWEST_SAMPLES else 0)


_kept_shape = lru_cache(maxsize=16)(_Shape)


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noise of some rows, of this shape: degrees of `freedom` (rows, cells) and `n` (rows, bands), and those that the fit took, `taken`."""

    shape: _Shape
    freedom: Array
    n: Array
    taken: Array

    @cached_property
    def _below(self) -> Array:
        """Degrees of freedom where f is an autoregression (rows, 1)."""
        return self.n[:, : self.shape.inside].sum(axis=1, keepdims=True)

    @cached_property
    def _left(self) -> Array:
        """Those that the fit left (rows,)."""
        return np.asarray(self._below[:, 0] - self.taken[:, : self.shape.inside].sum(axis=1), dtype=np.float64)

    @cached_property
    def _penalty(self) -> Array:
        return penalties(self._left, self.shape.most)

    @cached_property
    def _above(self) -> tuple[Array, Array]:
        """One over the degrees of freedom of the bands above, 0 where there are none, and which of them have none."""
        m = self.n[:, self.shape.inside :]
        return np.divide(1.0, m, out=np.zeros_like(m), where=m > 0.0), (m <= 0.0).astype(np.float64)

    @cached_property
    def _shares(self) -> Array:
        """Of each cell, in the degrees of freedom of its band."""
        n = self.n[:, self.shape.where]
        return np.divide(self.freedom, n, out=np.zeros_like(n), where=n > 0.0)

    def spread(self, power: Array) -> Array:
        """The power of bands (rows, bands) among their cells."""
        return power[:, self.shape.where] * self._shares

    def fitted(self, power: Array) -> tuple[_Model, Array]:
        """The autoregressions of all rows, and the spectra f (rows, bands), from the power of noise (rows, cells)."""
        shape, inside = self.shape, self.shape.inside
        R = (power[:, : shape.cells] @ shape.waves) / self._below
        found, news = zip(*autoregressions(R, self._left, self._penalty), strict=True)
        a = np.zeros((len(R), max(len(own) for own in found)))
        for own, coefficients in zip(a, found, strict=True):
            own[: len(coefficients)] = coefficients
        A = a @ shape.parts[: a.shape[1]]
        squares = A * A
        share = (np.array(news)[:, None] * shape.widths) / (
            squares[:, : len(shape.widths)] + squares[:, len(shape.widths) :]
        )
        f = np.empty(self.n.shape)
        f[:, :inside] = np.add.reduceat(share, shape.point_starts, axis=1) / shape.band_widths
        if inside < shape.count:
            per, none = self._above
            f[:, inside:] = np.add.reduceat(power, shape.starts[inside:], axis=1) * per + R[:, :1] * none
        return _Model(found), np.maximum(f, NO_POWER)

    def sensitivity(self, model: _Model) -> tuple[tuple[Array, Array], ...]:
        """Of each row ∂ ln f/∂θ (bands, k + 1), θ = (ln σ², a_1 … a_k), and the covariance of θ by Whittle's information."""
        shape, found = self.shape, []
        points = np.repeat(self.freedom[:, : shape.cells] * (0.5 / POINTS), POINTS, axis=1)
        for a, weight in zip(model.coefficients, points, strict=True):
            transfer = a @ shape.powers[: len(a)]
            share = shape.widths / (transfer.real**2 + transfer.imag**2)
            slopes = np.ones((len(a), len(weight)))
            slopes[1:] = -2.0 * (shape.powers[1 : len(a)] / transfer).real
            mean = np.zeros((len(a), shape.count))
            both = np.add.reduceat(np.vstack([share * slopes[1:], share]), shape.point_starts, axis=1)
            mean[0, : shape.inside], mean[1:, : shape.inside] = 1.0, both[:-1] / both[-1]
            values, V = np.linalg.eigh((slopes * weight) @ slopes.T)
            half = V / np.sqrt(np.where(values > ROUNDING * values[-1], values, np.inf))
            found.append((mean.T, half @ half.T))
        return tuple(found)


def _powers(z: NDArray[np.complex128], most: int) -> NDArray[np.complex128]:
    """Powers 0 … `most` of each number (most + 1, numbers)."""
    out = np.ones((most + 1, len(z)), dtype=np.complex128)
    out[1:] = z
    return np.multiply.accumulate(out, axis=0, out=out)
