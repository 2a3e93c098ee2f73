"""Motions of mechanisms under forces that walk at random, with their logs: what a filter that estimates these forces supposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.mechanics.natural.channels import exact_readings
from veridyn.mechanics.natural.equations.dynamics import NaturalState, solve_accelerations
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, NaturalMotion, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.simulate.imperfection import Imperfection, Imperfections


@dataclass(frozen=True)
class Walk:
    """A mechanism whose motors push with forces that walk at random: exactly what a filter that estimates these forces supposes.

    `process_noise`: densities of the walk, and how far the start may be off; the true start is drawn from that.
    """

    process_noise: ProcessNoise
    motors: tuple[str, ...]
    independents: tuple[str, ...]
    samples: int
    step: float

    def setup(self, method: Filter | str) -> ObserverSetup:
        """These settings with a filter."""
        settings = ObserveSettings(
            process_noise=self.process_noise, independents=self.independents, unknown=self.motors, model_error="off"
        )
        return ObserverSetup(filter_of(method, "observe"), settings)


CRANE = Walk(
    ProcessNoise(force=400.0, start=0.05, start_rate=0.05, start_force=20.0), ("motor",), ("x", "swing"), 500, 0.02
)
SPATIAL = Walk(
    ProcessNoise(force=4.0, start=0.05, start_rate=0.1, start_force=2.0),
    ("shoulder_motor", "elbow_motor", "base_motor"),
    ("shoulder", "elbow", "base_b"),
    300,
    0.01,
)


def walked(machine: Machine, walk: Walk, rng: np.random.Generator) -> tuple[NaturalMotion, Experiment]:
    """A true motion under such forces, by the index-3 form, and the log of its sensors with their noise and biases."""
    system = natural_system(machine)
    q, _ = start_of(system)
    model = minimal(system, q, walk.independents, walk.motors)
    f, k = model.f, len(walk.motors)
    z = q[model.z] + float(np.asarray(walk.process_noise.start)) * rng.standard_normal(f)
    zd = float(np.asarray(walk.process_noise.start_rate)) * rng.standard_normal(f)
    at = model.instant(q, z, zd, np.zeros(k), model.loads(), derivative=False)
    first = float(np.asarray(walk.process_noise.start_force)) * rng.standard_normal(k)
    steps = np.sqrt(float(np.asarray(walk.process_noise.force)) * walk.step) * rng.standard_normal((walk.samples, k))
    forces = first + np.cumsum(steps, axis=0)
    clock = walk.step * np.arange(walk.samples)
    values = system.forces.load_values(dict(zip(walk.motors, forces[0])))
    qdd, multipliers = solve_accelerations(system, at.q, at.qd, values)

    def loads(time: float) -> dict[str, ArrayLike]:
        k = min(int(np.ceil(time / walk.step - 1e-9)), walk.samples - 1)
        return dict(zip(walk.motors, forces[k]))

    motion = integrate_natural(
        system,
        clock,
        NaturalState(0.0, at.q, at.qd, qdd, multipliers),
        loads,
        method=NaturalMethod(step=walk.step),
    )
    ideal = exact_readings(system, motion)
    sensors = {
        channel: Imperfection(noise=i.sigma, bias=float(i.bias_sigma * rng.standard_normal()), quantum=i.quantum)
        for i in machine.sensors
        for channel in i.channels(machine.dimension)
    }
    return motion, Imperfections(sensors).read(ideal, rng)
