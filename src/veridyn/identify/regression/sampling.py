"""How samples become equations: filters, decimation, dead zones, masks, and rows that are projected on a path.

Near standstill the force of a dry friction takes any value between its two signs, and a measured speed has the sign of its noise. A row
leaves samples in its dead zone out. How wide that is, is a trade: where it is chosen, it is SLOW_SPEED_RATIO of the largest speed of the
coordinate, but never one that takes more than MAX_DROPPED_SHARE of the samples whose speed stands out from its noise: others show no
friction.

What cannot be streamed is refused before any sample is computed: forces where motors act, sizes, and names that exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.regression.workers import map_in_order, threads_unless
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, overlap

NO_ROWS: Mapping[str, str] = {}
SLOW_SPEED_RATIO = 0.05  # of the largest speed: below it the sign of dry friction is not trusted (chosen)
LARGEST_SPEED_SHARE = 0.995  # quantile that stands for the largest speed, so that single outliers do not set it
MAX_DROPPED_SHARE = 0.3  # of the samples of a coordinate in motion that a dead zone may leave out (chosen)
SIGN_SIGMAS = (
    4.0  # of the noise of a speed: below so many its sign is not known; above, it is wrong in three samples of 100,000
)


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


def measured_rows(machine: Machine, motions: Sequence[Motion], rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """The rows without those of prescribed coordinates whose force no motion has, and a note for each; rows given by name all stay."""
    if not machine.prescribed or rows not in ("all", "joints", "actuated"):
        return rows, ()
    forces = [m.forces for m in motions]
    missing = [
        machine.coordinates[k]
        for k in machine.held
        if machine.coordinates[k] not in driven(machine) and all(f is None or np.isnan(f[:, k]).all() for f in forces)
    ]
    if not missing:
        return rows, ()
    named = [machine.rows[r] for r in machine.select_rows(rows)]
    notes = tuple(
        f"row '{c}' is not used: the coordinate is prescribed, and its force is not measured" for c in missing
    )
    return [r for r in named if r not in missing], notes


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


def of_measured(
    how: Sampling | None,
    machine: Machine,
    motions: Sequence[Motion],
    rows: Rows = "all",
    *,
    noise_alone: bool = True,
) -> Sampling:
    """The sampling with its dead zones chosen; where none is given, every sample but those near standstill where there is dry friction.

    That is of motions that were made from logs, and as far as the noise of their speeds reaches: zones are those of "auto", but no wider
    than SIGN_SIGMAS of that noise, beyond which its sign is known, unless `noise_alone` is false. Others are taken as they are. Motions
    that are made when they are needed are not all made for that: the first stands for them.
    """
    if how is not None:
        return with_dead_zones(how, machine, motions, rows)
    seen = motions if isinstance(motions, list | tuple) else [next(iter(motions))]
    if any(m.noise_bands is None for m in seen):
        return Sampling()
    used = measured_rows(machine, seen, rows)[0]
    return Sampling(dead_zone=choose_dead_zones(machine, seen, used, noise_alone=noise_alone))


def _dry(machine: Machine, rows: Rows) -> list[Element]:
    """Dry friction on coordinates and on combinations of them that enters one of the rows."""
    acting = frozenset().union(*(machine.acting_on(machine.rows[r]) for r in machine.select_rows(rows)))
    return [e for e in machine.elements if e.jumps and e.on_body is None and e.between is None and acting & e.on.keys()]


def choose_dead_zones(
    machine: Machine, motions: Sequence[Motion], rows: Rows = "all", *, noise_alone: bool = False
) -> dict[str, float]:
    """Coordinate, or element on several by its parameter → dead zone in rad/s or m/s, for every dry friction that enters one of the rows.

    min(0.05 v_max, v_30): v_max is the largest speed of the element's combination c = Σ aᵢ qᵢ, v_30 the speed below which 30 % of the
    samples lie in which it moves. A coordinate that stands still throughout has none.
    `noise_alone`: no wider than the noise of the speed leaves its sign open.
    """
    zones: dict[str, float] = {}
    for e in _dry(machine, rows):
        weights = np.array([e.on.get(c, 0.0) for c in machine.coordinates])
        speed = np.concatenate([np.abs(m.qd @ weights) for m in motions])
        noise = max((float(np.sqrt(weights**2 @ speed_variance(m))) for m in motions), default=0.0)
        name = next(iter(e.on)) if list(e.on.values()) == [1.0] else e.parameter_name
        largest = float(np.quantile(speed, LARGEST_SPEED_SHARE))
        wanted = min(SLOW_SPEED_RATIO * largest, SIGN_SIGMAS * noise) if noise_alone else SLOW_SPEED_RATIO * largest
        zone = zone_of(speed, wanted, SIGN_SIGMAS * noise)
        if zone > 0.0:
            zones[name] = max(zone, zones.get(name, 0.0))
    return zones


def speed_variance(m: Motion) -> Array:
    """The variance (n,) of the noise of q̇, zero where that of q̈ is not known.

    Of the noise of q̈ in each band from ω₁ to ω₂, whose density rises with ω⁴ as that of white positions, by ∫ω²/∫ω⁴.
    """
    bands = m.noise_bands
    if bands is None:
        return np.zeros(m.qd.shape[1])
    high = 2.0 * np.pi * bands.ends
    low = np.append(0.0, high[:-1])
    return np.asarray(bands.variance @ (5.0 / 3.0 * (high**3 - low**3) / (high**5 - low**5)), dtype=np.float64)


def zone_of(speed: Array, wanted: float, seen: float = 0.0) -> float:
    """The dead zone that is wanted, or the smaller one below which MAX_DROPPED_SHARE of these speeds (N,) lie that are at least `seen`;
    two digits, rounded down."""
    size = np.abs(speed)
    moving = size[size >= seen]
    return rounded_down(min(wanted, float(np.quantile(moving if len(moving) else size, MAX_DROPPED_SHARE))))


def rounded_down(x: float) -> float:
    """To two digits."""
    if x <= 0.0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(x)) - 1.0)
    return float(f"{np.floor(x / unit * (1.0 + 1e-12)) * unit:.2g}")


STRETCH = 16384  # samples that are looked at in one go
LARGEST_VALUE = 1e50  # no quantity in SI units is larger, and the squares of much larger ones overflow


def check_equations(
    machine: Machine, rows: Sequence[int], how: Sampling, motions: Sequence[Motion], threads: int = 1
) -> None:
    """Refuse what cannot be streamed: every fault at once. `rows`: their numbers; `threads`: so many look at the numbers of long logs."""
    faults = Faults()
    if not motions:
        raise DataError("there is no motion to identify from.", where=machine.name)
    for motion in motions:
        machine.check_motion(motion)
        _check_sizes(machine, motion, faults, threads)
        _check_forces(machine, rows, how, motion, faults)
    names = [machine.rows[r] for r in rows]
    moving = [e.parameter_name for e in machine.elements if e.on_body is None and e.between is None]
    joints = [*names, *(c for c in machine.coordinates if machine.closed and c not in names)]
    for setting, keys, known in (("dead_zone", how.zones, [*joints, *moving]), ("drop", how.drop, names)):
        for name in keys:
            if name not in known:
                faults.add(
                    f"'{name}' is not one of the rows.", where=f"sampling.{setting}", hint=did_you_mean(name, known)
                )
            elif setting == "dead_zone" and name not in machine.coordinates and name not in moving:
                faults.add(f"row '{name}' has no speed of its own.", where="sampling.dead_zone")
    for name in (*how.filters, *how.along):
        if name not in names:
            where = "sampling.filters" if name in how.filters else "sampling.along"
            faults.add(f"'{name}' is not one of the rows.", where=where, hint=did_you_mean(name, names))
    for row, path in how.along.items():
        for other, signal in path.items():
            if other not in machine.rows:
                hint = did_you_mean(other, machine.rows)
                faults.add(f"there is no row '{other}'.", where=f"sampling.along['{row}']", hint=hint)
            if any(signal not in motion.signals for motion in motions):
                hint = did_you_mean(signal, list(motions[0].signals))
                faults.add(f"the motion has no signal '{signal}'.", where=f"sampling.along['{row}']", hint=hint)
    for name, mask in how.drop.items():
        total = sum(len(motion) for motion in motions)
        if np.asarray(mask).shape != (total,):
            faults.add(
                "a mask has one entry for each sample of all motions, in order.",
                where=f"sampling.drop['{name}']",
                expected=f"({total},)",
                found=f"{np.asarray(mask).shape}",
            )
    if how.decimate < 1 or how.trim < 0 or how.block < 1:
        faults.add("decimate and block must be at least 1, trim at least 0.", where="sampling")
    if how.method not in ("qr", "gram"):
        faults.add(f"there is no method '{how.method}'.", where="sampling.method", expected="'qr' or 'gram'")
    faults.raise_if_any(DataError, machine.name)


def _check_forces(machine: Machine, rows: Sequence[int], how: Sampling, motion: Motion, faults: Faults) -> None:
    first = len(machine.rows) - machine.n
    for r in rows:
        if r < first:
            continue
        k, name = r - first, machine.rows[r]
        given = None if motion.forces is None else motion.forces[:, k]
        missing = given is None or _nothing_in(given)
        if machine.actuated[k] and missing and name not in driven(machine):
            faults.add(
                "the joint is actuated, and no force of it is measured.",
                where=f"row '{name}'",
                expected="a column of motion.forces, or a drive_gain element with its signal",
                hint="Leave the row out (rows=…), or mark the joint passive if it has no motor.",
            )
        if given is not None and not machine.actuated[k] and np.nanmax(np.abs(given), initial=0.0) > 0.0:
            faults.add(
                "the joint is passive, and yet a force of it is given.",
                where=f"row '{name}'",
                expected="zero or NaN",
                found=f"up to {np.nanmax(np.abs(given)):.4g}",
                hint="Mark the joint actuated, or give NaN.",
            )
        if given is not None and how.filter_of(name) is not None and np.isnan(given).any() and not missing:
            faults.add(
                "its measured force has gaps (NaN), which a filter would smear.",
                where=f"row '{name}'",
                hint="Cut the motion into pieces without gaps and give them as a list.",
            )


def _nothing_in(force: NDArray[np.float64]) -> bool:
    """Whether all numbers are missing; the first, as a rule, shows that they are not."""
    return bool(np.isnan(force[:1]).all() and np.isnan(force).all())


def _check_sizes(machine: Machine, motion: Motion, faults: Faults, threads: int) -> None:
    """Numbers that no measurement has, such as the 1e160 or infinity of a failed conversion; NaN marks a gap and may stand."""
    for where, x in _too_large_arrays(machine, motion, threads):
        rows = np.abs(x.reshape(len(x), -1))
        large = (rows > LARGEST_VALUE).any(axis=1)
        first, count = int(np.argmax(large)), int(large.sum())
        faults.add(
            "no measured quantity is so large.",
            where=where,
            expected=f"at most {LARGEST_VALUE:g} in SI units",
            found=f"{np.nanmax(rows[first]):.4g} at t = {motion.t[first]:.6g} s"
            + (f", {count} in all" if count > 1 else ""),
            hint="Cut these samples out, or mark them as missing where the log is read.",
        )


def _too_large_arrays(machine: Machine, motion: Motion, threads: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Arrays of a motion (N,) or (N, k) with a number that is too large, and their places; of coordinates, the columns that have one."""
    arrays = {f"motion.{name}": getattr(motion, name) for name in ("q", "qd", "qdd", "forces")}
    by_column = set(arrays)
    if motion.base is not None:
        arrays |= {f"motion.base.{f.name}": getattr(motion.base, f.name) for f in fields(motion.base)}
    arrays |= {f"motion.wrenches['{name}']": x for name, x in motion.wrenches.items()}
    arrays |= {f"motion.signals['{name}']": x for name, x in motion.signals.items()}
    given = {where: x for where, x in arrays.items() if x is not None and x.size}
    stretches = [
        (where, x[start : start + STRETCH]) for where, x in given.items() for start in range(0, len(x), STRETCH)
    ]
    with threads_unless(None, min(threads, len(stretches))) as (executor, ahead):
        found = map_in_order(executor, _too_large, (x for _, x in stretches), ahead)
        large = {where for (where, _), answer in zip(stretches, found, strict=True) if answer}
    for where in (w for w in given if w in large):
        if where not in by_column:
            yield where, given[where]
            continue
        # A column alone is read as slowly as all of them, so they are looked at where one is known to be too large.
        columns = ((f"{where}, '{c}'", given[where][:, k]) for k, c in enumerate(machine.coordinates))
        yield from ((place, x) for place, x in columns if _too_large(x))


def _too_large(x: NDArray[np.float64]) -> bool:
    """Whether some number is. The sum of squares of smaller ones is small, and quickly made; where it is not, gaps do not count."""
    flat = x.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if float(flat @ flat) <= LARGEST_VALUE**2:
            return False
    return bool(max(np.fmax.reduce(flat), -np.fmin.reduce(flat)) > LARGEST_VALUE)


def driven(machine: Machine) -> set[str]:
    """Coordinates whose force is a drive gain times a signal, so that no measured force is needed."""
    return {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
