"""How samples become equations: filters, decimation, dead zones, masks, and rows that are projected on a path.

Near standstill the force of a dry friction takes any value between its two signs, and a measured speed has the sign of its noise. A row
leaves samples in its dead zone out. How wide that is, is a trade: where it is chosen, it is SLOW_SPEED_RATIO of the largest speed of the
coordinate, but never one that takes more than MAX_DROPPED_SHARE of the samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, overlap

NO_ROWS: Mapping[str, str] = {}
SLOW_SPEED_RATIO = 0.05  # of the largest speed: below it the sign of dry friction is not trusted (chosen)
LARGEST_SPEED_SHARE = 0.995  # quantile that stands for the largest speed, so that single outliers do not set it
MAX_DROPPED_SHARE = 0.3  # of the samples of a coordinate that a dead zone may leave out (chosen)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How samples become equations.

    `filter`: columns and measurements go through the same zero-phase filter, side by side (parallel filtering), so that the equations
    stay true; then every `decimate`-th is kept. `filters`: row → the filter of that row instead; all that enters one row passes one filter,
    but rows may differ, as where a part that no row models disturbs some of them. `along`: row → other row → signal s of the motion:
    the equation becomes row + Σ s · other row. Where the other coordinates follow this one, q = q(z), and s = ∂q/∂z, that is
    the projection (∂q/∂z)ᵀ on the path: what holds a body on its path does no work along it, so forces of the other joints need not be
    known. `dead_zone`: row → speed below which that row drops its samples, or name of an element → speed of its combination below which
    every affected row does (dry friction is not sign(q̇) at standstill); one number for every row and for each combination of coordinates
    that has dry friction, or "auto", which chooses from the dry friction of the model and the speeds of the motion. `drop`: row → mask (N,)
    of samples that row leaves out; of several motions, one mask over all their samples in order. `trim`: samples left out at each end of
    each motion, where derivatives and filters start up. `method` "gram" sums products instead of turning factors: faster, half the digits,
    refused where the condition makes it unsafe.
    """

    filter: Butterworth | None = None
    decimate: int = 1
    dead_zone: Mapping[str, float] | float | Literal["auto"] = field(default_factory=dict)
    drop: Mapping[str, ArrayLike] = field(default_factory=dict)
    trim: int = 0
    block: int = 4096
    method: Literal["qr", "gram"] = "qr"
    filters: Mapping[str, Butterworth | None] = field(default_factory=dict)
    along: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = Faults()
        for name in ("decimate", "trim", "block"):
            found = getattr(self, name)
            if isinstance(found, bool) or not isinstance(found, int | np.integer):
                hint = "Signals(trim=…) counts seconds." if name == "trim" else ""
                faults.add("it counts samples.", where=name, expected="a whole number", found=f"{found!r}", hint=hint)
        faults.raise_if_any(DataError, "sampling")

    def filter_of(self, row: str) -> Butterworth | None:
        """The filter of a row."""
        return self.filters.get(row, self.filter)

    @property
    def filtering(self) -> bool:
        """Whether any row passes a filter."""
        return self.filter is not None or any(f is not None for f in self.filters.values())

    def margin(self, rate: float) -> int:
        """Samples on either side of a stretch that its filters reach for."""
        every = [f for f in (self.filter, *self.filters.values()) if f is not None]
        return max((overlap(f, rate) for f in every), default=0)

    def path(self, row: str) -> Mapping[str, str]:
        """The rows that are added to a row, and the signals they are multiplied by."""
        return self.along.get(row, NO_ROWS)

    def dropped(self, row: str, total: int) -> NDArray[np.bool_]:
        """The mask of a row over `total` samples of all motions."""
        return np.asarray(self.drop[row], dtype=bool) if row in self.drop else np.zeros(total, dtype=bool)

    @property
    def zones(self) -> Mapping[str, float]:
        """The dead zones by name, once :func:`with_dead_zones` has chosen them."""
        if not isinstance(self.dead_zone, Mapping):
            what = "dead zones are those of a machine and its motions, and are not chosen yet."
            raise DataError(what, where="sampling.dead_zone", expected="row → speed", found=f"{self.dead_zone!r}")
        return self.dead_zone

    def uses(
        self, machine: Machine, row: str, qd: Array, numbers: NDArray[np.intp], total: int, before: int = 0
    ) -> NDArray[np.bool_]:
        """Which of the samples with these numbers, of `total`, and rates `qd` (…, n) a row takes, before decimation.

        `before`: samples of the motions before this one, which masks count as well.
        """
        return self.uses_of_rows(machine, (row,), qd, numbers, total, before)[0]

    def uses_of_rows(
        self,
        machine: Machine,
        rows: Sequence[str],
        qd: Array,
        numbers: NDArray[np.intp],
        total: int,
        before: int = 0,
    ) -> list[NDArray[np.bool_]]:
        """:meth:`uses` for each of some rows; speeds are compared once for all of them."""
        inside = (numbers >= self.trim) & (numbers < total - self.trim)
        elements = {e.parameter_name: e for e in machine.elements} if self.zones else {}
        moving: list[tuple[Mapping[str, float], NDArray[np.bool_]]] = []
        for name, speed in self.zones.items():
            on = elements[name].on if name in elements else {name: 1.0}
            weights = np.array([on.get(c, 0.0) for c in machine.coordinates])
            moving.append((on, np.abs(qd @ weights) >= speed))
        found: list[NDArray[np.bool_]] = []
        for row in rows:
            used = inside.copy()
            acting = machine.acting_on(row) if moving else set()
            for on, fast in moving:
                if acting & on.keys():
                    used &= fast
            if row in self.drop:
                used &= ~np.asarray(self.drop[row], dtype=bool)[numbers + before]
            found.append(used)
        return found


def with_dead_zones(how: Sampling, machine: Machine, motions: Sequence[Motion], rows: Rows = "all") -> Sampling:
    """The sampling with a speed for each coordinate or element in place of one number for all or of "auto"."""
    zone = how.dead_zone
    if isinstance(zone, str):
        if zone != "auto":
            raise DataError(
                "this is no dead zone.",
                where="sampling.dead_zone",
                expected='a speed, {row: speed}, or "auto"',
                found=f"'{zone}'",
            )
        return replace(how, dead_zone=choose_dead_zones(machine, motions, rows))
    if isinstance(zone, int | float):
        if not (np.isfinite(zone) and zone >= 0.0):
            raise DataError(
                "a dead zone is a speed of at least 0.",
                where="sampling.dead_zone",
                expected="rad/s or m/s",
                found=f"{zone}",
            )
        moving = [machine.rows[r] for r in machine.select_rows(rows) if machine.rows[r] in machine.coordinates]
        combined = [e.parameter_name for e in _dry(machine, rows) if len(e.on) > 1]
        return replace(how, dead_zone=dict.fromkeys([*moving, *combined], float(zone)) if zone else {})
    return how


def _dry(machine: Machine, rows: Rows) -> list[Element]:
    """Dry friction on coordinates and on combinations of them that enters one of the rows."""
    acting = frozenset().union(*(machine.acting_on(machine.rows[r]) for r in machine.select_rows(rows)))
    return [e for e in machine.elements if e.jumps and e.on_body is None and e.between is None and acting & e.on.keys()]


def choose_dead_zones(machine: Machine, motions: Sequence[Motion], rows: Rows = "all") -> dict[str, float]:
    """Coordinate, or element on several by its parameter → dead zone in rad/s or m/s, for every dry friction that enters one of the rows.

    min(0.05 v_max, v_30): v_max is the largest speed of the element's combination c = Σ aᵢ qᵢ, v_30 the speed below which 30 % of the
    samples lie. A coordinate that stands still throughout has none.
    """
    zones: dict[str, float] = {}
    for e in _dry(machine, rows):
        weights = np.array([e.on.get(c, 0.0) for c in machine.coordinates])
        speed = np.concatenate([np.abs(m.qd @ weights) for m in motions])
        name = next(iter(e.on)) if list(e.on.values()) == [1.0] else e.parameter_name
        zone = zone_of(speed, SLOW_SPEED_RATIO * float(np.quantile(speed, LARGEST_SPEED_SHARE)))
        if zone > 0.0:
            zones[name] = max(zone, zones.get(name, 0.0))
    return zones


def zone_of(speed: Array, wanted: float) -> float:
    """The dead zone that is wanted, or the smaller one below which MAX_DROPPED_SHARE of these speeds (N,) lie; two digits, rounded down."""
    return rounded_down(min(wanted, float(np.quantile(np.abs(speed), MAX_DROPPED_SHARE))))


def rounded_down(x: float) -> float:
    """To two digits."""
    if x <= 0.0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(x)) - 1.0)
    return float(f"{np.floor(x / unit * (1.0 + 1e-12)) * unit:.2g}")
