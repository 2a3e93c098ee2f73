"""Compiled doors: the same function, as machine code."""

import numpy as np

from veridyn.mechanics.compiled import compiled, core, kept


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
