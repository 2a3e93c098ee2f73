"""A fit on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault
from veridyn.identify.dead_zone import with_dead_zones
from veridyn.identify.gains import delivering
from veridyn.identify.logged import prepared_motions
from veridyn.identify.observation import measured_rows, observation
from veridyn.identify.replay import replayed
from veridyn.identify.result import Fit
from veridyn.identify.row_factors import RowFactors
from veridyn.identify.sampling import Sampling
from veridyn.identify.validation import Validation as Validation
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]


@checked
def validate(
    fit: Fit | Machine,
    motion: Motion | Experiment | Sequence[Motion | Experiment],
    *,
    by: Literal["fit", "forces", "simulation"] = "fit",
    rows: Rows | None = None,
    sampling: Sampling | None = None,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Validation:
    """A fit on data not used for it, by what it was fitted to, row by row: rms, ‖r‖/‖y‖ and rms(r)/std(y).

    Measured forces y of a motion, before known parameters are subtracted, against those that the fit predicts; members of a group that the
    fit could not separate keep their priors. A fit by :class:`~veridyn.OutputError` is judged by its simulation: from the measured
    state, anew after each horizon of the fit, coordinates against the measured ones (:func:`~veridyn.identification.replay`).

    Parameters
    ----------
    fit : Fit or Machine
        The identified model; a machine or tree is taken as it is, all its values known.
    motion : Motion, Experiment, or a sequence of them
        Samples that were not used for the fit, with measured forces (N, n) in N*m or N. A log is prepared by :func:`veridyn.motion` with
        default settings, as :func:`identify` does it.
    by : {"fit", "forces", "simulation"}
        What is compared: what the fit was fitted to (the default; forces for a machine), forces, or a simulation, with the settings of the
        fit or the defaults of ``replay``.
    rows : "all", "joints", "base", "actuated", or names, optional
        The equations that are compared where forces are; those of the fit by default.
    sampling : Sampling, optional
        Filter, decimation, dead zones and masks of the equations, as in :func:`identify`; every sample as it is by default. A simulation
        has no equations, and compares every sample.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
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
    if isinstance(fit, Machine):
        missing = fit.parameters.missing()
        if missing:
            listed = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
            raise DataError(
                Fault(f"{len(missing)} parameters have no value, so it predicts nothing: {listed}.", fit.name)
            )
    machine, phi = (fit, fit.parameters.values) if isinstance(fit, Machine) else (fit.described, fit.standard)
    motion = prepared_motions(machine, motion)
    if by not in ("fit", "forces", "simulation"):
        raise DataError(Fault(f"there is no comparison '{by}'.", "validate, by", "'fit', 'forces' or 'simulation'"))
    if by == "simulation" or (by == "fit" and isinstance(fit, Fit) and fit.replay_settings is not None):
        if rows is not None:
            hint = "Leave rows out, or compare forces: by='forces'."
            raise DataError(Fault("a simulation compares coordinates, not rows.", "validate, rows", hint=hint))
        return replayed(fit, motion)
    several = [motion] if isinstance(motion, Motion) else motion
    own = "all" if isinstance(fit, Machine) else equation_rows(fit)
    chosen = own if rows is None else rows
    machine = delivering(machine, several, phi)
    if sampling is not None:
        sampling = with_dead_zones(sampling, machine, several, measured_rows(machine, several, chosen)[0])
    observed = observation(machine, motion, chosen, sampling, engine=engine, executor=executor, progress=progress)
    found = validation_of(observed, phi)
    along = motion if isinstance(motion, Motion) else motion[0] if len(motion) == 1 else None
    return replace(found, fit=fit if isinstance(fit, Fit) else None, motion=along, sampling=sampling)


def validation_of(observed: RowFactors, phi: Array) -> Validation:
    """What parameters, all of the tree's, leave of equations that are streamed already."""
    return Validation(tuple(f.report(phi[list(f.columns)]) for f in observed.rows))


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
    machine = delivering(fit.described, [motion], phi)
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
