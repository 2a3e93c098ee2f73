"""What moves in a car's log, and where to cut: spectra of its channels, their peaks named after the car's modes, and cut-offs proposed.

The names are those of a linearised car (paper 000, VI.B finds the same by eye): chassis below 3 Hz, driveline at 3.9 to 5.5 Hz, wheels at
12.7 Hz.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.model.experiment import Experiment
from veridyn.signals.spectrum import Peak, Spectrum, name_modes, peaks, power_spectrum, propose_cutoff
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.modes import modes

Array = NDArray[np.float64]
CHANNELS = ("inertial.acceleration.x", "inertial.omega.x", "clearance.1", "camber.1", "dynamometer.1.fz")
CHASSIS = ("heave", "roll", "pitch")
DRIVELINE = ("shafts", "block turning", "block along x")
SLOW = 8.0  # Hz, above which shafts and chassis have no modes of their own
SEGMENT = 4.0  # s


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
        part = Spectrum(s.frequency[high], s.values[high], s.unit, s.kind, s.averages)
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
