"""A mechanism as data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.point_parts import Angle, Distance, Point, RigidBody, UnitVector, uniform_bar


def test_coordinates_are_points_then_vectors_then_added() -> None:
    mechanism = Mechanism.build(
        [Point("O", (0, 0, 0), True), Point("P", (1, 0, 0))],
        [RigidBody("b", {"O": (0, 0, 0), "P": (1, 0, 0)}, {"u": (0, 1, 0)})],
        vectors=[UnitVector("u", (0, 1, 0)), UnitVector("k", (0, 0, 1), True)],
    )
    assert mechanism.coordinates == ("P.x", "P.y", "P.z", "u.x", "u.y", "u.z")
    assert mechanism.dimension == 3
    assert mechanism.gravity == (0.0, 0.0, 0.0)
    assert fourbar().coordinates == ("1.x", "1.y", "2.x", "2.y", "phi")
    assert fourbar().index("phi") == 4


def test_unknown_names_are_answered_with_what_exists() -> None:
    with pytest.raises(ModelError, match=r"(?s)fourbar: there is no coordinate 'psi'.*Did you mean 'phi'\?"):
        fourbar().index("psi")
    with pytest.raises(ModelError, match=r"(?s)no body 'crunk'.*Did you mean 'crank'\?"):
        fourbar().body("crunk")


def test_a_uniform_bar_has_the_inertia_of_a_rod() -> None:
    plane, space = uniform_bar("b", "P", "R", 3.0, 2.0), uniform_bar("b", "P", "R", 3.0, 2.0, dimension=3)
    assert plane.inertia == pytest.approx(1.5)
    assert plane.centre == (1.5, 0.0)
    assert np.array_equal(space.inertia, np.diag([0.0, 1.5, 1.5]))
    assert space.points["R"] == (3.0, 0.0, 0.0)


@pytest.mark.parametrize("dim", [2, 3])
def test_travels_to_another_process(dim: int) -> None:
    mechanism = random_mechanism(np.random.default_rng(1), dim).mechanism
    again = pickle.loads(pickle.dumps(mechanism))
    assert again.coordinates == mechanism.coordinates
    assert [(j.name, j.kind, j.a, j.b) for j in again.joints] == [(j.name, j.kind, j.a, j.b) for j in mechanism.joints]
    assert again.bodies[0].points == mechanism.bodies[0].points


def test_units_of_coordinates_and_of_what_acts_on_them() -> None:
    mechanism = Mechanism.build(
        [Point("O", (0, 0, 0), fixed=True), Point("P", (1, 0, 0))],
        [
            RigidBody(
                "b", {"O": (0, 0, 0), "P": (1, 0, 0)}, {"u": (0, 0, 1)}, mass=1.0, centre=(0, 0, 0), inertia=np.eye(3)
            )
        ],
        vectors=[UnitVector("u", (0, 0, 1))],
        added=[Distance("way", "O", "P"), Angle("turn", ("O", "P"), (1, 0, 0), (0, 1, 0))],
        loads=[
            Drive("push", "way"),
            Drive("twist", "turn"),
            Force("wind", "P", (1, 0, 0)),
            Torque("wrench", "b", (0, 0, 1)),
        ],
    )
    assert [mechanism.unit_of(c) for c in ("P.x", "u.y", "way", "turn")] == ["m", "1", "m", "rad"]
    found = [mechanism.force_unit(c) for c in ("push", "twist", "wind", "wrench", "way", "turn")]
    assert found == ["N", "N*m", "N", "N*m", "N", "N*m"]
