"""Model error: white acceleration on every independent coordinate, as large as the innovations of a log demand, and never none.

    W_i = (s a_i)² Δt        s = max(share under which the readings are most likely, `FLOOR_SHARE`)

a_i is the rms acceleration that the coordinate i made along the log, Δt the usual time from sample to sample, and s a share of it that the
model does not explain; coordinates of one unit have one s. A process noise that was chosen on a simulation of the same model says nothing
about the model's structure: the floor does, and no log can remove it. Uncertain parameters that a filter considers are part of the
innovations' covariance already, so that what is learned here comes on top of them and not twice.

Likelihoods are clipped: a reading that the gate refuses counts as one on the gate, so that outliers do not pass for model error and a
filter that refuses what contradicts it gains nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import VeridynError
from veridyn.observe.filters.filter import FALSE_ALARMS, Filter
from veridyn.observe.filters.methods import extended
from veridyn.observe.filters.run import run
from veridyn.observe.filters.update import LOG_2PI, threshold
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.process_noise import ProcessNoise, sizes
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
FLOOR_SHARE = 0.01  # of the acceleration a coordinate makes: rigid bodies and measured forces are rarely known better
STEP = np.sqrt(10.0)  # factor between two shares that are tried
HIGHEST = 8.0  # steps up from the floor: a hundred times the acceleration itself, a model without any use
MISSES = 2  # steps in a row without a gain, after which a search ends
SIGNIFICANT_GAIN = 2.0  # of log p: a likelihood ratio that chance reaches once in twenty logs
SPAN = 10  # samples over which a change of rate makes an acceleration: noise of single samples is far larger
LEAST_SIGNAL = 0.1  # of the squared change of rate: what is left of it without its noise is uncertain below
STRETCHES, STRETCH_SAMPLES = 4, 1000  # of a log, on which shares are compared


@dataclass(frozen=True, eq=False)
class ModelErrorDensity:
    """The model error of a filter by independent coordinate: spectral `density` ((unit/s²)²/Hz), and the same as an `rms` (unit/s²) of
    accelerations that are new at every sample, `step` seconds apart; `moves`: rms acceleration that the coordinate made (unit/s²).

    `learned`: the innovations demand more than the `floor`, `FLOOR_SHARE` of that acceleration; `runs`: runs of the filter it took.
    """

    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    density: Array
    floor: Array
    moves: Array
    step: float
    runs: int = 0

    @property
    def rms(self) -> Array:
        return np.sqrt(self.density / self.step) if self.step > 0.0 else np.zeros(len(self.density))

    @property
    def learned(self) -> bool:
        return bool((self.density > self.floor * (1.0 + 1e-9)).any())

    def lines(self) -> tuple[str, ...]:
        """One line for each coordinate, in physical units."""
        found = []
        for name, unit, rms, moves, q, low in zip(
            self.coordinates, self.units, self.rms.tolist(), self.moves.tolist(), self.density, self.floor, strict=True
        ):
            what = "learned from the innovations" if q > low * (1.0 + 1e-9) else "the floor"
            found.append(f"model error of '{name}': {rms:.3g} {unit}/s^2 rms of {moves:.3g} ({what})")
        return tuple(found)

    def process_noise(self) -> ProcessNoise:
        """The density as a setting: ``ObserveSettings(model_error=…)`` of another log, or of an observer beside a running program."""
        return ProcessNoise(acceleration=dict(zip(self.coordinates, self.density.tolist(), strict=True)))

    def added_to(self, system: MachineSystem) -> MachineSystem:
        """The system with this density on top of its own process noise."""
        return with_density(system, self.density)


def with_density(system: MachineSystem, density: Array) -> MachineSystem:
    """The system with white accelerations of this density (f,) on top of its own."""
    f, names = system.f, system.model.names
    total = system.density.copy()
    total[f : 2 * f] += density
    own = dict(zip(names, total[f : 2 * f].tolist(), strict=True))
    return replace(system, density=total, process_noise=replace(system.process_noise, acceleration=own))


def given_density(given: ProcessNoise, system: MachineSystem) -> Array:
    """The densities of acceleration (f,) that a process noise names as the model's error."""
    return sizes(given.acceleration, system.model.names, "acceleration")


def given_model_error(given: ProcessNoise, system: MachineSystem, first: Estimates) -> ModelErrorDensity:
    """The density of acceleration that a process noise names as the model's error; `first` is a run without it."""
    density = given_density(given, system)
    return ModelErrorDensity(
        system.model.names, _units(system), density, density, acceleration_rms(system, first), _step(first)
    )


def _units(system: MachineSystem) -> tuple[str, ...]:
    return tuple(system.model.unit_of(name) for name in system.model.names)


def _step(first: Estimates) -> float:
    """The usual time from sample to sample (s)."""
    return float(np.median(np.diff(first.t))) if len(first) > 1 else 0.0


def acceleration_rms(system: MachineSystem, estimates: Estimates) -> Array:
    """The rms acceleration (f,) along a run, from changes of rate over `SPAN` samples, less what their own noise makes of it."""
    f, t = system.f, estimates.t
    span = min(SPAN, len(t) - 1)
    if span < 1:
        return np.zeros(f)
    rates = system.reduced(estimates.x)[:, f : 2 * f]
    variances = np.diagonal(estimates.P, axis1=1, axis2=2)[:, f : 2 * f]
    change, time = rates[span:] - rates[:-span], (t[span:] - t[:-span])[:, None]
    noise = variances[span:] + variances[:-span]
    settled = noise <= 2.0 * np.median(noise, axis=0)  # a start that is not known is no acceleration
    squared = np.where(settled, (change / time) ** 2, 0.0).sum(axis=0) / settled.sum(axis=0)
    noisy = np.where(settled, noise / time**2, 0.0).sum(axis=0) / settled.sum(axis=0)
    return np.sqrt(np.maximum(squared - noisy, LEAST_SIGNAL * squared))


def learn_model_error(
    method: Filter,
    system: MachineSystem,
    seen: Callable[[MachineSystem], System],
    readings: Measurements,
    start: Belief,
    first: Estimates,
    progress: Progress = silent,
) -> ModelErrorDensity:
    """The model error of a log; `first` is a run along it without any, `seen` makes of a system what the filter runs on."""
    moves, step = acceleration_rms(system, first), _step(first)
    floor = (FLOOR_SHARE * moves) ** 2 * step
    units = _units(system)
    groups = [np.array([u == unit for u in units]) for unit in dict.fromkeys(units)]
    gated = replace(extended(method), gate=1.0 - FALSE_ALARMS)  # without reopening: what is refused stays so
    search = _Search(gated, system, seen, _stretches(readings, start, first), floor, progress)
    exponents = np.zeros(system.f)
    if step > 0.0 and moves.any():
        exponents = search.climb(exponents, np.ones(system.f, dtype=np.bool_))
        for group in groups if len(groups) > 1 and exponents.any() else ():
            exponents = search.climb(exponents, group)
    density = search.density(exponents)
    return ModelErrorDensity(system.model.names, units, density, floor, moves, step, len(search.known))


def _stretches(readings: Measurements, start: Belief, first: Estimates) -> list[tuple[Measurements, Belief]]:
    """Parts of a log that are compared, each with a start: all of a short one, parts spread over a long one."""
    count = len(readings)
    if count <= STRETCHES * STRETCH_SAMPLES:
        return [(readings, start)]
    found = [(readings.first(STRETCH_SAMPLES), start)]
    for k in np.linspace(0, count - STRETCH_SAMPLES, STRETCHES).astype(int).tolist()[1:]:
        part = readings.between(k, k + STRETCH_SAMPLES)
        found.append((part, Belief(first.x[k - 1], first.P[k - 1], float(first.t[k - 1]))))
    return found


class _Search:
    """Which shares make the stretches most likely. A share is the floor's times `STEP` to an exponent (f,); each set is run once."""

    def __init__(
        self,
        method: Filter,
        system: MachineSystem,
        seen: Callable[[MachineSystem], System],
        stretches: list[tuple[Measurements, Belief]],
        floor: Array,
        progress: Progress,
    ) -> None:
        self._method, self._system, self._seen = method, system, seen
        self._stretches, self._floor, self._progress = stretches, floor, progress
        self.known = dict[tuple[float, ...], float]()

    def density(self, exponents: Array) -> Array:
        return self._floor * STEP ** (2.0 * exponents)

    def value(self, exponents: Array) -> float:
        """The clipped log-likelihood; −∞ where the filter does not reach the end."""
        key = tuple(exponents.tolist())
        if key not in self.known:
            self._progress("learning the model error", len(self.known) + 1, None)
            system = self._seen(with_density(self._system, self.density(exponents)))
            try:
                self.known[key] = sum(
                    clipped_log_likelihood(run(self._method, system, part, begin)) for part, begin in self._stretches
                )
            except VeridynError:
                self.known[key] = -np.inf
        return self.known[key]

    def climb(self, exponents: Array, group: NDArray[np.bool_]) -> Array:
        """The best exponents of the coordinates in `group`, one step at a time from where they are, then between the steps."""
        best, unit = exponents, group.astype(np.float64)
        for direction in (1.0, -1.0):
            tried, misses = best, 0
            while misses < MISSES:
                tried = tried + direction * unit
                if tried[group].min() < 0.0 or tried[group].max() > HIGHEST:
                    break
                if self.value(tried) > self.value(best) + (SIGNIFICANT_GAIN if direction > 0.0 else -SIGNIFICANT_GAIN):
                    best, misses = tried, 0
                else:
                    misses += 1
            if (best != exponents).any():
                break
        if best[group].min() <= 0.0:
            return best
        below, at, above = (self.value(best + k * unit) for k in (-1.0, 0.0, 1.0))
        bend = below - 2.0 * at + above
        if not np.isfinite(bend) or bend >= 0.0:
            return best
        return best + float(np.clip(0.5 * (below - above) / bend, -0.5, 0.5)) * unit


def clipped_log_likelihood(found: Estimates) -> float:
    """Σ log p of the readings of a run; one that the gate refused counts as one on the gate."""
    refused = found.status == Status.OUTLIER
    limit, s = threshold(1.0 - FALSE_ALARMS), found.innovation_variances[refused]
    return float(found.log_likelihood.sum() - 0.5 * np.sum(LOG_2PI + np.log(s) + limit))
