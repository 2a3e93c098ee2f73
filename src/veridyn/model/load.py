"""Forces and torques that act on a machine: data only. Their values are constant unless a simulation or a log gives them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from veridyn.errors import Fault, Faults, did_you_mean, part_at, within
from veridyn.model.names import GROUND
from veridyn.model.place import Home, Marker, PointRef, check_marker, check_place, moved_place, numbers


@dataclass(frozen=True)
class Drive:
    """A force or torque on a coordinate (N or N*m): a joint's of a tree, an added one in natural coordinates."""

    name: str
    coordinate: str
    value: float = 0.0


@dataclass(frozen=True)
class Force:
    """A force at a place, in the ground's axes (N). On a tree, a body's name stands for the origin of its frame."""

    name: str
    at: PointRef
    value: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", numbers(self.value))


@dataclass(frozen=True)
class Torque:
    """A torque on a body, in the ground's axes (N*m; one number in the plane), and its reaction on the body `against`."""

    name: str
    body: str
    value: float | Sequence[float]
    against: str = GROUND

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", numbers(self.value))


Load = Drive | Force | Torque


def components(load: Load) -> int:
    """How many numbers a load has."""
    return 1 if isinstance(load, Drive) else len(numbers(load.value))


def channels(load: Load) -> tuple[str, ...]:
    """The names of a load's components: its own where it has one, NAME.x and so on where it has several."""
    count = components(load)
    return (load.name,) if count == 1 else tuple(f"{load.name}.{axis}" for axis in "xyz"[:count])


def values_of(load: Load) -> tuple[float, ...]:
    """The values of its components as the model has them."""
    return (load.value,) if isinstance(load, Drive) else numbers(load.value)


def drives_of(loads: Sequence[Load]) -> dict[str, str]:
    """The coordinate that each drive acts on, by the drive's name."""
    return {load.name: load.coordinate for load in loads if isinstance(load, Drive)}


def moved_load(load: Load, homes: Mapping[str, Home]) -> Load:
    """The same load on a tree whose bodies have other frames: `homes` gives body → its new body and its old frame there."""
    if isinstance(load, Drive):
        return load
    if isinstance(load, Force):
        return replace(load, at=moved_place(load.at, homes))
    body, against = (homes[b][0] if b in homes else b for b in (load.body, load.against))
    return replace(load, body=body, against=against)


def check_loads(loads: Sequence[Load], bodies: Sequence[str], coordinates: Sequence[str]) -> list[Fault]:
    """Every fault of the loads of a tree, from the names of its bodies and coordinates."""
    faults = Faults()
    for name, times in Counter(load.name for load in loads).items():
        if times > 1:
            faults.add(f"the name is used {times} times.", where=part_at("load", name))
        if not name:
            faults.add("it has no name.", where=part_at("load", name))
    for load in loads:
        where = part_at("load", load.name)
        if isinstance(load, Drive):
            if load.coordinate not in coordinates:
                hint = did_you_mean(load.coordinate, coordinates)
                faults.add(f"there is no coordinate '{load.coordinate}'.", where=where, hint=hint)
            if not math.isfinite(load.value):
                faults.add("its value is not finite.", where=where, found=f"{load.value}")
            continue
        check_place(load.value, 3, within(where, "value"), faults)
        if isinstance(load, Torque):
            ends = [load.body, load.against]
        else:
            ends = [load.at.body if isinstance(load.at, Marker) else load.at]
        if isinstance(load, Force) and isinstance(load.at, Marker):
            check_marker(load.at, bodies, 3, where, faults)
        else:
            for body in ends:
                if body != GROUND and body not in bodies:
                    faults.add(f"there is no body '{body}'.", where=where, hint=did_you_mean(body, bodies))
        if isinstance(load, Torque) and load.body == load.against:
            faults.add(f"it acts on '{load.body}' against itself.", where=where, expected="two bodies")
        elif set(ends) == {GROUND}:
            faults.add("it acts on the ground.", where=where, expected="a place on a body")
    return faults.found
