"""Three turns over uneven, surveyed ground, in place of the thesis' log of a real drive (Tables 7 and 8), which was never published.

The ground is a table of heights on a grid of a metre, flat where the buggy starts; the observers have a survey of it with an error of
`SURVEY_SIGMA` at each point. Each looks the ground up below the wheels where its model has them, sample by sample, so that a wrong
place means a wrong slope. The truth is known here, which it was not in the thesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.tree.model import BASE_NAMES
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.machine import MachineSystem
from veridyn.papers.buggy.drive import BuggyDrive, RoadBelow, surveyed_road
from veridyn.papers.buggy.log import BuggyTruth, driven
from veridyn.papers.buggy.machine import INDEPENDENT, buggy
from veridyn.papers.buggy.observers import (
    FOLLOWING_S,
    INPUTS,
    SUSPENSIONS,
    BuggyObserver,
    followed,
    observers,
    standing_start,
)
from veridyn.papers.buggy.scores import Scored, score_plain, score_track
from veridyn.progress import Progress, silent, tracked

Array = NDArray[np.float64]
DURATION = 40.0  # s
TURNS = (
    (0.10, -0.010),
    (0.32, 0.0),
    (0.38, 0.010),
    (0.60, 0.0),
    (0.66, -0.010),
    (0.90, 0.0),
)  # of the drive; m, left is negative
TORQUE, CRUISE, EASED = 100.0, 45.0, 0.5  # N*m on each rear wheel, and from which part of the drive on it is less
LENGTH, LINES = 256, 257  # m and points of the table, a metre apart
WAVES = 12  # that make up the ground
WAVELENGTHS = (10.0, 50.0)  # m
STEEPEST = 0.015  # amplitude of each wave's slope
LEVEL = (5.0, 12.0)  # m from the start: flat up to the first, in full from the second on
SURVEY_SIGMA = 0.002  # m
SPRUNG = ("base.z", "base.roll", "base.pitch", *SUSPENSIONS)
# What the error of the survey does, chosen on another seed: white accelerations ((m/s²)²/Hz, (rad/s²)²/Hz) of what springs carry and of
# the rest, and a walk (m²/s, rad²/s) of the former, which rests on points that are a few millimetres higher or lower than in the survey.
SPRUNG_DENSITY, PLANAR_DENSITY, SPRUNG_WALK = 0.1, 1e-4, 1e-6


def three_turns(duration: float = DURATION) -> BuggyDrive:
    """Left, right and left again."""
    return BuggyDrive(duration=duration, rack=0.0, then=tuple((share * duration, place) for share, place in TURNS))


def uneven_heights(rng: np.random.Generator) -> Array:
    """(LINES, LENGTH): waves in all directions with random phases, none where the buggy starts; the middle line is y = 0."""
    x, y = np.meshgrid(np.arange(LENGTH, dtype=np.float64), np.arange(LINES, dtype=np.float64) - (LINES - 1) / 2)
    behind = np.where(x > LENGTH / 2, x - LENGTH, x)  # the table repeats itself
    z = np.zeros_like(x)
    for _ in range(WAVES):
        wavelength, towards = rng.uniform(*WAVELENGTHS), rng.uniform(0.0, np.pi)
        number = max(1.0, round(LENGTH * np.cos(towards) / wavelength)) if abs(np.cos(towards)) > 0.02 else 0.0
        along, across = 2.0 * np.pi * number / LENGTH, 2.0 * np.pi * np.sin(towards) / wavelength
        size = STEEPEST / max(np.hypot(along, across), 1e-6)
        z += size * np.sin(along * x + across * y + rng.uniform(0.0, 2.0 * np.pi))
    s = np.clip((np.hypot(behind, y) - LEVEL[0]) / (LEVEL[1] - LEVEL[0]), 0.0, 1.0)
    return z * s * s * (3.0 - 2.0 * s)


@dataclass(frozen=True, eq=False)
class GroundRun:
    """The drive over uneven ground: truth, model left to itself, and the scores of each observer and of that model ("plain")."""

    heights: Array
    truth: BuggyTruth
    plain: BuggyTruth
    scores: Mapping[str, Scored]

    def height(self) -> Array:
        """Of the ground below the chassis along the drive (N,)."""
        return surveyed_road(self.heights, 1.0, 1.0).height(self.truth.q[:, 0], self.truth.q[:, 1])


def ground_run(model: Machine, resistance: float, duration: float, seed: int, progress: Progress = silent) -> GroundRun:
    """One drive of the buggy with the true rolling resistance, and every observer along its log."""
    rng = np.random.default_rng([seed, 7])
    heights = uneven_heights(rng)
    survey = surveyed_road(heights + SURVEY_SIGMA * rng.standard_normal(heights.shape), 1.0, 1.0)
    how = three_turns(duration)

    def torque(t: float) -> float:
        return TORQUE if t < EASED * duration else CRUISE

    true = buggy(rolling_resistance=resistance)
    truth = driven(true, how, torque=torque, road=surveyed_road(heights, 1.0, 1.0), progress=progress)
    plain = driven(model, how, torque=torque, road=survey, progress=progress)
    log = truth.log(rng, model.sensors)
    scores: dict[str, Scored] = {}
    for name, observer in tracked(tuple(observers().items()), "observing on uneven ground", progress):
        system, t, x, P, inputs = along_road(rough(observer), model, log, survey)
        scores.setdefault("plain", score_plain(system, plain, truth))
        scores[name] = score_track(system, t, x, P, truth)
        if name == "force":
            scores["force_alone"] = score_track(system, t, followed(system, t, x, inputs, FOLLOWING_S), P, truth)
    return GroundRun(heights, truth, plain, scores)


def rough(observer: BuggyObserver) -> BuggyObserver:
    """The observer with the process noise of a ground that is known to the error of its survey; the errorEKF's is larger as it is."""
    density = observer.noise.acceleration
    if isinstance(density, Mapping):
        return observer
    names = (*BASE_NAMES, *INDEPENDENT)
    white = {name: max(density, SPRUNG_DENSITY if name in SPRUNG else PLANAR_DENSITY) for name in names}
    walk = {name: SPRUNG_WALK if name in SPRUNG else 0.0 for name in names}
    return replace(observer, noise=replace(observer.noise, acceleration=white, position=walk))


def along_road(
    observer: BuggyObserver, model: Machine, log: Experiment, road: Road
) -> tuple[MachineSystem, Array, Array, Array, Array]:
    """An observer sample by sample, with the road below the wheels of its own belief: system, times, states, covariances, inputs."""
    below = RoadBelow(model, road)
    running, rows, deviations = observer.beside(model, log, standing_start(model), (*INPUTS, *below.names))
    system = running.system
    given, nq = np.column_stack([log[name].values for name in INPUTS]), system.nq
    t, outputs = log[INPUTS[0]].t, system.outputs
    x, P, inputs = [], [], []
    for k, time in enumerate(t.tolist()):
        acting = np.concatenate([given[k], below(running.belief.x[:nq])])
        sigma = {outputs[j]: float(deviations[k, j]) for j in np.flatnonzero(np.isfinite(deviations[k])).tolist()}
        step = running.step(time, rows[k], acting, sigma or None)
        x.append(step.belief.x)
        P.append(step.belief.P)
        inputs.append(acting)
    return system, t, np.array(x), np.array(P), np.array(inputs)
