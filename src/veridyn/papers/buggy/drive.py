"""The buggy set on its wheels and driven, and its logs: a constant torque on each rear wheel, the rack ramped to where it stays.

Its tyres read a road as the plane that touches it below the centre of each wheel. The truth, at the rate of the sensors, is stepped by the
trapezoidal rule at a millisecond, half the step of an observer; its test compares it with a Runge-Kutta integration of forward dynamics.
The sensors read it with their noise. Wheels have 40 holes: their angle is read in steps of 9 degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.formulation import Instant, MachineModel
from veridyn.mechanics.ground.road import Profile, Road
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory, integrate
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.steps.march import TreeMarch, TreeSamples, loads_along
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.machine import CHASSIS_CG, FRONT, INDEPENDENT
from veridyn.progress import Progress, silent, tracked

SUSPENSION = INDEPENDENT[:4]
SETTLED_ACCELERATION = 1e-9  # m/s² and rad/s², of a buggy that stands
SETTLING_STEPS = 30
SLOPE_STEP = 1e-6  # m and rad, by which the slopes of accelerations are found
RATE = 500.0  # Hz, of the inertial unit and the wheel sensors
STEPS = 2  # of the truth, from one sample to the next
DRIVES = ("drive_rl", "drive_rr")
BRAKES = {"brake_fl": 10.0, "brake_fr": 10.0, "brake_rl": 5.5, "brake_rr": 5.5}  # N*m a bar (chosen)


@dataclass(frozen=True, eq=False)
class Standing:
    """Where the buggy stands: coordinates q (n,) and the state of its base."""

    q: Array
    base: BaseState


@dataclass(frozen=True, kw_only=True)
class BuggyDrive:
    """How the buggy is driven from rest: seconds, torque on each rear wheel (N*m), place of the rack (m).

    `ramp`: how long the rack takes to get there (s). `then`: times (s), at least a ramp apart, and the places that the rack goes on to.
    `step` of the integrator (RK4) and `rate` of the samples, in s and Hz.
    """

    duration: float = 20.0
    torque: float = 100.0
    rack: float = 0.0
    ramp: float = 0.2
    then: tuple[tuple[float, float], ...] = ()
    step: float = 4e-3
    rate: float = 50.0

    def rack_at(self, t: float) -> tuple[float, float, float]:
        """q, q̇, q̈ of the rack: a ramp with steady accelerations, 10 s³ − 15 s⁴ + 6 s⁵."""
        before, began, after = 0.0, 0.0, self.rack
        for time, place in self.then:
            if t >= time:
                before, began, after = after, time, place
        way, s, T = after - before, min((t - began) / self.ramp, 1.0), self.ramp
        return (
            before + way * s**3 * (10.0 - 15.0 * s + 6.0 * s * s),
            way * 30.0 * s * s * (1.0 - s) ** 2 / T,
            way * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / T**2,
        )

    def inputs(self, road: Road | None = None) -> Inputs:
        """What acts on the machine."""
        torques = {"drive_rl": self.torque, "drive_rr": self.torque}
        return Inputs(prescribed=lambda t: {"rack": self.rack_at(t)}, loads=lambda t: torques, road=road)


def settle(machine: Machine, rack: float = 0.0) -> Standing:
    """The buggy at rest on a flat road: height, roll and pitch of the chassis and the deflections at which nothing accelerates.

    Newton's method on the accelerations of the closed machine; slips of the tyres are zero.
    """
    model, u = tree_model(tree_of(machine)), np.zeros(7)
    u[0] = CHASSIS_CG[2] - FRONT[2] + 0.333  # as in the drawing, front wheels on the road
    places = [machine.coordinates.index(name) for name in SUSPENSION]
    given: dict[str, Array] = dict.fromkeys(INDEPENDENT, np.zeros(1)) | {"rack": np.full(1, rack)}
    closed, loads = close(machine, given, path=False).q[0], model.loads({"q.rack": rack})
    scale = np.full(7, SLOPE_STEP)

    def at(u: Array) -> Instant:
        x = np.zeros((len(u), model.nq))
        x[:, 2], x[:, 7:] = u[:, 0], closed  # what loops tie follows from there
        x[:, 3:7] = [_quaternion(roll, pitch) for roll, pitch in u[:, 1:3]]
        x[:, [7 + k for k in places]] = u[:, 3:]
        unknown = np.tile(model.start_unknown, (len(u), 1))
        return model.instant(x, np.zeros((len(u), model.nv)), unknown, loads, derivative=False)

    rows = [2, 3, 4, *(6 + k for k in places)]  # of the chassis along z, about x and y, and of the four deflections
    for _ in range(SETTLING_STEPS):
        found = at(np.concatenate([[u], u + np.diag(scale), u - np.diag(scale)]))
        a = found.qdd[:, rows]
        if np.abs(a[0]).max() < SETTLED_ACCELERATION:
            q = found.q[0]
            return Standing(q[7:], BaseState(q[:3], q[3:7]))
        J = (a[1:8] - a[8:]).T / (2.0 * scale)
        u = u - np.linalg.solve(J, a[0])
    left = np.abs(at(u[None]).qdd[:, rows]).max()
    raise SimulationError(
        "no equilibrium was found.", where=machine.name, found=f"accelerations up to {left:.3g} m/s^2 or rad/s^2"
    )


def _quaternion(roll: float, pitch: float) -> Array:
    """Of Ry(pitch) Rx(roll)."""
    (cr, cp), (sr, sp) = np.cos([roll / 2, pitch / 2]), np.sin([roll / 2, pitch / 2])
    return np.array([cp * cr, cp * sr, sp * cr, -sp * sr])


def drive(
    machine: Machine,
    how: BuggyDrive,
    *,
    road: Road | None = None,
    start: Standing | None = None,
    states: Mapping[str, float] | None = None,
    engine: Engine = "compiled",
    progress: Progress = silent,
) -> Trajectory:
    """The buggy driven from rest, or from a start."""
    at = start or settle(machine)
    t = np.arange(round(how.duration * how.rate) + 1) / how.rate
    method = Method("RK4", step=how.step)
    return integrate(
        machine,
        t,
        at.q,
        np.zeros_like(at.q),
        how.inputs(road),
        base=at.base,
        states=states,
        method=method,
        engine=engine,
        progress=progress,
    )


def surveyed_road(heights: Array, spacing: float, apart: float) -> Profile:
    """The road through a table of heights (lines, N): every `spacing` metres of x from 0, on lines `apart` metres centred on y = 0.

    Slopes along a line are those of the cubic through neighbours, (z₊ − z₋)/2h; the table repeats itself along x.
    """
    z = np.asarray(heights, dtype=np.float64)
    slopes = (np.roll(z, -1, axis=1) - np.roll(z, 1, axis=1)) / (2.0 * spacing)
    return Profile(z, slopes, spacing, apart)


@dataclass(frozen=True, eq=False)
class BuggyTruth:
    """What happened: times t (N,), configurations q (N, nq), rates and accelerations (N, nv), states of tyres (N, s).

    `torque` (N,): on each rear wheel (N*m); `pressure` (N,): of the brakes (bar), None where they are not used.
    """

    machine: Machine
    how: BuggyDrive
    t: Array
    q: Array
    qd: Array
    qdd: Array
    tyres: Array
    torque: Array
    pressure: Array | None = None

    def reduced(self, model: MachineModel) -> Array:
        """(z, ż) (N, 2f) as an observer reports them."""
        return model.local(self.q, self.qd)

    def first(self, seconds: float) -> BuggyTruth:
        """The beginning of it."""
        n = round(seconds * RATE) + 1
        cut = {name: getattr(self, name)[:n] for name in ("t", "q", "qd", "qdd", "tyres", "torque")}
        return replace(self, **cut, pressure=None if self.pressure is None else self.pressure[:n])

    def readings(self, sensors: Sequence[Sensor]) -> dict[str, Channel]:
        """What sensors would read without any error, at their own rates."""
        table = tree_readout(tree_of(self.machine), sensors)
        values = table.read(self.q, self.qd, self.qdd)
        found = {}
        for k, (name, unit) in enumerate(zip(table.names, table.units, strict=True)):
            rate = table.sensors[table.owner[k]].rate
            every = 1 if rate is None else round(RATE / rate)
            found[name] = Channel(name, self.t[::every], values[::every, k], unit)
        return found

    def log(self, rng: np.random.Generator, sensors: Sequence[Sensor]) -> Experiment:
        """A log with the noise, biases and steps of its sensors, and what drives the buggy: torques and the place of the rack."""
        exact, channels = self.readings(sensors), dict[str, Channel]()
        for sensor in sensors:
            for name in sensor.channels(3):
                c = exact[name]
                bias = sensor.bias_sigma * rng.standard_normal() if sensor.bias_sigma else 0.0
                values = c.values + sensor.bias + bias + sensor.sigma * rng.standard_normal(len(c))
                if sensor.quantum:
                    values = np.round(values / sensor.quantum) * sensor.quantum
                if sensor.wraps:
                    values = (values + np.pi) % (2.0 * np.pi) - np.pi
                channels[name] = Channel(name, c.t, values, c.unit)
        for name in DRIVES:
            channels[name] = Channel(name, self.t, self.torque, "N*m")
        if self.pressure is not None:
            channels |= {c.name: c for c in brake_channels(self.t, self.pressure)}
        rack = np.array([self.how.rack_at(t) for t in self.t.tolist()])
        for k, (symbol, unit) in enumerate((("q", "m"), ("qd", "m/s"), ("qdd", "m/s^2"))):
            channels[f"{symbol}.rack"] = Channel(f"{symbol}.rack", self.t, rack[:, k], unit)
        return Experiment(channels, f"{self.machine.name}, {self.how.duration:g} s")


def brake_channels(t: Array, pressure: Array) -> list[Channel]:
    """Torques of the brakes of a buggy that moves ahead, in proportion to their pressure (bar)."""
    return [Channel(name, t, -gain * pressure, "N*m") for name, gain in BRAKES.items()]


def driven(
    machine: Machine,
    how: BuggyDrive,
    *,
    start: Standing | None = None,
    torque: Callable[[float], float] | None = None,
    pressure: Callable[[float], float] | None = None,
    forces: Mapping[str, float] | None = None,
    road: Road | None = None,
    progress: Progress = silent,
) -> BuggyTruth:
    """The buggy driven from rest at the samples of its sensors.

    `torque`: on each rear wheel (N*m) at a time, that of `how` where not given. `pressure`: of the brakes (bar) at a time; a buggy that
    is braked must move ahead. `forces`: constant forces on coordinates by name besides
    ("base.x": a head wind). `road`: what it drives on, flat at the start; a plane at z = 0 where not given.
    """
    pushed = dict(forces or {})
    model = tree_model(tree_of(machine), unknown=tuple(pushed))
    at = start or settle(machine)
    x, v = np.concatenate([at.base.position, at.base.quaternion, at.q]), np.zeros(model.nv)
    u = model.start_unknown
    u[: len(pushed)] = list(pushed.values())
    count, h = round(how.duration * RATE), 1.0 / (RATE * STEPS)
    inputs, march = _inputs(how, torque, pressure), TreeMarch(model, x, v, u, road)
    given = [inputs(k / RATE + j * h) for k in range(count) for j in range(STEPS)] + [inputs(count / RATE)]
    extra, outside = loads_along(model, {name: [one[name] for one in given] for name in given[0]}, len(given))
    first = model.instant(x, v, u, (extra[0], outside[0]), derivative=False)
    parts = [TreeSamples(first.q[None], first.qd[None], first.qdd[None], u[None])]
    second = round(RATE * STEPS)  # steps of each call, between which progress is reported
    for begin in tracked(range(0, count * STEPS, second), "driving the buggy", progress):
        rows = slice(begin, begin + second + 1)
        parts.append(march.run(h, STEPS, extra[rows], outside[rows]))
    q, qd, qdd, every = (np.concatenate([getattr(p, name) for p in parts]) for name in ("q", "qd", "qdd", "u"))
    t = np.arange(count + 1) / RATE
    torques = np.array([one[DRIVES[0]] for one in given[::STEPS]])
    pressed = None if pressure is None else np.array([pressure(time) for time in t.tolist()])
    return BuggyTruth(machine, how, t, q, qd, qdd, every[:, len(pushed) :], torques, pressed)


def _inputs(
    how: BuggyDrive, torque: Callable[[float], float] | None, pressure: Callable[[float], float] | None
) -> Callable[[float], dict[str, float]]:
    def at(t: float) -> dict[str, float]:
        push = how.torque if torque is None else torque(t)
        place = dict(zip(("q.rack", "qd.rack", "qdd.rack"), how.rack_at(t), strict=True))
        brakes = {} if pressure is None else {name: -gain * pressure(t) for name, gain in BRAKES.items()}
        return {**dict.fromkeys(DRIVES, push), **place, **brakes}

    return at
