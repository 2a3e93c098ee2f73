"""Spectra of residuals: the covariance they give is that of the noise that was drawn, and coefficients are those of other programs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.signal import lfilter

import veridyn.inference.noise_spectrum as module
from veridyn.inference.noise_spectrum import (
    Bands,
    BandSums,
    NoiseSpectrum,
    band_sums,
    noise_spectrum,
)

Array = NDArray[np.float64]
MEMORY = 0.9


def columns(rng: np.random.Generator, samples: int, p: int, rows: int = 2, fastest: float = 12.0) -> Array:
    """Slow columns (rows, N, p) of at most so many periods, orthonormal over all rows."""
    t = np.arange(samples) / samples
    waves = np.array(
        [[np.sin(2 * np.pi * rng.uniform(1, fastest) * t + rng.uniform(0, 6)) for _ in range(p)] for _ in range(rows)]
    )
    Q = np.linalg.qr(np.moveaxis(waves, 1, 2).reshape(-1, p))[0]
    return Q.reshape(rows, samples, p)


def first_order(rng: np.random.Generator, rows: int, samples: int, memory: float) -> Array:
    news = rng.normal(size=(rows, samples + 500)) * np.sqrt(1.0 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], news, axis=1)[:, 500:], dtype=np.float64)


def summed(Q: Array, e: Array, segments: int = 1) -> tuple[Bands, BandSums]:
    """The sums of the residuals of a fit by orthonormal columns."""
    r = e - np.einsum("jnp,p->jn", Q, np.einsum("jnp,jn->p", Q, e))
    length = e.shape[1] // segments
    bands = Bands.for_samples(length)
    total = BandSums.zero(len(Q), bands, Q.shape[2])
    for k in range(segments):
        part = slice(k * length, (k + 1) * length)
        total += band_sums(bands, np.moveaxis(Q[:, part], 1, 2), r[:, part], np.ones((len(Q), length), dtype=bool))
    return bands, total


def found(Q: Array, e: Array, segments: int = 1) -> NoiseSpectrum:
    return noise_spectrum(*summed(Q, e, segments))


def exact(Q: Array, memory: float) -> Array:
    """QᵀΣQ with Σ written out."""
    Sigma = toeplitz(memory ** np.arange(Q.shape[1]))
    return np.asarray(sum(own.T @ Sigma @ own for own in Q), dtype=np.float64)


def test_sums_hold_all_power() -> None:
    """Parseval: the power of all bands is that of the samples."""
    rng = np.random.default_rng(0)
    Q, e = columns(rng, 700, 5), rng.normal(size=(2, 700))
    _, sums = summed(Q, e)
    assert sums.gram.sum(axis=(0, 1)) == pytest.approx(np.eye(5)[np.triu_indices(5)], abs=1e-12)
    assert sums.freedom.sum() == pytest.approx(2 * 700)
    left = e - np.einsum("jnp,p->jn", Q, np.einsum("jnp,jn->p", Q, e))
    assert sums.power.sum() == pytest.approx((left**2).sum())


@pytest.mark.parametrize("segments", [1, 4])
def test_scores_of_first_order_noise_have_the_covariance_written_out(segments: int) -> None:
    rng = np.random.default_rng(1)
    Q = columns(rng, 6000, 8, fastest=100.0)
    true = exact(Q, MEMORY)
    S = np.mean([found(Q, first_order(rng, 2, 6000, MEMORY), segments).scores for _ in range(20)], axis=0)
    ratio = np.linalg.eigvals(np.linalg.solve(true, S)).real
    assert ratio.min() > 0.9
    assert ratio.max() < 1.1


def test_what_a_short_fit_takes_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 samples with a memory of 19 hold 21 of it in each row, and 16 parameters take much of what is slow."""
    rng = np.random.default_rng(2)
    Q = columns(rng, 400, 16)
    true = float(np.trace(exact(Q, MEMORY)))
    noises = [first_order(rng, 2, 400, MEMORY) for _ in range(100)]
    stated = float(np.mean([np.trace(found(Q, e).scores) for e in noises])) / true
    monkeypatch.setattr(module, "ROUNDS", 1)
    without = float(np.mean([np.trace(found(Q, e).scores) for e in noises])) / true
    assert without < 0.7  # a third is missing
    assert 0.8 < stated < 1.1


def test_deviations_are_widened_as_the_spectrum_is_uncertain() -> None:
    """s² is the relative variance of stated variances: as large as they scatter from log to log, where the order is clear."""
    rng = np.random.default_rng(3)
    Q = columns(rng, 2000, 4, fastest=200.0)
    half = np.eye(4)
    made = [found(Q, first_order(rng, 2, 2000, 0.95)) for _ in range(60)]
    both = [m.covariance(half) for m in made]
    doubt = np.mean([s2 for _, s2 in both], axis=0)
    scatter = (
        np.var([np.diag(m.scores) for m in made], axis=0) / np.mean([np.diag(m.scores) for m in made], axis=0) ** 2
    )
    assert doubt == pytest.approx(scatter, rel=0.5)
    C, s2 = both[0]
    assert np.diag(C) == pytest.approx(np.diag(made[0].stated_scores) * (1.0 + s2))


def test_white_noise_stays_white_and_no_direction_is_below_it() -> None:
    rng = np.random.default_rng(4)
    Q = columns(rng, 3000, 6)
    white = [found(Q, rng.normal(size=(2, 3000))) for _ in range(50)]
    assert sum(m.is_white for m in white) >= 49
    blue = found(Q, np.diff(rng.normal(size=(2, 3001)), axis=1))  # no power where the columns have theirs
    assert not blue.is_white
    assert np.linalg.eigvalsh(blue.stated_scores)[0] >= blue.white * (1.0 - 1e-12)
    assert np.linalg.eigvalsh(blue.scores)[0] < 0.1 * blue.white


def test_no_noise_is_no_error() -> None:
    made = found(columns(np.random.default_rng(5), 500, 3), np.zeros((2, 500)))
    assert np.isfinite(made.scores).all()
    assert made.memory == np.inf


@pytest.mark.parametrize("few", [0, 4096])
def test_sums_of_bands_are_those_of_a_transform_written_out(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether rows are transformed together or one by one, without columns that are zero at the start."""
    monkeypatch.setattr(module, "FEW_SAMPLES", few)
    rng = np.random.default_rng(11)
    x, r, N = rng.normal(size=(2, 4, 150)), rng.normal(size=(2, 150)), 150
    x[1, :2] = 0.0
    bands = Bands.for_samples(N)
    sums = band_sums(bands, x, r, np.ones((2, N), dtype=bool))
    length = len(np.fft.fft(np.zeros(module.next_fast_len(int(module.PADDING * N) + 1, real=True))))
    omega = np.abs(2.0 * np.pi * np.fft.fftfreq(length))
    band = np.clip(np.searchsorted(bands.edges, omega, side="right") - 1, 0, len(bands.edges) - 2)
    q = np.fft.fft(x, length)
    for j in range(2):
        for b in range(len(bands.edges) - 1):
            own = q[j][:, band == b]
            expected = (own @ own.conj().T).real / length
            assert sums.gram[j, b] == pytest.approx(expected[np.triu_indices(4)], abs=1e-11)
    assert sums.power.sum(axis=1) == pytest.approx((r**2).sum(axis=1))


def test_deviations_do_not_hang_on_rounding() -> None:
    """Several directions of S are below white's; the widening of each follows S itself, not an arbitrary turn among them."""
    rng = np.random.default_rng(12)
    Q = columns(rng, 600, 6, fastest=60.0)
    e = rng.normal(size=(2, 601))
    blue = found(Q, e[:, 1:] - 0.9 * e[:, :-1])
    values = np.linalg.eigvalsh(blue.scores)
    assert np.count_nonzero(values < blue.white) > 1
    nudge = rng.normal(size=blue.scores.shape) * 1e-13 * values[-1]
    half = np.eye(6) + 0.1 * rng.normal(size=(6, 6))
    nudged = replace(blue, scores=blue.scores + nudge + nudge.T)
    assert nudged.covariance(half)[0] == pytest.approx(blue.covariance(half)[0], rel=1e-8)


def test_cells_hold_the_power_and_freedom_of_a_transform_written_out() -> None:
    rng = np.random.default_rng(13)
    N = 150
    r, used = rng.normal(size=(1, N)), np.ones((1, N), dtype=bool)
    bands = Bands.for_samples(N)
    sums = band_sums(bands, np.zeros((1, 1, N)), r, used)
    length = module.next_fast_len(int(1.5 * N) + 1, real=True)
    omega = np.abs(2.0 * np.pi * np.fft.fftfreq(length))
    power = np.abs(np.fft.fft(r[0], length)) ** 2 / length
    for cell, (low, high) in enumerate(zip(bands.cells[:-1], bands.cells[1:], strict=True)):
        last = cell == len(bands.cells) - 2
        own = (omega >= low) & ((omega < high) | (last & (omega <= np.pi + 1e-9)))
        assert sums.power[0, cell] == pytest.approx(power[own].sum(), abs=1e-12)
        assert sums.freedom[0, cell] == pytest.approx(N * own.sum() / length)
    assert sums.freedom[0, 0] == pytest.approx(N / length)  # frequency 0 by itself


def test_bands_are_single_frequencies_and_then_eighths_of_an_octave() -> None:
    """A transform of 1.5 N samples has frequencies 2π/(1.5 N) apart; the first band is half a step, around 0."""
    N = 3000
    step, edges = 2.0 * np.pi / (1.5 * N), Bands.for_samples(N).edges
    assert edges[:4] == pytest.approx([0.0, 0.5 * step, 1.5 * step, 2.5 * step])
    assert edges[-1] == np.pi
    assert (edges[-9:-1] / edges[-10:-2]) == pytest.approx(2.0 ** (1.0 / 8.0))
    cells = Bands.for_samples(N).cells
    top = cells[cells >= edges[-2] * (1.0 - 1e-12)]
    assert len(top) == 5  # the edges of four cells


def test_memory_and_whiteness_are_those_of_their_definitions() -> None:
    """A largest spectrum of three times the mean is worth a third of the equations; Schwarz: ½ · 2 · ln 100 = 4.605."""
    made = NoiseSpectrum(
        spectra=np.array([[6.0, 1.0]]),
        scores=np.eye(1),
        white=2.0,
        gram=np.zeros((1, 2, 1)),
        sensitivity=(),
        gain=4.7,
        coefficients=2,
        equations=100.0,
    )
    assert not made.is_white and made.memory == 3.0 and made.independent == pytest.approx(100.0 / 3.0)
    assert replace(made, gain=4.5).is_white and replace(made, gain=4.5).memory == 1.0
    assert replace(made, white=0.0).memory == np.inf


@pytest.mark.parametrize("N", [12, 4000])
def test_sensitivities_are_slopes_of_the_spectrum_and_fishers_information(N: int) -> None:
    """f = σ²/|1 + a e^(−iω)|² in all bands: ∂ ln f/∂a by differences of f over a fine grid; var ln σ² = 2/n and var a = (1 − a²)/n.

    Of 12 samples f changes by half within a band, so that its points have to be weighted by it.
    """
    a = -0.8
    bands = Bands.for_samples(N)
    count = len(bands.edges) - 1
    freedom = N * np.diff(bands.cells)[None] / np.pi
    shape = module._Shape(bands, count, 3)
    n = np.add.reduceat(freedom, shape.starts, axis=1)
    noise = module._Noise(shape, freedom, n, np.zeros((1, count)))
    ((slopes, covariance),) = noise.sensitivity(module._Model((np.array([1.0, a]),)))

    def means(coefficient: float) -> Array:
        omega = np.linspace(bands.edges[:-1], bands.edges[1:], 2001, axis=1)
        return np.mean(1.0 / np.abs(1.0 + coefficient * np.exp(-1j * omega)) ** 2, axis=1)

    numeric = (np.log(means(a + 1e-5)) - np.log(means(a - 1e-5))) / 2e-5
    assert slopes[:, 0] == pytest.approx(1.0)
    assert slopes[:, 1] == pytest.approx(
        numeric, abs=0.1
    )  # of up to 8.5: the midpoints of four parts of a cell err by so much
    assert covariance == pytest.approx(np.diag([2.0, 1.0 - a**2]) / N, rel=0.01, abs=0.01 / N)


@pytest.mark.parametrize("N", [8, 9, 10, 13, 16, 21, 32])
def test_the_power_of_all_cells_is_that_of_the_samples(N: int) -> None:
    """Parseval: ±1 in turn, all of it near half the sampling rate, has N times the power of a single 1, residual or column."""
    bands, used = Bands.for_samples(N), np.ones((1, N), dtype=bool)
    turns, single = (-1.0) ** np.arange(N)[None], np.eye(1, N)
    many, one = (band_sums(bands, x[:, None], x, used) for x in (turns, single))
    assert many.power.sum() == pytest.approx(N * one.power.sum(), rel=1e-12)
    assert many.gram.sum() == pytest.approx(N * one.gram.sum(), rel=1e-12)


def test_orders_add_up_and_empty_bands_are_told() -> None:
    """1, a_1 … a_k count k; bands above the autoregression with 2 degrees of freedom and with none: 1/2, and which have none."""
    assert module._Model((np.array([1.0, 0.5]), np.array([1.0, 0.2, 0.1]))).order == 3
    shape = SimpleNamespace(inside=1)
    noise = module._Noise(shape, np.zeros((1, 3)), np.array([[3.0, 2.0, 0.0]]), np.zeros((1, 3)))  # pyright: ignore[reportArgumentType]
    inverse, empty = noise._above
    assert inverse.tolist() == [[0.5, 0.0]] and empty.tolist() == [[0.0, 1.0]]


def test_rows_with_a_short_memory_are_not_outvoted_by_their_number() -> None:
    """First-order noise with .3, whose scores have 1.86 times the variance of white noise: in each of seven rows, and in one of them."""
    rng = np.random.default_rng(16)
    made = found(columns(rng, 2500, 12, fastest=30.0, rows=7), first_order(rng, 7, 2500, 0.3))
    assert made.white_rows is not None and not made.white_rows.any()
    assert np.mean(np.diag(made.stated_scores)) == pytest.approx(1.86, rel=0.15)
    noise = rng.standard_normal((7, 2500))
    noise[2] = first_order(rng, 1, 2500, 0.6)[0]
    one = found(columns(rng, 2500, 12, fastest=30.0, rows=7), noise)
    assert one.white_rows is not None and not one.white_rows[2]
    assert np.linalg.eigvalsh(one.stated_scores)[0] >= one.white * (1.0 - 1e-9)


def test_units_of_the_residuals_change_neither_gain_nor_order() -> None:
    """Residuals a thousand times as large: spectra and scores a million times, likelihood ratio and coefficients as before."""
    rng = np.random.default_rng(14)
    Q, e = columns(rng, 1500, 4, fastest=60.0), first_order(rng, 2, 1500, 0.7)
    one, many = found(Q, e), found(Q, 1e3 * e)
    assert one.gain > 100.0  # −½ n ln(1 − .7²) of 3000 equations is 1010; less by what lies above the columns' power
    assert many.gain == pytest.approx(one.gain, rel=1e-9) and many.coefficients == one.coefficients
    assert many.white == pytest.approx(1e6 * one.white) and many.scores == pytest.approx(1e6 * one.scores)


def test_the_gain_of_first_order_noise_is_that_of_its_likelihood() -> None:
    """ln L of an autoregression over that of white noise: −½ n ln(1 − ρ²), 1010 of 3000 equations with ρ = .7."""
    rng = np.random.default_rng(15)
    made = [found(columns(rng, 1500, 2, fastest=700.0), first_order(rng, 2, 1500, 0.7)) for _ in range(4)]
    assert np.mean([m.gain for m in made]) == pytest.approx(-0.5 * 3000 * np.log(1.0 - 0.49), rel=0.05)


@pytest.mark.parametrize(
    ("power", "inside"),
    [([50.0, 49.5, 0.4, 0.1, 0.0], 2), ([97.9, 0.5, 0.3, 0.2, 1.1], 5), ([1.0, 0.0, 0.0, 0.0, 0.0], 1)],
)
def test_the_spectrum_is_an_autoregression_up_to_99_percent_of_the_columns_power(
    power: list[float], inside: int
) -> None:
    bands = Bands(np.linspace(0.0, np.pi, 6), np.linspace(0.0, np.pi, 6))
    rows = np.array([power, power]) * [[1.0], [3.0]]
    assert module._autoregressive_limit(bands, rows) == inside


@pytest.mark.parametrize(("samples", "order"), [(15.9, 0), (16.0, 2), (40.0, 5), (2000.0, 30)])
def test_orders_are_bounded_by_what_lies_below_the_limit(samples: float, order: int) -> None:
    """Up to half the highest frequency half of the samples count: a quarter of those, at most 10 log₁₀ of them, none of fewer than 8."""
    bands = Bands(np.array([0.0, 0.5 * np.pi, np.pi]), np.array([0.0, 0.5 * np.pi, np.pi]))
    assert module._shape(bands, 1, samples).most == order


def test_single_frequencies_have_a_cell_each() -> None:
    bands = Bands.for_samples(3000)
    assert bands.cells[:6].tolist() == bands.edges[:6].tolist()
