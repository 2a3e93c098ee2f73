"""What a live page is sent: a layout once, a row for each sample, and the newest picture of the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shown:
    """A quantity with a band: its name, unit, and the group of plots it stands in ("states", "virtual sensors", "parameters")."""

    name: str
    unit: str
    group: str


@dataclass(frozen=True)
class Layout:
    """What does not change while a page runs.

    `quantities`: those of a row's `values`; `outputs`: those of its innovations, by name, with their units; `sensors`: what can be switched
    off, name → its outputs; `segments`: pairs of point numbers of the machine; `up`: the axis that points upwards; `trail`: the point that
    leaves a line behind, or None; `notes`: sentences about what is shown.
    """

    title: str
    kind: str
    quantities: tuple[Shown, ...]
    outputs: tuple[tuple[str, str], ...] = ()
    sensors: Mapping[str, tuple[str, ...]] | None = None
    segments: tuple[tuple[int, int], ...] = ()
    up: str = "z"
    follow: bool = False
    trail: int | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "kind": self.kind,
            "quantities": [[q.name, q.unit, q.group] for q in self.quantities],
            "outputs": [list(o) for o in self.outputs],
            "sensors": {name: list(outputs) for name, outputs in (self.sensors or {}).items()},
            "segments": [list(s) for s in self.segments],
            "up": self.up,
            "follow": self.follow,
            "trail": self.trail,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Row:
    """Estimates after a sample stamped `t` (s): `values` and `sigma` (k,) in the order of the layout's quantities.

    `innovations` and `expected` (m,): reading minus prediction and the standard deviation of that, NaN where there was no reading; `status`
    (m,): what became of each reading, as :class:`~veridyn.observe.measurements.Status`; `nis`: normalised innovations squared per reading
    used, NaN without any; `arrived`: when the sample came in, seconds since 1970.
    """

    t: float
    values: Sequence[float] | Array
    sigma: Sequence[float] | Array
    arrived: float
    innovations: Sequence[float] | Array = ()
    expected: Sequence[float] | Array = ()
    status: Sequence[int] = ()
    nis: float = float("nan")

    def text(self, number: int) -> str:
        """The row as JSON with its number; numbers that are not finite become null, all others keep every digit."""
        parts = [
            number,
            self.t,
            1000.0 * self.arrived,
            *(numbers(x) for x in (self.values, self.sigma, self.innovations, self.expected)),
            [int(s) for s in self.status],
            numbers([self.nis])[0],
        ]
        return json.dumps(parts, separators=(",", ":"), allow_nan=False)


def numbers(values: Sequence[float] | Array) -> list[float | None]:
    """Plain numbers, None where one is not finite."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    return [float(v) if isfinite(v) else None for v in plain]
