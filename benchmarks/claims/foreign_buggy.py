"""Paper 003, chapter 5 on another engine: the drives of the thesis in MuJoCo, whose vehicles are not the model (:mod:`benchmarks.foreign`).

Each seed draws its vehicle: tyres within 10 % of the model's stiffness, mass within 2 %, a rolling resistance that is not the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.buggy_tables import roughened, true_states
from benchmarks.calibration_observers import unit_of
from benchmarks.foreign.buggy import CORNERS, Drive, Manoeuvre, MujocoBuggy, Vehicle
from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.buggy.chapter5 import (
    LAP_RACK,
    LAPS,
    LAPS_S,
    RACKS,
    REAR,
    SECONDS,
    STANDING_S,
    WRONG_RESISTANCE,
    lap_torque,
    thesis_observers,
    told_of_vibration,
    vibrating_angle,
)
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.ground import CAUGHT_S, coarse_sensors, drawn_start, uncertain
from veridyn.papers.buggy.machine import MISALIGNED, buggy
from veridyn.papers.buggy.observers import QUANTITIES, Scored, force_observer, standing_start, wrapped
from veridyn.papers.buggy.tracking import SKIP, BuggyTrack

Figures = Mapping[str, float]
QUICK_S = 3.0  # s


def table_5(seed: int, quick: bool = False) -> dict[str, float]:
    """Straight on with misaligned hubs."""
    return _errors(seed, "straight", quick)


def table_6(seed: int, quick: bool = False) -> dict[str, float]:
    """The circle of the same vehicle."""
    return _errors(seed, "circular", quick)


def table_7(seed: int, quick: bool = False) -> dict[str, float]:
    """Three clockwise laps from standstill, with counts that vibrate."""
    return _errors(seed, "laps", quick)


def table_8(seed: int, quick: bool = False) -> dict[str, float]:
    """The same with a receiver of a metre, from an uncertain start."""
    return _errors(seed, "laps", quick, coarse=True)


def _errors(seed: int, kind: str, quick: bool, coarse: bool = False) -> dict[str, float]:
    found = observed(seed, kind, quick, coarse)
    figures = {}
    for name, score in found.scores.items():
        for q in QUANTITIES:
            figures[f"rms_{q}_{name}"], figures[f"max_{q}_{name}"] = (
                score.rms(q, found.after),
                score.largest(q, found.after),
            )
    for name in found.scores:
        if name != "plain":
            for q in QUANTITIES:
                figures[f"plain_over_{name}_{q}"] = figures[f"rms_{q}_plain"] / figures[f"rms_{q}_{name}"]
    return figures


@dataclass(frozen=True, eq=False)
class Observed:
    """Errors by observer ("plain": the model left to itself) along one drive, from `after` seconds on, and its true states (N, 2f)."""

    true: np.ndarray
    scores: Mapping[str, Scored]
    after: float


def observed(seed: int, kind: str, quick: bool = False, coarse: bool = False) -> Observed:
    """The drive of Table 5 ("straight"), 6 ("circular"), 7 ("laps") or 8 (`coarse`) in MuJoCo, and every observer along its log."""
    laps = kind == "laps"
    toe = None if laps else MISALIGNED
    drive, log = _driven(seed, kind, quick)
    model = buggy(rolling_resistance=WRONG_RESISTANCE, toe=toe)
    start, rng = standing_start(model), np.random.default_rng([seed, 54])
    sensors = told_of_vibration(model.sensors) if laps else list(model.sensors)
    if coarse:
        sigma = {s.name: s.sigma for s in coarse_sensors(model)}["gps"]
        sensors = [replace(s, sigma=sigma) if s.name == "gps" else s for s in sensors]
        log, start = roughened(log, rng), drawn_start(start, rng)
    after = CAUGHT_S if coarse and not quick else 0.0 if coarse else float(drive.t[SKIP])
    true, scores = true_states(drive), dict[str, Scored]()
    observers = {**thesis_observers(laps), "force": force_observer()}
    for name, made in observers.items():
        track = (uncertain(made) if coarse else made).track(model, log, start, sensors)
        scores[name] = _scored(track.system.reduced(track.x), track, true, track.sigma)
        if name == "ekf":
            plain = _plain(kind, drive, track)
            scores["plain"] = _scored(plain, track, true, np.zeros_like(track.sigma))
    names = scores["plain"].names
    return Observed(np.column_stack([true[n][: len(drive.t)] for n in names]), scores, after)


def _driven(seed: int, kind: str, quick: bool) -> tuple[Drive, Experiment]:
    """The drive in MuJoCo, cut after the last lap, and its log."""
    rng = np.random.default_rng([seed, 53])
    vehicle = Vehicle.drawn(rng)
    if kind == "laps":
        seconds = STANDING_S + QUICK_S if quick else LAPS_S
        how = Manoeuvre(seconds, ((0.0, LAP_RACK),), torque=lap_torque)
        once = MujocoBuggy(vehicle).drive(how)
        behind = np.flatnonzero(np.abs(once.yaw) >= 2.0 * np.pi * LAPS)
        drive = once if not len(behind) else _first(once, int(behind[0]) + 1)
    else:
        vehicle = replace(vehicle, toe=tuple(MISALIGNED[c] for c in CORNERS))
        drive = MujocoBuggy(vehicle).drive(Manoeuvre(QUICK_S if quick else SECONDS, ((0.0, RACKS[kind]),)))
    channels = [Channel(name, t, values, unit_of(name)) for name, (t, values) in drive.readings(rng).items()]
    channels += [Channel(name, drive.t, values, unit_of(name)) for name, values in drive.inputs.items()]
    log = Experiment({c.name: c for c in channels}, "buggy in MuJoCo")
    if kind != "laps":
        return drive, log
    rear = [f"angle_{c}" for c in REAR]
    return drive, log.replacing(*(replace(log[n], values=vibrating_angle(drive.t, drive.exact[n], rng)) for n in rear))


def _first(drive: Drive, count: int) -> Drive:
    cut = {name: getattr(drive, name)[:count] for name in ("t", "place", "velocity", "yaw", "yaw_rate", "loads")}
    kept = {name: {k: v[:count] for k, v in getattr(drive, name).items()} for name in ("exact", "inputs")}
    return replace(drive, **cut, **kept)


def _plain(kind: str, drive: Drive, track: BuggyTrack) -> np.ndarray:
    """The model left to itself, as an observer reports states."""
    seconds, laps = float(drive.t[-1]), kind == "laps"
    machine = buggy(rolling_resistance=WRONG_RESISTANCE, toe=None if laps else MISALIGNED)
    how = BuggyDrive(rack=LAP_RACK if laps else RACKS[kind], duration=seconds)
    return driven(machine, how, torque=lap_torque if laps else None).reduced(track.system.model)


def _scored(states: np.ndarray, track: BuggyTrack, true: Mapping[str, np.ndarray], sigma: np.ndarray) -> Scored:
    """Errors of the states that the other engine has, too, with those of the yaw between −π and π."""
    system, names = track.system, tuple(n for each in QUANTITIES.values() for n in each)
    own = [system.states.index(n) for n in names]
    errors = states[:, own] - np.column_stack([true[n][: len(states)] for n in names])
    return Scored(track.t, names, wrapped(errors, names), sigma[:, own], np.nan)


CASES: dict[str, Callable[[int, bool], Figures]] = {
    "foreign_table_5": table_5,
    "foreign_table_6": table_6,
    "foreign_table_7": table_7,
    "foreign_table_8": table_8,
}
