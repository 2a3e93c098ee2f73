"""Straight-line vector code, cut into pieces: the numbers of the graph, whatever the width, the block and the cuts."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from strangers.evaluate import Twin, twins
from veridyn.symbolic import emit_llvm
from veridyn.symbolic.emit_llvm import BLOCK, FLAGS, PIECE, Program, emit, place_stride
from veridyn.symbolic.expression import ADD, COS, SIN, Graph, live
from veridyn.symbolic.kernel import Kernel, compile_object, this_host

NAMES = tuple("abcdef")
N = 150


@cache
def big() -> tuple[Graph, dict[str, np.ndarray], list[Twin]]:
    """Some thousand random operations on four arrays and two parameters, and outputs from early and late, many of them used again."""
    rng, g = np.random.default_rng(3), Graph()
    inputs = {name: rng.normal(size=N) for name in NAMES[:4]}
    inputs |= {name: np.array(rng.normal()) for name in NAMES[4:]}
    pool = twins(rng, g, inputs, 1600)
    return g, inputs, pool[::7]


def run(width: int, block: int = BLOCK, count: int | None = None) -> tuple[Program, np.ndarray]:
    g, inputs, every = big()
    chosen = every[:count]
    program = emit(g, [t.symbol for t in chosen], NAMES[:4], NAMES[4:], width, block)
    kernel = Kernel(
        compile_object(program.text, this_host(width)), NAMES[:4], NAMES[4:], len(chosen), program.places, block
    )
    out = np.full((len(chosen), -(-N // block) * block), np.nan)
    addresses = out.ctypes.data + out.strides[0] * np.array(program.order, dtype=np.uintp)
    kernel.run([inputs[n] for n in NAMES[:4]], np.array([inputs[n] for n in NAMES[4:]]), addresses, N)
    return program, out[:, :N]


def check(found: np.ndarray) -> None:
    """To 1e-10: fused operations and other sines move every number by an ulp, and a random graph passes them on."""
    for twin, row in zip(big()[2][: len(found)], found, strict=True):
        assert row == pytest.approx(np.broadcast_to(twin.number, N), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_many_pieces_on_every_width(width: int) -> None:
    check(run(width)[1])


@pytest.mark.parametrize(
    "block", [pytest.param(8, marks=pytest.mark.slow), 16, pytest.param(128, marks=pytest.mark.slow)]
)
def test_other_blocks(block: int) -> None:
    check(run(4, block)[1])


@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_wherever_it_is_cut(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """One operation a piece, and all in one: places of the work array are handed on rightly."""
    monkeypatch.setattr(emit_llvm, "PIECE", piece)
    program, found = run(2, count=60)
    check(found)
    g, _, every = big()
    chosen = every[:60]
    kinds = [g.operation[n] for n in live(g, [t.symbol for t in chosen]) if g.operation[n] >= ADD]
    turning = sum(op in (SIN, COS) for op in kinds)
    if piece == 1:  # the sine and cosine of one angle are not parted
        assert len(kinds) - turning <= program.pieces <= len(kinds)
    if piece > 100 * len(kinds):
        assert program.pieces == 1


def test_the_pieces_are_short() -> None:
    g, _, chosen = big()
    program = emit(g, [t.symbol for t in chosen], NAMES[:4], NAMES[4:], 4)
    assert program.pieces > 3
    bodies = re.split(r"define internal void @piece\d+", program.text)[1:]
    assert len(bodies) == program.pieces
    operations = [len(re.findall(r" = f(?:add|sub|mul|div) ", body)) for body in bodies]
    assert max(operations) <= PIECE


def chain(length: int) -> Program:
    g = Graph()
    x, y = g.inputs_named("xy")
    at = x
    for k in range(length):
        at = at * y + float(k + 1) * x
    return emit(g, [at], ("x", "y"), (), 4)


def test_places_are_used_again() -> None:
    """A chain needs no more places for being longer."""
    short, long = chain(2 * PIECE), chain(20 * PIECE)
    assert long.pieces > 5 * short.pieces > 10
    assert long.places == short.places <= 8


def test_the_order_names_every_output_once() -> None:
    g, _, chosen = big()
    program = emit(g, [t.symbol for t in chosen], NAMES[:4], NAMES[4:], 4)
    assert sorted(program.order) == list(range(len(chosen)))


def test_only_fusing_is_allowed() -> None:
    """Nothing that would change the order of sums or drop NaN: results are the same on every machine that fuses."""
    g, _, chosen = big()
    text = emit(g, [t.symbol for t in chosen], NAMES[:4], NAMES[4:], 4).text
    assert FLAGS == "contract"
    assert not re.search(r"\b(fast|reassoc|nnan|ninf|nsz|arcp|afn)\b", text)


def test_constants_are_written_bit_by_bit() -> None:
    g = Graph()
    value = 0.1 + 0.2
    program = emit(g, [value * g.input("x")], ("x",), (), 2)
    assert f"0x{np.float64(value).view(np.uint64):016X}" in program.text


def test_work_places_do_not_fall_on_one_line_of_the_cache() -> None:
    assert place_stride(64) == 72 and place_stride(1) == 1


def test_inputs_that_nothing_needs_are_not_read() -> None:
    g = Graph()
    x, unused = g.inputs_named(["x", "unused"])
    alone = emit(g, [x * 2.0], ("x",), (), 4)
    beside = emit(g, [x * 2.0, unused * 3.0], ("unused", "x"), (), 4)
    ignored = emit(g, [x * 2.0], ("unused", "x"), (), 4)
    assert ignored.places == alone.places < beside.places


@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_lanes_have_parameters_of_their_own(lanes: int) -> None:
    """One call: what is a parameter has a number in each lane, and inputs are read where they lie; two outputs are inputs themselves."""
    rng, g = np.random.default_rng(5), Graph()
    inputs = {name: rng.normal(size=lanes) for name in NAMES}
    chosen = twins(rng, g, inputs, 700)[::7]
    outputs = [t.symbol for t in chosen] + [g.input("a"), g.input("f")]
    program = emit(g, outputs, NAMES[:4], NAMES[4:], lanes, lanes, lanes=True)
    # x86 faults where an array lies less evenly than its loads say, and a record of a run lies at any double.
    assert {int(found) for found in re.findall(r"align (\d+)", program.text)} == {8}
    code = compile_object(program.text, this_host(lanes))
    kernel = Kernel(code, NAMES[:4], NAMES[4:], len(outputs), program.places, lanes)
    found = np.full((len(outputs), lanes), np.nan)
    addresses = found.ctypes.data + found.strides[0] * np.array(program.order, dtype=np.uintp)
    parameters = np.concatenate([inputs[n] for n in NAMES[4:]])
    kernel.run([inputs[n] for n in NAMES[:4]], parameters, addresses, 1)
    for twin, row in zip(chosen, found, strict=False):
        assert row == pytest.approx(np.broadcast_to(twin.number, lanes), rel=1e-10, abs=1e-10)
    assert np.array_equal(found[-2:], [inputs["a"], inputs["f"]])
