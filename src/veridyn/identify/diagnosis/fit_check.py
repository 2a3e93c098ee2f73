"""What a fit is asked before it is handed out: signs, swaps, units, clock, samples, and forces that no sensor measures.

"fast" looks at a hundred samples and at every measured force, and takes about as long as a fit; "full" asks all that
``veridyn identify`` asks: all columns on four hundred samples, other gravities and geometries, and delays. Both use the checks of
:mod:`veridyn.identify.diagnosis.alternatives`, `plausible` and `delays`, and :func:`veridyn.signals.quality.inspect`; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from veridyn.errors import Fault, IdentificationError
from veridyn.identify.diagnosis.alternatives import Mistake, find_mistakes
from veridyn.identify.diagnosis.attempt import attempt
from veridyn.identify.diagnosis.delays import delays
from veridyn.identify.diagnosis.evidence import SAMPLES, Evidence, evidence
from veridyn.identify.diagnosis.noise_bias import noisy_accelerations, with_noise_as_cause
from veridyn.identify.diagnosis.plausible import SLOWEST_CLOCK, absurd_signs, odd_motion, prior_scales, slow_clock
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.signals.quality import inspect

Diagnose = Literal["fast", "full", "off"]
FAST_SAMPLES = 120
MIN_SAMPLES_PER_COLUMN = 3.0  # of a row: with fewer the noise of the row, and so its weight, is not known (chosen)
SAME_MOTION = 0.8  # correlation from which speeds are those of the positions (chosen)
ORDER_SAMPLES = 2000  # of a motion, which show whether its samples follow each other
INSPECTED = (
    "constant",
    "spike",
    "dropout",
    "frozen",
    "clipping",
    "held",
)  # kinds of findings that spoil a measured force


def check_level(level: str) -> None:
    """Refuse a word that is no level of diagnosis."""
    if level not in ("fast", "full", "off"):
        what = f"there is no diagnosis {level!r}."
        raise IdentificationError(Fault(what, where="diagnose", expected="'fast', 'full' or 'off'"))


def suspicions(
    fit: Fit,
    e: Evidence,
    apart: float = 1.0,
    limits: Mapping[str, tuple[float, float]] | None = None,
    progress: Progress = silent,
    *,
    fast: bool = False,
    failed: list[str],
) -> list[Mistake]:
    """What some samples and the values of a fit say against the data or the model; `apart` as for :func:`find_mistakes`.

    Checks that cannot be carried out are noted in `failed`.
    """
    return [
        *attempt("Speeds and ranges", lambda: odd_motion(e, limits), failed),
        *attempt("Simple mistakes", lambda: _mistakes(fit, e, apart, progress, fast), failed),
        *attempt("Signs of inertia and friction", lambda: absurd_signs(fit, e), failed),
        *attempt("Forces beside those of the model's own values", lambda: prior_scales(e), failed),
    ]


def _mistakes(fit: Fit, e: Evidence, apart: float, progress: Progress, fast: bool) -> list[Mistake]:
    return with_noise_as_cause(list(find_mistakes(e, apart, progress, fast=fast)), fit, e)


def diagnose_fit(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    level: Diagnose,
    apart: float = 1.0,
    progress: Progress = silent,
    *,
    white: bool = True,
    failed: list[str],
) -> list[Mistake]:
    """What speaks against the data of a fit, or against the model they were fitted with.

    `white`: the covariance of the fit is that for uncorrelated residuals, from which the bias of noisy accelerations follows. Checks that
    cannot be carried out are noted in `failed`.
    """
    states = [state.name for state in fit.tree.states]
    if level == "off" or any(name not in m.signals for name in states for m in motions):
        return []  # a law whose state is not in the motion has no column
    rows = [r.row for r in fit.rows]
    seen = evidence(fit.tree, motions, rows, sampling, samples=FAST_SAMPLES if level == "fast" else SAMPLES)
    found = [m for motion in motions for m in _clock(motion)]
    found += few_samples(fit, seen)
    found += [m for motion in motions if motion.notes is None for m in inspect_forces(fit.tree, motion)]
    found += suspicions(fit, seen, apart, None, progress, fast=level == "fast", failed=failed)
    if white and not sampling.filtering:  # behind a filter of the equations the noise is smaller, and not known
        found += attempt("Bias by noise of positions", lambda: noisy_accelerations(fit, seen), failed)
    if level == "full":
        found += attempt("Delays", lambda: delays(fit.tree, motions, rows, sampling).suspicions(), failed)
    return found


def _clock(motion: Motion) -> list[Mistake]:
    """A clock in another unit; poses that were not recorded one after the other have no rate."""
    if len(motion) < 3:
        return []
    rate = (len(motion) - 1) / float(motion.t[-1] - motion.t[0])
    return [slow_clock("motion", rate)] if rate < SLOWEST_CLOCK and _in_order(motion) else []


def _in_order(motion: Motion) -> bool:
    """Whether the samples follow each other: the speeds are those of the positions. Random poses have no neighbours."""
    m = motion[:ORDER_SAMPLES]
    slopes, qd = (m.q[2:] - m.q[:-2]) / (m.t[2:] - m.t[:-2])[:, None], m.qd[1:-1]
    size = float(np.linalg.norm(slopes) * np.linalg.norm(qd))
    return size > 0.0 and float(np.sum(slopes * qd)) > SAME_MOTION * size


def few_samples(fit: Fit, e: Evidence) -> list[Mistake]:
    """Rows with too few samples for the parameters that act on them: their noise is hardly known, nor what depends on it."""
    if not e.rows:
        return []
    acting = dict(zip(e.rows, np.any(e.equations().W != 0.0, axis=1).sum(axis=1), strict=True))
    short = {
        r.row: (r.samples, min(int(acting[r.row]), len(fit.values)))
        for r in fit.rows
        if r.row in acting and r.samples < MIN_SAMPLES_PER_COLUMN * min(acting[r.row], len(fit.values))
    }
    if not short:
        return []
    listed = ", ".join(f"{row} {samples} for {columns}" for row, (samples, columns) in short.items())
    return [
        Mistake(
            "few samples",
            Fault(
                "there are too few samples for the parameters that act on a row, so that its noise and all deviations are hardly known.",
                "rows",
                f"at least {MIN_SAMPLES_PER_COLUMN:g} samples for each parameter",
                listed,
                "Record a longer log, or estimate fewer parameters.",
            ),
        )
    ]


def inspect_forces(tree: Tree, motion: Motion) -> list[Mistake]:
    """Measured forces that are constant, clipped, frozen, held, or have spikes and dropouts."""
    if motion.forces is None or len(motion) < 5 or not _in_order(motion):
        return []
    channels = {}
    for c, kind, force in zip(tree.coordinates, tree.coordinate_kinds, motion.forces.T, strict=True):
        there = np.isfinite(force)
        if there.any() and np.any(force[there]):
            channels[c] = Channel(c, motion.t[there], force[there], "N*m" if kind == "turning" else "N")
    found = inspect(Experiment(channels, "forces"))
    return [
        Mistake(f.kind, Fault(f.fault.what, f"force of '{f.channel}'", f.fault.expected, f.fault.found, f.fault.hint))
        for f in found
        if f.kind in INSPECTED and f.severity == "warning"
    ]
