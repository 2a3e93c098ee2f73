"""Logs of a buggy that is driven: the truth at the rate of its sensors, and what these read of it with their noise.

The truth is stepped by the trapezoidal rule at a millisecond, half the step of an observer; its test compares it with a Runge-Kutta
integration of forward dynamics. Wheels have 40 holes: their angle is read in steps of 9 degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.formulation import MachineModel
from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.tree.model import tree_model
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.drive import BuggyDrive, RoadBelow, Standing, settle
from veridyn.progress import Progress, silent, tracked

Array = NDArray[np.float64]
RATE = 500.0  # Hz, of the inertial unit and the wheel sensors
STEPS = 2  # of the truth, from one sample to the next
DRIVES = ("drive_rl", "drive_rr")


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
