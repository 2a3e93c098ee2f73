"""Numbers at addresses and functions at addresses, as compiled code sees them."""

from __future__ import annotations

import ctypes

import numpy as np

from veridyn.mechanics.compiled import compiled
from veridyn.training.pointers import doubles, invoke, words


@compiled
def doubled(address: int, place: int, function: int) -> int:
    values, found = doubles(address, 3), words(place, 2)
    for k in range(3):
        values[k] *= 2.0
    return invoke(function, (found[0], found[1], 5))


def test_numbers_are_read_and_written_where_they_lie_and_functions_are_called() -> None:
    values, numbers = np.array([1.0, 2.0, 3.0]), np.array([7, 9], dtype=np.int64)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(lambda a, b, c: 100 * a + 10 * b + c)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert doubled(values.ctypes.data, numbers.ctypes.data, address) == 795
    assert values.tolist() == [2.0, 4.0, 6.0]
