"""A car's log before anything is identified from it: what is wrong with it, checked(log, kinematics) → Findings, and what moves in it.

1. Channels that are missing, in the wrong unit, with broken clocks or values, clipped, or out of the range of what they measure.
2. Dynamometers that contradict the car. The six equations of the whole car, W φ = Σ wrenches of the wheels, hold for wrenches that are
   right. Each way in which a wheel may have been wired wrongly (a component with the wrong sign, two axes exchanged, two wheels
   exchanged) is undone in turn, φ is fitted anew beside its prior, and the misfit is compared: what explains far more than the log as
   it stands is named. A component that hardly acts in the drive, such as the moment about z of a rear wheel, cannot be checked by it, and
   is not.

Spectra of the channels have peaks named after the car's modes, and cut-offs are proposed. The names are those of a linearised car (paper
000, VI.B finds the same by eye): chassis below 3 Hz, driveline at 3.9 to 5.5 Hz, wheels at 12.7 Hz. Of small motions about rest or steady
straight driving, ẋ = f(x) becomes δẋ = A δx by central differences of the equations of motion; an eigenvalue λ of A with an imaginary part
is a mode of natural frequency |λ|/2π and damping ratio −Re λ/|λ|. Its strongest coordinate names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.mechanics.ground.road import Flat
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.log import CarKinematics, from_log, needed
from veridyn.papers.car.machine import TABLE_II, car_20, estimated_33
from veridyn.papers.car.sensors import UNITS, CarSensors, kind_of, sensors_2006
from veridyn.papers.car.simulator import description as eq
from veridyn.papers.car.simulator.description import Vehicle, straight
from veridyn.papers.car.simulator.equations import instant
from veridyn.papers.car.simulator.run import drive, settle
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.findings import Finding, Findings, beyond
from veridyn.signals.motion import Signals
from veridyn.signals.naming import unit_faults
from veridyn.signals.quality import inspect
from veridyn.signals.spectrum import Peak, Spectrum, name_modes, peaks, power_spectrum, propose_cutoff

WHEEL_NAMES = ("front left", "front right", "rear left", "rear right")
# SI; beyond these a road car is no longer on the road. Chosen.
RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "inertial.omega.*": (-3.0, 3.0),
        "inertial.acceleration.*": (-60.0, 60.0),
        "clearance.*": (-0.6, 0.3),
        "correvit.*": (-20.0, 90.0),
        "steering.*": (-0.8, 0.8),
        "camber.*": (-0.3, 0.3),
        "dynamometer.*.f?": (-40e3, 40e3),
        "dynamometer.*.m?": (-10e3, 10e3),
        "height.*": (0.0, 1.0),
        "camera.*": (-3.0, 3.0),
    }
)
BAND = Butterworth(3.0)  # of what is compared: the chassis' own motions
PRIOR_ERROR_SHARE = 0.3  # of its own size, how far a prior parameter may be wrong
ZERO_PRIOR_SIZE = 30.0  # kg, kg·m or kg·m², for priors that are zero
EXPLAINED_SHARE = 0.25  # of the misfit may be left by a fault that is named
EQUAL_MISFIT_RATIO = 4.0  # times the mean square misfit of the best explanation, below which another is as good
EXACT_MISFIT = 1e-6  # a misfit below which nothing needs an explanation
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
SPECTRUM_CHANNELS = ("inertial.acceleration.x", "inertial.omega.x", "clearance.1", "camber.1", "dynamometer.1.fz")
CHASSIS = ("heave", "roll", "pitch")
DRIVELINE = ("shafts", "block turning", "block along x")
SLOW_MODES_HZ = 8.0  # Hz, above which shafts and chassis have no modes of their own
SEGMENT_S = 4.0  # s


@dataclass(frozen=True)
class _Wiring:
    """One way in which dynamometers may have been connected: wheels (4,) and sign and axis of each component (4, 6)."""

    channel: str
    what: str
    wheels: tuple[int, ...] = (0, 1, 2, 3)
    wheel: int = 0
    axes: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    signs: tuple[float, ...] = (1.0,) * 6

    def undone(self, wrench: Array) -> Array:
        """The wrenches (N, 4, 6) as they would have been."""
        out = wrench[:, self.wheels].copy()
        out[:, self.wheel] = out[:, self.wheel][:, self.axes] * np.array(self.signs)
        return out


def checked(
    log: Experiment,
    kinematics: CarKinematics,
    sensors: CarSensors | None = None,
    priors: Mapping[str, float] | None = None,
) -> Findings:
    """Everything found wrong with the log of a car. `priors` of the 33 parameters, by default Table II's a priori column."""
    chosen = sensors or sensors_2006()
    machine = estimated_33(car_20())
    if priors is not None:
        machine = machine.with_parameters({n: v for n, v in priors.items() if n in TABLE_II})
    found = [*_channels(log, needed(machine)), *beyond(log, RANGES)]
    found += [f for f in inspect(log) if f.kind not in ("standstill", "spike") and f.severity != "note"]
    if not any(f.severity == "fatal" or f.kind == "gap" for f in found):
        rate = min(channel.rate for channel in log.channels.values())
        motion = from_log(
            machine, log, kinematics, chosen, Butterworth(min(40.0, 0.2 * rate)), Signals(lowpass=None, trim=0.3)
        )
        found += _contradictions(machine, motion[:: max(1, round(rate / 100.0))])  # a band of 3 Hz needs no more
    return Findings(log.name, tuple(found))


def _channels(log: Experiment, wanted: list[str]) -> Iterator[Finding]:
    for name in wanted:
        if name not in log:
            fault = Fault(f"there is no channel '{name}'.", log.name, hint=did_you_mean(name, log.names))
            yield Finding(channel=name, kind="missing", severity="fatal", count=0, fault=fault)
            continue
        for fault in unit_faults(log[name], [UNITS[kind_of(name)]]):
            yield Finding(channel=name, kind="unit", severity="fatal", count=len(log[name]), fault=fault)


def _hypotheses() -> Iterator[_Wiring]:
    for w in range(4):
        for k, row in enumerate(WRENCH_ROWS):
            signs = tuple(-1.0 if j == k else 1.0 for j in range(6))
            yield _Wiring(f"dynamometer.{w + 1}.{row}", f"{row} has the wrong sign", wheel=w, signs=signs)
        yield _Wiring(f"dynamometer.{w + 1}", "every component has the wrong sign", wheel=w, signs=(-1.0,) * 6)
        for a, b in combinations(range(3), 2):
            axes = list(range(6))
            axes[a], axes[b], axes[3 + a], axes[3 + b] = b, a, 3 + b, 3 + a
            yield _Wiring(
                f"dynamometer.{w + 1}", f"its axes {'xyz'[a]} and {'xyz'[b]} are exchanged", wheel=w, axes=tuple(axes)
            )
    for a, b in combinations(range(4), 2):
        wheels = list(range(4))
        wheels[a], wheels[b] = b, a
        yield _Wiring(f"dynamometer.{a + 1}", f"it is exchanged with that of the wheel {WHEEL_NAMES[b]}", tuple(wheels))


def _contradictions(machine: Machine, motion: Motion) -> list[Finding]:
    """The wirings that explain the log far better than the one it claims, one after another."""
    balance = _Balance.of(machine, motion)
    bodies = [f"unsprung{w}" for w in "1234"]
    wrench = np.stack([motion.wrenches[b] for b in bodies], axis=1)
    found: list[Finding] = []
    tried = list(_hypotheses())
    for _ in range(4):  # as many as there are wheels
        before = balance.misfit(wrench)
        if before < EXACT_MISFIT:
            break
        left = [balance.misfit(h.undone(wrench)) for h in tried]
        best = int(np.argmin(left))
        if left[best] > EXPLAINED_SHARE * before:
            break
        h = tried[best]
        alike = [
            g
            for g, j in zip(tried, left, strict=True)
            if g is not h and j < min(EQUAL_MISFIT_RATIO * left[best], EXPLAINED_SHARE * before)
        ]
        others = "".join(f" This drive cannot separate it from {g.channel}: {g.what}." for g in alike[:2])
        where = f"{h.channel} ({WHEEL_NAMES[h.wheel if h.wheels == (0, 1, 2, 3) else int(h.channel[-1]) - 1]} wheel)"
        expected = "wheel wrenches that accelerate and carry this car"
        shown = f"a misfit of {100 * np.sqrt(before):.2g} %, and {100 * np.sqrt(left[best]):.2g} % with it undone"
        hint = f"Correct the wiring in the log, or leave the drive out; do not average it in.{others}"
        fault = Fault(f"{h.what}: the car's own motion says so.", where, expected, shown, hint)
        start, end = motion.t[[0, -1]].tolist()
        finding = Finding(channel=h.channel, kind="contradiction", severity="fatal", count=len(motion), fault=fault)
        found.append(replace(finding, t_start=start, t_end=end))
        wrench = h.undone(wrench)
    return found


@dataclass(frozen=True, eq=False)
class _Balance:
    """Six equations of the whole car over a drive: W φ = y(wrenches), each row in units of its own size, with a prior on φ."""

    Q: Array
    prior: Array
    places: tuple[tuple[Array, Array], ...]
    size: Array
    rate: float
    step: int

    @classmethod
    def of(cls, machine: Machine, motion: Motion) -> _Balance:
        rate = 1.0 / float(np.median(np.diff(motion.t)))
        step = max(1, round(rate / 20.0))
        D = regressor(machine, motion, rows="base")
        columns = [c for c in machine.parameters.select("estimated") if np.abs(D[:, :, c]).max() > 0.0]
        values = np.array([machine.parameters.values[c] for c in columns])
        D = D[:, :, columns]
        D = zero_phase(D.reshape(len(D), -1), rate, BAND).reshape(D.shape)[::step]
        size = np.sqrt(((D @ values) ** 2).mean(axis=0))
        size = np.maximum(size, 0.02 * np.repeat([size[:3].max(), size[3:].max()], 3))
        W = (D / size[:, None]).reshape(-1, len(columns)) / np.sqrt(6 * len(D))
        spread = PRIOR_ERROR_SHARE * np.abs(values) + np.where(np.abs(values) < ZERO_PRIOR_SIZE, ZERO_PRIOR_SIZE, 0.0)
        # Priors as equations of their own: each counts like one part in a thousand of the drive.
        weight = np.sqrt(1e-3 / len(columns))
        stacked = np.vstack([W, weight * np.diag(1.0 / spread)])
        Q = np.linalg.qr(stacked)[0]
        places = tuple(body_pose(machine, motion.q, f"unsprung{w}") for w in "1234")
        return cls(Q, weight * values / spread, places, size, rate, step)

    def misfit(self, wrench: Array) -> float:
        """The mean square of what no φ near its prior explains, relative to each row's size."""
        total = np.zeros((len(wrench), 6))
        for (R, p), w in zip(self.places, np.moveaxis(wrench, 1, 0), strict=True):
            force = np.einsum("nij,nj->ni", R, w[:, :3])
            total[:, :3] += force
            total[:, 3:] += np.einsum("nij,nj->ni", R, w[:, 3:]) + np.cross(p, force)
        y = zero_phase(total, self.rate, BAND)[:: self.step] / self.size
        stacked = np.concatenate([y.ravel() / np.sqrt(y.size), self.prior])
        return float((stacked**2).sum() - ((self.Q.T @ stacked) ** 2).sum())


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
        if (mode.frequency < SLOW_MODES_HZ and mode.moves in (*CHASSIS, *DRIVELINE)) or mode.moves == "wheel hop":
            kind = "driveline" if mode.moves in DRIVELINE else mode.moves
            number = sum(name.startswith(kind) for name in found) + 1
            found[f"{kind} {number}"] = mode.frequency
    return found


def spectra(log: Experiment, named: Mapping[str, float], channels: Sequence[str] = SPECTRUM_CHANNELS) -> Spectra:
    """Spectra of a log. Chassis rows are cut between the fastest chassis mode and the slowest of the driveline, suspensions above the "
    "hop."""
    found = []
    for name in channels:
        channel = log[name]
        s = power_spectrum(channel.values, channel.rate, channel.unit, min(SEGMENT_S, 0.5 * float(np.ptp(channel.t))))
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
