"""Paper 003, chapters 4 and 5: the vehicle's observers on the drives of the thesis."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from veridyn.papers.buggy.chapter5 import (
    RACKS,
    SECONDS,
    STANDING_S,
    TRUE_RESISTANCE,
    WRONG_RESISTANCE,
    ThesisDrive,
    course_less_yaw,
    error_figures,
    errors,
    table_drive,
    three_laps,
)
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.ground import CAUGHT_S, START_RAD, uncertain
from veridyn.papers.buggy.machine import MISALIGNED, buggy
from veridyn.papers.buggy.observers import QUANTITIES, SLOWEST_COURSE, error_ekf, score_track, standing_start
from veridyn.papers.buggy.study import HEAD_WIND, _windy, real_time_factors
from veridyn.papers.buggy.tracking import BuggyTrack
from veridyn.papers.buggy.trials import Workers, input_run
from veridyn.papers.buggy.virtual_sensors import virtual_figures, virtual_sensors

Figures = Mapping[str, float]
TOE_HALF_WIDTH, COURSE_S = 0.1, 8.0  # of the angle of each hub; s, of which half is faster than a course needs
REAL_TIME_S, QUICK_S = 4.0, 3.0  # s of the drive that the speed is measured on, and of quick drives


def table_5(seed: int, quick: bool = False) -> dict[str, float]:
    """Straight on with misaligned hubs."""
    return _table("straight", seed, quick)


def course(seed: int, quick: bool = False) -> dict[str, float]:
    """The beginning of the straight drive of vehicles whose hubs are turned by a tenth more or less: course less yaw, without noise."""
    rng = np.random.default_rng([seed, 51])
    toe = {corner: angle * (1.0 + TOE_HALF_WIDTH * rng.uniform(-1.0, 1.0)) for corner, angle in MISALIGNED.items()}
    how = BuggyDrive(rack=RACKS["straight"], duration=QUICK_S if quick else COURSE_S)
    truth = driven(buggy(rolling_resistance=TRUE_RESISTANCE, toe=toe), how)
    return {"course_less_yaw": course_less_yaw(truth, 0.5 if quick else SLOWEST_COURSE)}


def table_6(seed: int, quick: bool = False) -> dict[str, float]:
    """The circle of the same vehicle."""
    return _table("circular", seed, quick)


def _table(kind: str, seed: int, quick: bool) -> dict[str, float]:
    drive = table_drive(kind, QUICK_S if quick else SECONDS)
    virtual: dict[str, float] = {}

    def seen(name: str, track: BuggyTrack) -> None:
        virtual.update(virtual_figures(virtual_sensors(track, drive.truth), name))

    found = errors(drive, seed, seen=seen)
    figures = error_figures(found) | virtual
    figures["rms_course_less_yaw"] = course_less_yaw(drive.truth, 0.5 if quick else SLOWEST_COURSE)
    return figures | _ratios(figures, found)


def _ratios(figures: Figures, observers: Mapping[str, object]) -> dict[str, float]:
    """Errors of the model alone over those of each observer, and of the model that follows by forces over that with all corrections."""
    out = {
        f"plain_over_{name}_{q}": figures[f"rms_{q}_plain"] / figures[f"rms_{q}_{name}"]
        for name in observers
        if name != "plain"
        for q in QUANTITIES
    }
    for q in QUANTITIES:
        if "force_alone" in observers:
            out[f"force_alone_over_force_{q}"] = figures[f"rms_{q}_force_alone"] / figures[f"rms_{q}_force"]
        out[f"force_over_error_ekf_{q}"] = figures[f"rms_{q}_force"] / figures[f"rms_{q}_error_ekf"]
    return out


def _laps(quick: bool) -> ThesisDrive:
    """Three laps; the first seconds of them where it must be quick."""
    return three_laps(duration=STANDING_S + QUICK_S) if quick else three_laps()


def table_7(seed: int, quick: bool = False) -> dict[str, float]:
    """Three clockwise laps from standstill, with counts that vibrate."""
    found = errors(_laps(quick), seed)
    figures = error_figures(found)
    return figures | _ratios(figures, found)


def table_8(seed: int, quick: bool = False) -> dict[str, float]:
    """The same with a receiver of a metre, from an uncertain start."""
    found = errors(_laps(quick), seed, coarse=True)
    figures = error_figures(found, 0.0 if quick else CAUGHT_S)
    return figures | _ratios(figures, found)


def printed_rows(seed: int, quick: bool = False) -> dict[str, float]:
    """(89) and (116): from a yaw that is 2° off and known to be uncertain, errors with rows as printed over those with the derivative."""
    model = buggy(rolling_resistance=WRONG_RESISTANCE)
    how = BuggyDrive(rack=-0.010, duration=QUICK_S if quick else SECONDS)
    truth = driven(buggy(rolling_resistance=TRUE_RESISTANCE), how)
    log = truth.log(np.random.default_rng([seed, 52]), model.sensors)
    start = standing_start(model)
    start["base.yaw"] += START_RAD
    made = {"full": error_ekf(), "116": error_ekf(accelerometer="attitude"), "89": error_ekf(position="place")}
    found = {name: score_track(uncertain(one).track(model, log, start), truth) for name, one in made.items()}
    figures = {f"rms_{q}_{name}": score.rms(q) for name, score in found.items() for q in ("x", "y", "yaw")}
    for q in ("x", "y", "yaw"):
        for name in ("116", "89"):
            figures[f"{name}_over_full_{q}"] = figures[f"rms_{q}_{name}"] / figures[f"rms_{q}_full"]
    return figures


def wind(seed: int, quick: bool = False) -> dict[str, float]:
    """A head wind that no model knows: chances that innovations of the receiver along x are white, of five logs."""
    assert HEAD_WIND < 0.0
    return _windy(
        buggy(rolling_resistance=WRONG_RESISTANCE),
        QUICK_S if quick else SECONDS,
        1000 * seed,
        1 if quick else 5,
        Workers(),
    )


def inputs(seed: int, quick: bool = False) -> dict[str, float]:
    """Torque, pressure and rack as their sensors read them, on a drive with braking: errors over those with exact inputs."""
    run = input_run(buggy(rolling_resistance=WRONG_RESISTANCE), TRUE_RESISTANCE, QUICK_S if quick else SECONDS, seed)
    figures = {
        f"rms_{q}_{name}_{case}": score.rms(q)
        for case, scores in (("exact", run.exact), ("measured", run.measured))
        for name, score in scores.items()
        for q in QUANTITIES
    }
    return figures


def real_time(seed: int, quick: bool = False) -> dict[str, float]:
    """Seconds of driving over processor seconds of the errorEKF, in both formulations."""
    model = buggy(rolling_resistance=WRONG_RESISTANCE)
    truth = driven(model, BuggyDrive(duration=REAL_TIME_S))
    return real_time_factors({"tree": model, "natural": model.with_formulation("natural")}, truth, seed)


CASES: dict[str, Callable[[int, bool], Figures]] = {
    "buggy_course": course,
    "buggy_table_5": table_5,
    "buggy_table_6": table_6,
    "buggy_table_7": table_7,
    "buggy_table_8": table_8,
    "buggy_printed_rows": printed_rows,
    "buggy_wind": wind,
    "buggy_inputs": inputs,
    "buggy_real_time": real_time,
}
