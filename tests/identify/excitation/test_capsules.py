"""Capsules: distances against coal and a bounded search, slopes against finite differences, places against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from identify.smooth_arm import truth
from strangers.pinocchio_oracle import PinModel
from veridyn.identify.excitation.capsules import (
    Capsule,
    Collision,
    always_touching,
    clearances,
    closest,
    moving,
    separable,
    without,
)
from veridyn.mechanics.tree.recursion.kinematics import Posture

coal = pytest.importorskip("coal")

CAPSULES = (
    Capsule("ground", (0.0, 0.0, -0.5), (0.0, 0.0, 0.1), 0.1),
    Capsule("1", (0.0, 0.0, -0.1), (0.0, 0.0, 0.2), 0.08),
    Capsule("2", (0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.06),
    Capsule("3", (0.0, -0.3, 0.0), (0.0, 0.0, 0.0), 0.05),
    Capsule("4", (0.0, 0.0, 0.05), (0.0, 0.0, 0.2), 0.04),
    Capsule("4", (0.0, 0.1, 0.1), (0.0, 0.1, 0.1), 0.03),
)
PAIRS = (("ground", "2"), ("ground", "3"), ("ground", "4"), ("1", "3"), ("1", "4"), ("2", "4"))


def poses(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2.5, 2.5, (count, 4))


def test_closest_points_are_those_of_a_bounded_search() -> None:
    """Random, parallel, crossing, touching segments, and points: the least distance of ‖a + s u − c − t v‖ over the unit square."""
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(4, 60, 3))
    ends[1, :10] = ends[0, :10]  # a point
    ends[3, 5:15] = ends[2, 5:15]  # a point, and two points
    ends[3, 15:25] = ends[2, 15:25] + 1.7 * (ends[1, 15:25] - ends[0, 15:25])  # parallel
    ends[2, 25:30] = ends[0, 25:30]  # a shared end
    ends[2, 30:35] = ends[0, 30:35] + 3.0 * (ends[1, 30:35] - ends[0, 30:35])  # on one line
    ends[3, 30:35] = ends[0, 30:35] + 2.0 * (ends[1, 30:35] - ends[0, 30:35])
    s, t = closest(*ends)
    assert (s >= 0.0).all() and (s <= 1.0).all() and (t >= 0.0).all() and (t <= 1.0).all()
    for k in range(60):
        a, b, c, d = ends[:, k]
        gap = np.linalg.norm(a + s[k] * (b - a) - c - t[k] * (d - c))
        found = lsq_linear(np.column_stack([b - a, c - d]), c - a, (0.0, 1.0), method="bvls", tol=1e-14)
        assert gap == pytest.approx(np.sqrt(2.0 * found.cost), abs=1e-9)


def test_distances_are_those_of_coal() -> None:
    """Poses by Pinocchio, distances of capsules by coal: g is the square of what is left between the axes, less one."""
    machine, q = truth(), poses(30)
    stranger = PinModel(machine)
    collision = Collision(CAPSULES, PAIRS)
    g = clearances(collision, Posture(machine, q), slopes=False)[0]
    for n in range(len(q)):
        placed = {"ground": (np.eye(3), np.zeros(3))}
        for body in "1234":
            R, p = stranger.frame_pose(q[n : n + 1], body)
            placed[body] = np.reshape(R, (3, 3)), np.reshape(p, 3)
        for k, (a, b) in enumerate(PAIRS):
            expected = np.inf
            for ca in (c for c in CAPSULES if c.body == a):
                for cb in (c for c in CAPSULES if c.body == b):
                    gap = by_coal(ca, placed[a], cb, placed[b])
                    D = ca.radius + cb.radius
                    expected = min(expected, ((gap + D) / D) ** 2 - 1.0)
            assert g[n, k] == pytest.approx(expected, abs=1e-6) if expected > 0.0 else g[n, k] <= 1e-6


def by_coal(a: Capsule, at: tuple[np.ndarray, np.ndarray], b: Capsule, bt: tuple[np.ndarray, np.ndarray]) -> float:
    """Distance between the surfaces, negative inside."""
    made = []
    for c, (R, p) in ((a, at), (b, bt)):
        start, end = R @ np.array(c.start) + p, R @ np.array(c.end) + p
        length = float(np.linalg.norm(end - start))
        z = (end - start) / length if length else np.array([0.0, 0.0, 1.0])
        x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
        x /= np.linalg.norm(x)
        turned = np.column_stack([x, np.cross(z, x), z])
        shape = coal.Capsule(c.radius, length) if length else coal.Sphere(c.radius)
        made.append((shape, coal.Transform3s(turned, (start + end) / 2.0)))
    return float(
        coal.distance(made[0][0], made[0][1], made[1][0], made[1][1], coal.DistanceRequest(), coal.DistanceResult())
    )


def test_slopes_are_those_of_finite_differences() -> None:
    """Central differences of g, self-collision and floor, where the closest pair does not change within the step."""
    machine, q = truth(), poses(20, 3)
    collision = Collision(CAPSULES, PAIRS, floor=-0.6, above=("2", "3", "4"), margin=0.02)
    g, dg = clearances(collision, Posture(machine, q))
    assert dg is not None and g.shape == (20, 9) and dg.shape == (20, 9, 4)
    h = 1e-6
    for k in range(4):
        step = h * np.eye(4)[k]
        up, down = (clearances(collision, Posture(machine, q + sign * step), slopes=False)[0] for sign in (1, -1))
        forward, backward = (up - g) / h, (g - down) / h
        smooth = np.abs(forward - backward) < 1e-3 * (1.0 + np.abs(forward))
        assert smooth.mean() > 0.95
        assert dg[:, :, k][smooth] == pytest.approx(((up - down) / (2.0 * h))[smooth], rel=1e-4, abs=1e-5)


def test_the_floor_is_below_every_point_of_a_body() -> None:
    """Points of the surface sampled by brute force: the lowest is at the height that g says, also below the floor."""
    machine, q = truth(), poses(10, 5)
    at = Posture(machine, q)
    collision = Collision(CAPSULES, (), floor=-0.3, above=("3",))
    g = clearances(collision, at, slopes=False)[0][:, 0]
    directions = np.random.default_rng(1).normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    ends = at.point("3", (0.0, -0.3, 0.0)), at.point("3", (0.0, 0.0, 0.0))
    for n in range(10):
        axis = np.linspace(ends[0][n], ends[1][n], 20)
        lowest = float((axis[:, None] + 0.05 * directions)[:, :, 2].min())
        ratio = (lowest + 0.05 + 0.3) / 0.05
        assert np.sign(g[n] + 1.0) * np.sqrt(abs(g[n] + 1.0)) == pytest.approx(ratio, abs=0.05)


def test_pairs_that_can_touch() -> None:
    """Not neighbours, not what is fixed together, not what is ignored; what touches in every posture is found."""
    machine = truth()
    assert separable(machine, CAPSULES) == PAIRS
    assert ("2", "4") not in separable(machine, CAPSULES, [frozenset(("4", "2"))])
    assert moving(machine, CAPSULES) == ("1", "2", "3", "4")
    wide = (*CAPSULES[:2], Capsule("3", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.9))
    collision = Collision(wide, separable(machine, wide))
    touching = always_touching(machine, collision, poses(50))
    assert touching == ("distance ground to 3", "distance 1 to 3")
    assert without(collision, touching).names == ()
