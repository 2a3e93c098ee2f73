"""Sensors as data: names, units, and what is refused."""

from __future__ import annotations

import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import damper
from veridyn.model.graph import Body
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor, sensor_faults


def with_sensors(*sensors: Sensor) -> Mechanism:
    m = fourbar()
    return Mechanism.build(m.points, m.bodies, added=m.added, loads=m.loads, sensors=sensors)


def test_names_units_and_variance() -> None:
    assert Sensor("e", "coordinate", "phi", 0.1).channels(3) == ("e",)
    assert Sensor("g", "gyroscope", "rod", 0.1).channels(2) == ("g.z",)
    assert Sensor("g", "gyroscope", "rod", 0.1).channels(3) == ("g.x", "g.y", "g.z")
    assert Sensor("p", "position", "1", 0.1, axes="yx").channels(2) == ("p.y", "p.x")
    assert Sensor("e", "coordinate", "phi", 0.1).unit(True) == "rad"
    assert Sensor("e", "rate", "s", 0.1).unit(False) == "m/s"
    assert Sensor("a", "accelerometer", "1", 0.1).unit(False) == "m/s^2"
    assert Sensor("e", "coordinate", "phi", 0.3, quantum=1.2).variance == pytest.approx(0.09 + 0.12)
    assert Sensor("e", "coordinate", "phi", 0.3, bias_walk=1e-6).drifts
    assert Sensor("d", "distance", "1", 0.1, to="2").channels(3) == ("d",)
    assert Sensor("d", "distance", "1", 0.1, to="2").unit(False) == "m"


def test_options_go_by_keyword() -> None:
    with pytest.raises(TypeError):
        Sensor("p", "position", "1", 0.1, "yx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": -0.1}, "sensor 'e': its sigma is not usable"),
        ({"sigma": 0.0}, "sensor 'e': it has neither noise nor a quantum"),
        ({"sigma": 1e300}, "its sigma is not usable.\nExpected zero, or 1e-77 to 1e+77, found 1e+300."),
        ({"sigma": 1e-170}, "its sigma is not usable"),
        ({"quantum": 1e200}, "its quantum is not usable"),
        ({"bias_sigma": 1e160}, "its bias_sigma is not usable"),
        ({"bias_walk": 1e-200}, "its bias_walk is not usable"),
        ({"delay": -1.0}, "its delay is not usable"),
        ({"bias": float("nan")}, "its bias is not usable"),
        ({"axes": "xz"}, "its axes cannot be read"),
        ({"kind": "odometer"}, "there is no kind 'odometer'"),
        ({"rate": 0.0}, "its rate is not usable"),
        ({"axes": "x"}, "it reads one number and has no axes"),
        ({"kind": "distance"}, "a distance has two ends"),
        ({"to": "1"}, "every other kind has one"),
        ({"kind": "position", "on": Marker("rod", (0, 0), (1, 0))}, "a position is read in the ground's axes"),
    ],
)
def test_bad_numbers_are_refused_by_name(change: dict, message: str) -> None:
    given = {"name": "e", "kind": "coordinate", "on": "phi", "sigma": 0.1} | change
    assert any(message in str(f) for f in sensor_faults(Sensor(**given), 2))


def test_a_mechanism_refuses_sensors_on_what_it_has_not() -> None:
    marker = Marker("ground", (0.0, 0.0), (1.0, 0.0))
    with pytest.raises(ModelError) as error:
        with_sensors(
            Sensor("a", "coordinate", "psi", 0.1),
            Sensor("b", "gyroscope", "lever", 0.1),
            Sensor("c", "accelerometer", "1", 0.1),
            Sensor("d", "gyroscope", marker, 0.1),
            Sensor("e", "position", "7", 0.1),
            Sensor("f", "rate", marker, 0.1),
            Sensor("f", "coordinate", "phi", 0.1),
        )
    text = str(error.value)
    for part in (
        "sensor 'a': there is no coordinate 'psi'",
        "sensor 'b': there is no body 'lever'",
        "sensor 'c': an accelerometer has axes",
        "sensor 'd': it stands on the ground",
        "sensor 'e': there is no point '7'",
        "sensor 'f': it reads a coordinate",
        "sensor 'f': the name is used 2 times",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (Sensor("s", "coordinate", "arn", 0.1), "sensor 's': there is no coordinate 'arn'.*Did you mean 'arm'"),
        (Sensor("s", "rate", Marker("arm", (0, 0, 0)), 0.1), "sensor 's': it reads a coordinate"),
        (Sensor("s", "coordinate", "rail", 0.1, turns=True), "only an angle is read modulo a full turn"),
        (Sensor("s", "gyroscope", "leg", 0.1), "sensor 's': there is no body 'leg'"),
        (Sensor("s", "accelerometer", Marker("leg", (0, 0, 0)), 0.1), "sensor 's': there is no body 'leg'"),
        (Sensor("s", "velocity", Marker("arm", (0, 0)), 0.1), "this is no place or direction here"),
        (Sensor("s", "velocity", Marker("arm", (0, 0, 0), (0, 0, 0)), 0.1), "the axis has length zero"),
        (Sensor("s", "position", "ground", 0.1), "sensor 's': it stands on the ground"),
        (Sensor("s", "distance", "arm", 0.1, to="leg"), "sensor 's': there is no body 'leg'"),
        (Sensor("s", "distance", "arm", 0.1, to=Marker("arm", (1, 0, 0))), "both ends are on 'arm'"),
        (Sensor("s", "position", "arm", 0.1, axes="xq"), "its axes cannot be read"),
        (Sensor("", "position", "arm", 0.1), "it has no name"),
    ],
)
def test_a_tree_refuses_sensors_on_what_it_has_not(sensor: Sensor, message: str) -> None:
    with pytest.raises(ModelError, match=f"(?s){message}"):
        Tree.build([Body("rail", joint="sliding"), Body("arm", "rail")], sensors=[sensor])


def test_sensors_stay_with_a_tree() -> None:
    sensors = [Sensor("e", "coordinate", "arm", 0.1, turns=True), Sensor("d", "distance", "arm", 0.1, to="ground")]
    tree = Tree.build([Body("arm")], sensors=sensors, inertia={"arm": [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]})
    assert tree.sensors == tuple(sensors)
    assert tree.with_parameters(tree.parameters).sensors == tree.sensors
    assert tree.with_elements([damper("arm")]).sensors == tree.sensors
    with pytest.raises(ModelError, match="sensor 'e': the name is used 2 times"):
        Tree.build([Body("arm")], sensors=[*sensors, sensors[0]])
