"""Model error: white forces and accelerations, as large as the innovations of a log demand, and never none.

    W_i = (s_i a_i)² Δt                        white acceleration of the independent coordinate i, s_i at least `FLOOR_SHARE`
    W_j = (s_j a_j)² Δt / (∂z̈/∂u_j)²           white part of the unknown force j, where forces are estimated

a is the rms acceleration that a coordinate made along the log, Δt the usual time from sample to sample, and s a share of it that the model
does not explain, the one under which the readings are most likely. A process noise that was chosen on a simulation of the same model says
nothing about the model's structure: the floor does, and no log can remove it. What an unknown force acts on learns a force and keeps the
floor: noise of a measured torque and friction that is not modelled are forces, and move a light last link, or a crank near its dead
centre, far more than the rest. Uncertain parameters that a filter considers are part of the innovations' covariance already, so that what
is learned here comes on top of them and not twice.

Where the log has chosen the process noise as well, the walk of the unknown forces is scaled together with the shares: a walk that was
chosen alone takes white disturbances upon itself, which makes the bands of rates too narrow.

A share on the floor is asked first on a quarter of the samples: one that gains nothing there is not tried on all. Of a long log the first
run has the floor of its beginning already: where that is nearly the one of the whole log, and nothing more is learned, it is the last.

Likelihoods count every reading: one that the gate refuses costs as much as one on the gate (:func:`~veridyn.observe.alone.reading_cost`),
so that outliers do not pass for model error, a filter that refuses what contradicts it gains nothing, and one that has lost track pays for
it at every reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.observe.alone import reading_cost
from veridyn.observe.filters.filter import FALSE_ALARMS, Filter, Passing
from veridyn.observe.filters.methods import extended
from veridyn.observe.filters.run import RunLikelihood, run, run_likelihood
from veridyn.observe.filters.update import LOG_2PI
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.process_noise import ProcessNoise, sizes
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

FLOOR_SHARE = 0.01  # of the acceleration a coordinate makes: rigid bodies and measured forces are rarely known better
STEP = np.sqrt(10.0)  # factor between two shares that are tried
HIGHEST = 8  # steps up from the floor: a hundred times the acceleration itself, a model without any use
WALK_STEPS = 4  # down from a walk that was chosen alone to one of a ten thousandth, which explains next to nothing
MISSES = 2  # steps in a row without a gain, after which a search from the floor ends
SWEEPS = 3  # through all shares: one that depends on another is asked again
SIGNIFICANT_GAIN = 2.0  # of log p: a likelihood ratio that chance reaches once in twenty logs
SPAN = 10  # samples over which a change of rate makes an acceleration: noise of single samples is far larger
LEAST_SIGNAL = 0.1  # of the squared change of rate: what is left of it without its noise is uncertain below
STRETCHES, STRETCH_SAMPLES = 4, 1000  # of a log, on which shares are compared
SCREENED_SAMPLES = 250  # of each stretch, on which it is asked whether a share gains anything at all
BEGINNING = 500  # samples of a long log, from which the floor is foreseen
SAME_FLOOR = 2.0  # factor of the density: a hundredth of the acceleration, within a factor of √2
LEAST_PUSH = 1e-12  # (unit/s²)/N: a force below it moves nothing where the log begins


@dataclass(frozen=True, eq=False)
class ModelErrorDensity:
    """The model error of a filter: spectral `density` of white accelerations by independent coordinate ((unit/s²)²/Hz), and of the white
    part `force` of the unknown `forces` (N² or (N*m)²/Hz).

    `push` (coordinates, forces): the acceleration that a force makes where the log begins. `moves`: rms acceleration that the coordinate
    made (unit/s²). `step`: seconds from sample to sample. `floor`: the density of `FLOOR_SHARE` of that acceleration. `walk`: by which the
    density of the unknown forces' walk is multiplied, 1 where it was given. `runs`: runs of the filter it took.
    """

    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    density: Array
    floor: Array
    moves: Array
    step: float
    forces: tuple[str, ...] = ()
    force_units: tuple[str, ...] = ()
    force: Array | None = None
    push: Array | None = None
    walk: float = 1.0
    runs: int = 0

    @property
    def total(self) -> Array:
        """The density of acceleration by coordinate ((unit/s²)²/Hz), with what white forces make of it where the log begins."""
        return self.density if self.push is None or self.force is None else self.density + self.push**2 @ self.force

    @property
    def rms(self) -> Array:
        """All of it as the rms (unit/s²) of accelerations that are new at every sample."""
        return self._rms(self.total)

    @property
    def force_rms(self) -> Array:
        """The white part of the forces as the rms (N or N*m) of forces that are new at every sample."""
        return self._rms(np.zeros(0) if self.force is None else self.force)

    def _rms(self, density: Array) -> Array:
        return np.sqrt(density / self.step) if self.step > 0.0 else np.zeros(len(density))

    @property
    def learned(self) -> bool:
        """Whether the innovations demand more than the floor."""
        return bool((self.total > self.floor * (1.0 + 1e-9)).any())

    def lines(self) -> tuple[str, ...]:
        """One line for each coordinate and each force with an error, in physical units."""
        found = []
        for name, unit, rms, moves, q, low in zip(
            self.coordinates, self.units, self.rms.tolist(), self.moves.tolist(), self.total, self.floor, strict=True
        ):
            what = "learned from the innovations" if q > low * (1.0 + 1e-9) else "the floor"
            found.append(f"model error of '{name}': {rms:.3g} {unit}/s^2 rms of {moves:.3g} ({what})")
        for name, unit, rms in zip(self.forces, self.force_units, self.force_rms.tolist()):
            if rms > 0.0:
                found.append(f"of it by the force '{name}': {rms:.3g} {unit} rms, new at every sample")
        if self.walk != 1.0:
            found.append(f"beside it the walk of the unknown forces has {self.walk:.3g} of the density chosen alone")
        return tuple(found)

    def process_noise(self) -> ProcessNoise:
        """The density as a setting: ``ObserveSettings(model_error=…)`` of another log, or of an observer beside a running program."""
        white = dict(zip(self.forces, [] if self.force is None else self.force.tolist()))
        return ProcessNoise(
            acceleration=dict(zip(self.coordinates, self.density.tolist(), strict=True)), white_force=white
        )

    def added_to(self, system: MachineSystem) -> MachineSystem:
        """The system with this density on top of its own process noise."""
        return with_density(system, self.density, self.force, self.walk)


def with_density(system: MachineSystem, density: Array, force: Array | None = None, walk: float = 1.0) -> MachineSystem:
    """The system with white accelerations (f,) and forces (k,) of these densities on top of its own, its walk multiplied by `walk`."""
    f, names, forces = system.f, system.model.names, system.model.unknown
    walking, k = slice(2 * f, 2 * f + len(forces)), len(system.states)
    total = system.density.copy()
    total[f : 2 * f] += density
    total[walking] *= walk
    noise = replace(system.process_noise, acceleration=dict(zip(names, total[f : 2 * f].tolist(), strict=True)))
    if force is not None and force.any():
        total[k:] += force
        noise = replace(noise, white_force=dict(zip(forces, total[k:].tolist(), strict=True)))
    if walk != 1.0:
        noise = replace(noise, force=dict(zip(forces, total[walking].tolist(), strict=True)))
    return replace(system, density=total, process_noise=noise)


def with_given_density(system: MachineSystem, given: ProcessNoise) -> MachineSystem:
    """The system with the white accelerations and forces that a process noise names as the model's error."""
    return with_density(system, *_given(given, system))


def _given(given: ProcessNoise, system: MachineSystem) -> tuple[Array, Array]:
    return (
        sizes(given.acceleration, system.model.names, "acceleration"),
        sizes(given.white_force, system.model.unknown, "white_force"),
    )


def given_model_error(
    given: ProcessNoise, system: MachineSystem, start: Belief, readings: Measurements, first: Estimates
) -> ModelErrorDensity:
    """The densities that a process noise names as the model's error; `first` is a run along `readings` without it."""
    density, force = _given(given, system)
    push = _push(system, start, readings)
    moves = acceleration_rms(system, first)
    units, forces, force_units = _units(system)
    floor = density + push**2 @ force
    return ModelErrorDensity(
        system.model.names, units, density, floor, moves, _step(first), forces, force_units, force, push
    )


def _units(system: MachineSystem) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Units of the coordinates, names of the unknown forces and their units."""
    model = system.model
    forces = tuple(model.unknown)
    return tuple(map(model.unit_of, model.names)), forces, tuple(map(model.force_unit, forces))


def _push(system: MachineSystem, start: Belief, readings: Measurements) -> Array:
    """The acceleration (f, k) that each unknown force makes where a log begins."""
    f, forces = system.f, len(system.model.unknown)
    if not forces or not len(readings):
        return np.zeros((f, forces))
    at = system.instant(start.x, readings.inputs[0])
    return np.asarray(system.model.accelerated(at, system.set_of(start.x))[:, 2 * f : 2 * f + forces])


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


def foreseen_floor(
    method: Filter,
    system: MachineSystem,
    seen: Callable[[MachineSystem], System],
    readings: Measurements,
    start: Belief,
) -> Array | None:
    """The floor (f,) of a long log by its beginning; None of a short one, of which every run is a small part of learning anyway."""
    if len(readings) <= STRETCHES * STRETCH_SAMPLES:
        return None
    try:
        first = run(extended(method), seen(system), readings.first(BEGINNING), start)
    except VeridynError:
        return None  # where steps do not converge, the first run of the whole log makes them shorter
    floor = _floor(acceleration_rms(system, first), _step(first))
    return floor if (floor > 0.0).all() else None


def _floor(moves: Array, step: float) -> Array:
    return (FLOOR_SHARE * moves) ** 2 * step


def learn_model_error(
    method: Filter,
    system: MachineSystem,
    seen: Callable[[MachineSystem], System],
    readings: Measurements,
    start: Belief,
    first: Estimates,
    progress: Progress = silent,
    scales_walk: bool = False,
    foreseen: Array | None = None,
) -> ModelErrorDensity:
    """The model error of a log; `first` is a run along it without any, `seen` makes of a system what the filter runs on. `scales_walk`: the
    walk of the unknown forces was chosen on this log too. `foreseen`: the floor that the first run has, which stays where it is near
    enough."""
    moves, step, f = acceleration_rms(system, first), _step(first), system.f
    floor, push = _floor(moves, step), _push(system, start, readings)
    kept = foreseen is not None and bool(((floor <= SAME_FLOOR * foreseen) & (foreseen <= SAME_FLOOR * floor)).all())
    if kept and foreseen is not None:
        floor = foreseen
    units, forces, force_units = _units(system)
    strongest = np.abs(push).argmax(axis=0) if f else np.zeros(0, dtype=np.int64)
    size = np.abs(push[strongest, np.arange(len(forces))])
    smallest = np.where(size > LEAST_PUSH, floor[strongest] / np.maximum(size, LEAST_PUSH) ** 2, 0.0)
    walks = scales_walk and bool(system.density[2 * f : 2 * f + len(forces)].any())
    free = np.array([*(name not in forces for name in system.model.names), *(smallest > 0.0), walks])
    gated = replace(extended(method), gate=1.0 - FALSE_ALARMS)  # without reopening: what is refused stays so
    stretches, screened = (_stretches(readings, start, first, n) for n in (STRETCH_SAMPLES, SCREENED_SAMPLES))
    search = _Search(gated, system, seen, stretches, screened, floor, smallest, progress)
    if kept and extended(method) is method and not (first.status == Status.OUTLIER).any():
        rows = np.concatenate([np.arange(k, k + SCREENED_SAMPLES) for k in _begins(len(readings), SCREENED_SAMPLES)])
        search.known[True, (0.0,) * len(free)] = float(first.log_likelihood[rows].sum())  # it was this run
    exponents = search.best(free) if step > 0.0 and moves.any() else np.zeros(len(free))
    density, force, walk = search.densities(exponents)
    if kept and foreseen is not None and not exponents.any():
        density = foreseen  # the first run had it
    return ModelErrorDensity(
        system.model.names,
        units,
        density,
        floor,
        moves,
        step,
        forces,
        force_units,
        force,
        push,
        walk,
        len(search.known),
    )


Stretches = list[tuple[Measurements, Belief]]


def _stretches(readings: Measurements, start: Belief, first: Estimates, samples: int) -> Stretches:
    """Parts of so many samples of a log that are compared, each with a start: all of a short one, parts spread over a long one."""
    count = len(readings)
    if count <= STRETCHES * samples:
        return [(readings, start)]
    found = [(readings.first(samples), start)]
    for k in _begins(count, samples)[1:]:
        part = readings.between(k, k + samples)
        found.append((part, Belief(first.x[k - 1], first.P[k - 1], float(first.t[k - 1]))))
    return found


def _begins(count: int, samples: int) -> list[int]:
    """Where the stretches of a long log begin."""
    return np.linspace(0, count - samples, STRETCHES).astype(int).tolist()


class _Search:
    """Which shares make the stretches most likely.

    A share is the floor's times `STEP` to an exponent: (f + k + 1,) exponents of coordinates, forces and the walk. A coordinate has no less
    than the floor, a force none at exponent 0. Each set is run once.
    """

    def __init__(
        self,
        method: Filter,
        system: MachineSystem,
        seen: Callable[[MachineSystem], System],
        stretches: Stretches,
        screened: Stretches,
        floor: Array,
        smallest: Array,
        progress: Progress,
    ) -> None:
        self._method, self._system, self._seen = method, system, seen
        self._floor, self._smallest, self._progress = floor, smallest, progress
        self._all, self._screened = stretches, screened
        samples, few = (sum(len(part) for part, _ in parts) for parts in (stretches, screened))
        self._share = few / samples
        self.known = dict[tuple[bool, tuple[float, ...]], float]()
        self._step: Passing | None = None

    def densities(self, exponents: Array) -> tuple[Array, Array, float]:
        """Of accelerations and white forces, and what the walk is multiplied by."""
        f, factor = len(self._floor), STEP ** (2.0 * exponents)
        return (
            self._floor * factor[:f],
            self._smallest * np.where(exponents > 0.0, factor, 0.0)[f:-1],
            float(factor[-1]),
        )

    def best(self, free: NDArray[np.bool_]) -> Array:
        """The exponents of those that are `free` under which the stretches are most likely: of all together, of each, and of the walk.

        Where the walk is scaled there are two starts. Shares are asked almost without it, and then how much of it they leave, because from
        a walk that explains everything no single step leads anywhere; and they are asked beside all of it, because without it a wrong model
        may lose track.
        """
        start = np.zeros(len(free))
        each = [np.arange(len(free)) == k for k in np.flatnonzero(free[:-1])]
        shares = [np.append(free[:-1], False), *each] if len(each) > 1 else each
        walk = np.arange(len(free)) == len(free) - 1
        found = start
        if not free[-1] and self._share < 1.0 and len(each) > 1 and not self.screened_gain(start, shares[0]):
            return start  # the readings do not feel ten times the floor of all: other noise hides it
        if free[-1]:
            found = start - WALK_STEPS * walk
            for part in shares:
                found = self.climb(found, part)
            below = (found + k * walk for k in range(WALK_STEPS + 1))
            found = max((*below, self.climb(start, shares[0])), key=self.value)
        for _ in range(SWEEPS):
            before = found
            for part in (*shares, walk) if free[-1] else shares:
                found = self.climb(found, part)
            if (found == before).all():
                break
        if (found == start).all():
            return start
        return self.between(found if self.value(found) > self.value(start) else start, each)

    def value(self, exponents: Array, screening: bool = False) -> float:
        """The bounded log-likelihood of all stretches, or of those that screen; −∞ where the filter does not reach the end."""
        key = screening, tuple(exponents.tolist())
        if key not in self.known:
            self._progress("learning the model error", len(self.known) + 1, None)
            system = self._seen(with_density(self._system, *self.densities(exponents)))
            stretches = self._screened if screening else self._all
            try:
                self._step = Passing(self._method, system) if self._step is None else self._step.on(system)
                self.known[key] = sum(
                    bounded_log_likelihood(run_likelihood(self._step, self._method, system, part, begin, k > 0))
                    for k, (part, begin) in enumerate(stretches)
                )
            except VeridynError:
                self.known[key] = -np.inf
        return self.known[key]

    def screened_gain(self, exponents: Array, part: NDArray[np.bool_]) -> float:
        """What shares on the floor gain or lose on the samples that screen, at the first step of those tried at which it is as much as
        these samples have of a significant gain; 0 where there is none."""
        here, change = self.value(exponents, screening=True), self._share * SIGNIFICANT_GAIN
        for k in range(1, MISSES + 1):
            gain = self.value(exponents + k * part, screening=True) - here
            if abs(gain) > change:
                return gain
        return 0.0

    def climb(self, exponents: Array, part: NDArray[np.bool_]) -> Array:
        """The best exponents of those in `part`, one step at a time from where they are; of two that are alike that nearer to the floor."""
        best, walks = exponents, bool(part[-1])
        for direction in (1.0, -1.0):
            tried, misses = best, 0
            on_floor = direction > 0.0 and not exponents[part].any()
            if on_floor and not walks and self._share < 1.0 and self.screened_gain(exponents, part) <= 0.0:
                continue
            allowed = MISSES if on_floor else 1
            gain = SIGNIFICANT_GAIN if direction > 0.0 or walks else -SIGNIFICANT_GAIN
            while misses < allowed:
                tried = tried + direction * part
                if tried[part].min() < (-HIGHEST if walks else 0.0) or tried[part].max() > HIGHEST:
                    break
                if self.value(tried) > self.value(best) + gain:
                    best, misses = tried, 0
                else:
                    misses += 1
            if (best != exponents).any():
                break
        return best

    def between(self, exponents: Array, parts: Sequence[NDArray[np.bool_]]) -> Array:
        """The exponents moved to the tops of parabolas through the steps around them, one part at a time; what is on the floor stays."""
        out = exponents
        for part in parts:
            if not exponents[part].any():
                continue
            below, at, above = (self.value(exponents + k * part) for k in (-1.0, 0.0, 1.0))
            bend = below - 2.0 * at + above
            if np.isfinite(bend) and bend < 0.0:
                out = out + float(np.clip(0.5 * (below - above) / bend, -0.5, 0.5)) * part
        return out


def bounded_log_likelihood(found: RunLikelihood) -> float:
    """Σ log p of the readings of a run, those included that the gate refused, at what they cost."""
    refused = found.status == Status.OUTLIER
    s, nu = found.variances[refused], found.innovations[refused]
    return float(found.log_likelihood.sum() - 0.5 * np.sum(LOG_2PI + np.log(s) + reading_cost(nu**2 / s)))
