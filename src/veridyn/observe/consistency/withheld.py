"""Readings that are withheld from a filter, to judge it by: they are compared with their predictions and never used.

    ν = y − h(x̂),    σ² = h P hᵀ + r        x̂, P: what the filter knows without these readings

`rms_withheld_OUTPUT` is the rms of ν, and `share_inside_two_sigma_withheld_OUTPUT` the share of |ν| ≤ 2σ, 0.95 where the filter knows how
far it is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean, part_at
from veridyn.mechanics.formulation import Outputs
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Estimates

Spans = Mapping[str, Sequence[tuple[float, float]]]
TWO_SIGMA = 2.0


def withhold(readings: Measurements, table: Outputs, spans: Spans) -> Measurements:
    """The readings with those flagged WITHHELD that lie in `spans`, sensor → [from, to] (s) as its own clock counts.

    A name that is no sensor, and a span without any reading, are refused.
    """
    off, faults = np.zeros(readings.values.shape, dtype=np.bool_), Faults()
    sensors = {name: table.sensors[k] for name, k in zip(table.names, table.owner, strict=True)}
    owners = [sensors[output] for output in readings.names]
    for name, own in spans.items():
        columns = [j for j, sensor in enumerate(owners) if sensor.name == name]
        where = part_at("withheld", name)
        if not columns:
            hint = did_you_mean(name, list(dict.fromkeys(s.name for s in owners)))
            faults.add(f"'{name}' is no sensor that is observed.", where=where, hint=hint)
            continue
        stamps = readings.t + owners[columns[0]].delay
        for low, high in own:
            rows = (stamps >= low) & (stamps <= high)
            inside = rows[:, None] & (readings.flags[:, columns] == Status.USED)
            off[:, columns] |= inside
            if not inside.any():
                what = f"no reading of '{name}' lies from {low:g} s to {high:g} s."
                found = f"{stamps[0]:.6g} s to {stamps[-1]:.6g} s"
                faults.add(what, where=where, expected="spans [from, to] within the log", found=found)
    faults.raise_if_any(DataError)
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
