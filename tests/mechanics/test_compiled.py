"""Compiled doors: the same function, as machine code."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types

from veridyn.errors import ModelError
from veridyn.mechanics import compiled as compiling
from veridyn.mechanics.compiled import (
    Bound,
    Codes,
    Cube,
    Matrix,
    Numbers,
    Vector,
    compiled,
    core,
    inner,
    kept,
    merged,
    only_for,
    opened,
    summing,
)


@core
def _square(x: float) -> float:
    return x * x


@merged
def _product(x: float, y: float) -> float:
    return x * y


@compiled
def _area(x: float, y: float) -> float:
    return _product(x, y)


@summing
def _total(values: np.ndarray) -> float:
    found = 0.0
    for value in values:
        found += _square(value)
    return found


@inner
def _rooted(values: np.ndarray) -> np.ndarray:
    if len(values) == 0:
        raise ValueError("there is nothing")
    return np.full(2, np.sqrt(_total(values)))


@compiled
def _length(values: np.ndarray) -> float:
    return _rooted(values)[1]


def test_three_levels_give_what_they_are_written_to() -> None:
    assert _length(np.array([3.0, 4.0])) == pytest.approx(5.0, rel=1e-15)
    assert _length(np.array([3, 4])) == pytest.approx(5.0, rel=1e-15)  # another signature of all of them


def test_a_merged_function_is_written_out_in_its_caller() -> None:
    assert _area(3.0, 4.0) == 12.0
    made: Any = _area
    machine_code = next(iter(made.inspect_asm().values()))
    assert not [line for line in machine_code.splitlines() if "call" in line.split("#")[0] and "_product" in line]


def test_an_error_passes_through_its_callers() -> None:
    with pytest.raises(ValueError, match="there is nothing"):
        _length(np.zeros(0))


@pytest.mark.skipif(not compiling.linked_options(), reason="not tried with this version of numba")
def test_it_has_no_machine_code_of_its_own() -> None:
    _length(np.array([3.0, 4.0]))
    for function, compiled_itself in ((_square, False), (_total, False), (_rooted, False), (_length, True)):
        overloads = function.overloads  # pyright: ignore[reportFunctionMemberAccess]
        made = next(iter(overloads.values()))
        assert (made.library._compiled_object is not None) == compiled_itself, function


def test_a_numba_that_it_was_not_tried_with_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "TRIED", ("0.1",))
    assert compiling.linked_options() == {}


def double(x: float) -> float:
    return 2.0 * x


def test_a_compiled_function_is_the_one_it_was_written_as() -> None:
    for made in (compiled(double), kept(double)):
        assert made(4.0) == 8.0
    assert np.isinf(compiled(_inverse)(0.0))


def _inverse(x: float) -> float:
    return 1.0 / x


@core
def _twice_in_place(x: np.ndarray) -> None:
    for i in range(len(x)):
        x[i] *= 2.0


@compiled
def _twice(x: np.ndarray) -> None:
    _twice_in_place(x)


def test_a_core_is_called_by_compiled_code_alone() -> None:
    x = np.arange(3.0)
    _twice(x)
    assert x.tolist() == [0.0, 2.0, 4.0]


def test_threads_that_ask_at_once_find_one_function() -> None:
    """Whoever comes second waits for the code; other types are refused, not compiled for."""
    function, together = kept(lambda x: 2.0 * x), Barrier(8)

    def ask(k: int) -> float:
        together.wait()
        return float(only_for(function, (types.float64,))(float(k)))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [2.0 * k for k in range(8)]
    with pytest.raises(TypeError, match="No matching definition"):
        function(np.zeros(3))


class Inside(NamedTuple):
    scale: float
    times: int
    twice: bool
    codes: Codes


class Outer(NamedTuple):
    x: Vector
    A: Matrix
    inside: Inside
    G: Cube
    at: Numbers


class Wrong(NamedTuple):
    name: str


@compiled
def shuffle(address):
    """A small sum of every field, and a mark in two of the arrays."""
    r = opened(address, Outer)
    s = r.inside.scale * r.inside.times + r.inside.codes[1]
    if r.inside.twice:
        s *= 2.0
    for i in range(r.A.shape[0]):
        for j in range(r.A.shape[1]):
            s += r.A[i, j] * (1 + i + 10 * j)
    for k in range(r.G.shape[2]):
        s += r.G[1, 2, k] * k
    r.x[r.at[0]] = s
    r.A[1, 2] = -1.0
    return len(r.x), r.A.shape, r.G.shape


def record(twice: bool = False) -> Outer:
    rng = np.random.default_rng(0)
    inside = Inside(0.25, -3, twice, np.array([7, -5], dtype=np.int8))
    return Outer(np.zeros(4), rng.normal(size=(2, 3)), inside, rng.normal(size=(2, 3, 5)), np.array([2]))


@pytest.mark.parametrize("twice", [False, True])
def test_a_kernel_reads_and_writes_the_arrays_of_a_record(twice: bool) -> None:
    r = record(twice)
    weights = 1 + np.arange(2)[:, None] + 10 * np.arange(3)
    expected = (0.25 * -3 - 5) * (2 if twice else 1) + (r.A * weights).sum() + r.G[1, 2] @ np.arange(5)
    bound = Bound(r)
    assert shuffle(bound.address) == (4, (2, 3), (2, 3, 5))
    assert r.x == pytest.approx([0.0, 0.0, expected, 0.0]) and r.A[1, 2] == -1.0


def test_a_bound_record_travels_with_its_arrays_and_not_with_its_addresses() -> None:
    bound = Bound(record())
    again = pickle.loads(pickle.dumps(bound))
    shuffle(again.address)
    assert again.record.x[2] != 0.0 and bound.record.x[2] == 0.0


def test_what_compiled_code_could_not_read_is_refused() -> None:
    for wrong in (np.zeros((3, 2)).T, np.zeros((2, 3), dtype=np.float32), np.zeros(6), [[1.0]]):
        with pytest.raises(ModelError, match=r"Outer.A: the array cannot be handed to compiled code"):
            Bound(record()._replace(A=wrong))
    with pytest.raises(ModelError, match="neither an array of a known kind, a number nor a record"):
        Bound(Wrong("x"))
