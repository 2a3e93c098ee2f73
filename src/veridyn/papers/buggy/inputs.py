"""What acts on the buggy as its sensors have it: paper 003 measures wheel torque, brake pressure and the rack's place (section 4.1.1).

The buggy speeds up on a circle, rolls, and brakes. One torque sensor, on the rear right wheel, stands for both wheels and is wrong by a
gain; a pressure sensor stands for all four brakes; a potentiometer reads the rack, whose rate is that of its command. Each has white
noise. The observers have the same logs twice, with exact inputs and with these, and their settings do not change: what noise of inputs
costs each is what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.papers.buggy.drive import DRIVES, BuggyDrive, BuggyTruth, brake_channels, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import Scored, run_observers, score_track, standing_start
from veridyn.papers.buggy.trials import Workers

RACK = -0.010  # m, to the left
TORQUE, PRESSURE = 200.0, 15.0  # N*m on each rear wheel; bar
EASED, BRAKED, RELEASED = 0.60, 0.70, 0.90  # shares of the drive: torque until the first, brakes between the others
PRESSED_S = 0.1  # s, in which the pressure rises and falls
# Deviations of the sensors (chosen): a strain gauge of 1 % of 300 N*m whose gain is 2 % wrong, a gauge of 1 % of 20 bar, and a
# potentiometer of a thousandth of a stroke of 0.1 m.
TORQUE_SIGMA, TORQUE_GAIN, PRESSURE_SIGMA, RACK_SIGMA = 3.0, 1.02, 0.2, 1e-4
NAMES = ("error_ekf", "force", "ekf")


@dataclass(frozen=True, eq=False)
class InputRun:
    """The drive with braking, and the scores of the observers with `exact` and with `measured` inputs."""

    truth: BuggyTruth
    exact: Mapping[str, Scored]
    measured: Mapping[str, Scored]


def braking(duration: float, resistance: float) -> BuggyTruth:
    """The drive: speeding up, rolling, braking, rolling."""

    def torque(t: float) -> float:
        return TORQUE if t < EASED * duration else 0.0

    def pressure(t: float) -> float:
        up, down = (np.clip((t - share * duration) / PRESSED_S, 0.0, 1.0) for share in (BRAKED, RELEASED))
        return float(PRESSURE * (up - down))

    how = BuggyDrive(duration=duration, rack=RACK)
    return driven(buggy(rolling_resistance=resistance), how, torque=torque, pressure=pressure)


def with_measured_inputs(log: Experiment, truth: BuggyTruth, rng: np.random.Generator) -> Experiment:
    """The log with torque, pressure and rack as their sensors read them."""
    assert truth.pressure is not None  # of a drive with braking
    count = len(truth.t)
    read = TORQUE_GAIN * truth.torque + TORQUE_SIGMA * rng.standard_normal(count)
    torques = [replace(log[name], values=read) for name in DRIVES]
    brakes = brake_channels(truth.t, truth.pressure + PRESSURE_SIGMA * rng.standard_normal(count))
    rack = replace(log["q.rack"], values=log["q.rack"].values + RACK_SIGMA * rng.standard_normal(count))
    return log.replacing(*torques, *brakes, rack)


def input_run(
    model: Machine, resistance: float, duration: float, seed: int, workers: Workers | None = None
) -> InputRun:
    """One drive, and three observers along both of its logs."""
    rng = np.random.default_rng([seed, 8])
    workers = workers or Workers()
    (truth,), start = workers.shared(lambda seconds: braking(seconds, resistance), [duration]), standing_start(model)
    log = truth.log(rng, model.sensors)
    logs = {"exact": log, "measured": with_measured_inputs(log, truth, rng)}

    def work(job: tuple[str, str]) -> Scored:
        return score_track(dict(run_observers(model, logs[job[0]], start, names=(job[1],)))[job[1]], truth)

    jobs = [(case, name) for case in logs for name in NAMES]
    found = dict(zip(jobs, workers.shared(work, jobs), strict=True))
    exact, measured = ({name: found[case, name] for name in NAMES} for case in logs)
    return InputRun(truth, exact, measured)
