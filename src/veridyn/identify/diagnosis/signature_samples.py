"""Equations of a fit, held for consecutive samples, with the columns that damages of its log would add to them.

To first order a damage of size c changes W φ = y to W φ + c s = y with a signature s:

    scale 1 + c of the force of row j    s = Γ̂_j in row j                  Γ̂: forces of the fit
    force of row j late by c seconds     s = −dΓ̂_j/dt in row j, without dry friction
    drift of the force of row j          s = (t − t₀)/T in row j: it begins right, and is off by c at the end
    offset of the force of row j         s = 1 in row j
    zero of the encoder of q_i off by c  s = −∂Γ̂/∂q_i in all rows
    machine 1 + c times as large         s = ∂Γ̂/∂c in all rows (:mod:`veridyn.identify.diagnosis.trace_noise`)

Dry friction F̂ steps where its speed turns, and has no slope there: a late force is a pulse behind each reversal, as long as it is late. For
delays d of a grid the column is s_d/d with s_d = F̂_j(t − d) − F̂_j(t), and its size about d.

Neighbouring samples say nearly the same of these columns. The equations of each window of samples are added and divided by the root of
their number, which leaves white noise as it was: WINDOW_RATE_HZ equations a second stand for all of a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import BLOCK_SAMPLES, DIFFERENCE, ROUNDING, compiled_plan, fit_forces
from veridyn.identify.diagnosis.drives import CoupledDrive, coupled_drives
from veridyn.identify.diagnosis.evidence import measured_coordinates, near_reversals
from veridyn.identify.diagnosis.score_test import MACHINE
from veridyn.identify.diagnosis.structure import (
    EARLY,
    IN_STEPS,
    LATE_FORCE,
    LONGEST_LAG_SHARE,
    LOW_PASS,
    LOW_PASS_TIMES,
    WHOLE,
    ZERO_PHASE,
    ColumnLine,
    drive_lines,
    force_lines,
    low_passed,
    own_lines,
    quantised,
    rigid_forces,
    whole_lines,
)
from veridyn.identify.diagnosis.trace_noise import size_slopes
from veridyn.identify.regression.compiled_stream import equations
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.mechanics.laws import law
from veridyn.mechanics.tree.dynamics.engine import wants_compiled
from veridyn.mechanics.tree.recursion.equations import acting
from veridyn.mechanics.tree.recursion.inputs import state_of
from veridyn.model.elements.element import Element
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.algebra import ARRAYS

Mask = NDArray[np.bool_]
MAX_ENTRIES = 6_000_000  # numbers of the equations that are looked at, and of lines of their samples: 48 MB each
# How many there are of logs that are longer than that, and about how long (chosen)
STRETCHES, STRETCH_SAMPLES = ((3, 12), 3000)
WINDOW_RATE_HZ = 50.0  # of windows: positions change little between (chosen)
MIN_EQUATIONS = 20.0  # for each parameter, that windows must leave (chosen)
LONGEST_DELAY_S = LOW_PASS_TIMES[-1]  # what would be later hardly follows the motion, as behind the slowest filter


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """Consecutive windows of samples of motions, as the equations of `rows` have them, behind their filters.

    `W` (N, R, p) over the base columns of a fit, `y` (N, R) without known parameters, `forces` (N, R): Γ̂ of the fit, `rates` (N, R): its
    slopes; `used` (N, R); `ones` (N, R): of an offset; `clock` (N, R): 0 at the start of its motion to 1 at its end; `turned` coordinate →
    −∂Γ̂/∂q (N, R), and `MACHINE` → ∂Γ̂/∂c; `late` (N, R, 2, k): s_d/d of the `delays` d (k,), s, late and early, none where no row has dry
    friction of its own; `own` (kind, option, part) → (N, R): lines of structure, each of a joint's own row; `whole`: those of all rows
    (:mod:`veridyn.identify.diagnosis.structure`); `measured` (R,): rows with a measured force;
    `window`: samples to an equation; `share` of the samples of the motions that are held; `drives`: motors that turn with several joints.
    """

    rows: tuple[str, ...]
    W: Array
    y: Array
    forces: Array
    rates: Array
    used: Mask
    ones: Array
    clock: Array
    turned: dict[str, Array]
    late: Array
    delays: Array
    own: dict[tuple[str, int, int], Array]
    whole: dict[ColumnLine, Array]
    measured: Mask
    window: int
    share: float
    coordinates: tuple[str, ...] = ()
    drives: tuple[CoupledDrive, ...] = ()

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
                ("force drift", self.clock[:, j]),
                ("force offset", self.ones[:, j]),
            ):
                column = np.zeros_like(self.y)
                column[:, j] = line
                yield kind, row, column
        for coordinate, column in self.turned.items():
            yield "machine size" if coordinate == MACHINE else "encoder zero", coordinate, column

    def misfit(self, values: Array) -> Array:
        """y − W φ (N, R) of base parameters φ (p,)."""
        return self.y - self._fitted(values)

    def _fitted(self, values: Array) -> Array:
        return (self.W.reshape(-1, self.W.shape[2]) @ values).reshape(self.y.shape)

    def _known(self, values: Array) -> bool:
        """Whether known parameters make a part of the measured rows' forces."""
        apart = np.where(self.used, self.forces - self._fitted(values), 0.0)[:, self.measured]
        return bool(np.linalg.norm(apart) > ROUNDING * np.linalg.norm(self.forces[:, self.measured]))


def samples_of(
    fit: Fit,
    motions: Sequence[Motion],
    rows: Sequence[str],
    sampling: Sampling,
    window: int | None = None,
    most: int | None = None,
) -> Samples:
    """All samples of motions, or stretches of them where they are too many, or more than `most`.

    `window` samples to an equation, chosen if left out.
    """
    every = replace(sampling, dead_zone={}, drop={}, trim=0, decimate=1)
    leads, total = fit.base.columns, sum(len(m) for m in motions)
    plan = _plan(fit, motions, rows, every)
    if window is None:
        step = max(float(np.median(np.diff(m.t))) for m in motions) * sampling.decimate
        enough = total * len(rows) / (sampling.decimate * MIN_EQUATIONS * max(len(leads), 1))
        window = 1 if sampling.filtering else max(1, int(min(1.0 / (WINDOW_RATE_HZ * step), enough)))
    shifts = _shifts(plan, motions)
    # For equations, and for lines of samples.
    entries = MAX_ENTRIES * sampling.decimate * window // (len(rows) * (len(leads) + 1))
    entries = min(entries, MAX_ENTRIES // (len(rows) * (4 + 2 * len(shifts) + len(_turned_names(plan)))))
    share = min(1.0, min(entries, entries if most is None else most) / total)
    parts, before, seen = [], 0, 0
    for m in motions:
        for start, stop in _stretches(len(m), share):
            parts.append(_part(fit, plan, sampling, m, start, stop, before, window, shifts))
            seen += stop - start
        before += len(m)
    if len(parts) == 1:
        return replace(parts[0], share=seen / total)

    def joined(lines: list[dict[Any, Array]]) -> dict[Any, Array]:
        """Those that all parts have: a short one has no slow low-passes."""
        return {c: np.concatenate([x[c] for x in lines]) for c in lines[0] if all(c in x for x in lines)}

    turned, own, whole = (joined([getattr(p, name) for p in parts]) for name in ("turned", "own", "whole"))
    joint = ("W", "y", "forces", "rates", "used", "ones", "clock", "late")
    merged = {name: np.concatenate([getattr(p, name) for p in parts]) for name in joint}
    measured = np.any([p.measured for p in parts], axis=0)
    structure = {"turned": turned, "own": own, "whole": whole}
    return replace(parts[0], **merged, **structure, measured=measured, share=seen / total)


def _plan(fit: Fit, motions: Sequence[Motion], rows: Sequence[str], how: Sampling) -> EquationPlan:
    """Of the base columns of a fit; of more where the machine code that streamed them is there."""
    machine, leads = fit.described, fit.base.columns
    there = None if how.along else compiled_plan(machine, rows, motions[0], leads)
    if there is not None:
        return replace(there, how=how) if how.filtering else there
    own = EquationPlan(machine, machine.select_rows(list(rows)), how, kept=tuple(leads))
    request, samples = equations(machine, own.computed, own.wanted, motions[0]), sum(len(m) for m in motions)
    return replace(own, compile=wants_compiled("auto", machine, request, samples))


def _stretches(total: int, share: float) -> list[tuple[int, int]]:
    """Consecutive samples of a motion that together are a share of it, spread over it."""
    if share >= 1.0:
        return [(0, total)]
    number = int(np.clip(total * share / STRETCH_SAMPLES, *STRETCHES))
    length = max(2, int(total * share / number))
    starts = np.unique(np.linspace(0, total - length, number).astype(int))
    return [(int(a), int(a) + length) for a in starts]


def _part(
    fit: Fit,
    plan: EquationPlan,
    sampling: Sampling,
    motion: Motion,
    start: int,
    stop: int,
    before: int,
    window: int,
    shifts: Sequence[int],
) -> Samples:
    """Samples start to stop of a motion."""
    machine, how, rows = fit.described, plan.how, [fit.described.rows[r] for r in plan.rows]
    rate = uniform_rate(motion.t, where="motion.t") if how.filtering else 0.0
    margin = how.margin(rate) if how.filtering else 0
    low, high, total = max(0, start - margin), min(len(motion), stop + margin), len(motion)
    job = Job(
        motion=motion[low:high], offset=low, first=start, start=start, stop=stop, total=total, rate=rate, before=before
    )
    N, R, width = stop - start, len(rows), sampling.decimate * window
    numbers, part = np.arange(start, stop), motion[start:stop]
    used = np.stack([sampling.uses(machine, row, part.qd, numbers, len(motion), before) for row in rows])
    thin = numbers % sampling.decimate == 0
    used &= thin
    weight = used.astype(np.float64)
    M = (stop - 1) // width - start // width + 1
    W, y, forces = np.zeros((R, len(fit.values), M)), np.zeros((R, M)), np.zeros((R, N))
    there: Mask = np.zeros((R, N), dtype=bool)
    felt: Mask = np.zeros(R, dtype=bool)
    leads = {c: k for k, c in enumerate(fit.base.columns)}
    places = [[k for k, c in enumerate(columns) if c in leads] for columns in plan.columns]
    owns = [[leads[columns[k]] for k in place] for columns, place in zip(plan.columns, places, strict=True)]
    for block in plan.blocks(job):
        for j, (A, mask, force) in enumerate(zip(block.equations, block.used, block.measured, strict=True)):
            at = _slice(block.numbers[mask] - start)
            values = np.zeros(A.shape[1])
            values[places[j]], values[-1] = fit.values[owns[j]], -1.0
            felt[j] |= bool(np.any(force))
            there[j, at] = True
            forces[j, at] = force + A @ values
            first, total = _added(A.T, weight[j, at], numbers[at], width)
            held = slice(first - start // width, first - start // width + total.shape[1])
            W[j, owns[j], held] += total[places[j]]
            y[j, held] += total[-1]
    friction = _friction(fit, plan, job)
    steps = np.tile(near_reversals(machine, part.qd, 1), (R, 1))  # which have no slope
    smooth = forces
    if how.filtering and _rubbing(plan):
        low = np.array([how.filter_of(row) is not None for row in rows])
        smooth = forces - np.where(low[:, None], _filtered(friction[:, None], plan, job)[:, 0], 0.0)
        steps[low] = False
    rates = np.zeros_like(forces)
    if N > 2:
        rates[:, 1:-1] = (smooth[:, 2:] - smooth[:, :-2]) / (part.t[2:] - part.t[:-2])
    rates[steps] = 0.0
    rates[:, 1:-1] *= there[:, 1:-1] & there[:, 2:] & there[:, :-2]
    clock = (part.t - motion.t[0]) / (motion.t[-1] - motion.t[0])
    pulses = 4 + 2 * len(shifts)  # where the lines of derivatives begin
    turned = _turned_names(plan)
    lines = np.zeros((R, pulses + len(turned), N))
    lines[:, 0], lines[:, 1], lines[:, 2], lines[:, 3] = 1.0, forces, rates, clock
    _pulses(friction, plan, job, shifts, lines[:, 4:pulses])
    if turned:
        _turned(fit, plan, job, used.any(axis=0), lines[:, pulses:])
    _, added = _added(lines, (weight * there)[:, None], numbers, width)  # (R, lines, M)
    count = added[:, 0].T.copy()
    root = np.sqrt(np.maximum(count, 1.0))
    added, W, y = (np.divide(x.transpose(2, 0, 1), root[:, :, None], order="C") for x in (added, W, y[:, None]))
    kept: Mask = np.asarray(count.any(axis=1))  # so that neighbours are neighbours behind decimation, too
    delays = np.array(shifts) * (float(np.median(np.diff(motion.t))) if shifts else 0.0)
    late = added[:, :, 4:pulses].reshape(M, R, 2, -1) / (np.array([1.0, -1.0])[:, None] * delays)
    measured = measured_coordinates(machine, motion)

    def windows(line: Array) -> Array:
        """A line (R, …) of the samples of the job, filtered and added over windows, as the equations are (N, R)."""
        inside = slice(job.start - job.offset, job.stop - job.offset)
        line = _filtered(line[:, None], plan, job)[:, 0] if how.filtering else line[:, inside]
        return (_added(line, weight * there, numbers, width)[1].T / root)[kept]

    spacing = max(1, round(1.0 / (WINDOW_RATE_HZ * float(np.median(np.diff(motion.t)))))) if N > 2 else 1
    thin, rigid = rigid_forces(fit, job.motion, spacing)
    length = float(motion.t[-1] - motion.t[0])
    own = {
        (kind, option, k): windows(line)
        for kind, option, k, line in own_lines(machine, job.motion, rows, rigid, float(motion.t[0]), length)
    }
    slow = whole_lines(fit, job.motion, rows, thin, rigid) if turned else ()
    whole = {name: windows(line) for name, line in slow}
    at_drives = drive_lines(machine, job.motion, rows, rigid, float(motion.t[0]), length)
    whole |= {name: windows(line) for name, line in at_drives}
    step = float(np.median(np.diff(motion.t))) if N > 2 else 1.0

    def samples(line: Array) -> Array:
        """A line (R, N) of the samples of the equations themselves, added over windows (N, R)."""
        return (_added(line, weight * there, numbers, width)[1].T / root)[kept]

    for k, slow, even, whole_late, whole_early in low_passed(forces, step):
        own[LOW_PASS, k, 0], own[ZERO_PHASE, k, 0] = samples(slow), samples(even)
        own[LATE_FORCE, WHOLE + k, 0], own[LATE_FORCE, EARLY + k, 0] = samples(whole_late), samples(whole_early)
    given = np.full((R, N), np.nan)
    if part.forces is not None:
        given = part.forces[:, [machine.coordinates.index(row) for row in rows]].T
    own[IN_STEPS, 0, 0] = samples(quantised(forces, given)[0])
    whole |= {name: samples(line) for name, line in force_lines(machine, rows, forces, rates, given, clock, step)}
    return Samples(
        rows=tuple(rows),
        W=W if kept.all() else W[kept],
        y=y[kept, :, 0],
        forces=added[kept, :, 1],
        rates=added[kept, :, 2],
        used=(count > 0.0)[kept],
        ones=added[kept, :, 0],
        clock=added[kept, :, 3],
        turned={c: added[kept, :, pulses + i] for i, c in enumerate(turned)},
        late=late[kept],
        delays=delays,
        own=own,
        whole=whole,
        measured=felt & np.array([row in measured for row in rows]),
        window=window,
        share=N / len(motion),
        coordinates=tuple(machine.coordinates),
        drives=coupled_drives(machine),
    )


def _added(lines: Array, weight: Array, numbers: NDArray[np.intp], width: int) -> tuple[int, Array]:
    """Sums of weighted lines (…, n) over windows of `width` samples, which begin at multiples of it; the first window, and (…, windows).

    `numbers` (n,): which samples of their log these are, in order; others count as zero.
    """
    if not len(numbers):
        return 0, np.zeros((*lines.shape[:-1], 0))
    first, last = int(numbers[0]) // width, int(numbers[-1]) // width
    seen = np.flatnonzero(weight.any(axis=tuple(range(weight.ndim - 1))))
    places = numbers[seen] // width - first
    if not np.any(places[1:] == places[:-1]):  # decimated: no window has more than one that counts
        sums = np.zeros((*lines.shape[:-1], last - first + 1))
        sums[..., places] = lines[..., seen] * weight[..., seen]
        return first, sums
    whole, length = (lines, weight), (last - first + 1) * width
    if len(numbers) < length:
        whole = tuple(np.zeros((*x.shape[:-1], length)) for x in whole)
        for x, given in zip(whole, (lines, weight), strict=True):
            x[..., _slice(numbers - first * width)] = given
    weighted = whole[0] * whole[1]
    return first, (weighted.reshape(-1, width) @ np.ones(width)).reshape(*weighted.shape[:-1], -1)


def _slice(numbers: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """The same places in order, as a slice where none between them is left out."""
    if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _turned_names(plan: EquationPlan) -> tuple[str, ...]:
    """Coordinates of an open machine that stands on the ground, and `MACHINE`: what derivatives of forces are taken of; none of others."""
    machine = plan.machine
    return () if machine.closed or machine.base != "fixed" or plan.how.along else (*machine.coordinates, MACHINE)


def _shifts(plan: EquationPlan, motions: Sequence[Motion]) -> tuple[int, ...]:
    """Delays of the grid in samples, octaves, each also early; none where no row has dry friction of its own."""
    if min(len(m) for m in motions) < 3 or not _rubbing(plan):
        return ()
    most = min(min(LONGEST_DELAY_S / float(np.median(np.diff(m.t))), LONGEST_LAG_SHARE * len(m)) for m in motions)
    return tuple(2**k for k in range(int(most).bit_length()))


def _rubbing(plan: EquationPlan) -> list[Element]:
    """Dry friction on coordinates of an open machine."""
    if plan.machine.closed or plan.how.along:
        return []
    return [e for e in plan.machine.elements if e.jumps and e.on and e.on_body is None and e.between is None]


def _friction(fit: Fit, plan: EquationPlan, job: Job) -> Array:
    """F̂ of the rows (R, …) at all samples of a job, its margins included; zero where :func:`_rubbing` has none."""
    machine, m, rows = fit.described, job.motion, [fit.described.rows[r] for r in plan.rows]
    out, elements = np.zeros((len(rows), len(m))), _rubbing(plan)
    if not elements:
        return out
    state = state_of(machine, m)
    for e in elements:
        value = fit.standard[machine.parameters.index(e.parameter_name)]
        force = value * np.asarray(law(e, acting(machine, e, state, m.signals, ARRAYS)))
        for c, a in e.on.items():
            if c in rows:
                out[rows.index(c)] += a * force
    return out


def _pulses(friction: Array, plan: EquationPlan, job: Job, shifts: Sequence[int], out: Array) -> None:
    """s_d of the rows (R, 2 k, N) for each delay of the grid, late and then early, behind the filters of the rows."""
    F = friction
    pulses = np.zeros((len(F), 2 * len(shifts), F.shape[1])) if plan.how.filtering else out
    for i, k in enumerate(shifts):
        np.subtract(F[:, :-k], F[:, k:], out=pulses[:, i, k:])
        np.negative(pulses[:, i, k:], out=pulses[:, len(shifts) + i, :-k])
    if plan.how.filtering and shifts:
        out[:] = _filtered(pulses, plan, job)


def _filtered(lines: Array, plan: EquationPlan, job: Job) -> Array:
    """Lines (R, k, …) of all samples of a job behind the filters of their rows, at its own samples (R, k, N)."""
    filters = [plan.how.filter_of(plan.machine.rows[r]) for r in plan.rows]
    out, inside = lines.copy(), slice(job.start - job.offset, job.stop - job.offset)
    for low in {low for low in filters if low is not None}:
        own = [
            r for r, other in enumerate(filters) if other == low
        ]  # in one pass, which costs little more than one line
        several = lines[own].reshape(-1, lines.shape[-1])
        out[own] = zero_phase(several.T, job.rate, low).T.reshape(lines[own].shape)
    return out[:, :, inside]


def _turned(fit: Fit, plan: EquationPlan, job: Job, used: Mask, out: Array) -> None:
    """−∂Γ̂/∂q_i of the rows for every coordinate, and ∂Γ̂/∂c, into `out` (R, n + 1, N), behind the filters of the rows.

    At the very samples of W, `used` (N,), and not between them: what the parameters explain whole is then explained to rounding, noise of
    the motion included. An interpolated column would have the noise of other samples, which is beside the regressor and in the residual.
    """
    machine, rows, filtering = fit.described, [fit.described.rows[r] for r in plan.rows], plan.how.filtering
    lines = np.zeros((len(rows), machine.n + 1, len(job.motion))) if filtering else out
    every = np.arange(len(job.motion)) if filtering else np.flatnonzero(used)
    here = np.empty((len(every), len(rows)))
    for first in range(0, len(every), BLOCK_SAMPLES):
        at = every[first : first + BLOCK_SAMPLES]
        m = replace(job.motion[at], forces=None)
        N, n = len(m), machine.n
        q, qd, qdd = (np.tile(x, (n + 1, 1)) for x in (m.q, m.qd, m.qdd))
        for i in range(n):
            q[(i + 1) * N : (i + 2) * N, i] += DIFFERENCE
        wrenches = {k: np.tile(x, (n + 1, 1)) for k, x in m.wrenches.items()}
        signals = {k: np.tile(x, n + 1) for k, x in m.signals.items()}
        several = Motion(np.arange(float(len(q))), q, qd, qdd, wrenches=wrenches, signals=signals)
        forces = fit_forces(fit, several, rows).reshape(n + 1, N, -1)
        lines[:, :n, at] = (forces[0] - forces[1:]).transpose(2, 0, 1) / DIFFERENCE
        here[first : first + BLOCK_SAMPLES] = forces[0]
    whole = replace(job.motion[every], forces=None)
    lines[:, machine.n, every] = size_slopes(machine, fit.standard, whole, rows, here).T
    if filtering:
        out[:] = _filtered(lines, plan, job)
