"""The log of a motion in natural coordinates whose points need no tree: everything about it without error, and its sensors as drawn."""

from __future__ import annotations

import numpy as np

from veridyn.mechanics.natural.driven import MechanismRun
from veridyn.mechanics.natural.measurement import exact_readings
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import channels
from veridyn.model.machine import Machine
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.readings import imperfection_of


def mechanism_truth(run: MechanismRun) -> Experiment:
    """Everything about a run without error: its sensors' outputs by name, then q.C, qd.C and qdd.C of coordinates, and load.L."""
    m, motion = run.system.mechanism, run.motion
    found = dict(exact_readings(run.system, motion).channels)
    for prefix, values, per in (("q", motion.q, ""), ("qd", motion.qd, "/s"), ("qdd", motion.qdd, "/s^2")):
        for k, name in enumerate(m.coordinates):
            channel = f"{prefix}.{name}"
            found[channel] = Channel(channel, motion.t, values[:, k], m.unit_of(name) + per)
    for load in m.loads:
        for k, name in enumerate(channels(load)):
            channel, unit = f"load.{name}", m.force_unit(load.name)
            found[channel] = Channel(channel, motion.t, run.loads[load.name][:, k], unit)
    return Experiment(found, f"simulation of {m.name}", {"source": "simulated", "machine": m.name})


def own_sensors(machine: Machine, rng: np.random.Generator) -> dict[str, Imperfection]:
    """The sensors of a machine's file, output by output, each with a bias drawn as its file says."""
    return {
        channel: imperfection_of(i, float(i.bias_sigma * rng.standard_normal()))
        for i in machine.sensors
        for channel in i.channels(machine.dimension)
    }
