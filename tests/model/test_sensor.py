"""Sensors as data: names, units, and what is refused."""

from __future__ import annotations

import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.errors import ModelError
from veridyn.model.natural import Mechanism
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor, sensor_faults


def with_sensors(*sensors: Sensor) -> Mechanism:
    m = fourbar()
    return Mechanism.build(m.points, m.bodies, added=m.added, loads=m.loads, sensors=sensors)


def test_names_units_and_variance() -> None:
    assert Sensor("e", "coordinate", "phi", 0.1).channels(3) == ("e",)
    assert Sensor("g", "gyroscope", "rod", 0.1).channels(2) == ("g",)
    assert Sensor("g", "gyroscope", "rod", 0.1).channels(3) == ("g.x", "g.y", "g.z")
    assert Sensor("p", "position", "1", 0.1, axes="yx").channels(2) == ("p.y", "p.x")
    assert Sensor("e", "coordinate", "phi", 0.1).unit(True) == "rad"
    assert Sensor("e", "rate", "s", 0.1).unit(False) == "m/s"
    assert Sensor("a", "accelerometer", "1", 0.1).unit(False) == "m/s^2"
    assert Sensor("e", "coordinate", "phi", 0.3, quantum=1.2).variance == pytest.approx(0.09 + 0.12)
    assert Sensor("e", "coordinate", "phi", 0.3, bias_walk=1e-6).drifts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": -0.1}, "sensor 'e': its sigma is not usable"),
        ({"sigma": 0.0}, "sensor 'e': it has neither noise nor a quantum"),
        ({"delay": -1.0}, "its delay is not usable"),
        ({"bias": float("nan")}, "its bias is not usable"),
        ({"axes": "xz"}, "its axes cannot be read"),
        ({"kind": "odometer"}, "there is no kind 'odometer'"),
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
