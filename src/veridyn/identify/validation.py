"""How far a fit is from held-out data: errors of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.inference.error_measures import (
    RowReport,
    relative_error,
    row_table,
    std_error,
    std_errors,
    worst_judged,
    worst_measured,
)
from veridyn.lazy import above
from veridyn.model.motion import Motion


@dataclass(frozen=True, repr=False)
class Validation:
    """Errors of each row on another motion, by the two measures of :mod:`veridyn.inference.error_measures`.

    `by`: whether rows are forces, against those of inverse dynamics, what a simulation was compared in, coordinates as a rule, or sensors
    predicted from one sample to the next, those of a car.
    `fit`, `motion` and `sampling`: what was compared, for pictures, where one motion was and rows are forces.
    """

    rows: tuple[RowReport, ...]
    by: Literal["forces", "simulation", "prediction"] = field(default="forces", kw_only=True)
    fit: Fit | None = field(default=None, compare=False)
    motion: Motion | None = field(default=None, compare=False)
    sampling: Sampling | None = field(default=None, compare=False)

    def __getitem__(self, row: str) -> RowReport:
        return {r.row: r for r in self.rows}[row]

    @property
    def worst(self) -> RowReport | None:
        """The row with the largest relative error; None where no row measures anything, as in a log at rest below the dead zones."""
        return worst_measured(self.rows)

    @property
    def worst_relative_error(self) -> float:
        """The relative error of :attr:`worst`; NaN where there is none."""
        return math.nan if self.worst is None else self.worst.relative_error

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
    def nis(self) -> dict[str, float]:
        """Of rows that a filter predicts: mean r²/var(r) as the filter states it, ideal 1."""
        return {r.row: r.nis for r in self.rows if math.isfinite(r.nis)}

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
                **({"nis": r.nis} if r.row in self.nis else {}),
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
        return above("veridyn.report.notebook", "frame_of_rows")(self.rows)

    def summary(self) -> str:
        """A table of the rows: rms errors with their unit, and both measures in percent."""
        return "\n".join(row_table(self.rows))
