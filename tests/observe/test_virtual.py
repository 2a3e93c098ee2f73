"""Virtual sensors: values against closed forms and Newton's law, bands against finite differences of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.errors import DataError
from veridyn.machines.spatial import crane, spatial
from veridyn.model.instrument import Instrument
from veridyn.model.natural import Angle, Joint, Marker, Mechanism, Point, RigidBody, Spring
from veridyn.observe.jacobian import check_jacobian
from veridyn.observe.mechanism import MechanismSystem, Unsure, mechanism_system
from veridyn.observe.virtual import Quantity, Virtual

NO = np.zeros(0)


def value(system: MechanismSystem, x: np.ndarray, wanted: Virtual) -> np.ndarray:
    return Quantity(system, wanted).at(x, system.instant(x, NO))[0]


def four() -> tuple[MechanismSystem, np.ndarray]:
    machine = replace(fourbar(), sensors=(Instrument("encoder", "coordinate", "phi", 0.02),))
    system, q, qd = mechanism_system(machine, Unsure(force=1.0), start={"phi": 0.8}, rates={"phi": 2.0})
    return system, system.belief(q, qd).x


def test_every_derivative() -> None:
    system, x = four()
    wanted = [
        Virtual("p", "position", "2"),
        Virtual("v", "velocity", Marker("rod", (3.0, 1.0))),
        Virtual("a", "acceleration", "2"),
        Virtual("w", "gyroscope", "rod"),
        Virtual("f", "accelerometer", Marker("rod", (3.0, 1.0))),
        Virtual("pin", "reaction", ("rod", "1")),
    ]
    _check(system, x, wanted)
    given = {"shoulder": 0.7, "elbow": -1.3, "base_b": 0.1}, {"shoulder": 0.5, "elbow": -0.4, "base_b": 0.3}
    system, q, qd = mechanism_system(spatial(), Unsure(force=1.0), start=given[0], rates=given[1])
    _check(
        system, system.belief(q, qd).x, [Virtual("wrist", "reaction", "wrist"), Virtual("s", "spring", "elbow_spring")]
    )


def test_the_unit_of_a_spring_is_that_of_what_it_is_on() -> None:
    turning = mechanism_system(spatial(), Unsure(force=1.0))[0]
    sliding = mechanism_system(crane(), Unsure(force=1.0))[0]
    assert Quantity(turning, Virtual("s", "spring", "elbow_spring")).unit == "N*m"
    assert Quantity(sliding, Virtual("s", "spring", "rail_friction")).unit == "N"


def _check(system: MechanismSystem, x: np.ndarray, wanted: list[Virtual]) -> None:
    size = len(system.states)
    for w in wanted:
        quantity = Quantity(system, w)

        def at(d, quantity=quantity):
            moved = system.add(x, d)
            return quantity.at(moved, system.instant(moved, NO))

        found = check_jacobian(
            lambda d, at=at: at(d)[0], lambda d, at=at: at(d)[1], np.zeros(size), scales=np.full(size, 0.02)
        )
        assert found.error < 1e-6, w.name


def test_the_pin_of_the_rod_obeys_newton() -> None:
    """The forces on the rod at both its pins and its weight make its mass times the acceleration of its middle."""
    system, x = four()
    pins = sum(value(system, x, Virtual("pin", "reaction", ("rod", p))) for p in ("1", "2"))
    middle = value(system, x, Virtual("m", "acceleration", Marker("rod", (4.0, 0.0))))
    assert pins + 8.0 * np.array([0.0, -9.806]) == pytest.approx(8.0 * middle, abs=1e-9)
    # and what the rod does to the rocker is the opposite of what the rocker does to it
    other = value(system, x, Virtual("pin", "reaction", ("rocker", "2")))
    assert other == pytest.approx(-value(system, x, Virtual("pin", "reaction", ("rod", "2"))), abs=1e-9)


def test_a_pendulum_on_a_joint_pulls_with_m_g_cos_and_m_l_omega_squared() -> None:
    bob = RigidBody("bob", {"P": (0.0, 0.0)}, mass=2.0)
    machine = Mechanism.build(
        [Point("O", (0, 0), True), Point("P", (0, -1.5))],
        [bob],
        joints=[Joint("rope", "distance", "O", "P", 1.5)],
        added=[Angle("theta", ("O", "P"), (0.0, -1.0))],
        springs=[Spring("spring", ("O", "P"), 10.0, 1.0)],
        gravity=(0.0, -9.81),
        sensors=[Instrument("e", "coordinate", "theta", 0.1)],
    )
    system, q, qd = mechanism_system(machine, Unsure(force=1.0), start={"theta": 0.4}, rates={"theta": 2.0})
    x = system.belief(q, qd).x
    pull = value(system, x, Virtual("rope", "reaction", "rope"))
    inwards = -np.array([np.sin(0.4), -np.cos(0.4)])
    # the spring carries 5 N of it
    assert pull == pytest.approx((2.0 * (9.81 * np.cos(0.4) + 1.5 * 4.0) - 5.0) * inwards, abs=1e-9)
    assert value(system, x, Virtual("s", "spring", "spring")) == pytest.approx([10.0 * 0.5])


def test_what_is_refused() -> None:
    system, _ = four()
    for wanted, message in (
        (Virtual("p", "position", "7"), "there is no point '7'"),
        (Virtual("s", "spring", "coil"), "there is no spring or damper 'coil'"),
        (Virtual("r", "reaction", "hinge"), "there is no joint 'hinge'"),
        (Virtual("r", "reaction", ("rod", "A")), "'A' is no moving point of it"),
        (Virtual("t", "temperature", "1"), "there is no virtual sensor of kind 'temperature'"),
        (Virtual("a", "acceleration", ("rod", "1")), "this is no place"),
    ):
        with pytest.raises(DataError, match=message):
            Quantity(system, wanted)
    lifted = mechanism_system(crane(), Unsure(force=1.0))[0]
    assert Quantity(lifted, Virtual("rope", "reaction", ("rope", "L"))).unit == "N"
