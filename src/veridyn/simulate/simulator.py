"""A machine, a manoeuvre and sensors in; out comes an Experiment, the same type as a real log.

    truth: machine + manoeuvre → motion, forces       log: truth + sensors → channels

Channels are named as :func:`veridyn.signals.motion.motion` reads them, in SI units. The machine of a simulation and the
model of an identification may be the same code; what a simulation alone can show is that noise, clocks, filters and
estimators do what they should, not that the mechanics are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.integrate import Trajectory
from veridyn.model.accept import accepts_machine
from veridyn.model.elements import WRENCH_ROWS
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.simulate.manoeuvre import Manoeuvre

Array = NDArray[np.float64]

MEASURED = ("q.*", "force.*", "base.omega.*", "base.acceleration.*", "base.velocity.*", "wrench.*", "signal.*")


@accepts_machine
def simulate(
    machine: Tree,
    manoeuvre: Manoeuvre,
    sensors: Imperfections | Mapping[str, Imperfection] | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress = silent,
) -> Experiment:
    """The log of a machine that carries out a manoeuvre.

    `sensors` by pattern of channel names; without them positions, forces, the base's rates, wrenches and signals are
    recorded as they are. `rng` is needed where a sensor has noise; the seed is the caller's to note.
    """
    return record(machine, manoeuvre.run(machine, progress), sensors, rng)


def record(
    machine: Tree,
    trajectory: Trajectory,
    sensors: Imperfections | Mapping[str, Imperfection] | None = None,
    rng: np.random.Generator | None = None,
) -> Experiment:
    """The log that sensors make of a motion that is known already: many logs of one truth, without simulating again."""
    truth = exact(machine, trajectory)
    if sensors is None:
        kept = {pattern: Imperfection() for pattern in MEASURED if any(n.startswith(pattern[:-1]) for n in truth)}
        return Imperfections(kept).read(truth, None)
    chosen = sensors if isinstance(sensors, Imperfections) else Imperfections(sensors)
    return chosen.read(truth, rng)


def exact(machine: Tree, trajectory: Trajectory) -> Experiment:
    """Every channel of a motion without any error: q., qd., qdd., force., and base., wrench. and signal. where they exist.

    A passive coordinate has no force channel, nor has one that is driven by a gain times a signal.
    """
    t = trajectory.motion.t
    channels = {name: Channel(name, t, values, unit) for name, values, unit in _truth(machine, trajectory)}
    notes = {"source": "simulated", "machine": machine.name}
    return replace(Experiment(channels, f"simulation of {machine.name}"), notes=notes)


def _truth(machine: Tree, trajectory: Trajectory) -> Iterator[tuple[str, Array, str]]:
    m = trajectory.motion
    turning = [kind == "turning" for kind in machine.coordinate_kinds]
    for prefix, values, power in (("q", m.q, ""), ("qd", m.qd, "/s"), ("qdd", m.qdd, "/s^2")):
        for k, name in enumerate(machine.coordinates):
            yield f"{prefix}.{name}", values[:, k], ("rad" if turning[k] else "m") + power
    driven = {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
    for k, name in enumerate(machine.coordinates):
        if m.forces is not None and machine.actuated[k] and name not in driven:
            yield f"force.{name}", m.forces[:, k], "N*m" if turning[k] else "N"
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


def signal_unit(machine: Tree, signal: str) -> str:
    """What a signal is measured in: the unit under the gain that multiplies it, as A in N*m/A; "1" where none says."""
    gains = (e.parameter_name for e in machine.elements if e.kind == "drive_gain" and e.signal == signal)
    units = (machine.parameters.units[machine.parameters.index(name)] for name in gains)
    return next((u for u in (unit.rpartition("/")[2] for unit in units if "/" in unit) if u.isalpha()), "1")
