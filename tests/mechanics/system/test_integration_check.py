"""Starts and motions that no simulation can have, by name."""

from __future__ import annotations

import numpy as np
import pytest

from mechanics.small_trees import PENDULUM, pendulum
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.system.integrate import BaseState, Method, integrate
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import spring


def test_a_force_that_runs_away_is_a_simulation_error() -> None:
    """q̈ grows as q²: infinite before the end, said with the time that was reached."""
    tree = Tree.build([Body("block", joint="sliding")], inertia={"block": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]})

    def force(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return 9.81 + 50.0 * q**2

    with pytest.raises(SimulationError, match=r"DOP853 stopped at 0\.\d+ s[\s\S]*Expected 10 s[\s\S]*friction_speed"):
        integrate(tree, np.linspace(0.0, 10.0, 1001), [1.0], [1.0], force)


def test_a_fixed_step_that_explodes_is_a_simulation_error() -> None:
    stiff = pendulum((spring("arm", 1e9),))
    with (
        np.errstate(all="ignore"),
        pytest.raises(SimulationError, match=r"(no longer finite|run away) at [\d.]+ s[\s\S]*smaller step"),
    ):
        integrate(stiff, np.linspace(0.0, 20.0, 201), [0.1], [0.0], method=Method("RK4", step=0.1))


def test_bad_starts_are_reported_all_at_once() -> None:
    with pytest.raises(DataError) as caught:
        integrate(pendulum(), [0.0, 0.0], [np.nan], [0.0, 1.0], base=BaseState(), method=Method("RK5"))
    text = str(caught.value)
    assert len(caught.value.faults) == 5
    for part in (
        "times do not increase",
        "q: the start is not",
        "qd: the start is not",
        "no integrator 'RK5'",
        "no state",
    ):
        assert part in text
    with pytest.raises(DataError, match=r"a fixed step needs its length[\s\S]*found inf"):
        integrate(pendulum(), [0.0, 1.0], [0.0], [0.0], method=Method("RK4"))


def test_a_coordinate_without_mass_is_named() -> None:
    tree = Tree.build([Body("a"), Body("b", "a", real=False)], inertia={"a": PENDULUM})
    with pytest.raises(ModelError, match="coordinate b moves no mass"):
        integrate(tree, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
