"""Machines on one path: described once, simulated, identified, and observed with what was identified, in every formulation they have.

    python examples/one_machine.py [arm] [four-bar] [crane] [car] ["small car"] [--seed N]

`journey` is all that a user writes, and it is the same for an arm, a linkage with a closed loop, a crane with a swinging load, a car on
its suspensions, and a car of a few numbers; ``examples/four_jobs.py`` says what each of them is made to do. The same lines run in joint
coordinates and in natural coordinates; what a formulation cannot carry is printed with its reason. All logs are simulated, with noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from four_jobs import JOBS, Job
from numpy.typing import NDArray

import veridyn as vd

Array = NDArray[np.float64]
FORMULATIONS = ("tree", "natural", "single_track")
EXACT = {"q.*": vd.manoeuvres.Imperfection(), "qd.*": vd.manoeuvres.Imperfection()}  # the truth, recorded without noise


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a journey found, beside the truth."""

    fit: vd.Fit
    states: vd.filters.Observation
    z: Array  # errors of the identified parameters in their standard deviations
    rms: Mapping[str, float]  # of the errors of the observed states
    inside: float  # share of these errors within two deviations


def formulations(machine: vd.Machine) -> Iterator[vd.Machine]:
    """The machine in each formulation that carries it; the others are printed with the reason."""
    for formulation in FORMULATIONS:
        try:
            yield machine.with_formulation(formulation)
        except vd.errors.ModelError as refused:
            print(f"{machine.name}, {formulation}: refused, {refused.faults[0].what}")


def journey(job: Job, machine: vd.Machine, rng: np.random.Generator) -> Result:
    """Simulate with noise and identify; observe a second log with the identified machine, all in the machine's own formulation."""
    guess = job.guess(rng).with_formulation(machine.formulation)
    log = vd.simulate(machine, job.exciting, rng=rng, imperfections=job.imperfections)
    data = log if job.signals is None else vd.motion(guess, log, job.signals)
    fit = vd.identify(guess, data, job.method, **job.keywords)
    second = vd.simulate(machine, job.observed, rng=rng)
    states = vd.observe(fit.machine(), second, "ekf", job.observer)
    exact = vd.simulate(
        machine.with_sensors(job.exact), job.observed, rng=rng, imperfections=None if job.exact else EXACT
    )
    return compared(job, fit, states, exact)


def compared(job: Job, fit: vd.Fit, states: vd.filters.Observation, exact: vd.Experiment) -> Result:
    """The errors, which only a simulation shows."""
    rms, inside = {}, []
    for k, name in enumerate(states.states):
        position, rate, reading = f"q.{name}", f"qd.{name.removesuffix('_dot')}", name
        channel = next((c for c in (position, rate, reading) if c in exact), None)
        if channel is not None:
            error = states.reduced[:, k] - np.interp(states.t, exact[channel].t, exact[channel].values)
            rms[name] = float(np.sqrt((error[job.settle :] ** 2).mean()))
            inside.append(np.abs(error[job.settle :]) < 2.0 * states.sigma[job.settle :, k])
    return Result(
        fit=fit,
        states=states,
        z=(fit.values - job.truth(fit)) / fit.sigma,
        rms=rms,
        inside=float(np.mean(inside)),
    )


def report(name: str, found: Result) -> None:
    """A few lines of each journey."""
    fit, share = found.fit, np.mean(np.abs(found.z) < 2.0)
    print(f"{name}, {fit.machine().formulation}: {len(fit.names)} parameters, {share:.0%} within two deviations")
    print(f"  observed: {found.inside:.0%} of the errors within two deviations, {found.states.nis().summary()}")
    for state, rms in found.rms.items():
        print(f"  rms error of {state:<16}{rms:.3g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="*", default=list(JOBS), metavar="MACHINE", help=", ".join(JOBS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for chosen in given.machines:
        job = JOBS[chosen]()
        for machine in formulations(job.machine):
            report(chosen, journey(job, machine, np.random.default_rng(given.seed)))
