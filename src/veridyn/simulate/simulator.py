"""A machine and a manoeuvre in; out comes an Experiment, the same type as a real log.

    truth: machine + manoeuvre → motion, forces       log: truth + sensors → channels

A manoeuvre turns a machine into a motion, with everything known exactly. :class:`Tracking` and :class:`Driven` are forward dynamics: the
forces come from a law, the motion from integrating the machine's own equations, so nothing of the motion is assumed. Dry friction is
rounded off below ``Method.friction_speed``, see :class:`~veridyn.mechanics.system.integrate.Method`: a machine simulated so creeps where a
real one sticks, and at low speed its friction is not yet sign(v). An identification leaves out speeds below some twenty times that
(``Sampling.dead_zone``). :class:`Prescribed` is inverse dynamics: the motion is as prescribed, and the forces are those it takes.

Sensors belong to the machine: each records the channel of its name, with its noise, on its clock. What acts on the machine is recorded
too, in SI units: drives and other loads by their names, forces of the other motors, wrenches and signals, named as
:func:`veridyn.signals.motion.motion` reads them. The machine of a simulation and the model of an identification may be the same code; a
simulation alone can show that noise, clocks, filters and estimators do what they should, not that the mechanics are right.

A car of a few numbers (:mod:`veridyn.mechanics.single_track`) is :class:`Steered`, with tyres that are exact and a bank that is given:

    ẋ = V cos ψ − v sin ψ,    ẏ = V sin ψ + v cos ψ,    ψ̇ = r          x east, y north, ψ heading, from the origin eastwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from math import cos, sin
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, SimulationError
from veridyn.mechanics.control.law import Tracker, feedforward
from veridyn.mechanics.formulated import formulated, in_joints
from veridyn.mechanics.single_track import BANK, READING_UNITS, READINGS, SLOWEST, lateral_functions, packed
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory, clock
from veridyn.mechanics.system.stepper import explicit_step, tableau
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.controller import MOTOR
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive, Force
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Reference
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.model.single_track import car_described
from veridyn.progress import Progress, silent
from veridyn.signals.findings import warn_of_speeds
from veridyn.simulate.imperfection import Imperfection, Imperfections, exact_readings, imperfections_of, wrapped

STIFF = Method("LSODA", rtol=1e-6, atol=1e-7, friction_speed=0.02)  # dry friction that turns round is stiff
SMOOTH = Method(friction_speed=0.02)
MOTION = ("q.*", "base.omega.*", "base.acceleration.*", "base.velocity.*")
INPUTS = ("force.*", "wrench.*", "signal.*", "command.*")
Course = float | Callable[[float], float]
LONGEST_STEP_S = 0.002
SPEED_DIFFERENCE_S = 1e-4  # over which the acceleration is taken from the speed
ACTING = {"speed": "m/s", "steer": "rad", "ax": "m/s^2"}
WAY = {"east": "m", "north": "m", "heading": "rad"}


class Manoeuvre(Protocol):
    """Anything that makes a machine move."""

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory: ...


@dataclass(frozen=True, eq=False)
class Tracking:
    """Joints follow `reference` for `duration` seconds, sampled at `rate` Hz, from its own state at t = 0.

    `kp` and `kd` (n,) are the feedback's gains. `feedforward` is the controller's model, right or wrong;
    without one the feedback carries everything, gravity too. `method` integrates. Of a machine with loops, reference and gains are those
    of its independent coordinates. `inputs`: wrenches and signals that act besides.
    """

    reference: Reference
    duration: float
    rate: float
    kp: ArrayLike
    kd: ArrayLike
    feedforward: Machine | None = None
    method: Method = STIFF
    inputs: Inputs | None = None

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        q, qd, qdd = self.reference.at(0.0)
        check_led(machine, len(q), "Use Driven with forces of your own.")
        own = list(machine.independent)
        t = clock(self.duration, self.rate)
        ahead = None
        if self.feedforward is not None:
            soft = self.method.friction_speed
            ahead = feedforward(self.feedforward, self.reference, 0.0, self.duration, friction_speed=soft)
        law = Tracker(self.reference, np.asarray(self.kp), np.asarray(self.kd), ahead)

        def forces(time: float, q: Array, qd: Array) -> Array:
            out = np.zeros(machine.n)
            out[own] = law(time, q[own], qd[own])
            return out

        if machine.closed:
            first = closed_motion(machine, [0.0], q[None], qd[None], qdd[None])
            q, qd = first.q[0], first.qd[0]
        acting = replace(self.inputs or Inputs(), forces=forces)
        return formulated(machine).integrated(t, q, qd, acting, method=self.method, progress=progress)


@dataclass(frozen=True, eq=False)
class Prescribed:
    """Joints move exactly as `reference` says, for `duration` seconds, sampled at `rate` Hz; the forces are those that takes.

    Dry friction is sign(v) in full, at any speed. Of a machine with loops, the reference is that of its independent coordinates.
    `inputs`: wrenches and signals that act besides, as functions of time.
    """

    reference: Reference
    duration: float
    rate: float
    inputs: Inputs | None = None

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        t = clock(self.duration, self.rate)
        q, qd, qdd = self.reference.at(t)
        check_led(machine, q.shape[1], "Drive the others, and let it move as it will.")
        motion = closed_motion(machine, t, q, qd, qdd) if machine.closed else Motion(t, q, qd, qdd)
        acting = self.inputs or Inputs()

        def sampled(acts: Callable[..., Mapping[str, ArrayLike]] | None) -> dict[str, Array]:
            each = [acts(*x) for x in zip(t.tolist(), motion.q, motion.qd)] if acts is not None else [{}]
            return {name: np.array([one[name] for one in each]) for name in each[0]}

        motion = replace(motion, wrenches=sampled(acting.wrenches), signals=sampled(acting.signals))
        forces = np.full((len(t), machine.n), np.nan)
        forces[:, list(machine.independent)] = inverse_dynamics(machine, motion, "joints")
        progress("simulating", 1.0, 1.0)
        return Trajectory(replace(motion, forces=forces))


@dataclass(frozen=True, eq=False)
class Driven:
    """A machine released at (q, q̇), and its base at `base` where that is free, under `inputs` for `duration` seconds."""

    duration: float
    rate: float
    q: ArrayLike
    qd: ArrayLike
    inputs: Inputs | None = None
    base: BaseState | None = None
    method: Method = SMOOTH

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        t = clock(self.duration, self.rate)
        given = {"base": self.base, "method": self.method, "progress": progress}
        return formulated(machine).integrated(t, self.q, self.qd, self.inputs, **given)


def check_led(machine: Machine, given: int, hint: str) -> None:
    """Refuse a machine that cannot be led along a motion of so many coordinates."""
    faults = Faults()
    if machine.base == "free":
        faults.add("tracking needs a base that is held.", where=machine.name, found="a free base")
    if given != len(machine.independent):
        what = "the reference is not one of this machine."
        faults.add(what, where=machine.name, expected=f"{len(machine.independent)} coordinates", found=f"{given}")
    passive = [machine.coordinates[k] for k in machine.independent if not machine.actuated[k]]
    if passive:
        faults.add("a passive joint cannot be made to follow.", where=machine.name, found=", ".join(passive), hint=hint)
    faults.raise_if_any(DataError)


@checked
def simulate(
    machine: Machine,
    manoeuvre: Manoeuvre,
    *,
    rng: np.random.Generator | None = None,
    sensors: Choice | None = None,
    imperfections: Imperfections | Mapping[str, Imperfection] | None = None,
    progress: Progress = silent,
) -> Experiment:
    """Simulate a machine that carries out a manoeuvre, and record its log.

    Parameters
    ----------
    machine : Machine
        The machine, in either formulation, in whose coordinates the motion is integrated; a :class:`Prescribed` motion is closed and its
        forces found as on the tree. Its sensors record, each with its own noise, clock, delay and bias. A car of a few numbers is
        ``Steered``.
    manoeuvre : Tracking, Driven, Prescribed or Commanded
        What it does, for how long (s), sampled at which rate (Hz).
    rng : numpy.random.Generator, optional
        Needed where a sensor has noise; the seed is the caller's to note.
    sensors : sequence of Sensor or name, or mapping of names to Sensor or None, optional
        A sequence lists the sensors that record, a name standing for the machine's own. A mapping replaces the machine's own by name;
        one set to None is left out. By default all sensors of the machine.
    imperfections : mapping of patterns of channel names to Imperfection, optional
        What else is recorded, and how badly: ``{"q.*": Imperfection(quantum=1e-5), "force.*": Imperfection(noise=0.1)}``. By default what
        acts on the machine is recorded as it is: forces, loads, wrenches, signals and the motion of prescribed coordinates; and, where
        the machine has no sensors, the positions of its joints and the motion of its base.
    progress : callable (task, done, total), optional
        Called with the simulated time.

    Returns
    -------
    Experiment
        The same type as a log from a file.

    Warns
    -----
    DataWarning
        A coordinate moves faster than any joint of a machine: 60 rad/s or 20 m/s to and fro.

    Raises
    ------
    SimulationError
        The motion did not reach its end; the time it reached is named.
    DataError
        The manoeuvre does not belong to the machine, or a sensor or pattern to nothing.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    >>> rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    >>> encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-4)
    >>> pendulum = vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder])
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> log.names, len(log["encoder"])
    (('encoder', 'force.q1'), 101)
    """
    if machine.car is not None:
        return simulate_car(machine, manoeuvre, rng, sensors, imperfections, progress)
    trajectory = manoeuvre.run(machine, progress)
    units = ["rad" if kind == "turning" else "m" for kind in machine.coordinate_kinds]
    warn_of_speeds(machine.coordinates, units, trajectory.motion.qd)
    return record(machine, trajectory, imperfections, rng, sensors)


def record(
    machine: Machine,
    trajectory: Trajectory,
    imperfections: Imperfections | Mapping[str, Imperfection] | None = None,
    rng: np.random.Generator | None = None,
    sensors: Choice | None = None,
) -> Experiment:
    """The log that sensors make of a motion that is known already: many logs of one truth, without simulating again."""
    form, truth = in_joints(machine), exact(machine, trajectory)
    chosen = form.placed(chosen_sensors(form.sensors, sensors, "simulate"))
    readings = exact_readings(machine, trajectory, chosen)
    if imperfections is None:
        recorded = INPUTS if chosen else (*MOTION, *INPUTS)
        kept = {p: Imperfection() for p in recorded if any(fnmatchcase(n, p) for n in truth)}
        acting = list(machine.load_channels)
        held = [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
        others = Imperfections({**kept, **{n: Imperfection() for n in (*acting, *held) if n in truth}})
    else:
        others = imperfections if isinstance(imperfections, Imperfections) else Imperfections(imperfections)
    own = Imperfections(imperfections_of(chosen, rng)).read(Experiment(readings, truth.name), rng)
    log = others.read(truth, rng) if others.by_pattern or not chosen else Experiment({}, truth.name)
    log = Experiment({**own.channels, **log.channels}, truth.name, truth.notes)
    return wrapped(chosen, log)


@checked
def exact(machine: Machine, trajectory: Trajectory) -> Experiment:
    """Every channel of a motion without any error: q., qd., qdd., force., and base., wrench., command. and signal. where they exist.

    A passive coordinate has no force channel, nor has one that is driven by a gain times a signal. The force of a coordinate with a drive
    stands under the drive's name, and other loads under theirs.
    """
    t = trajectory.motion.t
    channels = {name: Channel(name, t, values, unit) for name, values, unit in _truth(machine, trajectory)}
    return Experiment(channels, f"simulation of {machine.name}", {"source": "simulated", "machine": machine.name})


def _truth(machine: Machine, trajectory: Trajectory) -> Iterator[tuple[str, Array, str]]:
    m, loads = trajectory.motion, machine.loads
    turning = [kind == "turning" for kind in machine.coordinate_kinds]
    for prefix, values, power in (("q", m.q, ""), ("qd", m.qd, "/s"), ("qdd", m.qdd, "/s^2")):
        for k, name in enumerate(machine.coordinates):
            yield f"{prefix}.{name}", values[:, k], ("rad" if turning[k] else "m") + power
    driven = {c for e in machine.elements if e.kind in ("drive_gain", MOTOR) for c in e.on}
    drives = {load.coordinate: load.name for load in reversed(loads) if isinstance(load, Drive)}
    for k, name in enumerate(machine.coordinates):
        if m.forces is not None and name in drives:
            yield drives[name], m.forces[:, k], "N*m" if turning[k] else "N"
        elif m.forces is not None and machine.actuated[k] and name not in driven:
            yield f"force.{name}", m.forces[:, k], "N*m" if turning[k] else "N"
    for load in loads:
        for k, name in enumerate(load.channels if load.name in trajectory.loads else ()):
            yield name, trajectory.loads[load.name][:, k], "N" if isinstance(load, Force) else "N*m"
    if m.base is not None:
        rates = {"omega": "rad/s", "omega_dot": "rad/s^2", "acceleration": "m/s^2", "velocity": "m/s"}
        for field, unit in rates.items():
            values = getattr(m.base, field)
            if values is not None:
                for k, axis in enumerate("xyz"):
                    yield f"base.{field}.{axis}", values[:, k], unit
    for body, w in m.wrenches.items():
        for k, component in enumerate(WRENCH_ROWS):
            yield f"wrench.{body}.{component}", w[:, k], "N" if k < 3 else "N*m"
    for name, values in trajectory.commands.items():
        yield f"command.{name}", values, "rad" if machine.kinds[name] == "turning" else "m"
    for name, values in m.signals.items():
        yield f"signal.{name}", values, signal_unit(machine, name)


def signal_unit(machine: Machine, signal: str) -> str:
    """What a signal is measured in: the unit under the gain that multiplies it, as A in N*m/A; "1" where none says."""
    own = {s.name: s.unit for s in machine.states} | {e.signal: "V" for e in machine.elements if e.kind == MOTOR}
    if signal in own:
        return own[signal]
    gains = (e.parameter_name for e in machine.elements if e.kind == "drive_gain" and e.signal == signal)
    units = (machine.parameters.units[machine.parameters.index(name)] for name in gains)
    return next((u for u in (unit.rpartition("/")[2] for unit in units if "/" in unit) if u.isalpha()), "1")


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
        what, expected = "only a car of a few numbers is steered.", "Tracking, Driven or Prescribed"
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
    x, inputs, way = np.zeros((len(t), 5)), np.empty((len(t), 3)), np.empty((len(t), 3))
    for k, time in enumerate(t.tolist()):
        *inputs[k], bank = given(time)
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
        what, expected = "a car of a few numbers has no motors on joints.", "Steered(duration, rate, speed, steer)"
        found = type(drive).__name__
        raise DataError(what, where="simulate, manoeuvre", expected=expected, found=found, source=car.name)
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
