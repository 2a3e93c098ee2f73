"""The rule by which samples become equations where nobody says how: the same for Python, study files and the command line.

Positions that passed a low-pass bend motion that is faster than its cut-off, and the measured forces do not. So both sides of the equations
pass it once more (parallel filtering, Venture et al. 2006, section IV.C), and of what it leaves one equation in 1/g² is kept, g² its share
of white noise: so many are independent. A short log keeps more, EQUATIONS_PER_PARAMETER for each combination of parameters. Samples near
standstill are left out where there is dry friction (:func:`~veridyn.identify.regression.sampling.choose_dead_zones`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from veridyn.errors import DataError, Fault
from veridyn.identify.base import base_parameters
from veridyn.identify.regression.sampling import Sampling, measured_rows, with_dead_zones
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.resample import uniform_rate

EQUATIONS_PER_PARAMETER = 4  # of each row and base parameter that filter and decimation leave at least (chosen)
WIDEST_FILTER_SHARE = 0.4  # of the rate: in place of a wider filter of the equations none is proposed


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplingRule:
    """What is left to be chosen of a sampling, for a machine and the rows that are used, at `rate` (Hz).

    `filter`: that of the equations; `decimate` and `dead_zone` as of a :class:`~veridyn.estimators.Sampling`, or "auto"; `trim` samples
    are left out at both ends.
    """

    machine: Machine
    rows: Rows
    rate: float
    filter: Butterworth | None = None
    decimate: int | Literal["auto"] = "auto"
    dead_zone: Mapping[str, float] | float | Literal["auto"] = "auto"
    trim: int = 0

    @cached_property
    def combinations(self) -> int:
        """How many combinations of parameters the rows can identify."""
        return base_parameters(self.machine, rows=self.rows).count

    def behind(self, low: Butterworth | None) -> SamplingRule:
        """The same rule with another filter of the equations; combinations are not counted again."""
        other = replace(self, filter=low)
        if self.decimate == "auto":  # nothing else counts them
            vars(other)["combinations"] = self.combinations
        return other

    def of(self, motions: Sequence[Motion]) -> Sampling:
        """The sampling of some motions."""
        if self.decimate != "auto":
            step = self.decimate
        elif self.filter is None:
            step = 1
        else:
            enough = EQUATIONS_PER_PARAMETER * self.combinations
            step = min(independent_step(self.filter, self.rate), sum(len(m) for m in motions) // enough)
        chosen = Sampling(filter=self.filter, decimate=max(1, step), dead_zone=self.dead_zone, trim=self.trim)
        return with_dead_zones(chosen, self.machine, motions, self.rows)

    def few_equations(self, samples: int, how: Sampling) -> Fault | None:
        """That the filter of the equations leaves too few independent ones for each parameter, so that more are kept."""
        low = self.filter
        if low is None or self.decimate != "auto" or how.decimate >= independent_step(low, self.rate):
            return None
        step, enough = independent_step(low, self.rate), EQUATIONS_PER_PARAMETER * self.combinations
        cutoff = float(np.max(low.cutoff))
        wider = float(f"{cutoff * enough * step / samples:.2g}")
        other = f"{wider:g}" if wider < WIDEST_FILTER_SHARE * self.rate else "none"
        return Fault(
            f"the low-pass of the equations at {cutoff:g} Hz leaves few independent ones, so that residuals of those kept are correlated, "
            "and deviations allow for that (covariance: auto).",
            "sampling.filter",
            f"{enough} independent equations of each row, {EQUATIONS_PER_PARAMETER} for each of {self.combinations} base parameters",
            f"{samples // step}: one in {step} of {samples} samples is independent, and one in {how.decimate} is kept",
            f"Record longer, or filter less: sampling: {{filter: {other}}}.",
        )


def independent_step(low: Butterworth, rate: float) -> int:
    """One equation in so many is independent of the others: what a low-pass leaves of white noise is white again at that rate."""
    return round(1.0 / low.white_gain(rate) ** 2)


def default_sampling(
    machine: Machine, motions: Sequence[Motion], rows: Rows = "all", *, filters: bool = True
) -> Sampling:
    """The sampling of motions by the rule; of motions that were not made from logs, every sample as it is.

    `filters` False leaves the equations unfiltered, as they also are where a motion has gaps that a filter would smear, or a clock that is
    not uniform.
    """
    if any(m.noise_bands is None for m in motions):
        return Sampling()
    used = measured_rows(machine, motions, rows)[0]
    low, rate = _shared_lowpass(motions) if filters else (None, 0.0)
    return SamplingRule(machine=machine, rows=used, rate=rate, filter=low).of(motions)


def _shared_lowpass(motions: Sequence[Motion]) -> tuple[Butterworth | None, float]:
    """The low-pass that the positions of all motions have passed, and the rate at which it was; None where there is no such."""
    passed = {m.lowpass for m in motions}
    one = passed.pop() if len(passed) == 1 else None
    if one is None:
        return None, 0.0
    try:
        rates = [uniform_rate(m.t) for m in motions]
    except DataError:
        return None, 0.0
    low = Butterworth(*one)
    gaps = any(_has_gaps(m) for m in motions)
    short = any(len(m) <= low.padding for m in motions)
    return (None, 0.0) if gaps or short or one[0] >= 0.5 * min(rates) else (low, rates[0])


def _has_gaps(m: Motion) -> bool:
    """Whether a force is missing in some samples and measured in others."""
    if m.forces is None:
        return False
    missing = np.isnan(m.forces)
    return bool((missing.any(axis=0) & ~missing.all(axis=0)).any())
