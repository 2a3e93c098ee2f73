"""Many trials of one periodic experiment: how estimates really scatter, and what each estimator says of its own scatter.

A trial draws noise on positions and forces, averages the periods, estimates the noise from how they differ, filters the coordinates by the
explicit DFT filter and estimates the parameters in four ways from the same data. Nothing of the truth enters but the clean signals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.gauss_markov import estimated
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.excitation.plant import Plant
from veridyn.progress import Progress, silent
from veridyn.signals.periodic_filters import Three, dft_filter

Array = NDArray[np.float64]
Filter = Callable[[Array, float], Three]  # one period of coordinates and its rate → x, ẋ, ẍ

CHUNK = 10  # trials whose motions are reconstructed at once
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


def averages(e: PeriodicExperiment, trials: int, rng: np.random.Generator) -> list[Average]:
    """So many trials, each averaged over its periods."""
    N, k = len(e.positions), e.periods
    runs = []
    for clean, noise in ((e.positions, e.position_noise), (e.forces, e.force_noise)):
        drawn = noise.drawn(k * N, rng, trials=trials).reshape(trials, k, N, -1)
        runs.append(clean + drawn)
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
) -> Trials:
    """So many trials by all estimators; `truth` (p,) of the base parameters is only for comparison."""
    names = tuple(ESTIMATORS)
    values: dict[str, list[Array]] = {name: [] for name in names}
    stated: dict[str, list[Array]] = {name: [] for name in names}
    ignoring: list[Array] = []
    r = e.forces.shape[1]

    def explicit(x: Array, rate: float) -> Three:
        return dft_filter(x, rate, e.harmonics)

    progress(task, 0.0, float(count))
    for first in range(0, count, CHUNK):
        found = averages(e, min(CHUNK, count - first), rng)
        for a, A in zip(found, reconstructed(e, found, explicit), strict=True):
            white = NoiseModel.white(a.force_covariance)
            weights: dict[str, NoiseModel | None] = {
                "ols": NoiseModel.white(np.eye(r)),
                "diagonal": NoiseModel.white(np.diag(np.diag(a.force_covariance))),
                "rows": white,
                "markov": None,
            }
            for name, weight in weights.items():
                one = estimated(A, a.forces, a.force_noise, weight)
                values[name].append(one.values)
                stated[name].append(one.sigma)
            ignoring.append(estimated(A, a.forces, white).sigma)
        progress(task, float(min(first + CHUNK, count)), float(count))
    return Trials(
        e.plant.base.names,
        truth,
        {name: np.array(v) for name, v in values.items()},
        {name: np.array(v) for name, v in stated.items()},
        np.array(ignoring),
    )
