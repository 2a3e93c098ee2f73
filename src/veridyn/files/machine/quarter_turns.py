"""Angles of a file that are quarter turns, but for the digits they were written with: 1.5708, 3.14159, −1.57.

An angle that is off a right angle by 4e-6 rad makes a machine in which, to rounding, more parameters are identifiable than any motion can
show: axes that are perpendicular do not quite decouple. An angle is taken for k π/2 where its decimal digits are those of k π/2, rounded
or cut off, or where it differs by no more than single precision resolves; no machine is built to that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from veridyn.errors import DataWarning, Fault, FileError, warn

QUARTER = math.pi / 2
PI = Decimal("3.14159265358979323846264338327950288")
LEAST_DECIMALS = 2  # of an angle that may be a rounded quarter turn: 1.57 is one, 1.6 may be anything
SINGLE_PRECISION = 2.0**-23  # relative resolution
SHOWN_ANGLES = 4  # different ones, in a warning
ROUNDED = "its angle is a quarter turn that was rounded, and is taken as exact."
QUIET_CHANGE_RAD = 1e-8  # a smaller change is not reported: 10 nm at a distance of 1 m


def quarter_turn(angle: float) -> float:
    """k π/2, k not zero, where `angle` (rad) is that number as it was written down, else `angle` itself."""
    k = round(angle / QUARTER)
    exact = k * QUARTER
    if k == 0:
        return angle  # small angles are written with all their digits
    if abs(angle - exact) <= SINGLE_PRECISION * abs(exact):
        return exact
    written = Decimal(repr(angle))
    exponent = written.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent < LEAST_DECIMALS:
        return angle
    place = Decimal(1).scaleb(exponent)
    true = k * PI / 2
    return exact if written in (true.quantize(place), true.quantize(place, ROUND_DOWN)) else angle


def snap_quarter_turns(angles: Sequence[float]) -> tuple[list[float], str]:
    """Angles (rad) with rounded quarter turns made exact, and what was changed in words, empty where nothing to speak of was."""
    exact = [quarter_turn(a) for a in angles]
    changed = [
        f"{a!r} is {_multiple(round(e / QUARTER))}"
        for a, e in zip(angles, exact, strict=True)
        if abs(a - e) > QUIET_CHANGE_RAD
    ]
    return exact, ", ".join(dict.fromkeys(changed))


def _multiple(k: int) -> str:
    """k π/2 in words: π/2, −π, 3π/2."""
    sign, n = "−" if k < 0 else "", abs(k)
    if n % 2 == 0:
        return f"{sign}{'' if n == 2 else n // 2}π"
    return f"{sign}{'' if n == 1 else n}π/2"


def warn_of_rounded_angles(notes: Sequence[Fault], source: str) -> None:
    """One DataWarning for all notes of a model file: it names the first place and counts the others."""
    if not notes:
        return
    first, listed = notes[0], list(dict.fromkeys(note.found for note in notes))
    found = "; ".join(listed[:SHOWN_ANGLES]) + ("; …" if len(listed) > SHOWN_ANGLES else "")
    if len(notes) > 1:
        first = replace(first, where=f"{first.where} (line {first.line}) and {len(notes) - 1} more", line=None, at=())
    warn(DataWarning, Fault(str(FileError(replace(first, found=found), source))))
