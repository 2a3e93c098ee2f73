"""Small motions of a car about rest or steady straight driving: its natural frequencies.

ẋ = f(x) becomes δẋ = A δx by central differences of the equations of motion; an eigenvalue λ of A with an imaginary part is a
mode of natural frequency |λ|/2π and damping ratio −Re λ/|λ|. Its strongest coordinate names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.ground.road import Flat
from veridyn.simulate.vehicle import state as eq
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import straight
from veridyn.simulate.vehicle.march import instant
from veridyn.simulate.vehicle.run import drive, settle

Array = NDArray[np.float64]

# Displacements whose kinetic energy is compared to find what a mode moves, with a typical inertia of each.
_SHARES: dict[str, tuple[tuple[int, ...], float]] = {
    "heave": ((eq.POSITION + 2,), 1500.0),
    "roll": ((eq.QUATERNION + 1,), 4 * 600.0),
    "pitch": ((eq.QUATERNION + 2,), 4 * 2000.0),
    "wheel hop": (tuple(range(eq.Z, eq.Z + 4)), 43.0),
    "shafts": ((eq.TWIST,), 4.0),
    "block along x": ((eq.BLOCK,), 170.0),
    "block turning": ((eq.TURN,), 9.0),
    "rack": ((eq.RACK,), 1.0),
    "bushes": (tuple(range(eq.BUSH, eq.BUSH + 20)), 1.0),
}


@dataclass(frozen=True, eq=False)
class Mode:
    """One mode: `frequency` |λ|/2π in Hz, `damping` ratio, what it `moves` most, and the eigenvector of the state."""

    frequency: float
    damping: float
    moves: str
    shape: Array


def linearised(vehicle: Vehicle, speed: float = 0.0) -> Array:
    """A (states, states) at rest, or in steady straight driving at `speed`, with the controller off and without dry friction."""
    vehicle = replace(vehicle, suspension=replace(vehicle.suspension, friction=(0.0,) * 4))
    if speed > 0.0:
        state = drive(vehicle, straight(speed), Flat(), 8.0, every=8000).states[-1].copy()
    else:
        state = settle(vehicle)
    P, road, work = vehicle.packed(), Flat().packed, eq.workspace()
    rest = np.zeros(eq.INPUTS)
    A = np.empty((eq.STATES, eq.STATES))
    for k in range(eq.STATES):
        h = 1e-6
        x = state.copy()
        x[k] += h
        plus = instant(x, rest, P, road, work)[0].copy()
        x[k] -= 2.0 * h
        A[:, k] = (plus - instant(x, rest, P, road, work)[0]) / (2.0 * h)
    return A


def modes(vehicle: Vehicle, speed: float = 0.0) -> list[Mode]:
    """The oscillating modes by growing frequency; those beyond 40 Hz (spinning of wheels on their tyres at rest) are left out."""
    values, vectors = np.linalg.eig(linearised(vehicle, speed))
    found = []
    for value, vector in zip(values, vectors.T, strict=True):
        frequency = abs(value) / (2.0 * np.pi)
        if value.imag > 1e-3 and 0.05 < frequency < 40.0:
            shares = {name: m * sum(abs(vector[k]) ** 2 for k in ks) for name, (ks, m) in _SHARES.items()}
            # z is relative to the chassis: a wheel that stays on the ground while the body heaves does not hop.
            shares["wheel hop"] = 43.0 * sum(abs(vector[eq.Z + i] + _body(vehicle, vector, i)) ** 2 for i in range(4))
            moves = max(shares, key=lambda name: shares[name])
            found.append(Mode(float(frequency), float(-value.real / abs(value)), moves, vector))
    return sorted(found, key=lambda mode: mode.frequency)


def _body(vehicle: Vehicle, vector: Array, wheel: int) -> complex:
    """How the chassis rises above a wheel in a mode: heave + y roll − x pitch (a quaternion holds half angles)."""
    x, y = vehicle.places()[wheel]
    return vector[eq.POSITION + 2] + 2.0 * (y * vector[eq.QUATERNION + 1] - x * vector[eq.QUATERNION + 2])


def hop_frequencies(vehicle: Vehicle) -> Array:
    """The natural frequencies of the four modes of the wheels on their tyres, without damping, at rest, Hz."""
    still = replace(vehicle.suspension, damping=(1.0,) * 4)
    found = [m.frequency for m in modes(replace(vehicle, suspension=still)) if m.moves == "wheel hop"]
    return np.array(found)
