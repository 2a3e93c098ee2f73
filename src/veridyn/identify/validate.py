"""A fit on data it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.observation import Sampling, observation
from veridyn.identify.result import Fit, RowReport
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.inverse import external_rows, inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows
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
        error = sum(r.samples * r.rms**2 for r in self.rows)
        size = sum(r.samples * r.measured_rms**2 for r in self.rows)
        return float(np.sqrt(error / size)) if size > 0 else float("nan")

    def summary(self) -> str:
        lines = [f"{'row':<14}{'samples':>10}{'rms error':>12}{'measured rms':>14}{'error %':>9}"]
        lines += [
            f"{r.row:<14}{r.samples:10d}{r.rms:12.4g}{r.measured_rms:14.6g}{100 * r.relative_error:9.2f}"
            for r in self.rows
        ]
        return "\n".join(lines)


def validate(
    fit: Fit,
    motion: Motion | Sequence[Motion],
    *,
    rows: Rows | None = None,
    sampling: Sampling | None = None,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Validation:
    """Measured forces of a motion against those the fit predicts, row by row: rms and ‖r‖/‖y‖.

    y is the measured side without known parameters, as in the fit; members of a group that the fit could not separate keep their priors.
    `rows` are those of the fit unless others are named. The samples go through `sampling` as in an identification.
    """
    names = [r.row for r in fit.rows] if rows is None else rows
    phi = fit.standard
    observed = observation(fit.tree, motion, names, sampling, engine=engine, executor=executor, progress=progress)
    reports = []
    for f in observed.rows:
        root = np.sqrt(max(f.samples, 1))
        values = phi[list(f.columns)]
        reports.append(RowReport(f.row, f.samples, f.residual(values) / root, f.measurement_norm / root))
    return Validation(tuple(reports))


def predicted(fit: Fit, motion: Motion, rows: Rows | None = None) -> tuple[tuple[str, ...], Array, Array]:
    """Names, measured and predicted sides (N, rows) of each row along a motion, for plots; unfiltered."""
    tree = fit.tree
    chosen = tree.select_rows([r.row for r in fit.rows] if rows is None else rows)
    names = tuple(tree.rows[r] for r in chosen)
    forces = np.zeros((len(motion), len(tree.rows)))
    if motion.forces is not None:
        forces[:, len(tree.rows) - tree.n :] = np.where(tree.actuated, motion.forces, 0.0)
    measured = forces - external_rows(tree, motion)
    unloaded = replace(motion, wrenches={})
    return names, measured[:, list(chosen)], inverse_dynamics(tree, unloaded, names, fit.standard)
