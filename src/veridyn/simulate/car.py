"""A car of a few numbers on a road: its driver's speed and steering in, the log of its sensors out.

The equations are those of :mod:`veridyn.mechanics.single_track`, with tyre curves that are exact and a bank that is given; a simulation
with them shows what noise, clocks and estimators do, not that tyres are like this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.single_track.equations import BANK, READINGS, SLOWEST, lateral_functions, packed
from veridyn.mechanics.system.integrate import Trajectory
from veridyn.mechanics.system.stepper import explicit_step
from veridyn.mechanics.system.tableau import tableau
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.model.single_track import car_described
from veridyn.progress import Progress, silent
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.simulate.readings import imperfections_of

Array = NDArray[np.float64]
Course = float | Callable[[float], float]
LONGEST_STEP_S = 0.002
SPEED_DIFFERENCE_S = 1e-4  # over which the acceleration is taken from the speed
ACTING = {"speed": "m/s", "steer": "rad", "ax": "m/s^2"}


@dataclass(frozen=True, eq=False)
class Steered:
    """A drive for `duration` seconds, sampled at `rate` Hz: `speed` (m/s), `steer` (rad, positive to the left, at the wheel that the car's
    steering_ratio belongs to) and the `bank` of the road (rad) as numbers or functions of time.

    `start`: lateral speed (m/s) and yaw rate (rad/s) at the beginning.
    """

    duration: float
    rate: float
    speed: Course
    steer: Course
    bank: Course = 0.0
    start: tuple[float, float] = (0.0, 0.0)

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        """A machine of joints has no steering wheel."""
        what = "only a car of a few numbers is steered."
        expected = "Tracking, Driven or Prescribed"
        raise DataError(what, where="simulate, manoeuvre", expected=expected, found=f"Steered, of {machine.name}")


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
    car = car.with_sensors(chosen)
    t = np.arange(round(drive.duration * drive.rate) + 1) / drive.rate
    p = packed(car.parameters.values, car_described(car).tyre, [], [READINGS.index(str(s.on)) for s in chosen])
    x, inputs = _states(car.name, drive, t, p, progress)
    _, _, h, _ = lateral_functions()
    values = np.array([h(state, u, 0.0, p) for state, u in zip(x, inputs, strict=True)]).reshape(len(t), len(chosen))
    read = {s.name: Channel(s.name, t, values[:, k], s.unit(False)) for k, s in enumerate(chosen)}
    acts = {n: Channel(n, t, inputs[:, k], unit) for k, (n, unit) in enumerate(ACTING.items())}
    name, notes = f"simulation of {car.name}", {"source": "simulated", "machine": car.name}
    own = Imperfections(imperfections_of(chosen, rng)).read(Experiment(read, name), rng)
    if imperfections is not None:
        given = imperfections if isinstance(imperfections, Imperfections) else Imperfections(imperfections)
        acts |= given.read(Experiment(acts, name), rng).channels
    return Experiment({**own.channels, **acts}, name, notes)


def _states(name: str, drive: Steered, t: Array, p: Array, progress: Progress) -> tuple[Array, Array]:
    """States (N, 5) and inputs (N, 3) at the samples, by RK4 in steps of `LONGEST_STEP_S` at most."""
    f, rule = lateral_functions()[0], tableau("RK4")
    count = int(np.ceil(1.0 / (drive.rate * LONGEST_STEP_S)))
    step = 1.0 / (drive.rate * count)

    def acting(time: float) -> Array:
        ahead, behind = _at(drive.speed, time + SPEED_DIFFERENCE_S), _at(drive.speed, time - SPEED_DIFFERENCE_S)
        ax = (ahead - behind) / (2.0 * SPEED_DIFFERENCE_S)
        return np.array([_at(drive.speed, time), _at(drive.steer, time), ax])

    def whole(time: float, moving: Array) -> Array:
        state = np.zeros(5)
        state[:2], state[BANK] = moving, _at(drive.bank, time)
        return state

    def rate(time: float, moving: Array) -> Array:
        return f(whole(time, moving), acting(time), time, p)[:2]

    moving, x, inputs = np.array(drive.start, dtype=np.float64), np.empty((len(t), 5)), np.empty((len(t), 3))
    for k, time in enumerate(t.tolist()):
        x[k], inputs[k] = whole(time, moving), acting(time)
        if not inputs[k, 0] >= SLOWEST or not np.isfinite(moving).all():
            what = f"the drive did not reach its end: at {time:.6g} s the speed is {inputs[k, 0]:.4g} m/s."
            expected = f"a speed of at least {SLOWEST:g} m/s, where slip angles mean something"
            raise SimulationError(what, where=name, expected=expected)
        progress("driving", time, drive.duration)
        for j in range(count if k < len(t) - 1 else 0):
            moving = explicit_step(rule, rate, time + j * step, moving, step)
    return x, inputs


def _at(course: Course, time: float) -> float:
    return float(course(time)) if callable(course) else float(course)
