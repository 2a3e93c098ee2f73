"""Machines with loops as plants: the same equations as everywhere else, and slopes through the loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.excitation.plant import ClosedPlant, TreePlant, closed_samples, plant_of
from veridyn.machines import linkage
from veridyn.machines.arm import arm
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.papers.hexapod.machine import LEGS, POSE, machine, truth

rng = np.random.default_rng(0)
SIZES = np.array([0.04] * 3 + [0.08] * 3)


@cache
def plant_of_pose() -> ClosedPlant:
    return ClosedPlant(truth(), POSE)


def motion(N: int = 12) -> np.ndarray:
    plant = plant_of_pose()
    return np.stack(
        [plant.home + rng.normal(size=(N, 6)) * SIZES, 0.3 * rng.normal(size=(N, 6)), 2.0 * rng.normal(size=(N, 6))]
    )


def test_equations_are_those_of_the_machine_written_by_hand() -> None:
    """Forces by A χ against the hexapod's equations derived separately (papers/hexapod/platform): 1e-7 N of 100."""
    plant, X = plant_of_pose(), motion(40)
    chi = plant.base.reduce(truth().parameters.values)
    by_hand = machine(1e-9)
    assert plant.regressor(X) @ chi == pytest.approx(by_hand.forces(*X), abs=1e-6)
    assert plant.actuators(X)[0][:, 0] == pytest.approx(by_hand.lengths(X[0]), abs=1e-9)
    assert plant.located(by_hand.lengths(X[0])) == pytest.approx(X[0], abs=1e-8)
    assert (plant.bounded, plant.rows, plant.base.count) == (LEGS, LEGS, 24)


def test_the_regressor_is_that_of_the_tree() -> None:
    machine, X = truth(), motion(6)
    plant = plant_of_pose()
    m = closed_motion(machine, np.arange(6.0), X[0], X[1], X[2], at=POSE, path=False)
    D = regressor(machine, m) @ machine.parameters.estimated_matrix()[:, list(plant.base.columns)]
    assert plant.regressor(X) == pytest.approx(D, rel=1e-8, abs=1e-8)
    again = closed_samples(plant, np.arange(6.0), X)
    assert again.qdd == pytest.approx(m.qdd, abs=1e-7)


def test_slopes_of_equations_actuators_and_places() -> None:
    plant, X = plant_of_pose(), motion(5)
    G = rng.normal(size=(5, 6, 24))
    slope = plant.adjoint(X, G, 0.05)
    _, by = plant.actuators(X)
    _, at = plant.place(X, "rod3", np.array([0.0, 0.02, -0.1]))
    h = 1e-6
    for order in range(3):
        for k in range(6):
            d = np.zeros_like(X)
            d[order, :, k] = h
            found = ((plant.regressor(X + d, 0.05) - plant.regressor(X - d, 0.05)) * G).sum(axis=(1, 2)) / (2 * h)
            assert slope[order, :, k] == pytest.approx(found, rel=1e-4, abs=1e-3)
            moved = (plant.actuators(X + d)[0] - plant.actuators(X - d)[0]) / (2 * h)
            assert by[:, :, :, order, k] == pytest.approx(moved, rel=1e-6, abs=1e-6)
            if order == 0:
                places = (
                    plant.place(X + d, "rod3", np.array([0.0, 0.02, -0.1]))[0]
                    - plant.place(X - d, "rod3", np.array([0.0, 0.02, -0.1]))[0]
                ) / (2 * h)
                assert at[:, :, k] == pytest.approx(places, abs=1e-6)


def test_where_a_search_was_does_not_matter() -> None:
    """Newton's steps begin at the last motion where it is near: the result is the same to the tolerance of closing."""
    plant, X = replace(plant_of_pose()), motion(8)
    first = plant.regressor(X)
    plant.regressor(X + 1e-3)
    assert plant.regressor(X.copy()) == pytest.approx(first, rel=1e-7, abs=1e-7)


def test_out_of_reach_is_refused_by_name() -> None:
    plant, X = plant_of_pose(), motion(2)
    X[0, 1, :3] = (3.0, 0.0, -0.5)
    with pytest.raises(DataError, match=r"out of reach|singular"):
        ClosedPlant(truth(), ("x", "y", "z", "psi", "theta", "l1")).regressor(X)
    assert isinstance(plant_of(arm()), TreePlant) and isinstance(plant_of(truth(), at=POSE), ClosedPlant)
    assert plant_of(truth()).coordinates == LEGS and plant.name == "hexapod"


def turned_round(crank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles of coupler, from the crank, and rocker of the shipped linkage: the upper crossing of two circles about their pins."""
    pin = 0.20 * np.stack([np.cos(crank), np.sin(crank)], axis=1)
    across = np.array([0.45, 0.0]) - pin
    d = np.linalg.norm(across, axis=1)
    along = (0.50**2 - 0.40**2 + d**2) / (2.0 * d)
    height = np.sqrt(0.50**2 - along**2)
    u = across / d[:, None]
    joint = pin + along[:, None] * u + height[:, None] * np.stack([-u[:, 1], u[:, 0]], axis=1)
    coupler, rocker = joint - pin, joint - np.array([0.45, 0.0])
    return np.arctan2(coupler[:, 1], coupler[:, 0]) - crank, np.arctan2(rocker[:, 1], rocker[:, 0])


@pytest.mark.parametrize("order", ["forwards", "shuffled"])
def test_a_crank_that_turns_round_stays_on_its_branch(order: str) -> None:
    """Three turns either way from home, against the crossing of two circles; the coupler's angle keeps its turns."""
    plant = ClosedPlant(linkage(), ("q1",))
    crank = 1.0 + np.linspace(-6.0 * np.pi, 6.0 * np.pi, 150)
    if order == "shuffled":
        crank = np.random.default_rng(3).permutation(crank)
    X = np.stack([crank[:, None], np.ones((150, 1)), np.zeros((150, 1))])
    q = closed_samples(plant, np.arange(150.0), X).q
    coupler, rocker = turned_round(crank)
    names = plant.machine.coordinates
    home = q[:, names.index("q2")] - coupler
    assert q[:, names.index("q3")] == pytest.approx(rocker, abs=1e-8)
    assert home == pytest.approx(np.full(150, home[0]), abs=1e-8)
