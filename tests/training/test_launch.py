"""What machine code is told of arrays: addresses, strides, and lengths of 1 that go with any other."""

from __future__ import annotations

import numpy as np
import pytest

from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.training.launch import Call, common_size, packed, row


def test_sizes_are_those_that_are_not_one() -> None:
    assert common_size([(1, 5, 2), (3, 1, 24)]) == (3, 5)
    with pytest.raises(DataError, match="different numbers of samples or sets"):
        common_size([(1, 5, 2), (1, 4, 2)])


def test_what_is_shared_has_no_stride() -> None:
    x = np.zeros((1, 5, 2))
    assert row(64, x.strides, x.shape, (3, 5)) == [64, 0, 16, 8]
    assert row(64, x[:, :1].strides, (1, 1, 2), (3, 5)) == [64, 0, 0, 8]
    assert packed([[1, 2, 3, 4]], 5, 6).tolist() == [1, 2, 3, 4, 5, 6]


def test_an_array_whose_columns_are_too_far_apart_is_refused() -> None:
    with pytest.raises(DataError, match="too large for one call"):
        row(0, (8, 8, 2**32), (1, 5, 2), (1, 5))


def test_only_shared_parameters_are_summed() -> None:
    f = machine_function(small_arm(), "inverse")
    every = (True, True, True, True)
    assert Call(f, every, False).summed == 3 and Call(f, every, True).summed == Call(f, None, False).summed == -1
    assert Call(f, every, False).widths == [2, 2, 2, 24] and Call(f, None, False).widths == [2]
    assert len({Call(f, w, own).key for w in (None, every) for own in (False, True)}) == 4
