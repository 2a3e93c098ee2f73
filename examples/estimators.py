"""The same log through each estimator: two links under a controller, with a fine encoder and with a coarse one.

Prints the second table of docs/estimators.md. The truth is known, since the machine is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

import veridyn as vd
from veridyn.identify.estimator import Estimator
from veridyn.mechanics.control.law import Tracker
from veridyn.mechanics.system.integrate import Method, Trajectory
from veridyn.simulate.simulator import record

SOFT = 0.05  # rad/s, below which the simulated dry friction is rounded off
RATE = 200.0  # Hz
TORQUE = {"force.q1": vd.manoeuvres.Imperfection(noise=0.05), "force.q2": vd.manoeuvres.Imperfection(noise=0.02)}  # N*m
ENCODERS = {"fine encoder": 2e-6, "coarse encoder": 5e-4}  # rad, deviation of one reading
LOGS = 4


def machine() -> vd.Machine:
    """Both axes horizontal; friction at both joints."""
    bodies = [
        vd.model.Body("1", placement=vd.spatial.MDH(alpha=np.pi / 2)),
        vd.model.Body("2", "1", placement=vd.spatial.MDH(d=0.3)),
    ]
    inertia = {
        "1": vd.spatial.from_centre(0.6, (0.25, 0.01, 0.0), np.diag([0.001, 0.01, 0.011])),
        "2": vd.spatial.from_centre(0.5, (0.16, -0.02, 0.0), np.diag([0.001, 0.006, 0.007])),
    }
    elements = [
        vd.elements.damper("q1", 0.05),
        vd.elements.coulomb("q1", 0.06),
        vd.elements.damper("q2", 0.02),
        vd.elements.coulomb("q2", 0.03),
    ]
    return vd.Machine.of_bodies(bodies, name="two links", inertia=inertia, elements=elements)


def drawing(seed: int) -> vd.Machine:
    """What the drawing says: each body and each element wrong by up to 20 %."""
    true, rng = machine(), np.random.default_rng(seed)
    bodies, elements = (1.0 + 0.2 * rng.uniform(-1.0, 1.0, len(x)) for x in (true.links, true.elements))
    by_name = dict(zip(true.body_names, bodies, strict=True))
    factor = [by_name[body] if body else elements[k] for body, k in true.columns]
    return true.with_parameters(true.parameters.values * np.array(factor))


def path(seed: int) -> vd.signals.FourierTrajectory:
    limits = vd.signals.JointLimits(np.full(2, -2.0), np.full(2, 0.5), np.full(2, 6.0), np.full(2, 40.0))
    return vd.signals.FourierTrajectory.random(
        np.random.default_rng(seed), limits, harmonics=5, frequency=0.25, fill=0.95
    )


KP, KD = np.array([20.0, 8.0]), np.array([2.0, 0.8])
METHOD = Method("RK4", step=0.5 / RATE, friction_speed=SOFT)
LAW = Tracker(path(3), KP, KD)


@cache
def truth(seed: int, seconds: float) -> Trajectory:
    """The machine in closed loop, without any error."""
    return vd.manoeuvres.Tracking(path(seed), seconds, RATE, KP, KD, method=METHOD).run(machine())


@cache
def recorded(encoder: float, seed: int) -> vd.Motion:
    """8 s of it as sensors see them, through a low-pass of 20 Hz."""
    log = record(
        machine(),
        truth(3, 8.0),
        {"q.*": vd.manoeuvres.Imperfection(noise=encoder), **TORQUE},
        np.random.default_rng(seed),
    )
    return vd.motion(machine(), log, vd.Signals(lowpass=20.0, trim=0.1))


@dataclass(frozen=True)
class Case:
    """A method and its covariance, as the page writes them."""

    shown: str
    method: Estimator | str
    covariance: Literal["auto", "white", "hac"] = "auto"


CASES = (
    Case("`OLS()`", "ols"),
    Case("`WLS()`", "wls"),
    Case('`WLS()`, `covariance="white"`', "wls", "white"),
    Case('`WLS()`, `covariance="hac"`', "wls", "hac"),
    Case("`GaussMarkov(order=8)`", vd.estimators.GaussMarkov(order=8)),
    Case("`Robust()`", "robust"),
    Case("`Prior()`", "map"),
    Case("`Consistent()`", "consistent"),
    Case("`Instrumental(law=law)`", vd.estimators.Instrumental(law=LAW, start="tree", friction_speed=SOFT)),
    Case("`OutputError(law=law)`", vd.estimators.OutputError(law=LAW, start="tree", friction_speed=SOFT)),
)
SAMPLING = vd.estimators.Sampling(filter=vd.signals.Butterworth(20.0), decimate=4, dead_zone={"q1": 0.2, "q2": 0.2})


def judged(case: Case, encoder: float) -> tuple[float, float, float]:
    """Over some logs: error of inertia and first moments in per cent, error over σ, and a second's simulation of another motion in mrad."""
    true, inertia, scores, strayed = machine(), [], [], []
    for seed in range(LOGS):
        motion = recorded(encoder, seed)
        how = vd.IdentifySettings(covariance=case.covariance, sampling=SAMPLING)
        fit = vd.identify(drawing(seed), motion, case.method, how)
        error = fit.values - fit.base.reduce(true.parameters.values)
        sizes = np.array([true.parameters.typical[c] for c in fit.base.columns])
        moved = [k for k, c in enumerate(fit.base.columns) if true.columns[c][0]]
        inertia.append(np.mean((error / sizes)[moved] ** 2))
        scores.append(np.nanmean((error / fit.sigma) ** 2))
        known = fit.described.with_parameters(fit.standard)
        runs = vd.estimators.replay(known, truth(8, 6.0).motion, horizon=1.0, friction_speed=SOFT)
        strayed.append(np.mean([r.rms**2 for r in runs.rows]))
    return 100.0 * np.sqrt(np.mean(inertia)), np.sqrt(np.mean(scores)), 1e3 * np.sqrt(np.mean(strayed))


def table() -> list[str]:
    """One line for each estimator."""
    lines = ["| | " + " | ".join(ENCODERS) + " |", "|---" * (len(ENCODERS) + 1) + "|"]
    for case in CASES:
        found = [judged(case, encoder) for encoder in ENCODERS.values()]
        told = " | ".join(f"{a:.2f} % · {b:.2f} · {c:.1f} mrad" for a, b, c in found)
        lines.append(f"| {case.shown} | {told} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
