"""Machines that both formulations carry: the arm without dry friction, the crane and the four-bar linkage, with sensors."""

import veridyn as vd

CARRIED = (
    "damper",
    "spring",
    "inertia",
    "offset",
)  # kinds of elements; dry friction jumps, which natural coordinates do not carry


def arm() -> vd.Machine:
    machine = vd.load_model("veridyn:arm.yaml")
    machine = machine.without_elements([e.parameter_name for e in machine.elements if e.kind not in CARRIED])
    encoders = [vd.Sensor(f"encoder{k + 1}", "coordinate", c, 1e-3) for k, c in enumerate(machine.coordinates)]
    return machine.with_sensors([*encoders, vd.Sensor("gyro", "gyroscope", machine.links[-1].name, 1e-2)])


def crane() -> vd.Machine:
    return vd.load_model("veridyn:crane.yaml")


def fourbar() -> vd.Machine:
    machine = vd.load_model("veridyn:fourbar.yaml")
    return machine.with_sensors([*machine.sensors, vd.Sensor("gyro", "gyroscope", "rocker", 1e-2)])


MACHINES = {"arm": arm, "crane": crane, "fourbar": fourbar}
FORMULATIONS = ("tree", "natural")
