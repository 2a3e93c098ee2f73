"""The buggy set on its wheels and driven, and its logs: a constant torque on each rear wheel, the rack ramped to where it stays.

Its tyres read a road as the plane that touches it below the centre of each wheel. The truth, at the rate of the sensors, is stepped by the
trapezoidal rule at a millisecond, half the step of an observer; its test compares it with a Runge-Kutta integration of forward dynamics.
The sensors read it with their noise. Wheels have 40 holes: their angle is read in steps of 9 degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.formulation import MachineModel
from veridyn.mechanics.ground.road import Profile, Road, fill_surface
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory, integrate
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.machine import CHASSIS_CG, FRONT, INDEPENDENT
from veridyn.progress import Progress, silent, tracked
from veridyn.spatial.rotations import rpy

Array = NDArray[np.float64]
SUSPENSION = INDEPENDENT[:4]
SETTLED_ACCELERATION = 1e-9  # m/s² and rad/s², of a buggy that stands
SETTLING_STEPS = 30
SLOPE_STEP = 1e-6  # m and rad, by which the slopes of accelerations are found
RATE = 500.0  # Hz, of the inertial unit and the wheel sensors
STEPS = 2  # of the truth, from one sample to the next
DRIVES = ("drive_rl", "drive_rr")


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

    Newton's method on the accelerations of forward dynamics; slips of the tyres are zero.
    """
    u = np.zeros(7)
    u[0] = CHASSIS_CG[2] - FRONT[2] + 0.333  # as in the drawing, front wheels on the road
    scale = np.full(7, SLOPE_STEP)
    for _ in range(SETTLING_STEPS):
        moved = np.concatenate([[u], u + np.diag(scale), u - np.diag(scale)])
        a = _accelerations(machine, moved, rack)
        if np.abs(a[0]).max() < SETTLED_ACCELERATION:
            q, position, e = _configuration(machine, u[None], rack)
            return Standing(q[0], BaseState(position[0], e[0]))
        J = (a[1:8] - a[8:]).T / (2.0 * scale)
        u = u - np.linalg.solve(J, a[0])
    left = np.abs(_accelerations(machine, u[None], rack)).max()
    raise SimulationError(
        "no equilibrium was found.", where=machine.name, found=f"accelerations up to {left:.3g} m/s^2 or rad/s^2"
    )


def _configuration(machine: Machine, u: Array, rack: float) -> tuple[Array, Array, Array]:
    """Coordinates, positions and quaternions from height, roll, pitch and four deflections (N, 7)."""
    N = len(u)
    given: dict[str, Array] = {name: u[:, 3 + k] for k, name in enumerate(SUSPENSION)}
    given |= {name: np.zeros(N) for name in INDEPENDENT[4:]} | {"rack": np.full(N, rack)}
    q = close(machine, given, path=False).q
    return (
        q,
        np.column_stack([np.zeros((N, 2)), u[:, 0]]),
        np.array([_quaternion(roll, pitch) for roll, pitch in u[:, 1:3]]),
    )


def _quaternion(roll: float, pitch: float) -> Array:
    """Of Ry(pitch) Rx(roll)."""
    (cr, cp), (sr, sp) = np.cos([roll / 2, pitch / 2]), np.sin([roll / 2, pitch / 2])
    return np.array([cp * cr, cp * sr, sp * cr, -sp * sr])


def _accelerations(machine: Machine, u: Array, rack: float) -> Array:
    """(N, 7): of the chassis along z, about x and y, and of the four deflections, at rest."""
    machine, N = machine, len(u)
    q, position, e = _configuration(machine, u, rack)
    zero, still = np.zeros((N, 3)), np.zeros_like(q)
    base = BaseMotion(zero, zero, zero, zero, position=position, quaternion=e)
    signals = {s.name: np.zeros(N) for s in machine.states}
    found = forward_dynamics(
        machine, Motion(np.arange(N, dtype=np.float64), q, still, still, base, still, signals=signals)
    )
    assert found.base is not None
    up = np.array(
        [(rpy(roll, pitch, 0.0) @ x)[2] for (roll, pitch), x in zip(u[:, 1:3], found.base.acceleration, strict=True)]
    )
    places = [machine.coordinates.index(name) for name in SUSPENSION]
    return np.column_stack([up + machine.gravity[2], found.base.omega_dot[:, :2], found.qdd[:, places]])


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


class RoadBelow:
    """The inputs `names` (3 for each tyre: height at the ground's origin and two slopes) of a machine that stands on a road."""

    def __init__(self, machine: Machine, road: Road) -> None:
        self.names = tuple(f"signal.{name}" for name in machine.road_signals)
        self._instant, self._packed, self._wheels = (
            StateAccelerations(tree_of(machine), complete_values(machine)),
            road.packed,
            len(machine.wheels),
        )

    def __call__(self, x: Array) -> Array:
        """Their values at a configuration (7 + n,): place, attitude and joints."""
        places = self._instant.wheel_places(x[7:], x[:7])
        at, out = np.ascontiguousarray(places.T), np.empty((3, self._wheels))
        fill_surface(self._packed, at[0], at[1], out)
        out[0] -= out[1] * at[0] + out[2] * at[1]
        return out.T.reshape(-1)


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

    `torque` (N,): on each rear wheel (N*m).
    """

    machine: Machine
    how: BuggyDrive
    t: Array
    q: Array
    qd: Array
    qdd: Array
    tyres: Array
    torque: Array

    def reduced(self, model: MachineModel) -> Array:
        """(z, ż) (N, 2f) as an observer reports them."""
        return model.local(self.q, self.qd)

    def first(self, seconds: float) -> BuggyTruth:
        """The beginning of it."""
        n = round(seconds * RATE) + 1
        cut = {name: getattr(self, name)[:n] for name in ("t", "q", "qd", "qdd", "tyres", "torque")}
        return replace(self, **cut)

    def readings(self, sensors: Sequence[Sensor]) -> dict[str, Channel]:
        """What sensors would read without any error, at their own rates."""
        table = tree_readout(self.machine, sensors)
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
        rack = np.array([self.how.rack_at(t) for t in self.t.tolist()])
        for k, (symbol, unit) in enumerate((("q", "m"), ("qd", "m/s"), ("qdd", "m/s^2"))):
            channels[f"{symbol}.rack"] = Channel(f"{symbol}.rack", self.t, rack[:, k], unit)
        return Experiment(channels, f"{self.machine.name}, {self.how.duration:g} s")


def driven(
    machine: Machine,
    how: BuggyDrive,
    *,
    start: Standing | None = None,
    torque: Callable[[float], float] | None = None,
    forces: Mapping[str, float] | None = None,
    road: Road | None = None,
    progress: Progress = silent,
) -> BuggyTruth:
    """The buggy driven from rest at the samples of its sensors.

    `torque`: on each rear wheel (N*m) at a time, that of `how` where not given. `forces`: constant forces on coordinates by name besides
    ("base.x": a head wind). `road`: what it drives on, flat at the start; a plane at z = 0 where not given.
    """
    pushed = dict(forces or {})
    model = tree_model(machine, unknown=tuple(pushed))
    at = start or settle(machine)
    x, v = np.concatenate([at.base.position, at.base.quaternion, at.q]), np.zeros(model.nv)
    u = model.start_unknown
    u[: len(pushed)] = list(pushed.values())
    count, h = round(how.duration * RATE), 1.0 / (RATE * STEPS)
    inputs, below = _inputs(how, torque), None if road is None else RoadBelow(machine, road)

    def acting(t: float) -> tuple[Array, Array]:
        ground = {} if below is None else dict(zip(below.names, below(x).tolist(), strict=True))
        return model.loads({**inputs(t), **ground})

    found = model.instant(x, v, u, acting(0.0), derivative=False)
    kept = [(found.q, found.qd, found.qdd, u)]
    for k in tracked(range(count), "driving the buggy", progress):
        for j in range(STEPS):
            found = model.step(x, v, u, h, acting(k / RATE + j * h), derivative=False)
            x, v, u = found.q, found.qd, found.u
        found = model.instant(x, v, u, acting((k + 1) / RATE), derivative=False)
        kept.append((found.q, found.qd, found.qdd, u))
    q, qd, qdd, every = (np.array(part) for part in zip(*kept, strict=True))
    t = np.arange(count + 1) / RATE
    torques = np.array([inputs(time)[DRIVES[0]] for time in t.tolist()])
    return BuggyTruth(machine, how, t, q, qd, qdd, every[:, len(pushed) :], torques)


def _inputs(how: BuggyDrive, torque: Callable[[float], float] | None) -> Callable[[float], dict[str, float]]:
    def at(t: float) -> dict[str, float]:
        push = how.torque if torque is None else torque(t)
        place = dict(zip(("q.rack", "qd.rack", "qdd.rack"), how.rack_at(t), strict=True))
        return {**dict.fromkeys(DRIVES, push), **place}

    return at
