"""Many trials of one periodic experiment: how estimators scatter and what they say of it, and ways to filter.

A trial draws noise on positions and forces, averages the periods, estimates the noise from how they differ, filters the coordinates by
the explicit DFT filter and estimates the parameters in four ways from the same data. Nothing of the truth enters but the clean signals.

Ways to filter are judged by how well the identified model predicts another motion. Each way makes positions, rates and accelerations of
the same trials; parameters are estimated from each by Gauss and Markov with the same forces and weights, and predict the forces of a
motion that was not used. Forces are not filtered, but once, to show what that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.estimators.gauss_markov import NoiseModel, estimated
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.regression.workers import map_in_order
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.frequency import Three, amplitudes, dft_filter, fourier_fit, unfiltered, zero_phase_periodic

Filter = Callable[[Array, float], Three]  # one period of coordinates and its rate → x, ẋ, ẍ

CHUNK = 10  # trials whose motions are reconstructed at once
AHEAD = 16  # chunks drawn and not yet taken back, where workers share in them
ORDER = 3  # samples that noise may remember, at most; chosen by BIC
ESTIMATORS = {
    "ols": "ordinary least squares",
    "diagonal": "rows weighted each by itself",
    "rows": "Gauss-Markov across rows",
    "markov": "Gauss-Markov across rows and in time",
}
Runs = tuple[Array, Array]  # positions and forces of some trials (trials, periods, N, ·)
CUTOFFS = (20.0, 10.0, 5.0, 3.0)  # Hz, of the Butterworth filters that are compared
MISTUNED = 0.005  # of the frequency: what a wrong period does to the implicit fit
MISCUT = 0.01  # of the period: five samples of 500 too many, what a wrong base frequency does to the DFT
FORCES = 5.0  # Hz, of a low-pass on the forces
MISCUT_PERIOD = f"DFT, {{h}} harmonics, period {100 * MISCUT:g} % off"
RAW, EXPLICIT, FILTERED_FORCES = (
    "raw, central differences",
    "DFT, {h} harmonics",
    "DFT, {h} harmonics, forces low-passed",
)


@dataclass(frozen=True, eq=False)
class PeriodicExperiment:
    """A periodic experiment without noise: `positions` (N, m) of a plant's actuators and `forces` (N, r) of its rows over one period,
    recorded for so many `periods`; the noise of both; and how many `harmonics` its coordinates have.
    """

    plant: Plant
    rate: float
    harmonics: int
    positions: Array
    forces: Array
    position_noise: NoiseModel
    force_noise: NoiseModel
    periods: int = 2


@dataclass(frozen=True, eq=False)
class Average:
    """What one trial leaves of its periods: coordinates (N, n), forces (N, r), and the noise of the averaged forces as it was estimated."""

    coordinates: Array
    positions: Array
    forces: Array
    force_noise: NoiseModel
    force_covariance: Array
    position_covariance: Array


@dataclass(frozen=True, eq=False)
class Trials:
    """`values` and `stated` deviations: estimator → (trials, p). `ignoring`: what "rows" would state if noise had no memory."""

    names: tuple[str, ...]
    truth: Array
    values: Mapping[str, Array]
    stated: Mapping[str, Array]
    ignoring: Array

    def empirical(self, estimator: str = "markov") -> Array:
        """The deviation over the trials (p,)."""
        return self.values[estimator].std(axis=0, ddof=1)

    def honesty(self, estimator: str = "markov") -> Array:
        """Stated over empirical deviation (p,): 1 where an estimator knows itself."""
        return np.sqrt((self.stated[estimator] ** 2).mean(axis=0)) / self.empirical(estimator)

    def bias(self, estimator: str = "markov") -> Array:
        """Mean error over the empirical deviation (p,)."""
        return (self.values[estimator].mean(axis=0) - self.truth) / self.empirical(estimator)


def drawn_runs(e: PeriodicExperiment, trials: int, rng: np.random.Generator) -> Runs:
    """What so many trials measure: the clean signals with noise."""
    N, k = len(e.positions), e.periods
    positions, forces = (
        clean + noise.drawn(k * N, rng, trials=trials).reshape(trials, k, N, -1)
        for clean, noise in ((e.positions, e.position_noise), (e.forces, e.force_noise))
    )
    return positions, forces


def averages(e: PeriodicExperiment, trials: int, rng: np.random.Generator) -> list[Average]:
    """So many trials, each averaged over its periods."""
    return averaged(e, drawn_runs(e, trials, rng))


def averaged(e: PeriodicExperiment, runs: Runs) -> list[Average]:
    """Trials, each averaged over its periods."""
    trials, k, N, _ = runs[0].shape
    positions, forces = (run.mean(axis=1) for run in runs)
    flat = e.plant.located(positions.reshape(trials * N, -1)).reshape(trials, N, -1)
    freedom = N * (k - 1)
    out = []
    for i in range(trials):
        away = runs[1][i] - forces[i]
        noise = NoiseModel.from_runs(away, ORDER, freedom).scaled(1.0 / k)
        white = NoiseModel.from_runs(away, 0, freedom).scaled(1.0 / k)
        moved = (runs[0][i] - positions[i]).reshape(k * N, -1)
        out.append(Average(flat[i], positions[i], forces[i], noise, white.news, moved.T @ moved / freedom / k))
    return out


def reconstructed(e: PeriodicExperiment, found: list[Average], by: Filter) -> Array:
    """Regressors (trials, N, r, p) of the coordinates as a filter gives them."""
    each = [by(a.coordinates, e.rate) for a in found]
    X = np.stack([np.concatenate([one[order] for one in each]) for order in range(3)])
    A = e.plant.regressor(X)
    return A.reshape(len(found), -1, *A.shape[1:])


def trials(
    e: PeriodicExperiment,
    truth: Array,
    count: int,
    rng: np.random.Generator,
    progress: Progress = silent,
    task: str = "trials",
    executor: Executor | None = None,
) -> Trials:
    """So many trials by all estimators; `truth` (p,) of the base parameters is only for comparison.

    Noise is drawn here, trial after trial, and with an `executor` the rest is shared out: the result is the same whoever does it.
    """
    names = tuple(ESTIMATORS)
    stack: list[Array] = []
    plain: list[Array] = []

    def chunks() -> Iterator[Runs]:
        for first in range(0, count, CHUNK):
            yield drawn_runs(e, min(CHUNK, count - first), rng)

    work = partial(_judged, e)
    progress(task, 0.0, float(count))
    done = 0
    for both, ignoring in map_in_order(executor, work, chunks(), AHEAD):
        stack.append(both)
        plain.append(ignoring)
        done += len(ignoring)
        progress(task, float(done), float(count))
    found = np.concatenate(stack)  # (trials, estimators, values and deviations, p)
    return Trials(
        e.plant.base.names,
        truth,
        {name: found[:, k, 0] for k, name in enumerate(names)},
        {name: found[:, k, 1] for k, name in enumerate(names)},
        np.concatenate(plain),
    )


def _judged(e: PeriodicExperiment, runs: Runs) -> tuple[Array, Array]:
    """Values and deviations of each estimator (trials, estimators, 2, p), and deviations (trials, p) that ignore the memory of noise."""
    found = averaged(e, runs)
    both, ignoring = [], []
    for a, A in zip(found, reconstructed(e, found, partial(dft_filter, harmonics=e.harmonics)), strict=True):
        white = NoiseModel.white(a.force_covariance)
        weights: dict[str, NoiseModel | None] = {
            "ols": NoiseModel.white(np.eye(e.forces.shape[1])),
            "diagonal": NoiseModel.white(np.diag(np.diag(a.force_covariance))),
            "rows": white,
            "markov": None,
        }
        each = [estimated(A, a.forces, a.force_noise, weights[name]) for name in ESTIMATORS]
        both.append([(one.values, one.sigma) for one in each])
        ignoring.append(estimated(A, a.forces, white).sigma)
    return np.array(both), np.array(ignoring)


@dataclass(frozen=True)
class FilterRow:
    """One way: what the prediction of the other motion is wrong by (rms over trials, samples and rows, N), and the actuators'
    accelerations (rms, m/s^2)."""

    name: str
    prediction: float
    acceleration: float


@dataclass(frozen=True, eq=False)
class FilterComparison:
    """All ways on the same trials. `spectra`: way → amplitudes (harmonics, 3) of the first coordinate, its rate and its acceleration, of
    the first trial, as Fig. 2 of paper 002 shows them. `leakage`: how one period was cut out → frequencies (bins,) and amplitudes (bins, 3)
    by the DFT of the same coordinate without noise."""

    rows: tuple[FilterRow, ...]
    trials: int
    spectra: Mapping[str, Array]
    frequency: float
    leakage: Mapping[str, tuple[Array, Array]]

    def of(self, name: str) -> FilterRow:
        return next(row for row in self.rows if row.name == name)

    @property
    def best_time_domain(self) -> FilterRow:
        """The Butterworth filter that predicts best."""
        return min((r for r in self.rows if r.name.startswith("Butterworth")), key=lambda r: r.prediction)


def ways(harmonics: int) -> dict[str, Filter]:
    """The ways compared, by name."""

    def raw(x: Array, rate: float) -> Three:
        return unfiltered(x, rate)

    def low(cutoff: float) -> Filter:
        return lambda x, rate: zero_phase_periodic(x, rate, Butterworth(cutoff))

    def explicit(bins: int) -> Filter:
        return lambda x, rate: dft_filter(x, rate, bins)

    def cut_wrong(bins: int) -> Filter:
        """The explicit filter on a period that is cut out MISCUT too long, as it has to be where the base frequency is wrong."""

        def way(x: Array, rate: float) -> Three:
            a, b, c = (part[: len(x)] for part in dft_filter(miscut(x), rate, bins))
            return a, b, c

        return way

    def implicit(share: float) -> Filter:
        def way(x: Array, rate: float) -> Three:
            t = np.arange(len(x)) / rate
            return fourier_fit(x, t, (1.0 + share) * rate / len(x), harmonics).at(t)

        return way

    found: dict[str, Filter] = {RAW: raw}
    found |= {f"Butterworth {cutoff:g} Hz": low(cutoff) for cutoff in CUTOFFS}
    found[EXPLICIT.format(h=harmonics)] = explicit(harmonics)
    found[EXPLICIT.format(h=4 * harmonics)] = explicit(4 * harmonics)
    found[EXPLICIT.format(h=harmonics - 1)] = explicit(harmonics - 1)
    found[MISCUT_PERIOD.format(h=harmonics)] = cut_wrong(harmonics)
    found["Fourier fit (18)"] = implicit(0.0)
    found[f"Fourier fit (18), frequency {100 * MISTUNED:g} % off"] = implicit(MISTUNED)
    return found


def miscut(x: Array) -> Array:
    """One period of samples (N, …) as they are cut out of a log with a period that is MISCUT too long."""
    count = len(x)
    return x[np.arange(count + max(1, round(MISCUT * count))) % count]


def leaking(x: Array, rate: float) -> dict[str, tuple[Array, Array]]:
    """Frequencies and amplitudes of one clean period (N,) and its two derivatives by the DFT, cut out right and wrong."""
    found = {}
    for name, cut in {"right period": x, f"period {100 * MISCUT:g} % too long": miscut(x)}.items():
        f = rate / len(cut) * np.arange(len(cut) // 2 + 1)
        A = amplitudes(cut)
        found[name] = f, np.stack([A * (2.0 * np.pi * f) ** order for order in range(3)], axis=1)
    return found


def compared(
    e: PeriodicExperiment,
    accelerations: Array,
    other: Array,
    other_forces: Array,
    count: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> FilterComparison:
    """The ways on `count` trials of an experiment, whose true actuator `accelerations` (N, m) are for comparison only.

    `other` (M, rows, p) is the regressor of a motion not used, `other_forces` (M, rows) what it truly takes.
    """
    found = averages(e, count, rng)
    chosen = ways(e.harmonics)
    rows, spectra = [], {}
    total = float(len(chosen) + 1)
    for k, (name, way) in enumerate(chosen.items()):
        progress("ways to filter", float(k), total)
        rows.append(_filter_row(name, e, found, way, accelerations, other, other_forces))
        if name in (RAW, EXPLICIT.format(h=e.harmonics)) or name.startswith("Fourier"):
            three = way(found[0].coordinates, e.rate)
            spectra[name] = np.stack([amplitudes(x[:, 0]) for x in three], axis=1)
    progress("ways to filter", float(len(chosen)), total)
    low = [_low_passed(a, e.rate) for a in found]
    name = FILTERED_FORCES.format(h=e.harmonics)
    rows.append(_filter_row(name, e, low, chosen[EXPLICIT.format(h=e.harmonics)], accelerations, other, other_forces))
    progress("ways to filter", total, total)
    clean = e.plant.located(e.positions)[:, 0]
    return FilterComparison(tuple(rows), count, spectra, e.rate / len(e.positions), leaking(clean, e.rate))


def _low_passed(a: Average, rate: float) -> Average:
    forces = zero_phase_periodic(a.forces, rate, Butterworth(FORCES))[0]
    return Average(a.coordinates, a.positions, forces, a.force_noise, a.force_covariance, a.position_covariance)


def _filter_row(
    name: str,
    e: PeriodicExperiment,
    found: list[Average],
    way: Filter,
    accelerations: Array,
    other: Array,
    forces: Array,
) -> FilterRow:
    A = reconstructed(e, found, way)
    errors = []
    for a, one in zip(found, A, strict=True):
        values = estimated(one, a.forces, a.force_noise).values
        errors.append(other @ values - forces)
    X = np.stack(way(found[0].coordinates, e.rate))
    wrong = e.plant.actuators(X)[0][:, 2] - accelerations
    return FilterRow(name, float(np.sqrt(np.mean(np.square(errors)))), float(np.sqrt(np.mean(wrong**2))))
