"""One parameter of a result as a line of a table: value, standard deviation, prior, and the truth where it is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NAN = float("nan")


@dataclass(frozen=True)
class ParameterRow:
    """One parameter: its estimate with standard deviation, its prior, and the truth where it is known (else NaN)."""

    name: str
    unit: str
    value: float
    sigma: float
    sigma_percent: float
    prior: float = NAN
    truth: float = NAN

    @property
    def inside(self) -> bool | None:
        """Whether the truth lies within 2σ; None where it is not known."""
        return abs(self.value - self.truth) <= 2.0 * self.sigma if math.isfinite(self.truth) else None


def parameter_row(
    name: str, unit: str, value: float, sigma: float, prior: float = NAN, truth: float = NAN
) -> ParameterRow:
    """A parameter with its deviation, and that in percent: infinite where the value is zero."""
    percent = 100.0 * sigma / abs(value) if value else math.inf
    return ParameterRow(name, unit, value, sigma, percent, prior, truth)


def parameter_rows(names: Sequence[str], units: Sequence[str], *columns: Iterable[float]) -> tuple[ParameterRow, ...]:
    """One row for each parameter; `columns` are the numbers of a row in its order, each over all parameters."""
    return tuple(
        ParameterRow(name, unit, *(float(x) for x in numbers))
        for name, unit, *numbers in zip(names, units, *columns, strict=True)
    )
