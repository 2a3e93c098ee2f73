"""What straight lines through a drive show of a car beside its fit: scales of wheel speeds, roll of its axles, and drag while it coasts.

Each line is made of the part of the drive that is learned from, and once more of the rest where that has enough samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.car_fit import SHOWS_NOTHING
from veridyn.inference.parameter_row import ParameterRow, parameter_row
from veridyn.model.machine import Machine
from veridyn.model.single_track import with_estimate
from veridyn.signals.drive import WHEELS, DriveLog, Line, coast_down, roll_distribution, roll_gradients, wheel_scales

COASTING_BRAKE = 0.02  # of the brake's range, and of the throttle's
AXLES = ("front", "rear")


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveLines:
    """`lines` by name, and the same on the rest (`checked`); their parameters (`rows`) and `figures`; `car`: with the drag that shows.

    `not_shown`: what the drive cannot show, and why.
    """

    car: Machine
    lines: Mapping[str, Line]
    checked: Mapping[str, Line]
    rows: tuple[ParameterRow, ...]
    figures: Mapping[str, float]
    not_shown: Mapping[str, str]


def drive_lines(car: Machine, train: DriveLog, rest: DriveLog, axle_rates: Mapping[str, float]) -> DriveLines:
    """All lines that the channels of a drive allow; `axle_rates`: front and rear, N*m/rad, which share the roll moment."""
    lines, checked = _lines(train, car), _lines(rest, car, quiet=True)
    rows, figures, not_shown = list[ParameterRow](), dict[str, float](), dict[str, str]()
    for name, line in lines.items():
        rows.append(_row(name, line))
        if name.startswith("roll_"):
            figures[f"roll_gradient_{name.removeprefix('roll_')}_rms"] = line.rms
        elif name in checked:
            figures[f"{name}_error_percent"] = 100.0 * abs(line.value["scale"] / checked[name].value["scale"] - 1.0)
    if train.has("speed", "ax", "throttle", "brake"):
        car, drag, not_shown = _with_drag(train, car)
        rows += drag
    gradients = {axle: lines[f"roll_{axle}"] for axle in AXLES if f"roll_{axle}" in lines}
    if len(gradients) == len(AXLES) and set(axle_rates) == set(AXLES):
        share, sigma = roll_distribution(gradients, axle_rates)
        rows.append(parameter_row("front_roll_share", "1", share, sigma))
    elif len(gradients) == len(AXLES) and not axle_rates:
        not_shown["front_roll_share"] = "the distribution of the roll moment needs the axles' rates (axle_rates)."
    return DriveLines(car=car, lines=lines, checked=checked, rows=tuple(rows), figures=figures, not_shown=not_shown)


def _lines(drive: DriveLog, car: Machine, quiet: bool = False) -> dict[str, Line]:
    """Those of wheels and axles; with `quiet`, what has too few samples is left out."""
    c, out = drive.channels, dict[str, Line]()
    wheels = {w: c[f"wheel_{w}"] for w in WHEELS if f"wheel_{w}" in c}
    travel = {w: c[f"travel_{w}"] for w in WHEELS if f"travel_{w}" in c}
    try:
        if wheels and drive.has("speed"):
            out |= {f"wheel_{w}_scale": line for w, line in wheel_scales(wheels, c["speed"], drive.rate).items()}
        if travel and drive.has("ay"):
            out |= {
                f"roll_{axle}": line
                for axle, line in roll_gradients(travel, c["ay"], car.parameters["track"], drive.rate).items()
            }
    except DataError:
        if not quiet:
            raise
    return out


def _row(name: str, line: Line) -> ParameterRow:
    if name.startswith("wheel_"):
        return parameter_row(name, "1", line.value["scale"], line.sigma["scale"], 1.0)
    named = f"{name.removeprefix('roll_')}_roll_gradient"
    return parameter_row(named, "rad/(m/s^2)", line.value["gradient"], line.sigma["gradient"])


def _share(values: Array) -> Array:
    """Of the largest value; zero is a pedal that is released."""
    most = float(np.nanmax(np.abs(values)))
    return np.abs(values) / most if most > 0.0 else np.zeros(len(values))


def _with_drag(drive: DriveLog, car: Machine) -> tuple[Machine, list[ParameterRow], dict[str, str]]:
    """The car with the drag that shows while neither throttle nor brake acts, and its rows; or why the drive does not show it."""
    c = drive.channels
    free = (_share(c["throttle"]) < COASTING_BRAKE) & (_share(c["brake"]) < COASTING_BRAKE)
    try:
        line = coast_down(c["speed"], c["ax"], free, drive.rate)
    except DataError as error:
        return car, [], {"drag": f"{error.faults[0].what}"}
    m = car.parameters["mass"]
    value, sigma = m * line.value["drag"], m * line.sigma["drag"]
    rows = [
        parameter_row("drag", "N/(m/s)^2", value, sigma),
        parameter_row("rolling", "m/s^2", line.value["rolling"], line.sigma["rolling"]),
    ]
    if sigma > SHOWS_NOTHING * abs(value) or value < 0.0:
        why = f"coasting leaves {value:.2g} ± {sigma:.2g} N/(m/s)^2; coast through a wider range of speeds."
        return car, rows, {"drag": why}
    return with_estimate(car, "drag", value, sigma), rows, {}
