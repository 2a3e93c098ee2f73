"""What noise of the motion leaves in the scores of traces, where there is no damage at all.

Noise n_k of q̈_k is in the regressor, W + Σ_k n_k ∂W/∂q̈_k, in the residual, −Σ_k n_k M_k with M_k = ∂Γ̂/∂q̈_k, and in a trace s. With
a = W⁺ s, what is left of the trace has the noise Σ_k n_k (∂s/∂q̈_k − ∂W/∂q̈_k a), so that its score g = Σ s_⊥ᵀ r is about

    E[g] = −Σ_t Σ_r Σ_k v_rk (∂s_r/∂q̈_k − ∂W_r/∂q̈_k a) M_rk,      v_rk: variance of n_k as the weighted equations of row r have it

    ∂s/∂q̈_k = M_k in row j for the scale of force j,  −∂M_k/∂q_i for the zero of q_i,  ∂M_k/∂c for the size c,  0 for the others.

A trace that the columns explain but for that noise has no other score. Noise of positions and speeds themselves is smaller by the square of
the band, and left out, as in :mod:`veridyn.identify.position_noise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.diagnosis.machine_size import MACHINE
from veridyn.identify.diagnosis.machine_size import STEP as SIZE_STEP
from veridyn.identify.position_noise import SMALL_NOISE, acceleration_slopes, at_rest
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import stretched
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined

Array = NDArray[np.float64]
NOISE_SAMPLES = 200  # of the motions, which show E[g] to a few per cent
POSITION_STEP = 1e-5  # rad or m, of derivatives of M with respect to positions


@dataclass(frozen=True, eq=False)
class TraceNoise:
    """`columns` (p,): Σ v (∂W/∂q̈)ᵀ M over the base columns; `own`: trace (kind, where) → Σ v (∂s/∂q̈) M, where that is not zero."""

    columns: Array
    own: dict[tuple[str, str], float]

    def scores(self, names: Sequence[tuple[str, str]], a: Array) -> Array:
        """E[g] (k,) of traces with these names and a = W⁺ s (p, k)."""
        return self.columns @ a - np.array([self.own.get(name, 0.0) for name in names])


def passed_variance(
    motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling, window: int, memory: Array | None
) -> Array | None:
    """(R, n): variance of the noise of q̈ behind the filters of rows, added over `window` samples and divided by the root of their number,
    and with `memory` (R,) times the sample before taken off; the largest of motions. None where the noise of one is not known.
    """
    every = []
    for m in motions:
        if m.noise_bands is None:
            return None
        bands, lines = m.noise_bands, []
        turn = 2.0 * np.pi * bands.ends * sampling.decimate / bands.rate
        width = 1 if sampling.filtering else window
        added = np.abs(np.exp(1j * np.outer(np.arange(width), turn)).sum(axis=0)) ** 2 / width
        for r, row in enumerate(rows):
            low, a = sampling.filter_of(row), 0.0 if memory is None else memory[r]
            gain = added * np.abs(1.0 - a * np.exp(-1j * turn * width)) ** 2
            lines.append(bands.variance @ (gain if low is None else gain * low.gain(bands.ends, bands.rate) ** 2))
        every.append(lines)
    return np.max(every, axis=0)


def noise_in_traces(fit: Fit, motions: Sequence[Motion], rows: Sequence[str], equations: Array) -> TraceNoise | None:
    """Sums over all equations, `equations` (R, n): their number in each row times v_rk; None where accelerations are hardly noisy."""
    machine = fit.described
    step = max(1, sum(len(m) for m in motions) // NOISE_SAMPLES)
    m = joined([part[::step] for part in motions])
    if m.qdd_noise is None:
        return None
    noisy = np.flatnonzero(m.qdd_noise > SMALL_NOISE * np.sqrt(np.mean(m.qdd**2, axis=0)))
    if not len(noisy) or not set(noisy.tolist()) <= set(machine.independent):
        return None
    still, scale = at_rest(m), equations / len(m)
    moved = _moved(machine, fit.standard, still, rows) if not machine.closed and machine.base == "fixed" else {}
    columns, own = np.zeros(len(fit.values)), dict[tuple[str, str], float]()
    for k, slope, qdd in acceleration_slopes(machine, still, rows, list(fit.base.columns), noisy):
        M = _forces(machine, fit.standard, replace(still, qdd=qdd), rows) - _forces(machine, fit.standard, still, rows)
        vM = scale[:, k] * M
        columns += np.einsum("srp,sr->p", slope, vM)
        lines = {("force scale", row): float(vM[:, j] @ M[:, j]) for j, row in enumerate(rows)}
        for name, (machine, q, before, size) in moved.items():
            other = _forces(machine, fit.standard, replace(still, q=q, qdd=qdd), rows) - before
            lines[name] = float(np.sum(vM * (other - M))) / size
        own = {name: own.get(name, 0.0) + value for name, value in lines.items()}
    return TraceNoise(columns, own)


def _moved(
    machine: Machine, values: Array, still: Motion, rows: Sequence[str]
) -> dict[tuple[str, str], tuple[Machine, Array, Array, float]]:
    """Trace → machine, positions, forces at rest, and step of the derivative that it is."""
    out: dict[tuple[str, str], tuple[Machine, Array, float]] = {
        ("machine size", MACHINE): (stretched(machine, 1.0 + SIZE_STEP), still.q, SIZE_STEP)
    }
    for i, c in enumerate(machine.coordinates):
        q = still.q.copy()
        q[:, i] += POSITION_STEP
        out["encoder zero", c] = (machine, q, -POSITION_STEP)
    return {
        name: (machine, q, _forces(machine, values, replace(still, q=q), rows), step)
        for name, (machine, q, step) in out.items()
    }


def _forces(machine: Machine, values: Array, m: Motion, rows: Sequence[str]) -> Array:
    return inverse_dynamics(machine, m, list(rows), values, engine="numpy")
