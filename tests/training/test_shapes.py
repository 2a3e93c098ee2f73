"""Leading dimensions become sets and samples without a copy where that can be."""

from __future__ import annotations

import numpy as np
import pytest

from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.training.shapes import broadcast, check_columns, complete_arrays, split


@pytest.mark.parametrize(
    ("leading", "expected"),
    [
        ([(5,), ()], [(1, 5), (1, 1)]),  # one set of parameters for all samples
        ([(5,), (5,)], [(1, 5), (1, 5)]),  # one for each
        ([(5,), (3, 1)], [(1, 5), (3, 1)]),  # sets of parameters times samples
        ([(3, 5), (3, 1)], [(3, 5), (3, 1)]),
        ([(), (7,)], [(1, 1), (1, 7)]),  # one state with many sets: samples
        ([(2, 4, 5), ()], [(1, 40), (1, 1)]),
        ([(2, 4, 5), (2, 4, 1)], [(8, 5), (8, 1)]),
        ([(), ()], [(1, 1), (1, 1)]),
    ],
)
def test_a_cut_gives_each_array_its_sets_and_samples(leading: list, expected: list) -> None:
    assert split(leading, broadcast(leading, "m")) == expected


def test_shapes_that_no_cut_brings_to_two_dimensions_are_written_out() -> None:
    leading = [(2, 1, 5), (1, 4, 1)]
    assert split(leading, broadcast(leading, "m")) is None


def test_arrays_that_do_not_go_together_are_refused_with_their_shapes() -> None:
    with pytest.raises(DataError, match=r"m: .*\n.*\(5,\), \(4,\)"):
        broadcast([(5,), (4,)], "m")
    f = machine_function(small_arm(), "inverse").widths
    with pytest.raises(DataError, match=r"'qd'.*wrong shape.*\n.*\(\.\.\., 2\), found \(5, 3\)"):
        check_columns(f, {"q": np.zeros((5, 2)), "qd": np.zeros((5, 3))}, "arm")


def test_a_free_base_must_be_given() -> None:
    f = ("q", "qd", "qdd")
    assert list(complete_arrays(f, {"qdd": 3, "qd": 2, "q": 1}, None, "arm").values()) == [1, 2, 3]
    with pytest.raises(DataError, match="'qdd'"):
        complete_arrays(f, {"q": 1, "qd": 2}, None, "arm")
