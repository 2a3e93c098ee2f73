"""Three turns over uneven, surveyed ground, in place of the thesis' log of a real drive (Tables 7 and 8), which was never published.

The ground is a table of heights on a grid of a metre, flat where the buggy starts; the observers have a survey of it with an error of
`SURVEY_SIGMA` at each point. Each looks the ground up below the wheels where its model has them, sample by sample, so that a wrong place
means a wrong slope. The truth is known here, which it was not in the thesis.

Table 8 has a receiver with a deviation of a metre. Where start and equations are known exactly such a receiver has nothing to say: a
model that begins in its place stays there. So the observers are told that the start is uncertain, by `START_M` in x and y and `START_RAD`
in yaw, and begin at a place that is drawn from these deviations. Errors count from `CAUGHT_S` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.tree.steps.ground_below import GroundBelow
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import Passing, starting_belief
from veridyn.observe.filters.run import fill
from veridyn.observe.measurements import Measurements
from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth, driven, surveyed_road
from veridyn.papers.buggy.machine import INDEPENDENT, buggy
from veridyn.papers.buggy.observers import (
    FOLLOWING_S,
    INPUTS,
    SPRUNG,
    BuggyObserver,
    Scored,
    observers,
    readings_in,
    score_plain,
    score_track,
    standing_start,
)
from veridyn.papers.buggy.tracking import BuggyTrack, TrackRoom, follow_by_forces
from veridyn.papers.buggy.trials import Workers

GROUND_S = 40.0  # s
TURNS = (
    (0.10, -0.010),
    (0.32, 0.0),
    (0.38, 0.010),
    (0.60, 0.0),
    (0.66, -0.010),
    (0.90, 0.0),
)  # of the drive; m, left is negative
GROUND_TORQUE, GROUND_CRUISE, GROUND_EASED_SHARE = (
    100.0,
    45.0,
    0.5,
)  # N*m on each rear wheel, and from which part of the drive on it is less
LENGTH, LINES = 256, 257  # m and points of the table, a metre apart
WAVES = 12  # that make up the ground
WAVELENGTHS = (10.0, 50.0)  # m
STEEPEST = 0.015  # amplitude of each wave's slope
LEVEL = (5.0, 12.0)  # m from the start: flat up to the first, in full from the second on
SURVEY_SIGMA = 0.002  # m
# What the error of the survey does, chosen on another seed: white accelerations ((m/s²)²/Hz, (rad/s²)²/Hz) of what springs carry and of
# the rest, and a walk (m²/s, rad²/s) of the former, which rests on points that are a few millimetres higher or lower than in the survey.
SPRUNG_DENSITY, PLANAR_DENSITY, SPRUNG_WALK = 0.1, 1e-4, 1e-6
COARSE_GPS = 1.0  # m
START_M, START_RAD = 0.5, np.deg2rad(2.0)  # deviations of the start in x and y, and in yaw
CAUGHT_S = 5.0  # s, from which errors count where the start is uncertain


def three_turns(duration: float = GROUND_S) -> BuggyDrive:
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
    """The drive over uneven ground: truth, model left to itself, and the scores of each observer and of that model ("plain").

    `coarse`: the same drive with a receiver of a metre, from an uncertain start; errors count from `caught` seconds on.
    """

    heights: Array
    truth: BuggyTruth
    plain: BuggyTruth
    scores: Mapping[str, Scored]
    coarse: Mapping[str, Scored]
    caught: float

    def height(self) -> Array:
        """Of the ground below the chassis along the drive (N,)."""
        return surveyed_road(self.heights, 1.0, 1.0).height(self.truth.q[:, 0], self.truth.q[:, 1])


def ground_run(
    model: Machine, resistance: float, duration: float, seed: int, workers: Workers | None = None
) -> GroundRun:
    """One drive of the buggy with the true rolling resistance, and every observer along its two logs."""
    rng, workers = np.random.default_rng([seed, 7]), workers or Workers()
    heights = uneven_heights(rng)
    survey = surveyed_road(heights + SURVEY_SIGMA * rng.standard_normal(heights.shape), 1.0, 1.0)
    how = three_turns(duration)

    def torque(t: float) -> float:
        return GROUND_TORQUE if t < GROUND_EASED_SHARE * duration else GROUND_CRUISE

    truth, plain = workers.shared(
        lambda one: driven(one[0], how, torque=torque, road=one[1]),
        [(buggy(rolling_resistance=resistance), surveyed_road(heights, 1.0, 1.0)), (model, survey)],
    )
    rough_gps = model.with_sensors(coarse_sensors(model))
    start = standing_start(model)
    # Readings and starts of both cases, in the order in which they are drawn.
    log = truth.log(rng, model.sensors)
    cases = {
        "fine": (model, log, start),
        "coarse": (rough_gps, truth.log(rng, rough_gps.sensors), drawn_start(start, rng)),
    }

    def work(job: tuple[str, str]) -> dict[str, Scored]:
        machine, recorded, begin = cases[job[0]]
        observer = rough(observers()[job[1]])
        if job[0] == "coarse":
            observer = uncertain(observer)
        track = along_road(observer, machine, recorded, survey, begin)
        found = {job[1]: score_track(track, truth)}
        if job[1] == "force":
            found["force_alone"] = score_track(follow_by_forces(track, FOLLOWING_S), truth)
        return {"plain": score_plain(track.system, plain, truth), **found}

    jobs = [(case, name) for case in cases for name in observers()]
    scores: dict[str, dict[str, Scored]] = {case: {} for case in cases}
    for job, found in zip(jobs, workers.shared(work, jobs), strict=True):
        scores[job[0]] |= found
    caught = min(CAUGHT_S, 0.5 * duration)
    return GroundRun(heights, truth, plain, scores["fine"], scores["coarse"], caught)


def coarse_sensors(model: Machine) -> list[Sensor]:
    """Those of the model, with a receiver of a metre."""
    return [replace(s, sigma=COARSE_GPS) if s.name == "gps" else s for s in model.sensors]


def drawn_start(start: Mapping[str, float], rng: np.random.Generator) -> dict[str, float]:
    """A start that is off in place and yaw by a draw of its deviations."""
    x, y, yaw = (np.array([START_M, START_M, START_RAD]) * rng.standard_normal(3)).tolist()
    moved = {"base.x": start["base.x"] + x, "base.y": start["base.y"] + y, "base.yaw": start["base.yaw"] + yaw}
    return {**start, **moved}


def uncertain(observer: BuggyObserver) -> BuggyObserver:
    """The observer that is told how uncertain its start is."""
    names = (*BASE_NAMES, *INDEPENDENT)
    own = observer.noise.start
    start = dict(own) if isinstance(own, Mapping) else dict.fromkeys(names, own)
    start |= {"base.x": START_M, "base.y": START_M, "base.yaw": float(START_RAD)}
    return replace(observer, noise=replace(observer.noise, start=start))


def rough(observer: BuggyObserver) -> BuggyObserver:
    """The observer with the process noise of a ground that is known to the error of its survey; the errorEKF's is larger as it is."""
    if observer.course_as_yaw:
        return observer
    names = (*BASE_NAMES, *INDEPENDENT)
    own_walk, own_white = np.split(observer.noise.coordinate_densities(names), 2)
    own = zip(names, own_walk.tolist(), own_white.tolist(), strict=True)
    white, walk = {}, {}
    for name, walking, density in own:
        walk[name] = max(walking, SPRUNG_WALK if name in SPRUNG else 0.0)
        white[name] = max(density, SPRUNG_DENSITY if name in SPRUNG else PLANAR_DENSITY)
    return replace(observer, noise=replace(observer.noise, acceleration=white, position=walk))


def along_road(
    observer: BuggyObserver, model: Machine, log: Experiment, road: Road, start: Mapping[str, float] | None = None
) -> BuggyTrack:
    """An observer along a log, with the road below the wheels of its own belief."""
    t, below = log[INPUTS[0]].t, tuple(f"signal.{name}" for name in model.road_signals)
    machine, log = observer.prepared(model, log, model.sensors)
    setup = observer.setup(start or standing_start(model), (*INPUTS, *below))
    system, q, qd = setup.system(machine)
    seen = setup.seen(system, q)
    begin = starting_belief(seen, system.belief(q, qd), float(t[0]))
    assert isinstance(system.model, TreeModel)
    ground = GroundBelow(system.model, road)
    passing = Passing(setup.method, seen).on_ground(ground, [system.inputs.index(name) for name in ground.names])
    rows, deviations = readings_in(log, system.outputs)
    inputs = np.column_stack([*(log[name].values for name in INPUTS), np.zeros((len(t), len(below)))])
    readings = Measurements(t, rows, system.outputs, np.isfinite(rows), inputs, sigma=deviations)
    room = TrackRoom(system, len(t), len(begin.x))
    fill(room, passing, setup.method, readings, begin)
    return room.track(t, readings.inputs)
