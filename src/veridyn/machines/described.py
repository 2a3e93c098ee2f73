"""Machines whose files come with veridyn, each read once in a process: a machine never changes.

With closed loops: a four-bar linkage, a delta robot and an arm with a parallelogram. In natural coordinates: a closed mechanism in space
with three degrees of freedom, and a crane, with logs to observe.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from veridyn.files.access import PREFIX, shipped
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.equations.dynamics import NaturalState, solve_accelerations
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.measurement import exact_readings
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, NaturalMotion, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal, start_of
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.simulate.imperfection import Imperfection, Imperfections


@cache
def described(file: str) -> Machine:
    """The machine of a model file that comes with veridyn, such as "arm.yaml"."""
    return parse_machine(shipped(PREFIX + file).read_text(encoding="utf-8"), source=file)


def linkage() -> Machine:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return described("linkage.yaml")


def delta() -> Machine:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return described("delta.yaml")


def palletizer() -> Machine:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return described("palletizer.yaml")


def spatial() -> Machine:
    """Two arms that hold a rod between them, as its file describes it: independent coordinates `shoulder`, `elbow` and `base_b`."""
    return described("spatial.yaml")


def crane() -> Machine:
    """A trolley and a swinging load: independent coordinates `x` and `swing`."""
    return described("crane.yaml")


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


SPATIAL = Walk(
    ProcessNoise(force=4.0, start=0.05, start_rate=0.1, start_force=2.0),
    ("shoulder_motor", "elbow_motor", "base_motor"),
    ("shoulder", "elbow", "base_b"),
    300,
    0.01,
)


CRANE = Walk(
    ProcessNoise(force=400.0, start=0.05, start_rate=0.05, start_force=20.0), ("motor",), ("x", "swing"), 500, 0.02
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
        method=NaturalMethod(step=walk.step, engine="compiled"),
    )
    ideal = exact_readings(system, motion)
    sensors = {
        channel: Imperfection(noise=i.sigma, bias=float(i.bias_sigma * rng.standard_normal()), quantum=i.quantum)
        for i in machine.sensors
        for channel in i.channels(machine.dimension)
    }
    return motion, Imperfections(sensors).read(ideal, rng)
