"""What a fit predicts of the rows it was fitted to: forces by inverse dynamics, or coordinates by simulation from the measured state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.gains import with_known_gains
from veridyn.identify.logged import prepared_motions
from veridyn.identify.output_error.log_runs import check_motions, cut, with_element_states
from veridyn.identify.output_error.run_model import RunModel, run_model
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit, ReplaySettings
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion


def predicted_rows(fit: Fit, data: Motion | Experiment) -> Array:
    """(N, rows) along one motion, in the order of ``fit.rows``: see :meth:`~veridyn.identify.result.Fit.predict`."""
    motion = prepared_motions(fit.described, data)
    if not isinstance(motion, Motion):
        raise DataError("one motion is predicted at a time.", where="predict", expected="a Motion or an Experiment")
    if fit.replay_settings is not None:
        return _simulated(fit, motion, fit.replay_settings)
    phi = fit.standard
    machine = with_known_gains(fit.described, [motion], phi)
    places = [machine.parameters.index(e.parameter_name) for e in machine.elements if e.kind == "drive_gain"]
    phi[[k for k in places if machine.parameters.states[k] == "known"]] = 0.0  # what they give is measured
    return inverse_dynamics(machine, motion, [r.row for r in fit.rows], phi)


def _simulated(fit: Fit, motion: Motion, settings: ReplaySettings) -> Array:
    """Of a fit by output error; of the attitude of a free base the turn since the start of its run, to first order in the error."""
    compare = "coordinates" if settings.law is None else "forces"
    machine = fit.described.with_parameters(fit.standard)
    _, ((measured, residuals),) = run_residuals(machine, [motion], settings, compare)
    out = np.full((len(motion), measured.shape[2]), np.nan)
    out[: measured.shape[0] * measured.shape[1]] = (measured - residuals).reshape(-1, measured.shape[2])
    return out


def run_residuals(
    machine: Machine, motions: Sequence[Motion], settings: ReplaySettings, compare: Literal["coordinates", "forces"]
) -> tuple[RunModel, Iterator[tuple[Array, Array]]]:
    """How runs from the measured states are simulated, and of each set of alike runs the measured outputs and y − ŷ, both (R, K, m)."""
    check_motions(machine, motions, settings.law is not None, "replay")
    several = [with_element_states(machine, m) for m in motions]
    values = complete_values(machine)
    model = run_model(machine, several, values, settings, compare=compare)
    sets = cut(machine, several, settings.horizon)
    return model, ((model.measured(r), model.residuals(r, model.initial(r), values)) for r in sets)


def equation_rows(fit: Fit) -> Rows:
    """The equations of a fit; of one by simulation, whose rows are coordinates, all of the machine."""
    return "all" if fit.replay_settings is not None else [r.row for r in fit.rows]


def predicted(
    fit: Fit, motion: Motion, rows: Rows | None = None, sampling: Sampling | None = None
) -> tuple[tuple[str, ...], Array, Array]:
    """Names, measured and predicted sides (N, rows) of each row along a motion, for plots; unfiltered.

    What known drive gains make of their signals stands on the measured side, and what identified ones do in rows without another measured
    force. Of `sampling` only the paths of projected rows count
    (``Sampling.along``).
    """
    phi, how = fit.standard.copy(), sampling or Sampling()
    machine = with_known_gains(fit.described, [motion], phi)
    chosen = machine.select_rows(equation_rows(fit) if rows is None else rows)
    names = tuple(machine.rows[r] for r in chosen)
    forces = np.zeros((len(motion), len(machine.rows)))
    if motion.forces is not None:
        forces[:, len(machine.rows) - machine.n :] = np.where(machine.actuated, motion.forces, 0.0)
    for e in machine.elements:
        place = machine.parameters.index(e.parameter_name)
        if e.kind == "drive_gain" and machine.parameters.states[place] == "known":
            for c, share in e.on.items():
                row = np.nan_to_num(forces[:, machine.rows.index(c)]) if motion.forces is not None else 0.0
                forces[:, machine.rows.index(c)] = row + share * phi[place] * motion.signals[e.signal]
            phi[place] = 0.0
    unloaded = replace(motion, wrenches={})
    outside = external_rows(machine, motion)
    own = (forces - outside)[:, list(chosen)]
    added = list(dict.fromkeys(other for name in names for other in how.path(name) if other not in names))
    model = dict(zip([*names, *added], inverse_dynamics(machine, unloaded, [*names, *added], phi).T, strict=True))
    both = np.column_stack([model[name] for name in names])
    for k, name in enumerate(names):
        for other, signal in how.path(name).items():
            slope = motion.signals[signal]
            own[:, k] -= slope * outside[:, machine.rows.index(other)]
            both[:, k] += slope * model[other]
    return names, own, both
