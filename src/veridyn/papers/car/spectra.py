"""What moves in a car's log, and where to cut: spectra of its channels, their peaks named after the car's modes, and cut-offs proposed.

The names are those of a linearised car (paper 000, VI.B finds the same by eye): chassis below 3 Hz, driveline at 3.9 to 5.5 Hz, wheels at
12.7 Hz.

Of small motions about rest or steady straight driving, ẋ = f(x) becomes δẋ = A δx by central differences of the equations of motion; an
eigenvalue λ of A with an imaginary part is a mode of natural frequency |λ|/2π and damping ratio −Re λ/|λ|. Its strongest coordinate names
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.mechanics.ground.road import Flat
from veridyn.model.experiment import Experiment
from veridyn.papers.car.simulator import state as eq
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.equations import instant
from veridyn.papers.car.simulator.manoeuvre import straight
from veridyn.papers.car.simulator.run import drive, settle
from veridyn.signals.spectrum import Peak, Spectrum, name_modes, peaks, power_spectrum, propose_cutoff

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
Array = NDArray[np.float64]
CHANNELS = ("inertial.acceleration.x", "inertial.omega.x", "clearance.1", "camber.1", "dynamometer.1.fz")
CHASSIS = ("heave", "roll", "pitch")
DRIVELINE = ("shafts", "block turning", "block along x")
SLOW = 8.0  # Hz, above which shafts and chassis have no modes of their own
SEGMENT = 4.0  # s


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


@dataclass(frozen=True, eq=False)
class ChannelSpectrum:
    """One channel: its density, its peaks with the modes' names, and where it sinks into noise (Hz; NaN where it never does, and why)."""

    channel: str
    spectrum: Spectrum
    peaks: tuple[Peak, ...]
    cutoff: float
    remark: str


@dataclass(frozen=True, eq=False)
class Spectra:
    """Of some channels; `modes`: name → Hz; the cut-offs chosen for chassis and suspension rows, with the reason."""

    channels: tuple[ChannelSpectrum, ...]
    modes: Mapping[str, float]
    chassis: float
    suspension: float


def car_modes(vehicle: Vehicle) -> dict[str, float]:
    """The modes of the standing car, named after what they move most, and numbered: roll 1, driveline 1, wheel hop 1 and so on (Hz)."""
    found: dict[str, float] = {}
    for mode in modes(vehicle):
        if (mode.frequency < SLOW and mode.moves in (*CHASSIS, *DRIVELINE)) or mode.moves == "wheel hop":
            kind = "driveline" if mode.moves in DRIVELINE else mode.moves
            number = sum(name.startswith(kind) for name in found) + 1
            found[f"{kind} {number}"] = mode.frequency
    return found


def spectra(log: Experiment, named: Mapping[str, float], channels: Sequence[str] = CHANNELS) -> Spectra:
    """Spectra of a log. Chassis rows are cut between the fastest chassis mode and the slowest of the driveline, suspensions above the "
    "hop."""
    found = []
    for name in channels:
        channel = log[name]
        s = power_spectrum(channel.values, channel.rate, channel.unit, min(SEGMENT, 0.5 * float(np.ptp(channel.t))))
        high = s.frequency > 0.3
        part = Spectrum(s.frequency[high], s.values[high], s.unit, s.averages)
        marked = name_modes(peaks(part, count=8, prominence=0.002), named, tolerance=0.08)
        try:
            cutoff, remark = propose_cutoff(s, where=name).cutoff, ""
        except DataError as fault:
            cutoff, remark = float("nan"), str(fault).splitlines()[0]
        found.append(ChannelSpectrum(name, s, tuple(p for p in marked if p.name), cutoff, remark))
    driveline = [hz for name, hz in named.items() if name.startswith("driveline")]
    body = [hz for name, hz in named.items() if name.split()[0] in CHASSIS]
    slow = max(hz for hz in body if not driveline or hz < 0.8 * min(driveline))
    hop = max((hz for name, hz in named.items() if name.startswith("wheel hop")), default=13.0)
    return Spectra(tuple(found), dict(named), float(np.sqrt(slow * min(driveline, default=4.0 * slow))), 1.5 * hop)
