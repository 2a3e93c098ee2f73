"""Elements, sensors and loads of a machine in space, at places on bodies, where a user may have written points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.model.elements.element import Element
from veridyn.model.graph import MachineGraph
from veridyn.model.load import Drive, Force, Load, Torque
from veridyn.model.place import Marker, PointRef, numbers
from veridyn.model.point_parts import Combination, Damper, Spring
from veridyn.model.sensor import ON_COORDINATE, Sensor


def placed_element(graph: MachineGraph, acting: Element | Spring | Damper) -> Element:
    """An element on coordinates or between places; springs and dampers between points keep their names."""
    if isinstance(acting, Element):
        return acting
    kind, value = ("spring", acting.stiffness) if isinstance(acting, Spring) else ("damper", acting.coefficient)
    constants = {"rest": acting.rest} if isinstance(acting, Spring) and acting.rest else {}
    if isinstance(acting.on, str):
        return Element(kind=kind, on={acting.on: 1.0}, value=value, name=acting.name, constants=constants)
    if isinstance(acting.on, Combination):
        return Element(kind=kind, on=dict(acting.on.weights), value=value, name=acting.name, constants=constants)
    a, b = (_marker(graph, end) for end in acting.on)
    return Element(kind=kind, on={}, value=value, name=acting.name, between=(a, b), constants=constants)


def placed_sensor(graph: MachineGraph, sensor: Sensor) -> Sensor:
    """The sensor on its body; one on a planar machine reads x and y, and turns about z."""
    if sensor.kind in ON_COORDINATE:
        return sensor
    on = _place(graph, sensor.on)
    to = None if sensor.to is None else _place(graph, sensor.to)
    axes = sensor.axes
    if graph.dimension == 2 and not axes and sensor.kind != "distance":
        axes = "z" if sensor.kind == "gyroscope" else "xy"
    return replace(sensor, on=on, to=to, axes=axes)


def placed_load(graph: MachineGraph, load: Load) -> Load:
    """The load on its body, in space."""
    if isinstance(load, Drive):
        return load
    value = np.array(numbers(load.value))
    if isinstance(load, Force):
        return replace(load, at=_place(graph, load.at), value=numbers(_in_space(value)))
    assert isinstance(load, Torque)
    return replace(load, value=(0.0, 0.0, *numbers(value)) if graph.dimension == 2 else load.value)


def _in_space(x: np.ndarray) -> np.ndarray:
    return np.append(x, np.zeros(3 - len(x)))


def _place(graph: MachineGraph, ref: PointRef) -> PointRef:
    """A place by body and position: the name of a body stays, that of a point becomes a marker on the first body that has it."""
    if not isinstance(ref, Marker) and ref in graph.by_name:
        return ref
    return _marker(graph, ref)


def _marker(graph: MachineGraph, ref: PointRef) -> Marker:
    if isinstance(ref, Marker):
        if graph.dimension == 3:
            return ref
        axis = np.array(ref.axis)
        side = numbers((-axis[1], axis[0], 0.0)) if ref.axis else ()
        return Marker(
            ref.body, numbers(_in_space(np.array(ref.at))), numbers(_in_space(axis)) if ref.axis else (), side
        )
    if graph.description is None or ref in graph.by_name:
        return Marker(ref, (0.0, 0.0, 0.0))
    body = graph.description.owner(ref)
    points = {p.name: p.at for p in graph.description.points}
    at = points[ref] if body not in graph.by_name else _local(graph, body, ref)
    return Marker(body, numbers(_in_space(np.array(at))))


def _local(graph: MachineGraph, body: str, point: str) -> np.ndarray:
    assert graph.description is not None
    return np.array(next(b for b in graph.description.bodies if b.name == body).points[point])


def point_at(graph: MachineGraph, place: Marker) -> PointRef:
    """The point that a user wrote at a place, by name; else the place, with as many numbers as the machine has dimensions.

    The inverse of what :func:`placed_element` makes of an end of a spring or damper.
    """
    for point in graph.description.points if graph.description is not None else ():
        if _marker(graph, point.name) == place:
            return point.name
    if graph.dimension == 3 or len(place.at) == 2:
        return place
    return Marker(place.body, place.at[:2], place.axis[:2])
