"""That a low-pass of the equations leaves residuals correlated, so that deviations for uncorrelated ones are too small.

White noise behind a filter with gain g of white noise (:meth:`~veridyn.signals.butterworth.Butterworth.white_gain`) is nearly white
again at one equation in 1/g². With more of them each tells less than a new one, and deviations that count all as new are too small by up
to √(1/g²/decimate), as where the columns are as slow as the filter. It is reported where the residual shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.estimator import Estimator
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.estimators.weighted import OLS, WLS
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import predicted
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

OVERSAMPLED = (
    4.0  # equations for each independent one, from which it is reported: deviations are half of theirs (chosen)
)
CORRELATED = 0.75  # of neighbouring residuals; white noise that is so often sampled has .9
SEEN = 4000  # samples of the first motion, which show it
FEWEST = 50  # residuals from which a correlation is told


def assumes_uncorrelated(method: Estimator) -> bool:
    """Whether the deviations of a method, unless its covariance is "hac", are those for uncorrelated residuals."""
    return isinstance(method, OLS | WLS | Robust | Prior | Consistent)


def oversampled_rows(fit: Fit, motions: Sequence[Motion], sampling: Sampling) -> list[Mistake]:
    """Rows whose filter is so low beside the rate of the equations that neighbouring residuals are correlated, and are."""
    m = motions[0][:SEEN]
    if len(m) < FEWEST * sampling.decimate:
        return []
    rate = uniform_rate(m.t, where="motion.t")
    steps = {}
    for r in fit.rows:
        low = sampling.filter_of(r.row)
        if low is not None and (step := 1.0 / low.white_gain(rate) ** 2) >= OVERSAMPLED * sampling.decimate:
            steps[r.row] = step
    if not steps:
        return []
    names, measured, model = predicted(fit, m, list(steps), sampling)
    found = {}
    for k, row in enumerate(names):
        residual, low = measured[:, k] - model[:, k], sampling.filter_of(row)
        assert low is not None  # of the rows that have one
        if not np.isfinite(residual).all():
            continue
        used = sampling.uses(fit.described, row, m.qd, np.arange(len(m)), len(m))
        kept = zero_phase(residual, rate, low)[:: sampling.decimate]
        both = used[:: sampling.decimate][1:] & used[:: sampling.decimate][:-1]
        first, second = kept[:-1][both], kept[1:][both]
        if len(first) >= FEWEST and (size := float(first @ first + second @ second)) > 0.0:
            correlation = 2.0 * float(first @ second) / size
            if correlation >= CORRELATED:
                found[row] = correlation
    if not found:
        return []
    fastest = int(min(steps[row] for row in found))
    factor = max(np.sqrt(steps[row] / sampling.decimate) for row in found)
    return [
        Mistake(
            "oversampled",
            Fault(
                "the filter of the equations leaves their residuals correlated, so that deviations for uncorrelated residuals are too "
                f"small, by a factor of up to {factor:.2g}.",
                "sampling.decimate",
                f"one equation in {fastest} or so behind this filter at {rate:.4g} Hz",
                f"one in {sampling.decimate}; neighbouring residuals correlate by "
                + ", ".join(f"{x:.2f} ({row})" for row, x in found.items()),
                f"Set covariance='hac', or Sampling(decimate={fastest}).",
            ),
        )
    ]
