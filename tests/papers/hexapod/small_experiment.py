"""One period of the smooth arm as an experiment for trials: small enough to be repeated many times."""

from __future__ import annotations

import numpy as np

from identify.smooth_arm import path, truth
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.excitation.plant import TreePlant
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.comparison import PeriodicExperiment

RATE = 50.0
S = np.array([0.6, 0.6, 0.2, 0.05])


def experiment(periods: int = 2) -> tuple[PeriodicExperiment, np.ndarray, Motion]:
    """The experiment, its true base parameters, and the motion itself."""
    t = np.arange(500) / RATE
    motion = Motion(t, *path().at(t))
    C = (0.5 * np.eye(4) + 0.5) * np.outer(S, S)
    plant = TreePlant(truth())
    forces = inverse_dynamics(truth(), motion)
    noise = NoiseModel(0.75 * C, 0.5 * np.eye(4)[None]), NoiseModel.white(1e-10 * np.eye(4))
    made = PeriodicExperiment(plant, RATE, 5, motion.q, forces, noise[1], noise[0], periods)
    return made, plant.base.reduce(truth().parameters.values), motion
