"""Linear maps against poses that are known, and ω against finite differences of a rotation."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import PLANE_BASES, SPACE_BASES, fourbar, random_body, random_mechanism
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.model.place import Marker, frame
from veridyn.model.point_parts import Point, RigidBody, uniform_bar

BASES = [(2, b) for b in PLANE_BASES] + [(3, b) for b in SPACE_BASES]


@pytest.mark.parametrize(("dim", "basis"), BASES)
def test_any_place_of_a_body_moves_with_it(dim: int, basis: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    body, points, vectors, R, p = random_body(rng, "b", dim, basis)
    g = Geometry(Mechanism.build(points, [body], vectors=vectors))
    y = np.append(g.guess, 1.0)
    x = rng.normal(size=dim)
    assert g.on_body("b", x) @ y == pytest.approx(p + R @ x, abs=1e-11)
    assert g.along("b", x) @ y == pytest.approx(R @ x, abs=1e-11)
    assert g.rotation("b", g.guess) == pytest.approx(R, abs=1e-11)
    assert g.direction(Marker("b", x, 3.0 * x)) @ y == pytest.approx(R @ x / np.linalg.norm(x), abs=1e-11)
    assert g.direction(tuple(x)) @ y == pytest.approx(x)


@pytest.mark.parametrize(("dim", "basis"), BASES)
def test_angular_velocity(dim: int, basis: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    body, points, vectors, _, _ = random_body(rng, "b", dim, basis)
    g = Geometry(Mechanism.build(points, [body], vectors=vectors))
    omega, v = rng.normal(size=3 if dim == 3 else 1), rng.normal(size=dim)
    if dim == 3:
        W = np.array([[0, -omega[2], omega[1]], [omega[2], 0, -omega[0]], [-omega[1], omega[0], 0]])
    else:
        W = omega[0] * np.array([[0.0, -1.0], [1.0, 0.0]])
    rates = [v + W @ np.array(p.at) for p in points] + [W @ np.array(u.along) for u in vectors]
    qd = np.concatenate(rates)
    assert np.atleast_1d(g.angular_velocity("b", g.guess, qd)) == pytest.approx(omega, abs=1e-10)
    several = g.angular_velocity("b", np.stack([g.guess] * 4), np.stack([qd] * 4))
    assert several.reshape(4, -1) == pytest.approx(np.stack([omega] * 4), abs=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_guess_of_added_coordinates(dim: int) -> None:
    posed = random_mechanism(np.random.default_rng(5), dim)
    g = Geometry(posed.mechanism)
    theta = g.guess[posed.mechanism.index("theta")]
    assert abs(theta - 7.0) <= np.pi
    crank = Geometry(fourbar())
    assert crank.guess[4] == pytest.approx(np.arctan2(1.7, 1.0))


def test_a_place_outside_the_span_is_refused() -> None:
    points = [Point("A", (0, 0, 0)), Point("P", (1, 0, 0))]
    g = Geometry(Mechanism.build(points, [uniform_bar("bar", "A", "P", 1.0, 1.0, 3)]))
    assert g.on_body("bar", (0.25, 0, 0)) @ np.append(g.guess, 1.0) == pytest.approx([0.25, 0, 0])
    with pytest.raises(ModelError, match=r"(?s)body 'bar': its points and vectors do not span.*A-P.*one more point"):
        g.on_body("bar", (0.0, 0.1, 0.0))
    with pytest.raises(DataError, match="do not fix its orientation"):
        g.rotation("bar", g.guess)


def test_two_points_at_one_place_are_refused() -> None:
    points = [Point("A", (0, 0)), Point("P", (1, 0))]
    g = Geometry(Mechanism.build(points, [RigidBody("bar", {"A": (0, 0), "P": (0, 0)})]))
    with pytest.raises(ModelError, match=r"(?s)body 'bar': two of its points.*A and P"):
        _ = g.bases


def test_a_marker_is_a_right_handed_frame() -> None:
    rng = np.random.default_rng(6)
    for side in ((), tuple(rng.normal(size=3))):
        R = np.column_stack(frame(Marker("b", (0, 0, 0), rng.normal(size=3), side)))
        assert np.abs(R.T @ R - np.eye(3)).max() <= 1e-14
        assert np.linalg.det(R) == pytest.approx(1.0)
