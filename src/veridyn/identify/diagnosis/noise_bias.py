"""Noise of accelerations in the regressor, and by how much it biases least squares.

With D̃ = D + Σ_k n_k ∂D/∂q̈_k, n_k white of deviation s_k, least squares with weights 1/σ_r² and covariance C gives, to first order,

    E[φ̂] − φ = −C Σ_i Σ_r Σ_k (s_k²/σ_r²) (∂D_r/∂q̈_k)ᵀ (∂D_r/∂q̈_k) φ

s_k comes from the spectrum of the positions (:mod:`veridyn.signals.noise_floor`). Noise of positions and speeds themselves is left out,
since it is smaller by the square of the band. Instruments that do not share the noise are not biased by it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.result import Fit
from veridyn.mechanics.regressor import regressor
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
SMALL_NOISE = 1e-3  # of the rms acceleration: less biases nothing that a log of a day could show
BIAS_SIGMAS = 1.0  # deviations: a larger bias is reported (chosen)


def noise_bias(fit: Fit, m: Motion) -> Array | None:
    """(parameters,) by how much noise of q̈ biases each value of a fit, from samples `m`; None where it is not known or too small."""
    tree, s = fit.tree, m.qdd_noise
    if s is None or tree.loops or not np.isfinite(fit.covariance).all():
        return None
    sizes = np.sqrt(np.mean(m.qdd**2, axis=0))
    noisy = np.flatnonzero(s > SMALL_NOISE * sizes)
    rows = [r for r in fit.rows if np.isfinite(r.sigma) and r.sigma > 0.0]
    if not len(noisy) or not rows:
        return None
    names, columns = [r.row for r in rows], list(fit.base.columns)
    base = None if m.base is None else replace(m.base, omega=0.0 * m.base.omega, omega_dot=0.0 * m.base.omega_dot)
    still = replace(m, qd=np.zeros_like(m.qd), base=base, wrenches={}, forces=None)
    rest = regressor(tree, replace(still, qdd=np.zeros_like(m.qdd)), names, columns, engine="numpy")
    weights = np.array([r.samples / (len(m) * r.sigma**2) for r in rows])
    gram = np.zeros((len(columns), len(columns)))
    for k in noisy:
        unit = np.zeros_like(m.qdd)
        unit[:, k] = 1.0
        slope = regressor(tree, replace(still, qdd=unit), names, columns, engine="numpy") - rest
        gram += s[k] ** 2 * np.einsum("nrp,r,nrq->pq", slope, weights, slope, optimize=True)
    return -fit.covariance @ gram @ fit.values


def noisy_accelerations(fit: Fit, e: Evidence) -> list[Mistake]:
    """That noise of the accelerations biases parameters by more than their deviations."""
    bias = noise_bias(fit, e.motion)
    if bias is None:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        in_sigmas = np.nan_to_num(np.abs(bias) / fit.sigma)
    worst = np.argsort(-in_sigmas)[:4]
    large = [k for k in worst if in_sigmas[k] > BIAS_SIGMAS]
    if not large:
        return []
    return [
        Mistake(
            "noisy accelerations",
            Fault(
                "noise of the positions makes the accelerations noisy, and noise in the regressor biases least squares.",
                "parameters",
                f"a bias below {BIAS_SIGMAS:g} deviation",
                ", ".join(f"{fit.names[k]} about {in_sigmas[k]:.2g}" for k in large) + " deviations",
                "Use a lower low-pass, Signals(lowpass=…), or the method Instrumental(reference=…) "
                "with the motion that the controller followed.",
            ),
        )
    ]
