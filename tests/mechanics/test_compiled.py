"""Compiled doors: the same function, as machine code."""

import numpy as np

from veridyn.mechanics.compiled import compiled, kept


def double(x: float) -> float:
    return 2.0 * x


def test_a_compiled_function_is_the_one_it_was_written_as() -> None:
    for made in (compiled(double), kept(double)):
        assert made(4.0) == 8.0
    assert np.isinf(compiled(_inverse)(0.0))


def _inverse(x: float) -> float:
    return 1.0 / x
