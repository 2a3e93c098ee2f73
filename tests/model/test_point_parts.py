"""Parts of mechanisms: ten parameters of particles, rods and bodies from their points and back, and directions that bodies hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.model.place import Marker
from veridyn.model.point_parts import Angle, Distance, RigidBody, held, length_of, rigid_body, ten_of, uniform_bar
from veridyn.spatial.inertia import broken_law

ARM = """
veridyn: 2
name: arm
gravity: [0, 0, 0]
points: {O: {at: [0, 0, 0], fixed: true}, B: {at: [2, 0, 0], fixed: true}, P: {at: [2.4, 1.8, 0]}, F: {at: [5, 5, 5]}}
vectors: {k: {along: [0, 0, 1], fixed: true}, u: {along: [-0.6, 0.8, 0]}}
bodies:
  arm: {points: {O: [0, 0, 0], P: [3, 0, 0]}, vectors: {k: [0, 0, 1], u: [0, 1, 0]}, mass: 1, inertia: [0.1, 0, 0, 0.1, 0, 0.1]}
  dust: {points: {F: [0, 0, 0]}, mass: 1}
"""


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


def arm(**parts: object) -> Mechanism:
    made = mechanism_of(parse_machine(ARM))
    return Mechanism.build(
        **{
            part: parts.get(part, getattr(made, part))
            for part in ("points", "bodies", "name", "vectors", "added", "gravity")
        }
    )


def test_what_holds_a_direction() -> None:
    m = arm()
    assert {k: v.tolist() for k, v in held(m, ("O", "B")).items()} == {"ground": [2, 0, 0]}
    assert {k: v.tolist() for k, v in held(m, "k").items()} == {"ground": [0, 0, 1], "arm": [0, 0, 1]}
    assert {k: v.tolist() for k, v in held(m, Marker("arm", (0, 0, 0), (0, 0, 5))).items()} == {"arm": [0, 0, 1]}
    assert {k: v.tolist() for k, v in held(m, (0.6, 0.8, 0.0)).items()} == {"ground": [0.6, 0.8, 0]}
    assert length_of(m, ("O", "P")) == 3.0
    assert length_of(m, ("P", "F")) == 0.0


def test_two_points_give_a_direction_and_not_a_length() -> None:
    """A way of 2.4 m is that, whatever the two points that show where to are apart; an angle likewise."""
    added = [
        Distance("x", "O", "P", ("O", "B")),
        Distance("own", "O", "B", ("O", "P")),
        Angle("phi", ("O", "P"), ("O", "B"), (0.0, 1.0, 0.0)),
        Angle("back", ("O", "B"), ("O", "P"), "u"),
    ]
    s = system_of(arm(added=added))
    q = dict(zip(s.coordinates, position(s).tolist(), strict=True))
    assert q["x"] == pytest.approx(2.4, abs=1e-12)
    assert q["own"] == pytest.approx(1.6, abs=1e-12)
    assert q["phi"] == pytest.approx(np.arctan2(1.8, 2.4), abs=1e-12)
    assert q["back"] == pytest.approx(-np.arctan2(1.8, 2.4), abs=1e-12)


def test_directions_that_would_give_wrong_numbers_are_refused() -> None:
    with pytest.raises(ModelError, match=r"(?s)coordinate 'x'.*no body has both points of the direction P-F"):
        arm(added=[Distance("x", "O", "P", ("P", "F"))])
    with pytest.raises(ModelError, match=r"(?s)coordinate 'phi'.*no body has both points of the direction P-F"):
        arm(added=[Angle("phi", "u", ("P", "F"), (0.0, 0.0, 1.0))])
    with pytest.raises(ModelError, match=r"(?s)coordinate 'phi'.*not perpendicular.*53\.1301 degrees"):
        arm(added=[Angle("phi", ("O", "P"), (1.0, 0.0, 0.0), (0.6, 0.8, 0.0))])
    with pytest.raises(ModelError, match=r"(?s)coordinate 'phi'.*not perpendicular.*180 degrees"):
        arm(added=[Angle("phi", "u", ("O", "P"), Marker("arm", (0, 0, 0), (-1, 0, 0)))])


def test_a_mirror_image_is_refused() -> None:
    """u on the other side closes all lengths and products, and would turn the other way."""
    m = arm()
    vectors = [replace(v, along=(0.6, -0.8, 0.0)) if v.name == "u" else v for v in m.vectors]
    s = system_of(arm(vectors=vectors))
    assert s.geometry.mirrored(s.guess) == ("arm",)
    assert np.abs(s.constraints.values(s.guess)).max() < 1e-12
    with pytest.raises(ModelError, match=r"(?s)body 'arm'.*mirror image.*Correct where they start"):
        position(s)
    assert system_of(m).geometry.mirrored(system_of(m).guess) == ()
