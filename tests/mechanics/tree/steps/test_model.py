"""Trees over independent coordinates: many states at once, and what does not fit by name."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.tree_models import model, moving, small_arm
from veridyn.errors import DataError, ModelError
from veridyn.machines import linkage
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import tree_model


def test_many_states_at_once_are_as_one_by_one() -> None:
    m = model("palletizer")
    states = [moving(m, seed, 0.05) for seed in range(4)]
    x, v, u = (np.array(part) for part in zip(*states, strict=True))
    together = m.step(x, v, u, 0.005, m.loads())
    for k, (a, b, c) in enumerate(states):
        alone = m.step(a, b, c, 0.005, m.loads())
        np.testing.assert_array_equal(together.q[k], alone.q)
        np.testing.assert_array_equal(together.F[k], alone.F)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unknown": ("elbow",)}, "'elbow' is no coordinate"),
        ({"unknown": ("upper", "upper")}, "named twice"),
        ({"varying": ("fw",)}, "there is no parameter 'fw', nor a load"),
        ({"independents": ("upper",)}, "every coordinate of a machine without loops is independent"),
    ],
)
def test_what_does_not_fit_is_named(change: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tree_model(tree_of(small_arm()), **change)


def test_inputs_and_starts_that_do_not_exist_are_named() -> None:
    m = tree_model(tree_of(small_arm()))
    with pytest.raises(DataError, match=r"there is no input 'force\.uper'"):
        m.loads({"force.uper": 1.0})
    with pytest.raises(DataError, match="there is no coordinate 'uper'"):
        m.start_of({"uper": 1.0})
    with pytest.raises(DataError, match="follows from the others"):
        tree_model(tree_of(linkage())).start_of(rates={linkage().coordinates[1]: 1.0})
