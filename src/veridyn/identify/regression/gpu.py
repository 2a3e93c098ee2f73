"""Row factors on a GPU: the regressor is made tile by tile, its products are added up on matrix units, and it is never stored whole.

With A = [W_j | Y_j], a first pass gives G = AᵀA for every row. Where the condition of the columns makes a Gram matrix unsafe, a second
pass makes the regressor again and adds up the products of A T, whose columns are nearly orthonormal: T = V Λ^-½ from the eigenvalues of
the first G (Cholesky-QR2 of Yamamoto et al., 2015, with the shift of Fukaya et al., 2020, in the form of eigenvalues, so that columns may
be dependent). Then R is the triangle of G₂^½ T⁻¹, as good as that of Householder reflections.

The equations [W_j | Y_j] of all rows are one program, whose results stay on the device. They are those of
:mod:`veridyn.identify.regression.compiled_stream`, with the measurement taken in: the last column of a row is Γ_j, the input "y.j", less
what wrenches and known parameters ask of the row. Columns that are zero whatever the motion are not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, DeviceError, Faults
from veridyn.identify.regression.compiled_stream import equations
from veridyn.identify.regression.equation_plan import EquationPlan
from veridyn.identify.regression.factor import RowFactor, RowFactors, triangle_of
from veridyn.identify.regression.observation import EquationStream, samples_of
from veridyn.inference.error_measures import Moments
from veridyn.mechanics.tree.dynamics.engine import check_farthest, sample_source, uniform_values
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import Graph, Number, live
from veridyn.symbolic.gpu import Processor, Program, open_gpu, require_memory
from veridyn.symbolic.gram_ptx import gram_plan

# Of columns scaled to one length: up to here products keep eight digits, beyond it there is a second pass
SAFE_CONDITION = 1e4
SMALLEST_EIGENVALUE = 1e-14  # of the largest: directions below are scaled as if they had it
TILE_DOUBLES = 2**29  # of one tile: four gigabytes
LARGEST_TILE = 2**19  # samples
TILE_SHARE = 0.25  # of the free memory that a tile may take
UPLOAD = 2**20  # samples that are brought to the device at a time
KEPT_SHARE = 0.25  # of the free memory that samples may take until a second pass
MEASURED = "y."


def observed(samples: EquationStream) -> RowFactors:
    """The factors of all rows, made where the stream says."""
    return gpu_factors(samples) if samples.device == "cuda" else samples.observe()


def gpu_factors(samples: EquationStream, processor: Processor | None = None) -> RowFactors:
    """The factors of all rows, as ``samples.observe()`` gives them on the processor."""
    plan = samples.plan
    check_plan(plan)
    device = open_gpu() if processor is None else processor
    first = _Stream(samples, device)
    grams = first.gram()
    scales = [_equilibrated(G) for G in grams]
    conditions = [s.condition for s in scales]
    triangles = [s.root for s in scales]
    if max(conditions, default=1.0) > SAFE_CONDITION:
        refined = first.gram([s.transform for s in scales])
        triangles = [_equilibrated(G).root @ s.back for G, s in zip(refined, scales, strict=True)]
    made = zip(plan.empty_factors(), first.entries, triangles, first.counts, first.moments, strict=True)
    rows = tuple(_factor(blank, own, R, int(n), m) for blank, own, R, n, m in made)
    return RowFactors(plan.machine.parameters, rows)


def check_plan(plan: EquationPlan) -> None:
    """Refuse by name what is done on the processor only."""
    faults = Faults()
    hint = "Use device='cpu'."
    if plan.machine.closed:
        faults.add("the equations of closed loops are not made on a GPU.", where=plan.machine.name, hint=hint)
    if plan.how.filtering:
        faults.add("columns are not filtered on a GPU.", where="sampling.filter", hint=hint)
    if plan.how.along:
        faults.add("rows are not projected on a path on a GPU.", where="sampling.along", hint=hint)
    faults.raise_if_any(DeviceError)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """G = backᵀ back with ``root = back``; ``transform`` T makes columns A T nearly orthonormal, and back ≈ T⁻¹."""

    condition: float
    root: Array
    transform: Array
    back: Array


def _equilibrated(G: Array) -> _Scaled:
    """The eigenvalues of G with its columns scaled to one length. Columns that are zero stay zero."""
    size = np.sqrt(np.maximum(np.diag(G), 0.0))
    alive = size > 0.0
    scale = np.where(alive, size, 1.0)
    values, V = np.linalg.eigh(G / scale / scale[:, None])
    largest = float(values[-1]) if len(values) else 1.0
    kept = np.linalg.eigvalsh((G / scale / scale[:, None])[np.ix_(alive, alive)]) if alive.any() else np.ones(1)
    condition = float(np.sqrt(kept[-1] / kept[0])) if kept[0] > 0.0 else np.inf
    floor = np.sqrt(np.maximum(values, SMALLEST_EIGENVALUE * largest if largest > 0.0 else 1.0))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T * np.where(alive, scale, 0.0)
    back = floor[:, None] * V.T * np.where(alive, scale, 0.0)
    return _Scaled(condition, root, (V / scale[:, None]) / floor, back)


def _factor(blank: RowFactor, entries: tuple[int, ...], R: Array, samples: int, measured: Moments) -> RowFactor:
    """A row's triangle over all its columns, zero for those that are zero whatever the motion."""
    place = {c: k for k, c in enumerate((*blank.columns, -1))}
    wide = np.zeros((len(place), len(place)))
    own = triangle_of(R)
    wide[: len(own), [place[c] for c in entries]] = own
    R = np.asfortranarray(triangle_of(wide))
    return replace(blank, R=R, samples=samples, method="qr", measured=measured)


@dataclass(frozen=True, eq=False)
class _Part:
    """Samples on the device: inputs (k, N), for each row which samples it takes (None where all), and the program that reads them."""

    inputs: Any
    masks: list[Any]
    program: EquationProgram
    run: Program


class _Stream:
    """All samples, brought to the device part by part; they stay there for a second pass where they fit a share of its memory."""

    def __init__(self, samples: EquationStream, device: Processor) -> None:
        self.samples, self.plan, self.device = samples, samples.plan, device
        self.counts = np.zeros(len(self.plan.rows), dtype=int)
        self.moments = [Moments()] * len(self.plan.rows)
        self.entries: tuple[tuple[int, ...], ...] = ()
        self.programs: dict[frozenset[str], tuple[EquationProgram, Program]] = {}
        self.kept: list[_Part] = []
        self.kept_doubles = KEPT_SHARE * device.free_bytes() / 8
        self.whole = False

    def gram(self, transforms: list[Array] | None = None) -> list[Array]:
        """G of every row, of the columns as they are or transformed."""
        xp = self.device.xp
        turned = None if transforms is None else [xp.asarray(T.T.copy()) for T in transforms]
        tile, sums = 0, None
        table: Any = None
        other: Any = None
        for part in self.kept if self.whole else self._parts():
            sets = part.program.sets
            if sums is None:
                plan = gram_plan(sets)
                tile = self._tile(part.program, turned is not None)
                table = xp.zeros((len(part.program.outputs), tile))
                other = None if turned is None else xp.zeros_like(table)
                sums = self.device.gram(plan, tile)
            values = uniform_values(self.plan.tree, self.plan.tree.parameters.values, part.program.parameters)
            count = int(part.inputs.shape[1])
            for lo in range(0, count, tile):
                size = min(tile, count - lo)
                part.run(part.inputs[:, lo:], values, table, size)
                for mask, (first, columns) in zip(part.masks, sets, strict=True):
                    if mask is not None:
                        table[first : first + columns, :size] *= mask[lo : lo + size]
                if turned is None:
                    if not self.plan.subtracts:
                        self._measure(table, part.masks, sets, lo, size)
                    sums.add(table, size)
                    continue
                for T, (first, columns) in zip(turned, sets, strict=True):
                    xp.matmul(T, table[first : first + columns], out=other[first : first + columns])
                sums.add(other, size)
        return [] if sums is None else sums.matrices()

    def _measure(self, table: Any, masks: list[Any], sets: Sequence[tuple[int, int]], lo: int, size: int) -> None:
        """Add the moments of each row's measured force, its last column, at the samples of a tile."""
        xp, found = self.device.xp, []
        for mask, (first, columns) in zip(masks, sets, strict=True):
            y = table[first + columns - 1, :size]
            own = xp.ones(size) if mask is None else mask[lo : lo + size]
            count = own.sum()
            mean = y.sum() / xp.maximum(count, 1.0)
            triple = own[:-2] * own[1:-1] * own[2:]
            second = triple * (y[:-2] - 2.0 * y[1:-1] + y[2:])
            found.append(xp.stack([count, mean, (own * (y - mean) ** 2).sum(), (second**2).sum(), triple.sum()]))
        for k, (n, mean, scatter, roughness, triples) in enumerate(self.device.host(xp.stack(found)).tolist()):
            self.moments[k] = self.moments[k].merge(Moments(int(n), mean, scatter, roughness, int(triples)))

    def _tile(self, program: EquationProgram, twice: bool) -> int:
        """Samples of one tile: as many as its tables may take, fewer for a short log."""
        longest = max(len(m) for m in self.samples.motions)
        doubles = min(TILE_DOUBLES, int(TILE_SHARE * self.device.free_bytes() / 8))
        tile = min(LARGEST_TILE, doubles // len(program.outputs), -(-longest // 128) * 128)
        tile = max(128, tile // 128 * 128)
        tables = (2 if twice else 1) * len(program.outputs) * tile
        upload = 3 * len(program.samples) * min(UPLOAD, longest)
        require_memory(self.device, 8 * (tables + upload), f"tiles of {tile} samples")
        return tile

    def _parts(self) -> Iterator[_Part]:
        """The motions in stretches of so many samples after decimation, each brought over when the one before is used up."""
        step, before, doubles = self.plan.how.decimate, 0, 0
        again = bool(self.counts.any())
        self.counts[:] = 0
        total, done = float(samples_of(self.samples.motions)), 0.0
        self.samples.progress("streaming samples", done, total)
        for motion in self.samples.motions:
            for lo in range(0, len(motion), step * UPLOAD):
                stretch = slice(lo, min(lo + step * UPLOAD, len(motion)), step)
                part = self._brought(motion, stretch, before)
                if self.plan.subtracts and not again:
                    self._measure_here(motion, stretch, before)
                doubles += part.inputs.size
                if doubles <= self.kept_doubles:
                    self.kept.append(part)
                yield part
                done += stretch.stop - stretch.start
                self.samples.progress("streaming samples", done, total)
            before += len(motion)
        self.whole = doubles <= self.kept_doubles
        if not self.whole:
            self.kept.clear()

    def _measure_here(self, motion: Motion, stretch: slice, before: int) -> None:
        """The same on the processor, where known parameters are subtracted from what the device computes."""
        for k, m in enumerate(self.plan.measured_moments(motion, stretch, before)):
            self.moments[k] = self.moments[k].merge(m)

    def _program(self, motion: Motion) -> tuple[EquationProgram, Program]:
        loaded = frozenset(motion.wrenches)
        if loaded not in self.programs:
            p = equation_program(self.plan, motion)
            if self.programs and p.entries != self.entries:
                what = "motions with wrenches on different bodies need one call each."
                raise DataError(what, where=self.plan.machine.name)
            run = self.device.program(p.graph, p.outputs, p.samples, p.parameters, goals=p.goals)
            self.entries, self.programs[loaded] = p.entries, (p, run)
        return self.programs[loaded]

    def _brought(self, motion: Motion, stretch: slice, before: int) -> _Part:
        """A stretch of a motion on the device: each of its arrays is brought over once, as it lies, and turned round there."""
        program, run = self._program(motion)
        machine, xp = self.plan.machine, self.device.xp
        here: dict[int, Any] = {}

        def column(array: Array, at: int | None) -> Any:
            if id(array) not in here:
                here[id(array)] = xp.asarray(np.ascontiguousarray(array[stretch]))
            return here[id(array)] if at is None else here[id(array)][:, at]

        inputs = xp.empty((len(program.samples), len(range(len(motion))[stretch])))
        for k, name in enumerate(program.samples):
            if name.startswith(MEASURED):
                at = int(name.removeprefix(MEASURED)) - len(machine.rows) + machine.n
                assert motion.forces is not None  # a measured row has one
                inputs[k] = column(motion.forces, at)
            else:
                inputs[k] = column(*sample_source(self.plan.tree, motion, name))
        farthest = xp.abs(column(motion.q, None)).max(axis=0) * xp.asarray(machine.turns, dtype=np.float64)
        check_farthest(self.plan.tree, float(farthest.max()) if machine.n else 0.0)
        return _Part(inputs, self._masks(program, inputs, motion, stretch, before), program, run)

    def _masks(self, program: EquationProgram, inputs: Any, motion: Motion, stretch: slice, before: int) -> list[Any]:
        """For each row which samples it takes, None where all; missing measurements become zero, and samples are counted."""
        how, machine, xp = self.plan.how, self.plan.machine, self.device.xp
        numbers = np.arange(stretch.start, stretch.stop, stretch.step)
        measured = {int(n.removeprefix(MEASURED)): k for k, n in enumerate(program.samples) if n.startswith(MEASURED)}
        finite = {r: xp.isfinite(inputs[k]) for r, k in measured.items()}
        complete = self.device.host(xp.stack([x.all() for x in finite.values()])) if finite else np.ones(0)
        gaps = {r for r, whole in zip(finite, complete, strict=True) if not whole}
        for r in gaps:
            inputs[measured[r]] = xp.where(finite[r], inputs[measured[r]], 0.0)
        found: list[Any] = []
        for k, r in enumerate(self.plan.rows):
            mask = finite[r].astype(np.float64) if r in gaps else None
            if how.zones or how.drop or how.trim:
                used = how.uses(machine, machine.rows[r], motion.qd[stretch], numbers, len(motion), before)
                if not used.all():
                    own = xp.asarray(used.astype(np.float64))
                    mask = own if mask is None else mask * own
            self.counts[k] += len(numbers) if mask is None else int(mask.sum())
            found.append(mask)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class EquationProgram:
    """Expressions of all rows, one after the other: row k has the columns `entries[k]`, −1 the measurement, from `sets[k]` on.

    `sets`: (first, count) of each row among the outputs.
    """

    graph: Graph
    outputs: list[Number]
    samples: tuple[str, ...]
    parameters: tuple[str, ...]
    sets: tuple[tuple[int, int], ...]
    entries: tuple[tuple[int, ...], ...]

    @property
    def goals(self) -> list[int]:
        """The outputs column by column: entries of one column share more than entries of one row."""
        every = [c for own in self.entries for c in own]
        return sorted(range(len(every)), key=lambda k: (every[k] < 0, every[k], k))


def equation_program(plan: EquationPlan, motion: Motion) -> EquationProgram:
    """The program of a plan whose rows stand for themselves: open trees, no rows added along a path."""
    f = formula(plan.tree, equations(plan.machine, plan.rows, plan.wanted, motion))
    made = dict(zip(f.labels, f.outputs, strict=True))
    outputs: list[Number] = []
    sets, entries = [], []
    for k, r in enumerate(plan.rows):
        own = [c for c in plan.columns[k] if (r, c) in made]
        known = made.get((r, -1), 0.0)
        measured: Number = f.graph.input(f"{MEASURED}{r}") if isinstance(plan.force(motion, r), np.ndarray) else 0.0
        sets.append((len(outputs), len(own) + 1))
        outputs += [made[r, c] for c in own]
        outputs.append(f.graph.add(measured, -known))
        entries.append((*own, -1))
    used = set(live(f.graph, outputs))
    measured_inputs = [name for name, n in f.graph.inputs.items() if name.startswith(MEASURED) and n in used]
    return EquationProgram(
        graph=f.graph,
        outputs=outputs,
        samples=(*f.samples, *measured_inputs),
        parameters=f.parameters,
        sets=tuple(sets),
        entries=tuple(entries),
    )
