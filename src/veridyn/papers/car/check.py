"""What is wrong with a car's log, found before anything is identified from it: checked(log, kinematics) → Findings.

1. Channels that are missing, in the wrong unit, with broken clocks or values, clipped, or out of the range of what they measure.
2. Dynamometers that contradict the car. The six equations of the whole car, W φ = Σ wrenches of the wheels, hold for wrenches that are
   right. Each way in which a wheel may have been wired wrongly (a component with the wrong sign, two axes exchanged, two wheels
   exchanged) is undone in turn, φ is fitted anew beside its prior, and the misfit is compared: what explains far more than the log as
   it stands is named. A component that hardly acts in the drive, such as the moment about z of a rear wheel, cannot be checked by it, and
   is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, did_you_mean
from veridyn.mechanics.tree.dynamics.regressor import regressor
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.log import CarKinematics, from_log, needed
from veridyn.papers.car.machine import TABLE_II, car_20, estimated_33
from veridyn.papers.car.sensors import UNITS, CarSensors, kind_of, sensors_2006
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.findings import Finding, Findings, Kind
from veridyn.signals.motion import Signals
from veridyn.signals.naming import unit_faults
from veridyn.signals.plausibility import beyond
from veridyn.signals.quality import inspect

Array = NDArray[np.float64]

NAMES = ("front left", "front right", "rear left", "rear right")
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
            yield _fatal(name, "missing", fault, 0)
            continue
        for fault in unit_faults(log[name], [UNITS[kind_of(name)]]):
            yield _fatal(name, "unit", fault, len(log[name]))


def _fatal(channel: str, kind: Kind, fault: Fault, count: int, start: float = np.nan, end: float = np.nan) -> Finding:
    return Finding(
        channel=channel,
        kind=kind,
        severity="fatal",
        t_start=start,
        t_end=end,
        count=count,
        message=str(fault),
        fault=fault,
    )


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
        yield _Wiring(f"dynamometer.{a + 1}", f"it is exchanged with that of the wheel {NAMES[b]}", tuple(wheels))


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
        fault = Fault(
            f"{h.what}: the car's own motion says so.",
            f"{h.channel} ({NAMES[h.wheel if h.wheels == (0, 1, 2, 3) else int(h.channel[-1]) - 1]} wheel)",
            "wheel wrenches that accelerate and carry this car",
            f"a misfit of {100 * np.sqrt(before):.2g} %, and {100 * np.sqrt(left[best]):.2g} % with it undone",
            f"Correct the wiring in the log, or leave the drive out; do not average it in.{others}",
        )
        found.append(_fatal(h.channel, "contradiction", fault, len(motion), motion.t[0], motion.t[-1]))
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
