"""The likelihood of equations with and without further columns, under the correlation that the residuals really have.

    W φ + S c = y + e,   A_j(B) e_j = white noise of variance σ_j² in row j,   −2 log L = Σ_j n_j ln σ_j²

A_j is an autoregression of the residual of row j (order by Akaike's criterion), from autocovariances of the noise: those of the residual,
and what the fit has taken from it put back (:mod:`veridyn.inference.noise_spectrum`). A cause with columns S is a model of its
own: its noise is estimated with S in the regressor, lest a damage hide in its own noise, and its evidence is

    2 Δ log L = Σ_j n_j (ln σ_j² − ln σ_j²(S)),

χ² of as many degrees of freedom as S has columns beside W where there is nothing in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.diagnosis.score_test import Projected, squared
from veridyn.identify.diagnosis.signature_samples import Samples
from veridyn.inference.autoregression import autoregressions
from veridyn.inference.noise_spectrum import Bands, band_sums, noise_spectrum

Mask = NDArray[np.bool_]
MAX_ORDER = 12  # of an autoregression; a longer memory is that of a slow process of low order
# Of the noise, taken to be white besides: a filter of the equations leaves nearly nothing above its cut-off, and what is divided by that is
# rounding and what first-order columns leave out
WHITE_SHARE = 0.01
MIN_VALID_SHARE = 0.5  # of the equations, that gaps and the order of the autoregression must leave


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyEquations:
    """Equations W φ = y, `W` (N, R, p), `y` (N, R), divided by the rms of each row's residual in a first fit, and their noise.

    `S` (N, R, k): columns of the regressor beside W that were appended last.
    `weight` (N, R): that division, zero where a sample is not `used`. `plain`: the equations as they are; `white`: behind the `filters`
    A_j of the rows, and divided by σ_j, `before` the same without S, and `rest` what is left of S beside it. `covariances` (R, L + 1) of
    the noise, `raw` of the residual. `loss`: −2 log L, but for a constant. `lengths` (k,): of columns S before they were divided by them.
    """

    used: Mask
    weight: Array
    W: Array
    S: Array
    y: Array
    plain: Projected
    covariances: Array
    raw: Array
    filters: tuple[Array, ...]
    again: Array
    white: Projected
    before: Projected
    rest: Array
    loss: float
    lengths: Array

    @classmethod
    def of(cls, x: Samples, residual: Array) -> NoisyEquations:
        """Of samples whose first fit left a residual (N, R)."""
        rms = np.sqrt(np.sum(np.where(x.used, residual, 0.0) ** 2, axis=0) / np.maximum(x.used.sum(axis=0), 1))
        weight = x.used / np.where(rms > 0.0, rms, np.inf)
        W, y = x.W * weight[:, :, None], x.y * weight
        plain = Projected.of(W, y)
        lags = int(min(MAX_ORDER, max(1, 10.0 * np.log10(len(y))), max(1, len(y) // 10)))
        raw = _autocovariances(plain.residual, x.used, lags)
        bands = Bands.for_samples(len(y))
        sums = band_sums(bands, plain.basis.transpose(1, 2, 0), plain.residual.T, x.used.T)
        spectra = noise_spectrum(bands, sums).spectra
        none = W[:, :, :0]
        return _finished(x.used, weight, W, none, y, plain, _transformed(bands, spectra, lags), raw, np.ones(0))

    def with_columns(self, S: Array) -> NoisyEquations:
        """The same with columns S (N, R, k), as the samples have them, in the regressor; its noise is its own, or as before where that is
        likelier."""
        S = S * self.weight[:, :, None]
        lengths = np.sqrt(squared(S))
        lengths[lengths == 0.0] = 1.0
        S = S / lengths
        plain = self.plain.with_columns(S)
        raw = _autocovariances(plain.residual, self.used, self.lags)
        # What the parameters take of the noise is a share of it, whatever its size.
        size = raw[:, :1] / np.maximum(self.raw[:, :1], np.finfo(float).tiny)
        covariances = raw + (self.covariances - self.raw) * size
        made = _finished(self.used, self.weight, self.regressor, S, self.y, plain, covariances, raw, lengths)
        if made.loss < self.loss:
            return made
        behind = _filtered(S, self.filters) * self.again[:, :, None]
        rest = self.white.beside(behind)
        white = self.white.with_columns(behind, rest)
        loss = _loss(self.used, self.again, white)
        if made.loss <= loss:
            return made
        return replace(
            self,
            W=self.regressor,
            S=S,
            plain=plain,
            covariances=covariances,
            raw=raw,
            white=white,
            before=self.white,
            rest=rest,
            loss=loss,
            lengths=lengths,
        )

    @cached_property
    def regressor(self) -> Array:
        """W and S side by side."""
        return np.concatenate([self.W, self.S], axis=2) if self.S.shape[2] else self.W

    @property
    def lags(self) -> int:
        """The longest memory that an autoregression of these equations may have."""
        return self.raw.shape[1] - 1

    @property
    def independent(self) -> float:
        """How many independent equations these are worth where the noise has most of its power."""
        count = self.used.sum(axis=0)
        gain = np.array([a.sum() ** 2 for a in self.filters])
        news = np.array([float(a @ c[: len(a)]) for a, c in zip(self.filters, self.covariances, strict=True)])
        return float(
            np.sum(count * np.clip(self.covariances[:, 0] * gain / np.maximum(news, np.finfo(float).tiny), 0.0, 1.0))
        )

    def filtered(self, S: Array) -> Array:
        """Columns S (N, R, k), as the samples have them, as they stand beside the white equations."""
        return _filtered(S * self.weight[:, :, None], self.filters) * self.again[:, :, None]

    def evidence(self, other: NoisyEquations) -> float:
        """2 Δ log L of another model over this one."""
        return self.loss - other.loss

    def combined(self) -> tuple[Array, Array, int]:
        """Of the columns that were appended last, as they were given: what is left of their best combination beside the others (N, R, 1),
        its coefficients (k,), and how many columns are beside them."""
        rest = self.rest * self.lengths
        sizes = self.before.sizes_of(rest) if rest.shape[2] > 1 else np.ones(1)
        return (rest @ sizes)[:, :, None], sizes, int(np.count_nonzero(rest.any(axis=(0, 1))))


def _finished(
    used: Mask,
    weight: Array,
    W: Array,
    S: Array,
    y: Array,
    plain: Projected,
    covariances: Array,
    raw: Array,
    lengths: Array,
) -> NoisyEquations:
    """A model with filters of its own."""
    filters = _whitening(covariances, used)
    valid = _valid(used, filters)
    left = _filtered(plain.residual[:, :, None], filters)[:, :, 0]
    again = _weight(valid, left)
    W_white, S_white = (_filtered(X, filters) * again[:, :, None] for X in (W, S))
    before = Projected.of(W_white, _filtered(y[:, :, None], filters)[:, :, 0] * again)
    rest = before.beside(S_white)
    white = before.with_columns(S_white, rest)
    return NoisyEquations(
        used=used,
        weight=weight,
        W=W,
        S=S,
        y=y,
        plain=plain,
        covariances=covariances,
        raw=raw,
        filters=filters,
        again=again,
        white=white,
        before=before,
        rest=rest,
        loss=_loss(used, again, white),
        lengths=lengths,
    )


def _loss(used: Mask, again: Array, white: Projected) -> float:
    """−2 log L of equations with these weights `again` behind their filters, zero where one is not valid."""
    valid = np.count_nonzero(again, axis=0)
    mean = np.sum(white.residual**2, axis=0) / np.maximum(valid, 1)
    sizes = np.where(mean > 0.0, mean, 1.0) / np.maximum(again.max(axis=0), np.finfo(float).tiny) ** 2
    return float(np.sum(used.sum(axis=0) * np.log(np.maximum(sizes, np.finfo(float).tiny))))


def _whitening(covariances: Array, used: Mask) -> tuple[Array, ...]:
    """An autoregression (1, a_1 …) for each row; of first order at most where gaps would leave too few equations."""
    wide, count = covariances.copy(), used.sum(axis=0).astype(np.float64)
    wide[:, 0] *= 1.0 + WHITE_SHARE
    filters = tuple(a for a, _ in autoregressions(wide, count))
    if np.any(_valid(used, filters).sum(axis=0) < MIN_VALID_SHARE * count):
        return tuple(a for a, _ in autoregressions(wide[:, :2], count))
    return filters


def _valid(used: Mask, filters: tuple[Array, ...]) -> Mask:
    """Samples that are used, and all that the filter of their row looks back at."""
    out = used.copy()
    for j, a in enumerate(filters):
        for lag in range(1, len(a)):
            out[lag:, j] &= used[:-lag, j]
            out[:lag, j] = False
    return out


def _filtered(X: Array, filters: tuple[Array, ...]) -> Array:
    """Columns X (N, R, k) behind the filters of their rows."""
    if X.shape[2] == 1:  # all rows at once
        out, taps = X[:, :, 0].copy(), np.zeros((max(map(len, filters), default=1), len(filters)))
        for j, a in enumerate(filters):
            taps[: len(a), j] = a
        for lag in range(1, min(len(taps), len(X))):
            out[lag:] += X[:-lag, :, 0] * taps[lag]
        return out[:, :, None]
    out = np.zeros_like(X)
    for j, a in enumerate(filters):  # of the columns that act there
        acting = np.flatnonzero(X[:, j].any(axis=0))
        x = np.take(X[:, j], acting, axis=1)
        y, scaled = x.copy(), np.empty_like(x)
        for lag in range(1, min(len(a), len(x))):
            y[lag:] += np.multiply(x[:-lag], a[lag], out=scaled[lag:])
        out[:, j, acting] = y
    return out


def _weight(used: Mask, residual: Array) -> Array:
    """1/rms of each row where a sample is used (N, R)."""
    rms = np.sqrt(np.sum(np.where(used, residual, 0.0) ** 2, axis=0) / np.maximum(used.sum(axis=0), 1))
    return used / np.where(rms > 0.0, rms, np.inf)


def _autocovariances(r: Array, used: Mask, lags: int) -> Array:
    """(R, lags + 1) of residuals (N, R), of all pairs that are used over the number of samples."""
    r, count = np.where(used, r, 0.0), np.maximum(used.sum(axis=0), 1)
    return np.stack([np.sum(r[k:] * r[: len(r) - k], axis=0) / count for k in range(lags + 1)], axis=1)


def _transformed(bands: Bands, spectra: Array, lags: int) -> Array:
    """Autocovariances (rows, lags + 1) of spectra that are constant in each band."""
    low, high = bands.edges[:-1], bands.edges[1:]
    k = np.arange(1, lags + 1)[:, None]
    waves = np.vstack([high - low, (np.sin(k * high) - np.sin(k * low)) / k])
    return np.asarray(spectra @ waves.T / np.pi, dtype=np.float64)
