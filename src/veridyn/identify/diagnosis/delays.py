"""Delays of measured forces against the motion, one for each coordinate, found beside the parameters.

A force recorded d late is y(t) = Γ(t − d), so Γ = y + d ẏ to first order, and W φ = y + d ẏ has d as one more unknown. Positions have
no delay by definition: what is found is the delay of forces against positions. Rows are weighed by what a first fit leaves of them, so that
noise of one row is no delay of another. A delay is confirmed where it lowers the error of stretches that it was not fitted to
(:mod:`veridyn.identify.diagnosis.held_out_gain`); others are figures, and are neither proposed nor taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.causes import Cause
from veridyn.identify.diagnosis.columns import independent, share
from veridyn.identify.diagnosis.evidence import Evidence, Replacement, evidence
from veridyn.identify.diagnosis.geometry import PASSES
from veridyn.identify.diagnosis.held_out_gain import lowers_error
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.score_test import Projected
from veridyn.identify.diagnosis.signature_samples import LONGEST_DELAY_S, Samples
from veridyn.identify.diagnosis.structure import LATE_FORCE
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

PROBABLE = 2.0  # deviations: nineteen in twenty of normal noise are within


@dataclass(frozen=True)
class Delays:
    """Seconds by which each coordinate's force is late, with deviations `sigma`, and the error with and without them.

    `confirmed`: those that lower the error where they were not fitted.
    """

    seconds: Mapping[str, float]
    before: float = float("nan")
    after: float = float("nan")
    sigma: Mapping[str, float] = field(default_factory=dict)
    confirmed: tuple[str, ...] = ()

    @property
    def kept(self) -> Mapping[str, float]:
        """Seconds of the confirmed ones."""
        return {c: self.seconds[c] for c in self.confirmed}


def delays(machine: Machine, motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling) -> Delays:
    """The delays that fit best: found to first order, taken out, and found again while that helps."""
    found = _step(evidence(machine, motions, rows, sampling))
    for _ in range(PASSES):
        if not found.after < found.before:
            break
        moved = without_delays(machine, motions, found.seconds)
        step = _step(evidence(machine, moved, rows, _without_masks(sampling)))
        if not step.before < found.before:
            break
        seconds = {c: d + step.seconds[c] for c, d in found.seconds.items()}
        found = replace(found, seconds=seconds, after=min(step.before, step.after), sigma=step.sigma)
    return replace(found, confirmed=_confirmed(machine, motions, rows, _without_masks(sampling), found))


def _confirmed(
    machine: Machine, motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling, found: Delays
) -> tuple[str, ...]:
    """The coordinates whose delay, taken out as a whole, lowers the error where it was not fitted, all others being taken out.

    What it changes of the force is one column, which the parameters of other stretches may scale: what is left of large delays to first
    order is no part of it, nor what the delays of other rows leave.
    """
    if not any(found.seconds.values()):
        return ()
    e = evidence(machine, without_delays(machine, motions, found.seconds), rows, sampling)
    recorded = evidence(machine, without_delays(machine, motions, found.seconds, moved=False), rows, sampling)
    equations, names = e.equations(), machine.coordinates
    assert e.motion.forces is not None and recorded.motion.forces is not None  # delays are those of forces
    left = equations.solved()[1]
    weight, memory = _row_weights(left), _memory(left)
    W, confirmed = (equations.W * weight[:, None, None]).transpose(1, 0, 2), []
    for c in found.seconds:
        j, k = e.rows.index(c), names.index(c)
        change = np.zeros_like(left)
        change[j] = (recorded.motion.forces[:, k] - e.motion.forces[:, k]) / equations.sizes[j]
        y = (equations.y + change) * weight[:, None]
        if change.any() and lowers_error(W, y.T, (change * weight[:, None]).T[:, :, None], memory, alike=True):
            confirmed.append(c)
    return tuple(confirmed)


def _row_weights(left: Array) -> Array:
    """One over the rms of what is left of each row (R, N)."""
    return np.asarray(1.0 / np.maximum(np.sqrt(np.mean(left**2, axis=1)), np.finfo(float).tiny), dtype=np.float64)


def _memory(left: Array) -> float:
    """Samples over which what is left of the rows (R, N) is correlated, of the row with the longest."""
    return left.shape[1] / float(independent(left).min())


def late_forces(e: Evidence, late: Delays) -> Replacement | None:
    """That forces are `late`, as a model that is compared with others; None where no delay is known.

    It is compared with delays to first order, which explain less than those found step by step.
    """
    if not any(late.kept.values()) or e.motion.forces is None:
        return None
    first, forces = _step(e), e.motion.forces.copy()
    for c in late.kept:
        k, d = e.machine.coordinates.index(c), first.seconds[c]
        forces[:, k] += d * e.force_rates[:, k]
    return Replacement(
        kind="delay",
        where="forces",
        what="measured forces are late or early against the positions.",
        hint="Write clock: {delays: correct} to take them out, and look at the filters of the drives.",
        motion=replace(e.motion, forces=forces),
        estimated=len(late.kept),
        size=max(late.kept.values(), key=abs),
        expected="channels on one clock",
        found=", ".join(f"{c} {1e3 * d:.1f} ± {1e3 * late.sigma[c]:.1f} ms" for c, d in late.kept.items()),
    )


def _without_masks(sampling: Sampling) -> Sampling:
    """Masks count the samples of motions that are as long as they were."""
    return replace(sampling, drop={})


def _step(e: Evidence) -> Delays:
    """Least squares over the parameters and one delay for each row whose force is measured."""
    forces, names = e.motion.forces, e.machine.coordinates
    measured = [r for r in e.rows if forces is not None and np.isfinite(forces[:, names.index(r)]).all()]
    if not measured:
        return Delays({})
    equations = e.equations()
    own = equations.solved()[1]
    before, weight = share(own), _row_weights(own)
    late = np.zeros((len(e.rows), len(e.motion), len(measured)))
    for k, row in enumerate(measured):
        j = e.rows.index(row)
        late[j, :, k] = -e.force_rates[:, names.index(row)] / equations.sizes[j]
    W, y, S = equations.W * weight[:, None, None], equations.y * weight[:, None], late * weight[:, None, None]
    seconds, left = replace(equations, W=W, y=y).solved(S)
    if np.abs(seconds).max() > LONGEST_DELAY_S:
        nothing = dict.fromkeys(measured, 0.0)
        return Delays(nothing, before, before, dict.fromkeys(measured, float("inf")))
    memory = _memory(left)
    projected = Projected.of(W.transpose(1, 0, 2), y.T)
    rest = projected.beside(S.transpose(1, 0, 2))
    flat = rest.reshape(-1, len(measured))
    spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(flat.T @ flat)), 0.0) * memory * projected.variance_beside(rest))
    return Delays(
        dict(zip(measured, seconds.tolist(), strict=True)),
        before,
        share(left / weight[:, None]),
        dict(zip(measured, spread.tolist(), strict=True)),
    )


def without_delays(
    machine: Machine, motions: Sequence[Motion], seconds: Mapping[str, float], *, moved: bool = True
) -> list[Motion]:
    """The motions with forces moved to when they acted; the ends, where nothing was recorded, are cut off.

    `moved`: otherwise the same samples with the forces as they are.
    """
    longest = max((abs(d) for d in seconds.values()), default=0.0)
    out = []
    for m in motions:
        if m.forces is None:
            out.append(m)
            continue
        forces = m.forces.copy()
        for c, d in seconds.items() if moved else ():
            k = machine.coordinates.index(c)
            forces[:, k] = np.interp(m.t + d, m.t, m.forces[:, k])
        inside = (m.t >= m.t[0] + longest) & (m.t <= m.t[-1] - longest)
        out.append(replace(m, forces=forces)[inside])
    return out


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
