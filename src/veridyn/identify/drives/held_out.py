"""Whether a fit of drives follows what was held out less closely than the values of the model file, beyond chance.

Both simulate the same samples, so that their squared errors are compared in pairs: d(t) = |y − ŷ_fit|² − |y − ŷ_file|² over all joints,
summed over STRETCHES consecutive stretches. Errors are correlated; the mean of the sums is compared with their scatter and with what
neighbours share (:func:`veridyn.identify.statistics.held_out_blocks.fall`), which holds where errors are forgotten within a stretch.
Where motion grows, one stretch holds most of the sum, and no scatter is small beside it: shares 1 − Σ_file/Σ_fit of the stretches are
compared likewise, and each of both tests has half of the false alarms.

A file that is exactly right follows held-out samples better than any fit, by what noise made of the estimates: d is positive, and no
test of d alone calls that chance. So a finding asks for a second thing. The estimates z, in deviations of their priors about the
file's values, lie further from the file (z = 0) than their covariance C explains: zᵀ C⁻¹ z is beyond what it exceeds with probability
FALSE_ALARM where the file is right; what the prior leaves of z only makes it smaller. Of files that are right, at most FALSE_ALARM are
called better than the fit, and where neither is right, at most FALSE_ALARM of those that are as good, however many parts are held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from veridyn.arrays import Array
from veridyn.errors import Fault, part_at
from veridyn.identify.statistics.held_out_blocks import Fall, fall
from veridyn.inference.finding import FoundCause

FALSE_ALARM = 0.01  # of files that are right, and of fits that are as good as the file
STRETCHES = 10  # of a held-out part
WORSE_THAN_FILE = "worse than the model file"  # the cause of such a finding
LACKING = (
    "Keep the values of the file. The drives do what this simulation lacks: limits of torque or speed (limit: of their controllers), "
    "filters, play; or record slower and smaller commands."
)


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """What was not fitted of a log: the rms of the encoders with the identified drives, and with the values of the model file.

    `loss`: by how much the squared error falls from the fit to the file, with its standard error; `shares`: the mean of that over
    stretches, each as a share of its own. None where there is one sample alone.
    """

    log: str
    rms: float
    rms_defaults: float
    loss: Fall | None = None
    shares: Fall | None = None

    def worse(self, false_alarm: float = FALSE_ALARM) -> bool:
        """Whether the values of the file follow these encoders more closely, beyond what chance gives with this probability."""
        at = -float(ndtri(0.5 * false_alarm))
        return self.rms > self.rms_defaults and any(f is not None and f.exceeds(at) for f in (self.loss, self.shares))


def held_out(log: str, with_fit: Array, with_file: Array) -> HeldOut:
    """Of errors (K, n) of the same samples of a log."""
    fit, file = np.mean(with_fit**2, axis=1), np.mean(with_file**2, axis=1)
    of = np.arange(len(fit)) * min(STRETCHES, len(fit)) // len(fit)
    before, after = (np.bincount(of, x).astype(np.float64) for x in (fit, file))
    many = len(before) > 1 and bool(before.all())
    return HeldOut(
        log=log,
        rms=float(np.sqrt(fit.mean())),
        rms_defaults=float(np.sqrt(file.mean())),
        loss=fall(before, after) if many else None,
        shares=fall(np.ones(len(before)), after / before) if many else None,
    )


def worse_than_file(parts: Sequence[HeldOut], chance: float) -> tuple[FoundCause, ...]:
    """A finding for each part on which the values of the model file are better than those of the fit.

    `chance`: that estimates of a file that is right would lie as far from it (:mod:`veridyn.inference.departure`).
    """
    if not chance < FALSE_ALARM:
        return ()
    found = []
    for rank, part in enumerate((one for one in parts if one.worse(FALSE_ALARM / len(parts))), 1):
        fault = Fault(
            "what was held out is followed less closely than with the values of the model file.",
            part_at("log", part.log),
            f"an rms of at most {part.rms_defaults:.3g}, that of the model file's values",
            f"{part.rms:.3g}",
            LACKING,
        )
        found.append(
            FoundCause(
                cause=WORSE_THAN_FILE,
                place=part.log,
                rank=rank,
                size=part.rms,
                recording="slower and smaller commands, which keep drives away from their limits",
                remedy=LACKING,
                message=str(fault),
            )
        )
    return tuple(found)
