"""Readings that a study withholds from its filter, to judge it by: compared with their predictions, and never used.

    ν = y − h(x̂),    σ² = h P hᵀ + r        x̂, P: what the filter knows without these readings

`rms_withheld_OUTPUT` is the rms of ν, and `share_inside_two_sigma_withheld_OUTPUT` the share of |ν| ≤ 2σ, 0.95 where the filter knows how
far it is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import did_you_mean
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Estimates
from veridyn.studies.config.study import Loaded

Spans = Mapping[str, Sequence[tuple[float, float]]]
TWO_SIGMA = 2.0


def withhold(
    loaded: Loaded[Any], readings: Measurements, owners: Sequence[str], delays: Sequence[float]
) -> Measurements:
    """The readings with those flagged that the study withholds. `owners` and `delays`: sensor of each output, and how late it is (s).

    A name that is no sensor, and a span without any reading, are faults of the study file.
    """
    spans: Spans = loaded.study.withheld
    off, faults = np.zeros(readings.values.shape, dtype=np.bool_), []
    for name, own in spans.items():
        columns = [j for j, owner in enumerate(owners) if owner == name]
        if not columns:
            hint = did_you_mean(name, list(dict.fromkeys(owners)))
            faults.append(loaded.fault(("withheld", name), f"'{name}' is no sensor that is observed.", hint=hint))
            continue
        for low, high in own:
            found = False
            for j in columns:
                stamps = readings.t + delays[j]
                rows = (stamps >= low) & (stamps <= high) & (readings.flags[:, j] == Status.USED)
                off[:, j] |= rows
                found |= bool(rows.any())
            if not found:
                what = f"no reading of '{name}' lies from {low:g} s to {high:g} s."
                seen = f"{readings.t[0] + delays[columns[0]]:.6g} s to {readings.t[-1] + delays[columns[0]]:.6g} s"
                faults.append(loaded.fault(("withheld", name), what, "spans [from, to] within the log", seen))
    if faults:
        raise loaded.error(faults)
    return readings.flagged(off, Status.WITHHELD) if off.any() else readings


@dataclass(frozen=True, eq=False)
class WithheldOutput:
    """Prediction errors of the withheld readings of one output, and the deviations that the filter states for them."""

    output: str
    t: Array
    errors: Array
    sigma: Array

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def share_inside(self) -> float:
        """The share of the readings within two deviations of their prediction."""
        return float(np.mean(np.abs(self.errors) <= TWO_SIGMA * self.sigma))


def withheld_outputs(e: Estimates) -> Iterator[WithheldOutput]:
    """The outputs with withheld readings."""
    for j, name in enumerate(e.outputs):
        rows = (e.status[:, j] == Status.WITHHELD) & np.isfinite(e.innovations[:, j])
        if rows.any():
            yield WithheldOutput(name, e.t[rows], e.innovations[rows, j], np.sqrt(e.innovation_variances[rows, j]))


def withheld_figures(e: Estimates) -> dict[str, float]:
    """What withheld readings say, named as in `result.json`; nothing where none were withheld."""
    figures: dict[str, float] = {}
    for one in withheld_outputs(e):
        figures[f"rms_withheld_{one.output}"] = one.rms
        figures[f"share_inside_two_sigma_withheld_{one.output}"] = one.share_inside
    return figures
