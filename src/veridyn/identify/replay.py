"""Forward simulation against a log: how far a machine with given parameters goes astray under the measured forces.

The hardest test of a model, and the one a simulator's user asks for: errors of inverse dynamics stay where they are made, errors of a
simulation add up. Over a `horizon` of a second it shows how well a model predicts; without one, over the whole log, a
pendulum that goes over the top or any chaotic motion shows nothing, whatever the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.error_measures import Moments, RowReport, moments_of_runs
from veridyn.identify.estimators.log_runs import check_motions, cut, with_element_states
from veridyn.identify.estimators.run_model import run_model
from veridyn.identify.estimators.shooting import Hold, Law
from veridyn.identify.replay_settings import ReplaySettings
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.mechanics.samples import complete_values
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]


@takes_machine
def replay(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    *,
    horizon: float = math.inf,
    law: Law | None = None,
    hold: Hold = "linear",
    friction_speed: float = 0.05,
    substeps: int = 1,
) -> Validation:
    """Each coordinate simulated under the measured forces, or by a control `law`, against the measured one: rms, ‖r‖/‖q‖ and rms(r)/std(q).

    Runs begin at the measured state (elements' own states: along the measured motion), anew every `horizon` seconds. The clock must be
    uniform. Pass ``fit.machine()`` for a fit. Dry friction is rounded off below `friction_speed`; with 0 that of an open machine on a fixed
    base holds.
    A simulation that leaves the finite numbers raises :class:`~veridyn.errors.SimulationError`.
    """
    settings = ReplaySettings(horizon=horizon, law=law, hold=hold, friction_speed=friction_speed, substeps=substeps)
    return _replayed(machine, motion, settings, "coordinates")


def replayed(fit: Fit | Machine, motion: Motion | Sequence[Motion]) -> Validation:
    """A fit on other data by what its simulation was compared in, as it was simulated for the fit; a machine with the settings of `replay`.

    Runs begin at the measured state, also where the fit estimated the initial states of its own runs.
    """
    if not isinstance(fit, Fit):
        return replay(fit, motion)
    settings = fit.replay_settings or ReplaySettings()
    compared = "coordinates" if settings.law is None else "forces"
    return _replayed(fit.described.with_parameters(fit.standard), motion, settings, compared)


def _replayed(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    settings: ReplaySettings,
    compare: Literal["coordinates", "forces"],
) -> Validation:
    several = [motion] if isinstance(motion, Motion) else list(motion)
    check_motions(machine, several, settings.law is not None, "replay")
    several = [with_element_states(machine, m) for m in several]
    values = complete_values(machine)
    model = run_model(
        machine,
        several,
        values,
        outputs=settings.outputs,
        law=settings.law,
        compare=compare,
        hold=settings.hold,
        friction_speed=settings.friction_speed,
        substeps=settings.substeps,
    )
    error, size = np.zeros(len(model.outputs)), [Moments()] * len(model.outputs)
    for runs in cut(machine, several, settings.horizon):
        error += (model.residuals(runs, model.initial(runs), values) ** 2).sum(axis=(0, 1))
        size = moments_of_runs(model.measured(runs), size)
    found = zip(model.outputs, model.units, error, size, strict=True)
    return Validation(
        tuple(
            RowReport(
                row=name,
                samples=m.samples,
                rms=math.sqrt(e / m.samples),
                measured_rms=m.rms,
                measured_std=m.std,
                noise=m.noise,
                unit=unit,
            )
            for name, unit, e, m in found
        ),
        by="simulation",
    )
