"""A machine's own sensors and drives as the quantities of a motion."""

from __future__ import annotations

import numpy as np

from veridyn.mechanics.integrate import BaseState, Inputs
from veridyn.model.body import Body
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.signals.motion import motion
from veridyn.signals.sensors import with_sensor_channels
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.manoeuvre import Driven
from veridyn.simulate.readings import exact_readings
from veridyn.simulate.simulator import exact, record
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.transforms import MDH

TEN = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))
T = 0.01 * np.arange(50)


def channel(name: str, values: np.ndarray, unit: str) -> Channel:
    return Channel(name, T, values, unit)


def test_encoders_and_drives_are_positions_and_forces() -> None:
    sensors = [
        Sensor("coarse", "coordinate", "q1", 0.1),
        Sensor("fine", "coordinate", "q1", 1e-4, bias=0.5, delay=0.02, turns=True),
        Sensor("tacho", "rate", "q1", 1e-3),
    ]
    drives = [Drive("motor", "q1"), Drive("booster", "q1")]
    machine = Machine.of_bodies([Body("1", placement=MDH(alpha=np.pi / 2))], sensors=sensors, loads=drives)
    angle = 3.0 + 8.0 * T
    read = (angle + 0.5 + np.pi) % (2.0 * np.pi) - np.pi
    log = Experiment(
        {
            "coarse": channel("coarse", angle + 9.0, "rad"),
            "fine": Channel("fine", T + 0.02, read, "rad"),
            "tacho": channel("tacho", np.full(50, 8.0), "rad/s"),
            "motor": channel("motor", T, "N*m"),
            "booster": channel("booster", 2.0 * T, "N*m"),
        },
        "log",
    )
    found = with_sensor_channels(machine, log)
    q = found["q.q1"]
    np.testing.assert_allclose(q.t, T, atol=1e-12)
    np.testing.assert_allclose(q.values - q.values[0], angle - angle[0], atol=1e-12)  # modulo turns at the start
    np.testing.assert_array_equal(found["qd.q1"].values, 8.0)
    np.testing.assert_allclose(found["force.q1"].values, 3.0 * T)
    kept = log.replacing(channel("q.q1", angle, "rad"))
    np.testing.assert_array_equal(with_sensor_channels(machine, kept)["q.q1"].values, angle)


def test_an_inertial_unit_on_a_free_base_is_its_motion_whatever_its_mounting() -> None:
    """Readings of turned sensors against the motion of the base itself, which the integrator knows without any sensor."""
    turned = {"axis": (0.0, 1.0, 0.0), "side": (0.0, 0.0, 1.0)}
    sensors = [
        Sensor("gyro", "gyroscope", Marker("trunk", (0.3, 0.1, 0.0), **turned), 1e-3),
        Sensor("acc", "accelerometer", Marker("trunk", (0.0, 0.0, 0.0), **turned), 1e-2),
        Sensor("log", "velocity", Marker("trunk", (0.0, 0.0, 0.0), **turned), 1e-2),
        Sensor("far", "accelerometer", Marker("trunk", (0.3, 0.0, 0.0)), 1e-9),  # not the base's own acceleration
    ]
    machine = Machine.of_bodies([Body("trunk", None, "fixed")], base="free", inertia={"trunk": TEN}, sensors=sensors)
    push = Inputs(wrenches=lambda t, q, qd: {"trunk": [1.0, np.sin(3.0 * t), 20.0, 0.02, 0.01, np.cos(t)]})
    start = BaseState(quaternion=(0.9, 0.1, -0.4, 0.2), velocity=(1.0, -2.0, 0.5), omega=(0.5, -0.7, 0.4))
    run = Driven(0.5, 200.0, [], [], push, start).run(machine)
    ideal = record(machine, run, {"base.*": Imperfection()}, sensors=())
    log = exact_log(machine, run)
    assert not any(name.startswith("base.") for name in log)
    seen = with_sensor_channels(machine, log)
    for part in ("omega", "acceleration", "velocity"):
        for axis in "xyz":
            name = f"base.{part}.{axis}"
            np.testing.assert_allclose(seen[name].values, ideal[name].values, atol=1e-10)
    made = motion(machine, log)
    assert made.base is not None
    np.testing.assert_allclose(made.base.acceleration, run.motion.base.acceleration, atol=1e-10)


def exact_log(machine: Machine, run) -> Experiment:
    """The readings of the sensors alone, without noise."""
    wrench = {name: c for name, c in exact(machine, run).channels.items() if name.startswith("wrench.")}
    return Experiment({**exact_readings(machine, run, machine.sensors), **wrench}, "sensors")
