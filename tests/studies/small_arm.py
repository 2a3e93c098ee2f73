"""Two logs of a small arm whose parameters are known, made in a moment: what a study needs to be tried."""

from dataclasses import replace
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np

from veridyn.identify.pipeline.identification import IdentificationStudy, identification
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

RATE = 200.0


def small_arm() -> Machine:
    return Machine.of_bodies(
        [Body("1", placement=MDH(r=0.3)), Body("2", antecedent="1", placement=MDH(alpha=pi / 2, d=0.1))],
        name="small arm",
        inertia={
            "1": from_centre(3.0, [0.02, 0.01, 0.1], np.diag([0.04, 0.03, 0.02])),
            "2": from_centre(2.0, [0.2, 0.01, 0.02], np.diag([0.01, 0.05, 0.04])),
        },
        elements=[damper("q1", 1.5), coulomb("q1", 0.8), damper("q2", 0.9), coulomb("q2", 0.5)],
    )


def log_of(
    truth: Machine, rng: np.random.Generator, name: str, seconds: float = 6.0, noise: float = 0.05
) -> Experiment:
    """A sum of sinusoids, its forces by inverse dynamics, and white noise on them."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, qd, qdd = (np.zeros((len(t), truth.n)) for _ in range(3))
    for k in range(truth.n):
        for harmonic in range(1, 5):
            w = 2.0 * pi * 0.2 * harmonic
            a, phase = 1.2 * rng.uniform(0.3, 1.0) / harmonic, rng.uniform(0.0, 2.0 * pi)
            q[:, k] += a * np.sin(w * t + phase)
            qd[:, k] += a * w * np.cos(w * t + phase)
            qdd[:, k] -= a * w**2 * np.sin(w * t + phase)
    gamma = inverse_dynamics(truth, Motion(t, q, qd, qdd)) + noise * rng.normal(size=q.shape)
    names = truth.coordinates
    values = {f"q.{c}": q[:, k] for k, c in enumerate(names)} | {f"force.{c}": gamma[:, k] for k, c in enumerate(names)}
    units = {f"q.{c}": "rad" for c in names} | {f"force.{c}": "N*m" for c in names}
    return Experiment.from_arrays(t, values, units, name)


def believed(truth: Machine) -> Machine:
    """The same machine with values that are 20 % off."""
    return truth.with_parameters(1.2 * truth.parameters.values)


@lru_cache(maxsize=1)
def small_study() -> IdentificationStudy:
    """One identification of the small arm, shared by the tests that only look at it."""
    rng = np.random.default_rng(7)
    truth = small_arm()
    training, validation = log_of(truth, rng, "training"), log_of(truth, rng, "validation")
    return identification(believed(truth), training, validation, sampling=Sampling(trim=10), truth=truth)


def with_check(study: IdentificationStudy, **changes: Any) -> IdentificationStudy:
    """The same study with another held-out check: `forces`, `before` or `share`."""
    unseen = replace(study.unseen, **changes)
    return replace(study, unseen=unseen, fit=unseen.on(study.fit))
