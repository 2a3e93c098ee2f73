"""Questions to a fit: causes that are asked about beside its model, alone, at all places together, and several at once.

A cause is a model of its own. Its score, whose variance allows for what correlation is left, and its gain in likelihood both say by how
much it is beyond noise. Either alone is not enough: noise of a long memory makes scores of slow causes, and noise of the residual's own
spectrum explains them nearly as well as the cause does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from veridyn.arrays import Array
from veridyn.identify.diagnosis.causes import DRIFTING_ENCODER, ENCODER_ZERO, PLURAL, POSITIVE, Cause, Damage
from veridyn.identify.diagnosis.delays import PROBABLE, late_causes, on_one_side
from veridyn.identify.diagnosis.drives import motors_without_rotor, turned_together, turns_round
from veridyn.identify.diagnosis.evidence import MIN_SAMPLES_PER_COLUMN
from veridyn.identify.diagnosis.held_out_gain import lowers_error
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.plausible import BEYOND_SIGMAS
from veridyn.identify.diagnosis.score_test import (
    LIKELY,
    MACHINE,
    ROTOR,
    Projected,
    limit_of,
    of_several,
    squared,
)
from veridyn.identify.diagnosis.signature_samples import Samples
from veridyn.identify.diagnosis.structure import (
    CABLE,
    FLEXIBLE,
    GRAVITY,
    IN_STEPS,
    LATE_FORCE,
    LOAD_FRICTION,
    LOW_PASS,
    PRESLIDING,
    STRIBECK,
    WARM_UP,
    WHOLE,
)
from veridyn.identify.diagnosis.trace_noise import TraceNoise
from veridyn.identify.result import Fit

LEAST_SIZE = (
    0.003  # of a machine beside its model: to a few thousandths models are drawn and machines are built (chosen)
)
LEADING = 2  # causes of structure and as many of sensors, as the equations are and whitened, whose models are compared
TOGETHER = 3  # causes that are asked together where none is clear by itself
SMOOTH_PART = 1.0  # deviations by which the smooth part of a force must be late, too (chosen)
SAME_DELAY = 3.0  # deviations between the delays of both (chosen)
BEHIND_REVERSALS = (LATE_FORCE, LOW_PASS, PRESLIDING)  # causes that dry friction shows where its speed turns
OF_EVERY_GEAR = (ROTOR, LOAD_FRICTION, FLEXIBLE, WARM_UP, STRIBECK, PRESLIDING)  # where one of a machine has it
ALIKE = (LOAD_FRICTION, FLEXIBLE)  # and of these about as much, measured by its load
GEARS_SHARE = (
    0.5  # of the false alarms, for what gears have, each kind the same: nearly every machine has some (chosen)
)
STEPPING = (LOAD_FRICTION, STRIBECK, WARM_UP)  # of which windows of samples hide what every reversal shows: asked twice
LEAST = float(np.finfo(float).tiny)
GRID_DEVIATION = float(np.log(2.0) / np.sqrt(12.0))  # of a delay, by the nearest of a grid of octaves


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """A cause with its `model`, asked about `beside` another: `coefficients` (k,) of its columns and the score of them together;
    `evidence`: 2 Δ log L.

    `chance` that noise alone makes as much of it, by its score or its evidence, the larger; `criterion`: gain by Schwarz's criterion.
    """

    cause: Cause
    beside: NoisyEquations
    model: NoisyEquations
    coefficients: Array
    size: float
    sigma: float
    z: float
    evidence: float
    chance: float
    criterion: float
    shift: float
    moved: str

    @property
    def damage(self) -> Damage:
        """In its own units: of several columns the first has the size, of directions the first two together."""
        size, sigma = self.size, self.sigma
        if self.cause.also:
            size *= float(self.coefficients[0])
        elif len(self.coefficients) > 1:
            parts = size * self.coefficients
            size = float(np.linalg.norm(parts[:2])) if self.cause.kind in (GRAVITY, CABLE) else float(parts[0])
            sigma = abs(size) / max(abs(self.z), 1.0)
        return Damage(
            kind=self.cause.kind,
            where=self.cause.where,
            size=size,
            sigma=sigma,
            z=self.z,
            shift=self.shift,
            moved=self.moved,
            evidence=self.evidence,
            columns=len(self.coefficients),
            option=self.cause.option,
            also=self.cause.also,
        )


class Questions:
    """The causes that are asked about beside a model, and what has been taken into it."""

    def __init__(
        self,
        fit: Fit,
        x: Samples,
        causes: Sequence[Cause],
        clock: float,
        noise: Callable[[NoisyEquations], TraceNoise | None],
        model: NoisyEquations,
        false_alarm_rate: float,
    ) -> None:
        self.rate = false_alarm_rate
        self.fit, self.x, self.causes, self.clock, self.noise = fit, x, causes, clock, noise
        self.first = self.model = model
        self.columns = np.concatenate([c.columns for c in causes], axis=2)
        ends = np.cumsum([c.columns.shape[2] for c in causes])
        self.parts = [slice(end - c.columns.shape[2], end) for end, c in zip(ends, causes, strict=True)]
        self.price = float(np.log(max(np.count_nonzero(x.used), 2)))
        self.taken: list[Cause] = []
        weighted = self.columns * model.weight[:, :, None]
        self.effects = model.plain.effects(weighted)
        self.wholes = squared(weighted)
        # What is left of all columns beside the regressor, as it is and behind the filters of the noise.
        self.rests = model.plain.beside(weighted), model.white.beside(model.filtered(self.columns))
        self.shown: NDArray[np.bool_] = np.any(self.rests[0] != 0.0, axis=(0, 1))

    def untestable(self, every: Sequence[Cause]) -> tuple[tuple[str, str], ...]:
        """Sensors whose damage the parameters take up whole on this log."""
        testable = {c.name for c, part in zip(self.causes, self.parts, strict=True) if self.shown[part].any()}
        testable |= {(LATE_FORCE, row) for row in self.x.rows if len(self.x.delays)}  # dry friction shows it, too
        testable.add((LATE_FORCE, MACHINE))  # what each of them cannot show is listed
        return tuple(c.name for c in every if c.kind in PLURAL and c.name not in testable)

    def limits(self) -> dict[str, float]:
        """By kind of cause, the chance below which one of it is significant, false alarms of all questions at their rate.

        What gears have has its share, in which each kind has the same, however many options and places it has; those about all places at
        once are counted in, and those that are asked again of all samples. The others share the rest with late forces of dry friction."""
        asked = Counter(c.kind for c in self.causes if c.option < WHOLE)
        gears = [kind for kind in OF_EVERY_GEAR if asked[kind]]
        for kind in gears:
            together = len({c.option for c in self.causes if c.kind == kind}) + (kind in ALIKE)
            asked[kind] = (asked[kind] + together) * (2 if kind in STEPPING else 1)
        delays = len(self.x.delays) * int(np.count_nonzero(self.x.measured))  # late and early ones are alike
        others = [kind for kind in {*asked, LATE_FORCE} if kind not in gears]
        share = GEARS_SHARE if gears else 0.0
        rest = limit_of((1.0 - share) * self.rate, delays + sum(asked[kind] for kind in others))
        own = {kind: limit_of(share * self.rate / len(gears), asked[kind]) for kind in gears}
        return dict.fromkeys(others, rest) | own

    def leading(self) -> list[Answer]:
        """Answers of the causes that explain most, of structure and of sensors, as the equations are and whitened."""
        late = [c for _, c in sorted(late_causes(self.x, self.model), key=lambda found: -found[0])[:LEADING]]
        chosen: dict[int, Cause] = {}
        structural = np.array([c.structural for c in self.causes])
        one_sided = np.array([c.kind in POSITIVE and c.columns.shape[2] == 1 for c in self.causes])
        for p, rest in zip((self.model.plain, self.model.white), self.rests, strict=True):
            gains = self._gains(p, rest)
            below = one_sided & (p.scores(rest)[[part.start for part in self.parts]] < 0.0)
            for kind in (structural, ~structural):
                seen: set[tuple[str, str]] = set()
                for k in [k for k in np.argsort(-gains).tolist() if kind[k] and gains[k] > 0.0]:
                    if self.causes[k].name not in seen and len(seen) < LEADING:
                        seen.add(self.causes[k].name)
                        if not below[k]:
                            chosen[k] = self.causes[k]
        return [self.answer(c, self.effects[:, self.parts[k]]) for k, c in chosen.items()] + [
            self.answer(c, self.first.plain.effects(c.columns * self.first.weight[:, :, None])) for c in late
        ]

    def _gains(self, p: Projected, rest: Array) -> Array:
        """Of each cause by Schwarz's criterion, for white noise."""
        out, seen = p.gains(rest), rest.any(axis=(0, 1))
        if len(self.parts) < len(out):
            widths = np.array([part.stop - part.start for part in self.parts])
            starts = np.array([part.start for part in self.parts])
            out = out[starts]
            for k in set(widths[widths > 1].tolist()):
                own = widths == k
                out[own] = p.gains_together(rest, starts[own][:, None] + np.arange(k))
        there = np.add.reduceat(seen, [part.start for part in self.parts], dtype=np.intp)
        return np.where(out > 0.0, out / p.white_variance - there * self.price, -np.inf)

    def answer(self, cause: Cause, effects: Array) -> Answer:
        """A cause by its own model."""
        model = self.model.with_columns(cause.columns)
        column, coefficients, there = model.combined()

        def by_noise(z: Array) -> Array | None:
            noise = self.noise(model) if abs(float(z[0])) > np.sqrt(self.price) else None  # others count for nothing
            if noise is None:
                return None
            absorbed = model.before.effects(model.filtered(cause.columns))[: len(self.fit.values)] @ coefficients
            return noise.scores([cause.name], absorbed[:, None])

        scores = model.before.tested_beside(column, by_noise)
        evidence = self.model.evidence(model) if there else 0.0
        size, z = float(scores.sizes[0]), float(scores.z[0])
        if cause.kind == LATE_FORCE:  # to first order near reversals: filters would weigh what it leaves out there
            size = float(self.model.plain.tested(cause.columns * self.model.weight[:, :, None]).sizes[0])
        by_score = float(of_several(scores.chance, np.array([max(there, 1)]))[0])
        shift = _shifts(effects @ coefficients[:, None], np.array([size]), self.fit)[:, 0]
        grid = GRID_DEVIATION * abs(size) if cause.kind == LATE_FORCE else 0.0
        sigma = float(scores.sigma[0])
        # Noise makes what cannot be below zero in half of the logs in which it makes as much of it.
        sides = 0.5 if there == 1 and cause.kind in POSITIVE else 1.0
        if cause.also and there > 1:
            sigma = model.before.deviation_of_first(model.before.beside(model.filtered(cause.columns)))
        return Answer(
            cause=cause,
            beside=self.model,
            model=model,
            coefficients=coefficients,
            size=size,
            sigma=float(np.hypot(sigma, grid)),
            z=z,
            evidence=max(evidence, 0.0),
            chance=sides * max(by_score, float(chdtrc(max(there, 1), max(evidence, 0.0)))),
            criterion=min(evidence, z**2) - there * self.price,
            shift=float(shift.max()),
            moved=self.fit.names[int(shift.argmax())],
        )

    def family(self, kind: str) -> float:
        """The gain by Schwarz's criterion of all causes of a kind at once, behind the filters of the noise."""
        p, rest = self.model.white, self.rests[1]
        best: dict[str, tuple[float, slice]] = {}
        for k, (c, part) in enumerate(zip(self.causes, self.parts, strict=True)):
            gain = self._white_gain(k) if c.kind == kind else -1.0
            if gain > best.get(c.where, (0.0, part))[0]:
                best[c.where] = gain, part
        if not best:
            return -np.inf
        columns = np.concatenate([rest[:, :, part] for _, part in best.values()], axis=2)
        there = np.count_nonzero(columns.any(axis=(0, 1)))
        left = p.unexplained(columns)
        return float(p.residual.size * np.log(np.sum(p.residual**2) / np.sum(left**2))) - there * self.price

    def _white_gain(self, k: int) -> float:
        """By how much cause k lessens the sum of squared residuals behind the filters of the noise."""
        return self.model.white.gain_together(self.rests[1][:, :, self.parts[k]])

    def everywhere(self) -> list[Answer]:
        """Answers of what gears have at several places at once, where each by itself may be too little to be seen.

        Gears are where motors are: not at joints that motors turn together. What cannot be below zero is left out where it is: under noise
        alone those that are left, k of them, have χ² of k degrees. Of options (speeds, times, distances) the clearest is asked.
        """
        families: dict[str, dict[int, list[int]]] = {}
        together = turned_together(self.fit.described)
        for k, c in enumerate(self.causes):
            if c.kind in OF_EVERY_GEAR and c.where not in together and self.rests[1][:, :, self.parts[k]].any():
                families.setdefault(c.kind, {}).setdefault(c.option, []).append(k)
        answers: list[Answer] = []
        for kind, options in families.items():
            asked = [self._above_zero(every) if kind in POSITIVE else every for every in options.values()]
            chances = [self._chance(members) if len(members) > 1 else 1.0 for members in asked]
            if min(chances) < self.rate:
                answers.append(self._together_at(asked[int(np.argmin(chances))]))
            answers += [
                a for every in options.values() if kind in ALIKE and len(every) > 1 for a in self._alike_at(every)
            ]
        return answers

    def _chance(self, members: Sequence[int]) -> float:
        """That white noise makes as much of these causes behind the filters. Where that is more than the rate of false alarms of all
        questions, they are not asked with a noise of their own, which is to make far less of them."""
        return self._chance_of(np.concatenate([self.rests[1][:, :, self.parts[k]] for k in members], axis=2))

    def _chance_of(self, rest: Array) -> float:
        gain = self.model.white.gain_together(rest) / self.model.white.white_variance
        return float(chdtrc(rest.shape[2], max(gain, 0.0)))

    def stepping(self) -> list[Cause]:
        """Causes that step where a speed turns, of which white noise would seldom make as much: at twice the rate, being asked twice."""
        own = [k for k, c in enumerate(self.causes) if c.kind in STEPPING and self.rests[1][:, :, self.parts[k]].any()]
        return [self.causes[k] for k in own if self._chance([k]) < 2.0 * self.rate]

    def unknown_rotors(self) -> Damage | None:
        """The rotor of a motor whose transmission the model has, and its inertia not: no log need show that it is there.

        Of those that the log leaves open, the one by which a parameter may be off most: by what is found, and `PROBABLE` deviations more.
        An inertia in the model, also a known one of zero, is an answer, and so is less than `BEYOND_SIGMAS` of all parameters.
        """
        found, bare = list[tuple[float, Answer]](), motors_without_rotor(self.fit.described)
        for k, c in enumerate(self.causes):
            if c.kind == ROTOR and c.where in bare and self.rests[1][:, :, self.parts[k]].any():
                a = self.answer(c, self.effects[:, self.parts[k]])
                found.append((a.shift * (max(a.size, 0.0) + PROBABLE * a.sigma) / max(abs(a.size), LEAST), a))
        shift, most = max(found, key=lambda x: x[0], default=(0.0, None))
        if most is None or shift < BEYOND_SIGMAS:
            return None
        size = max(most.damage.size, 0.0)
        return replace(
            most.damage,
            size=size,
            z=size / most.sigma,
            shift=shift,
            evidence=most.evidence if size else 0.0,
            unshown=True,
        )

    def _above_zero(self, members: list[int]) -> list[int]:
        """Those, of one column each, whose sizes are above zero together."""
        p, rest = self.model.white, self.rests[1]
        while members:
            sizes = p.sizes_of(np.concatenate([rest[:, :, self.parts[k]] for k in members], axis=2))
            if sizes.min() > 0.0:
                break
            members = [k for k, size in zip(members, sizes, strict=True) if size > 0.0]
        return members

    def _together_at(self, members: list[int]) -> Answer:
        """One cause at several places; the one that explains most by itself comes first."""
        members = sorted(members, key=lambda k: -self._white_gain(k))
        first, *others = (self.causes[k] for k in members)
        columns = np.concatenate([self.causes[k].columns for k in members], axis=2)
        effects = np.concatenate([self.effects[:, self.parts[k]] for k in members], axis=1)
        return self.answer(replace(first, columns=columns, also=tuple(c.where for c in others)), effects)

    def _alike_at(self, members: list[int]) -> list[Answer]:
        """One cause whose size is known but for one number: gears yield by the same angle under their loads, or lose the same share."""
        loads = {c.where: float(np.linalg.norm(c.columns)) for c in self.causes if c.kind == LOAD_FRICTION}
        flexible = self.causes[members[0]].kind == FLEXIBLE
        shares = np.array([1.0 / loads.get(self.causes[k].where, np.inf) if flexible else 1.0 for k in members])
        gains = [self._white_gain(k) if a else -1.0 for k, a in zip(members, shares, strict=True)]
        first = int(np.argmax(gains))
        shares /= shares[first] or 1.0

        def together(parts: Sequence[Array]) -> Array:
            return np.asarray(np.sum([a * x for a, x in zip(shares, parts, strict=True)], axis=0), dtype=np.float64)

        if self._chance_of(together([self.rests[1][:, :, self.parts[k]] for k in members])) >= self.rate:
            return []
        columns = together([self.causes[k].columns for k in members])
        effects = together([self.effects[:, self.parts[k]] for k in members])
        also = tuple(self.causes[k].where for i, k in enumerate(members) if i != first and shares[i])
        return [self.answer(replace(self.causes[members[first]], columns=columns, also=also), effects)]

    def possible(self, a: Answer) -> bool:
        """Whether a cause of this size is one, and independent equations are enough to say so; those that its own noise leaves.

        A sensor that averages or holds a step of the clock is off by half of one: a delay, known to a fifth, must be longer. No angle is
        off by more than half a turn, no rotor or friction is below zero, and a gear that warms up rubs more at first.
        """
        kind, where, size = a.cause.kind, a.cause.where, abs(a.size)
        if a.model.independent < MIN_SAMPLES_PER_COLUMN * self.x.W.shape[2]:
            return False
        behind = {c.where for c in self.taken if c.kind in BEHIND_REVERSALS}
        if kind in BEHIND_REVERSALS and {where, MACHINE} & behind:
            return False  # what the nearest of a grid leaves of one looks like another
        if kind in (*POSITIVE, IN_STEPS) or (kind == LOW_PASS and a.size < 0.0):
            return a.size > 0.0
        if kind == WARM_UP:
            return float(a.size * a.coefficients @ np.linalg.norm(a.cause.columns, axis=(0, 1))) > 0.0
        if kind in (ENCODER_ZERO, DRIFTING_ENCODER):
            return not turns_round(self.fit.described, where) or size <= np.pi
        if kind == "machine size":
            return size >= LEAST_SIZE
        if kind not in (LATE_FORCE, LOW_PASS):
            return True
        short = size <= 0.5 * self.clock + GRID_DEVIATION * size
        if short or (a.cause.beside is not None and not _seen_beside(a, a.cause.beside)):
            return False
        plain = next((c for c in self.causes if c.name == (LATE_FORCE, where)), a.cause)
        smooth = kind == LATE_FORCE and a.cause.option == 0
        late = smooth or _smooth_too(a.model, a.cause.columns, plain.columns, a.size)
        odd = kind != LATE_FORCE or on_one_side(self.x, a.model, a.cause, a.size)
        return late and odd and (kind != LATE_FORCE or self._predicts(a))

    def _predicts(self, a: Answer) -> bool:
        """Whether a cause lowers the error of stretches that it was not fitted to, with the noise of its own model."""
        before = a.model.before
        W = np.concatenate([before.columns, before.appended], axis=2)
        return lowers_error(W, before.residual, a.model.filtered(a.cause.columns))

    def together(self) -> list[Answer]:
        """Answers of causes that explain most together, each beside the others: alone, one hides in the noise that another makes."""
        p, rest = self.model.plain, self.rests[0]
        chosen: list[int] = []
        alone = np.array([c.beside is not None for c in self.causes])
        for _ in range(TOGETHER):
            gains = np.where(alone, -np.inf, self._gains(p, rest))
            best = int(np.argmax(gains))
            if gains[best] <= 0.0:
                break
            chosen.append(best)
            before, column = p, rest[:, :, self.parts[best]]
            p = p.with_columns(column, column)
            rest = p.further(rest, before, squared(rest))
        if len(chosen) < 2:
            return []
        model, answers = self.model, list[Answer]()
        for k in chosen:
            others = [self.causes[i].columns for i in chosen if i != k]
            self.model = model.with_columns(np.concatenate(others, axis=2))
            answers.append(self.answer(self.causes[k], self.effects[:, self.parts[k]]))
            self.model = model
        return answers

    def take(self, a: Answer) -> None:
        """Into the model, beside which the others are asked from now on."""
        before = self.model.plain
        self.model = a.model if a.beside is self.model else self.model.with_columns(a.cause.columns)
        self.taken.append(a.cause)
        self.rests = (
            self.model.plain.further(self.rests[0], before, self.wholes),
            self.model.white.beside(self.model.filtered(self.columns)),
        )


def _shifts(effects: Array, sizes: Array, fit: Fit) -> Array:
    """By how many deviations damages of these sizes (k,) shift the parameters (p, k)."""
    deviations = np.where(fit.sigma > 0.0, fit.sigma, np.inf)
    return np.asarray(np.abs(effects * sizes) / deviations[:, None], dtype=np.float64)


def _seen_beside(a: Answer, others: Array) -> bool:
    """Whether a cause of one column is seen, with the same sign, beside columns (N, R, m) that look like it."""
    p = a.model.before.with_columns(a.model.filtered(others))
    return float(p.tested(a.model.filtered(a.cause.columns)).z[0]) * np.sign(a.size) > LIKELY


def _smooth_too(model: NoisyEquations, whole: Array, smooth: Array, size: float) -> bool:
    """Whether the smooth part of a force is late by as much as the `size` of the `whole` column, whatever its friction does.

    Both (N, R, 1), the whole one in the model. Where that is not so, friction yields before it slides, which is no damage of the log.
    """
    friction, smooth = (model.filtered(v) for v in (whole - smooth, smooth))
    found = model.before.with_columns(friction).tested(smooth)
    apart = abs(size - float(found.sizes[0])) / np.hypot(GRID_DEVIATION * size, found.sigma[0])
    return bool(float(found.z[0]) * np.sign(size) > SMOOTH_PART and apart < SAME_DELAY)
