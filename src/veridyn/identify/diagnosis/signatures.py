"""What a log says against its fit although it fits: causes that leave a trace in the residual, of the model's structure and of sensors.

A rotor or friction that the model lacks, a force with another scale, a delay, an offset or a drift, a position with another zero, and a
machine of another size each add columns to the equations (:mod:`veridyn.identify.diagnosis.causes`). Causes are compared by the likelihood
of their equations (:mod:`veridyn.identify.diagnosis.ranking`), after what noise of the motion makes of them by itself. A cause that
moves no parameter by as much as is asked for is not reported. One whose columns the parameters explain whole cannot be found by any test of
this log; it moves them, and leaves no trace. It is listed as such: nothing that is left of its column, rounding and noise, is evidence.
What is found is reported in words: what, where, how much, what it moves, and what to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.diagnosis.causes import KINDS, PLURAL, Damage, causes_of, place_of, words_of
from veridyn.identify.diagnosis.deciding import deciding_recording
from veridyn.identify.diagnosis.evidence import MIN_SAMPLES_PER_COLUMN
from veridyn.identify.diagnosis.few_levels import few_levels
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.mistake import Mistake
from veridyn.identify.diagnosis.questions import Questions
from veridyn.identify.diagnosis.ranking import ranked
from veridyn.identify.diagnosis.score_test import (
    NoiseSlopes,
    TraceNoise,
    noise_slopes,
    passed_covariances,
    passed_variance,
)
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.diagnosis.structure import IN_STEPS
from veridyn.identify.found_cause import FoundCause
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.resample import uniform_rate

DEFAULT = DiagnosisSettings()
EXACT_SHARE = 1e-5  # of a row's force: a smaller residual is rounding, not noise
SLOPE_ROUNDING = 1e-7  # of the forces, per rad or m: rounding of some hundred operations, 1e-14, over a step of 1e-6
MAD = 1.4826  # standard deviations of normal noise to their median absolute value
GROSS = 4.0  # deviations: one in 16,000 of normal noise is beyond


@dataclass(frozen=True)
class Examined:
    """`found`: damages, the clearest first, each with those that explain it nearly as well; `untestable`: (kind, where) of columns that the
    parameters explain whole on this log."""

    found: list[list[Damage]]
    untestable: tuple[tuple[str, str], ...] = ()


def examine(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    samples: int | None = None,
    *,
    gross: bool = False,
    settings: DiagnosisSettings = DEFAULT,
) -> Examined:
    """Causes that the residual of a fit shows, and those that it cannot show.

    `samples`: at most so many are looked at, in stretches; all if left out. `gross`: equations with gross errors are left out, as the fit
    does.
    """
    unknown = [kind for kind in settings.causes if kind not in KINDS]
    if unknown:
        raise IdentificationError(
            f"there is no cause {unknown[0]!r}.", where="DiagnosisSettings.causes", expected=", ".join(KINDS)
        )
    fit = fit.for_white_noise()
    rows = [r.row for r in fit.rows if r.row in fit.described.coordinates]
    if not rows or not len(fit.values):
        return Examined([])
    motions, sampling = _distinct(motions), _thinned(sampling, rows, motions)
    x = samples_of(fit, motions, rows, sampling, most=samples)
    if gross:
        x = _without_gross_errors(x, fit.values)
    every = list(causes_of(x, fit.values))
    least = SLOPE_ROUNDING * np.linalg.norm(x.forces)
    asked = settings.causes or KINDS
    seen = [c for c in every if c.kind in asked and np.linalg.norm(c.columns) > least]
    few = np.count_nonzero(x.used) < MIN_SAMPLES_PER_COLUMN * x.W.shape[2]
    if not seen or not x.measured.any() or few or _exact(fit, x):
        return Examined([])
    model = NoisyEquations.of(x, x.misfit(fit.values))
    clock = max(float(np.median(np.diff(m.t))) for m in motions)

    @cache
    def noise() -> tuple[NoiseSlopes, Array] | None:
        """Once, and only where a score is suspicious."""
        slopes = noise_slopes(fit, motions, x.rows)
        passed = None if slopes is None else passed_covariances(motions, x.rows, sampling, x.window, model.lags)
        return None if slopes is None or passed is None else (slopes, passed)

    def by_noise(other: NoisyEquations) -> TraceNoise | None:
        known = noise()
        return None if known is None else scores_by_noise(*known, x, other)

    questions = Questions(fit, x, seen, clock, by_noise, model)
    found = [g for g in ranked(questions, settings.false_alarm_rate) if g[0].shift > settings.min_shift]
    if IN_STEPS in asked and not any(d.kind == IN_STEPS for group in found for d in group):
        rounded = few_levels(fit, motions, rows, every, model)
        found = [*([d] for d in rounded if d.shift > settings.min_shift), *found]
    return Examined(found, questions.untestable(every))


def _without_gross_errors(x: Samples, values: Array) -> Samples:
    """Without equations whose residual is beyond `GROSS` deviations of its row."""
    residual = np.where(x.used, x.misfit(values), np.nan)
    deviation = MAD * np.nanmedian(np.abs(residual), axis=0)
    return replace(x, used=x.used & ~(np.abs(residual) > GROSS * deviation))


def _distinct(motions: Sequence[Motion]) -> list[Motion]:
    """Motions without repetitions: the same log again is no further evidence."""
    kept: list[Motion] = []
    for m in motions:
        if not any(len(m) == len(k) and np.array_equal(m.q, k.q) and _same(m.forces, k.forces) for k in kept):
            kept.append(m)
    return kept


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b, equal_nan=True))


def _thinned(sampling: Sampling, rows: Sequence[str], motions: Sequence[Motion]) -> Sampling:
    """One equation for each independent one that the filter of the fastest row leaves: nothing is between them but what it has taken."""
    lows = [low for low in map(sampling.filter_of, rows) if low is not None]
    if not lows or len(lows) < len(rows):
        return sampling
    rate = uniform_rate(motions[0].t, where="motion.t")
    step = int(min(1.0 / low.white_gain(rate) ** 2 for low in lows) / sampling.decimate)
    return replace(sampling, decimate=sampling.decimate * max(1, step))


def scores_by_noise(slopes: NoiseSlopes, passed: Array, x: Samples, model: NoisyEquations) -> TraceNoise:
    """What noise of the accelerations, with these autocovariances behind the filters of rows, makes of scores of the weighted equations."""
    weight = model.weight.max(axis=0) * model.again.max(axis=0)
    return slopes.of((x.used.sum(axis=0) * weight**2)[:, None] * passed_variance(passed, model.filters))


def _exact(fit: Fit, x: Samples) -> bool:
    """Whether the residual of some row is rounding."""
    residual, forces = (np.where(x.used, v, 0.0) for v in (x.misfit(fit.values), x.forces))
    rms, size = np.linalg.norm(residual, axis=0), np.linalg.norm(forces, axis=0) / np.sqrt(x.window)
    return not bool(np.all((rms > EXACT_SHARE * size) & (rms > 0.0)))


def signature_mistakes(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    samples: int | None = None,
    untestable: list[str] | None = None,
    *,
    gross: bool = False,
    settings: DiagnosisSettings = DEFAULT,
) -> list[Mistake]:
    """What :func:`examine` finds, in words; what it cannot test is added to `untestable`."""
    done = examine(fit, motions, sampling, samples, gross=gross, settings=settings)
    if untestable is not None and done.untestable:
        untestable.append(_untestable(done.untestable))
    return [_mistake(fit.described, group) for group in done.found]


def _untestable(names: Sequence[tuple[str, str]]) -> str:
    """Damages that leave no trace on a log, in one sentence."""
    by_kind: dict[str, list[str]] = {}
    for kind, where in names:
        by_kind.setdefault(kind, []).append(f"'{where}'")
    said = [
        PLURAL[kind] + (f" of {', '.join(places)}" if kind != "machine size" else "")
        for kind, places in by_kind.items()
    ]
    return f"{'; '.join(said)}: the parameters take up whatever is wrong there, so no test of this log can show it."


def _mistake(machine: Machine, group: Sequence[Damage]) -> Mistake:
    best, others = group[0], group[1:]
    also, recording = "", deciding_recording(best.kind, [d.kind for d in others])
    if others:
        listed = "; ".join(f"{w.place}: {w.what} ({w.found})" for w in (words_of(machine, d) for d in others))
        also = f" These data explain it nearly as well otherwise: {listed}. To decide, record {recording}."
    places = f" together with {', '.join(best.also)}" if best.also else ""
    evidence = f", {abs(best.z):.2g} deviations{places}; it moves {best.moved} by {best.shift:.2g} deviations"
    if best.unshown:
        evidence = (
            f": this log neither shows nor excludes it, and as much as it leaves open moves {best.moved} by "
            f"{best.shift:.2g} deviations"
        )
        also = " Where its inertia is known, or none, add the element with that value as a known parameter."
    words = words_of(machine, best)
    measured = FoundCause(
        cause=best.kind,
        place=place_of(machine, best) or words.place,
        rank=1,
        evidence=best.evidence,
        size=best.size,
        sigma=best.sigma,
        moves=best.moved,
        shift=best.shift,
        alternatives=tuple((d.kind, place_of(machine, d)) for d in others),
        recording=recording,
        remedy=words.hint,
    )
    return Mistake(best.kind, words.fault(also, evidence), measured)
