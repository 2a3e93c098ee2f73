"""Elasto-kinematic tables: how a wheel moves and turns with clearance, steering rack and force.

Five quantities of each wheel: half track (+y), wheelbase (+x), toe (about z), camber (about x), kingpin angle (about y), in this
order. Each is table(clearance) + table(rack) + compliance · (Fx, Fy, Mz), the last through a well damped lag because bushings
have some inertia. A table is read by a natural cubic spline, so that speeds and accelerations exist, and goes on straight
beyond its ends. Settings are those of a left wheel; the right one is its mirror image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.mechanics.compiled import core, kept, lean
from veridyn.papers.car.simulator.lanes import (
    Lanes,
    below,
    each,
    four,
    least,
    most,
    of_four,
    size,
    transposed,
    where,
)

Rows = tuple[tuple[float, ...], ...]

QUANTITIES = ("half_track", "wheelbase", "toe", "camber", "kingpin")
# What a mirror in the plane y = 0 does to half track, wheelbase, toe, camber, kingpin, and to Fx, Fy, Mz.
MIRROR = np.array([-1.0, 1.0, -1.0, -1.0, 1.0])
MIRROR_FORCE = np.array([1.0, -1.0, -1.0])


class TableNumbers(NamedTuple):
    """Polynomials of the tables: (wheel, quantity, interval, 4), highest power first, on even grids (starts, steps)."""

    clearance: Array
    clearance_grid: Array
    rack: Array
    rack_grid: Array
    compliance: Array
    lag: Array


@dataclass(frozen=True)
class AxleTables:
    """Tables of a left wheel: each row of `by_clearance` and `by_rack` is one of the five quantities on its even grid.

    `clearance` and `rack` are the ends of the grids, clearance being relative to the design clearance (m), rack the mean angle
    that the rack asks of the wheels (rad). `compliance` (5 × 3) per Fx, Fy (N) and Mz (N m) at the wheel centre.
    """

    clearance: tuple[float, float] = (-0.1, 0.1)
    by_clearance: Rows = ((0.0, 0.0),) * 5
    rack: tuple[float, float] = (-0.6, 0.6)
    by_rack: Rows = ((0.0, 0.0),) * 5
    compliance: Rows = ((0.0, 0.0, 0.0),) * 5

    def __post_init__(self) -> None:
        faults = Faults()
        for name, columns in (("by_clearance", 0), ("by_rack", 0), ("compliance", 3)):
            rows = getattr(self, name)
            lengths = {len(r) for r in rows}
            if len(rows) != 5 or len(lengths) != 1 or min(lengths) < 2 or (columns and lengths != {columns}):
                what = f"the table {name} has the wrong shape."
                expected = f"5 rows ({', '.join(QUANTITIES)}) of {columns or 'two or more'} numbers"
                found = f"{len(rows)} rows of {', '.join(map(str, sorted(lengths)))}"
                faults.add(what, where="axle tables", expected=expected, found=found)
        for name in ("clearance", "rack"):
            first, last = getattr(self, name)
            if not first < last:
                faults.add(f"the grid of {name} runs backwards.", where="axle tables", found=f"{first} to {last}")
        faults.raise_if_any(ModelError)


def _curve(first: float, last: float, *rows: tuple[float, float]) -> Rows:
    """Nine points of slope·x + bend·x² for each quantity."""
    x = np.linspace(first, last, 9)
    return tuple(tuple(float(v) for v in slope * x + bend * x * x) for slope, bend in rows)


def front_axle() -> AxleTables:
    """Chosen, of the size usual for a strut axle: track grows and the wheel leans in as it rises, toe-out in bump.

    Half track and camber together move the contact out by 0.093 m per metre of rise: a roll centre 70 mm above the road.
    """
    return AxleTables(
        by_clearance=_curve(-0.1, 0.1, (0.04, -0.9), (-0.03, 0.2), (-0.06, 0.1), (0.17, 0.8), (0.10, 0.0)),
        by_rack=_curve(-0.6, 0.6, (0.0, 0.004), (0.0, -0.004), (0.0, 0.12), (-0.05, 0.10), (0.0, 0.0)),
        compliance=(
            (0.0, 3e-7, -1.0e-7),
            (1.2e-6, 0.0, -1.5e-7),
            (-1.5e-7, -1.0e-7, 1.0e-5),
            (0.0, 6e-7, 0.0),
            (-4e-7, 0.0, 0.0),
        ),
    )


def rear_axle() -> AxleTables:
    """Chosen: a multi-link axle, toe-in in bump and under side force, its roll centre 90 mm above the road."""
    return AxleTables(
        by_clearance=_curve(-0.1, 0.1, (0.04, -0.6), (0.04, -0.2), (-0.03, 0.1), (0.25, 0.6), (0.06, 0.0)),
        compliance=(
            (0.0, 2.5e-7, 0.5e-7),
            (1.0e-6, 0.0, -0.8e-7),
            (-0.8e-7, 0.5e-7, 4e-6),
            (0.0, 5e-7, 0.0),
            (-3e-7, 0.0, 0.0),
        ),
    )


@dataclass(frozen=True)
class WheelTables:
    """Tables of the front and the rear axle; `lag` is the natural frequency (Hz) and damping ratio of the compliances."""

    front: AxleTables = field(default_factory=front_axle)
    rear: AxleTables = field(default_factory=rear_axle)
    lag: tuple[float, float] = (40.0, 1.0)

    def without(self, *details: str) -> WheelTables:
        """Without "paths" (half track, wheelbase) or "angles" (toe, camber, kingpin), by clearance and rack, or without "bushes"."""
        gone = [q for name, qs in (("paths", (0, 1)), ("angles", (2, 3, 4))) if name in details for q in qs]

        def rows(table: Rows) -> Rows:
            return tuple((0.0,) * len(row) if q in gone else row for q, row in enumerate(table))

        def axle(given: AxleTables) -> AxleTables:
            compliance = ((0.0, 0.0, 0.0),) * 5 if "bushes" in details else given.compliance
            return AxleTables(given.clearance, rows(given.by_clearance), given.rack, rows(given.by_rack), compliance)

        return WheelTables(axle(self.front), axle(self.rear), self.lag)

    @classmethod
    def none(cls) -> WheelTables:
        """Wheels that go straight up and down and only steer."""
        return cls(AxleTables(), AxleTables())

    def at(self, clearance: Array, rack: Array, forces: Array | None = None) -> Array:
        """The five quantities (N, 4, 5) at clearances (N, 4) beside the design and rack angles (N,), as a bench tabulates them.

        `forces` (N, 4, 3): Fx, Fy, Mz on each carrier, in its own frame; without them the compliances are left out. The front wheels'
        toe holds the rack's angle.
        """
        numbers = self.packed()
        found = np.empty((*clearance.shape, 5))
        for i in range(4):
            read_table(numbers.clearance, numbers.clearance_grid, i, np.ascontiguousarray(clearance[:, i]), found)
        by_rack = np.empty_like(found)
        for i in range(4):
            read_table(numbers.rack, numbers.rack_grid, i, np.ascontiguousarray(rack), by_rack)
        found += by_rack
        found[:, :2, 2] += rack[:, None]
        if forces is not None:
            found += np.einsum("iqk,nik->niq", numbers.compliance, forces)
        return found

    def packed(self) -> TableNumbers:
        """The tables as the compiled equations take them; not to be written to."""
        return _packed(self)


@lru_cache(maxsize=8)
def _packed(tables: WheelTables) -> TableNumbers:
    clearance, grid, rack, rack_grid, compliance = [], [], [], [], []
    axles = (tables.front, tables.front, tables.rear, tables.rear)
    points = max(len(a.by_clearance[0]) for a in axles), max(len(a.by_rack[0]) for a in axles)
    for wheel, axle in enumerate(axles):
        mirror = MIRROR if wheel % 2 else np.ones(5)
        by_z, z_grid = _splined(axle.clearance, np.array(axle.by_clearance), points[0])
        rows = np.array(axle.by_rack)
        # A right wheel sees a rack that turns right as a left one sees it turn left.
        by_r, r_grid = _splined(axle.rack, rows[:, ::-1] if wheel % 2 else rows, points[1])
        clearance.append(by_z * mirror[:, None, None])
        rack.append(by_r * mirror[:, None, None])
        grid.append(z_grid)
        rack_grid.append(r_grid)
        turn = np.outer(MIRROR, MIRROR_FORCE) if wheel % 2 else 1.0
        compliance.append(np.array(axle.compliance) * turn)
    lag = np.array([2.0 * np.pi * tables.lag[0], tables.lag[1]])
    return TableNumbers(
        np.array(clearance),
        np.array(grid).T.copy(),
        np.array(rack),
        np.array(rack_grid).T.copy(),
        np.array(compliance),
        lag,
    )


def _splined(ends: tuple[float, float], rows: Array, points: int) -> tuple[Array, Array]:
    """Coefficients (quantity, interval, 4) on an even grid of that many points, and the grid's start and step."""
    x = np.linspace(*ends, rows.shape[1])
    fine = np.linspace(*ends, points)
    if rows.shape[1] != points:
        rows, x = CubicSpline(x, rows, axis=1, bc_type="natural")(fine), fine
    c = CubicSpline(x, rows, axis=1, bc_type="natural").c  # (4, interval, quantity)
    return np.ascontiguousarray(c.transpose(2, 1, 0)), np.array([ends[0], x[1] - x[0]])


@kept
def read_table(table: Array, grid: Array, i: int, x: Array, out: Array) -> None:
    for k in range(len(x)):
        for q in range(5):
            out[k, i, q] = looked_up(table, grid, i, q, x[k])[0]


@core
def intervals(table: Array, grid: Array, x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Of each wheel the interval of its tables that x is in, the place in it, and how far x is beyond their ends."""
    start, step, last = four(grid, 0), four(grid, 4), table.shape[2] - 1.0
    k = below((x - start) / step)
    k = where(k > 0.0, where(k < last, k, last), 0.0)  # also where x is not a number: k is a place in memory
    u = x - start - k * step
    inside = least(most(u, 0.0), step)
    return k, inside, u - inside


@core
def in_intervals(table: Array, q: int, k: Lanes, inside: Lanes, beyond: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Value, slope and curvature of each wheel's table of quantity q at the places that :func:`intervals` gives."""
    count = table.shape[2]
    at, first, wheel = each(k), 4 * count * q, 20 * count
    c0, c1, c2, c3 = transposed(
        four(table, first + 4 * int(at[0])),
        four(table, first + wheel + 4 * int(at[1])),
        four(table, first + 2 * wheel + 4 * int(at[2])),
        four(table, first + 3 * wheel + 4 * int(at[3])),
    )
    value = ((c0 * inside + c1) * inside + c2) * inside + c3
    slope = (3.0 * c0 * inside + 2.0 * c1) * inside + c2
    outside = size(beyond) > 0.0
    return value + slope * beyond, slope, where(outside, 0.0, 6.0 * c0 * inside + 2.0 * c1)


@lean
def looked_up(table: Array, grid: Array, i: int, q: int, x: float) -> tuple[float, float, float]:
    """Value, slope and curvature of wheel i's table of quantity q at x; straight beyond its ends."""
    k, inside, beyond = intervals(table, grid, of_four(x, x, x, x))
    value, slope, curvature = in_intervals(table, q, k, inside, beyond)
    return each(value)[i], each(slope)[i], each(curvature)[i]
