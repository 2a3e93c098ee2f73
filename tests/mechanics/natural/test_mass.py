"""Constant mass matrices against ½ m v² + ½ ω·J ω of rigid bodies, and equation (27) of paper 003."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import PLANE_BASES, SPACE_BASES, random_body, unit
from veridyn.errors import ModelError
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mass import mass_matrix_of, weight_of
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.point_parts import Point, RigidBody, UnitVector, uniform_bar
from veridyn.spatial.inertia import cross_matrix

BASES = [(2, b) for b in PLANE_BASES] + [(3, b) for b in SPACE_BASES]


@pytest.mark.parametrize(("dim", "basis"), BASES)
@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_of_a_rigid_motion(seed: int, dim: int, basis: tuple[int, int]) -> None:
    rng = np.random.default_rng(10 + seed)
    body, points, vectors, R, p = random_body(rng, "b", dim, basis)
    g = Geometry(Mechanism.build(points, [body], vectors=vectors, gravity=rng.normal(size=dim)))
    M = mass_matrix_of(g)
    omega, v = rng.normal(size=3 if dim == 3 else 1), rng.normal(size=dim)
    W = cross_matrix(omega) if dim == 3 else omega[0] * np.array([[0.0, -1.0], [1.0, 0.0]])
    qd = np.concatenate([v + W @ np.array(k.at) for k in points] + [W @ np.array(k.along) for k in vectors])
    centre = p + R @ np.array(body.centre)
    J = R @ body.inertia @ R.T if dim == 3 else np.array([[float(body.inertia)]])
    expected = 0.5 * body.mass * ((v + W @ centre) ** 2).sum() + 0.5 * omega @ J @ omega
    # Nearly parallel directions carry large coefficients: rounding grows with them.
    assert 0.5 * qd @ M @ qd == pytest.approx(expected, rel=1e-9)
    assert np.array_equal(M, M.T)
    gravity = np.array(g.mechanism.gravity)
    assert weight_of(g) @ np.append(g.guess, 1.0) == pytest.approx(body.mass * gravity @ centre, rel=1e-9, abs=1e-12)
    assert weight_of(g)[:-1] @ qd == pytest.approx(body.mass * gravity @ (v + W @ centre), rel=1e-9, abs=1e-10)


def test_equation_27() -> None:
    m, I1, L, x, y = 3.0, 4.0, 2.0, 0.7, 0.3
    about_centre = I1 - m * (x * x + y * y)
    body = RigidBody("b", {"1": (0, 0), "2": (L, 0)}, mass=m, centre=(x, y), inertia=about_centre)
    M = mass_matrix_of(Geometry(Mechanism.build([Point("1", (0, 0)), Point("2", (L, 0))], [body])))
    a, b, c, d = m - 2 * m * x / L + I1 / L**2, m * x / L - I1 / L**2, m * y / L, I1 / L**2
    expected = np.array([[a, 0, b, -c], [0, a, c, b], [b, c, d, 0], [-c, b, 0, d]])
    assert np.abs(M - expected).max() <= 1e-14


def test_a_rod_a_particle_and_a_lamina_need_no_more_than_they_span() -> None:
    rng = np.random.default_rng(0)
    u = unit(rng, 3)
    rod = Mechanism.build([Point("A", (0, 0, 0)), Point("B", 2 * u)], [uniform_bar("rod", "A", "B", 2.0, 6.0, 3)])
    eye = np.eye(3)
    assert mass_matrix_of(Geometry(rod)) == pytest.approx(np.block([[2 * eye, eye], [eye, 2 * eye]]), abs=1e-14)
    particle = Mechanism.build([Point("A", (0, 0, 0))], [RigidBody("p", {"A": (1, 2, 3)}, mass=2.0, centre=(1, 2, 3))])
    assert mass_matrix_of(Geometry(particle)) == pytest.approx(2 * eye)
    lamina = RigidBody(
        "l",
        {"A": (0, 0, 0), "B": (1, 0, 0), "C": (0, 1, 0)},
        mass=1.0,
        centre=(0.2, 0.3, 0),
        inertia=np.diag([1, 2, 3]),
    )
    points = [Point("A", (0, 0, 0)), Point("B", (1, 0, 0)), Point("C", (0, 1, 0))]
    assert np.linalg.eigvalsh(mass_matrix_of(Geometry(Mechanism.build(points, [lamina]))))[0] > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (RigidBody("p", {"A": (0, 0, 0)}, mass=1.0, centre=(0.1, 0, 0)), "the point 'A' only"),
        (
            RigidBody("p", {"A": (0, 0, 0), "B": (1, 0, 0)}, mass=1.0, inertia=np.eye(3)),
            r"(?s)mass along A-B.*Add a vector",
        ),
        (
            RigidBody("p", {"A": (0, 0, 0), "B": (1, 0, 0)}, {"u": (0, 1, 0)}, mass=1.0, inertia=np.eye(3)),
            r"(?s)body 'p'.*mass along A-B, u",
        ),
    ],
)
def test_mass_outside_the_span_is_refused(body: RigidBody, message: str) -> None:
    mechanism = Mechanism.build(
        [Point("A", (0, 0, 0)), Point("B", (1, 0, 0))], [body], vectors=[UnitVector("u", (0, 1, 0))]
    )
    with pytest.raises(ModelError, match=message):
        mass_matrix_of(Geometry(mechanism))


def test_mass_outside_the_span_in_the_plane() -> None:
    mechanism = Mechanism.build([Point("A", (0, 0))], [RigidBody("p", {"A": (0, 0)}, mass=1.0, inertia=0.2)])
    with pytest.raises(ModelError, match="the point 'A' only"):
        mass_matrix_of(Geometry(mechanism))
