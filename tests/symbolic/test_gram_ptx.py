"""The Gram kernel as NVIDIA's assembler sees it. A GPU is not needed; its numbers are checked by ``benchmarks/gpu.py`` on one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from numpy_processor import NumpyProcessor
from strangers.ptxas import assemble
from veridyn.symbolic.gram_ptx import BLOCKS, SHARED_BYTES, SIDE, WARPS, gram_kernel, gram_plan

COLUMNS = {
    "one": [1],
    "an arm": [59, 59, 49, 39, 28, 19, 9],
    "a car": [61, 61, 61, 149, 149, 149, 13, 9, 5, 13, 9, 5, 17, 26, 9, 5, 17, 26, 9, 5],
    "long rows": [133, 329, 33, 32, 31, 161, 5],
}


def sets_of(counts: list[int]) -> list[tuple[int, int]]:
    return [(int(first), count) for first, count in zip(np.cumsum([0, *counts])[:-1], counts, strict=True)]


@pytest.mark.parametrize("name", COLUMNS)
def test_tasks_give_the_gram_matrix_of_every_set(name: str) -> None:
    sets = sets_of(COLUMNS[name])
    table = np.random.default_rng(0).normal(size=(sum(COLUMNS[name]), 40))
    plan = gram_plan(sets)
    sums = NumpyProcessor().gram(plan, 40)
    sums.add(table[:, :25], 25)
    sums.add(np.ascontiguousarray(table[:, 25:]), 15)
    for G, (first, count) in zip(sums.matrices(), sets, strict=True):
        A = table[first : first + count]
        np.testing.assert_allclose(G, A @ A.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", COLUMNS)
def test_tasks_stay_within_what_a_block_of_threads_has(name: str) -> None:
    plan = gram_plan(sets_of(COLUMNS[name]))
    blocks, warps = (
        plan.tasks[:, : 2 * BLOCKS].reshape(-1, BLOCKS, 2),
        plan.tasks[:, 2 * BLOCKS :].reshape(-1, WARPS, 3),
    )
    assert (blocks[..., 1] <= SIDE).all() and (blocks[..., 0] + blocks[..., 1] <= sum(COLUMNS[name])).all()
    assert sorted(p for p in warps[..., 2].ravel() if p >= 0) == list(range(len(plan.patches)))
    assert warps[..., :2].max() < BLOCKS


def test_small_neighbours_share_a_block() -> None:
    assert len(gram_plan(sets_of([5] * 12)).patches) == 2  # six in thirty of 32 columns


def test_stages_fit_the_shared_memory() -> None:
    """163 kB of a multiprocessor of compute capability 8.0, 227 kB of one of 9.0 (CUDA programming guide, table of capabilities)."""
    assert SHARED_BYTES <= 163 * 1024


@pytest.mark.parametrize(("wide", "target"), [(True, "sm_90"), (False, "sm_80"), (False, "sm_90")])
def test_the_assembler_takes_the_kernel_without_spilling(wide: bool, target: str, tmp_path: Path) -> None:
    found = assemble(gram_kernel(wide=wide), tmp_path, target)
    assert found.spilled == 0 and found.registers <= 65536 // (32 * WARPS)
