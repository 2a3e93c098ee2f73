"""PTX over strided arrays: what its text must be everywhere, and what NVIDIA's assembler makes of it. A GPU is not needed.

That its numbers are those of the processor is measured on a GPU: tests/gpu/test_training.py and ``python -m benchmarks.graph``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strangers.ptxas import assemble
from veridyn.symbolic.expression import Graph
from veridyn.symbolic.strided_ptx import SHARED_DOUBLES, emit_strided


def kernel(shared: int = 1, summed: int = 1, parameters: int = 2):
    """y = a p₀ + sin b, −y; and two sums over samples."""
    g = Graph()
    names = [f"p{k}" for k in range(parameters)]
    a, b, p, _ = g.inputs_named(["a", "b", *names[:2]])
    y = a * p + g.sin(b)
    return emit_strided(g, [["a", "b"], names], [[y, -y], [a * b, 0.0]], shared=shared, summed=summed)


def test_a_launch_has_four_numbers_of_each_array_and_two_more() -> None:
    k = kernel()
    assert (k.arrays, k.numbers, k.summed) == (4, 18, 3)
    assert f".b8 launch[{8 * k.numbers}]" in k.text
    assert {int(x) for x in re.findall(r"\[launch\+(\d+)\]", k.text)} == set(range(0, 8 * k.numbers, 8))


def test_outputs_are_stored_by_samples_that_exist_and_sums_by_the_first_of_a_warp() -> None:
    text = kernel().text
    assert len(re.findall(r"@%inside st\.global\.f64", text)) == 2
    assert len(re.findall(r"@%first st\.global\.f64", text)) == 2
    # one number that is not zero and one that is, each in two halves over five distances
    assert text.count("shfl.sync.bfly.b32") == 2 * 2 * 5 and text.count(", %inside;") >= 2


def test_shared_parameters_come_from_shared_memory_and_others_from_where_they_lie() -> None:
    shared, own = kernel().text, kernel(shared=-1).text
    assert (
        "ld.volatile.shared.f64" in shared and "bar.sync 0;" in shared and ".shared .align 8 .b8 staged[16]" in shared
    )
    assert "staged" not in own and own.count("ld.global.nc.f64") == 3
    assert "staged" not in kernel(parameters=SHARED_DOUBLES + 1).text


@pytest.mark.parametrize("target", ["sm_70", "sm_90"])
@pytest.mark.parametrize("shared", [1, -1])
def test_the_assembler_takes_it(target: str, shared: int, tmp_path: Path) -> None:
    assert assemble(kernel(shared).text, tmp_path, target).spilled == 0
