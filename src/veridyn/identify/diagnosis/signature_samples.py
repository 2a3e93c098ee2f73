"""Equations of a fit, held for consecutive samples, with the columns that damages of its log would add to them.

To first order a damage of size c changes W φ = y to W φ + c s = y with a signature s:

    scale 1 + c of the force of row j    s = Γ̂_j in row j                  Γ̂: forces of the fit
    force of row j late by c seconds     s = −dΓ̂_j/dt in row j
    drift of the force of row j          s = 2 (t − t₀)/T − 1 in row j
    offset of the force of row j         s = 1 in row j
    zero of the encoder of q_i off by c  s = −∂Γ̂/∂q_i in all rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from veridyn.identify.diagnosis.evidence import measured_coordinates
from veridyn.identify.equation_plan import EquationPlan, Job
from veridyn.identify.observation import stream
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion, joined
from veridyn.model.tree import Tree
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MAX_ENTRIES = 6_000_000  # numbers of the regressor that are held at once: 48 MB
STRETCHES = 12  # of logs that are longer than that
ROUNDING = 1e-9  # of a force
STEP = 1e-6  # rad or m, of derivatives with respect to positions
SLOPE_RATE_HZ = 50.0  # at which these are evaluated: positions change little between (chosen)


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """Consecutive samples of motions, as the equations of `rows` have them, behind their filters.

    `W` (N, R, p) over the base columns of a fit, `y` (N, R) without known parameters, `forces` (N, R): Γ̂ of the fit, `rates` (N, R): its
    slopes; `used` (N, R); `clock` (N,): −1 at the start of its motion to 1 at its end; `turned` coordinate → −∂Γ̂/∂q (N, R);
    `measured` (R,): rows with a measured force; `share` of the samples of the motions that are held.
    """

    rows: tuple[str, ...]
    W: Array
    y: Array
    forces: Array
    rates: Array
    used: Mask
    clock: Array
    turned: dict[str, Array]
    measured: Mask
    share: float

    def signatures(self, values: Array) -> Iterator[tuple[str, str, Array]]:
        """Kind, coordinate and column (N, R), with the base parameters of the fit (p,).

        Where one force is measured and no known parameter acts beside it, another scale of it is another scale of all parameters: its
        column W φ̂ says nothing, and what it has beside the regressor is the residual of the other rows.
        """
        alone = np.count_nonzero(self.measured) == 1 and not self._known(values)
        for j, row in enumerate(self.rows):
            if not self.measured[j]:
                continue
            for kind, line in (
                *(() if alone else (("force scale", self.forces[:, j]),)),
                ("late force", -self.rates[:, j]),
                ("force drift", self.clock),
                ("force offset", np.ones(len(self.y))),
            ):
                column = np.zeros_like(self.y)
                column[:, j] = line
                yield kind, row, column
        for coordinate, column in self.turned.items():
            yield "encoder zero", coordinate, column

    def _known(self, values: Array) -> bool:
        """Whether known parameters make a part of the measured rows' forces."""
        apart = np.where(self.used, self.forces - self.W @ values, 0.0)[:, self.measured]
        return bool(np.linalg.norm(apart) > ROUNDING * np.linalg.norm(self.forces[:, self.measured]))


def samples_of(fit: Fit, motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling) -> Samples:
    """All samples of motions, or stretches of them where they are too many."""
    every = replace(sampling, dead_zone={}, drop={}, trim=0, decimate=1)
    plan = stream(fit.tree, motions, list(rows), every).plan
    total = sum(len(m) for m in motions)
    most = MAX_ENTRIES // (len(rows) * (len(fit.values) + 1))
    parts, before, seen = [], 0, 0
    for m in motions:
        for start, stop in _stretches(len(m), min(1.0, most / total)):
            parts.append(_part(fit, plan, sampling, m, start, stop, before))
            seen += stop - start
        before += len(m)
    turned = {c: np.concatenate([p.turned[c] for p in parts]) for c in parts[0].turned}
    W, y, forces, rates, used, clock = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("W", "y", "forces", "rates", "used", "clock")
    )
    measured = np.any([p.measured for p in parts], axis=0)
    return Samples(
        rows=tuple(rows),
        W=W,
        y=y,
        forces=forces,
        rates=rates,
        used=used,
        clock=clock,
        turned=turned,
        measured=measured,
        share=seen / total,
    )


def _stretches(total: int, share: float) -> list[tuple[int, int]]:
    """Consecutive samples of a motion that together are a share of it, spread over it."""
    if share >= 1.0:
        return [(0, total)]
    length = max(2, int(total * share / STRETCHES))
    starts = np.unique(np.linspace(0, total - length, STRETCHES).astype(int))
    return [(int(a), int(a) + length) for a in starts]


def _part(
    fit: Fit, plan: EquationPlan, sampling: Sampling, motion: Motion, start: int, stop: int, before: int
) -> Samples:
    """Samples start to stop of a motion."""
    tree, how = fit.tree, plan.how
    rate = uniform_rate(motion.t, where="motion.t") if how.filtering else 0.0
    margin = how.margin(rate) if how.filtering else 0
    low, high = max(0, start - margin), min(len(motion), stop + margin)
    job = Job(
        motion=motion[low:high],
        offset=low,
        first=start,
        start=start,
        stop=stop,
        total=len(motion),
        rate=rate,
        before=before,
    )
    N, R = stop - start, len(plan.rows)
    W, y, forces = np.zeros((N, R, len(fit.values))), np.zeros((N, R)), np.zeros((N, R))
    used: Mask = np.zeros((N, R), dtype=bool)
    leads = list(fit.base.columns)
    for block in plan.blocks(job):
        for j, (A, mask, measured) in enumerate(zip(block.equations, block.used, block.measured, strict=True)):
            at = block.numbers[mask] - start
            place = {c: k for k, c in enumerate(plan.columns[j])}
            own = [k for k, c in enumerate(leads) if c in place]
            W[at[:, None], j, own] = A[:, [place[leads[k]] for k in own]]
            y[at, j] = A[:, -1]
            forces[at, j] = measured
            used[at, j] = True
    own = measured_coordinates(tree, motion)
    measured = np.any(forces != 0.0, axis=0) & np.array([tree.rows[r] in own for r in plan.rows])
    forces -= y - W @ fit.values
    numbers, part = np.arange(start, stop), motion[start:stop]
    rates = np.zeros_like(forces)
    if N > 2:
        rates[1:-1] = (forces[2:] - forces[:-2]) / (part.t[2:] - part.t[:-2])[:, None]
    rates[_reversals(tree, part.qd)] = 0.0
    rates[~(used & np.roll(used, 1, axis=0) & np.roll(used, -1, axis=0))] = 0.0
    for j, r in enumerate(plan.rows):
        used[:, j] &= sampling.uses(tree, tree.rows[r], part.qd, numbers, len(motion), before)
        used[:, j] &= numbers % sampling.decimate == 0
    span = motion.t[-1] - motion.t[0]
    clock = 2.0 * (part.t - motion.t[0]) / span - 1.0
    kept: Mask = np.asarray(used.any(axis=1))  # so that neighbours are neighbours behind decimation, too
    turned = {c: column[kept] for c, column in _turned(fit, plan, job).items()}
    return Samples(
        rows=tuple(tree.rows[r] for r in plan.rows),
        W=W[kept],
        y=y[kept],
        forces=forces[kept],
        rates=rates[kept],
        used=used[kept],
        clock=clock[kept],
        turned=turned,
        measured=measured,
        share=N / len(motion),
    )


def _reversals(tree: Tree, qd: Array) -> Mask:
    """Samples beside a reversal of dry friction, whose step has no slope."""
    near = np.zeros(len(qd), dtype=bool)
    for e in tree.elements:
        if e.jumps:
            speed = qd @ np.array([e.on.get(c, 0.0) for c in tree.coordinates])
            for k in np.flatnonzero(np.diff(np.sign(speed)) != 0.0):
                near[max(0, k - 1) : k + 3] = True
    return near


def _turned(fit: Fit, plan: EquationPlan, job: Job) -> dict[str, Array]:
    """−∂Γ̂/∂q_i of the rows, for every coordinate of an open machine that stands on the ground; at SLOPE_RATE_HZ, and splines between."""
    tree, rows = fit.tree, [fit.tree.rows[r] for r in plan.rows]
    if tree.loops or tree.base != "fixed" or plan.how.along:
        return {}
    t = job.motion.t
    every = max(1, int(1.0 / (SLOPE_RATE_HZ * float(np.median(np.diff(t)))))) if len(t) > 2 else 1
    m = replace(job.motion[::every], forces=None)
    N, n = len(m), tree.n
    q = np.tile(m.q, (n + 1, 1))
    for i in range(n):
        q[(i + 1) * N : (i + 2) * N, i] += STEP
    several = replace(joined([m] * (n + 1)), q=q)
    forces = inverse_dynamics(tree, several, rows, fit.standard).reshape(n + 1, N, -1)
    own = slice(job.start - job.offset, job.stop - job.offset)
    slopes = ((forces[0] - forces[1:]) / STEP).transpose(1, 0, 2)  # (N, n, rows)
    if every > 1:
        slopes = CubicSpline(m.t, slopes, axis=0)(t)
    filters = [plan.how.filter_of(row) for row in rows]
    for low in {f for f in filters if f is not None}:
        through = [j for j, f in enumerate(filters) if f == low]
        slopes[:, :, through] = zero_phase(slopes[:, :, through], job.rate, low)
    return {c: slopes[own, i] for i, c in enumerate(tree.coordinates)}
