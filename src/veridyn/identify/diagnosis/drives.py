"""Motors that turn several joints, as places of causes: what friction, a sensor or a soft gear of one does to the equations.

With joints q = T θ of motors θ, and motors in units of their joints, c_k = a_k q with a_k the k-th row of T⁻¹ and d_k the k-th column of T:

    a force f of motor k                  Γ = a_kᵀ f          in the rows of all joints that it turns with
    the load of its gear                  l_k = d_kᵀ Γ
    its encoder off by δ                  q off by d_k δ
    a gear that yields by c l_k           q = q_motors − d_k c l_k

A motor that turns one joint alone, which no other turns, is that joint, and has no place of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import ROUNDING
from veridyn.model.machine import Machine


@dataclass(frozen=True, eq=False)
class CoupledDrive:
    """A motor by `name`: `turns` (n,) a_k and `moves` (n,) d_k over the coordinates, in units of the joint that it turns most."""

    name: str
    turns: Array
    moves: Array

    def rows(self, machine: Machine, names: tuple[str, ...]) -> Array | None:
        """a_k over these rows; None where a joint that it turns or moves is not among them."""
        place = [machine.coordinates.index(name) for name in names]
        apart = np.setdiff1d(np.flatnonzero((self.turns != 0.0) | (self.moves != 0.0)), place)
        return None if len(apart) else self.turns[place]


@lru_cache(maxsize=8)
def coupled_drives(machine: Machine) -> tuple[CoupledDrive, ...]:
    """Motors that turn with several joints, or whose joints others turn as well."""
    return tuple(d for d in _drives(machine) if _joint(d.turns) is None or _joint(d.moves) is None)


def motor_of(machine: Machine, joint: str) -> str | None:
    """The motor that turns one joint alone, where there is one: the joint's sensors are its own."""
    k = machine.coordinates.index(joint)
    return next((d.name for d in _drives(machine) if _joint(d.turns) == k and _joint(d.moves) == k), None)


def acting_alone(drives: tuple[CoupledDrive, ...]) -> set[int]:
    """Coordinates in whose row alone the force of such a motor acts: the motor stands for the joint."""
    return {k for d in drives if (k := _joint(d.turns)) is not None}


def moving_alone(drives: tuple[CoupledDrive, ...]) -> set[int]:
    """Coordinates that one such motor moves alone: its encoder and its gear stand for the joint's."""
    return {k for d in drives if (k := _joint(d.moves)) is not None}


def turned_together(machine: Machine) -> set[str]:
    """Coordinates that such motors turn: gears, with what they rub, yield and carry, are at the motors."""
    touched = sum((np.abs(d.turns) + np.abs(d.moves) for d in coupled_drives(machine)), np.zeros(machine.n))
    return {name for name, moved in zip(machine.coordinates, touched, strict=True) if moved}


def motors_without_rotor(machine: Machine) -> set[str]:
    """Places of motors of a transmission with no inertia, known or not, on what they turn with or on the joint that they turn most."""
    coupled, found = {d.name for d in coupled_drives(machine)}, set[str]()
    inertias = [
        np.array([e.on.get(c, 0.0) for c in machine.coordinates]) for e in machine.elements if e.kind == "inertia"
    ]
    for d in _drives(machine):
        most = _most(d.turns)
        if not any(_joint(a) == most or _parallel(a, d.turns) for a in inertias):
            found.add(d.name if d.name in coupled else machine.coordinates[most])
    return found


def _parallel(a: Array, b: Array) -> bool:
    return bool(abs(a @ b) > np.linalg.norm(a) * np.linalg.norm(b) * (1.0 - ROUNDING))


def drive_named(machine: Machine, name: str) -> CoupledDrive | None:
    return next((d for d in coupled_drives(machine) if d.name == name), None)


def turns_round(machine: Machine, place: str) -> bool:
    """Whether a coordinate, or the joint that a motor turns most, is an angle."""
    drive = drive_named(machine, place)
    k = machine.coordinates.index(place) if drive is None else int(np.argmax(np.abs(drive.turns)))
    return machine.coordinate_kinds[k] == "turning"


def _drives(machine: Machine) -> tuple[CoupledDrive, ...]:
    t = machine.transmission
    if t is None or machine.closed:
        return ()
    place = [machine.coordinates.index(joint) for joint in t.joints]
    inverse = np.linalg.inv(t.matrix)
    out = []
    for k, name in enumerate(t.motors):
        turns, moves = np.zeros(machine.n), np.zeros(machine.n)
        turns[place], moves[place] = _clear(inverse[k]), _clear(t.matrix[:, k])
        ratio = turns[_most(turns)]
        out.append(CoupledDrive(name, turns / ratio, moves * ratio))
    return tuple(out)


def _most(turns: Array) -> int:
    """The joint that a motor turns most, the last of those that it turns alike."""
    return int(np.flatnonzero(np.abs(turns) >= np.abs(turns).max() * (1.0 - ROUNDING))[-1])


def _clear(x: Array) -> Array:
    return np.where(np.abs(x) > ROUNDING * np.abs(x).max(), x, 0.0)


def _joint(x: Array) -> int | None:
    """The one coordinate that is not zero."""
    there = np.flatnonzero(x)
    return int(there[0]) if len(there) == 1 else None
