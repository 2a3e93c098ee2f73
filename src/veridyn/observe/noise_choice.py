"""The process noise of an observation that its log chooses: the one under which its readings are most likely.

One number scales it, that of an acceleration of 1 rad/s² or 1 m/s²: a force density of θ (Rᵀ M R)² for θ in (unit/s²)²/s, or all white
accelerations. What encoders say by themselves tells where the search begins, and how large unknown forces may be at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from veridyn.errors import SimulationError
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.formulation import Instant
from veridyn.observe.alone import AloneCoordinate, coordinates_alone
from veridyn.observe.filters.run import in_order, run
from veridyn.observe.fitting import Tuning, tune
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.progress import Progress, silent

TUNING_SAMPLES = 1000  # samples of a log that choose the noise where none is given
TUNING_DECADES = 5.0  # around an acceleration of 1 rad/s² or 1 m/s²


@dataclass(frozen=True, eq=False)
class NoiseTuning(Tuning):
    """How logs chose the process noise, and what their encoders say by themselves (`alone`)."""

    alone: tuple[AloneCoordinate, ...] = ()


def _screened(setup: ObserverSetup, system: System, readings: Measurements, start: Belief) -> Measurements:
    """The readings without those that a gate refuses even where the model is hardly trusted: outliers do not pass for process noise."""
    if setup.method.gate is None:
        return readings
    ordered = in_order(setup.method, readings.select(system.outputs))
    try:
        found = run(replace(setup.method, gate=setup.method.pass_probability), system, ordered, start)
    except SimulationError:
        return ordered  # the model cannot go where these readings are: it refuses none, and the trials count what that costs
    return ordered.flagged(found.status == Status.OUTLIER, Status.OUTLIER)


def first_forces(
    system: MachineSystem, at: Instant, start: Belief, alone: Sequence[AloneCoordinate]
) -> dict[str, float] | float:
    """How large the unknown forces may be where a log begins: as large as explains the accelerations that the encoders show there, and the
    model without them does not; none where encoders do not show all accelerations."""
    f, forces = system.f, system.model.unknown
    known = {one.place: one.begins for one in alone}
    if len(known) < f:
        return 0.0
    push = system.model.accelerated(at, system.set_of(start.x))[:, 2 * f : 2 * f + len(forces)]
    model = system.model.local(at.q, at.qdd, system.set_of(start.x))[f:]
    missing = [abs(known[k][0, 1] - model[k]) + known[k][1, 1] for k in range(f)]
    size = np.abs(np.linalg.pinv(push)) @ np.array(missing)
    return dict(zip(forces, size.tolist(), strict=True))


def tuned(
    setup: ObserverSetup,
    machine: GivenMachine,
    logs: Sequence[Measurements],
    progress: Progress = silent,
    samples: int = TUNING_SAMPLES,
    walk_alone: bool = False,
) -> tuple[ProcessNoise, NoiseTuning]:
    """The `process_noise` under which the logs are most likely: one number scales the walk of all forces, or all white accelerations.

    The scale is that of an acceleration of 1 rad/s² or 1 m/s²: a force density of θ (Rᵀ M R)² for θ in (unit/s²)²/s. Where forces are
    estimated, both are tried: a walk that stands for a white disturbance makes bands too narrow. `walk_alone`: only the walk is, because a
    model error will be learned, which scales it once more beside its own white forces.
    """
    system, q, qd = setup.system(machine)
    alone = tuple(one for log in logs for one in coordinates_alone(system, log.select(system.outputs)))
    bears = max((one.density for one in alone), default=1.0)  # a walk with which no model loses track
    base = setup.settings.process_noise or ProcessNoise()
    assert isinstance(base, ProcessNoise)  # that of a car is refused where the system is made
    start = system.belief(q, qd)
    f, forces = system.f, system.model.unknown
    at = system.instant(start.x, np.zeros(len(system.inputs)) if not logs else logs[0].inputs[0])

    if forces and base.start_force == 0.0:
        base = replace(base, start_force=first_forces(system, at, start, alone))

    def described(values: Mapping[str, float]) -> ProcessNoise:
        white = values.get("acceleration", 0.0)
        if not forces:
            return replace(base, acceleration=values.get("density", white))
        theta = values.get("density", 10.0**-TUNING_DECADES)
        push = np.abs(system.model.accelerated(at, 0)[:, 2 * f : 2 * f + len(forces)]).max(axis=0)
        walk = {n: theta / max(float(p), 1e-12) ** 2 for n, p in zip(forces, push)}
        return replace(base, acceleration=white or base.acceleration, force=walk)

    def build(values: Mapping[str, float]) -> System:
        trial = setup.replaced(process_noise=described(values))
        return setup.seen(trial.system(system.model.form)[0], q)

    parts = [(_screened(setup, build({"density": bears}), log.first(samples), start), start) for log in logs]

    def most_likely(name: str) -> Tuning:
        first = bears if name == "density" else 1.0
        decades = TUNING_DECADES + abs(float(np.log10(first)))
        return tune(setup.method, build, {name: first}, parts, decades=decades, progress=progress)

    found = most_likely("density")
    if forces and not walk_alone:
        white = most_likely("acceleration")
        found = white if white.log_likelihood > found.log_likelihood else found
    known = {f.name: getattr(found, f.name) for f in fields(found)}
    return described(found.values), NoiseTuning(**known, alone=alone)
