"""Ways to process periodic data, judged by what counts: how well the identified model predicts another motion.

Each way makes positions, rates and accelerations of the same trials; parameters are estimated from each by Gauss and Markov with the same
forces and weights, and predict the forces of a motion that was not used. Forces are not filtered, but once, to show what that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.gauss_markov import estimated
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.periodic_filters import Three, amplitudes, dft_filter, fourier_fit, unfiltered, zero_phase_periodic
from veridyn.studies.trials import Average, Filter, PeriodicExperiment, averages, reconstructed

Array = NDArray[np.float64]

CUTOFFS = (20.0, 10.0, 5.0, 3.0)  # Hz, of the Butterworth filters that are compared
MISTUNED = 0.005  # of the frequency: what a wrong period does to the implicit fit
FORCES = 5.0  # Hz, of a low-pass on the forces


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
    the first trial, as Fig. 2 of paper 002 shows them."""

    rows: tuple[FilterRow, ...]
    trials: int
    spectra: Mapping[str, Array]
    frequency: float

    def of(self, name: str) -> FilterRow:
        return next(row for row in self.rows if row.name == name)

    @property
    def best_time_domain(self) -> FilterRow:
        """The Butterworth filter that predicts best."""
        return min((r for r in self.rows if r.name.startswith("Butterworth")), key=lambda r: r.prediction)


RAW, EXPLICIT, FILTERED_FORCES = (
    "raw, central differences",
    "DFT, {h} harmonics",
    "DFT, {h} harmonics, forces low-passed",
)


def ways(harmonics: int) -> dict[str, Filter]:
    """The ways compared, by name."""

    def raw(x: Array, rate: float) -> Three:
        return unfiltered(x, rate)

    def low(cutoff: float) -> Filter:
        return lambda x, rate: zero_phase_periodic(x, rate, Butterworth(cutoff))

    def explicit(bins: int) -> Filter:
        return lambda x, rate: dft_filter(x, rate, bins)

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
    found["Fourier fit (18)"] = implicit(0.0)
    found[f"Fourier fit (18), frequency {100 * MISTUNED:g} % off"] = implicit(MISTUNED)
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
        rows.append(_judged(name, e, found, way, accelerations, other, other_forces))
        if name in (RAW, EXPLICIT.format(h=e.harmonics)) or name.startswith("Fourier"):
            three = way(found[0].coordinates, e.rate)
            spectra[name] = np.stack([amplitudes(x[:, 0]) for x in three], axis=1)
    progress("ways to filter", float(len(chosen)), total)
    low = [_low_passed(a, e.rate) for a in found]
    name = FILTERED_FORCES.format(h=e.harmonics)
    rows.append(_judged(name, e, low, chosen[EXPLICIT.format(h=e.harmonics)], accelerations, other, other_forces))
    progress("ways to filter", total, total)
    return FilterComparison(tuple(rows), count, spectra, e.rate / len(e.positions))


def _low_passed(a: Average, rate: float) -> Average:
    forces = zero_phase_periodic(a.forces, rate, Butterworth(FORCES))[0]
    return Average(a.coordinates, a.positions, forces, a.force_noise, a.force_covariance, a.position_covariance)


def _judged(
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
