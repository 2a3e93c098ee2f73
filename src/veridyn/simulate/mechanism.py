"""The log of a motion in natural coordinates whose points need no tree: everything about it without error, and its sensors as drawn."""

from __future__ import annotations

import numpy as np

from veridyn.mechanics.measurement import exact_readings
from veridyn.mechanics.natural.driven import MechanismRun
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.readings import imperfection_of


def mechanism_truth(run: MechanismRun) -> Experiment:
    """Everything about a run without error: its sensors' outputs by name, then q.C, qd.C and qdd.C of coordinates, and load.L."""
    m, motion = run.system.mechanism, run.motion
    channels = dict(exact_readings(run.system, motion).channels)
    for prefix, values, per in (("q", motion.q, ""), ("qd", motion.qd, "/s"), ("qdd", motion.qdd, "/s^2")):
        for k, name in enumerate(m.coordinates):
            channel = f"{prefix}.{name}"
            channels[channel] = Channel(channel, motion.t, values[:, k], m.unit_of(name) + per)
    for load in m.loads:
        for k, channel in enumerate(load_channels(run.system, load.name)):
            unit = m.force_unit(load.name)
            channels[channel] = Channel(channel, motion.t, run.loads[load.name][:, k], unit)
    return Experiment(channels, f"simulation of {m.name}", {"source": "simulated", "machine": m.name})


def own_sensors(system: NaturalSystem, rng: np.random.Generator) -> dict[str, Imperfection]:
    """The sensors of a mechanism's file, output by output, each with a bias drawn as its file says."""
    return {
        channel: imperfection_of(i, float(i.bias_sigma * rng.standard_normal()))
        for i in system.mechanism.sensors
        for channel in i.channels(system.mechanism.dimension)
    }


def load_channels(system: NaturalSystem, name: str) -> tuple[str, ...]:
    """The channels of a load: load.L, or load.L.x and so on where it has several components."""
    load = next(load for load in system.mechanism.loads if load.name == name)
    count = 1 if isinstance(load, Drive) else len(np.atleast_1d(np.asarray(load.value)))
    return (f"load.{name}",) if count == 1 else tuple(f"load.{name}.{a}" for a in "xyz"[:count])
