"""How far forces are from what was measured: two measures, defined once for training, validation, papers and benchmarks.

With r the residual of a row and y its measured force (what motors and wrenches give, **before** known parameters are subtracted),

    relative error  ‖r‖/‖y‖             as published figures; a static load makes it small (``…_percent``)
    std error       rms(r)/std(y)       what is left of the force that varies, the headline (``…_std_percent``)

and rms(r) in N or N*m beside them. Over several rows of one unit the std error is √(Σ N_j rms_j² / Σ N_j std_j²): rows count by their
variance. Rows of different unit are not pooled. A row whose standard deviation is below three times its noise carries nothing that a
model could explain: it is listed, and not judged.

The noise of y is estimated without any model from second differences of consecutive equations, √(Σ (y_{k−1} − 2 y_k + y_{k+1})²/6n): exact
for white noise on a force that is sampled densely, too small for filtered noise, too large for a force with most of its power above a
sixth of the sampling rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.model.machine import Machine

MIN_SIGNAL_TO_NOISE = 3.0  # standard deviation of a row over its noise from which its error is judged
# Standard errors that the noise may be underestimated before a residual counts as more than noise
NOISE_MARGIN_SIGMAS = 3.0
TRIPLE_VARIANCE = 70.0 / 18.0  # n times the relative variance of Σ(second difference)²/6n for white normal noise


@dataclass(frozen=True)
class Moments:
    """Mean and scatter Σ (y − mean)² of `samples` measured forces, and `roughness` Σ (y_{k−1} − 2 y_k + y_{k+1})² of `triples`."""

    samples: int = 0
    mean: float = 0.0
    scatter: float = 0.0
    roughness: float = 0.0
    triples: int = 0

    @classmethod
    def of(cls, y: Array, used: NDArray[np.bool_] | None = None) -> Moments:
        """Of forces y (n,); `used` (m,) with n of them true: which of m consecutive equations they are, all by default."""
        if not len(y):
            return cls()
        mean = float(y.mean())
        off = y - mean
        second = off[:-2] - 2.0 * off[1:-1] + off[2:]
        if used is not None and not used.all():
            at = np.flatnonzero(used)
            second = second[at[2:] - at[:-2] == 2]
        return cls(len(y), mean, float(off @ off), float(second @ second), len(second))

    def merge(self, other: Moments) -> Moments:
        """Of both sets of samples (Chan, Golub and LeVeque, 1983); triples across their border are left out."""
        n = self.samples + other.samples
        if not self.samples or not other.samples:
            own = self if self.samples else other
            return replace(own, roughness=self.roughness + other.roughness, triples=self.triples + other.triples)
        step = other.mean - self.mean
        return Moments(
            n,
            self.mean + step * other.samples / n,
            self.scatter + other.scatter + step**2 * self.samples * other.samples / n,
            self.roughness + other.roughness,
            self.triples + other.triples,
        )

    def scaled(self, factor: float) -> Moments:
        """Of `factor` times y."""
        square = factor**2
        return replace(self, mean=factor * self.mean, scatter=square * self.scatter, roughness=square * self.roughness)

    def with_noise_of(self, other: Moments | None) -> Moments:
        """These moments with the roughness of others, which know the noise better; as they are without others."""
        return self if other is None else replace(self, roughness=other.roughness, triples=other.triples)

    @property
    def rms(self) -> float:
        """√(Σ y²/N)."""
        return math.sqrt(self.mean**2 + self.scatter / self.samples) if self.samples else 0.0

    @property
    def std(self) -> float:
        """√(Σ (y − mean)²/N)."""
        return math.sqrt(self.scatter / self.samples) if self.samples else 0.0

    @property
    def noise(self) -> float:
        """Standard deviation of the white part of y; NaN where no three equations follow each other."""
        return math.sqrt(self.roughness / (6.0 * self.triples)) if self.triples else math.nan


def moments_of_runs(runs: Array, before: Sequence[Moments] | None = None) -> list[Moments]:
    """For each column of runs (runs, samples, columns) the moments of all its samples, added to those of `before`."""
    found = list(before or [Moments()] * runs.shape[2])
    for run in runs:
        found = [m.merge(Moments.of(y)) for m, y in zip(found, run.T, strict=True)]
    return found


@dataclass(frozen=True)
class RowReport:
    """One row of a fit or of a validation: equations, rms of the error, and rms, standard deviation and noise of the measured force.

    `sigma`: the standard deviation by which a fit weighs the row. `unit`: of all of them. `noise` and `measured_std` are NaN where they are
    not known. `nis`: where a filter predicts the row, mean error² over the variance that it states; NaN otherwise.
    """

    row: str
    samples: int
    rms: float
    measured_rms: float
    sigma: float = math.nan
    measured_std: float = field(default=math.nan, kw_only=True)
    noise: float = field(default=math.nan, kw_only=True)
    unit: str = field(default="", kw_only=True)
    nis: float = field(default=math.nan, kw_only=True, compare=False)

    @property
    def relative_error(self) -> float:
        """‖r‖ / ‖y‖; NaN where nothing is measured."""
        return self.rms / self.measured_rms if self.measured_rms > 0 else math.nan

    @property
    def std_error(self) -> float:
        """rms(r) / std(y); NaN where the measured force does not vary."""
        return self.rms / self.measured_std if self.measured_std > 0 else math.nan

    @property
    def judged(self) -> bool:
        """Whether the measured force varies by more than its noise explains, so that its error says something of the model."""
        return self.measured_std > 0.0 and not self.measured_std < MIN_SIGNAL_TO_NOISE * self._white

    @property
    def error_beyond_noise(self) -> float:
        """√(rms(r)² − noise²) / std(y): what noise of the measured force does not explain; 0 where it explains all."""
        margin = 1.0 + NOISE_MARGIN_SIGMAS * math.sqrt(TRIPLE_VARIANCE / max(self.samples, 1))
        rest = math.sqrt(max(self.rms**2 - margin * self._white**2, 0.0)) if math.isfinite(self.rms) else self.rms
        return rest / self.measured_std if self.measured_std > 0 else math.nan

    @property
    def _white(self) -> float:
        """The noise, which is never more than what a model leaves over; 0 where it is not known."""
        return min(self.noise, self.rms) if math.isfinite(self.noise) and math.isfinite(self.rms) else 0.0


def relative_error(rows: Iterable[RowReport]) -> float:
    """√(Σ ‖r_j‖² / Σ ‖y_j‖²) over rows, whatever their units, as published; NaN where they measure nothing."""
    several = tuple(rows)
    error = sum(r.samples * r.rms**2 for r in several)
    size = sum(r.samples * r.measured_rms**2 for r in several)
    return math.sqrt(error / size) if size > 0 else math.nan


def std_errors(rows: Iterable[RowReport]) -> dict[str, float]:
    """Unit → √(Σ N_j rms_j² / Σ N_j std_j²) over the judged rows of that unit; units without one are left out."""
    judged = [r for r in rows if r.judged]
    out: dict[str, float] = {}
    for unit in dict.fromkeys(r.unit for r in judged):
        own = [r for r in judged if r.unit == unit]
        out[unit] = math.sqrt(sum(r.samples * r.rms**2 for r in own) / sum(r.samples * r.measured_std**2 for r in own))
    return out


def std_error(rows: Iterable[RowReport]) -> float:
    """The largest of :func:`std_errors`; NaN where no row is judged."""
    return max(std_errors(rows).values(), default=math.nan)


def worst_judged(rows: Iterable[RowReport]) -> RowReport | None:
    """The judged row with the largest std error; None where no row is judged."""
    return max((r for r in rows if r.judged), key=lambda r: r.std_error, default=None)


def worst_measured(rows: Iterable[RowReport]) -> RowReport | None:
    """The row with the largest relative error; None where no row measures anything."""
    return max((r for r in rows if r.measured_rms > 0.0), key=lambda r: r.relative_error, default=None)


def nothing_judged(rows: Iterable[RowReport], what: str, noise: str = "its noise") -> str:
    """Why none of these rows can be judged, in words; empty where one can, and where there are none."""
    several = tuple(rows)
    if not several or any(r.judged for r in several):
        return ""
    return f"no {what} varies by more than {MIN_SIGNAL_TO_NOISE:g} times {noise}"


def row_table(rows: Iterable[RowReport]) -> list[str]:
    """Lines of plain text: rms error, rms and standard deviation of the measured force with their unit, and both measures in percent.

    Rows that are not judged carry a note.
    """
    several = tuple(rows)
    wide = max([14, *(len(r.row) + 2 for r in several)])
    head = f"{'row':<{wide}}{'samples':>10}{'rms error':>12}{'measured rms':>14}{'std':>12}{'error %':>9}{'of std %':>10}  unit"
    return [head] + [
        f"{r.row:<{wide}}{r.samples:10d}{r.rms:12.4g}{r.measured_rms:14.6g}{r.measured_std:12.4g}"
        f"{100 * r.relative_error:9.2f}{100 * r.std_error:10.2f}  {r.unit}"
        + ("" if r.judged or math.isnan(r.measured_std) else "  not judged: varies by no more than noise")
        for r in several
    ]


def row_unit(machine: Machine, row: str) -> str:
    """N for sliding rows and forces of the base, N*m for turning rows and its moments."""
    if row in machine.coordinates:
        return "N*m" if machine.coordinate_kinds[machine.coordinates.index(row)] == "turning" else "N"
    return "N*m" if row.startswith("m") else "N"
