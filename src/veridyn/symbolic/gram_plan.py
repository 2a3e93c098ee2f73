"""Which parts of many small Gram matrices are computed together: the tasks of :mod:`veridyn.symbolic.gram_ptx`.

A set of columns is cut into blocks of 32, and its G into patches of 32 × 32, of which those on and below the diagonal are computed. A task
has up to twelve blocks and up to sixteen patches between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SIDE = 32  # columns of a block, and rows and columns of a patch
BLOCKS, WARPS = 12, 16  # of a task: blocks of columns, and patches
TASK_NUMBERS = 2 * BLOCKS + 3 * WARPS  # (first column, columns) of each block; (block, block, patch) of each warp
LARGEST_SQUARE = 5  # blocks of a set whose patches are no more than sixteen
GROUP = 4  # blocks in a row and in a column of patches of a larger set, sixteen together


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Which patches are computed by which task: `tasks` (tasks, 72) for the kernel, `patches` (run, row block, column block) of each patch.

    `sets` are (first column, columns); `runs` the same for sets that are computed together; see :func:`gram_plan`.
    """

    sets: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]
    tasks: NDArray[np.int32]
    patches: tuple[tuple[int, int, int], ...]

    def matrices(self, values: Array) -> list[Array]:
        """G of each set from the patches (patches, 32, 32) that the kernel left."""
        found = [np.zeros((count, count)) for _, count in self.runs]
        for (k, a, b), patch in zip(self.patches, values, strict=True):
            G = found[k]
            rows, columns = G[SIDE * a : SIDE * (a + 1)].shape[0], G[:, SIDE * b : SIDE * (b + 1)].shape[1]
            part = np.tril(patch) + np.tril(patch, -1).T if a == b else patch
            G[SIDE * a : SIDE * (a + 1), SIDE * b : SIDE * (b + 1)] = part[:rows, :columns]
            G[SIDE * b : SIDE * (b + 1), SIDE * a : SIDE * (a + 1)] = part[:rows, :columns].T
        own: list[Array] = []
        for first, count in self.sets:
            k = next(k for k, (start, size) in enumerate(self.runs) if start <= first < start + size)
            at = first - self.runs[k][0]
            own.append(found[k][at : at + count, at : at + count])
        return own


@dataclass
class _Bundle:
    """Blocks (set, number) that come together, and the patches between them."""

    blocks: list[tuple[int, int]]
    pairs: list[tuple[tuple[int, int], tuple[int, int]]]


def gram_plan(sets: Sequence[tuple[int, int]]) -> GramPlan:
    """The tasks that compute G of every set of consecutive columns (first, count).

    Neighbours that fit one block are computed as one set: their common products cost less than a block each.
    """
    runs = _runs(sets)
    bundles = [bundle for k, (_, count) in enumerate(runs) for bundle in _bundles(k, -(-count // SIDE))]
    bundles.sort(key=lambda x: -len(x.pairs))
    bins: list[_Bundle] = []
    for bundle in bundles:
        for one in bins:
            if len(one.blocks) + len(bundle.blocks) <= BLOCKS and len(one.pairs) + len(bundle.pairs) <= WARPS:
                one.blocks += bundle.blocks
                one.pairs += bundle.pairs
                break
        else:
            bins.append(_Bundle(list(bundle.blocks), list(bundle.pairs)))
    tasks = np.zeros((len(bins), TASK_NUMBERS), dtype=np.int32)
    patches: list[tuple[int, int, int]] = []
    for task, one in zip(tasks, bins, strict=True):
        for at, (k, block) in enumerate(one.blocks):
            first, count = runs[k]
            task[2 * at : 2 * at + 2] = first + SIDE * block, min(SIDE, count - SIDE * block)
        task[2 * BLOCKS :] = -1
        for warp, ((k, a), (_, b)) in enumerate(one.pairs):
            place = 2 * BLOCKS + 3 * warp
            task[place : place + 3] = one.blocks.index((k, a)), one.blocks.index((k, b)), len(patches)
            patches.append((k, a, b))
    return GramPlan(tuple(sets), tuple(runs), tasks, tuple(patches))


def _runs(sets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, count in sets:
        if found and sum(found[-1]) == first and found[-1][1] + count <= SIDE:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((first, count))
    return found


def _bundles(k: int, blocks: int) -> list[_Bundle]:
    """The patches of one set on and below the diagonal, in groups that one task can take."""
    if blocks <= LARGEST_SQUARE:
        every = [(k, a) for a in range(blocks)]
        return [_Bundle(every, [((k, a), (k, b)) for a in range(blocks) for b in range(a + 1)])]
    groups = [range(a, min(a + GROUP, blocks)) for a in range(0, blocks, GROUP)]
    found = []
    for i, rows in enumerate(groups):
        for columns in groups[: i + 1]:
            pairs = [((k, a), (k, b)) for a in rows for b in columns if b <= a]
            found.append(_Bundle([(k, a) for a in dict.fromkeys((*rows, *columns))], pairs))
    return found
