"""A filter along the readings of a machine of bodies: the model's error is learned, and steps are shortened until they suffice.

The run is repeated where its first one shows that it must be: with the model error that its innovations demand, without drifting parameters
that the log does not determine, with shorter steps where they do not converge or bias the estimates, and with a walk of the unknown forces
that follows every encoder where the model has lost track.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError, VeridynError
from veridyn.observe.alone import AloneCoordinate, lost_tracks
from veridyn.observe.consistency.predictions import FilterRun
from veridyn.observe.filters.methods import LinearKF, Smoother
from veridyn.observe.filters.run import in_order, run
from veridyn.observe.filters.stepping import REFINEMENTS, TOLERATED_BIAS_SIGMAS, bounded_step_bias, warn_of_long_steps
from veridyn.observe.fitting import Tuning
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements
from veridyn.observe.model_error import ModelErrorDensity, with_density
from veridyn.observe.noise_choice import NoiseTuning
from veridyn.observe.observation import Observation, smoothed
from veridyn.observe.observer_setup import ObserverSetup, PreparedMachine, determined, with_frozen
from veridyn.observe.result import Belief, Estimates
from veridyn.progress import Progress, silent

SHORTER = 0.25  # of a step whose iteration does not converge: its first guess is then off by a sixteenth, for that is of order h²


def run_machine(
    prepared: PreparedMachine, readings: Measurements, tuning: NoiseTuning | None = None, progress: Progress = silent
) -> Observation:
    """The states along the readings; `tuning`: how they chose the process noise of the setup, None where it was given."""
    setup, system, q, qd = prepared
    method, smooths, start = setup.method, isinstance(setup.method, Smoother), system.belief(q, qd)
    ordered = in_order(method, readings.select(system.outputs))
    if smooths:  # it goes back along one chain of steps
        readings = ordered
    refinements = 0 if setup.settings.step is not None else REFINEMENTS
    floor = setup.foreseen_floor(system, q, start, ordered) if tuning is None else None
    bare = system
    system = system if floor is None else with_density(system, floor)
    system, estimates = _converging(setup, system, readings, q, start, progress, refinements)
    ran, system = system, with_frozen(system, estimates)
    bare = replace(bare, longest=system.longest, frozen=system.frozen)
    error = setup.model_error(bare, q, start, ordered, estimates, progress, tuning is not None, floor)
    if error is not None and not (error.density is floor and system is ran):
        system = error.added_to(bare)

    def again(other: MachineSystem) -> Estimates:
        return run(method, setup.seen(other, q), readings, start, progress)

    if system is not ran:  # again where the model's error leaves a parameter less well determined
        system, estimates = determined(system, again(system), again)
    while not isinstance(method, LinearKF) and not estimates.replayed and len(estimates) > 1:
        bias = bounded_step_bias(system, estimates, readings.inputs)
        if bias.deviations <= TOLERATED_BIAS_SIGMAS or not refinements:
            warn_of_long_steps(system, bias)
            break
        refinements -= 1
        system = replace(system, longest=bias.better)
        estimates = again(system)
    alone = tuning.alone if tuning is not None else ()
    lost = lost_tracks(alone, estimates) if not estimates.replayed else ()
    if lost and error is not None and tuning is not None:
        safe = _bearing_all(tuning, error, alone)
        other = safe.added_to(bare)
        try:
            followed = again(other)
        except VeridynError:
            followed = estimates
        still = lost_tracks(alone, followed)
        if sum(one.excess for one in still) < sum(one.excess for one in lost):
            system, estimates, error, lost = other, followed, safe, still
    states = Observation(
        method.word,
        system,
        estimates,
        estimates,
        readings.select(system.outputs),
        system.process_noise,
        tuning,
        error,
        FilterRun(method, setup.seen(system, q), readings, start),
        lost,
    )
    return smoothed(states) if smooths else states


def _bearing_all(tuning: Tuning, error: ModelErrorDensity, alone: Sequence[AloneCoordinate]) -> ModelErrorDensity:
    """A model error with which a chosen walk of the unknown forces follows every encoder, whatever the model says."""
    bears = max((one.density for one in alone), default=0.0)
    walk = max(bears / tuning.values.get("density", np.inf), error.walk)
    none = None if error.force is None else np.zeros_like(error.force)
    return replace(error, density=error.floor, force=none, walk=walk)


def _converging(
    setup: ObserverSetup,
    system: MachineSystem,
    readings: Measurements,
    q: Array,
    start: Belief,
    progress: Progress,
    tries: int,
) -> tuple[MachineSystem, Estimates]:
    """A run along the readings, and the system it was made with: one of shorter steps, up to `tries` times, where steps do not converge."""
    while True:
        try:
            return system, run(setup.method, setup.seen(system, q), readings, start, progress)
        except SimulationError:
            if not tries:
                raise
        tries -= 1
        taken = min(system.longest, float(np.diff(readings.t).max(initial=0.0)) or system.longest)
        system = replace(system, longest=SHORTER * taken)
