"""Row factors on a GPU: the regressor is made tile by tile, its products are added up on matrix units, and it is never stored whole.

With A = [W_j | Y_j], a first pass gives G = AᵀA for every row. Where the condition of the columns makes a Gram matrix unsafe, a second
pass makes the regressor again and adds up the products of A T, whose columns are nearly orthonormal: T = V Λ^-½ from the eigenvalues of
the first G (Cholesky-QR2 of Yamamoto et al., 2015, with the shift of Fukaya et al., 2020, in the form of eigenvalues, so that columns may
be dependent). Then R is the triangle of G₂^½ T⁻¹, as good as that of Householder reflections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, DeviceError, Fault, Faults
from veridyn.identify.equation_program import MEASURED, EquationProgram, equation_program
from veridyn.identify.factor import RowFactor, triangle_of
from veridyn.identify.observation import EquationPlan, EquationStream, RowFactors, samples_of
from veridyn.mechanics.engine import check_angles, sample_source, uniform_values
from veridyn.model.motion import Motion
from veridyn.symbolic.gpu import Processor, Program, open_gpu, require_memory
from veridyn.symbolic.gram_ptx import GramPlan, gram_plan

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
SAFE_CONDITION = (
    1e4  # of columns scaled to one length: up to here products keep eight digits, beyond it there is a second pass
)
SMALLEST_EIGENVALUE = 1e-14  # of the largest: directions below are scaled as if they had it
TILE_DOUBLES = 2**29  # of one tile: four gigabytes
LARGEST_TILE = 2**19  # samples
TILE_SHARE = 0.25  # of the free memory that a tile may take
UPLOAD = 2**20  # samples that are brought to the device at a time


def gpu_factors(samples: EquationStream, processor: Processor | None = None) -> RowFactors:
    """The factors of all rows, as ``samples.observe()`` gives them on the processor."""
    plan = samples.plan
    check_plan(plan)
    device = open_gpu() if processor is None else processor
    first = _Pass(samples, device)
    grams = first.run()
    scales = [_equilibrated(G) for G in grams]
    conditions = [s.condition for s in scales]
    triangles = [s.root for s in scales]
    if max(conditions, default=1.0) > SAFE_CONDITION:
        refined = _Pass(samples, device).run([s.transform for s in scales])
        triangles = [_equilibrated(G).root @ s.back for G, s in zip(refined, scales, strict=True)]
    names = [plan.tree.rows[r] for r in plan.rows]
    made = zip(names, plan.columns, first.entries, triangles, first.counts, strict=True)
    rows = tuple(_factor(name, columns, own, R, int(n)) for name, columns, own, R, n in made)
    return RowFactors(plan.tree.parameters, rows)


def check_plan(plan: EquationPlan) -> None:
    """Refuse by name what is done on the processor only."""
    faults = Faults()
    hint = "Use device='cpu'."
    if plan.tree.loops:
        faults.add("the equations of closed loops are not made on a GPU.", where=plan.tree.name, hint=hint)
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


def _factor(name: str, columns: tuple[int, ...], entries: tuple[int, ...], R: Array, samples: int) -> RowFactor:
    """A row's triangle over all its columns, zero for those that are zero whatever the motion."""
    place = {c: k for k, c in enumerate((*columns, -1))}
    wide = np.zeros((len(place), len(place)))
    own = triangle_of(R)
    wide[: len(own), [place[c] for c in entries]] = own
    return RowFactor(name, columns, np.asfortranarray(triangle_of(wide)), samples)


class _Pass:
    """One pass over all samples."""

    def __init__(self, samples: EquationStream, device: Processor) -> None:
        self.samples, self.plan, self.device = samples, samples.plan, device
        self.counts = np.zeros(len(self.plan.rows), dtype=int)
        self.entries: tuple[tuple[int, ...], ...] = ()

    def run(self, transforms: list[Array] | None = None) -> list[Array]:
        """G of every row, of the columns as they are or transformed."""
        device, xp = self.device, self.device.xp
        sums: Any = None
        made: tuple[frozenset[str], EquationProgram, Program] | None = None
        table: Any = None
        other: Any = None
        tile = 0
        turned = None if transforms is None else [xp.asarray(T.T.copy()) for T in transforms]
        total, done = float(samples_of(self.samples.motions)), 0.0
        self.samples.progress("streaming samples", done, total)
        for motion, numbers, whole, before in self._parts():
            loaded = frozenset(motion.wrenches)
            if made is None or made[0] != loaded:
                program = equation_program(self.plan, motion)
                if made is not None and program.entries != made[1].entries:
                    raise DataError(
                        Fault(
                            "motions with wrenches on different bodies need one call each.", where=self.plan.tree.name
                        )
                    )
                run = device.program(
                    program.graph, program.outputs, program.samples, program.parameters, goals=program.goals
                )
                made = (loaded, program, run)
                if sums is None:
                    plan, self.entries = gram_plan(program.sets), program.entries
                    tile = self._tile(program, plan, turned is not None)
                    table = xp.zeros((len(program.outputs), tile))
                    other = None if turned is None else xp.zeros_like(table)
                    sums = device.gram(plan, tile)
            _, program, run = made
            inputs = self._inputs(program, motion)
            values = uniform_values(self.plan.tree, self.plan.tree.parameters.values, program.parameters)
            masks = self._masks(motion, numbers, whole, before)
            for lo in range(0, len(motion), tile):
                size = min(tile, len(motion) - lo)
                run(inputs[:, lo:], values, table, size)
                for mask, (first, count) in zip(masks, program.sets, strict=True):
                    if mask is not None:
                        table[first : first + count, :size] *= mask[lo : lo + size]
                used = table
                if turned is not None:
                    used = other
                    for T, (first, count) in zip(turned, program.sets, strict=True):
                        xp.matmul(T, table[first : first + count, :size], out=other[first : first + count, :size])
                sums.add(used, size)
            done += len(numbers) * self.plan.how.decimate
            self.samples.progress("streaming samples", min(done, total), total)
        return sums.matrices() if sums is not None else []

    def _parts(self) -> Iterator[tuple[Motion, NDArray[np.intp], int, int]]:
        """Stretches of the motions after decimation: the samples, their numbers, the length of the motion, and the samples before it."""
        before, step = 0, self.plan.how.decimate
        for motion in self.samples.motions:
            for lo in range(0, len(motion), step * UPLOAD):
                numbers = np.arange(lo, min(lo + step * UPLOAD, len(motion)), step)
                yield motion[lo : lo + step * UPLOAD : step], numbers, len(motion), before
            before += len(motion)

    def _tile(self, program: EquationProgram, plan: GramPlan, twice: bool) -> int:
        """Samples of one tile: as many as its tables may take, fewer for a short log."""
        longest = max(len(m) for m in self.samples.motions)
        doubles = min(TILE_DOUBLES, int(TILE_SHARE * self.device.free_bytes() / 8))
        tile = min(LARGEST_TILE, doubles // len(program.outputs), -(-longest // 128) * 128)
        tile = max(128, tile // 128 * 128)
        tables = (2 if twice else 1) * len(program.outputs) * tile
        upload = 3 * len(program.samples) * min(UPLOAD, longest)
        require_memory(self.device, 8 * (tables + upload), f"tiles of {tile} samples")
        return tile

    def _inputs(self, program: EquationProgram, motion: Motion) -> Any:
        """The inputs (k, N) on the device: each array of the motion is brought over once, as it lies, and turned round there."""
        tree, xp = self.plan.tree, self.device.xp
        check_angles(tree, motion.q)
        here: dict[int, Any] = {}
        inputs = xp.empty((len(program.samples), len(motion)))
        for k, name in enumerate(program.samples):
            if name.startswith(MEASURED):
                force = np.nan_to_num(np.asarray(self.plan.force(motion, int(name.removeprefix(MEASURED)))))
                inputs[k] = xp.asarray(force)
                continue
            array, column = sample_source(tree, motion, name)
            if id(array) not in here:
                here[id(array)] = xp.asarray(np.ascontiguousarray(array))
            source = here[id(array)]
            inputs[k] = source if column is None else source[:, column]
        return inputs

    def _masks(self, motion: Motion, numbers: NDArray[np.intp], whole: int, before: int) -> list[Any]:
        """For each row which samples it takes, None where all; counted on the way."""
        how, tree = self.plan.how, self.plan.tree
        found = []
        for k, r in enumerate(self.plan.rows):
            used = how.uses(tree, tree.rows[r], motion.qd, numbers, whole, before)
            used &= np.isfinite(self.plan.force(motion, r))
            self.counts[k] += int(used.sum())
            found.append(None if used.all() else self.device.xp.asarray(used.astype(np.float64)))
        return found
