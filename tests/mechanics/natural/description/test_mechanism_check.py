"""Every fault of a description is found, and named."""

from __future__ import annotations

from typing import Any

import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.place import Marker
from veridyn.model.point_parts import (
    Angle,
    Damper,
    Distance,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    Spring,
    UnitVector,
)
from veridyn.model.sensor import Sensor

NAN = float("nan")


def build(**changed: Any) -> Mechanism:
    """A bar in the plane that is in order, with some parts replaced."""
    parts: dict[str, Any] = {
        "points": [Point("A", (0, 0), True), Point("P", (1, 0))],
        "bodies": [RigidBody("bar", {"A": (0, 0), "P": (1, 0)}, mass=1.0, inertia=0.1)],
        "added": [Angle("phi", ("A", "P"), (1.0, 0.0))],
    }
    return Mechanism.build(**{**parts, **changed})


def in_space(**changed: Any) -> Mechanism:
    parts: dict[str, Any] = {
        "points": [Point("A", (0, 0, 0), True), Point("P", (1, 0, 0))],
        "bodies": [RigidBody("bar", {"A": (0, 0, 0), "P": (1, 0, 0)})],
    }
    return Mechanism.build(**{**parts, **changed})


def marker(*axis: float, side: tuple[float, ...] = ()) -> Marker:
    return Marker("ground", (0.0,) * 3, axis, side)


FAULTS = [
    (
        lambda: build(sensors=[Sensor("gyro", "gyroscope", "bar", 0.1, turns=True)]),
        r"(?s)sensor 'gyro': only an angle is read modulo a full turn.*found kind gyroscope",
    ),
    (lambda: build(points=[Point("A", (0, 0, 0, 0))]), "neither in the plane nor in space"),
    (lambda: Mechanism.build([], []), "neither in the plane nor in space"),
    (lambda: build(points=[Point("A", (0, 0)), Point("P", (1, 0, 0))]), r"(?s)point 'P'.*Expected 2 finite numbers"),
    (lambda: build(points=[Point("A", (0, NAN)), Point("P", (1, 0))]), "point 'A': this is no place"),
    (
        lambda: build(points=[Point("A", (0, 0)), Point("P", (1, 0)), Point("P", (2, 0))]),
        "'P': the name is used 2 times",
    ),
    (lambda: build(points=[Point("A", (0, 0)), Point("P", (1, 0)), Point("ground", (2, 0))]), "taken by the ground"),
    (lambda: build(vectors=[UnitVector("u", (1, 1))]), r"(?s)vector 'u'.*Expected 1, found 1.414"),
    (lambda: build(gravity=(0, 0, 9.81)), "gravity: this is no place or direction"),
    (lambda: build(bodies=[RigidBody("bar", {})]), "body 'bar': it has no point"),
    (lambda: build(bodies=[RigidBody("bar", {"A": (0, 0), "Q": (1, 0)})]), "body 'bar': there is no point 'Q'"),
    (lambda: build(bodies=[RigidBody("bar", {"A": (0, 0)}, {"u": (1, 0)})]), "there is no vector 'u'"),
    (lambda: build(bodies=[RigidBody("bar", {"A": (0, 0)}, centre=(1, 2, 3))]), "body 'bar', centre"),
    (lambda: build(bodies=[RigidBody("bar", {"A": (0, 0)}, mass=-1.0)]), "breaks a law of physics"),
    (lambda: build(bodies=[RigidBody("bar", {"A": (0, 0)}, mass=1.0, inertia=(1.0, 2.0))]), "cannot be read"),
    (lambda: in_space(bodies=[RigidBody("bar", {"A": (0, 0, 0)}, mass=1.0, inertia=0.3)]), "cannot be read"),
    (
        lambda: in_space(bodies=[RigidBody("bar", {"A": (0, 0, 0)}, mass=1.0, inertia=(1, 0, 0, 1, 0, 5))]),
        "triangle inequality",
    ),
    (
        lambda: in_space(
            bodies=[RigidBody("b", {"A": (0, 0, 0)}, mass=1, inertia=[[1, 0.2, 0], [0, 1, 0], [0, 0, 1]])]
        ),
        "not symmetric",
    ),
    (lambda: build(joints=[MechanismJoint("j", "glue", "A", "P")]), "no joint of kind 'glue'"),
    (lambda: build(joints=[MechanismJoint("j", "spherical", "A", "Q")]), "joint 'j': there is no point 'Q'"),
    (lambda: build(joints=[MechanismJoint("j", "spherical", Marker("bat", (0, 0)), "A")]), "Did you mean 'bar'"),
    (lambda: build(joints=[MechanismJoint("j", "distance", "A", "P")]), "a distance joint needs its length"),
    (
        lambda: build(joints=[MechanismJoint("j", "universal", Marker("bar", (0, 0), (1, 0)), "P")]),
        "exists in space only",
    ),
    (lambda: build(joints=[MechanismJoint("j", "sliding", "A", "P")]), "a point has none"),
    (lambda: build(joints=[MechanismJoint("j", "cylindrical", Marker("bar", (0, 0)), "P")]), "the marker has no axis"),
    (lambda: in_space(joints=[MechanismJoint("j", "turning", marker(0, 0, 0), marker(0, 0, 1))]), "length zero"),
    (
        lambda: in_space(joints=[MechanismJoint("j", "sliding", marker(0, 0, 1), marker(0, 0, 1))]),
        "needs a direction beside",
    ),
    (
        lambda: in_space(
            joints=[MechanismJoint("j", "sliding", marker(0, 0, 1, side=(0, 0, 2)), marker(0, 0, 1, side=(1, 0, 0)))]
        ),
        "the side is along the axis",
    ),
    (lambda: in_space(added=[Angle("a", ("A", "P"), (1.0, 0.0, 0.0))]), "counted towards"),
    (lambda: build(added=[Angle("a", "u", (1.0, 0.0))]), "coordinate 'a': there is no vector 'u'"),
    (lambda: build(added=[Angle("a", ("A", "Q"), (1.0, 0.0))]), "there is no point 'Q'"),
    (lambda: build(added=[Angle("a", Marker("bar", (0, 0)), (1.0, 0.0))]), "the marker has no axis"),
    (lambda: build(added=[Distance("s", "A", "Q")]), "coordinate 's': there is no point 'Q'"),
    (lambda: build(added=[Distance("s", "A", "P", (3.0, 0.0))]), "a unit vector has length one"),
    (lambda: build(racks=[Rack("r", "x", "phi", 1.0)]), "rack 'r': there is no added distance 'x'"),
    (lambda: build(racks=[Rack("r", "phi", "phi", 0.0)]), "needs the radius of its pinion"),
    (lambda: build(springs=[Spring("k", "psi", 1.0)]), r"(?s)force 'k': there is no added coordinate 'psi'.*'phi'\?"),
    (lambda: build(springs=[Spring("k", ("A", "P"), NAN)]), "its numbers are not finite"),
    (lambda: build(dampers=[Damper("c", ("A", "Q"), 1.0)]), "force 'c': there is no point 'Q'"),
    (lambda: build(dampers=[Damper("c", "phi", NAN)]), "its number is not finite"),
    (lambda: build(loads=[Drive("m", "1.x")]), "force 'm': there is no added coordinate"),
    (lambda: build(loads=[Drive("m", "phi", NAN)]), "force 'm': its number is not finite"),
    (lambda: build(loads=[Force("f", "P", (1, 2, 3))]), "force 'f': this is no place or direction"),
    (lambda: build(loads=[Torque("t", "bar", (1, 2, 3))]), "this is no torque here"),
    (lambda: build(loads=[Torque("t", "bat", 1.0)]), "there is no body 'bat'"),
]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_fault(number: int) -> None:
    make, message = FAULTS[number]
    with pytest.raises(ModelError, match=message):
        make()


def test_all_faults_at_once() -> None:
    with pytest.raises(ModelError) as caught:
        build(springs=[Spring("k", "psi", 1.0)], gravity=(1.0,), loads=[Drive("m", "chi")])
    assert len(caught.value.faults) == 3


def test_a_sound_description_passes() -> None:
    assert build().n == 3
    assert in_space().n == 3
