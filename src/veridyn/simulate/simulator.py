"""A machine and a manoeuvre in; out comes an Experiment, the same type as a real log.

    truth: machine + manoeuvre → motion, forces       log: truth + sensors → channels

A manoeuvre turns a machine into a motion, with everything known exactly. :class:`Tracking` and :class:`Driven` are forward dynamics: the
forces come from a law, the motion from integrating the machine's own equations, so nothing of the motion is assumed. Dry friction is
rounded off below ``Method.friction_speed``, see :class:`~veridyn.mechanics.system.integrate.Method`: a machine simulated so creeps where a
real one sticks, and at low speed its friction is not yet sign(v). An identification leaves out speeds below some twenty times that
(``Sampling.dead_zone``). :class:`Prescribed` is inverse dynamics: the motion is as prescribed, and the forces are those it takes.

Sensors belong to the machine: each records the channel of its name, with its noise, on its clock. What acts on the machine is recorded
too: drives and other loads by their names, forces of the other motors, wrenches and signals, named as
:func:`veridyn.signals.motion.motion` reads them. All in SI units. The machine of a simulation and the
model of an identification may be the same code; what a simulation alone can show is that noise, clocks, filters and
estimators do what they should, not that the mechanics are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.mechanics.control.law import Tracker, feedforward
from veridyn.mechanics.formulated import formulated, in_joints
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory, clock
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.controller import MOTOR
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive, Force
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Reference
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.progress import Progress, silent
from veridyn.signals.findings import warn_of_speeds
from veridyn.simulate.car import simulate_car
from veridyn.simulate.imperfection import Imperfection, Imperfections, exact_readings, imperfections_of, wrapped

STIFF = Method("LSODA", rtol=1e-6, atol=1e-7, friction_speed=0.02)  # dry friction that turns round is stiff
SMOOTH = Method(friction_speed=0.02)
MOTION = ("q.*", "base.omega.*", "base.acceleration.*", "base.velocity.*")
INPUTS = ("force.*", "wrench.*", "signal.*", "command.*")


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
        wrenches, signals = {}, {}
        if acting.wrenches is not None:
            at = [acting.wrenches(*x) for x in zip(t.tolist(), motion.q, motion.qd)]
            wrenches = {body: np.array([w[body] for w in at]) for body in at[0]}
        if acting.signals is not None:
            read = [acting.signals(*x) for x in zip(t.tolist(), motion.q, motion.qd)]
            signals = {name: np.array([s[name] for s in read]) for name in read[0]}
        motion = replace(motion, wrenches=wrenches, signals=signals)
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
    notes = {"source": "simulated", "machine": machine.name}
    return replace(Experiment(channels, f"simulation of {machine.name}"), notes=notes)


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
