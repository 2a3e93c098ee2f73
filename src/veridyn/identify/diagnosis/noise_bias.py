"""That noise of positions (:mod:`veridyn.identify.position_noise`) biases a fit, and may be why rows contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.position_noise import noise_bias
from veridyn.identify.result import Fit
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
BIAS_SIGMAS = 1.0  # deviations: a larger bias is reported (chosen)
REMEDY = "Use a lower low-pass, Signals(lowpass=…), or the method Instrumental(reference=…) with the motion that the controller followed."


def noisy_accelerations(fit: Fit, m: Motion, noise: Array | None) -> list[Mistake]:
    """That noise of the accelerations, (rows, n), biases parameters by more than their deviations; from samples `m`."""
    large = _largest(fit, m, noise)
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


def with_noise_as_cause(
    found: list[Mistake], fit: Fit, m: Motion, noise: Array | None, kind: str | None = None
) -> list[Mistake]:
    """The same mistakes; those of a kind, or all, have noise of positions as a possible cause, where it biases the fit."""
    large = _largest(fit, m, noise) if any(kind in (None, mistake.kind) for mistake in found) else {}
    if not large:
        return found
    listed = ", ".join(f"{name} by about {x:.2g} deviations" for name, x in large.items())
    cause = f"Noise of the positions may be the cause: it biases {listed}. {REMEDY}"
    return [
        replace(mistake, fault=replace(mistake.fault, hint=f"{cause} {mistake.fault.hint}".strip()))
        if kind in (None, mistake.kind)
        else mistake
        for mistake in found
    ]


def _largest(fit: Fit, m: Motion, noise: Array | None) -> dict[str, float]:
    """Up to four parameters with the largest bias in deviations, where that is more than `BIAS_SIGMAS`."""
    bias = None if noise is None else noise_bias(fit, m, noise)
    if bias is None:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        in_sigmas = np.nan_to_num(np.abs(bias) / fit.sigma)
    worst = np.argsort(-in_sigmas)[:4]
    return {fit.names[k]: float(in_sigmas[k]) for k in worst if in_sigmas[k] > BIAS_SIGMAS}
