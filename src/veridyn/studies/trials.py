"""Many trials of one periodic experiment: how estimates really scatter, and what each estimator says of its own scatter.

A trial draws noise on positions and forces, averages the periods, estimates the noise from how they differ, filters the coordinates by the
explicit DFT filter and estimates the parameters in four ways from the same data. Nothing of the truth enters but the clean signals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.gauss_markov import estimated
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.handing import handed
from veridyn.progress import Progress, silent
from veridyn.signals.periodic_filters import Three, dft_filter

Array = NDArray[np.float64]
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


Runs = tuple[Array, Array]  # positions and forces of some trials (trials, periods, N, ·)


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
    for both, ignoring in map(work, chunks()) if executor is None else handed(executor, work, chunks(), AHEAD):
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
    for a, A in zip(found, reconstructed(e, found, partial(_explicit, e.harmonics)), strict=True):
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


def _explicit(harmonics: int, x: Array, rate: float) -> Three:
    return dft_filter(x, rate, harmonics)
