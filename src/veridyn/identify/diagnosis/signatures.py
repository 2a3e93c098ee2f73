"""What a log says against its fit although it fits: causes that leave a trace in the residual, of the model's structure and of sensors.

A rotor or friction that the model lacks, a force with another scale, a delay, an offset or a drift, a position with another zero, and a
machine of another size each add columns to the equations (:mod:`veridyn.identify.diagnosis.causes`). Each is a model that is compared with
the one without it, after what noise of the motion makes of it by itself. The causes that explain most, as the equations are and behind the
filters of their noise, are fitted each with a noise of its own (:mod:`veridyn.identify.diagnosis.likelihood`). A cause is significant where
both its score, whose variance allows for what correlation is left, and its gain in likelihood are beyond what noise makes of so many
questions. Where none is, what every gear has is asked at all places together; and friction that steps with the sign of a speed is asked
again of all samples: noise of a long memory hides no step from one sample to the next, but windows of samples do. Structure comes before
sensors: a sensor is named first only where it beats the best structure by `STRONG` of Schwarz's criterion. What was found is taken into
the model; the others are asked again.

Causes that explained nearly as much, and nothing beside it, cannot be separated from it on this log: their columns are alike along its
motion. Each depends on something that the other does not: the pose, the load, the speed, time, or whether the machine moves at all. A
recording in which that alone changes separates them, and is named.

A cause that moves no parameter by as much as is asked for is not reported. One whose columns the parameters explain whole cannot be found
by any test of this log; it moves them, and leaves no trace. It is listed as such: nothing that is left of its column, rounding and noise,
is evidence. What is found is reported in words: what, where, how much, what it moves, and what to try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.diagnosis.causes import (
    DRIFTING_ENCODER,
    ENCODER_ZERO,
    KINDS,
    PLURAL,
    Cause,
    Damage,
    causes_of,
    place_of,
    words_of,
)
from veridyn.identify.diagnosis.columns import DIFFERENCE
from veridyn.identify.diagnosis.evidence import MIN_SAMPLES_PER_COLUMN, STRONG
from veridyn.identify.diagnosis.few_levels import few_levels
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.questions import BEHIND_REVERSALS, Answer, Questions
from veridyn.identify.diagnosis.score_test import LIKELY, ROTOR
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.diagnosis.structure import (
    ASYMMETRIC,
    CABLE,
    DRY,
    FLEXIBLE,
    GRAVITY,
    IN_STEPS,
    LATE_FORCE,
    LOAD_FRICTION,
    LOW_PASS,
    PAYLOAD,
    PRESLIDING,
    SPRING,
    STRIBECK,
    VISCOUS,
    WARM_UP,
)
from veridyn.identify.diagnosis.trace_noise import (
    NoiseSlopes,
    TraceNoise,
    noise_slopes,
    passed_covariances,
    passed_variance,
)
from veridyn.identify.estimators.robust import MAD_TO_SIGMA
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.resample import uniform_rate

OFFSET, SCALE, FORCE_DRIFT, SIZE = "force offset", "force scale", "force drift", "machine size"  # kinds of causes
MAX_DAMAGES = 12  # that are looked for in one log: as many joints as an arm has may lack the same
# Of the limit of the first, for damages beside it: errors of a model leave several small traces (chosen)
FURTHER_SHARE = 0.1


def ranked(questions: Questions) -> list[list[Damage]]:
    """Causes that are significant at the rate of false alarms of all questions, the best first, each with those that this log cannot
    separate from it.

    Structure is asked first: a cause of a sensor comes before it only where it beats the best structure, in one joint or in all, by
    `STRONG` of Schwarz's criterion. What was found is taken into the model, and the others are asked again, more strictly. A rotor that the
    machine has by its description, and the model not, comes last.
    """
    found: list[list[Damage]] = []
    limits, share = questions.limits(), 1.0

    def is_clear(a: Answer) -> bool:
        return a.chance < share * limits[a.cause.kind]

    for _ in range(MAX_DAMAGES):
        possible = [a for a in questions.leading() if questions.possible(a)]
        clear = [a for a in possible if is_clear(a)]
        if not clear:
            possible = clear = [a for a in questions.everywhere() if is_clear(a) and questions.possible(a)]
        if not clear:
            possible = clear = [a for a in questions.together() if is_clear(a) and questions.possible(a)]
        if not clear:
            break
        best = most_likely(clear, questions)
        questions.take(best)
        group = [best.damage]
        # Also such as are not significant by themselves: what is nearly as likely as the best is not separated from it.
        for a in sorted((a for a in possible if a.criterion > 0.0), key=lambda a: -a.criterion):
            name = a.cause.name
            if a.criterion > best.criterion - STRONG and name not in {(d.kind, d.where) for d in group}:
                again = questions.answer(a.cause, np.zeros((len(questions.fit.values), a.cause.columns.shape[2])))
                if not is_clear(again):
                    group.append(a.damage)
        found.append(group)
        share = FURTHER_SHARE
    rotor = None if any(d.kind == ROTOR for group in found for d in group) else questions.unknown_rotors()
    return found if rotor is None else [*found, [rotor]]


def clearest(questions: Questions, limits: Mapping[str, float]) -> list[list[Damage]]:
    """The clearest of a few causes that are significant below these chances, by kind; none where none is."""
    asked = zip(questions.causes, questions.parts, strict=True)
    answers = [questions.answer(c, questions.effects[:, part]) for c, part in asked]
    clear = [a for a in answers if a.chance < limits[a.cause.kind] and questions.possible(a)]
    return [[max(clear, key=lambda a: a.criterion).damage]] if clear else []


def most_likely(clear: Sequence[Answer], questions: Questions) -> Answer:
    """The cause that is taken: the best structure unless a sensor beats it clearly."""
    structural = sorted((a for a in clear if a.cause.structural), key=lambda a: -a.criterion)
    sensor = max((a for a in clear if not a.cause.structural), key=lambda a: a.criterion, default=None)
    if sensor is not None and sensor.cause.kind == LOW_PASS:  # a delay differs from it by second order, and is commoner
        late = [a for a in clear if a.cause.name == (LATE_FORCE, sensor.cause.where)]
        sensor = max(
            (a for a in late if a.criterion > sensor.criterion - STRONG), key=lambda a: a.criterion, default=sensor
        )
    if sensor is None:
        return structural[0]
    if (
        sensor.cause.kind == OFFSET
    ):  # the dry part of friction that differs with direction is one: nothing of the rest is seen
        part = (ASYMMETRIC, sensor.cause.where)
        structural = [a for a in structural if a.cause.name != part or a.criterion > sensor.criterion]
    if not structural:
        return sensor
    structure = structural[0]
    both = (sensor.criterion, structure.criterion)
    if structure.cause.kind in BEHIND_REVERSALS and sensor.cause.kind in BEHIND_REVERSALS:
        # Of one column each in the same few samples, whose scatter says little of either
        both = (sensor.evidence, structure.evidence)
    if both[0] - both[1] <= STRONG:
        return structure
    every = questions.family(structure.cause.kind)
    return sensor if both[0] > every + STRONG else structure


DEFAULT = DiagnosisSettings()
SLOPE_ROUNDING = float(np.sqrt(np.finfo(float).eps))  # of the forces, per rad or m: rounding of differences


@dataclass(frozen=True)
class Examined:
    """`found`: damages, the clearest first, each with those that explain it nearly as well; `untestable`: (kind, where) of columns that the
    parameters explain whole on this log; `left`: share of the measured forces, noise included, that is left beside the damages."""

    found: list[list[Damage]]
    untestable: tuple[tuple[str, str], ...] = ()
    left: float = 1.0


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
    motions, sampling = distinct(motions), _thinned(sampling, rows, motions)
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
    clock = max(float(np.median(np.diff(m.t))) for m in motions)

    def questions_of(x: Samples, causes: Sequence[Cause]) -> Questions:
        model = NoisyEquations.of(x, x.misfit(fit.values))
        noise = _noise_of(fit, motions, sampling, x, model.lags)
        return Questions(fit, x, causes, clock, noise, model, settings.false_alarm_rate)

    questions = questions_of(x, seen)
    model = questions.model
    groups = ranked(questions)
    shown = any(not g[0].unshown for g in groups)
    if not shown and x.window > 1 and (names := {(c.name, c.option) for c in questions.stepping()}):
        fine = samples_of(fit, motions, rows, sampling, window=1, most=samples)
        fine = _without_gross_errors(fine, fit.values) if gross else fine
        again = questions_of(fine, [c for c in causes_of(fine, fit.values) if (c.name, c.option) in names])
        groups = [*clearest(again, questions.limits()), *groups]
    found = [g for g in groups if g[0].shift > settings.min_shift]
    if IN_STEPS in asked and not any(d.kind == IN_STEPS for group in found for d in group):
        rounded = few_levels(fit, motions, rows, every, model)
        found = [*([d] for d in rounded if d.shift > settings.min_shift), *found]
    return Examined(found, questions.untestable(every), _left(x, questions.model))


def _noise_of(
    fit: Fit, motions: Sequence[Motion], sampling: Sampling, x: Samples, lags: int
) -> Callable[[NoisyEquations], TraceNoise | None]:
    """What noise of the accelerations makes of scores; computed once, and only where a score is suspicious."""

    @cache
    def noise() -> tuple[NoiseSlopes, Array] | None:
        slopes = noise_slopes(fit, motions, x.rows)
        passed = None if slopes is None else passed_covariances(motions, x.rows, sampling, x.window, lags)
        return None if slopes is None or passed is None else (slopes, passed)

    def by_noise(model: NoisyEquations) -> TraceNoise | None:
        known = noise()
        return None if known is None else scores_by_noise(*known, x, model)

    return by_noise


def _left(x: Samples, model: NoisyEquations) -> float:
    """The share of the forces of the rows that a model leaves."""
    weight = model.weight.max(axis=0)
    left = model.plain.residual / np.where(weight > 0.0, weight, np.inf)
    return float(np.linalg.norm(left) / max(np.linalg.norm(x.y * x.used), np.finfo(float).tiny))


def _without_gross_errors(x: Samples, values: Array) -> Samples:
    """Without equations whose residual is beyond `LIKELY` deviations of its row."""
    residual = np.where(x.used, x.misfit(values), np.nan)
    deviation = MAD_TO_SIGMA * np.nanmedian(np.abs(residual), axis=0)
    return replace(x, used=x.used & ~(np.abs(residual) > LIKELY * deviation))


def distinct(motions: Sequence[Motion]) -> list[Motion]:
    """Motions without repetitions: the same log again, or its beginning, is no further evidence."""
    kept: list[int] = []
    for i in sorted(range(len(motions)), key=lambda i: -len(motions[i])):
        m, others = motions[i], [motions[k] for k in kept]
        if not any(np.array_equal(m.q, o.q[: len(m)]) and _same(m.forces, o.forces, len(m)) for o in others):
            kept.append(i)
    return [motions[i] for i in sorted(kept)]


def _same(a: Array | None, b: Array | None, length: int) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b[:length], equal_nan=True))


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
    """Whether the residual of some row is as small as the errors of columns that are differences."""
    residual, forces = (np.where(x.used, v, 0.0) for v in (x.misfit(fit.values), x.forces))
    rms, size = np.linalg.norm(residual, axis=0), np.linalg.norm(forces, axis=0) / np.sqrt(x.window)
    return not bool(np.all((rms > DIFFERENCE * size) & (rms > 0.0)))


def signature_mistakes(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    samples: int | None = None,
    untestable: list[str] | None = None,
    *,
    gross: bool = False,
    settings: DiagnosisSettings = DEFAULT,
    most: float = np.inf,
) -> list[Mistake]:
    """What :func:`examine` finds, in words; what it cannot test is added to `untestable`. Nothing where it leaves more than `most` of all
    forces: that is no explanation."""
    done = examine(fit, motions, sampling, samples, gross=gross, settings=settings)
    if untestable is not None and done.untestable:
        untestable.append(_untestable(done.untestable))
    return [_mistake(fit.described, group) for group in done.found] if done.left <= most else []


def _untestable(names: Sequence[tuple[str, str]]) -> str:
    """Damages that leave no trace on a log, in one sentence."""
    by_kind: dict[str, list[str]] = {}
    for kind, where in names:
        by_kind.setdefault(kind, []).append(f"'{where}'")
    said = [PLURAL[kind] + (f" of {', '.join(places)}" if kind != SIZE else "") for kind, places in by_kind.items()]
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


# What separates a pair; the order does not matter.
_PAIRS = {
    frozenset(
        (LATE_FORCE, LOW_PASS)
    ): "fast reversals: a filter rounds their steps off, a delay moves them as they are",
    frozenset(
        (LATE_FORCE, VISCOUS)
    ): "the same path with faster reversals: a delay grows with acceleration, friction with speed",
    frozenset(
        (LATE_FORCE, FLEXIBLE)
    ): "the same path slower: a delay stays as long, a joint that yields follows its load",
    frozenset(
        (LATE_FORCE, PRESLIDING)
    ): "the same path slower: a delay stays as long, friction that yields takes longer to slide",
    frozenset(
        (LOAD_FRICTION, DRY)
    ): "the same motion with another payload: friction of the load grows, Coulomb friction does not",
    frozenset(
        (LOAD_FRICTION, SCALE)
    ): "the same path at other speeds: a factor does not turn with the direction of motion",
    frozenset((LOAD_FRICTION, WARM_UP)): "the same motion again, warm, and with another payload",
    frozenset(
        (GRAVITY, ENCODER_ZERO)
    ): "rests in other poses, the first joint turned: a slope stays where it is, a zero turns with its joint",
    frozenset(
        (GRAVITY, CABLE)
    ): "rests in other poses, the first joint turned: a slope stays where it is, a cable goes along",
    frozenset((GRAVITY, OFFSET)): "rests in other poses: an offset stays the same in all of them",
    frozenset(
        (ASYMMETRIC, OFFSET)
    ): "a rest that is approached from both sides: an offset stays, friction changes its side",
    frozenset(
        (SPRING, CABLE)
    ): "the joint over its whole range: a spring goes on growing, a cable that winds round comes back",
    frozenset(
        (SPRING, ENCODER_ZERO)
    ): "the joint in other poses of the joints before it: gravity changes with them, a spring does not",
    frozenset((WARM_UP, FORCE_DRIFT)): "the same motion again, warm: a sensor drifts on, friction does not",
    frozenset((WARM_UP, PAYLOAD)): "the same motion with the load known to be there from the start",
    frozenset(
        (DRIFTING_ENCODER, FORCE_DRIFT)
    ): "rests in one and the same pose at the start and at the end, seen by another sensor of position",
    frozenset((ROTOR, SCALE)): "the same path at half the speed: a factor stays, what a rotor takes falls to a quarter",
    frozenset((ENCODER_ZERO, SIZE)): "rests in other poses, and one distance between joints measured by hand",
}
# What shows a cause by itself, beside the parameters that it moves.
_ALONE = {
    ROTOR: "the same motion of the joint in another pose of the joints behind it: the moment of links changes, a rotor's does not",
    DRY: "sweeps of the joint at several constant speeds, both ways",
    VISCOUS: "sweeps of the joint at several constant speeds, both ways",
    ASYMMETRIC: "sweeps of the joint at several constant speeds, both ways",
    STRIBECK: "slow sweeps of the joint at several constant speeds, down to a creep",
    LOAD_FRICTION: "the same motion with another payload",
    PRESLIDING: "slow reversals of the joint, by less and less",
    SPRING: "rests of the joint over its whole range",
    CABLE: "rests of the joint over its whole range",
    WARM_UP: "the same motion cold, and again when the machine is warm",
    FLEXIBLE: "rests under several known loads, the position of the link measured besides",
    GRAVITY: "rests in many poses, the first joint turned right round",
    PAYLOAD: "one log before that moment and one behind it",
    SCALE: "the same motion with a payload of known mass",
    LATE_FORCE: "the same path with faster reversals",
    LOW_PASS: "the same path with faster reversals",
    IN_STEPS: "the same motion with more digits in the column",
    FORCE_DRIFT: "rests in one and the same pose at the start and at the end",
    OFFSET: "a rest that is approached from both sides",
    ENCODER_ZERO: "rests in several poses, or the index mark of the encoder",
    DRIFTING_ENCODER: "rests in one and the same pose at the start and at the end",
    SIZE: "one distance between joints measured by hand",
}


def deciding_recording(kind: str, others: Sequence[str] = ()) -> str:
    """What would separate a cause from those that a log cannot tell from it; without others, what would show it by itself.

    Empty where nothing is known of the kind, as of swapped columns, which a look at the log decides.
    """
    if others and any(other != kind for other in others):
        pairs = [_PAIRS.get(frozenset((kind, other)), "") for other in others if other != kind]
        found = [text for text in dict.fromkeys(pairs) if text]
        found = found or [_ALONE[k] for k in (kind, *others) if k in _ALONE][:2]
        return "; ".join(dict.fromkeys(found))
    if others:  # of one kind, at several places
        return "a motion in which one of these joints moves while the others rest"
    return _ALONE.get(kind, "")
