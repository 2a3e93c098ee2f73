"""A first study file of a car of a few numbers from its model and the log of a drive: columns matched by name, every guess marked as one.

A unit is the header's, or the usual one of the channel in whose range the numbers lie. Signs are not guessed: the checks of the study
find a steering or sides that are the wrong way round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, FileError
from veridyn.files.log.survey import Survey, survey
from veridyn.files.units import to_si
from veridyn.model.machine import Machine
from veridyn.model.single_track import uncertain
from veridyn.observe.car.log import NEEDED
from veridyn.signals.drive import CHANNELS
from veridyn.studies.config.clock_guess import time_column, time_lines
from veridyn.studies.config.guessing import Guess
from veridyn.studies.config.template import beside, column_text, wrapped
from veridyn.studies.config.text import flow

Array = NDArray[np.float64]
Kind = Literal["identify", "observe"]
WHEELS = {
    "fl": ("fl", "front_left", "left_front", "lf"),
    "fr": ("fr", "front_right", "right_front", "rf"),
    "rl": ("rl", "rear_left", "left_rear", "lr"),
    "rr": ("rr", "rear_right", "right_rear"),
}
# What a channel may be called beside its own name, in words joined by underscores; parts of a wheel follow.
CALLED: Mapping[str, tuple[str, ...]] = {
    "speed": ("vx", "v", "velocity", "vehicle_speed", "car_speed", "longitudinal_speed", "longitudinal_velocity"),
    "steer": ("steering", "delta", "steering_angle", "steer_angle", "steering_wheel_angle", "swa", "road_wheel_angle"),
    "ax": ("a_x", "acc_x", "accx", "longitudinal_acceleration", "long_acc"),
    "ay": ("a_y", "acc_y", "accy", "lateral_acceleration", "lat_acc"),
    "yaw_rate": ("yawrate", "gyro_z", "gyroz", "omega_z", "wz", "r", "yaw_velocity"),
    "roll": ("roll_angle", "phi"),
    "sideslip": ("beta", "slip_angle", "sideslip_angle", "side_slip", "side_slip_angle"),
    "latitude": ("lat", "gps_latitude", "gps_lat"),
    "longitude": ("lon", "long", "lng", "gps_longitude", "gps_lon"),
    "heading": ("yaw", "psi", "yaw_angle", "course"),
    "throttle": ("throttle_position", "accelerator", "gas"),
    "brake": ("brake_pressure", "brake_pedal"),
    **{f"wheel_{w}": tuple(f"{p}_{n}" for n in names for p in ("wheel_speed", "wheel")) for w, names in WHEELS.items()},
    **{
        f"travel_{w}": tuple(f"{p}_{n}" for n in names for p in ("suspension", "damper")) for w, names in WHEELS.items()
    },
}
# Units that a channel without one may have: each with the largest size that is usual in it.
USUAL: Mapping[str, tuple[tuple[str, float], ...]] = {
    "m/s": (("m/s", 90.0), ("km/h", np.inf)),
    "rad": (("rad", 13.0), ("deg", np.inf)),  # two turns of a steering wheel
    "rad/s": (("rad/s", 4.0), ("deg/s", np.inf)),
    "m/s^2": (("m/s^2", np.inf),),
    "m": (("m", np.inf),),
    "": (("1", np.inf),),
}


def car_template(file: Path, car: Machine, logs: list[Path], study: Path, kind: Kind | None = None) -> str:
    """The text of a study file beside which model and log are found; comments say what was guessed and what may be changed.

    `kind`: by default a car with uncertain parameters is identified, another is observed.
    """
    if len(logs) > 1:
        hint = "Write one study, and name the others under log.files with their parts."
        raise FileError(
            "a drive is guessed from one log.",
            where="logs",
            expected="one file",
            found=", ".join(f.name for f in logs),
            hint=hint,
            source=file.name,
        )
    seen = survey(logs[0])
    time = "" if seen.clocks else time_column(seen.columns)
    found = _guesses(seen, time)
    has = {g.channel for g in found}
    wanted = kind or ("identify" if uncertain(car) else "observe")
    missing = [n for n in NEEDED if n not in has]
    sensors = [s.name for s in car.sensors]
    missing += [] if has & {*sensors} else [" or ".join(sensors)]
    left = [n for n in seen.columns if n != time and n not in {g.column for g in found}]
    lines = [
        f"# A study of the car '{car.name}'. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: veridyn {wanted} {study.name}. Every setting with its default: veridyn {wanted} {study.name} --show",
        "veridyn: 1",
        f"kind: {wanted}",
        f"name: {re.sub(r'[^A-Za-z0-9_.-]+', '-', car.name).strip('-.') or 'drive'}",
        f"model: {{file: {flow(beside(file, study))}, formulation: single_track}}",
        "",
        "log:",
        f"  file: {flow(beside(logs[0], study))}",
        *([] if seen.clocks else time_lines(time, seen.columns, seen.units, seen.has_header, seen.decimal)),
        "  # rate: 25 # Hz of the samples that are used; that of the log if left out",
        "  columns: # channel: column [unit]; x forward, y left, z up, steering positive to the left"
        if found
        else "  columns: {} # channel: column [unit]",
        *(f"    {g.channel}: {column_text(g)}" + (f" # {g.why}" if g.why else "") for g in found),
        *(wrapped("    # not found, and needed: ", missing) if missing else []),
        *(wrapped("    # columns not used: ", left) if left else []),
        "",
        "# training: [0, 60] # s of the log that parameters are fitted to; its first 70 % if left out"
        if wanted == "identify"
        else "# training: [0, 60] # s of the log that uncertain parameters are identified from first; not, if left out",
        "noise: # what the equations leave out; tuned: found with the parameters",
        "  tuned: [slip_error, bank]",
    ]
    if wanted == "observe":
        lines.append("virtual: [sideslip, front_force, rear_force] # what nobody measured")
    return "\n".join(lines) + "\n"


def _guesses(seen: Survey, time: str) -> list[Guess]:
    """Channels with their columns: a name that is the channel's own first, then one that it may have; a column is given away once."""
    free = [n for n in seen.columns if n != time]
    found: dict[str, tuple[str, str]] = {}
    for names, why in (({n: (n,) for n in CHANNELS}, ""), (CALLED, "guessed by its name")):
        for channel, unit in CHANNELS.items():
            if channel in found:
                continue
            fits = [c for c in free if _called(c) in names.get(channel, ()) and _fits(seen.units.get(c, ""), unit)]
            if len(fits) == 1:
                found[channel] = fits[0], why
                free.remove(fits[0])
    made = []
    for channel in CHANNELS:
        if channel in found:
            column, why = found[channel]
            unit, because = _unit(channel, seen.columns[column], seen.units.get(column, ""))
            made.append(Guess(channel, column, unit, "; ".join(w for w in (why, because) if w)))
    return made


def _called(column: str) -> str:
    """The words of a column, in small letters, joined by underscores."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return "_".join(w for w in re.split(r"[^a-z0-9]+", apart.lower()) if w)


def _fits(given: str, unit: str) -> bool:
    """Whether a header's unit can be that of a channel; without one, or for a channel of any unit, it can."""
    if not given or not unit:
        return True
    try:
        return to_si(1.0, given)[1] == unit
    except DataError:
        return False


def _unit(channel: str, x: Array, given: str) -> tuple[str, str]:
    if given:
        return given, ""
    if channel in ("latitude", "longitude"):
        return "deg", "unit guessed"
    finite = np.abs(x[np.isfinite(x)])
    most = float(np.quantile(finite, 0.99)) if len(finite) else 0.0
    unit = next(unit for unit, size in USUAL[CHANNELS[channel]] if most <= size)
    return unit, f"unit guessed: its numbers go up to {most:.3g}"
