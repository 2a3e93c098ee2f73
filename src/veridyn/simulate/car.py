"""A car of a few numbers on a road: its driver's speed and steering in, the log of its sensors out.

    ẋ = V cos ψ − v sin ψ,    ẏ = V sin ψ + v cos ψ,    ψ̇ = r          x east, y north, ψ heading, from the origin eastwards

The equations are those of :mod:`veridyn.mechanics.single_track`, with tyre curves that are exact and a bank that is given; a simulation
with them shows what noise, clocks and estimators do, not that tyres are like this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, sin

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.single_track import BANK, READING_UNITS, READINGS, SLOWEST, lateral_functions, packed
from veridyn.mechanics.system.integrate import Trajectory
from veridyn.mechanics.system.stepper import explicit_step, tableau
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.model.single_track import car_described
from veridyn.progress import Progress, silent
from veridyn.simulate.imperfection import Imperfection, Imperfections, imperfections_of

Course = float | Callable[[float], float]
LONGEST_STEP_S = 0.002
SPEED_DIFFERENCE_S = 1e-4  # over which the acceleration is taken from the speed
ACTING = {"speed": "m/s", "steer": "rad", "ax": "m/s^2"}
WAY = {"east": "m", "north": "m", "heading": "rad"}


@dataclass(frozen=True, eq=False)
class Steered:
    """A drive for `duration` seconds, sampled at `rate` Hz: `speed` (m/s), `steer` (rad, positive to the left, at the wheel that the car's
    steering_ratio belongs to) and the `bank` of the road (rad) as numbers or functions of time.

    `start`: lateral speed (m/s) and yaw rate (rad/s) at the beginning; `step`: the longest of the integration, s.
    """

    duration: float
    rate: float
    speed: Course
    steer: Course
    bank: Course = 0.0
    start: tuple[float, float] = (0.0, 0.0)
    step: float = LONGEST_STEP_S

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        """A machine of joints has no steering wheel."""
        what = "only a car of a few numbers is steered."
        expected = "Tracking, Driven or Prescribed"
        raise DataError(what, where="simulate, manoeuvre", expected=expected, found=f"Steered, of {machine.name}")


@dataclass(frozen=True, eq=False)
class SteeredRun:
    """A drive as it was: the `states` (N, 5) of the equations, the `inputs` (N, 3) speed, steer and ax, and the `way` (N, 3) of the centre
    of mass: east and north (m) and heading (rad)."""

    car: Machine
    t: Array
    states: Array
    inputs: Array
    way: Array

    def read(self, readings: Sequence[str]) -> Array:
        """Readings (N, k) without error, by their names in `READINGS`."""
        chosen = [READINGS.index(name) for name in readings]
        p = packed(self.car.parameters.values, car_described(self.car).tyre, [], chosen)
        state, acting, reading = lateral_functions()[2].prepared(p)
        values = np.empty((len(self.t), len(chosen)))
        for k in range(len(self.t)):
            state[:], acting[:] = self.states[k], self.inputs[k]
            values[k] = reading()
        return values


def steered_run(car: Machine, drive: Steered, progress: Progress = silent) -> SteeredRun:
    """The motion of a car that is steered, by RK4."""
    t = np.arange(round(drive.duration * drive.rate) + 1) / drive.rate
    rule = tableau("RK4")
    p = packed(car.parameters.values, car_described(car).tyre, [], [])
    state, acting, lateral = lateral_functions()[0].prepared(p)
    state[:] = 0.0
    count = int(np.ceil(1.0 / (drive.rate * drive.step)))
    step = 1.0 / (drive.rate * count)

    @lru_cache(maxsize=4)  # stages of a step share their times
    def given(time: float) -> tuple[float, float, float, float]:
        ahead, behind = _at(drive.speed, time + SPEED_DIFFERENCE_S), _at(drive.speed, time - SPEED_DIFFERENCE_S)
        ax = (ahead - behind) / (2.0 * SPEED_DIFFERENCE_S)
        return _at(drive.speed, time), _at(drive.steer, time), ax, _at(drive.bank, time)

    def rate(time: float, moving: Array) -> Array:
        v, r, _, _, heading = moving.tolist()
        V, steer, ax, bank = given(time)
        state[0], state[1], state[BANK] = v, r, bank
        acting[0], acting[1], acting[2] = V, steer, ax
        lateral_rate, yaw_rate = lateral()[:2].tolist()
        c, s = cos(heading), sin(heading)
        return np.array([lateral_rate, yaw_rate, V * c - v * s, V * s + v * c, r])

    moving = np.array([*drive.start, 0.0, 0.0, 0.0])
    x, inputs, way = np.empty((len(t), 5)), np.empty((len(t), 3)), np.empty((len(t), 3))
    for k, time in enumerate(t.tolist()):
        *inputs[k], bank = given(time)
        x[k] = 0.0
        x[k, :2], x[k, BANK], way[k] = moving[:2], bank, moving[2:]
        if not inputs[k, 0] >= SLOWEST or not np.isfinite(moving).all():
            raise SimulationError(
                f"the drive did not reach its end: at {time:.6g} s the speed is {inputs[k, 0]:.4g} m/s.",
                where=car.name,
                expected=f"a speed of at least {SLOWEST:g} m/s, where slip angles mean something",
            )
        progress("driving", time, drive.duration)
        for j in range(count if k < len(t) - 1 else 0):
            moving = explicit_step(rule, rate, time + j * step, moving, step)
    return SteeredRun(car, t, x, inputs, way)


def car_truth(run: SteeredRun) -> Experiment:
    """Everything about a drive without error: its sensors by name, all readings, what acts on it, the bank of the road and its way."""
    names = [*dict.fromkeys((*(s.name for s in run.car.sensors), *READINGS))]
    read_by = {s.name: str(s.on) for s in run.car.sensors}
    values = run.read([read_by.get(name, name) for name in names])
    units: dict[str, str] = dict(zip(READINGS, READING_UNITS, strict=True))
    columns = {n: (values[:, k], units[read_by.get(n, n)]) for k, n in enumerate(names)}
    columns |= {n: (run.inputs[:, k], unit) for k, (n, unit) in enumerate(ACTING.items())}
    columns["bank"] = run.states[:, BANK], "rad"
    columns |= {n: (run.way[:, k], unit) for k, (n, unit) in enumerate(WAY.items())}
    found = {n: Channel(n, run.t, x, unit) for n, (x, unit) in columns.items()}
    return Experiment(found, f"simulation of {run.car.name}", {"source": "simulated", "machine": run.car.name})


def simulate_car(
    car: Machine,
    drive: object,
    rng: np.random.Generator | None,
    sensors: Choice | None = None,
    imperfections: Imperfections | Mapping[str, Imperfection] | None = None,
    progress: Progress = silent,
) -> Experiment:
    """What ``simulate`` does with a car of a few numbers; `drive` must be :class:`Steered`."""
    if not isinstance(drive, Steered):
        what = "a car of a few numbers has no motors on joints."
        where = "simulate, manoeuvre"
        expected = "Steered(duration, rate, speed, steer)"
        raise DataError(what, where=where, expected=expected, found=type(drive).__name__, source=car.name)
    chosen = chosen_sensors(car.sensors, sensors, "simulate")
    truth = car_truth(steered_run(car.with_sensors(chosen), drive, progress))
    read = Experiment({s.name: truth[s.name] for s in chosen}, truth.name)
    log = Imperfections(imperfections_of(chosen, rng)).read(read, rng)
    acts = {n: truth[n] for n in ACTING}
    if imperfections is not None:
        given = imperfections if isinstance(imperfections, Imperfections) else Imperfections(imperfections)
        acts |= given.read(Experiment(acts, truth.name), rng).channels
    return Experiment({**log.channels, **acts}, truth.name, truth.notes)


def _at(course: Course, time: float) -> float:
    return float(course(time)) if callable(course) else float(course)
