"""Ten parameters of particles, rods and bodies from their points, and back."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.model.point_parts import RigidBody, uniform_bar
from veridyn.model.ten import rigid_body, ten_of
from veridyn.spatial.inertia import broken_law


def test_a_particle() -> None:
    assert ten_of(RigidBody("p", {"A": (1.0, 2.0)}, mass=3.0, centre=(1.0, 2.0)), 2) == pytest.approx(
        [12.0, -6.0, 0, 3.0, 0, 15.0, 3.0, 6.0, 0, 3.0]
    )


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_uniform_bar_along_x(dimension: int) -> None:
    """About one end: m L²/3 across it, nothing along it."""
    found = ten_of(uniform_bar("bar", "A", "B", 2.0, 3.0, dimension), dimension)
    assert found == pytest.approx([0, 0, 0, 4.0, 0, 4.0, 3.0, 0, 0, 3.0])
    assert broken_law(found) is None


def test_a_planar_body_with_mass_aside_of_its_points_is_a_lamina() -> None:
    body = RigidBody("b", {"A": (0.0, 0.0), "B": (1.0, 0.0)}, mass=2.0, centre=(0.5, 0.3), inertia=0.4)
    found = ten_of(body, 2)
    assert found[5] == pytest.approx(0.4 + 2.0 * (0.25 + 0.09))
    assert found[0] + found[3] == pytest.approx(found[5])  # mass in the plane
    assert broken_law(found) is None


@pytest.mark.parametrize("dimension", [2, 3])
def test_there_and_back(dimension: int) -> None:
    inertia = 0.4 if dimension == 2 else np.diag([0.3, 0.4, 0.5])
    at = {"A": (0.0, 0.0, 0.0)[:dimension]}
    body = RigidBody("b", at, mass=2.0, centre=(0.5, 0.3, 0.1)[:dimension], inertia=inertia)
    back = rigid_body("b", at, {}, ten_of(body, dimension), dimension)
    assert back.mass == body.mass
    assert back.centre == pytest.approx(body.centre)
    assert np.asarray(back.inertia) == pytest.approx(np.asarray(body.inertia))
    nothing = rigid_body("b", at, {}, np.zeros(10), dimension)
    assert nothing.mass == 0.0
