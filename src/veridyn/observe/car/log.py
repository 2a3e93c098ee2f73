"""The readings of a drive for the filters of a car: what acts from sample to sample, and which readings may be used.

inputs: speed, steer, ax, and the same as means from each sample to the next
"""

from __future__ import annotations

import numpy as np

from veridyn.errors import DataError, Faults, did_you_mean, part_at
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.measurements import Measurements, Status, clock_faults
from veridyn.signals.drive import DriveLog, common_clock

ACTING = {"speed": "m/s", "steer": "rad", "ax": "m/s^2"}
NEEDED = ("speed", "steer")
SLOWEST_M_S = 4.0  # slower samples are not used: slip angles mean nothing there


def drive_of(car: Machine, log: Experiment) -> DriveLog:
    """A log on one clock, with the speed, the steering and every sensor of the car; every fault at once, by channel."""
    faults, units = Faults(), ACTING | {s.name: s.unit(False) for s in car.sensors}
    for name, unit in units.items():
        if name not in log:
            if name != "ax":  # a log without it is one of a car that is neither driven nor braked
                hint = f"{did_you_mean(name, log.names)} Give sensors= where the log does not have all of them."
                faults.add("the log has no such channel.", where=part_at("channel", name), expected=unit, hint=hint)
        elif log[name].unit != unit:
            faults.add(
                "its unit is not that of the car.", where=part_at("channel", name), expected=unit, found=log[name].unit
            )
        else:
            faults.extend(clock_faults(log[name].t, f"channel '{name}'"))
    faults.raise_if_any(DataError, log.name)
    t, rate, channels = common_clock({n: log[n] for n in units if n in log}, None, -np.inf, np.inf)
    return DriveLog(t=t, channels=channels, rate=rate)


def lateral_measurements(drive: DriveLog, car: Machine) -> Measurements:
    """The readings of the sensors that the drive has; slow samples have none. Each row has six inputs."""
    missing = [n for n in NEEDED if n not in drive.channels]
    outputs = tuple(s.name for s in car.sensors if s.name in drive.channels)
    if missing or not outputs:
        own = ", ".join(s.name for s in car.sensors) or "of which it has none"
        wanted = f"{' and '.join(NEEDED)}, and one of the car's sensors: {own}"
        raise DataError(
            "the log has too few channels for a lateral observer.",
            where="log, columns",
            expected=wanted,
            found=", ".join(drive.channels),
        )
    c = drive.channels
    inputs = np.column_stack([c["speed"], c["steer"], c["ax"] if "ax" in c else np.zeros(len(drive.t))])
    holes = ~np.isfinite(inputs).all(axis=1)
    if holes.all():
        raise DataError("the inputs speed, steer and ax are never there together.", where="log")
    for j in range(inputs.shape[1]):
        good = np.isfinite(inputs[:, j])
        inputs[:, j] = np.interp(drive.t, drive.t[good], inputs[good, j])
    # What acts from one sample to the next is the mean of both; it is used when the next one is there.
    inputs = np.column_stack([inputs, 0.5 * (inputs + np.concatenate([inputs[1:], inputs[-1:]]))])
    values = np.column_stack([c[n] for n in outputs])
    flags = np.where(np.isfinite(values), Status.USED, Status.MISSING)
    flags[(inputs[:, 0] < SLOWEST_M_S) | holes] = Status.MISSING
    return Measurements(drive.t, values, outputs, flags.astype(np.int8), inputs)


def first_yaw_rate(log: Measurements, car: Machine) -> float:
    """The first reading of a gyroscope, zero where there is none."""
    for s in car.sensors:
        if s.on == "yaw_rate" and s.name in log.names:
            column = log.values[:, log.names.index(s.name)]
            good = column[np.isfinite(column)]
            return float(good[0]) if len(good) else 0.0
    return 0.0
