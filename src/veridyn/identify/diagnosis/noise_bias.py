"""That noise of positions (:mod:`veridyn.identify.position_noise`) biases a fit, and may be why rows contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import CONTRADICTION, Mistake
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.position_noise import noise_bias
from veridyn.identify.result import Fit

BIAS_SIGMAS = 1.0  # deviations: a larger bias is reported (chosen)
REMEDY = "Use a lower low-pass, Signals(lowpass=…), or the method Instrumental(reference=…) with the motion that the controller followed."


def noisy_accelerations(fit: Fit, e: Evidence) -> list[Mistake]:
    """That noise of the accelerations biases parameters by more than their deviations."""
    large = _largest(fit, e)
    if not large:
        return []
    return [
        Mistake(
            "noisy accelerations",
            Fault(
                "noise of the positions makes the accelerations noisy, and noise in the regressor biases least squares.",
                "parameters",
                f"a bias below {BIAS_SIGMAS:g} deviation",
                ", ".join(f"{name} about {x:.2g}" for name, x in large.items()) + " deviations",
                REMEDY,
            ),
        )
    ]


def with_noise_as_cause(found: list[Mistake], fit: Fit, e: Evidence) -> list[Mistake]:
    """The same mistakes; rows that contradict each other have noise of positions as a possible cause, where it biases what they share."""
    if not any(m.kind == CONTRADICTION for m in found):
        return found
    large = _largest(fit, e)
    if not large:
        return found
    listed = ", ".join(f"{name} by about {x:.2g} deviations" for name, x in large.items())
    cause = f"Noise of the positions may be the cause: it biases {listed}. {REMEDY}"
    return [
        replace(m, fault=replace(m.fault, hint=f"{cause} {m.fault.hint}")) if m.kind == CONTRADICTION else m
        for m in found
    ]


def _largest(fit: Fit, e: Evidence) -> dict[str, float]:
    """Up to four parameters with the largest bias in deviations, where that is more than `BIAS_SIGMAS`."""
    bias = noise_bias(fit, e.motion)
    if bias is None:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        in_sigmas = np.nan_to_num(np.abs(bias) / fit.sigma)
    worst = np.argsort(-in_sigmas)[:4]
    return {fit.names[k]: float(in_sigmas[k]) for k in worst if in_sigmas[k] > BIAS_SIGMAS}
