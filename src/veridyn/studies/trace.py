"""Forces along a motion, measured and predicted, and whether what is left over is noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.error_measures import row_unit
from veridyn.identify.predict import predicted
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.recursion.samples import blocks
from veridyn.model.motion import Motion, joined_clock
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate
from veridyn.signals.whiteness import Whiteness, cumulative_periodogram

Array = NDArray[np.float64]
WHITE_LEVEL = 0.01  # for all rows of a fit together
FEWEST = 16  # samples from which a residual may be called white or not


@dataclass(frozen=True, eq=False)
class Trace:
    """Measured and predicted side (N, rows) of every row along one motion, both through the filter of the fit.

    `used`: which samples a row takes into account, before decimation: not those at the ends, in its dead zone, or masked.
    """

    t: Array
    rows: tuple[str, ...]
    units: tuple[str, ...]
    measured: Array
    predicted: Array
    used: NDArray[np.bool_]

    @property
    def residual(self) -> Array:
        return self.measured - self.predicted


def trace(fit: Fit, along: Motion, sampling: Sampling, progress: Progress = silent, before: int = 0) -> Trace:
    """What was measured and what the fit predicts, block by block, then through the filter of the fit.

    `before`: samples of the motions before this one, which masks count as well.
    """
    measured, model = [], []
    names: tuple[str, ...] = ()
    for part in blocks(len(along)):
        names, y, predicted_y = predicted(fit, along[part], sampling=sampling)
        measured.append(y)
        model.append(predicted_y)
        progress("forces", float(part.stop), float(len(along)))
    y, p = np.concatenate(measured), np.concatenate(model)
    for k, name in enumerate(names):
        low = sampling.filter_of(name)
        if low is not None and np.isfinite(y[:, k]).all():  # a filter would smear gaps; such rows are shown as measured
            rate = uniform_rate(along.t, where="motion.t")
            y[:, k], p[:, k] = zero_phase(np.column_stack([y[:, k], p[:, k]]), rate, low).T
    units = tuple(row_unit(fit.described, name) for name in names)
    numbers = np.arange(len(along))
    used = [sampling.uses(fit.described, name, along.qd, numbers, len(along), before) for name in names]
    return Trace(along.t, names, units, y, p, np.column_stack(used) & np.isfinite(y))


def joined_traces(parts: Sequence[Trace]) -> Trace:
    """Traces of several motions one after the other, on the clock of :func:`~veridyn.model.motion.joined`."""
    if len(parts) == 1:
        return parts[0]
    t = joined_clock([part.t for part in parts])
    stacked = (np.concatenate([getattr(part, name) for part in parts]) for name in ("measured", "predicted", "used"))
    return Trace(t, parts[0].rows, parts[0].units, *stacked)


def residual_whiteness(seen: Trace, how: Sampling) -> dict[str, Whiteness]:
    """Of each row's residual at the samples that became equations; a row that is exact, or has few of them, has none.

    The samples a row uses are joined across those it leaves out: white noise cut at places that know nothing of it is white, exactly,
    and a hum keeps its frequency but for the seams.
    """
    numbers = np.arange(len(seen.t))
    chosen = numbers[numbers % how.decimate == 0]
    found: dict[str, Whiteness] = {}
    if len(chosen) < FEWEST:
        return found
    rate = 1.0 / float(np.median(np.diff(seen.t[chosen])))
    rounding = 1e-9 * float(np.nanmax(np.abs(seen.measured), initial=0.0))
    for k, row in enumerate(seen.rows):
        r = seen.residual[chosen, k][seen.used[chosen, k]]
        if len(r) >= FEWEST and float(np.ptp(r)) > rounding:
            found[row] = cumulative_periodogram(r, rate, WHITE_LEVEL / len(seen.rows), where=f"residual of row '{row}'")
    return found
