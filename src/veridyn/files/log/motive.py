"""The table that OptiTrack's Motive writes: rows of names above the numbers, one for the thing, one for the quantity, one for the axis.

    Format Version,1.22,…,Length Units,Meters,…
    ,,Rigid Body,Rigid Body,…
    ,,arm,arm,…
    ,,"180B…","180B…",…
    ,,Rotation,Position,…
    Frame,Time (Seconds),X,X,…

becomes ``Frame [1]``, ``Time (Seconds) [s]``, ``arm.Rotation.X [1]``, ``arm.Position.X [m]``. Components of a quaternion are pure
numbers, angles are in degrees. Versions that put the words Type, Name and ID before their rows are read as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LENGTHS = {"meters": "m", "centimeters": "cm", "millimeters": "mm", "inches": "in", "feet": "ft"}
CLOCK = "time (seconds)"
WORDS = ("rotation", "position", "mean marker error", "marker quality")


@dataclass(frozen=True)
class MotiveHeader:
    """Names of the columns with their units, and the number of the line, from 0, above the first numbers."""

    headers: tuple[str, ...]
    row: int


def motive_headers(table: Sequence[Sequence[str]]) -> MotiveHeader | None:
    """The header of the lines of such a table, as cells; None where it is another one."""
    if not table or not table[0] or table[0][0].lower() != "format version":
        return None
    rows = (k for k, row in enumerate(table) if len(row) > 1 and (row[0].lower(), row[1].lower()) == ("frame", CLOCK))
    at = next(rows, None)
    if at is None:
        return None  # a device, such as a force plate: a plain table below a preamble
    settings = dict(zip(table[0][::2], table[0][1::2]))
    length = LENGTHS.get(settings.get("Length Units", "Meters").lower(), "m")
    turned = "1" if settings.get("Rotation Type", "Quaternion").lower() == "quaternion" else "deg"
    above = [row for row in table[1:at] if len(row) == len(table[at])]
    what = next((row for row in reversed(above) if any(cell.lower() in WORDS for cell in row[2:])), None)
    # Below the row of kinds (Marker, Rigid Body) stands that of names; parents and identifiers follow.
    names = above[1] if len(above) > 1 else [""] * len(table[at])
    if what is None:
        what = [""] * len(table[at])
    headers = ["Frame [1]", f"{table[at][1]} [s]"]
    for name, quantity, axis in list(zip(names, what, table[at]))[2:]:
        unit = turned if quantity.lower() == "rotation" else "1" if "quality" in quantity.lower() else length
        headers.append(".".join(part for part in (name, quantity, axis) if part) + f" [{unit}]")
    return MotiveHeader(tuple(headers), at)
