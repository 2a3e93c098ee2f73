"""What drives a machine: forces and torques on bodies, drives of coordinates, and the transmission from motors to joints. Data only.

Values of loads are constant unless a simulation or a log gives them. A transmission is q = T q_m, and so Γ_m = Tᵀ Γ.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at, within
from veridyn.model.place import GROUND, Home, Marker, PointRef, check_marker, check_place, moved_place, numbers


class Components(ABC):
    """What all loads have: some numbers, each under a name of its own."""

    name: str

    @property
    @abstractmethod
    def values(self) -> tuple[float, ...]:
        """The values of its components as the model has them."""

    @property
    def components(self) -> int:
        """How many numbers it has."""
        return len(self.values)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of its components: its own where it has one, NAME.x and so on where it has several."""
        count = self.components
        return (self.name,) if count == 1 else tuple(f"{self.name}.{axis}" for axis in "xyz"[:count])


@dataclass(frozen=True)
class Drive(Components):
    """A force or torque on a coordinate (N or N*m): a joint's of a tree, an added one in natural coordinates."""

    name: str
    coordinate: str
    value: float = 0.0

    @property
    def values(self) -> tuple[float, ...]:
        return (self.value,)


@checked_record
@dataclass(frozen=True)
class Force(Components):
    """A force at a place, in the ground's axes (N). On a tree, a body's name stands for the origin of its frame."""

    name: str
    at: PointRef
    value: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", numbers(self.value))

    @property
    def values(self) -> tuple[float, ...]:
        return numbers(self.value)


@checked_record
@dataclass(frozen=True)
class Torque(Components):
    """A torque on a body, in the ground's axes (N*m; one number in the plane), and its reaction on the body `against`."""

    name: str
    body: str
    value: float | Sequence[float]
    against: str = GROUND

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", numbers(self.value))

    @property
    def values(self) -> tuple[float, ...]:
        return numbers(self.value)


Load = Drive | Force | Torque


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


@checked_record
@dataclass(frozen=True, eq=False)
class Transmission:
    """`matrix` (n_joints, n_motors) takes motor coordinates to those of `joints`; square and regular.

    A wrist in which motor 6 also moves with joint 5 has an entry off the diagonal. Virtual work fixes the forces:
    Γ_mᵀ q̇_m = Γᵀ q̇ for every motion, so Γ_m = Tᵀ Γ and Γ = T⁻ᵀ Γ_m.
    """

    motors: tuple[str, ...]
    joints: tuple[str, ...]
    matrix: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", np.array(self.matrix, dtype=np.float64))
        n, m = len(self.joints), len(self.motors)
        if self.matrix.shape != (n, m) or n != m:
            raise DataError(
                "the transmission matrix does not fit its motors and joints.",
                where=part_at("transmission"),
                expected=f"as many motors as joints and a matrix ({n}, {n})",
                found=f"{m} motors and {self.matrix.shape}",
            )
        for kind, names in (("motor", self.motors), ("joint", self.joints)):
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if twice:
                raise DataError(f"the {kind} '{twice[0]}' is named twice.", where=part_at("transmission"))
        if not np.isfinite(self.matrix).all():
            raise DataError("the transmission matrix holds NaN or infinite numbers.", where=part_at("transmission"))
        condition = np.linalg.cond(self.matrix)
        if not np.isfinite(condition) or condition > 1e12:
            raise DataError(
                "the transmission matrix is singular: some joint motion moves no motor.",
                where=part_at("transmission"),
                found=f"condition {condition:.3g}",
            )

    def joints_from_motors(self, motors: ArrayLike) -> Array:
        """(N, m) motor positions, velocities or accelerations to those of the joints."""
        return np.asarray(motors, dtype=np.float64) @ self.matrix.T

    def motors_from_joints(self, joints: ArrayLike) -> Array:
        return np.asarray(np.linalg.solve(self.matrix, np.asarray(joints, dtype=np.float64).T).T, dtype=np.float64)

    def joint_forces(self, motor_forces: ArrayLike) -> Array:
        """(N, m) motor forces to joint forces."""
        solved = np.linalg.solve(self.matrix.T, np.asarray(motor_forces, dtype=np.float64).T)
        return np.asarray(solved.T, dtype=np.float64)

    def motor_forces(self, joint_forces: ArrayLike) -> Array:
        return np.asarray(joint_forces, dtype=np.float64) @ self.matrix
