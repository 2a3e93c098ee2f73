"""Forces and torques that act on a machine: data only. Their values are constant unless a simulation or a log gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veridyn.model.joint import GROUND
from veridyn.model.place import PointRef, numbers


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
