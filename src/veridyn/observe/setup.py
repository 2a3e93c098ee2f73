"""What every formulation of a machine needs to become a system of a filter: names of states, noises and biases, checked by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridyn.errors import Fault, ModelError
from veridyn.model.uncertainty import Uncertainty
from veridyn.observe.machine import ErrorModel, Table
from veridyn.observe.noise import as_covariance
from veridyn.observe.process_noise import ProcessNoise, sizes


def refuse_unobservable(name: str, table: Table, step: float) -> None:
    """Refuse a machine without sensors, and a step that is no time."""
    if not 0.0 < step < np.inf:
        raise ModelError(Fault("the longest step is not usable.", "observe", "a positive time", f"{step:g} s"))
    if not table.names:
        raise ModelError(
            Fault(
                "it has no sensors, so there is nothing to observe it by.",
                where=name,
                hint="Give it some: a section `sensors` in its file, or sensors=.",
            )
        )


def common_fields(
    model: Any,
    table: Table,
    process_noise: ProcessNoise,
    error_model: ErrorModel,
    inputs: tuple[str, ...],
    step: float,
    uncertainty: Uncertainty | None = None,
) -> dict[str, Any]:
    """The fields that all :class:`~veridyn.observe.machine.MachineSystem` have, from a model and its sensors."""
    drifting = tuple(j for j, k in enumerate(table.owner) if table.sensors[k].drifts)
    varying: tuple[str, ...] = getattr(model, "varying", ())
    inner: tuple[str, ...] = getattr(model, "inner", ())
    considered = 0 if uncertainty is None else len(uncertainty.names)
    rates = getattr(model, "rate_names", tuple(f"{name}_dot" for name in model.names))
    density = [
        sizes(process_noise.position, model.names, "position"),
        sizes(process_noise.acceleration, model.names, "acceleration"),
        sizes(process_noise.force, model.unknown, "force"),
        sizes(process_noise.parameter, varying[: len(varying) - considered], "parameter"),
        np.zeros(considered),
        sizes(process_noise.element, inner, "element"),
        [table.sensors[table.owner[j]].bias_walk for j in drifting],
    ]
    return {
        "table": table,
        "process_noise": process_noise,
        "error_model": error_model,
        "inputs": tuple(inputs),
        "states": (
            *model.names,
            *rates,
            *(f"force.{name}" for name in model.unknown),
            *(f"parameter.{name}" for name in varying),
            *(f"state.{name}" for name in inner),
            *(f"bias.{table.names[j]}" for j in drifting),
        ),
        "outputs": table.names,
        "drifting": drifting,
        "R": as_covariance(table.variances, table.names, "measurement noise", definite=True),
        "density": np.concatenate(density),
        "selector": np.eye(len(table.names))[:, list(drifting)],
        "wraps": np.array([table.sensors[k].wraps for k in table.owner], dtype=np.bool_),
        "longest": step,
        "varying": varying,
        "inner": inner,
        "uncertainty": uncertainty,
    }
