"""That noise of positions (:mod:`veridyn.identify.position_noise`) biases a fit, and may be why rows contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import CONTRADICTION, Mistake
from veridyn.identify.position_noise import noise_bias
from veridyn.identify.result import Fit
from veridyn.model.motion import Motion

BIAS_SIGMAS = 1.0  # deviations: a larger bias is reported (chosen)
REMEDY = "Use a lower low-pass, Signals(lowpass=…), or the method Instrumental(reference=…) with the motion that the controller followed."


def noisy_accelerations(fit: Fit, m: Motion) -> list[Mistake]:
    """That noise of the accelerations biases parameters by more than their deviations."""
    large = _largest(fit, m)
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


def with_noise_as_cause(found: list[Mistake], fit: Fit, m: Motion) -> list[Mistake]:
    """The same mistakes; rows that contradict each other have noise of positions as a possible cause, where it biases what they share."""
    named = iter(with_cause([mistake for mistake in found if mistake.kind == CONTRADICTION], fit, m))
    return [next(named) if mistake.kind == CONTRADICTION else mistake for mistake in found]


def with_cause(found: list[Mistake], fit: Fit, m: Motion) -> list[Mistake]:
    """The same mistakes with noise of positions as a possible cause of each, where it biases the fit.

    Behind a filter of the equations the bias is smaller: by how much depends on what the filter leaves of the noise.
    """
    large = _largest(fit, m) if found else {}
    if not large:
        return found
    listed = ", ".join(f"{name} by about {x:.2g} deviations" for name, x in large.items())
    cause = f"Noise of the positions may be the cause: it biases {listed}. {REMEDY}"
    return [
        replace(mistake, fault=replace(mistake.fault, hint=f"{cause} {mistake.fault.hint}".strip()))
        for mistake in found
    ]


def _largest(fit: Fit, m: Motion) -> dict[str, float]:
    """Up to four parameters with the largest bias in deviations, where that is more than `BIAS_SIGMAS`."""
    bias = noise_bias(fit, m)
    if bias is None:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        in_sigmas = np.nan_to_num(np.abs(bias) / fit.sigma)
    worst = np.argsort(-in_sigmas)[:4]
    return {fit.names[k]: float(in_sigmas[k]) for k in worst if in_sigmas[k] > BIAS_SIGMAS}
