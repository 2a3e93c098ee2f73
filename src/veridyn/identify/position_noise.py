"""Noise of measured positions in the regressor: what it does to estimates, to first order, by adding as much of it again.

Positions are rounded by an encoder or carry noise, the filter lets some of it through, differences raise it, and noise E in the columns W
biases least squares by −(WᵀPW)⁻¹ E[EᵀPE] χ, whatever the length of the log. The noise is drawn again with its stated size, sent through the
same filter and differences as the log, added and subtracted, and the estimate made anew: the mean of both less the estimate is that
bias, since the terms of first order in the noise cancel (J. Cook and L. Stefanski, 1994, JASA 89(428), without the extrapolation). It is
a term of the budget of the fit, and where it is more than noise explains, instrumental variables are the method to use: they are not
biased by it. One log states a bias of three deviations to about a fifth of it; biases below half a deviation are lost in its own scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, IdentificationWarning, did_you_mean, warn
from veridyn.identify.estimate import identify
from veridyn.identify.estimator import Estimator
from veridyn.identify.logged import motion
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.model.accept import accepts_machine
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.signals.motion import Signals

Array = NDArray[np.float64]
MATTERS_SIGMAS = 0.5  # a bias beyond it makes rms z 1.12, and another method is proposed
LEAST_REPEATED = 0.02  # of neighbouring readings that are equal where an encoder rounds them
WHOLE_STEPS = 0.05  # of a step: how far differences of rounded readings are from whole numbers of it


@dataclass(frozen=True, eq=False)
class PositionNoise:
    """`bias` (p,) of the base parameters `names` by noise of positions of `sigma`; `error`: its standard error over the draws."""

    names: tuple[str, ...]
    bias: Array
    error: Array
    sigma: Mapping[str, float]


def encoder_steps(log: Experiment, coordinates: Sequence[str]) -> dict[str, float]:
    """Coordinate → step of its encoder, in rad or m, where its readings "q.c" are rounded to one; others are left out.

    A step is the smallest difference of neighbouring readings, if some readings repeat and all differences are whole numbers of it.
    """
    found = {}
    for c in coordinates:
        if f"q.{c}" not in log:
            continue
        change = np.abs(np.diff(log[f"q.{c}"].values))
        change = change[np.isfinite(change)]
        size = float(change.max(initial=0.0))
        moved = change[change > 1e-9 * size]
        if not len(moved) or 1.0 - len(moved) / len(change) < LEAST_REPEATED:
            continue
        step = float(np.median(moved[moved < 1.5 * moved.min()]))
        off = np.abs(moved / step - np.round(moved / step))
        if float(np.quantile(off, 0.99)) < WHOLE_STEPS:
            found[c] = step
    return found


@accepts_machine
def position_noise(
    tree: Tree,
    log: Experiment,
    signals: Signals,
    fit: Fit,
    method: Estimator | str = "wls",
    *,
    sigma: Mapping[str, float],
    rng: np.random.Generator,
    draws: int = 4,
    sampling: Sampling | None = None,
) -> PositionNoise:
    """What noise of standard deviation `sigma` (coordinate → rad or m; a step over √12 for an encoder) in the positions of a log does.

    `fit` is that of `method` on ``motion(tree, log, signals)``; each of the `draws` costs two more fits.
    """
    faults = Faults()
    for c, s in sigma.items():
        if f"q.{c}" not in log:
            faults.add(f"there is no channel 'q.{c}'.", where="sigma", hint=did_you_mean(f"q.{c}", list(log)))
        elif not (np.isfinite(s) and s >= 0.0):
            faults.add("a standard deviation is not negative.", where=f"sigma['{c}']", found=f"{s}")
    if draws < 2:
        faults.add("a standard error needs at least two draws.", where="draws", found=f"{draws}")
    faults.raise_if_any(DataError, log.name)
    rows = [r.row for r in fit.rows]
    found = []
    for _ in range(draws):
        noise = {c: s * rng.normal(size=len(log[f"q.{c}"])) for c, s in sigma.items()}
        ends = []
        for sign in (1.0, -1.0):
            moved = log.replacing(*(_shifted(log[f"q.{c}"], sign * n) for c, n in noise.items()))
            again: Motion = motion(tree, moved, signals)
            other = identify(tree, again, method, rows=rows, sampling=sampling, diagnose="off")
            if other.base.columns != fit.base.columns:
                what = "noise of this size changes which parameters can be separated, so its bias cannot be stated."
                raise DataError(Fault(what, where=log.name, hint="Low-pass the positions, or excite more."))
            ends.append(other.values)
        found.append(0.5 * (ends[0] + ends[1]) - fit.values)
    mean = np.mean(found, axis=0)
    return PositionNoise(fit.names, mean, np.std(found, axis=0, ddof=1) / np.sqrt(draws), dict(sigma))


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


def _shifted(channel: Channel, noise: Array) -> Channel:
    return replace(channel, values=channel.values + noise)
