"""What only compiled code calls: the same results, errors pass through, and no machine code of its own."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn.mechanics.linked as linked
from veridyn.mechanics.compiled import compiled, core, inner, summing


@core
def _square(x: float) -> float:
    return x * x


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


def test_an_error_passes_through_its_callers() -> None:
    with pytest.raises(ValueError, match="there is nothing"):
        _length(np.zeros(0))


@pytest.mark.skipif(not linked.linked_options(), reason="not tried with this version of numba")
def test_it_has_no_machine_code_of_its_own() -> None:
    _length(np.array([3.0, 4.0]))
    for function, compiled_itself in ((_square, False), (_total, False), (_rooted, False), (_length, True)):
        overloads = function.overloads  # pyright: ignore[reportFunctionMemberAccess]
        made = next(iter(overloads.values()))
        assert (made.library._compiled_object is not None) == compiled_itself, function


def test_a_numba_that_it_was_not_tried_with_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked, "TRIED", ("0.1",))
    assert linked.linked_options() == {}
