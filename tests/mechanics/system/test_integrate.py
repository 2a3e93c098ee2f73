"""Integration over time: energy, momentum, closed forms, the order of the step, and other integrators."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from mechanics.small_trees import pendulum
from strangers.random_trees import random_inertia, random_tree
from veridyn.mechanics.system.integrate import BaseState, Method, Trajectory, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.energy import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import spring
from veridyn.spatial.transforms import MDH


@cache
def arm() -> Tree:
    """Three joints, turning, sliding and turning, neither planar nor parallel."""
    rng = np.random.default_rng(3)
    bodies = [
        Body("1", placement=MDH(alpha=0.4)),
        Body("2", "1", "sliding", MDH(alpha=1.2, d=0.3, theta=0.5)),
        Body("3", "2", "turning", MDH(alpha=-0.9, d=0.2, r=0.1)),
    ]
    inertia = {b.name: random_inertia(rng) for b in bodies}
    return Tree.build(bodies, inertia=inertia, elements=[spring("q2", 60.0)])


@cache
def free_tree() -> Tree:
    return random_tree(np.random.default_rng(8), bodies=4, base="free", kinds=("turning",))


def tumbling(seconds: float, samples: int, method: Method) -> tuple[Tree, Trajectory]:
    tree = free_tree()
    rng = np.random.default_rng(1)
    start = BaseState(quaternion=rng.normal(size=4), velocity=(0.3, 0.0, 1.0), omega=(0.5, -1.0, 0.7))
    t = np.linspace(0.0, seconds, samples)
    return tree, integrate(tree, t, rng.normal(size=tree.n), rng.normal(size=tree.n), base=start, method=method)


def drift(tree: Tree, run: Trajectory) -> float:
    """Largest change of the total energy over the kinetic energy at the start, before the fall has made it large."""
    E = energy(tree, run.motion, base_rotation=run.base_rotation, base_position=run.base_position)
    return float(np.abs(E.total - E.total[0]).max() / E.kinetic[0])


def test_energy_of_a_free_tree_over_one_second() -> None:
    tree, run = tumbling(1.0, 21, Method("DOP853", step=1e-3))
    assert tree.n == 3
    assert drift(tree, run) < 1e-9


@pytest.mark.slow
def test_energy_of_a_free_tree_over_ten_seconds_at_one_millisecond() -> None:
    """DOP853 with steps of 1 ms at most, 10 s: drift below 1e-6 relative."""
    tree, run = tumbling(10.0, 101, Method("DOP853", step=1e-3))
    print(f"drift {drift(tree, run):.2e} relative")
    assert drift(tree, run) < 1e-6


def test_energy_of_a_free_tree_over_ten_seconds() -> None:
    """The same ten seconds with the step left to the integrator's own tolerance."""
    tree, run = tumbling(10.0, 101, Method("DOP853", rtol=1e-10, atol=1e-11))
    assert drift(tree, run) < 1e-6


def test_energy_of_a_fixed_arm_on_a_spring() -> None:
    tree = arm()
    run = integrate(tree, np.linspace(0.0, 3.0, 61), [0.3, 0.1, -0.4], [0.5, 0.0, 1.0])
    E = energy(tree, run.motion)
    assert np.abs(E.total - E.total[0]).max() < 1e-7 * E.kinetic.max()


def test_momentum_is_kept_without_gravity() -> None:
    """No outside force: the wrench that the base rows ask for is zero, and the momentum in the ground's axes stays."""
    tree = replace(free_tree(), gravity=np.zeros(3))
    rng = np.random.default_rng(2)
    start = BaseState(velocity=(1.0, -0.5, 0.2), omega=(0.4, 0.3, -0.8))
    run = integrate(tree, np.linspace(0.0, 2.0, 11), rng.normal(size=3), rng.normal(size=3), base=start)
    rows = inverse_dynamics(tree, run.motion)
    assert np.abs(rows).max() < 1e-9
    assert run.base_rotation == pytest.approx(np.linalg.inv(run.base_rotation).swapaxes(1, 2), abs=1e-12)
    # The centre of mass goes straight on: mass times its place, from the potential in a unit field.
    place = []
    for axis in np.eye(3):
        field = replace(tree, gravity=-axis)
        E = energy(field, run.motion, base_rotation=run.base_rotation, base_position=run.base_position)
        place.append(E.gravity)
    track = np.array(place).T
    straight = track[0] + np.outer(run.motion.t / 2.0, track[-1] - track[0])
    assert track == pytest.approx(straight, abs=1e-7 * np.abs(track).max())


def test_a_free_body_falls_on_a_parabola() -> None:
    X = random_inertia(np.random.default_rng(4))
    X[6:9] = 0.0
    tree = Tree.build(
        [Body("stone", None, "fixed")], base="free", inertia={"stone": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 2.0]}
    )
    t = np.linspace(0.0, 1.0, 5)
    run = integrate(tree, t, [], [], base=BaseState(velocity=(1.0, 0.0, 3.0), omega=(1.0, 2.0, 3.0)))
    expected = np.column_stack([t, 0 * t, 3.0 * t - 0.5 * 9.81 * t**2])
    assert run.base_position == pytest.approx(expected, abs=1e-9)
    assert run.motion.base.acceleration == pytest.approx(np.zeros((5, 3)), abs=1e-12)  # weightless


def test_runge_kutta_is_of_order_four() -> None:
    """Halving the step divides the error by 16, against DOP853 at 1e-13, under forces that change with time."""
    tree = arm()
    t, q, qd = np.array([0.0, 0.8]), [0.4, 0.1, -0.3], [1.0, 0.2, -0.8]

    def push(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.array([np.sin(9.0 * t), 5.0 * np.cos(7.0 * t), 0.3 * t])

    exact = integrate(tree, t, q, qd, push, method=Method("DOP853", rtol=1e-13, atol=1e-13)).motion.q[-1]
    steps = np.array([0.04, 0.02, 0.01])
    errors = [
        np.abs(integrate(tree, t, q, qd, push, method=Method("RK4", step=h)).motion.q[-1] - exact).max() for h in steps
    ]
    orders = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert orders == pytest.approx([4.0, 4.0], abs=0.25)


def test_runge_kutta_cuts_each_interval_into_equal_steps() -> None:
    """0.1 s in steps of at most 0.03 s is four of 0.025 s: the same as asking for 0.025."""
    t = np.array([0.0, 0.1, 0.2])
    a, b = (integrate(pendulum(), t, [0.5], [0.0], method=Method("RK4", step=h)).motion.q for h in (0.03, 0.025))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("name", ["RK45", "LSODA", "Radau"])
def test_scipys_integrators_agree(name: str) -> None:
    t = np.linspace(0.0, 1.0, 5)
    expected = integrate(pendulum(), t, [1.0], [0.0]).motion.q
    got = integrate(pendulum(), t, [1.0], [0.0], method=Method(name, rtol=1e-8, atol=1e-9)).motion.q
    assert got == pytest.approx(expected, abs=1e-5)


def test_small_swings_have_the_period_of_a_pendulum() -> None:
    """q̈ = −(M g x / ZZ) q for small q."""
    rate = np.sqrt(0.6 * 9.81 / 0.3)
    t = np.linspace(0.0, 2.0, 41)
    run = integrate(pendulum(), t, [1e-4], [0.0])
    assert run.motion.q[:, 0] == pytest.approx(1e-4 * np.cos(rate * t), abs=1e-9)


def test_progress_is_told() -> None:
    told: list[tuple[str, float, float | None]] = []
    integrate(pendulum(), [0.0, 0.2], [0.1], [0.0], progress=lambda *x: told.append(x))
    assert told and told[0][0] == "simulating" and told[0][2] == 0.2
    assert max(done for _, done, _ in told) == pytest.approx(0.2)
