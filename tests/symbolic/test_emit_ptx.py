"""PTX: what its text must be everywhere, and what NVIDIA's assembler makes of it where that is installed. A GPU is not needed.

That its numbers are those of the processor is measured by ``benchmarks/gpu.py`` on a GPU.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from batch_machines import car
from strangers.ptxas import assemble
from strangers.random_trees import random_tree
from veridyn.mechanics.tree.dynamics.formula import Formula, formula
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.symbolic.emit_ptx import BY_VALUE, PtxArithmetic, PtxKernel, emit_ptx, hexadecimal
from veridyn.symbolic.expression import Graph


def test_constants_keep_every_digit() -> None:
    assert hexadecimal(1.0) == "0d3FF0000000000000"
    assert hexadecimal(-0.1) == "0dBFB999999999999A"


def test_results_have_registers_of_their_own() -> None:
    a = PtxArithmetic()
    x = a.add("%d7", a.number(1.0))
    y = a.choose(a.less(x, a.number(0.0)), x, a.double(a.plus(a.bits(x), a.whole(1))))
    assert (x, y) == ("%d1", "%d3")
    assert a.lines[0] == "add.rn.f64 %d1, %d7, 0d3FF0000000000000;" and a.lines[-1] == "selp.f64 %d3, %d1, %d2, %p1;"
    assert (a.doubles, a.integers, a.conditions, a.operations) == (3, 2, 1, 3)


def test_a_quotient_of_one_is_a_reciprocal() -> None:
    a = PtxArithmetic()
    a.div(a.number(1.0), "%d5")
    a.div(a.number(2.0), "%d5")
    assert [line.split()[0] for line in a.lines] == ["rcp.rn.f64", "div.rn.f64"]


def made(tree: Tree, quantity: str) -> Formula:
    rows = tuple(range(len(tree.rows)))
    return formula(tree, Request(quantity, rows, tuple(range(len(tree.columns))) if quantity == "regressor" else ()))


def kernel(f: Formula, **how) -> PtxKernel:
    return emit_ptx(f.graph, f.outputs, f.samples, f.parameters, **how)


def every_operation(g: Graph):
    a, b, c, p = g.inputs_named("abcp")
    return [
        g.sin(a) * g.cos(a) - g.cos(b), g.exp(a) + g.log(b) * p, g.atan(c) / a, g.sqrt(b) - g.abs(c), g.sign(a) * 0.1, 1.0 / b,
        -(a * b), a - b * c, a * b - c, 3.25, -a, p,
    ]  # fmt: skip


def test_every_output_is_stored_once_and_every_register_is_written_before_it_is_read() -> None:
    f = made(tree_of(car()), "regressor")
    text = kernel(f).text
    assert text.count("st.global.f64") == len(f.outputs)
    written: set[str] = set()
    for line in re.findall(r"^    (\w\S* .*);$", text, re.MULTILINE):
        name, rest = line.split(" ", 1)
        if name.startswith(("st.", ".reg", "@", "setp", "ret")):
            read, new = re.findall(r"%d\d+", rest), []
        else:
            new, read = re.findall(r"%d\d+", rest)[:1], re.findall(r"%d\d+", rest)[1:]
        assert set(read) <= written, line
        written |= set(new)


def test_samples_lie_together_and_threads_beyond_the_last_do_nothing() -> None:
    f = made(random_tree(np.random.default_rng(3), 4), "inverse")
    text = kernel(f).text
    strides = [int(k) for k in re.findall(r"mad\.wide\.u32 %l\d+, %ldi, (\d+), %in;", text)]
    assert strides and all(k % 8 == 0 and k // 8 < len(f.samples) for k in strides)
    assert re.search(r"setp\.ge\.u32 %p0, %r4, %r3;\s+@%p0 ret;", text)


def test_parameters_by_value_and_by_pointer() -> None:
    f = made(random_tree(np.random.default_rng(3), 4), "inverse")
    value, pointer = kernel(f).text, kernel(f, by_value=False).text
    assert f"parameters[{8 * len(f.parameters)}]" in value and "ld.param.f64" in value and "per_set];" not in value
    assert "ld.param.f64" not in pointer and "ld.param.u32 %r5, [per_set];" in pointer
    g = Graph()
    many = [f"p{k}" for k in range(BY_VALUE + 1)]
    total = g.input("x")
    for name in many:
        total = total + g.input(name)
    assert not emit_ptx(g, [total], ["x"], many).by_value  # 4096 bytes of arguments would not hold them


def test_products_are_fused_and_few_values_alive() -> None:
    k = kernel(made(tree_of(car()), "inverse"))
    assert k.text.count("fma.rn") > k.text.count("add.rn")
    assert k.live < 110


@pytest.mark.parametrize("target", ["sm_70", "sm_90"])
def test_the_assembler_takes_every_operation(target: str, tmp_path: Path) -> None:
    g = Graph()
    outputs = every_operation(g)
    for by_value in (True, False):
        assemble(emit_ptx(g, outputs, "abc", "p", by_value=by_value).text, tmp_path, target)


@pytest.mark.parametrize("quantity", ["inverse", "regressor"])
def test_a_car_fits_the_registers(quantity: str, tmp_path: Path) -> None:
    assert assemble(kernel(made(tree_of(car()), quantity)).text, tmp_path).spilled == 0


def test_forward_dynamics_of_a_car_is_assembled(tmp_path: Path) -> None:
    """Its factors do not all fit the registers; what does not, a tenth of what is alive, waits in local memory."""
    k = kernel(made(tree_of(car()), "forward"))
    assert assemble(k.text, tmp_path).spilled < 0.2 * 8 * k.live
