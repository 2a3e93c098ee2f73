"""A fit on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault
from veridyn.identify.dead_zone import with_dead_zones
from veridyn.identify.error_measures import RowReport, relative_error, row_table, std_error, std_errors, worst_judged
from veridyn.identify.logged import prepared_motions
from veridyn.identify.observation import measured_rows, observation
from veridyn.identify.result import Fit
from veridyn.identify.row_factors import RowFactors
from veridyn.identify.sampling import Sampling
from veridyn.lazy import above
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Validation:
    """Errors of each row on another motion, by the two measures of :mod:`veridyn.identify.error_measures`.

    `fit`, `motion` and `sampling`: what was compared, for pictures, where one motion was.
    """

    rows: tuple[RowReport, ...]
    fit: Fit | None = field(default=None, compare=False)
    motion: Motion | None = field(default=None, compare=False)
    sampling: Sampling | None = field(default=None, compare=False)

    def __getitem__(self, row: str) -> RowReport:
        return {r.row: r for r in self.rows}[row]

    @property
    def worst(self) -> RowReport:
        """The row with the largest relative error among those that measure something."""
        measured = [r for r in self.rows if r.measured_rms > 0]
        return max(measured, key=lambda r: r.relative_error)

    @property
    def relative_error(self) -> float:
        """√(Σ ‖r_j‖² / Σ ‖y_j‖²) over all equations."""
        return relative_error(self.rows)

    @property
    def std_errors(self) -> dict[str, float]:
        """Unit → rms(r)/std(y) over its judged rows, which count by their variance."""
        return std_errors(self.rows)

    @property
    def std_error(self) -> float:
        """The largest of :attr:`std_errors`, the headline; NaN where no row is judged."""
        return std_error(self.rows)

    @property
    def worst_judged(self) -> RowReport | None:
        """The judged row with the largest std error; None where no row is judged."""
        return worst_judged(self.rows)

    @property
    def table(self) -> dict[str, dict[str, float]]:
        """Row → samples, rms error, size of the measured force and both errors in percent, as a run's record keeps them.

        `judged` is 1 or 0; `measured_noise` is the standard deviation of the white part of the measured force.
        """
        return {
            r.row: {
                "samples": float(r.samples),
                "rms": r.rms,
                "measured_rms": r.measured_rms,
                "measured_std": r.measured_std,
                "measured_noise": r.noise,
                "error_percent": 100.0 * r.relative_error,
                "error_std_percent": 100.0 * r.std_error,
                "judged": float(r.judged),
            }
            for r in self.rows
        }

    def __repr__(self) -> str:
        return f"Validation({len(self.rows)} rows, error {100.0 * self.std_error:.3g} % of the standard deviation)"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_validation")(self)._repr_html_()

    def plot(self, *rows: str) -> Any:
        """Forces along the motion, measured and predicted, and what is left over, of all rows or of those that are named.

        For a notebook; ``save(path)`` of what it gives writes a page.
        """
        return above("veridyn.report.notebook", "plot_validation")(self, *rows)

    def to_frame(self) -> Any:
        """A pandas data frame with a line for each row: samples, errors and sizes, as in :attr:`table`, and the unit."""
        return above("veridyn.report.frames", "frame_of_rows")(self.rows)

    def summary(self) -> str:
        """A table of the rows: rms errors with their unit, and both measures in percent."""
        return "\n".join(row_table(self.rows))


@checked
def validate(
    fit: Fit | Machine | Tree,
    motion: Motion | Experiment | Sequence[Motion | Experiment],
    *,
    rows: Rows | None = None,
    sampling: Sampling | None = None,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Validation:
    """Measured forces of a motion against those that a fit predicts, row by row: rms, ‖r‖/‖y‖ and rms(r)/std(y).

    y is the measured force before known parameters are subtracted; members of a group that the fit could not separate keep their priors.

    Parameters
    ----------
    fit : Fit, Machine or Tree
        The identified model; a machine or tree is taken as it is, all its values known.
    motion : Motion, Experiment, or a sequence of them
        Samples that were not used for the fit, with measured forces (N, n) in N*m or N. A log is prepared by :func:`veridyn.motion` with
        default settings, as :func:`identify` does it.
    rows : "all", "joints", "base", "actuated", or names, optional
        The equations that are compared; those of the fit by default.
    sampling : Sampling, optional
        Filter, decimation, dead zones and masks, as in :func:`identify`; every sample as it is by default.
    engine : {"auto", "compiled", "numpy"}
        Machine code, the NumPy reference, or machine code where there are enough samples to pay for compiling (the default).
    executor : concurrent.futures.Executor, optional
        Shares out the samples; they are streamed in this thread by default.
    progress : callable (task, done, total), optional
        Called as the samples are streamed.

    Returns
    -------
    Validation
        Errors of each row, ``std_error`` and ``relative_error`` over all rows, ``worst``, ``worst_judged`` and ``summary()``.

    Raises
    ------
    DataError
        The motion lacks what these rows need, or a parameter of a machine has no value.

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
        fit = fit.tree
    if isinstance(fit, Tree):
        missing = fit.parameters.missing()
        if missing:
            listed = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
            raise DataError(
                Fault(f"{len(missing)} parameters have no value, so it predicts nothing: {listed}.", fit.name)
            )
    tree, phi = (fit, fit.parameters.values) if isinstance(fit, Tree) else (fit.tree, fit.standard)
    motion = prepared_motions(tree, motion)
    own = "all" if isinstance(fit, Tree) else [r.row for r in fit.rows]
    chosen = own if rows is None else rows
    if sampling is not None:
        several = [motion] if isinstance(motion, Motion) else motion
        sampling = with_dead_zones(sampling, tree, several, measured_rows(tree, several, chosen)[0])
    observed = observation(tree, motion, chosen, sampling, engine=engine, executor=executor, progress=progress)
    found = validation_of(observed, phi)
    along = motion if isinstance(motion, Motion) else motion[0] if len(motion) == 1 else None
    return replace(found, fit=fit if isinstance(fit, Fit) else None, motion=along, sampling=sampling)


def validation_of(observed: RowFactors, phi: Array) -> Validation:
    """What parameters, all of the tree's, leave of equations that are streamed already."""
    return Validation(tuple(f.report(phi[list(f.columns)]) for f in observed.rows))


def predicted(
    fit: Fit, motion: Motion, rows: Rows | None = None, sampling: Sampling | None = None
) -> tuple[tuple[str, ...], Array, Array]:
    """Names, measured and predicted sides (N, rows) of each row along a motion, for plots; unfiltered.

    What known drive gains make of their signals stands on the measured side. Of `sampling` only the paths of projected rows count
    (``Sampling.along``).
    """
    tree, how = fit.tree, sampling or Sampling()
    phi = fit.standard.copy()
    chosen = tree.select_rows([r.row for r in fit.rows] if rows is None else rows)
    names = tuple(tree.rows[r] for r in chosen)
    forces = np.zeros((len(motion), len(tree.rows)))
    if motion.forces is not None:
        forces[:, len(tree.rows) - tree.n :] = np.where(tree.actuated, motion.forces, 0.0)
    for e in tree.elements:
        place = tree.parameters.index(e.parameter_name)
        if e.kind == "drive_gain" and tree.parameters.states[place] == "known":
            for c, share in e.on.items():
                row = np.nan_to_num(forces[:, tree.rows.index(c)]) if motion.forces is not None else 0.0
                forces[:, tree.rows.index(c)] = row + share * phi[place] * motion.signals[e.signal]
            phi[place] = 0.0
    unloaded = replace(motion, wrenches={})
    outside = external_rows(tree, motion)
    own = (forces - outside)[:, list(chosen)]
    added = list(dict.fromkeys(other for name in names for other in how.path(name) if other not in names))
    model = dict(zip([*names, *added], inverse_dynamics(tree, unloaded, [*names, *added], phi).T, strict=True))
    both = np.column_stack([model[name] for name in names])
    for k, name in enumerate(names):
        for other, signal in how.path(name).items():
            slope = motion.signals[signal]
            own[:, k] -= slope * outside[:, tree.rows.index(other)]
            both[:, k] += slope * model[other]
    return names, own, both
