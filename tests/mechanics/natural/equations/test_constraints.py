"""The table of quadratic coefficients against finite differences, counting, and poses that are rigid by construction."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, rack_and_pinion, random_mechanism
from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.constraints import constraints_of
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.model.point_parts import Angle, MechanismJoint, Point, RigidBody, UnitVector, uniform_bar

SEEDS = range(16)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_closed_where_the_bodies_are_rigid(seed: int, dim: int) -> None:
    """The guess of a random mechanism is a true pose, so every row is zero there."""
    geometry = Geometry(random_mechanism(np.random.default_rng(100 + seed), dim).mechanism)
    assert np.abs(constraints_of(geometry).values(geometry.guess)).max() <= 1e-12


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_against_finite_differences(seed: int, dim: int) -> None:
    rng = np.random.default_rng(200 + seed)
    c = constraints_of(Geometry(random_mechanism(rng, dim).mechanism))
    q, qd, weights = rng.normal(size=c.n), rng.normal(size=c.n), rng.normal(size=c.m)
    h = 1e-5  # second order: h² of the angles' third derivatives, and rounding 1e-16 / h, both below 1e-9
    J, rate, bend = c.jacobian(q), c.jacobian_rate(q, qd), c.curvature(q, weights)
    size = max(1.0, np.abs(J).max())
    for k, e in enumerate(np.eye(c.n)):
        slope = (c.values(q + h * e) - c.values(q - h * e)) / (2 * h)
        assert np.abs(J[:, k] - slope).max() <= 1e-8 * size
        slope = (c.jacobian(q + h * e) - c.jacobian(q - h * e)).T @ weights / (2 * h)
        assert np.abs(bend[:, k] - slope).max() <= 1e-8 * size
    slope = (c.jacobian(q + h * qd) - c.jacobian(q - h * qd)) / (2 * h)
    assert np.abs(rate - slope).max() <= 1e-7 * size
    assert not J[~c.pattern()].any()
    assert np.abs(bend - bend.T).max() <= 1e-12 * size


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_random_mechanism_has_redundant_rows(seed: int, dim: int) -> None:
    """Freedoms of the bodies less those the joints take: a chain has no loop, so every row counts."""
    mechanism = random_mechanism(np.random.default_rng(300 + seed), dim).mechanism
    system = system_of(mechanism)
    taken = {
        "spherical": (2, 3),
        "turning": (2, 5),
        "sliding": (2, 5),
        "cylindrical": (1, 4),
        "universal": (0, 4),
        "distance": (1, 1),
    }
    expected = 3 * (dim - 1) * len(mechanism.bodies) - sum(taken[j.kind][dim - 2] for j in mechanism.joints)
    found = mobility(system, system.guess)
    assert found.degrees_of_freedom == expected
    assert found.redundant == ()


def test_an_angle_goes_all_the_way_round() -> None:
    """The crank's row of Φ_q in φ is the crank's length everywhere, where each of equations (21) vanishes twice a turn."""
    c = constraints_of(Geometry(fourbar()))
    for phi in np.linspace(-10.0, 10.0, 41):
        q = np.array([2 * np.cos(phi), 2 * np.sin(phi), 8.0, 4.0, phi])
        value, J = c.evaluate(q)
        assert J[3, 4] == pytest.approx(2.0, rel=1e-14)
        assert value[3] == pytest.approx(0.0, abs=1e-14)


def test_four_bar_rows_are_equations_20() -> None:
    c = constraints_of(Geometry(fourbar()))
    x1, y1, x2, y2, phi = q = np.array([0.7, 1.1, 7.9, 3.2, 0.9])
    by_hand = [
        x1**2 + y1**2 - 4,
        (x2 - x1) ** 2 + (y2 - y1) ** 2 - 64,
        (10 - x2) ** 2 + y2**2 - 25,
        np.sin(phi) * x1 - np.cos(phi) * y1,
    ]
    assert c.values(q) == pytest.approx(by_hand, rel=1e-14)
    assert c.names == ("crank: |A-1|", "rod: |1-2|", "rocker: |2-B|", "phi")
    assert c.owners[0] == "body 'crank'"


def hinge(second: RigidBody) -> Mechanism:
    """Two bodies on one axis: they share a point and a vector, or two points and a vector."""
    first = RigidBody("first", {"P": (0, 0, 0), "R": (0, 0, 1)}, {"u": (0, 0, 1), "v": (1, 0, 0), "w": (0, 1, 0)}, 1.0)
    points = [Point("P", (0, 0, 0)), Point("R", (0, 0, 1)), Point("S", (0, 1, 0))]
    vectors = [
        UnitVector("u", (0, 0, 1)),
        UnitVector("v", (1, 0, 0)),
        UnitVector("w", (0, 1, 0)),
        UnitVector("a", (1, 0, 0)),
    ]
    return Mechanism.build(points, [first, second], vectors=vectors)


@pytest.mark.parametrize("shared", [{"P": (0, 0, 0)}, {"P": (0, 0, 0), "R": (0, 0, 1)}])
def test_shared_points_and_vectors_are_written_once(shared: dict[str, tuple[float, ...]]) -> None:
    """A hinge without an equation: twelve freedoms less five, and no redundant row."""
    system = system_of(hinge(RigidBody("second", {**shared, "S": (0, 1, 0)}, {"u": (0, 0, 1), "a": (1, 0, 0)}, 1.0)))
    found = mobility(system, system.guess)
    assert found.degrees_of_freedom == 7
    assert found.redundant == ()


def test_bodies_that_disagree_about_what_they_share_are_refused() -> None:
    tilted = RigidBody(
        "second", {"P": (0, 0, 0), "R": (0, 0, 2), "S": (0, 1, 0)}, {"u": (0, 0, 1), "a": (1, 0, 0)}, 1.0
    )
    with pytest.raises(ModelError, match=r"(?s)body 'second'.*contradicts body 'first'"):
        system_of(hinge(tilted))


def test_a_body_between_fixed_points_must_fit() -> None:
    points = [Point("A", (0, 0), True), Point("B", (1, 0), True), Point("P", (0, 1))]
    fits = Mechanism.build(points, [RigidBody("plate", {"A": (0, 0), "B": (1, 0), "P": (0, 1)})])
    system = system_of(fits)
    assert position(system) == pytest.approx([0.0, 1.0], abs=1e-14)
    with pytest.raises(ModelError, match=r"(?s)'plate: \|A-B\|' contradicts the ground.*Expected 1, found 1.21"):
        system_of(Mechanism.build(points, [RigidBody("plate", {"A": (0, 0), "B": (1.1, 0), "P": (0, 1)})]))


def test_a_joint_between_fixed_points_must_hold() -> None:
    points = [Point("A", (0, 0), True), Point("B", (1, 0), True), Point("P", (0, 1))]
    mechanism = Mechanism.build(
        points, [uniform_bar("bar", "A", "P", 1, 1)], joints=[MechanismJoint("tie", "distance", "A", "B", 2.0)]
    )
    with pytest.raises(ModelError, match="joint 'tie': the constraint 'tie' is between fixed things"):
        system_of(mechanism)


def test_a_loose_vector_keeps_its_length() -> None:
    mechanism = Mechanism.build(
        [Point("A", (0, 0), True), Point("P", (1, 0))],
        [uniform_bar("bar", "A", "P", 1, 1)],
        vectors=[UnitVector("u", (0.6, 0.8))],
        added=[Angle("phi", "u", ("A", "P"))],
    )
    c = constraints_of(Geometry(mechanism))
    assert "|u|" in c.names


def test_rack() -> None:
    system = system_of(rack_and_pinion())
    q = position(system, {"theta": 0.5})
    assert q[system.mechanism.index("x")] == pytest.approx(0.4 * 0.5 + 0.2, rel=1e-13)
    assert q[system.mechanism.index("S.x")] == pytest.approx(0.4, rel=1e-13)
    assert mobility(system, q).degrees_of_freedom == 1
