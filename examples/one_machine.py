"""Four machines on one path: described once, simulated, identified, and observed with what was identified.

    python examples/one_machine.py [arm] [linkage] [crane] [car] [--seed N]

`journey` is all that a user writes, and it is the same for an arm, a linkage with a closed loop, a crane with a swinging load, and a car
on its suspensions; ``examples/four_jobs.py`` says what each of them is made to do. All logs are simulated, with noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from four_jobs import FRICTION_SPEED, JOBS, Job, perturbed
from numpy.typing import NDArray

import veridyn as vd
from veridyn.mechanics.integrate import Trajectory
from veridyn.simulate.readings import configurations
from veridyn.simulate.simulator import record

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a journey found, beside the truth."""

    fit: vd.Fit
    states: vd.observers.Observation
    z: Array  # errors of the identified parameters in their standard deviations
    rms: Mapping[str, float]  # of the errors of the coordinates and their rates
    nees: float
    unseen: tuple[str, ...]  # what no sensor can tell


def journey(job: Job, rng: np.random.Generator) -> Result:
    """Load, simulate with noise, identify; observe a second log with the identified machine."""
    guess = perturbed(job.machine, rng)  # inertias and elements up to 20 % wrong
    log = vd.simulate(job.machine, job.exciting, rng=rng, imperfections=job.imperfections)
    motion = vd.motion(guess, log, job.signals)
    fit = vd.identify(guess, motion, "wls", rows=job.rows, sampling=job.sampling, sigma=job.sigma)
    truth = job.observed.run(job.machine)
    second = record(job.machine, truth, rng=rng)
    how = {"start": "readings", "input_hold": "linear", "friction_speed": FRICTION_SPEED, **job.observer}
    states = vd.observe(fit.machine(), second, "ekf", **how)
    return compared(job, fit, states, truth)


def compared(job: Job, fit: vd.Fit, states: vd.observers.Observation, truth: Trajectory) -> Result:
    """The errors, which only a simulation can tell."""
    machine = job.machine
    q, qd, _ = configurations(machine, truth)
    at = np.searchsorted(truth.motion.t, states.t - 1e-9)
    names = (*(("x", "y", "z", "e0", "e1", "e2", "e3") if machine.base == "free" else ()), *machine.coordinates)
    rates = (*(("vx", "vy", "vz", "wx", "wy", "wz") if machine.base == "free" else ()), *machine.coordinates)
    off, off_rates = (states.q - q[at])[job.settle :], (states.qd - qd[at])[job.settle :]
    rms = {name: float(np.sqrt((x**2).mean())) for name, x in zip(names, off.T, strict=True)}
    rms |= {f"{name} rate": float(np.sqrt((x**2).mean())) for name, x in zip(rates, off_rates.T, strict=True)}
    seen = states.observability(part=slice(0, 400, 20))
    return Result(
        fit=fit,
        states=states,
        z=(fit.values - fit.base.reduce(job.machine.parameters.values)) / fit.sigma,
        rms=rms,
        nees=states.nees(q[at], qd[at], skip=job.settle).mean,
        unseen=tuple(d.text for d in seen.unseen),
    )


def report(name: str, found: Result) -> None:
    """A few lines of each journey."""
    print(f"{name}: {len(found.fit.names)} parameters, {np.mean(np.abs(found.z) < 2.0):.0%} within two deviations")
    print(
        f"  observed over {len(found.states)} samples: NEES {found.nees:.2f} (1 is ideal), {found.states.nis().summary()}"
    )
    for state, rms in found.rms.items():
        print(f"  rms error of {state:<16}{rms:.3g}")
    for text in found.unseen:
        print(f"  not observable: no reading changes with {text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="*", default=list(JOBS), metavar="MACHINE", help=", ".join(JOBS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for chosen in given.machines:
        report(chosen, journey(JOBS[chosen](), np.random.default_rng(given.seed)))
