"""How samples become equations: stretches of a log, computed, filtered, decimated and thinned, a block at a time.

Before any is computed, motions and settings are checked: forces where motors act, and names that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.error_measures import Moments, row_unit
from veridyn.identify.regression.factor import RowFactor, accumulate, empty
from veridyn.identify.regression.linear_algebra import one_blas_thread
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.tables import SymbolTables
from veridyn.mechanics.tree.loops.projection import open_rows, projection
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
JOB_SAMPLES = 16384  # samples one job deals with
LARGEST_VALUE = 1e50  # no quantity in SI units is larger, and the squares of much larger ones overflow


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """Samples start to stop of a log of `total` samples; `motion` holds them and their margins, from sample `offset` on.

    Blocks begin at sample `first`, which is before `start` where a lead is needed. `before`: samples of the logs before this one.
    """

    motion: Motion
    offset: int
    first: int
    start: int
    stop: int
    total: int
    rate: float
    before: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """Equations of some consecutive samples: `numbers` are those that decimation keeps, in the count of the log.

    For each row, `equations` [W_j | Y_j] in column order, to be used up by whoever takes them, `used`: which of the samples they are, and
    `measured`: the measured force y_j before known parameters are subtracted (a view of Y_j where nothing is). `noise`: of a filtered row,
    the moments of y_j before the filter at every sample in use, times the gain of the filter for white noise.
    """

    numbers: NDArray[np.intp]
    equations: list[Array]
    used: list[Mask]
    measured: list[Array]
    noise: list[Moments | None]


Weigh = Callable[[int, Array], None]  # the number of a row, and its equations, to be multiplied in place


@dataclass(frozen=True, eq=False)
class EquationPlan:
    """How samples become the equations of some rows of a tree; `kept`: the only estimated columns to make, if not all."""

    machine: Machine
    rows: tuple[int, ...]
    how: Sampling
    compile: bool = False
    kept: tuple[int, ...] | None = None

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """The rows, and those of the open tree that are added to some of them."""
        return tuple(dict.fromkeys((*self.rows, *(other for added in self._added for other in added))))

    @cached_property
    def _added(self) -> tuple[tuple[int, ...], ...]:
        """For each row, those that are added to it: on its path, then of the passive joints of its loops."""
        every = self.machine.rows
        paths = (tuple(every.index(other) for other in self.how.path(every[r])) for r in self.rows)
        return tuple((*path, *open_rows(self.machine, (r,))[1:]) for r, path in zip(self.rows, paths, strict=True))

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row, the estimated parameters that enter it, tied ones under the name of what they are tied to."""
        own = dict(zip(self.computed, self._affecting, strict=True))
        paths = ((r, *added) for r, added in zip(self.rows, self._added, strict=True))
        return tuple(tuple(sorted({c for r in path for c in own[r]})) for path in paths)

    def lead_columns(self, k: int, leads: Sequence[int]) -> tuple[list[int], list[int]]:
        """Which of the parameters `leads` enter the k-th row, and the places of these among its columns."""
        at = {c: i for i, c in enumerate(self.columns[k])}
        entering = [i for i, c in enumerate(leads) if c in at]
        return entering, [at[leads[i]] for i in entering]

    @property
    def _affecting(self) -> tuple[tuple[int, ...], ...]:
        """The same for each computed row by itself."""
        return _affecting(self.machine, self.computed, self.kept)

    @property
    def wanted(self) -> tuple[tuple[int, int, float, float], ...]:
        """Columns to compute: (column, column it counts for, factor, known value to take off or NaN where estimated)."""
        return _wanted(self.machine, self.kept)

    @cached_property
    def _gains(self) -> tuple[tuple[int, int, float, float], ...]:
        """Of the columns to compute, those of known drive gains: what they make of a current is a measured force."""
        names = {e.parameter_name for e in self.machine.elements if e.kind == "drive_gain"}
        columns = {self.machine.parameters.index(name) for name in names}
        return tuple(w for w in self.wanted if w[0] in columns and not np.isnan(w[3]))

    @cached_property
    def subtracts(self) -> bool:
        """Whether known parameters, other than drive gains, are subtracted from the measured side."""
        return any(not np.isnan(w[3]) for w in self.wanted if w not in self._gains)

    def empty_factors(self) -> tuple[RowFactor, ...]:
        """The factors of no equations, one for each row."""
        machine, method = self.machine, self.how.method
        names = [machine.rows[r] for r in self.rows]
        return tuple(empty(n, cs, method, row_unit(machine, n)) for n, cs in zip(names, self.columns, strict=True))

    def jobs(self, motion: Motion, lead: int = 0, before: int = 0) -> Iterator[Job]:
        """Stretches of a motion with the margins their filter needs and `lead` equations before their own."""
        N, margin, rate = len(motion), 0, 0.0
        if self.how.filtering:
            rate = uniform_rate(motion.t, where="motion.t")
            margin = self.how.margin(rate)
        span = max(JOB_SAMPLES, 4 * margin)
        for start in range(0, N, span):
            stop = min(start + span, N)
            first = max(0, start - lead * self.how.decimate)
            lo, hi = max(0, first - margin), min(N, stop + margin)
            yield Job(
                motion=motion[lo:hi], offset=lo, first=first, start=start, stop=stop, total=N, rate=rate, before=before
            )

    def factors(self, job: Job, weigh: Weigh | None = None) -> tuple[RowFactor, ...]:
        """The factors of one job's samples, block by block."""
        own = self.empty_factors()
        moments = [Moments()] * len(own)
        with one_blas_thread():
            for block in self.blocks(job, wide=True):
                seen = zip(moments, block.measured, block.used, block.noise, strict=True)
                moments = [m.merge(Moments.of(y, used).with_noise_of(raw)) for m, y, used, raw in seen]
                if weigh is not None:
                    for k, A in enumerate(block.equations):
                        weigh(k, A)
                accumulate([f.R for f in own], block.equations, self.how.method)
        return tuple(replace(f, samples=m.samples, measured=m) for f, m in zip(own, moments, strict=True))

    def measured_moments(self, motion: Motion, stretch: slice, before: int = 0) -> list[Moments]:
        """For each row the moments of its measured force at a decimated stretch of a motion whose rows are not filtered."""
        beside = self._measured_tables(self.how.block, 0, motion)
        step = (self.how.block if beside is None else beside.block) * stretch.step
        found = [Moments()] * len(self.rows)
        for start in range(stretch.start, stretch.stop, step):
            numbers = np.arange(start, min(start + step, stretch.stop), stretch.step)
            part = motion[start : min(start + step, stretch.stop) : stretch.step]
            y = self._measured(part, beside)
            for k, r in enumerate(self.rows):
                used = self.how.uses(self.machine, self.machine.rows[r], part.qd, numbers, len(motion), before)
                used &= np.isfinite(y[r])
                found[k] = found[k].merge(Moments.of(y[r][used], used))
        return found

    def blocks(self, job: Job, wide: bool = False) -> Iterator[Block]:
        """The equations of a job, a block at a time: each is valid until the next is made. `wide`: as long as is quickest."""
        margin = self.how.margin(job.rate) if self.how.filtering else 0
        tables = self.tables(margin, wide)
        beside = self._measured_tables(tables.block, margin, job.motion) if self.subtracts else None
        for start in range(job.first, job.stop, tables.block):
            stop = min(start + tables.block, job.stop)
            yield self._equations(job, tables, beside, start, stop, margin)

    def tables(self, margin: int, wide: bool = False) -> SymbolTables:
        """Where blocks of equations are written, by machine code or by the reference."""
        return SymbolTables(
            self.machine, self.computed, self._affecting, self.wanted, self.compile, self.how.block, margin, wide
        )

    def _measured_tables(self, block: int, margin: int, motion: Motion) -> SymbolTables | None:
        """Where wrenches and known drive gains alone are written; None where there are none."""
        if not self._gains and not motion.wrenches:
            return None
        none: tuple[tuple[int, ...], ...] = ((),) * len(self.computed)
        return SymbolTables(self.machine, self.computed, none, self._gains, self.compile, block, margin)

    def _equations(
        self, job: Job, tables: SymbolTables, beside: SymbolTables | None, start: int, stop: int, margin: int
    ) -> Block:
        """[W_j | Y_j] of one block for each row, filtered, decimated and thinned, in column order."""
        how = self.how
        lo = max(job.offset, start - margin)
        hi = min(job.offset + len(job.motion), stop + margin)
        part = job.motion[lo - job.offset : hi - job.offset]
        inner = slice(start - lo, stop - lo)
        numbers = np.arange(start, stop)
        thin = numbers % how.decimate == 0
        found: list[Array] = []
        masks: list[Mask] = []
        measured: list[Array] = []
        noise: list[Moments | None] = []
        forces = self._measured(part, beside) if self.subtracts else {}
        for r, A in self._projected(part, dict(zip(self.computed, tables.fill(part), strict=True))):
            A[:, -1] = self.force(part, r) - A[:, -1]  # Γ − Γ_ext, paper 001 (5)
            low = how.filter_of(self.machine.rows[r])
            taken = how.uses(self.machine, self.machine.rows[r], part.qd[inner], numbers, job.total, job.before)
            noise.append(None)
            if low is not None:
                raw = (forces[r] if r in forces else A[:, -1])[inner]
                kept = taken & np.isfinite(raw)
                noise[-1] = Moments.of(raw[kept], kept).scaled(low.white_gain(job.rate))
                A = zero_phase(A, job.rate, low, where=f"row '{self.machine.rows[r]}'")
                if r in forces:
                    forces[r] = zero_phase(forces[r][:, None], job.rate, low)[:, 0]
            used = thin & np.isfinite(A[inner, -1]) & taken
            whole = used.all() and A.strides[0] == A.itemsize
            found.append(A[inner] if whole else np.asfortranarray(A[inner][used]))
            masks.append(used[thin])
            measured.append(forces[r][inner][used] if r in forces else found[-1][:, -1])
        return Block(numbers[thin], found, masks, measured, noise)

    def _measured(self, part: Motion, beside: SymbolTables | None) -> dict[int, Array]:
        """y of each row (N,): Γ − Γ_ext before known parameters are subtracted, what known drive gains give included."""
        if beside is None:
            return {r: np.broadcast_to(self.force(part, r), (len(part),)).astype(np.float64) for r in self.rows}
        tables = dict(zip(self.computed, beside.fill(part), strict=True))
        return {r: self.force(part, r) - A[:, -1] for r, A in self._projected(part, tables, bare=True)}

    def _projected(self, part: Motion, tables: Mapping[int, Array], bare: bool = False) -> list[tuple[int, Array]]:
        """Each row with its table, to which those along its path and of its loops' passive joints are added.

        `bare`: the tables have no columns of parameters.
        """
        machine = self.machine
        none: tuple[tuple[int, ...], ...] = ((),) * len(self.computed)
        own = dict(zip(self.computed, none if bare else self._affecting, strict=True))
        first, found = len(machine.rows) - machine.n, []
        G = projection(machine, part) if machine.closed else None
        whole_columns = none[: len(self.rows)] if bare else self.columns
        for r, columns, added in zip(self.rows, whole_columns, self._added, strict=True):
            if not added:
                found.append((r, tables[r]))
                continue
            weights = [part.signals[signal] for signal in self.how.path(machine.rows[r]).values()]
            if G is not None and r >= first:
                passive = [other - first for other in added[len(weights) :]]
                weights += list(G[:, passive, machine.independent.index(r - first)].T)
            place = {c: k for k, c in enumerate((*columns, -1))}
            whole = np.zeros((len(part), len(place)), order="F")
            whole[:, [place[c] for c in (*own[r], -1)]] = tables[r]
            for other, weight in zip(added, weights, strict=True):
                whole[:, [place[c] for c in (*own[other], -1)]] += weight[:, None] * tables[other]
            found.append((r, whole))
        return found

    def force(self, part: Motion, row: int) -> Array | float:
        """Γ of a row: measured where a motor acts and is measured, zero elsewhere (paper 001, 5.2)."""
        machine = self.machine
        k = row - len(machine.rows) + machine.n
        if k < 0 or not machine.actuated[k] or part.forces is None:
            return 0.0
        gamma = part.forces[:, k]
        return 0.0 if machine.coordinates[k] in driven(machine) and np.isnan(gamma).all() else gamma

    def check(self, motions: Sequence[Motion]) -> None:
        """Refuse what cannot be streamed: every fault at once."""
        check_equations(self.machine, self.rows, self.how, motions)


@lru_cache(maxsize=16)
def _affecting(machine: Machine, rows: tuple[int, ...], kept: tuple[int, ...] | None) -> tuple[tuple[int, ...], ...]:
    """For each row by itself, the estimated parameters that enter it; of the last trees used, whose plans are made again and again."""
    T = machine.parameters.estimated_matrix() != 0.0
    if kept is not None:
        T[:, np.setdiff1d(np.arange(T.shape[1]), kept)] = False
    affecting = structure(machine)
    return tuple(tuple(int(c) for c in np.flatnonzero(T[list(affecting[r])].any(axis=0))) for r in rows)


@lru_cache(maxsize=16)
def _wanted(machine: Machine, kept: tuple[int, ...] | None) -> tuple[tuple[int, int, float, float], ...]:
    """What becomes of every parameter, as :attr:`EquationPlan.wanted` has it."""
    p = machine.parameters
    out = []
    for c, name in enumerate(p.names):
        tie = p.ties.get(name)
        to, factor = (c, 1.0) if tie is None else (p.index(tie.to), tie.factor)
        value = float(p.values[to]) if p.states[to] == "known" else float("nan")
        left_out = kept is not None and np.isnan(value) and to not in kept
        if value != 0.0 and not left_out:
            out.append((c, to, factor, value))
    return tuple(out)


def check_equations(machine: Machine, rows: Sequence[int], how: Sampling, motions: Sequence[Motion]) -> None:
    """Refuse what cannot be streamed: every fault at once. `rows`: their numbers."""
    faults = Faults()
    if not motions:
        raise DataError("there is no motion to identify from.", where=machine.name)
    for motion in motions:
        machine.check_motion(motion)
        _check_sizes(machine, motion, faults)
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
        missing = given is None or np.isnan(given).all()
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


def _check_sizes(machine: Machine, motion: Motion, faults: Faults) -> None:
    """Numbers that no measurement has, such as the 1e160 or infinity of a failed conversion; NaN marks a gap and may stand."""
    for where, x in _arrays(machine, motion):
        if not _too_large(x):
            continue
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


def _too_large(x: NDArray[np.float64]) -> bool:
    """Whether some number is; by reductions, which need no copy of a long log, and in which gaps do not count."""
    return bool(x.size) and bool(max(np.fmax.reduce(x, axis=None), -np.fmin.reduce(x, axis=None)) > LARGEST_VALUE)


def _arrays(machine: Machine, motion: Motion) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Arrays of a motion (N,) or (N, k) that may be too large, with their places."""
    for name in ("q", "qd", "qdd", "forces"):
        x = getattr(motion, name)
        if x is not None and _too_large(x):  # a column alone is read as slowly as all of them
            yield from ((f"motion.{name}, '{c}'", x[:, k]) for k, c in enumerate(machine.coordinates))
    for f in fields(motion.base) if motion.base is not None else ():
        x = getattr(motion.base, f.name)
        if x is not None:
            yield f"motion.base.{f.name}", x
    for name, x in motion.wrenches.items():
        yield f"motion.wrenches['{name}']", x
    for name, x in motion.signals.items():
        yield f"motion.signals['{name}']", x


def driven(machine: Machine) -> set[str]:
    """Coordinates whose force is a drive gain times a signal, so that no measured force is needed."""
    return {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
