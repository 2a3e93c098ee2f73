"""The Gram kernel as NVIDIA's assembler sees it. A GPU is not needed; its numbers are checked by ``benchmarks/gpu.py`` on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strangers.ptxas import assemble
from veridyn.symbolic.gram_plan import WARPS
from veridyn.symbolic.gram_ptx import SHARED_BYTES, gram_kernel


def test_stages_fit_the_shared_memory() -> None:
    """163 kB of a multiprocessor of compute capability 8.0, 227 kB of one of 9.0 (CUDA programming guide, table of capabilities)."""
    assert SHARED_BYTES <= 163 * 1024


@pytest.mark.parametrize(("wide", "target"), [(True, "sm_90"), (False, "sm_80"), (False, "sm_90")])
def test_the_assembler_takes_the_kernel_without_spilling(wide: bool, target: str, tmp_path: Path) -> None:
    found = assemble(gram_kernel(wide=wide), tmp_path, target)
    assert found.spilled == 0 and found.registers <= 65536 // (32 * WARPS)
