"""The drives of chapter 5 of paper 003 as the thesis drives them, with its own tuning beside veridyn's.

Tables 5 and 6 are of a vehicle whose wheels are misaligned (section 5.1.1): it needs the rack 4 mm off to go straight, so that its model
alone moves sideways and turns, where a symmetric one has nothing to be wrong about. Both drives are made with the hubs of
:data:`~veridyn.papers.buggy.machine.MISALIGNED`, which the model has, too.

Tables 7 and 8 are of laps: "circular, performing three clockwise turns" (section 5.2), −18.8 rad of yaw, part of it standing (Fig. 71).
:func:`three_laps` stands, pulls away with the rack to the right and goes round three times. Its Hall sensors are those of section 5.2.1:
they count holes, and the engine's vibrations move the discs of the rear axle before their sensors, standing or driving. The printed
errors of the rear wheels, .21 rad against .08 in front, are taken for the size of that.

The thesis prints no deviation for the course ("N.D." in Table 3), and its errors of yaw tell what it was: with :data:`COURSE_SIGMA`, 30
mrad, the gyroscope decides and the misalignment hardly enters; the printed 4.8 mrad on the straight drive are those of a filter that
follows the course. :data:`THESIS_COURSE_SIGMA` is the tuning that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.ground import coarse_sensors, drawn_start, uncertain
from veridyn.papers.buggy.machine import MISALIGNED, buggy
from veridyn.papers.buggy.observers import (
    FOLLOWING_S,
    QUANTITIES,
    WHEEL,
    BuggyObserver,
    Scored,
    best_observer,
    error_ekf,
    force_observer,
    score_plain,
    score_track,
    standing_start,
)
from veridyn.papers.buggy.tracking import BuggyTrack, follow_by_forces

TRUE_RESISTANCE, WRONG_RESISTANCE = 0.015, 0.030  # Table 4: a friction error of .015
RACKS = {"straight": 0.004, "circular": -0.010}  # m: 4 mm to the right, 10 to the left
SECONDS = 20.0
LAP_RACK = 0.020  # m, to the right: a circle of 15 m radius (chosen; the thesis does not print it)
LAPS = 3
STANDING_S, PULLING_S, LAPS_S = 10.0, 20.0, 110.0  # s: standing, until when the torque is full, longest drive
FULL_TORQUE, LAP_TORQUE = 100.0, 45.0  # N*m on each rear wheel
REAR_HALL_SIGMA = 0.21  # rad, Table 7: the rear wheels, whose discs vibrate with the engine
VIBRATION_HZ, PHASE_WALK = 25.0, 1.0  # of the engine at idle, and rad/√s by which its phase wanders (chosen)
THESIS_COURSE_SIGMA = 0.001  # rad: see above
REAR = ("rl", "rr")


@dataclass(frozen=True, eq=False)
class ThesisDrive:
    """A drive of chapter 5: what happened, the model left to itself, the model, its start, and the sensors that record and are assumed."""

    truth: BuggyTruth
    plain: BuggyTruth
    model: Machine
    start: Mapping[str, float]
    vibrates: bool = False

    def log(self, rng: np.random.Generator, sensors: Sequence[Sensor] | None = None) -> Experiment:
        """A log of these sensors, with discs that vibrate where they do."""
        recorded = self.truth.log(rng, self.model.sensors if sensors is None else sensors)
        return with_vibration(self.truth, recorded, rng) if self.vibrates else recorded

    @property
    def sensors(self) -> list[Sensor]:
        """What an observer is told of them."""
        return told_of_vibration(self.model.sensors) if self.vibrates else list(self.model.sensors)


def table_drive(kind: str, duration: float = SECONDS) -> ThesisDrive:
    """The drive of Table 5 ("straight") or 6 ("circular") of the misaligned buggy."""
    how = BuggyDrive(rack=RACKS[kind], duration=duration)
    true, model = (buggy(rolling_resistance=r, toe=MISALIGNED) for r in (TRUE_RESISTANCE, WRONG_RESISTANCE))
    return ThesisDrive(driven(true, how), driven(model, how), model, standing_start(model))


def three_laps(laps: float = LAPS, duration: float = LAPS_S) -> ThesisDrive:
    """Standing, pulling away, and so many clockwise laps, of at most so many seconds."""
    how = BuggyDrive(rack=LAP_RACK, duration=duration)
    true, model = (buggy(rolling_resistance=r) for r in (TRUE_RESISTANCE, WRONG_RESISTANCE))
    truth, plain = (driven(machine, how, torque=lap_torque) for machine in (true, model))
    turned = np.abs(np.unwrap(yaw_of(truth)))
    behind = np.flatnonzero(turned >= 2.0 * np.pi * laps)
    end = float(truth.t[behind[0]]) if len(behind) else duration
    return ThesisDrive(truth.first(end), plain.first(end), model, standing_start(model), vibrates=True)


def lap_torque(t: float) -> float:
    """On each rear wheel (N*m)."""
    return 0.0 if t < STANDING_S else FULL_TORQUE if t < PULLING_S else LAP_TORQUE


def yaw_of(truth: BuggyTruth) -> Array:
    """The chassis' yaw (N,), between −π and π."""
    w, x, y, z = truth.q[:, 3:7].T
    return np.asarray(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def with_vibration(truth: BuggyTruth, log: Experiment, rng: np.random.Generator) -> Experiment:
    """The log with counts of discs on the rear axle that move to and fro: a sine whose phase wanders, of its own on each side."""
    angles = [s for s in truth.machine.sensors if s.name in {f"angle_{c}" for c in REAR}]
    exact = truth.readings(angles)
    return log.replacing(
        *(replace(log[s.name], values=vibrating_angle(truth.t, exact[s.name].values, rng)) for s in angles)
    )


def told_of_vibration(sensors: Sequence[Sensor]) -> list[Sensor]:
    """Sensors of which those of the rear wheels have the deviation of the vibration."""
    rear = tuple(f"angle_{c}" for c in REAR)
    return [replace(s, sigma=REAR_HALL_SIGMA) if s.name in rear else s for s in sensors]


def vibrating_angle(t: Array, angle: Array, rng: np.random.Generator) -> Array:
    """What a disc's count says of its wheel's angle (rad) while the disc vibrates before the sensor."""
    walk = PHASE_WALK * np.sqrt(float(t[1] - t[0])) * rng.standard_normal(len(t))
    phase = rng.uniform(0.0, 2.0 * np.pi) + np.cumsum(walk)
    moved = np.sqrt(2.0) * REAR_HALL_SIGMA * np.sin(2.0 * np.pi * VIBRATION_HZ * t + phase)
    return np.round((angle + moved) / WHEEL.pitch) * WHEEL.pitch


def thesis_observers(vibrates: bool = False) -> dict[str, BuggyObserver]:
    """veridyn's tuning of the errorEKF and the thesis' own, forces, and the best filter; vibrating discs have no edges to be read at."""
    best = best_observer()
    return {
        "error_ekf": error_ekf(),
        "error_ekf_thesis": error_ekf(course_sigma=THESIS_COURSE_SIGMA),
        "force": force_observer(model_error=None),
        "ekf": replace(best, edges=False) if vibrates else best,
    }


def errors(
    drive: ThesisDrive,
    seed: int,
    names: Sequence[str] | None = None,
    *,
    coarse: bool = False,
    seen: Callable[[str, BuggyTrack], None] = lambda name, track: None,
) -> dict[str, Scored]:
    """Observer → its errors along one log; "plain" is the model left to itself, "force_alone" the model that follows by forces.

    `coarse`: the receiver has a deviation of a metre and the start is uncertain (Table 8). `seen` gets the track of each filter.
    "force_alone" is missing where the model that follows by forces comes to a pose that the vehicle cannot have.
    """
    rng = np.random.default_rng([seed, 50 + coarse])
    model, sensors, start = drive.model, drive.sensors, drive.start
    if coarse:
        rough = {s.name: s for s in coarse_sensors(model)}
        sensors = [replace(s, sigma=rough[s.name].sigma) if s.name == "gps" else s for s in sensors]
        log, start = drive.log(rng, list(rough.values())), drawn_start(start, rng)
    else:
        log = drive.log(rng)
    found: dict[str, Scored] = {}
    for name, made in thesis_observers(drive.vibrates).items():
        if names is not None and name not in names:
            continue
        track = (uncertain(made) if coarse else made).track(model, log, start, sensors)
        if name == "force":
            with suppress(SimulationError):  # a model that leaves the track comes to a pose which it cannot have
                found["force_alone"] = score_track(follow_by_forces(track, FOLLOWING_S), drive.truth)
        found[name] = score_track(track, drive.truth)
        found.setdefault("plain", score_plain(track.system, drive.plain, drive.truth))
        seen(name, track)
    return found


def error_figures(found: Mapping[str, Scored], after: float = 0.0) -> dict[str, float]:
    """rms_… and max_… of every quantity and observer from `after` seconds on, and the NEES of each filter."""
    figures = {}
    for name, score in found.items():
        for quantity in QUANTITIES:
            figures[f"rms_{quantity}_{name}"] = score.rms(quantity, after)
            figures[f"max_{quantity}_{name}"] = score.largest(quantity, after)
        if name != "plain":
            figures[f"nees_{name}"] = score.nees
    return figures


def course_less_yaw(truth: BuggyTruth, slowest: float) -> float:
    """The rms of the course over ground less the yaw (rad), where the vehicle is faster than `slowest` (m/s)."""
    read = truth.readings([Sensor("course", "course", "chassis", 1.0), Sensor("yaw", "yaw", "chassis", 1.0)])
    apart = (read["course"].values - read["yaw"].values + np.pi) % (2.0 * np.pi) - np.pi
    fast = np.hypot(truth.qd[:, 0], truth.qd[:, 1]) > slowest
    return float(np.sqrt(np.mean(apart[fast] ** 2)))
