"""Machine code called on arrays: any number of samples, any stride, any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import llvmlite
import numpy as np
import pytest

from strangers.evaluate import evaluate
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import Graph, Number
from veridyn.symbolic.kernel import Host, Kernel, Single, compile_object, padded, this_host

EMPTY = "define void @nothing() {\n  ret void\n}\n"


def test_the_host_is_known() -> None:
    host = this_host()
    assert host.width in (2, 4, 8) and host.triple and host.cpu
    assert this_host() is host


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_width_is_a_parameter(width: int) -> None:
    host = this_host(width)
    assert host.width == width
    assert (host.triple, host.cpu) == (this_host().triple, this_host().cpu)
    assert len(compile_object(EMPTY, host)) > 100


def test_the_signature_holds_what_an_object_depends_on() -> None:
    signatures = {this_host(w).signature for w in (2, 4, 8)}
    assert len(signatures) == 3
    a = Host("t", "cpu", "+fma", 4)
    others = [Host("u", "cpu", "+fma", 4), Host("t", "old", "+fma", 4), Host("t", "cpu", "", 4)]
    assert len({h.signature for h in (a, *others)}) == 4
    assert llvmlite.__version__ in a.signature


def test_a_plain_processor_of_this_kind_can_be_compiled_for() -> None:
    """No feature but what every machine of this architecture has: what LLVM makes for another computer."""
    here = this_host()
    plain = Host(here.triple, "", "", 2)
    assert len(compile_object(EMPTY, plain)) > 100


WIDTHS = (2, 4, 8)
SAMPLES = (1, 2, 63, 64, 65, 1000)


Made = tuple[Kernel, np.ndarray]


def kernel_of(graph: Graph, outputs: list[Number], parameters: tuple[str, ...] = (), width: int | None = None) -> Made:
    """A kernel, and the number in `outputs` of each of what comes out of it."""
    samples = tuple(name for name in graph.inputs if name not in parameters)
    host = this_host(width)
    program = emit(graph, outputs, samples, parameters, host.width)
    kernel = Kernel(compile_object(program.text, host), samples, parameters, len(outputs), program.places)
    return kernel, np.array(program.order, dtype=np.uintp)


def called(
    made: Made, columns: list[np.ndarray], parameters: tuple[float, ...] = (), far: bool = False, shift: int = 0
) -> np.ndarray:
    """Outputs (k, N); what lies around the room a kernel may use is checked to be untouched. `shift`: doubles off a line of the cache."""
    kernel, order = made
    N = len(columns[0])
    row = padded(N) + 64
    flat = np.full(kernel.outputs * row + 16, np.nan)
    start = -flat.ctypes.data % 64 // 8 + shift
    out = flat[start : start + kernel.outputs * row].reshape(kernel.outputs, row)
    kernel.run(columns, np.array(parameters), out.ctypes.data + out.strides[0] * order, N, far)
    assert (
        np.isnan(out[:, padded(N) :]).all()
        and np.isnan(flat[:start]).all()
        and np.isnan(flat[start + out.size :]).all()
    )
    return out[:, :N]


@cache
def example() -> tuple[Graph, list[Number]]:
    g = Graph()
    x, y, p = g.inputs_named(["x", "y", "p"])
    return g, [x * y + p, g.sin(x) * p - g.cos(x), -(x / (y * y + 1.0)), g.sqrt(g.abs(x)) * g.sign(y)]


@cache
def example_kernel(width: int) -> Made:
    return kernel_of(*example(), ("p",), width)


def expected(x: np.ndarray, y: np.ndarray, p: float) -> np.ndarray:
    return np.array([x * y + p, np.sin(x) * p - np.cos(x), -x / (y * y + 1.0), np.sqrt(np.abs(x)) * np.sign(y)])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("samples", SAMPLES)
def test_any_number_of_samples(width: int, samples: int) -> None:
    x, y = np.random.default_rng(samples).normal(size=(2, samples))
    found = called(example_kernel(width), [x, y], (0.7,))
    assert found == pytest.approx(expected(x, y, 0.7), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("width", WIDTHS)
def test_any_stride(width: int) -> None:
    """Contiguous, every third, backwards, one number for all, and a column of a matrix."""
    table = np.random.default_rng(0).normal(size=(300, 7))
    line = table.ravel()
    views = [line[:100], line[::3][:100], line[::-1][5:105], np.broadcast_to(line[3], 100), table[50:150, 4]]
    for x in views:
        for y in views:
            found = called(example_kernel(width), [x, y], (1.3,))
            assert found == pytest.approx(expected(x, y, 1.3), rel=1e-14, abs=1e-15)


def test_a_field_of_a_record() -> None:
    """Its stride is no multiple of eight bytes."""
    table = np.zeros(70, dtype=[("n", "i4"), ("x", "f8")])
    table["x"] = np.random.default_rng(0).normal(size=70)
    y = np.linspace(-1.0, 1.0, 70)
    found = called(example_kernel(this_host().width), [table["x"], y], (0.2,))
    assert found == pytest.approx(expected(np.array(table["x"]), y, 0.2), rel=1e-14, abs=1e-15)


def test_no_samples_write_nothing() -> None:
    empty = np.zeros(0)
    out = np.full((4, 8), np.nan)
    example_kernel(this_host().width)[0].run([empty, empty], np.ones(1), [out.ctypes.data] * 4, 0)
    assert np.isnan(out).all()


def test_parameters_are_inputs_of_the_call() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 10))
    for p in (0.0, -2.0, 1e6):
        found = called(example_kernel(4), [x, y], (p,))
        assert found == pytest.approx(expected(x, y, p), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("width", [1, *WIDTHS])
def test_outputs_that_are_nothing_but_inputs_parameters_or_constants(width: int) -> None:
    """Beside an operation, twice over and with either sign."""
    g = Graph()
    x, p = g.inputs_named("xp")
    outputs = [x, -x, p, -p, 2.5, -2.5, x + p, x, 0.0]
    columns = np.random.default_rng(0).normal(size=70)
    found = called(kernel_of(g, outputs, ("p",), width), [columns], (0.3,))
    for value, row in zip(evaluate(g, outputs, {"x": columns, "p": 0.3}), found, strict=True):
        assert np.array_equal(row, np.broadcast_to(value, 70))


@pytest.mark.parametrize("outputs", ["constant", "parameter", "input", "all"])
def test_a_graph_without_operations(outputs: str) -> None:
    g = Graph()
    x, p = g.inputs_named("xp")
    chosen = {"constant": [1.5, -2.0], "parameter": [p, -p], "input": [x, -x], "all": [x, p, 3.0]}[outputs]
    column = np.random.default_rng(0).normal(size=5)
    found = called(kernel_of(g, chosen, ("p",)), [column], (0.3,))
    for value, row in zip(evaluate(g, chosen, {"x": column, "p": 0.3}), found, strict=True):
        assert np.array_equal(row, np.broadcast_to(value, 5))


def test_threads_have_work_arrays_of_their_own() -> None:
    """One kernel, four threads at once, each on its samples, over and over."""
    kernel = example_kernel(this_host().width)
    rng = np.random.default_rng(0)
    logs = [rng.normal(size=(2, 5000)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda xy: called(kernel, list(xy), (0.4,)), logs))
            for (x, y), out in zip(logs, found, strict=True):
                assert np.allclose(out, expected(x, y, 0.4), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("width", [1, *WIDTHS])
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_writing_past_the_caches_gives_the_same(width: int, shift: int) -> None:
    """Also where outputs do not lie on a line of the cache, which such writing cannot do and must not try."""
    x, y = np.random.default_rng(0).normal(size=(2, 200))
    made = example_kernel(width)
    assert np.array_equal(called(made, [x, y], (0.7,), True, shift), called(made, [x, y], (0.7,), False, shift))


def test_one_sample_a_call() -> None:
    g, outputs = example()
    program = emit(g, outputs, ("x", "y"), ("p",), 1, 1)
    kernel = Kernel(compile_object(program.text, this_host(1)), ("x", "y"), ("p",), 4, program.places, 1)
    single = Single(kernel, np.array([0.6]))
    for x, y in np.random.default_rng(0).normal(size=(20, 2)):
        single.inputs[:] = x, y
        single.call()
        assert single.outputs == pytest.approx(expected(x, y, 0.6)[list(program.order)], rel=1e-14, abs=1e-15)


def test_padding_goes_to_full_blocks() -> None:
    assert [padded(n) for n in (0, 1, BLOCK, BLOCK + 1)] == [0, BLOCK, BLOCK, 2 * BLOCK]
