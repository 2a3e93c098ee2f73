"""How far an observer of the buggy is from the truth, and whether it knows: rms by quantity as in Tables 5 and 6 of paper 003, and NEES."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Observation
from veridyn.papers.buggy.log import RATE, BuggyTruth
from veridyn.papers.buggy.machine import CORNERS

Array = NDArray[np.float64]
SKIP = 20  # samples left out at the start
EVERY = 25  # samples from one NEES to the next
QUANTITIES: dict[str, tuple[str, ...]] = {
    "x": ("base.x",),
    "y": ("base.y",),
    "xd": ("base.vx",),
    "yd": ("base.vy",),
    "yaw": ("base.yaw",),
    "yaw_rate": ("base.wz",),
    "wheel_angle": tuple(f"spin_{c}" for c in CORNERS),
    "wheel_speed": tuple(f"spin_{c}_dot" for c in CORNERS),
}
UNITS = {"x": "m", "y": "m", "xd": "m/s", "yd": "m/s", "yaw": "rad", "yaw_rate": "rad/s", "wheel_angle": "rad"}
UNITS["wheel_speed"] = "rad/s"


@dataclass(frozen=True, eq=False)
class Scored:
    """Errors (N, 2f) of the states by name at times t (N,), their deviations, and the largest and rms errors by quantity (worst wheel)."""

    t: Array
    names: tuple[str, ...]
    errors: Array
    sigma: Array
    nees: float

    def of(self, state: str) -> tuple[Array, Array]:
        """Error and deviation of a state."""
        k = self.names.index(state)
        return self.errors[:, k], self.sigma[:, k]

    def rms(self, quantity: str, after: float = 0.0) -> float:
        late = self.t >= after
        return max(float(np.sqrt(np.mean(self.of(n)[0][late] ** 2))) for n in QUANTITIES[quantity])

    def largest(self, quantity: str) -> float:
        return max(float(np.abs(self.of(n)[0]).max()) for n in QUANTITIES[quantity])


def scored(found: Observation, truth: BuggyTruth) -> Scored:
    """The errors of an observation against the truth, from sample SKIP on."""
    return score_track(found.system, found.estimates.t, np.asarray(found.track.x), np.asarray(found.track.P), truth)


def score_track(system: MachineSystem, t: Array, x: Array, P: Array, truth: BuggyTruth) -> Scored:
    """The errors of states x (N, n) with covariances P (N, n, n) at times t (N,), from sample SKIP on."""
    model, t, x, P = system.model, t[SKIP:], x[SKIP:], P[SKIP:]
    at = np.rint(t * RATE).astype(int)
    q, qd, _, _ = system.split(x)
    n = 2 * system.f
    errors = wrapped(model.local(q, qd) - model.local(truth.q[at], truth.qd[at]), system.states[:n])
    sigma = np.sqrt(np.array([np.diag(system.reported(a, b))[:n] for a, b in zip(x, P, strict=True)]))
    return Scored(t, system.states[:n], errors, sigma, _nees(system, truth, at, q, qd, P))


def score_plain(system: MachineSystem, plain: BuggyTruth, truth: BuggyTruth) -> Scored:
    """The errors of the model left to itself, which has no deviations."""
    model, names = system.model, system.states[: 2 * system.f]
    errors = wrapped(plain.reduced(model) - truth.reduced(model), names)[SKIP:]
    return Scored(truth.t[SKIP:], names, errors, np.zeros_like(errors), np.nan)


def wrapped(errors: Array, names: tuple[str, ...]) -> Array:
    """Errors with those of the attitude between −π and π."""
    turning = [k for k, name in enumerate(names) if name in ("base.roll", "base.pitch", "base.yaw")]
    out = errors.copy()
    out[:, turning] = (out[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
    return out


def _nees(system: MachineSystem, truth: BuggyTruth, at: NDArray[np.int64], q: Array, qd: Array, P: Array) -> float:
    """The mean of dᵀ P⁻¹ d over the number of states that the filter carries, along the run."""
    model, n = system.model, 2 * system.f
    carried = np.flatnonzero(np.diag(P[-1])[:n] > 0.0)
    total = []
    for k in range(0, len(q), EVERY):
        d = model.difference(truth.q[at[k]], truth.qd[at[k]], q[k], qd[k])[carried]
        total.append(float(d @ np.linalg.solve(P[k][np.ix_(carried, carried)], d)) / len(carried))
    return float(np.mean(total))
