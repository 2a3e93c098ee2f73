"""A fit on data it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.observation import Observation, Sampling, observation
from veridyn.identify.result import Fit, RowReport, relative_error
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Validation:
    """Errors of each row on another motion. `relative_error` is ‖r‖/‖y‖ over all rows, each by its own rms where it measures anything."""

    rows: tuple[RowReport, ...]

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
    def table(self) -> dict[str, dict[str, float]]:
        """Row → samples, rms error, measured rms and error in percent, as a run's record keeps them."""
        return {
            r.row: {
                "samples": float(r.samples),
                "rms": r.rms,
                "measured_rms": r.measured_rms,
                "error_percent": 100.0 * r.relative_error,
            }
            for r in self.rows
        }

    def summary(self) -> str:
        lines = [f"{'row':<14}{'samples':>10}{'rms error':>12}{'measured rms':>14}{'error %':>9}"]
        lines += [
            f"{r.row:<14}{r.samples:10d}{r.rms:12.4g}{r.measured_rms:14.6g}{100 * r.relative_error:9.2f}"
            for r in self.rows
        ]
        return "\n".join(lines)


def validate(
    fit: Fit | Tree,
    motion: Motion | Sequence[Motion],
    *,
    rows: Rows | None = None,
    sampling: Sampling | None = None,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Validation:
    """Measured forces of a motion against those the fit predicts, row by row: rms and ‖r‖/‖y‖.

    A tree in place of a fit is taken as it is, all its values known.

    y is the measured side without known parameters, as in the fit; members of a group that the fit could not separate keep their priors.
    `rows` are those of the fit unless others are named. The samples go through `sampling` as in an identification.
    """
    if isinstance(fit, Tree):
        missing = fit.parameters.missing()
        if missing:
            listed = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
            raise DataError(
                Fault(f"{len(missing)} parameters have no value, so it predicts nothing: {listed}.", fit.name)
            )
    tree, phi = (fit, fit.parameters.values) if isinstance(fit, Tree) else (fit.tree, fit.standard)
    own = "all" if isinstance(fit, Tree) else [r.row for r in fit.rows]
    chosen = own if rows is None else rows
    observed = observation(tree, motion, chosen, sampling, engine=engine, executor=executor, progress=progress)
    return validation_of(observed, phi)


def validation_of(observed: Observation, phi: Array) -> Validation:
    """What parameters, all of the tree's, leave of equations that are streamed already."""
    reports = []
    for f in observed.rows:
        root = np.sqrt(max(f.samples, 1))
        values = phi[list(f.columns)]
        reports.append(RowReport(f.row, f.samples, f.residual(values) / root, f.measurement_norm / root))
    return Validation(tuple(reports))


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
