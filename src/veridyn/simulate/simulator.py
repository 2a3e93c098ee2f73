"""A machine and a manoeuvre in; out comes an Experiment, the same type as a real log.

    truth: machine + manoeuvre → motion, forces       log: truth + sensors → channels

Sensors belong to the machine: each records the channel of its name, with its noise, on its clock. What acts on the machine is recorded
too: drives and other loads by their names, forces of the other motors, wrenches and signals, named as
:func:`veridyn.signals.motion.motion` reads them. All in SI units. The machine of a simulation and the
model of an identification may be the same code; what a simulation alone can show is that noise, clocks, filters and
estimators do what they should, not that the mechanics are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.mechanics.formulated import in_joints
from veridyn.mechanics.system.simulation import Trajectory
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive, Force, channels
from veridyn.model.machine import Machine
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.progress import Progress, silent
from veridyn.signals.plausibility import warn_of_speeds
from veridyn.simulate.car import simulate_car
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.simulate.manoeuvre import Manoeuvre
from veridyn.simulate.readings import exact_readings, imperfections_of, wrapped

Array = NDArray[np.float64]

MOTION = ("q.*", "base.omega.*", "base.acceleration.*", "base.velocity.*")
INPUTS = ("force.*", "wrench.*", "signal.*")


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
    manoeuvre : Tracking, Driven or Prescribed
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
        acting = [name for load in machine.loads for name in channels(load)]
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
    """Every channel of a motion without any error: q., qd., qdd., force., and base., wrench. and signal. where they exist.

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
    driven = {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
    drives = {load.coordinate: load.name for load in reversed(loads) if isinstance(load, Drive)}
    for k, name in enumerate(machine.coordinates):
        if m.forces is not None and name in drives:
            yield drives[name], m.forces[:, k], "N*m" if turning[k] else "N"
        elif m.forces is not None and machine.actuated[k] and name not in driven:
            yield f"force.{name}", m.forces[:, k], "N*m" if turning[k] else "N"
    for load in loads:
        for k, name in enumerate(channels(load) if load.name in trajectory.loads else ()):
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
    for name, values in m.signals.items():
        yield f"signal.{name}", values, signal_unit(machine, name)


def signal_unit(machine: Machine, signal: str) -> str:
    """What a signal is measured in: the unit under the gain that multiplies it, as A in N*m/A; "1" where none says."""
    gains = (e.parameter_name for e in machine.elements if e.kind == "drive_gain" and e.signal == signal)
    units = (machine.parameters.units[machine.parameters.index(name)] for name in gains)
    return next((u for u in (unit.rpartition("/")[2] for unit in units if "/" in unit) if u.isalpha()), "1")
