"""Delays of measured forces against the motion, one for each coordinate, found beside the parameters.

A force recorded d late is y(t) = Γ(t − d), so W φ − d Γ̇ = y to first order has d as one more unknown; what is found is taken out of the
force, and asked again. Positions have no delay by definition: what is found is the delay of forces against positions. Rows are weighed by
what a first fit leaves of them, so that noise of one row is no delay of another.

Γ is the force that the fit makes of the motion, not the measured one: noise of white forces has slopes tens of times those of the motion
(σ/(√2 Δt)), which make a deviation as small as they are large; and the noise of a force that is moved by interpolation is smaller,
or explains a part of itself, whatever the delay. Where a motion has corners a few samples have large slopes and large residuals. So the
deviation of a delay is that of the terms of its score (:mod:`veridyn.identify.diagnosis.score_test`).

A delay is confirmed where it is beyond its deviation at the rate of false alarms of all rows, and lowers the error of stretches that it
was not fitted to (:mod:`veridyn.identify.diagnosis.held_out_gain`); others are figures, and are neither proposed nor taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.causes import FORCES, Cause
from veridyn.identify.diagnosis.columns import BLOCK_SAMPLES, Equations, columns_of, independent, share
from veridyn.identify.diagnosis.drives import motor_of
from veridyn.identify.diagnosis.evidence import FIRST_SAMPLES, SAMPLES, Evidence, Replacement, evidence
from veridyn.identify.diagnosis.geometry import PASSES
from veridyn.identify.diagnosis.held_out_gain import lowers_error
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.score_test import MACHINE, Projected, limit_of
from veridyn.identify.diagnosis.signature_samples import LONGEST_DELAY_S, Samples
from veridyn.identify.diagnosis.structure import EARLY, LATE_FORCE, WHOLE
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import DiagnosisSettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

PROBABLE = 2.0  # deviations: nineteen in twenty of normal noise are within
FALSE_ALARM_RATE = DiagnosisSettings().false_alarm_rate  # of all rows of a log together
HELD = 0.5  # of the clock's step: a sensor that averages or holds one is late by so much, and a corner between two samples looks so
ALIKE_SIGMAS = 3.0  # by which delays of one clock differ at most, or by
ALIKE_SHARE = 0.02  # of the delay, which the slopes of different joints resolve (chosen)
SETTLED = 0.1  # deviations: a smaller step changes nothing


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Seconds by which each coordinate's force is late, with deviations `sigma`, and the error with and without them.

    `confirmed`: those that are beyond noise, and lower the error where they were not fitted. `shift` (N, n): what the delays take from
    the forces of the fit, at the samples of the evidence.
    """

    seconds: Mapping[str, float]
    before: float = float("nan")
    after: float = float("nan")
    sigma: Mapping[str, float] = field(default_factory=dict)
    confirmed: tuple[str, ...] = ()
    shift: Array | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> Mapping[str, float]:
        """Seconds of the confirmed ones."""
        return {c: self.seconds[c] for c in self.confirmed}


def delays(
    machine: Machine,
    motions: Sequence[Motion],
    rows: Sequence[str],
    sampling: Sampling,
    detail: Sampling | None = None,
) -> Delays:
    """The delays that fit best: found to first order, taken out, and found again.

    Behind a filter long delays are found from afar; `detail`, the equations without it, then has them from there, and must confirm them:
    a filter spreads what a force is at rest, where no equation holds, over the motion beside it.
    """
    found = _delays_of(machine, motions, rows, sampling, {})
    if detail is None or not sampling.filtering:
        return found if detail is None else _delays_of(machine, motions, rows, detail, {})
    return _delays_of(machine, motions, rows, detail, found.kept) if found.confirmed else found


def _delays_of(
    machine: Machine,
    motions: Sequence[Motion],
    rows: Sequence[str],
    sampling: Sampling,
    start: Mapping[str, float],
) -> Delays:
    """Those of some equations, from a `start`."""
    e = evidence(machine, motions, rows, sampling, samples=FIRST_SAMPLES)
    names = _measured(e)
    if not names:
        return Delays(seconds={})
    equations = before = e.equations()
    seconds, sigma = {c: start.get(c, 0.0) for c in names}, np.full(len(names), np.inf)
    shift, slopes = _late(e, equations, motions, rows, sampling, seconds)
    equations = _taken_out(e, before, shift)
    clock = max(float(np.median(np.diff(m.t))) for m in motions)
    for turn in range(PASSES + 1):
        step, sigma = _step(e, equations, names, slopes)
        seconds = {c: d + s for (c, d), s in zip(seconds.items(), step.tolist(), strict=True)}
        if not max(map(abs, seconds.values())) <= LONGEST_DELAY_S:
            left = share(before.solved()[1])
            nothing, open_sigma = dict.fromkeys(names, 0.0), dict.fromkeys(names, float("inf"))
            return Delays(seconds=nothing, before=left, after=left, sigma=open_sigma)
        shift, slopes = _late(e, equations, motions, rows, sampling, seconds)
        equations = _taken_out(e, before, shift)
        within = max(map(abs, seconds.values())) <= HELD * clock  # none will be confirmed
        if (turn and within) or np.all(np.abs(step) <= SETTLED * sigma):
            break
    found = Delays(
        seconds=seconds,
        before=share(before.solved()[1]),
        after=share(equations.solved()[1]),
        sigma=dict(zip(names, sigma.tolist(), strict=True)),
    )
    if not found.after < found.before:
        return found
    confirmed = _confirmed(e, equations, found, shift, clock)
    if not confirmed:
        return found
    few = _late(e, equations, motions, rows, sampling, seconds, SAMPLES)[0]
    return replace(found, confirmed=confirmed, shift=few)


def _measured(e: Evidence) -> list[str]:
    """Rows whose force is measured at all samples."""
    forces, names = e.motion.forces, e.machine.coordinates
    return [r for r in e.rows if forces is not None and np.isfinite(forces[:, names.index(r)]).all()]


def _late(
    e: Evidence,
    equations: Equations,
    motions: Sequence[Motion],
    rows: Sequence[str],
    sampling: Sampling,
    seconds: Mapping[str, float],
    samples: int = FIRST_SAMPLES,
) -> tuple[Array, Array]:
    """What delays take from the forces of the fit of some equations (N, n), at samples of evidence, and the slopes of these late forces."""
    modelled = _modelled(e, equations.values(), motions)
    late = []
    for m in modelled:
        assert m.forces is not None  # those of the fit
        forces = m.forces.copy()
        for c, d in seconds.items():
            k = e.machine.coordinates.index(c)
            forces[:, k] = np.interp(m.t - d, m.t, m.forces[:, k])
        late.append(replace(m, forces=forces))
    before, after = (evidence(e.machine, some, rows, sampling, samples=samples) for some in (modelled, late))
    assert before.motion.forces is not None and after.motion.forces is not None  # as above
    return before.motion.forces - after.motion.forces, after.force_rates


def _modelled(e: Evidence, values: Array, motions: Sequence[Motion]) -> list[Motion]:
    """The motions with the forces that these parameters make of them."""
    place, out = [e.machine.coordinates.index(r) for r in e.rows], []
    for m in motions:
        forces = np.zeros((len(m), e.machine.n))
        for start in range(0, len(m), BLOCK_SAMPLES):
            part = slice(start, start + BLOCK_SAMPLES)
            columns = columns_of(e.machine, m[part], e.rows)
            forces[part, place] = (columns.W @ values + columns.known).T
        out.append(replace(m, forces=forces))
    return out


def _taken_out(e: Evidence, equations: Equations, shift: Array) -> Equations:
    """The equations with delays taken out of the forces."""
    own = shift[:, [e.machine.coordinates.index(r) for r in e.rows]].T
    return replace(equations, y=equations.y + own / equations.sizes[:, None])


def _confirmed(e: Evidence, equations: Equations, late: Delays, shift: Array, clock: float) -> tuple[str, ...]:
    """The coordinates whose delay is beyond noise, and lowers the error where it was not fitted, all others being taken out.

    What it changes of the force is one column, which the parameters of other stretches may scale. `equations`: all delays taken out.
    """
    left = equations.solved()[1]
    weight, memory = _row_weights(left), _memory(left)
    W, y, confirmed = (equations.W * weight[:, None, None]).transpose(1, 0, 2), equations.y * weight[:, None], []
    every = limit_of(FALSE_ALARM_RATE, len(late.seconds))
    for c, d in late.seconds.items():
        if abs(d) <= HELD * clock:
            continue
        j = e.rows.index(c)
        column = np.zeros_like(left)
        column[j] = shift[:, e.machine.coordinates.index(c)] / equations.sizes[j] * weight[j]
        recorded, S = (y - column).T, -column.T[:, :, None]
        found = Projected.of(W, recorded).tested(S)
        seen = float(found.sizes[0]) > 0.0 and float(found.chance[0]) < every
        if seen and lowers_error(W, recorded, S, memory, alike=True):
            confirmed.append(c)
    return tuple(confirmed)


def _row_weights(left: Array) -> Array:
    """One over the rms of what is left of each row (R, N)."""
    return np.asarray(1.0 / np.maximum(np.sqrt(np.mean(left**2, axis=1)), np.finfo(float).tiny), dtype=np.float64)


def _memory(left: Array) -> float:
    """Samples over which what is left of the rows (R, N) is correlated, of the row with the longest."""
    return left.shape[1] / float(independent(left).min())


def late_forces(e: Evidence, late: Delays) -> Replacement | None:
    """That forces are `late`, as a model that is compared with others; None where no delay is known."""
    if not any(late.kept.values()) or e.motion.forces is None or late.shift is None:
        return None
    forces = e.motion.forces.copy()
    for c in late.kept:
        k = e.machine.coordinates.index(c)
        forces[:, k] += late.shift[:, k]
    named = [f"'{motor_of(e.machine, c) or c}'" for c in late.kept]
    return Replacement(
        kind="delay",
        where=FORCES if len(late.kept) == len(late.seconds) else f"force of {', '.join(named)}",
        what=_what(late),
        hint="Write clock: {delays: correct} to take them out, and look at the filters of the drives.",
        motion=replace(e.motion, forces=forces),
        estimated=len(late.kept),
        size=max(late.kept.values(), key=abs),
        expected="channels on one clock",
        found=", ".join(f"{c} {1e3 * d:.1f} ± {1e3 * late.sigma[c]:.1f} ms" for c, d in late.kept.items()),
    )


def _what(late: Delays) -> str:
    """What is wrong, in words: one delay of all forces is that of a clock, others are those of channels."""
    seconds, sigma = np.array([*late.kept.values()]), max(late.sigma[c] for c in late.kept)
    mean = float(seconds.mean())
    alike = np.ptp(seconds) <= max(ALIKE_SIGMAS * sigma, ALIKE_SHARE * abs(mean))
    if len(seconds) < 2 or len(seconds) < len(late.seconds) or not alike:
        return "measured forces are late or early against the positions."
    return f"measured forces are {'late' if mean > 0.0 else 'early'} against the positions, all by one delay."


def _step(e: Evidence, equations: Equations, names: Sequence[str], slopes: Array) -> tuple[Array, Array]:
    """Least squares over the parameters and one delay for each of these rows: the delays, and their deviations.

    `slopes` (N, n): of the forces of the fit.
    """
    weight = _row_weights(equations.solved()[1])
    S = np.zeros((len(e.motion), len(e.rows), len(names)))
    for k, row in enumerate(names):
        j = e.rows.index(row)
        S[:, j, k] = -slopes[:, e.machine.coordinates.index(row)] * weight[j] / equations.sizes[j]
    p = Projected.of((equations.W * weight[:, None, None]).transpose(1, 0, 2), (equations.y * weight[:, None]).T)
    rest = p.beside(S)
    flat = rest.reshape(-1, len(names))
    inverse = np.linalg.pinv(flat.T @ flat, hermitian=True)
    size = np.diag(inverse)
    found = p.tested_beside(rest @ np.divide(inverse, size, out=np.zeros_like(inverse), where=size > 0.0))
    return found.sizes, found.sigma


def without_delays(machine: Machine, motions: Sequence[Motion], seconds: Mapping[str, float]) -> list[Motion]:
    """The motions with forces moved to when they acted; the ends, where nothing was recorded, are cut off."""
    longest = max((abs(d) for d in seconds.values()), default=0.0)
    out = []
    for m in motions:
        if m.forces is None:
            out.append(m)
            continue
        forces = m.forces.copy()
        for c, d in seconds.items():
            k = machine.coordinates.index(c)
            forces[:, k] = np.interp(m.t + d, m.t, m.forces[:, k])
        inside = (m.t >= m.t[0] + longest) & (m.t <= m.t[-1] - longest)
        out.append(replace(m, forces=forces)[inside])
    return out


def on_one_side(x: Samples, model: NoisyEquations, cause: Cause, size: float) -> bool:
    """Whether a force that is late as a whole, by this size in the model, is so behind its changes more than it is early before them.

    Forces that are rounded off, by filters of the positions and by dry friction whose reversals are not known to a sample, are late behind
    them and early before: F(t − d) − F(t) and F(t) − F(t + d), which are alike for a delay, then have opposite sizes.
    """
    other = cause.option + (EARLY - WHOLE if cause.option < EARLY else WHOLE - EARLY)
    if (
        cause.option < WHOLE
        or (LATE_FORCE, other, 0) not in x.own
        or (cause.where != MACHINE and cause.where not in x.rows)
    ):
        return True
    acting = x.measured if cause.where == MACHINE else np.array([row == cause.where for row in x.rows])
    mirrored = (x.own[LATE_FORCE, other, 0] * acting)[:, :, None]
    z = sum(float(model.before.tested(model.filtered(column)).z[0]) for column in (cause.columns, mirrored))
    return bool(np.sign(size) * z > PROBABLE * np.sqrt(2.0))


def late_causes(x: Samples, model: NoisyEquations) -> Iterator[tuple[float, Cause]]:
    """For each row the column of the delay of the grid that its residual speaks for most, and by how many deviations of white noise.

    A delay shows behind reversals of dry friction, or before them: what shows on both sides alike is friction that is rounded off there.
    """
    coupled = {c for d in x.drives for c, a in zip(x.coordinates, d.turns, strict=True) if a}
    for j, row in enumerate(x.rows):
        if not x.measured[j] or not len(x.delays) or row in coupled:
            continue
        lines = np.column_stack([x.late[:, j].reshape(len(x.late), -1), -x.rates[:, j]])
        pulses = lines.shape[1] - 1  # each by itself, the smooth part by itself, and each with it
        # As the equations are: an autoregression of the residual would take pulses for noise of their length.
        alone, weighted = np.eye(pulses + 1), lines * model.weight[:, j : j + 1]
        scores = model.plain.scores_of_row(j, weighted, np.hstack([alone, alone[:, :pulses] + alone[:, pulses:]]))
        friction, smooth, whole = scores[:pulses], scores[pulses], scores[pulses + 1 :]
        behind = np.abs(friction.reshape(2, -1).sum(axis=0)) > PROBABLE * np.sqrt(2.0)
        z = np.where(np.tile(behind, 2) & (whole * smooth > 0.0), np.abs(whole), 0.0)
        if z.any():
            column = np.zeros_like(x.y)
            column[:, j] = lines[:, np.argmax(z)] + lines[:, -1]
            yield (
                float(z.max()),
                Cause(kind=LATE_FORCE, where=row, columns=column[:, :, None], option=1 + int(np.argmax(z))),
            )
