"""What a fit predicts, and how far that is from held-out data: rows by inverse dynamics or by simulation under the measured forces.

Simulation is the hardest test of a model, and the one a simulator's user asks for: errors of inverse dynamics stay where they are made,
errors of a simulation add up. Over a `horizon` of a second it shows how well a model predicts; without one, over the whole log, a
pendulum that goes over the top or any chaotic motion shows nothing, whatever the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Literal

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Limit
from veridyn.identify.car_fit import CarFit, validate_car
from veridyn.identify.drives.drive_method import Drives
from veridyn.identify.gains import with_known_gains
from veridyn.identify.logged import prepared_motions
from veridyn.identify.output_error.log_runs import Hold, check_motions, cut, with_element_states
from veridyn.identify.output_error.shooting import Law, RunModel, run_model
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling, measured_rows, with_dead_zones
from veridyn.identify.result import Fit, ReplaySettings
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import Moments, RowReport, moments_of_runs
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.settings import changed


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


ONLY_CARS = Limit(
    "not built: its forces are measured and linear in its parameters, so that they are compared without a filter",
    "Leave 'by' out, or compare forces or a simulation; observe(fit.machine(), log) shows predictions of a filter.",
)


@checked
def validate(
    fit: Fit | Machine,
    data: Motion | Experiment | Sequence[Motion | Experiment],
    settings: IdentifySettings | None = None,
    *,
    by: Literal["fit", "forces", "simulation", "prediction"] = "fit",
    rows: Rows | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Validation:
    """A fit on data not used for it, by what it was fitted to, row by row: rms, ‖r‖/‖y‖ and rms(r)/std(y).

    Measured forces y of a motion, before known parameters are subtracted, against those that the fit predicts; members of a group that the
    fit could not separate keep their priors. A fit by :class:`~veridyn.estimators.OutputError` is judged by its simulation: from the
    measured state, anew after each horizon of the fit, coordinates against the measured ones (:func:`~veridyn.estimators.replay`). A car
    of a few numbers is judged by its sensors, each predicted from one sample to the next; drives by their encoders, simulated from the
    commands of another log.

    Parameters
    ----------
    fit : Fit or Machine
        The identified model; a machine or tree is taken as it is, all its values known.
    data : Motion, Experiment, or a sequence of them
        Samples that were not used for the fit, with measured forces (N, n) in N*m or N; of a car the log of a drive, of drives a log
        with commands and positions. Another log is
        prepared by :func:`veridyn.motion` with default settings, as :func:`identify` does it.
    settings : IdentifySettings, optional
        How samples become equations, as in :func:`identify`: sampling, engine and device; what says how parameters are estimated has
        nothing to act on. Every sample as it is by default. A simulation has no equations, and compares every sample.
    by : {"fit", "forces", "simulation", "prediction"}
        What is compared: what the fit was fitted to (the default; forces for a machine, predictions for a car), forces, a simulation, with
        the settings of the fit or the defaults of ``replay``, or predictions, of cars alone.
    rows : "all", "joints", "base", "actuated", or names, optional
        The equations that are compared where forces are; those of the fit by default.
    executor : concurrent.futures.Executor, optional
        Shares out the samples; they are streamed in this thread by default.
    progress : callable (task, done, total), optional
        Called as the samples are streamed.

    Returns
    -------
    Validation
        Errors of each row, ``std_error`` and ``relative_error`` over all rows, ``worst``, ``worst_judged``, ``by`` and ``summary()``.

    Raises
    ------
    DataError
        The motion lacks what these rows need, or a parameter of a machine has no value.
    SimulationError
        A simulation leaves the finite numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> t = 0.01 * np.arange(400)
    >>> def swing(rate):
    ...     q, qd, qdd = np.sin(rate * t), rate * np.cos(rate * t), -(rate**2) * np.sin(rate * t)
    ...     return vd.Motion(t, q[:, None], qd[:, None], qdd[:, None], forces=(0.6 * qdd + 9.81 * np.cos(q))[:, None])
    >>> fit = vd.identify(pendulum, swing(3.0))
    >>> bool(vd.validate(fit, swing(5.0)).relative_error < 1e-9)
    True
    """
    if isinstance(fit, CarFit) or (isinstance(fit, Machine) and fit.car is not None):
        given = dict.fromkeys(changed(settings or IdentifySettings()), True)
        return validate_car(fit, data, by, progress, rows=rows, executor=executor, **given)
    if isinstance(fit, Fit) and fit.estimator == Drives.title:
        from veridyn.identify.drives.drive_result import validate_drives  # here: it brings the compiler along

        given = dict.fromkeys(changed(settings or IdentifySettings()), True)
        return validate_drives(fit, data, by, progress, rows=rows, executor=executor, **given)
    if isinstance(fit, Machine):
        missing = fit.parameters.missing()
        if missing:
            listed = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
            raise DataError(
                f"{len(missing)} parameters have no value, so it predicts nothing: {listed}.", where=fit.name
            )
    machine, phi = (fit, fit.parameters.values) if isinstance(fit, Machine) else (fit.described, fit.standard)
    motion = prepared_motions(machine, data)
    if by == "prediction":
        raise CapabilityError(machine.formulation, "validation by prediction", *ONLY_CARS, where="validate, by")
    if by not in ("fit", "forces", "simulation"):
        raise DataError(
            f"there is no comparison '{by}'.", where="validate, by", expected="'fit', 'forces' or 'simulation'"
        )
    if by == "simulation" or (by == "fit" and isinstance(fit, Fit) and fit.replay_settings is not None):
        if rows is not None:
            hint = "Leave rows out, or compare forces: by='forces'."
            raise DataError("a simulation compares coordinates, not rows.", where="validate, rows", hint=hint)
        return replayed(fit, motion)
    several = [motion] if isinstance(motion, Motion) else motion
    own = "all" if isinstance(fit, Machine) else equation_rows(fit)
    chosen = own if rows is None else rows
    machine = with_known_gains(machine, several, phi)
    how = settings or IdentifySettings()
    if how.sampling is not None:
        used = measured_rows(machine, several, chosen)[0]
        how = replace(how, sampling=with_dead_zones(how.sampling, machine, several, used))
    found = validation_of(observed(stream(machine, motion, chosen, how, executor=executor, progress=progress)), phi)
    along = motion if isinstance(motion, Motion) else motion[0] if len(motion) == 1 else None
    return replace(found, fit=fit if isinstance(fit, Fit) else None, motion=along, sampling=how.sampling)


def validation_of(factors: RowFactors, phi: Array) -> Validation:
    """What parameters, all of the tree's, leave of equations that are streamed already."""
    return Validation(tuple(f.report(phi[list(f.columns)]) for f in factors.rows))


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
    if not horizon > 0.0 or substeps < 1:
        expected, found = "a horizon above 0 s and 1 or more substeps", f"{horizon} s and {substeps}"
        raise DataError("a replay needs time and steps.", where="replay", expected=expected, found=found)
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
    model, runs = run_residuals(machine, [motion] if isinstance(motion, Motion) else list(motion), settings, compare)
    error, size = np.zeros(len(model.outputs)), [Moments()] * len(model.outputs)
    for measured, residuals in runs:
        error += (residuals**2).sum(axis=(0, 1))
        size = moments_of_runs(measured, size)
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
