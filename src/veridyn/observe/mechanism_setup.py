"""From a mechanism, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelError, did_you_mean
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.charts import Charts
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.minimal import minimal, start_of
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.observe.machine import ErrorModel
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.setup import common_fields, refuse_unobservable
from veridyn.observe.stepping import LONGEST_STEP_S, mode_step

Array = NDArray[np.float64]


def mechanism_system(
    machine: Mechanism | NaturalSystem,
    process_noise: ProcessNoise,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    independents: tuple[str, ...] = (),
    sensors: Readout | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float | None = None,
    consider: bool = True,
) -> tuple[MechanismSystem, Array, Array]:
    """The system, and the pose and velocity it starts from.

    `unknown`: names of independent coordinates or loads whose force is estimated, None for one on every independent coordinate. `start` and
    `rates`: coordinates and rates by name; what is not given is as the description has it, and at rest. `step`: the longest of the
    integration (s), None for that of :func:`~veridyn.observe.stepping.mode_step`; longer pauses between readings are gone in several.
    `consider`: let the uncertainty of the machine's parameters, where a fit has given it one, widen that of the states.
    """
    system = machine if isinstance(machine, NaturalSystem) else system_of(machine)
    table = readout(system) if sensors is None else sensors
    refuse_unobservable(system.mechanism.name, table, LONGEST_STEP_S if step is None else step)
    q, qd = start_of(system, start, rates)
    known = system.parameters if consider else None
    model = minimal(system, q, independents, unknown, () if known is None else known.names)
    if model.f == 0:
        raise ModelError(Fault("it cannot move.", where=system.mechanism.name, found="no degree of freedom"))
    for name in inputs:
        if name not in system.forces.places:
            hint = did_you_mean(name, list(system.forces.places))
            raise DataError(Fault(f"there is no load '{name}'.", where=system.mechanism.name, hint=hint))
    uncertainty = None if known is None else known.uncertainty
    fields = common_fields(model, table, process_noise, error_model, inputs, step or LONGEST_STEP_S, uncertainty)
    made = MechanismSystem(charts=Charts(model), **fields)
    return (made if step is not None else replace(made, longest=mode_step(made, q, qd))), q, qd
