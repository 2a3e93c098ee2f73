"""Bristles of LuGre friction in a compiled run: a stiff integrator of the equations written here, differences, and steps far too long."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import damper, lugre
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
MASS, VISCOUS, DRY = 0.8, 0.5, 3.0
DEFLECTION, TIME, RATIO, SPEED = 2e-3, 1e-3, 1.4, 0.3
STEP = 1e-3
T = STEP * np.arange(1001)


def slider(ratio: float = RATIO, deflection: float = DEFLECTION) -> Tree:
    friction = lugre("x", deflection, TIME, DRY, "fl", ratio=ratio, speed=SPEED)
    return Tree.build(
        [Body("1", joint="sliding", coordinate="x")],
        inertia={"1": from_centre(MASS, np.zeros(3), np.eye(3))},
        gravity=(0.0, 0.0, 0.0),
        elements=[damper("x", VISCOUS), friction],
    )


def push(t: float | Array) -> float | Array:
    """Slow enough to creep in presliding at first, then strong enough to slide both ways."""
    return np.where(np.asarray(t) < 0.3, 2.0, 6.0) * np.sin(9.0 * np.asarray(t))


def by_scipy(t: Array, ratio: float = RATIO) -> Array:
    """q, q̇ and z of the equations of Canudas de Wit et al. (IEEE TAC 40, 1995), by an implicit rule; forces are held between samples."""
    y, out = np.zeros(3), [np.zeros(3)]

    def rate(force: float, _: float, y: Array) -> list[float]:
        g = DRY * (1.0 + (ratio - 1.0) * np.exp(-((y[1] / SPEED) ** 2)))
        sigma = DRY / DEFLECTION
        slip = y[1] - sigma * abs(y[1]) * y[2] / g
        return [y[1], (force - sigma * (y[2] + TIME * slip) - VISCOUS * y[1]) / MASS, slip]

    for a, b in pairwise(t.tolist()):
        y = solve_ivp(partial(rate, float(push(a))), (a, b), y, "Radau", rtol=1e-8, atol=1e-11).y[:, -1]
        out.append(y)
    return np.array(out)


@pytest.mark.parametrize("rule", ["midpoint", "RK4"])
def test_path_is_that_of_a_stiff_integrator(rule: str) -> None:
    exact = by_scipy(T)
    found, _ = CompiledRun(slider(), rule=rule).run(
        STEP, np.zeros((1, 3)), np.asarray(push(T))[None, :, None], {}, hold="zero"
    )
    # Of order 2 at most, as the speed of a step is held: half a percent of the way of 0.1 m, and of the deflection.
    assert np.ptp(exact[:, 0]) > 0.05 and np.abs(exact[:, 2]).max() > DEFLECTION
    assert found.q[0, :, 0] == pytest.approx(exact[:, 0], abs=5e-4)
    assert found.signals["fl.z"][0] == pytest.approx(exact[:, 2], abs=0.02 * DEFLECTION)


def test_error_falls_with_the_square_of_the_step() -> None:
    exact = by_scipy(T)[:, 0]
    errors = []
    for substeps in (1, 2, 4):
        found, _ = CompiledRun(slider(), rule="midpoint").run(
            STEP, np.zeros((1, 3)), np.asarray(push(T))[None, :, None], {}, hold="zero", substeps=substeps
        )
        errors.append(float(np.abs(found.q[0, :, 0] - exact).max()))
    assert errors[2] < 0.15 * errors[0]


def test_bristles_far_shorter_than_a_step_are_stable() -> None:
    """A step of 20 deflections: an explicit rule would leave the numbers; the limit is Coulomb friction, F = m a + f + h v."""
    tree, speed = slider(ratio=1.0, deflection=1e-4), 2.0
    start = np.array([[0.0, speed, 0.0]])
    found, _ = CompiledRun(tree, rule="midpoint").run(STEP, start, np.zeros((1, 301, 1)), {}, hold="zero")
    t = STEP * np.arange(301)
    lag = MASS / VISCOUS
    slowed = (speed + DRY / VISCOUS) * np.exp(-t / lag) - DRY / VISCOUS
    assert found.qd[0, :, 0] == pytest.approx(slowed, abs=2e-3)  # friction grows over the first deflection
    assert found.signals["fl.z"][0, 5:] == pytest.approx(1e-4, rel=1e-12)


def test_lanes_agree_with_single_runs() -> None:
    forces = np.stack([np.asarray(push(T)) * k for k in (0.8, 1.0, 1.3)])[:, :, None]
    one, _ = CompiledRun(slider()).run(STEP, np.zeros((3, 3)), forces, {})
    wide = CompiledRun(slider(), lanes=2)
    assert wide.has_lanes
    many, _ = wide.run(STEP, np.zeros((3, 3)), forces, {})
    assert many.q == pytest.approx(one.q, abs=1e-12) and many.signals["fl.z"] == pytest.approx(one.signals["fl.z"])


@pytest.mark.parametrize("rule", ["midpoint", "RK4"])
def test_sensitivities_are_those_of_differences(rule: str) -> None:
    """Two links with bristles that turn; by parameters, constants of the laws and the start, deflections among it."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    elements = [
        lugre("q1", 0.01, 2e-3, 0.6, "f1", ratio=1.5, speed=0.5),
        lugre("q2", 0.02, 1e-3, 0.3, "f2"),
        damper("q1", 0.1),
    ]
    tree = Tree.build(bodies, inertia={"1": link, "2": link}, elements=elements)
    t = 2e-3 * np.arange(401)
    forces = np.stack([2.5 * np.sin(7.0 * t), 0.9 * np.sin(11.0 * t)], axis=1)[None]
    names = ("f1.deflection", "f1.ratio", "f1.speed", "f2.deflection", "f1.time")
    numbers = tuple([c.name for c in tree.constants].index(name) for name in names)
    columns = [tree.parameters.index(name) for name in ("f1", "f2", "ZZ2")]
    spread = np.eye(len(tree.parameters))[:, columns]
    start = np.array([[0.1, 0.2, 0.3, -0.2, 0.001, 0.002]])
    varied = Varied(spread, numbers)
    run = CompiledRun(tree, rule=rule, varied=varied)
    _, S = run.run(2e-3, start, forces, {}, rows=range(6))
    plain = CompiledRun(tree, rule=rule)
    constants = {c.name: c.value for c in tree.constants}

    def states(x: Array) -> Array:
        values = tree.parameters.values.copy()
        values[columns] = x[:3]
        own = tree.with_constants({name: float(v) for name, v in zip(names, x[3:8], strict=True)})
        y, _ = plain.run(2e-3, x[None, 8:], forces, {}, parameters=values, machine=own)
        return np.concatenate([y.q[0], y.qd[0], y.signals["f1.z"].T, y.signals["f2.z"].T], axis=1)

    x = np.concatenate([tree.parameters.values[columns], [constants[name] for name in names], start[0]])
    for k in range(len(x)):
        step = np.zeros(len(x))
        step[k] = 1e-6 * max(abs(x[k]), 0.01)
        slope = (states(x + step) - states(x - step)) / (2.0 * step[k])
        assert np.abs(S[0, :, :, k] - slope).max() < 1e-6 * np.abs(slope).max(), k  # what differences leave, 1e-6 apart
