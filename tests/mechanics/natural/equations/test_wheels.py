"""Wheels with tyres in natural coordinates: derivatives by differences, the laws of the tree on a sloping road, and machine code."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.natural_steps import index3_step
from veridyn.mechanics.ground.road import Bump, Road
from veridyn.mechanics.ground.road import Plane as Inclined
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import freedoms_of, pose_of_tree
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.index3 import index3_steps
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.papers.buggy.machine import CORNERS, INDEPENDENT, Tyres, buggy
from veridyn.spatial.rotations import rot_z

Array = NDArray[np.float64]
SLOPE = (0.03, 0.05, -0.02)  # height at the origin, slopes


@cache
def rolling(tyres: Tyres) -> tuple[NaturalSystem, Array, Array, Array, dict[str, float], Array, Array]:
    """A buggy that rolls and slips: its system, q, q̇, slips, and the state of the tree: signals, coordinates, and the base's pose."""
    m = buggy(tyres=tyres)
    rng = np.random.default_rng(2)
    given = {c: 0.01 * rng.normal(size=1) for c in INDEPENDENT} | {"rack": np.array([-0.004])}
    q = close(tree_of(m), given, path=False, engine="numpy").q[0]
    position, R = np.array([0.4, -0.3, 0.70]), rot_z(0.7)
    system = system_of(compact(mechanism_of(m.with_formulation("natural")))).holding({"rack": -0.004})
    x = pose_of_tree(system, tree_of(m), q, position, R)
    zd = np.concatenate([R @ [6.0, 0.3, 0.02], [0.02, -0.03, 0.3], 0.1 * rng.normal(size=8)])
    for c in CORNERS:
        zd[6 + INDEPENDENT.index(f"spin_{c}")] = 18.0 + rng.normal()
    xd = freedoms_of(system, tree_of(m), INDEPENDENT).rates(system, x, zd)
    slips = 0.03 * rng.normal(size=8)
    signals = dict(zip((s.name for s in tree_of(m).states), slips.tolist(), strict=True))
    return system, x, xd, slips, signals, q, zd


def plane(x: Array, y: Array) -> Array:
    return np.outer(SLOPE, np.ones_like(x))


@pytest.mark.parametrize("tyres", ["magic", "linear"])
def test_derivatives_are_those_of_differences(tyres: Tyres) -> None:
    system, q, qd, slips, *_ = rolling(tyres)
    rng = np.random.default_rng(1)
    d, e, s, h = rng.normal(size=system.n), rng.normal(size=system.n), rng.normal(size=8), 1e-6
    at = system.wheels.evaluate(q, qd, slips, plane)
    a, b = (system.wheels.evaluate(q + k * h * d, qd + k * h * e, slips + k * h * s, plane) for k in (1.0, -1.0))
    Q, rates = at.Q_q @ d + at.Q_qd @ e + at.Q_s @ s, at.rates_q @ d + at.rates_qd @ e + at.rates_s @ s
    assert (a.Q - b.Q) / (2.0 * h) == pytest.approx(Q, rel=1e-7, abs=1e-7 * np.abs(Q).max())
    assert (a.rates - b.rates) / (2.0 * h) == pytest.approx(rates, rel=1e-7, abs=1e-7 * np.abs(rates).max())


@pytest.mark.parametrize("tyres", ["magic", "linear"])
def test_a_sloping_road_is_that_of_the_tree(tyres: Tyres) -> None:
    """Accelerations and slip rates with the road's plane given to both."""
    system, q, qd, slips, signals, joints, zd = rolling(tyres)
    m = buggy(tyres=tyres)
    named = {f"tyre_{c}.{key}": x for c in CORNERS for key, x in zip(("road", "road_x", "road_y"), SLOPE, strict=True)}
    instant = StateAccelerations(tree_of(m), m.parameters.values, engine="numpy")
    R, place = rot_z(0.7), np.array([0.4, -0.3, 0.70])
    half = 0.35
    pose = np.concatenate([place, [np.cos(half), 0.0, 0.0, np.sin(half)]])
    order = [m.coordinates.index(c) for c in INDEPENDENT]
    rates = np.array([qd[system.mechanism.index(c)] if c in system.coordinates else np.nan for c in m.coordinates])
    rates = _all_rates(tree_of(m), joints, rates)
    found = instant(joints, rates, np.zeros(m.n), zd[3:6], R.T @ zd[:3], {}, {**signals, **named}, None, pose)
    qdd, _ = solve_accelerations(system, q, qd, None, slips, plane)
    freedoms = freedoms_of(system, tree_of(m), INDEPENDENT)
    zdd = freedoms.rows(q) @ qdd
    expected = np.concatenate([R @ found[:3] + m.gravity, found[3:6], found[6:][order]])
    assert np.abs(zdd - expected).max() <= 1e-8 * np.abs(expected).max()
    slipping = instant.state_rates(joints, rates, {**signals, **named}, zd[3:6], R.T @ zd[:3], pose)
    assert system.wheels.evaluate(q, qd, slips, plane).rates == pytest.approx(slipping, rel=1e-8, abs=1e-7)


def _all_rates(tree: Tree, q: Array, known: Array) -> Array:
    """Rates of all coordinates of the tree from some of them: those that keep the loops closed."""
    J = loop_values(tree, q[None], np.zeros_like(q)[None])[0][:, : tree.n]
    out, free = np.where(np.isnan(known), 0.0, known), np.isnan(known)
    out[free] = np.linalg.lstsq(J[:, free], -J[:, ~free] @ known[~free], rcond=None)[0]
    return out


BUMP = Bump(at=-1.5, length=4.0, rise=0.06) + Inclined(grade=0.05, bank=-0.02)


def bumpy(x: Array, y: Array) -> Array:
    """The tangent plane of that road at (x, y): its height at the origin, and its slopes."""
    turn = 2.0 * np.pi * (x + 1.5) / 4.0
    along = np.where(np.abs(x - 0.5) < 2.0, 0.03 * np.sin(turn) * 2.0 * np.pi / 4.0, 0.0) + 0.05
    z = np.where(np.abs(x - 0.5) < 2.0, 0.03 * (1.0 - np.cos(turn)), 0.0) + 0.05 * x - 0.02 * y
    return np.stack([z - along * x + 0.02 * y, along, np.full_like(x, -0.02)])


@pytest.mark.parametrize(
    ("tyres", "road"), [("magic", None), ("linear", BUMP), pytest.param("magic", BUMP, marks=pytest.mark.slow)]
)
def test_machine_code_steps_as_numpy_does(tyres: Tyres, road: Road | None) -> None:
    """Three index-3 steps of 2 ms with the rack moving, tyres and their slips included, on flat ground and over a bump."""
    system, q, qd, slips, *_ = rolling(tyres)
    beneath, at, h = None if road is None else bumpy, system.holding({"rack": [-0.004, 0.02, 0.3]}), 2e-3
    qd = qd + np.linalg.pinv(J := at.constraints.jacobian(q)) @ (at.constraints.rates - J @ qd)
    before = NaturalState(0.0, q, qd, *solve_accelerations(at, q, qd, None, slips, beneath), slips)
    led = [np.array([-0.004 + 0.02 * t + 0.15 * t**2, 0.02 + 0.3 * t, 0.3]) for t in (h, 2.0 * h, 3.0 * h)]
    values, how, expected = system.forces.values, Stabilisation(penalty=1e16), before
    for motion in led:
        expected = index3_step(at.holding({"rack": motion}), expected, h, values, how, beneath)
    packed, rack = None if road is None else road.packed, np.array(led)[:, :, None]
    row = index3_steps(at, before, np.full(3, h), values[None], how, motion=rack, road=packed)[-1]
    n, m = system.n, system.constraints.m
    assert row[:n] == pytest.approx(expected.q, abs=1e-9)
    assert row[n : 2 * n] == pytest.approx(expected.qd, abs=1e-7)
    assert row[2 * n : 3 * n] == pytest.approx(expected.qdd, abs=1e-5 * np.abs(expected.qdd).max())
    assert row[3 * n + m :] == pytest.approx(expected.slips, abs=1e-9)
