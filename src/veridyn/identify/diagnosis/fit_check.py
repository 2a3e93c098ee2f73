"""What a fit is asked before it is handed out: signs, swaps, units, clock, samples, and forces that no sensor measures.

"fast" looks at four hundred samples, at stretches of longer logs and at every measured force; "full" asks all that ``veridyn identify``
asks: all samples, positions of closed machines, delays, and other gravities and geometries. Both use the
checks of :mod:`veridyn.identify.diagnosis.replacements`, `signatures` and `plausible`, and :func:`veridyn.signals.quality.inspect`; nothing
is changed.

A low-pass of the equations leaves residuals correlated, so that deviations for uncorrelated ones are too small. White noise behind a
filter with gain g of white noise (:meth:`~veridyn.signals.butterworth.Butterworth.white_gain`) is nearly white again at one equation in
1/g². With more of them each tells less than a new one, and deviations that count all as new are too small by up to √(1/g²/decimate), as
where the columns are as slow as the filter. It is reported where the residual shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from veridyn.errors import IdentificationError, VeridynError
from veridyn.identify.diagnosis.causes import FORCES, STRUCTURE
from veridyn.identify.diagnosis.columns import columns_of, fit_forces, independent_share
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.diagnosis.evidence import (
    FIRST_SAMPLES,
    MIN_SAMPLES_PER_COLUMN,
    STRONG,
    Evidence,
)
from veridyn.identify.diagnosis.plausible import (
    EQUAL_CORRELATION,
    WRONG_SIGNS,
    absurd_signs,
    odd_motion,
    prior_scales,
)
from veridyn.identify.diagnosis.position_noise import (
    beyond_noise,
    noise_behind,
    with_noise_as_cause,
)
from veridyn.identify.diagnosis.replacements import exchanged_positions, find_mistakes, most_left
from veridyn.identify.diagnosis.signatures import DEFAULT, signature_mistakes
from veridyn.identify.diagnosis.structure import LATE_FORCE, quantised
from veridyn.identify.estimator import OLS, WLS, Estimator
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.fit_verdict import CONTRADICTING_SAMPLES as CONTRADICTING_SAMPLES
from veridyn.identify.gains import estimated_gains
from veridyn.identify.regression.sampling import SIGN_SIGMAS, SLOW_SPEED_RATIO, Sampling, speed_variance
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.identify.validate import predicted
from veridyn.inference.finding import CONTRADICTION, UNEXPLAINED, Mistake
from veridyn.inference.log_inspection import clock_mistake, sensor_mistakes
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.findings import SLOWEST_CLOCK
from veridyn.signals.outliers import REST_SAMPLES, runs
from veridyn.signals.resample import uniform_rate

Diagnose = Literal["fast", "full", "off"]
STUCK_SHARE = 0.5  # of the scatter of the force elsewhere: a larger change would have been seen (chosen)
# Equations for each independent one, from which it is reported: deviations are half of theirs (chosen)
OVERSAMPLED = 4.0
NOISY = "noisy accelerations"
AS_IT_IS = "the model does not explain these forces as it is, nor do its parameters belong to a machine."
SYMPTOMS = ("delay", "gravity", "geometry")  # kinds of mistakes that structure which a model lacks looks like
Traces = Literal["all", "without gross errors", "known noise"]
NOISY_MOTION = ("iv", "likelihood", "oe")  # methods made for noisy accelerations, which leave traces of their own
Found = TypeVar("Found")


def check_level(level: str | DiagnosisSettings) -> None:
    """Refuse a word that is no level of diagnosis."""
    if not isinstance(level, DiagnosisSettings) and level not in ("fast", "full", "off"):
        what = f"there is no diagnosis {level!r}."
        raise IdentificationError(what, where="diagnose", expected="'fast', 'full' or 'off'")


def suspicions(
    fit: Fit,
    e: Evidence,
    apart: float = 1.0,
    limits: Mapping[str, tuple[float, float]] | None = None,
    progress: Progress = silent,
    *,
    fast: bool = False,
    late: Delays | None = None,
    settings: DiagnosisSettings = DEFAULT,
    failed: list[str],
) -> list[Mistake]:
    """What some samples and the values of a fit say against the data or the model; `apart` and `late` as for :func:`find_mistakes`.

    Checks that cannot be carried out are noted in `failed`.
    """
    return [
        *attempt("Simple mistakes", lambda: _mistakes(fit, e, apart, progress, fast, late, settings), failed),
        *attempt("Speeds and ranges", lambda: odd_motion(e, limits), failed),
        *attempt("Signs of inertia and friction", lambda: absurd_signs(fit, e), failed),
        *attempt("Forces beside those of the model's own values", lambda: prior_scales(e), failed),
    ]


def _mistakes(
    fit: Fit,
    e: Evidence,
    apart: float,
    progress: Progress,
    fast: bool,
    late: Delays | None,
    settings: DiagnosisSettings,
) -> list[Mistake]:
    found = list(find_mistakes(e, apart, progress, fast=fast, late=late, settings=settings))
    return with_noise_as_cause(found, fit, e.motion, e.motion.qdd_noise, CONTRADICTION)


def with_traces(
    found: list[Mistake],
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    failed: list[str],
    samples: int | None = None,
    untestable: list[str] | None = None,
    traces: Traces = "all",
    settings: DiagnosisSettings = DEFAULT,
    noise_asked: bool = False,
) -> list[Mistake]:
    """The same with positions that are exchanged from a moment on, or with traces of causes, which take the place of rows that contradict
    each other, and of rows that nothing explains where the causes explain them.

    Structure that the model lacks, and one delay of all forces, take the place of delays of each, another gravity and bodies that sit
    elsewhere as well, which they look like, unless these are much likelier. Mistakes that leave more in the residual than such traces are
    not searched any further; wrong signs of parameters leave none, so that traces may say where they come from. Errors of known parameters
    that are stated to be uncertain leave the same, and so does noise of currents where the gains of drives are estimated; such fits are not
    asked. Damage that this log cannot show is added to `untestable`. `samples`: at most so many are looked at, all if left out.
    `noise_asked`: bias by noise of positions is among the mistakes where there is one.
    """
    fit = fit.for_white_noise()
    exchanged = attempt(
        "Positions that change places along the log",
        lambda: exchanged_positions(fit, motions, [r.row for r in fit.rows], settings),
        failed,
    )
    if exchanged:  # accelerations at the jump are those of no machine, and the rows contradict each other behind it
        return [*exchanged, *(m for m in found if m.kind not in (CONTRADICTION, NOISY, *SYMPTOMS))]
    if traces == "known noise" and any(m.noise_bands is None for m in motions):
        return found
    gains, kinds = estimated_gains(fit.described), {m.kind for m in found}
    if gains or fit.known is not None or kinds - {CONTRADICTION, UNEXPLAINED, NOISY, *WRONG_SIGNS, *SYMPTOMS}:
        return found
    gross, most = traces == "without gross errors", np.inf
    if UNEXPLAINED in kinds:  # which makes all deviations large, so that nothing seems to move a parameter by many
        most, settings = most_left(settings), replace(settings, min_shift=0.0)
    causes = attempt(
        "Traces of small damage",
        lambda: signature_mistakes(
            fit, motions, sampling, samples, untestable, gross=gross, settings=settings, most=most
        ),
        failed,
    )
    if not causes:
        return found
    one_clock = (causes[0].kind, causes[0].fault.where) == (LATE_FORCE, FORCES)
    if kinds & set(SYMPTOMS) and causes[0].kind not in STRUCTURE and not one_clock:
        return found
    explained = sum(m.finding(1).evidence for m in causes if m.kind == causes[0].kind)
    if any(m.finding(1).evidence > explained + STRONG for m in found if m.kind in SYMPTOMS):
        return found
    if NOISY in kinds or not noise_asked:
        noise = noise_behind(motions, sampling, [r.row for r in fit.rows])
        causes = beyond_noise(causes, fit, motions[0], noise, LATE_FORCE)
        causes = with_noise_as_cause(causes, fit, motions[0], noise)
    if not causes:
        return found
    kept = [m for m in found if m.kind not in (CONTRADICTION, UNEXPLAINED, *SYMPTOMS)]
    behind = (NOISY, *WRONG_SIGNS) if UNEXPLAINED in kinds else (NOISY,)  # signs follow from what explains most forces
    if WRONG_SIGNS[1] in kinds:  # what explains most forces may then be the model of another machine
        kept += [replace(m, fault=replace(m.fault, what=AS_IT_IS)) for m in found if m.kind == UNEXPLAINED]
        behind = (*behind, UNEXPLAINED)
    return [*(m for m in kept if m.kind not in behind), *causes, *(m for m in kept if m.kind in behind)]


def slow_clocks(motion: Motion) -> list[Mistake]:
    """A clock in another unit; poses that were not recorded one after the other have no rate."""
    if len(motion) < 3:
        return []
    rate = (len(motion) - 1) / float(motion.t[-1] - motion.t[0])
    return [clock_mistake("motion", rate)] if rate < SLOWEST_CLOCK and _in_order(motion) else []


def _in_order(motion: Motion) -> bool:
    """Whether the samples follow each other: the speeds are those of the positions. Random poses have no neighbours."""
    m = motion[:FIRST_SAMPLES]
    slopes, qd = (m.q[2:] - m.q[:-2]) / (m.t[2:] - m.t[:-2])[:, None], m.qd[1:-1]
    size = float(np.linalg.norm(slopes) * np.linalg.norm(qd))
    return size > 0.0 and float(np.sum(slopes * qd)) > EQUAL_CORRELATION * size


def few_samples(fit: Fit, e: Evidence) -> list[Mistake]:
    """Rows with too few samples for the parameters that act on them: their noise is hardly known, nor what depends on it."""
    if not e.rows or all(r.samples >= MIN_SAMPLES_PER_COLUMN * len(fit.values) for r in fit.rows):
        return []
    W = columns_of(e.machine, e.motion, e.rows, every=True).W
    acting = dict(zip(e.rows, np.any(W != 0.0, axis=1).sum(axis=1), strict=True))
    short = {
        r.row: (r.samples, min(int(acting[r.row]), len(fit.values)))
        for r in fit.rows
        if r.row in acting and r.samples < MIN_SAMPLES_PER_COLUMN * min(acting[r.row], len(fit.values))
    }
    if not short:
        return []
    listed = ", ".join(f"{row} {samples} for {columns}" for row, (samples, columns) in short.items())
    return [
        Mistake.of(
            "few samples",
            "there are too few samples for the parameters that act on a row, so that its noise and all deviations are hardly known.",
            where="rows",
            expected=f"at least {MIN_SAMPLES_PER_COLUMN:g} samples for each parameter",
            found=listed,
            hint="Record a longer log, or estimate fewer parameters.",
        )
    ]


def stuck_forces(fit: Fit, motions: Sequence[Motion]) -> list[Mistake]:
    """Forces that keep one value, zero or another, for long while those of the fit change as much as the force does elsewhere.

    A machine at rest keeps its forces; one that moves does not. No measurement but the motion says so, so this holds for forces of which
    any share is zero.
    """
    return [mistake for motion in motions for mistake in _stuck(fit, motion)]


def _stuck(fit: Fit, motion: Motion) -> list[Mistake]:
    if motion.forces is None:
        return []
    found: list[Mistake] = []
    machine = fit.described
    # The sign of a speed at rest is that of its noise, and so is the friction that a fit has there.
    doubtful = np.maximum(
        SIGN_SIGMAS * np.sqrt(speed_variance(motion)), SLOW_SPEED_RATIO * np.abs(motion.qd).max(axis=0)
    )
    for r in fit.rows:
        if r.row not in machine.coordinates:
            continue
        force = motion.forces[:, machine.coordinates.index(r.row)]
        longest = max(runs(np.diff(force) == 0.0, REST_SAMPLES), key=lambda span: span[1] - span[0], default=None)
        if longest is None:
            continue
        a, b = longest[0], longest[1] + 1
        picked = motion[np.unique(np.linspace(a, b, REST_SAMPLES).astype(int))]
        change = float(
            np.ptp(fit_forces(fit, replace(picked, qd=np.where(np.abs(picked.qd) < doubtful, 0.0, picked.qd)), [r.row]))
        )
        others = np.delete(force, np.arange(a, b + 1))
        scatter = float(np.nanstd(others)) if np.isfinite(others).any() else 0.0
        step = float(quantised(force[None], force[None])[1][0])  # a change of less is rounding
        if change > max(STUCK_SHARE * scatter, step) and scatter > 0.0:
            unit = r.unit or "N"
            found.append(
                Mistake.of(
                    "frozen",
                    f"it is frozen from t = {motion.t[a]:.6f} s to t = {motion.t[b]:.6f} s, though the machine moves.",
                    where=f"force of '{r.row}'",
                    expected=f"a change of {change:.3g} {unit}, as the fit has it",
                    found=f"{force[a]:.6g} {unit} in {b - a + 1} samples",
                    hint="Leave those samples out: the sensor or its bus stood still.",
                )
            )
    return found


def inspect_forces(machine: Machine, motion: Motion) -> list[Mistake]:
    """Measured forces that are constant, clipped, frozen, held or coarse, or have spikes and dropouts."""
    if motion.forces is None or len(motion) < 5 or not _in_order(motion):
        return []
    channels = {}
    for c, kind, force in zip(machine.coordinates, machine.coordinate_kinds, motion.forces.T, strict=True):
        there = np.isfinite(force)
        if there.any() and np.any(force[there]):
            channels[c] = Channel(c, motion.t[there], force[there], "N*m" if kind == "turning" else "N")
    return sensor_mistakes(Experiment(channels, "forces"), {c: c for c in channels}, "force of")


def traces_of(method: Estimator) -> Traces:
    """Which equations of a method show causes by least squares: all, all without gross errors, or all where it is known how noisy the
    accelerations are, so that what the noise makes of a trace is known, too."""
    if isinstance(method, Robust):
        return "without gross errors"
    return "known noise" if method.name in NOISY_MOTION else "all"


def assumes_uncorrelated(method: Estimator) -> bool:
    """Whether the deviations of a method, with covariance "white", are those for uncorrelated residuals."""
    return isinstance(method, OLS | WLS | Robust | Prior | Consistent)


def oversampled_rows(fit: Fit, motions: Sequence[Motion], sampling: Sampling) -> list[Mistake]:
    """Rows whose filter is so low beside the rate of the equations that neighbouring residuals are correlated, and are."""
    m = motions[0][:FIRST_SAMPLES]
    enough = MIN_SAMPLES_PER_COLUMN * len(fit.values)  # residuals from which a correlation is told
    if len(m) < enough * sampling.decimate:
        return []
    rate = uniform_rate(m.t, where="motion.t")
    steps = {}
    for r in fit.rows:
        low = sampling.filter_of(r.row)
        if low is not None and (step := 1.0 / low.white_gain(rate) ** 2) >= OVERSAMPLED * sampling.decimate:
            steps[r.row] = step
    if not steps:
        return []
    names, measured, model = predicted(fit, m, list(steps), sampling)
    found = {}
    for k, row in enumerate(names):
        residual, low = measured[:, k] - model[:, k], sampling.filter_of(row)
        assert low is not None  # of the rows that have one
        if not np.isfinite(residual).all():
            continue
        used = sampling.uses(fit.described, row, m.qd, np.arange(len(m)), len(m))
        kept = zero_phase(residual, rate, low)[:: sampling.decimate]
        both = used[:: sampling.decimate][1:] & used[:: sampling.decimate][:-1]
        first, second = kept[:-1][both], kept[1:][both]
        if len(first) >= enough and (size := float(first @ first + second @ second)) > 0.0:
            correlation = 2.0 * float(first @ second) / size
            if independent_share(correlation) <= 1.0 / OVERSAMPLED:
                found[row] = correlation
    if not found:
        return []
    fastest = int(min(steps[row] for row in found))
    factor = max(np.sqrt(steps[row] / sampling.decimate) for row in found)
    return [
        Mistake.of(
            "oversampled",
            "the filter of the equations leaves their residuals correlated, so that deviations for uncorrelated residuals are too "
            f"small, by a factor of up to {factor:.2g}.",
            where="sampling.decimate",
            expected=f"one equation in {fastest} or so behind this filter at {rate:.4g} Hz",
            found=f"one in {sampling.decimate}; neighbouring residuals correlate by "
            + ", ".join(f"{x:.2f} ({row})" for row, x in found.items()),
            hint=f"Leave covariance at 'auto', or set Sampling(decimate={fastest}).",
        )
    ]


def attempt(name: str, check: Callable[[], Iterable[Found]], failed: list[str]) -> list[Found]:
    """What a check finds. One that cannot be carried out is noted in `failed`: the fit that it is asked of is done, and stands."""
    try:
        return list(check())
    except VeridynError as error:
        fault = error.faults[0]
        where = f"{fault.where}: " if fault.where else ""
        found = f" ({fault.found})" if fault.found else ""
        failed.append(f"{name}, because a trial failed: {where}{fault.what.rstrip('.')}{found}.")
        return []
    except LinAlgError as error:
        failed.append(f"{name}, because a decomposition failed: {error}.")
        return []
