"""What noise of the motion leaves in the scores of traces (:mod:`veridyn.identify.diagnosis.score_test`) where there is no damage at all.

Noise n_k of q̈_k is in the regressor, W + Σ_k n_k
∂W/∂q̈_k, in the residual, −Σ_k n_k M_k with M_k = ∂Γ̂/∂q̈_k, and in a trace s. With a = W⁺ s, what is left of the trace has the noise Σ_k
n_k (∂s/∂q̈_k − ∂W/∂q̈_k a), so that its score g = Σ s_⊥ᵀ r is about

    E[g] = −Σ_t Σ_r Σ_k v_rk (∂s_r/∂q̈_k − ∂W_r/∂q̈_k a) M_rk,      v_rk: variance of n_k as the weighted equations of row r have it

    ∂s/∂q̈_k = M_k in row j for the scale of force j,  1 in row j for the rotor of q_j = q_k,
              −∂M_k/∂q_i for the zero of q_i,  ∂M_k/∂c for the size c,  0 for the others.

A trace that the columns explain but for that noise has no other score. Noise of positions and speeds themselves is smaller by the square of
the band, and left out, as in :mod:`veridyn.identify.diagnosis.position_noise`.

The column of a machine of another size is s = ∂Γ̂/∂c, with every distance between joints (1 + c) times the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import DIFFERENCE
from veridyn.identify.diagnosis.drives import coupled_drives
from veridyn.identify.diagnosis.evidence import FEW_SAMPLES
from veridyn.identify.diagnosis.position_noise import SMALL_NOISE, acceleration_slopes, at_rest
from veridyn.identify.diagnosis.score_test import ROTOR
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import stretched
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined


@dataclass(frozen=True, eq=False)
class TraceNoise:
    """`columns` (p,): Σ v (∂W/∂q̈)ᵀ M over the base columns; `own`: trace (kind, where) → Σ v (∂s/∂q̈) M."""

    columns: Array
    own: Callable[[tuple[str, str]], float]

    def scores(self, names: Sequence[tuple[str, str]], a: Array) -> Array:
        """E[g] (k,) of traces with these names and a = W⁺ s (p, k)."""
        return self.columns @ a - np.array([self.own(name) for name in names])


def passed_covariances(
    motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling, window: int, lags: int
) -> Array | None:
    """(motions, R, n, lags + 1): autocovariances of the noise of q̈ behind the filters of rows, added over `window` samples and divided by
    the root of their number. None where the noise of a motion is not known.
    """
    every = []
    for m in motions:
        if m.noise_bands is None:
            return None
        bands = m.noise_bands
        turn = 2.0 * np.pi * bands.ends * sampling.decimate / bands.rate
        width = 1 if sampling.filtering else window
        added = np.abs(np.exp(1j * np.outer(np.arange(width), turn)).sum(axis=0)) ** 2 / width
        waves = added[:, None] * np.cos(np.outer(turn * width, np.arange(lags + 1)))
        filters = [sampling.filter_of(row) for row in rows]
        gains = {low: low.gain(bands.ends, bands.rate) ** 2 for low in filters if low is not None}
        every.append([(bands.variance if low is None else bands.variance * gains[low]) @ waves for low in filters])
    return np.asarray(every, dtype=np.float64)


def passed_variance(covariances: Array, filters: Sequence[Array]) -> Array:
    """(R, n): variance of such noise behind the `filters` (1, a_1 …) of the rows besides, Σ_ik a_i a_k C_|i−k|; the largest of motions."""
    out = []
    for j, a in enumerate(filters):
        pairs = np.correlate(a, a, "full")[len(a) - 1 :]
        pairs[1:] *= 2.0
        out.append(covariances[:, j, :, : len(a)] @ pairs)
    return np.max(out, axis=1)


@dataclass(frozen=True, eq=False)
class NoiseSlopes:
    """What unit noise of an acceleration makes of scores, for each row and coordinate: `columns` (R, n, p), `own` trace → (R, n), zero of
    others; `moved` makes those of traces that move the machine, where one is asked about."""

    columns: Array
    own: dict[tuple[str, str], Array]
    moved: Callable[[tuple[str, str]], Array | None]

    def of(self, equations: Array) -> TraceNoise:
        """Sums over all equations, `equations` (R, n): their number in each row times v_rk."""

        def own(name: tuple[str, str]) -> float:
            slopes = self.own[name] if name in self.own else self.moved(name)
            return 0.0 if slopes is None else float(np.sum(equations * slopes))

        return TraceNoise(np.tensordot(equations, self.columns, 2), own)


def noise_slopes(fit: Fit, motions: Sequence[Motion], rows: Sequence[str]) -> NoiseSlopes | None:
    """Means along some samples of the motions; None where accelerations are hardly noisy."""
    machine = fit.described
    step = max(1, sum(len(m) for m in motions) // FEW_SAMPLES)
    m = joined([part[::step] for part in motions])
    if m.qdd_noise is None:
        return None
    noisy = np.flatnonzero(m.qdd_noise > SMALL_NOISE * np.sqrt(np.mean(m.qdd**2, axis=0)))
    if not len(noisy) or not set(noisy.tolist()) <= set(machine.independent):
        return None
    still, shape = at_rest(m), (len(rows), machine.n)
    columns, own = np.zeros((*shape, len(fit.values))), dict[tuple[str, str], Array]()
    slopes = list(acceleration_slopes(machine, still, rows, list(fit.base.columns), noisy))
    motions_of_noise = [still.qdd, *(qdd for _, _, qdd in slopes)]
    forces = _forces(machine, fit.standard, [(still.q, qdd) for qdd in motions_of_noise], still, rows)
    every = forces[1:] - forces[0]
    for (k, slope, _), M in zip(slopes, every, strict=True):
        columns[:, k] = np.einsum("srp,sr->rp", slope, M) / len(m)
        for j, row in enumerate(rows):
            own.setdefault(("force scale", row), np.zeros(shape))[j, k] = float(M[:, j] @ M[:, j]) / len(m)
            if machine.coordinates[k] == row:
                own.setdefault((ROTOR, row), np.zeros(shape))[j, k] = float(M[:, j].sum()) / len(m)
        for d in coupled_drives(machine):
            acts = d.rows(machine, tuple(rows))
            if acts is not None:
                load = M @ d.moves[[machine.coordinates.index(row) for row in rows]]
                own.setdefault(("force scale", d.name), np.zeros(shape))[:, k] = acts * (load @ M) / len(m)
                own.setdefault((ROTOR, d.name), np.zeros(shape))[:, k] = acts * d.turns[k] * M.sum(axis=0) / len(m)

    @cache
    def moved(name: tuple[str, str]) -> Array | None:
        other = None if machine.closed or machine.base != "fixed" else _moved(machine, still, name)
        if other is None:
            return None
        states = [(other[1], qdd) for qdd in motions_of_noise]
        changed, line = _forces(other[0], fit.standard, states, still, rows), np.zeros(shape)
        for (k, _, _), M, after in zip(slopes, every, changed[1:], strict=True):
            line[:, k] = np.sum(M * (after - changed[0] - M), axis=0) / other[2] / len(m)
        return line

    return NoiseSlopes(columns, own, moved)


def _moved(machine: Machine, still: Motion, trace: tuple[str, str]) -> tuple[Machine, Array, float] | None:
    """Machine, positions, and step of the derivative that a trace is; None of one that moves nothing."""
    kind, where = trace
    if kind == "machine size":
        return stretched(machine, 1.0 + DIFFERENCE), still.q, DIFFERENCE
    if kind != "encoder zero":
        return None
    drive = next((d for d in coupled_drives(machine) if d.name == where), None)
    moves = np.eye(machine.n)[machine.coordinates.index(where)] if drive is None else drive.moves
    return machine, still.q + DIFFERENCE * moves, -DIFFERENCE


def _forces(
    machine: Machine, values: Array, states: Sequence[tuple[Array, Array]], still: Motion, rows: Sequence[str]
) -> Array:
    """(states, N, rows) of a motion at rest with other positions and accelerations, all at once."""
    several = joined([replace(still, q=q, qdd=qdd) for q, qdd in states])
    return inverse_dynamics(machine, several, list(rows), values, engine="numpy").reshape(len(states), len(still), -1)


def size_slopes(machine: Machine, values: Array, m: Motion, rows: Sequence[str], forces: Array) -> Array:
    """s (N, rows) along a motion with standard parameters `values` (p,), which ask for the `forces` (N, rows) as the model has it."""
    longer = inverse_dynamics(stretched(machine, 1.0 + DIFFERENCE), m, list(rows), values, engine="numpy")
    return (longer - forces) / DIFFERENCE
