"""Virtual sensors: values against closed forms and Newton's law, bands against finite differences of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, rotation, turning_fourbar
from veridyn.errors import DataError, ModelWarning
from veridyn.machines import crane, spatial
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism, machine_of_points
from veridyn.model.load import Drive, Torque
from veridyn.model.place import Marker
from veridyn.model.point_parts import Angle, MechanismJoint, Point, RigidBody, Spring
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Virtual, VirtualQuantity
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import check_jacobian

NO = np.zeros(0)


def value(system: MachineSystem, x: np.ndarray, wanted: Virtual) -> np.ndarray:
    return VirtualQuantity(system, wanted).at(x, system.instant(x, NO), NO)[0]


def four() -> tuple[MachineSystem, np.ndarray]:
    machine = machine_of_mechanism(replace(fourbar(), sensors=(Sensor("encoder", "coordinate", "phi", 0.02),)))
    system, q, qd = machine_system(
        machine,
        ObserveSettings(
            model_error="off", process_noise=ProcessNoise(force=1.0), start={"phi": 0.8}, rates={"phi": 2.0}
        ),
    )
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
    system, q, qd = machine_system(
        spatial(),
        ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), start=given[0], rates=given[1]),
    )
    wanted = [Virtual("wrist", "reaction", "wrist"), Virtual("s", "spring", "elbow_spring")]
    wanted += [Virtual(p, "reaction", (b, p)) for b, p in (("upper_a", "PA"), ("lower_b", "OB"), ("rod", "TB"))]
    _check(system, system.belief(q, qd).x, wanted)
    assert VirtualQuantity(system, wanted[0]).units == ("N",) * 3 + ("N*m",) * 3


def test_the_unit_of_a_spring_is_that_of_what_it_is_on() -> None:
    turning = machine_system(spatial(), ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0)))[0]
    sliding = machine_system(crane(), ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0)))[0]
    assert VirtualQuantity(turning, Virtual("s", "spring", "elbow_spring")).units == ("N*m",)
    assert VirtualQuantity(sliding, Virtual("s", "spring", "rail_friction")).units == ("N",)


def _check(system: MachineSystem, x: np.ndarray, wanted: list[Virtual]) -> None:
    size = len(system.states)
    for w in wanted:
        quantity = VirtualQuantity(system, w)

        def at(d, quantity=quantity):
            moved = system.add(x, d)
            return quantity.at(moved, system.instant(moved, NO), NO)

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
    machine = machine_of_points(
        [Point("O", (0, 0), True), Point("P", (0, -1.5))],
        [bob],
        joints=[MechanismJoint("rope", "distance", "O", "P", 1.5)],
        added=[Angle("theta", ("O", "P"), (0.0, -1.0))],
        elements=[Spring("spring", ("O", "P"), 10.0, 1.0)],
        gravity=(0.0, -9.81),
        sensors=[Sensor("e", "coordinate", "theta", 0.1)],
    )
    system, q, qd = machine_system(
        machine,
        ObserveSettings(
            model_error="off", process_noise=ProcessNoise(force=1.0), start={"theta": 0.4}, rates={"theta": 2.0}
        ),
    )
    x = system.belief(q, qd).x
    pull = value(system, x, Virtual("rope", "reaction", "rope"))
    # the spring carries 5 N of it
    assert pull == pytest.approx([2.0 * (9.81 * np.cos(0.4) + 1.5 * 4.0) - 5.0], abs=1e-9)
    assert value(system, x, Virtual("s", "spring", "spring")) == pytest.approx([10.0 * 0.5])


def test_the_crane_carries_its_load() -> None:
    """Newton's law for rope and load, for all three, and for the trolley, on which the motor and the friction of its rail act."""
    system, q, qd = machine_system(
        crane(),
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(force=1.0),
            unknown=("motor",),
            start={"swing": 0.3},
            rates={"x": 0.5, "swing": -0.4},
        ),
    )
    x = system.belief(q, qd, u=np.array([150.0])).x

    def acceleration(on) -> np.ndarray:
        return value(system, x, Virtual("a", "acceleration", on))

    g = np.array([0.0, -9.81])
    load, rope = 250.0 * (acceleration("L") - g), 3.0 * (acceleration(Marker("rope", (3.0, 0.0))) - g)
    trolley = 80.0 * (acceleration("T") - g)
    assert value(system, x, Virtual("r", "reaction", ("load", "L"))) == pytest.approx(load, abs=1e-8)
    assert value(system, x, Virtual("r", "reaction", ("rope", "L"))) == pytest.approx(-load, abs=1e-8)
    assert value(system, x, Virtual("r", "reaction", ("rope", "T"))) == pytest.approx(load + rope, abs=1e-8)
    rail = value(system, x, Virtual("r", "reaction", "rail"))
    assert rail == pytest.approx([0.0, (load + rope + trolley)[1]], abs=1e-8)
    pushed = value(system, x, Virtual("r", "reaction", ("trolley", "T"))) + rail + np.array([150.0 - 40.0 * 0.5, 0.0])
    assert pushed == pytest.approx(trolley, abs=1e-8)
    _check(system, x, [Virtual("r", "reaction", on) for on in (("rope", "L"), ("trolley", "T"), "rail")])


def test_a_known_force_on_a_body_counts() -> None:
    """A torque on a body that comes with the readings: its pins carry the rest."""
    bars = replace(
        fourbar(),
        sensors=(Sensor("encoder", "coordinate", "phi", 0.02),),
        loads=(Drive("motor", "phi", -10.0), Torque("twist", "rod", 0.0)),
    )
    machine = machine_of_mechanism(bars)
    system, q, qd = machine_system(
        machine,
        ObserveSettings(
            model_error="off", process_noise=ProcessNoise(force=1.0), inputs=("twist",), start={"phi": 0.8}
        ),
    )
    x = system.belief(q, qd).x
    for twist in (0.0, 40.0):
        u = np.array([twist])
        at = system.instant(x, u)
        pins = {p: VirtualQuantity(system, Virtual("r", "reaction", ("rod", p))).at(x, at, u)[0] for p in ("1", "2")}
        y = {n: VirtualQuantity(system, Virtual("p", "position", n)).at(x, at, u)[0] for n in ("1", "2")}
        middle = 0.5 * (y["1"] + y["2"])
        way = y["2"] - y["1"]
        alpha = (way[0] * (at.qdd[3] - at.qdd[1]) - way[1] * (at.qdd[2] - at.qdd[0])) / 64.0  # way × its acceleration
        turned = sum((y[n] - middle)[0] * pins[n][1] - (y[n] - middle)[1] * pins[n][0] for n in pins)
        assert turned + twist == pytest.approx(8.0 * 64.0 / 12.0 * alpha, abs=1e-8)


@pytest.fixture(scope="module")
def spatial_four() -> tuple[MachineSystem, np.ndarray]:
    bars = replace(turning_fourbar(), sensors=(Sensor("encoder", "coordinate", "phi", 0.02),))
    machine = machine_of_mechanism(bars)
    with pytest.warns(ModelWarning, match="say nothing new"):
        system, q, qd = machine_system(
            machine,
            ObserveSettings(
                model_error="off",
                process_noise=ProcessNoise(force=1.0),
                independents=("phi",),
                start={"phi": 0.8},
                rates={"phi": 2.0},
            ),
        )
    return system, system.belief(q, qd).x


def test_what_redundant_constraints_leave_open_is_said(spatial_four) -> None:
    """In the plane of the four-bar the forces are those of the planar machine; across it nothing determines them."""
    system, x = spatial_four
    flat, there = four()
    for joint, on in (("A", ("crank", "A")), ("pin1", ("rod", "1")), ("pin2", ("rocker", "2")), ("B", ("rocker", "B"))):
        with pytest.warns(
            ModelWarning, match=r"(?s)'r.z', 'r.moment.x', 'r.moment.y' in a way that no motion determines"
        ):
            made = VirtualQuantity(system, Virtual("r", "reaction", joint))
        assert made.components == ("r.x", "r.y", "r.moment.z") and made.units == ("N", "N", "N*m")
        y, G = made.at(x, system.instant(x, NO), NO)
        there_y, there_G = VirtualQuantity(flat, Virtual("r", "reaction", on)).at(there, flat.instant(there, NO), NO)
        assert y == pytest.approx([*there_y, 0.0], abs=1e-8)
        assert G[:2] == pytest.approx(there_G, abs=1e-7)


def test_a_reaction_that_nothing_determines_is_refused() -> None:
    """Tilted, every component has a part across the plane."""
    bars = replace(
        turning_fourbar(rotation(np.random.default_rng(0), 3)),
        sensors=(Sensor("encoder", "coordinate", "phi", 0.02),),
    )
    machine = machine_of_mechanism(bars)
    with pytest.warns(ModelWarning, match="say nothing new"):
        system = machine_system(
            machine, ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), independents=("phi",))
        )[0]
    with pytest.raises(DataError, match=r"(?s)'r.x', 'r.y'.* no motion determines.*redundant constraints 'pin"):
        VirtualQuantity(system, Virtual("r", "reaction", "pin1"))


def test_what_is_refused() -> None:
    system, _ = four()
    for wanted, message in (
        (Virtual("p", "position", "7"), "there is no point '7'"),
        (Virtual("s", "spring", "coil"), "there is no spring or damper 'coil'"),
        (Virtual("r", "reaction", "hinge"), "there is no joint 'hinge'"),
        (Virtual("r", "reaction", ("rod", "A")), "'A' is no point of it"),
        (Virtual("r", "reaction", Marker("rod", (1.0, 0.0))), "this is no place"),
        (Virtual("t", "temperature", "1"), "there is no virtual sensor of kind 'temperature'"),
        (Virtual("a", "acceleration", ("rod", "1")), "this is no place"),
        (Virtual("a", "acceleration", Marker("rod", (1.0, 0.0), (1.0, 0.0))), "given in the ground's axes"),
        (Virtual("d", "distance", "1"), "there is no virtual sensor of kind 'distance'"),
    ):
        with pytest.raises(DataError, match=message):
            VirtualQuantity(system, wanted)
    lifted = machine_system(crane(), ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0)))[0]
    assert VirtualQuantity(lifted, Virtual("rope", "reaction", ("rope", "L"))).units == ("N", "N")
