"""Noise of measured positions in the regressor, and by how much it biases estimates, to first order.

Positions are rounded by an encoder or carry noise, the filter lets some of it through, and differences raise it. With
D̃ = D + Σ_k n_k ∂D/∂q̈_k, n_k white of deviation s_k, least squares with weights 1/σ_r² and covariance C gives, however long the log,

    E[φ̂] − φ = −C/s² Σ_i Σ_r Σ_k (s_k²/σ_r²) (∂D_r/∂q̈_k)ᵀ (∂D_r/∂q̈_k) φ

where s² is the variance of the weighted residual, by which C was scaled: 1 where the weights are those of the noise, another one without
weights. s_k comes from the spectrum of the positions (:mod:`veridyn.signals.conditioning`), or from a stated noise of them. Noise of
positions and speeds themselves is left out, since it is smaller by the square of the band. The bias is a term of the budget of a fit;
where it is more than a deviation, instrumental variables are the method to use, which are not biased by it. One log states a bias of
three deviations to about a fifth of it. Such a bias may also be why rows contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, IdentificationWarning, did_you_mean, warn
from veridyn.identify.diagnosis.columns import TOGETHER_SAMPLES
from veridyn.identify.diagnosis.evidence import FEW_SAMPLES
from veridyn.identify.logged import motion
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.inference.finding import Mistake
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.closure import loop_jacobian
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.conditioning import NoiseFloor
from veridyn.signals.motion import Signals

MATTERS_SIGMAS = 0.5  # a bias beyond it makes rms z 1.12, and another method is proposed
SMALL_NOISE = 1e-3  # of the rms acceleration: less biases nothing that a log of a day could show
BIAS_SIGMAS = 1.0  # deviations: a larger bias is reported (chosen)
REMEDY = "Use a lower low-pass, Signals(lowpass=…), or the method Instrumental(reference=…) with the motion that the controller followed."


@dataclass(frozen=True, eq=False)
class PositionNoise:
    """`bias` (p,) of the base parameters `names` by noise of positions of `sigma` (coordinate → rad or m)."""

    names: tuple[str, ...]
    bias: Array
    sigma: Mapping[str, float]


def noise_behind(motions: Sequence[Motion], sampling: Sampling, rows: Sequence[str]) -> Array | None:
    """(rows, n) standard deviation of the noise of q̈ that the filters of rows let pass, the largest of motions; None where it is not known.

    Columns are products of q̈ and what changes slowly beside its noise, so that a filter does to them what it does to the noise.
    """
    every = [_passed(m, sampling.filter_of(row)) for m in motions for row in rows]
    known = [noise for noise in every if noise is not None]
    if not known or len(known) < len(every):
        return None
    return np.max(np.reshape(known, (len(motions), len(rows), -1)), axis=0)


def _passed(m: Motion, low: Butterworth | None) -> Array | None:
    """(n,) standard deviation of the noise of q̈ behind a filter; None where it is not known."""
    if low is None:
        return m.qdd_noise
    bands = m.noise_bands
    return None if bands is None else np.sqrt(bands.variance @ low.gain(bands.ends, bands.rate) ** 2)


def noise_bias(fit: Fit, m: Motion, noise: Array | None = None) -> Array | None:
    """(parameters,) by how much noise of q̈ biases each value of a fit, from samples `m`; None where it is not known or too small.

    `noise` (n,), or (rows of the fit, n): its standard deviation, rad/s² or m/s²; by default ``m.qdd_noise``. Of a machine with loops, that
    of the coordinates with an equation of their own, which takes the others along; None where others were measured in their place.
    """
    machine, s = fit.described, m.qdd_noise if noise is None else noise
    if s is None or not np.isfinite(fit.column_covariance).all():
        return None
    sizes = np.sqrt(np.mean(m.qdd**2, axis=0))
    s = np.broadcast_to(s, (len(fit.rows), machine.n))
    noisy = np.flatnonzero(np.any(s > SMALL_NOISE * sizes, axis=0))
    weighed = [k for k, r in enumerate(fit.rows) if np.isfinite(r.sigma) and r.sigma > 0.0]
    rows, s = [fit.rows[k] for k in weighed], s[weighed]
    if not len(noisy) or not rows or not set(noisy.tolist()) <= set(machine.independent):
        return None
    m = m[:: max(1, len(m) // FEW_SAMPLES)]
    names, columns = [r.row for r in rows], list(fit.base.columns)
    still = at_rest(m)
    unit = fit.residual_sigma if np.isfinite(fit.residual_sigma) else 1.0
    weights = np.array([r.samples / (len(m) * (unit * r.sigma) ** 2) for r in rows])
    gram = np.zeros((len(columns), len(columns)))
    for k, slope, _ in acceleration_slopes(machine, still, names, columns, noisy):
        gram += np.einsum("nrp,r,nrq->pq", slope, weights * s[:, k] ** 2, slope, optimize=True)
    return -fit.column_covariance @ gram @ fit.values


def at_rest(m: Motion) -> Motion:
    """The positions of a motion without speeds, accelerations, wrenches and forces."""
    base = None if m.base is None else replace(m.base, omega=0.0 * m.base.omega, omega_dot=0.0 * m.base.omega_dot)
    return replace(m, qd=np.zeros_like(m.qd), qdd=np.zeros_like(m.qdd), base=base, wrenches={}, forces=None)


def acceleration_slopes(
    machine: Machine, still: Motion, rows: Sequence[str], columns: Sequence[int], coordinates: Iterable[int]
) -> Iterator[tuple[int, Array, Array]]:
    """For each of these coordinates k: k, ∂D/∂q̈_k (N, rows, columns) at positions of a motion `at_rest`, and ∂q̈/∂q̈_k (N, n).

    Loops take the other coordinates along.
    """
    asked, N = [int(k) for k in coordinates], len(still)
    G = loop_jacobian(machine, still.q, engine="numpy") if machine.closed else None
    rest = regressor(machine, still, list(rows), list(columns), engine="numpy")
    most = max(1, TOGETHER_SAMPLES // N)
    for first in range(0, len(asked), most):
        group = asked[first : first + most]
        moved = np.zeros((len(group), *still.qdd.shape))
        for i, k in enumerate(group):
            moved[i, :, k] = 1.0
            if G is not None:
                moved[i] = G[:, :, machine.independent.index(k)]
        several = joined([replace(still, qdd=moved[i]) for i in range(len(group))])
        D = regressor(machine, several, list(rows), list(columns), engine="numpy")
        slopes = D.reshape(len(group), *rest.shape) - rest
        for i, k in enumerate(group):
            yield k, slopes[i], moved[i]


@takes_machine
def position_noise(
    machine: Machine, log: Experiment, signals: Signals, fit: Fit, *, sigma: Mapping[str, float]
) -> PositionNoise:
    """What white noise of standard deviation `sigma` (coordinate → rad or m; a step over √12 for an encoder) in positions of a log does.

    `fit` is a least-squares fit of ``motion(tree, log, signals)`` with equations that are not filtered.
    """
    faults = Faults()
    for c, s in sigma.items():
        if f"q.{c}" not in log:
            faults.add(f"there is no channel 'q.{c}'.", where="sigma", hint=did_you_mean(f"q.{c}", list(log)))
        elif not (np.isfinite(s) and s >= 0.0):
            faults.add("a standard deviation is not negative.", where=f"sigma['{c}']", found=f"{s}")
    faults.raise_if_any(DataError, log.name)
    m: Motion = motion(machine, log, signals)
    noise = np.zeros(machine.n)
    for c, s in sigma.items():
        rate = log[f"q.{c}"].rate
        white = NoiseFloor(2.0 * s**2 / rate, 0.0, rate)  # one-sided: σ² is spread from 0 to half the rate
        noise[machine.coordinates.index(c)] = white.derivative_noise(2, signals.derivative, signals.filter)
    bias = noise_bias(fit, m, noise)
    return PositionNoise(fit.names, np.zeros(len(fit.names)) if bias is None else bias, dict(sigma))


def with_position_noise(fit: Fit, found: PositionNoise) -> Fit:
    """The fit with the bias in its covariance and budget; warns, and names the method that is not biased, where it matters."""
    share = np.abs(found.bias) / np.where(fit.sigma > 0.0, fit.sigma, np.nan)
    worst = int(np.nanargmax(share))
    note = f"noise of measured positions biases estimates by up to {share[worst]:.2g} deviations ({fit.names[worst]}); it is part of them"
    if share[worst] > MATTERS_SIGMAS:
        warn(
            IdentificationWarning,
            Fault(
                "noise of measured positions is in the columns, and biases what this method estimates.",
                where=", ".join(n for n, s in zip(fit.names, share, strict=True) if s > MATTERS_SIGMAS),
                expected=f"less than {MATTERS_SIGMAS:g} deviations",
                found=f"up to {share[worst]:.2g}, for {fit.names[worst]}",
                hint="Use the method Instrumental(reference=…) or Instrumental(law=…), a lower cut-off, or finer encoders.",
            ),
        )
    wider = fit.covariance + np.outer(found.bias, found.bias)
    return replace(fit, covariance=wider, position_bias=found.bias, notes=(*fit.notes, note))


def noisy_accelerations(fit: Fit, m: Motion, noise: Array | None) -> list[Mistake]:
    """That noise of the accelerations, (rows, n), biases parameters by more than their deviations; from samples `m`."""
    large = _largest(fit, m, noise)
    if not large:
        return []
    return [
        Mistake.of(
            "noisy accelerations",
            "noise of the positions makes the accelerations noisy, and noise in the regressor biases least squares.",
            where="parameters",
            expected=f"a bias below {BIAS_SIGMAS:g} deviation",
            found=", ".join(f"{name} about {x:.2g}" for name, x in large.items()) + " deviations",
            hint=REMEDY,
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


def beyond_noise(found: list[Mistake], fit: Fit, m: Motion, noise: Array | None, kind: str) -> list[Mistake]:
    """The same mistakes without those of a kind that move parameters less than noise of positions does, which may be all they are."""
    large = _largest(fit, m, noise) if any(mistake.kind == kind for mistake in found) else {}
    most = max(large.values(), default=0.0)
    return [x for x in found if x.kind != kind or x.measured is None or x.measured.shift > most]


def _largest(fit: Fit, m: Motion, noise: Array | None) -> dict[str, float]:
    """Up to four parameters with the largest bias in deviations, where that is more than `BIAS_SIGMAS`."""
    bias = None if noise is None else noise_bias(fit, m, noise)
    if bias is None:
        return {}
    with np.errstate(divide="ignore", invalid="ignore"):
        in_sigmas = np.nan_to_num(np.abs(bias) / fit.sigma)
    worst = np.argsort(-in_sigmas)[:4]
    return {fit.names[k]: float(in_sigmas[k]) for k in worst if in_sigmas[k] > BIAS_SIGMAS}
