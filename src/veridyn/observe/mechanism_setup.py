"""From a mechanism, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelError, did_you_mean
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.charts import Charts
from veridyn.mechanics.natural.minimal import minimal, start_of
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.model.natural import Mechanism
from veridyn.observe.mechanism import ErrorModel, MechanismSystem
from veridyn.observe.noise import as_covariance
from veridyn.observe.unsure import Unsure, sizes

Array = NDArray[np.float64]


def mechanism_system(
    machine: Mechanism | NaturalSystem,
    unsure: Unsure,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    independents: tuple[str, ...] = (),
    sensors: Readout | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float = 0.01,
) -> tuple[MechanismSystem, Array, Array]:
    """The system, and the pose and velocity it starts from.

    `unknown`: names of independent coordinates or loads whose force is estimated, None for one on every independent coordinate. `start` and
    `rates`: coordinates and rates by name; what is not given is as the description has it, and at rest. `step`: the longest of the
    integration (s); longer pauses between readings are gone in several.
    """
    if not 0.0 < step < np.inf:
        raise ModelError(Fault("the longest step is not usable.", "observe", "a positive time", f"{step:g} s"))
    system = machine if isinstance(machine, NaturalSystem) else system_of(machine)
    table = readout(system) if sensors is None else sensors
    if not table.names:
        raise ModelError(
            Fault(
                "it has no sensors, so there is nothing to observe it by.",
                where=system.mechanism.name,
                hint="Give it some: a section `sensors` in its file, or sensors=.",
            )
        )
    q, qd = start_of(system, start, rates)
    model = minimal(system, q, independents, unknown)
    if model.f == 0:
        raise ModelError(Fault("it cannot move.", where=system.mechanism.name, found="no degree of freedom"))
    for name in inputs:
        system.forces.load_values({name: _value(system, name)})
    drifting = tuple(j for j, k in enumerate(table.owner) if table.sensors[k].drifts)
    states = (
        *model.names,
        *(f"{name}_dot" for name in model.names),
        *(f"force.{name}" for name in model.unknown),
        *(f"bias.{table.names[j]}" for j in drifting),
    )
    density = np.concatenate(
        [
            sizes(unsure.position, model.names, "position"),
            sizes(unsure.acceleration, model.names, "acceleration"),
            sizes(unsure.force, model.unknown, "force"),
            [table.sensors[table.owner[j]].bias_walk for j in drifting],
        ]
    )
    wraps = np.array([table.sensors[k].turns for k in table.owner], dtype=np.bool_)
    found = MechanismSystem(
        Charts(model),
        table,
        unsure,
        error_model,
        tuple(inputs),
        states,
        table.names,
        drifting,
        as_covariance(table.variances, table.names, "measurement noise", definite=True),
        density,
        np.eye(len(table.names))[:, list(drifting)],
        wraps,
        step,
    )
    return found, q, qd


def _value(system: NaturalSystem, name: str) -> Array:
    """The present value of a load, so that a name that is none is refused where it is given."""
    loads = system.forces.loads
    if name not in loads:
        raise DataError(
            Fault(f"there is no load '{name}'.", where=system.mechanism.name, hint=did_you_mean(name, list(loads)))
        )
    if loads[name].stop - loads[name].start != 1:
        raise DataError(Fault("an input is one number.", where=f"load '{name}'", found="several"))
    return system.forces.values[loads[name]]
