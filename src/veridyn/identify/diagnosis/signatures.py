"""Small damage of a log that fits too well to show in the size of the residual, found by the trace that it leaves in the equations.

A force with another scale, a delay, an offset or a drift, a position with another zero, and a machine of another size each add a column to
the equations (:mod:`veridyn.identify.diagnosis.signature_samples`), which is tested beside the columns of the parameters
(:mod:`veridyn.identify.diagnosis.score_test`), after what noise of the motion makes of it by itself. Of several that are significant the
one with the largest score is taken into the regressor, and the others are asked again, more strictly. A damage that moves no parameter by
`MIN_SHIFT_SIGMAS` is not reported. A damage whose column the parameters explain whole cannot be found by any test of this log; it moves
them, and leaves no trace. It is listed as such: nothing that is left of its column, rounding and noise, is evidence. What is found is
reported in words: what, where, how much, what it moves, and what to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.diagnosis.score_test import (
    Projected,
    Scores,
    TraceNoise,
    limit_of,
    limit_within,
    noise_in_traces,
    passed_variance,
)
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
FALSE_ALARMS = 0.005  # share of logs in order, over all signatures of a log together (chosen)
MIN_SHIFT_SIGMAS = 2.0  # by which a damage must move some parameter to be reported (chosen)
# Of a machine beside its model: to a few thousandths models are drawn and machines are built (chosen)
LEAST_SIZE = 0.003
MAX_DAMAGES = 4  # that are looked for in one log
# Of the limit of the first, for damages beside it: errors of a model leave several small traces (chosen)
FURTHER_SHARE = 0.1
EXACT_SHARE = 1e-5  # of a row's force: a smaller residual is rounding, not noise
INDISTINCT = 9.0  # of z²: signatures that explain that much less than the best are reported beside it (chosen)
LEAST_MEMORY, MOST_MEMORY = 0.1, 0.98  # correlations of neighbouring residuals that are taken out (chosen)
CLIPPED = 2.0  # deviations of residuals whose memory is asked for (chosen)
LATE_SHARE = 0.3  # of the false alarms, for delays that dry friction shows (chosen)
# For each delay of the grid, late and early: pulses of twice the length are alike (of 1200 logs in order)
GRID_TESTS = 1
ONE_SIDED = 2.0  # deviations between what is seen behind reversals and before them (chosen)
SMOOTH_PART = 1.0  # deviations by which the smooth part of a force must be late, too (chosen)
SAME_DELAY = 3.0  # deviations between the delays of both (chosen)
GRID_DEVIATION = 0.2  # of a delay: how far the grid is apart, and what its first order is worth
SLOPE_ROUNDING = 1e-7  # of the forces, per rad or m: rounding of some hundred operations, 1e-14, over a step of 1e-6
MIN_SAMPLES_PER_COLUMN = 3.0  # equations for each parameter, below which residuals say little
PLURAL = {
    "encoder zero": "zeros of the positions",
    "force scale": "scales of the forces",
    "force offset": "offsets of the forces",
    "force drift": "drifts of the forces",
    "late force": "delays of the forces",
    "machine size": "distances between joints",
}


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was found: its `size` c with deviation `sigma` and score `z`; it shifts the parameter `moved` by `shift` deviations."""

    kind: str
    where: str
    size: float
    sigma: float
    z: float
    shift: float
    moved: str


@dataclass(frozen=True)
class Examined:
    """`found`: damages, the clearest first, each with those that explain it nearly as well; `untestable`: (kind, where) of columns that the
    parameters explain whole on this log."""

    found: list[list[Damage]]
    untestable: tuple[tuple[str, str], ...] = ()


def examine(fit: Fit, motions: Sequence[Motion], sampling: Sampling, samples: int | None = None) -> Examined:
    """Damages that the residual of a fit shows, and those that it cannot show.

    `samples`: at most so many are looked at, in stretches; all if left out.
    """
    fit = fit.for_white_noise()
    rows = [r.row for r in fit.rows if r.row in fit.described.coordinates]
    if not rows or not len(fit.values):
        return Examined([])
    x = samples_of(fit, motions, rows, sampling, most=samples)
    made = list(x.signatures(fit.values))
    seen = np.array([np.linalg.norm(column) for _, _, column in made]) > SLOPE_ROUNDING * np.linalg.norm(x.forces)
    every = [signature for signature, there in zip(made, seen, strict=True) if there]
    few = np.count_nonzero(x.used) < MIN_SAMPLES_PER_COLUMN * x.W.shape[2]
    if not every or not x.measured.any() or few or _exact(fit, x):
        return Examined([])
    plain = np.stack([column for _, _, column in every], axis=2)
    # Behind a filter a late step of friction is as long as the filter remembers, and would count as memory of the noise.
    steps = x.friction_steps() if sampling.filtering else plain[:, :, :0]
    e = prepared(fit, x, plain, np.concatenate([plain, steps], axis=2))
    if e is None:
        return Examined([])
    p, effects = e.projected, e.effects(plain)
    rest = p.beside(e.whitened(plain)) if e.memory is not None else e.rest
    testable = {every[k][:2] for k in np.flatnonzero(e.rest.any(axis=(0, 1)))}
    testable |= {("late force", row) for row in x.rows if len(x.delays)}  # dry friction shows it, too
    untestable = tuple((kind, where) for kind, where, _ in made if (kind, where) not in testable)
    noise = scores_by_noise(fit, motions, sampling, x, e)
    absorbed = None if noise is None else e.projected.effects(e.whitened(plain))
    share = LATE_SHARE if len(x.delays) else 0.0
    limit = limit_within(FALSE_ALARMS * (1.0 - share), _alarming(p.tested_beside(rest), effects, fit))
    late_limit = limit_of(FALSE_ALARMS * share, GRID_TESTS * len(x.delays) * int(np.count_nonzero(x.measured)))
    # A sensor that averages or holds a step of the clock is off by half of one: a delay, known to a fifth, must be longer. No angle is off
    # by more than half a turn.
    half = 0.5 * max(float(np.median(np.diff(m.t))) for m in motions)
    turning = [
        c
        for c, kind in zip(fit.described.coordinates, fit.described.coordinate_kinds, strict=True)
        if kind == "turning"
    ]
    found: list[list[Damage]] = []
    for _ in range(MAX_DAMAGES):
        places, late = _late(x, e, p)
        names = [(kind, where) for kind, where, _ in every] + [("late force", where) for where in places]
        columns = np.concatenate([rest, p.beside(e.whitened(late))], axis=2) if places else rest
        by_noise = None
        if noise is not None and absorbed is not None:
            more = e.projected.effects(e.whitened(late))
            by_noise = noise.scores(names, np.concatenate([absorbed, more], axis=1))
        scores = p.tested_beside(columns, by_noise)
        shift = _shifts(np.concatenate([effects, e.effects(late)], axis=1), scores.sizes, fit)
        most = shift.argmax(axis=0)
        limits = np.repeat([limit, late_limit], [len(every), len(places)]) * (FURTHER_SHARE if found else 1.0)
        known = {group[0].where for group in found if group[0].kind == "late force"}
        late_again = np.array([kind == "late force" and where in known for kind, where in names])
        size, delay = np.abs(scores.sizes), np.array([kind == "late force" for kind, _ in names])
        sigma = np.hypot(scores.sigma, delay * GRID_DEVIATION * size)
        short = delay & (size <= half + GRID_DEVIATION * size)
        far = np.array([kind == "encoder zero" and where in turning for kind, where in names]) & (size > np.pi)
        same = np.array([kind == "machine size" for kind, _ in names]) & (size < LEAST_SIZE)
        clear = (scores.chance < limits) & ~short & ~far & ~same & ~late_again
        for k in np.flatnonzero(clear[len(every) :]) + len(every):
            smooth = columns[:, :, names.index(names[k])]
            clear[k] = _smooth_too(p, columns[:, :, k], smooth, float(scores.sizes[k]))
        if not clear.any():
            break
        square = np.where(clear, scores.z**2, 0.0)
        order = np.argsort(-square)
        near = [int(k) for k in order if clear[k] and square[k] > square[order[0]] - INDISTINCT]
        found.append(
            [
                Damage(
                    kind=names[k][0],
                    where=names[k][1],
                    size=float(scores.sizes[k]),
                    sigma=float(sigma[k]),
                    z=float(scores.z[k]),
                    shift=float(shift[most[k], k]),
                    moved=fit.names[most[k]],
                )
                for i, k in enumerate(near)
                if names[k] not in [names[other] for other in near[:i]]
            ]
        )
        p = p.with_column(columns[:, :, order[0]])
        rest = p.beside(rest)
    return Examined([group for group in found if group[0].shift > MIN_SHIFT_SIGMAS], untestable)


def scores_by_noise(
    fit: Fit, motions: Sequence[Motion], sampling: Sampling, x: Samples, e: Prepared
) -> TraceNoise | None:
    """What noise of the accelerations makes of scores of the weighted equations; None where it is small or not known."""
    variance = passed_variance(motions, x.rows, sampling, x.window, e.memory)
    if variance is None:
        return None
    weight = e.weight.max(axis=0) if e.memory is None else e.weight.max(axis=0) * e.again.max(axis=0)
    return noise_in_traces(fit, motions, x.rows, (x.used.sum(axis=0) * weight**2)[:, None] * variance)


def _shifts(effects: Array, sizes: Array, fit: Fit) -> Array:
    """By how many deviations damages of these sizes (k,) shift the parameters (p, k)."""
    deviations = np.where(fit.sigma > 0.0, fit.sigma, np.inf)
    return np.asarray(np.abs(effects * sizes) / deviations[:, None], dtype=np.float64)


def _alarming(scores: Scores, effects: Array, fit: Fit) -> Array:
    """How often noise alone makes each column (k,) shift a parameter by as much as is reported."""
    one = _shifts(effects, np.where(np.isfinite(scores.sigma), scores.sigma, 0.0), fit).max(axis=0)
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * ndtr(-MIN_SHIFT_SIGMAS / one), dtype=np.float64)


def _late(x: Samples, e: Prepared, p: Projected) -> tuple[list[str], Array]:
    """Rows, and for each the column (N, R, k) of the delay of the grid that its residual speaks for most.

    A delay shows behind reversals of dry friction, or before them: what shows on both sides alike is friction that is rounded off there.
    """
    places: list[str] = []
    columns: list[Array] = []
    for j, row in enumerate(x.rows):
        if not x.measured[j] or not len(x.delays):
            continue
        lines = np.column_stack([x.late[:, j].reshape(len(x.late), -1), -x.rates[:, j]])
        pulses = lines.shape[1] - 1  # each by itself, the smooth part by itself, and each with it
        alone = np.eye(pulses + 1)
        scores = p.scores_of_row(j, e.whitened_row(j, lines), np.hstack([alone, alone[:, :pulses] + alone[:, pulses:]]))
        friction, smooth, whole = scores[:pulses], scores[pulses], scores[pulses + 1 :]
        behind = np.abs(friction.reshape(2, -1).sum(axis=0)) > ONE_SIDED * np.sqrt(2.0)
        z = np.where(np.tile(behind, 2) & (whole * smooth > 0.0), np.abs(whole), 0.0)
        if z.any():
            places.append(row)
            columns.append(np.zeros_like(x.y))
            columns[-1][:, j] = lines[:, np.argmax(z)] + lines[:, -1]
    return places, np.stack(columns, axis=2) if columns else np.zeros((*x.y.shape, 0))


def _smooth_too(p: Projected, whole: Array, smooth: Array, size: float) -> bool:
    """Whether the smooth part of a force is late by as much as the `size` of the `whole` column, whatever its friction does; both (N, R).

    Where that is not so, friction yields before it slides, which is no damage of the log.
    """
    found = p.with_column(whole - smooth).tested(smooth[:, :, None])
    apart = abs(size - float(found.sizes[0])) / np.hypot(GRID_DEVIATION * size, found.sigma[0])
    return bool(float(found.z[0]) * np.sign(size) > SMOOTH_PART and apart < SAME_DELAY)


def _exact(fit: Fit, x: Samples) -> bool:
    """Whether the residual of some row is rounding."""
    residual, forces = (np.where(x.used, v, 0.0) for v in (x.misfit(fit.values), x.forces))
    rms, size = np.linalg.norm(residual, axis=0), np.linalg.norm(forces, axis=0) / np.sqrt(x.window)
    return not bool(np.all((rms > EXACT_SHARE * size) & (rms > 0.0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """Equations whose rows are divided by the rms of their residual, as a fit weighs them, and the same without the memory of residuals.

    `weight` (N, R): 1/rms where a sample is used; `rest` (N, R, k): the columns beside the first; `memory` (R,): a of each row, None
    where there is none worth taking out; `again` (N − 1, R): 1/rms of what is left then.
    """

    fitted: Projected
    projected: Projected
    weight: Array
    rest: Array
    memory: Array | None
    again: Array

    def effects(self, S: Array) -> Array:
        """By how much one unit of each column of S (N, R, k) moves the parameters (p, k)."""
        return self.fitted.effects(S * self.weight[:, :, None])

    def whitened(self, S: Array) -> Array:
        """Columns S (N, R, k) as they stand beside the equations without memory."""
        S = S * self.weight[:, :, None]
        return S if self.memory is None else (S[1:] - self.memory[:, None] * S[:-1]) * self.again[:, :, None]

    def whitened_row(self, j: int, lines: Array) -> Array:
        """The same of lines (N, k) of row j."""
        lines = lines * self.weight[:, j : j + 1]
        return lines if self.memory is None else (lines[1:] - self.memory[j] * lines[:-1]) * self.again[:, j : j + 1]


def prepared(fit: Fit, x: Samples, S: Array, every: Array) -> Prepared | None:
    """Weighted equations beside which columns S (N, R, k) are tested; `every` (N, R, k): these, and more that may be in the residual.

    Where neighbouring residuals are correlated by a, with all columns in the regressor, each row has a times its sample before taken off;
    what memory remains is left to the long-run variance of the scores (prewhitening of Andrews and Monahan, 1992, Econometrica 60(4)).
    Without it noise with a memory makes scores too large on logs of some thousand samples. None where residuals remember so long that
    they hold less than `MIN_SAMPLES_PER_COLUMN` independent equations for each parameter.
    """
    weight = _weight(x.used, x.misfit(fit.values))
    W, y = x.W * weight[:, :, None], x.y * weight
    p = Projected.of(W, y)
    rest = p.beside(S * weight[:, :, None])
    r = p.unexplained(rest if every.shape[2] == S.shape[2] else p.beside(every * weight[:, :, None]))
    a = _memory(r)
    if np.abs(a).max() <= LEAST_MEMORY:
        return Prepared(fitted=p, projected=p, weight=weight, rest=rest, memory=None, again=weight)
    independent = float(np.sum(x.used.sum(axis=0) * (1.0 - np.abs(a)) / (1.0 + np.abs(a))))
    if independent < MIN_SAMPLES_PER_COLUMN * W.shape[2]:
        return None
    again = _weight(x.used[1:] & x.used[:-1], r[1:] - a * r[:-1])
    whiter = Projected.of((W[1:] - a[:, None] * W[:-1]) * again[:, :, None], (y[1:] - a * y[:-1]) * again)
    return Prepared(fitted=p, projected=whiter, weight=weight, rest=rest, memory=a, again=again)


def _memory(r: Array) -> Array:
    """The correlation of neighbouring residuals of each row (R,), cut at CLIPPED deviations: pulses have no memory."""
    most = CLIPPED * np.sqrt(np.mean(r**2, axis=0))
    r = np.clip(r, -most, most)
    square = np.sum(r**2, axis=0)
    return np.clip(np.sum(r[1:] * r[:-1], axis=0) / np.where(square > 0.0, square, 1.0), -MOST_MEMORY, MOST_MEMORY)


def _weight(used: NDArray[np.bool_], residual: Array) -> Array:
    """1/rms of each row where a sample is used (N, R)."""
    rms = np.sqrt(np.sum(np.where(used, residual, 0.0) ** 2, axis=0) / np.maximum(used.sum(axis=0), 1))
    return used / np.where(rms > 0.0, rms, np.inf)


def signature_mistakes(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    samples: int | None = None,
    untestable: list[str] | None = None,
) -> list[Mistake]:
    """What :func:`examine` finds, in words; what it cannot test is added to `untestable`."""
    done = examine(fit, motions, sampling, samples)
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
    what, place, expected, size, hint = _words(machine, best)
    moves = f"it moves {best.moved} by {best.shift:.2g} deviations"
    if others:
        listed = "; ".join(f"{w[1]}: {w[0]} ({w[3]})" for w in (_words(machine, d) for d in others))
        hint = f"{hint} These data explain it nearly as well otherwise: {listed}."
    return Mistake.of(
        best.kind,
        what,
        where=place,
        expected=expected,
        found=f"{size}, {abs(best.z):.2g} deviations; {moves}",
        hint=hint,
    )


def _words(machine: Machine, d: Damage) -> tuple[str, str, str, str, str]:
    """What, where, expected, found, and what to try."""
    if d.kind == "machine size":
        what = "the distances between its joints do not fit this log: these bodies sit elsewhere."
        hint = "Look whether the model is of this machine and of its size, and at lengths in other units."
        found = f"{1.0 + d.size:.4g} ± {d.sigma:.2g} times those of the model"
        return what, f"model '{machine.name}'", "the machine that was recorded", found, hint
    turning = machine.coordinate_kinds[machine.coordinates.index(d.where)] == "turning"
    angle, force = ("rad", "N*m") if turning else ("m", "N")
    place = f"force of '{d.where}'"
    if d.kind == "force scale":
        hint = "Look at its torque constant or gain, its gear ratio and the calibration of its sensor."
        size = f"{1.0 + d.size:.4g} ± {d.sigma:.2g}"
        return "it seems to be off by a factor beside the others.", place, "1", size, hint
    if d.kind == "late force":
        what = "it is late against the positions." if d.size > 0.0 else "it is early: positions are late against it."
        hint = (
            "Look at the clocks and filters of both; a study takes delays out with clock: {delays: correct}. "
            "Friction that yields before it slides looks alike: a dead zone leaves it out."
        )
        return what, place, "channels on one clock", f"{1e3 * d.size:.3g} ± {1e3 * d.sigma:.2g} ms", hint
    if d.kind == "force drift":
        hint = (
            "Warm up the machine and its sensor, take the drift out of the channel, or cut the log into shorter ones."
        )
        found = f"{d.size:.3g} ± {d.sigma:.2g} {force} from the start to the end"
        return "it seems to drift.", place, "a sensor with a steady zero", found, hint
    if d.kind == "force offset":
        what = "it has an offset that the model does not have: its sensor's zero is off or drifts."
        hint = "Take it out of the channel, or give the model an offset there, as friction that differs with direction needs too."
        return what, place, f"0 {force}", f"{d.size:.3g} ± {d.sigma:.2g} {force}", hint
    hint = (
        "Look at the zero of its encoder, and at that of the model: the angles of its joints and where its bodies sit."
    )
    found = f"{d.size:.3g} ± {d.sigma:.2g} {angle}"
    return (
        "it seems to be measured from another zero than the model's.",
        f"position of '{d.where}'",
        f"0 {angle}",
        found,
        hint,
    )
