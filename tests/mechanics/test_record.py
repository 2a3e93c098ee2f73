"""Records opened in compiled code are the arrays that were bound, and what is written there is seen here."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.record import Bound, Codes, Cube, Matrix, Numbers, Vector, opened


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
