"""Columns of structure that geared machines have and a model may lack, along a motion.

To first order each adds c s to the equations W φ = y, with j the row of joint q_j and Γ̂ the forces of the rigid bodies of the fit:

    rotor inertia                 s = q̈_j                         in row j
    dry, viscous friction         s = sign q̇_j, q̇_j               in row j
    asymmetric friction           s = |q̇_j|, and with 1           in row j: what is dry of it is an offset
    Stribeck friction             s = sign q̇_j/(1 + (q̇_j/v)²)     in row j, for speeds v of a grid
    load-dependent friction       s = |Γ̂_j| sign q̇_j              in row j
    friction that yields          s = x − sign q̇_j                in row j, dx/dq_j = (1 − x sign q̇_j)/δ, for distances δ of a grid
    joint spring                  s = q_j                         in row j
    cable                         s = sin q_j, cos q_j            in row j of a turning joint
    friction that warms up        s = e^(−t/τ) (sign q̇_j, q̇_j)    in row j, for times τ of a grid
    flexible joint, compliance c  s = −(Γ̂_i ∂/∂q_i + dΓ̂_i/dt ∂/∂q̇_i + d²Γ̂_i/dt² ∂/∂q̈_i) Γ̂   in all rows: q = q_motor − c Γ̂_i
    gravity turned about x, y     s = ∂Γ̂/∂a                       in all rows
    load on the last body         s = columns of its mass and first moments, from a moment on
    force behind a low-pass       s = (F_τ − F)/τ, F = Γ̂_j        in row j, F_τ behind a filter of first order, for τ of a grid
    force in steps of q           s = Q(F) − F, F = Γ̂_j           in row j, Q(F) the nearest multiple of q

Lines of all rows change slowly: they are computed some fifty times a second and interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import DIFFERENCE, ROUNDING
from veridyn.identify.diagnosis.drives import coupled_drives, moving_alone, turns_round
from veridyn.identify.diagnosis.score_test import ROTOR
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined

DRY, VISCOUS, ASYMMETRIC = "dry friction", "viscous friction", "asymmetric friction"
STRIBECK, LOAD_FRICTION, WARM_UP = "Stribeck friction", "load-dependent friction", "friction that warms up"
PRESLIDING = "friction that yields"
SPRING, CABLE, FLEXIBLE, GRAVITY = "joint spring", "cable", "flexible joint", "gravity direction"
PAYLOAD = "load taken up or set down"
LOW_PASS = "low-pass of the force"
ZERO_PHASE = "filter without phase"  # of the force; no cause, but what a low-pass is seen beside
LATE_FORCE = "late force"
FORCES = ("force scale", LATE_FORCE, "force drift", "force offset")
# s, from the filters of drives to what hardly follows a motion: less than an octave apart, or a delay nearer to the truth is likelier
LOW_PASS_TIMES = (0.003, 0.005, 0.01, 0.017, 0.03, 0.055, 0.1, 0.17, 0.3)
WHOLE = 100  # options of late forces from here on are of the whole force, dry friction included, by as much as LOW_PASS_TIMES
EARLY = 200  # and from here on of forces that are early by as much
IN_STEPS = "force in steps"
STEP_ROUNDING = 1e-3  # of a step, and of a range: smaller steps are no levels; rounding may make two values of one
SETTLED = 5.0  # time constants, behind which less than a hundredth of a step is left
# Of a joint's rms speed: an octave and a half apart, so that no curve between them is missed by much
STRIBECK_SPEEDS = (0.05, 0.15, 0.45)
# rad or m, less than an octave of time apart: at 1 rad/s² friction slides some 25 ms to .2 s, √(2δ), behind a reversal
PRESLIDING_DISTANCES = (0.0003, 0.0008, 0.0024, 0.007, 0.02)
WARM_UP_TIMES = (0.1, 0.3, 1.0)  # of a log's length: shorter ones are over at once, longer ones are a drift
LONGEST_LAG_SHARE = WARM_UP_TIMES[0]  # of a motion: what is slower warms up
SMOOTHING_S = 0.1  # half-width of the parabolas that give second derivatives of forces


class ColumnLine(NamedTuple):
    """One column of a cause: `kind`, `where` (a coordinate, or "" of the machine), `option` of its grid, and `part` of its columns."""

    kind: str
    where: str
    option: int
    part: int


def own_lines(
    machine: Machine, m: Motion, rows: Sequence[str], rigid: Array, begin: float, length: float
) -> Iterator[tuple[str, int, int, Array]]:
    """Kind, option, part, and the lines (R, N) that act in each joint's own row, of a motion that is `length` seconds long."""
    at = [machine.coordinates.index(row) for row in rows]
    turning = np.array([[machine.coordinate_kinds[k] == "turning"] for k in at])
    q, qd, qdd = (x[:, at].T for x in (m.q, m.qd, m.qdd))
    yield from _axis_lines(q, qd, qdd, turning, rigid[at], (m.t - begin) / length)


def drive_lines(
    machine: Machine, m: Motion, rows: Sequence[str], rigid: Array, begin: float, length: float
) -> Iterator[tuple[ColumnLine, Array]]:
    """The same at motors that turn with several joints (:mod:`veridyn.identify.diagnosis.drives`), in all rows (R, N)."""
    for d in coupled_drives(machine):
        acts = d.rows(machine, tuple(rows))
        if acts is None:
            continue
        turning = np.array([[turns_round(machine, d.name)]])
        c, cd, cdd = ((x @ d.turns)[None] for x in (m.q, m.qd, m.qdd))
        load = (d.moves @ rigid)[None]
        for kind, option, part, line in _axis_lines(c, cd, cdd, turning, load, (m.t - begin) / length):
            yield ColumnLine(kind, d.name, option, part), acts[:, None] * line


def force_lines(
    machine: Machine, rows: Sequence[str], forces: Array, rates: Array, measured: Array, clock: Array, step: float
) -> Iterator[tuple[ColumnLine, Array]]:
    """Lines (R, N) of the force sensors of such motors, from the forces of the fit, their slopes, the measured ones, and the share of the
    log behind."""
    at = [machine.coordinates.index(row) for row in rows]
    for d in coupled_drives(machine):
        acts = d.rows(machine, tuple(rows))
        if acts is None:
            continue
        force, rate, x = (d.moves[at] @ x for x in (forces, rates, measured))
        lines = [(kind, 0, line) for kind, line in zip(FORCES, (force, -rate, clock, np.ones_like(clock)), strict=True)]
        for k, slow, even, late, _ in low_passed(force[None], step):
            lines += [(LOW_PASS, k, slow[0]), (ZERO_PHASE, k, even[0]), (LATE_FORCE, WHOLE + k, late[0])]
        lines.append((IN_STEPS, 0, quantised(force[None], x[None])[0][0]))
        for kind, option, line in lines:
            yield ColumnLine(kind, d.name, option, 0), acts[:, None] * line


def low_passed(forces: Array, step: float) -> Iterator[tuple[int, Array, Array, Array, Array]]:
    """Option and (F_τ − F)/τ (K, N) of forces (K, N) that pass a filter of first order, for time constants τ of a grid; its even part; and
    the same of forces that are late by τ, and by −τ.

    The even part is what a filter without phase leaves of it, 1/(1 + (ωτ)²) − 1 in place of 1/(1 + iωτ) − 1: dry friction that is rounded
    off before and behind reversals alike, and filters of the positions, look like it.
    """
    N = forces.shape[1]
    every = np.arange(N, dtype=np.float64)
    asked = [(k, tau) for k, tau in enumerate(LOW_PASS_TIMES) if 0.5 * step < tau < LONGEST_LAG_SHARE * N * step]
    if not asked:
        return
    reach = min(N - 1, int(np.ceil(SETTLED * asked[-1][1] / step)))
    length = cast(int, next_fast_len(N + 2 * reach, real=True))
    behind = min(N - 1, length - N - reach)
    before, after = (
        2.0 * forces[:, :1] - forces[:, reach:0:-1],
        2.0 * forces[:, -1:] - forces[:, -2 : -behind - 2 : -1],
    )
    padded = np.concatenate([before, forces, after], axis=1)
    frequency, spectrum = 2j * np.pi * np.fft.rfftfreq(padded.shape[1], step), np.fft.rfft(padded)
    for k, tau in asked:
        gain = (1.0 / (1.0 + tau * frequency) - 1.0) / tau
        slow, even = (np.fft.irfft(spectrum * g, padded.shape[1])[:, reach : reach + N] for g in (gain, gain.real))
        late, early = (np.array([np.interp(every - by / step, every, f) for f in forces]) for by in (tau, -tau))
        yield k, slow, even, np.asarray((late - forces) / tau), np.asarray((forces - early) / tau)


def level_step(x: Array) -> float:
    """The step between the levels of a signal whose levels are whole steps apart; zero of one that has one level, or others.

    Forces at motors have come there by a sum: equal values differ by rounding.
    """
    values = np.unique(x[np.isfinite(x)])
    apart = np.diff(values)
    apart = apart[apart > ROUNDING * apart.sum()]
    if not len(apart):
        return 0.0
    q = float(apart.min())
    return q if np.abs(apart / q - np.round(apart / q)).max() < STEP_ROUNDING else 0.0


def quantised(forces: Array, measured: Array) -> tuple[Array, Array]:
    """Q(F) − F (K, N) of forces (K, N) that are rounded to multiples of q, and q (K,); zero where the `measured` (K, N) are not.

    Fewer than two values, or so many that a step is finer than a thousandth of their range, are no steps that matter.
    """
    out, steps = np.zeros_like(forces), np.zeros(len(forces))
    for j, (force, x) in enumerate(zip(forces, measured, strict=True)):
        values = np.unique(x[np.isfinite(x)])
        q = level_step(values) if 2 <= len(values) <= 2.0 / STEP_ROUNDING else 0.0
        if q and np.abs(values / q - np.round(values / q)).max() < STEP_ROUNDING:
            out[j], steps[j] = q * np.round(force / q) - force, q
    return out, steps


def _axis_lines(
    q: Array, qd: Array, qdd: Array, turning: NDArray[np.bool_], load: Array, clock: Array
) -> Iterator[tuple[str, int, int, Array]]:
    """Kind, option, part, and lines (K, N) along K axes with these positions, speeds, accelerations and loads (K, N)."""
    sign = np.sign(qd)
    yield ROTOR, 0, 0, qdd
    yield DRY, 0, 0, sign
    yield VISCOUS, 0, 0, qd
    yield ASYMMETRIC, 0, 0, np.abs(qd)
    yield ASYMMETRIC, 1, 0, np.abs(qd)
    yield ASYMMETRIC, 1, 1, np.ones_like(qd)
    rms = np.sqrt(np.mean(qd**2, axis=1, keepdims=True))
    for k, share in enumerate(STRIBECK_SPEEDS):
        speed = np.where(rms > 0.0, share * rms, 1.0)
        yield STRIBECK, k, 0, sign / (1.0 + (qd / speed) ** 2)
    for k, lines in enumerate(np.stack([yielding(x) for x in q], axis=1)):
        yield PRESLIDING, k, 0, lines - sign
    yield LOAD_FRICTION, 0, 0, np.abs(load) * sign
    yield SPRING, 0, 0, q
    yield CABLE, 0, 0, np.where(turning, np.sin(q), 0.0)
    yield CABLE, 0, 1, np.where(turning, np.cos(q), 0.0)
    for k, share in enumerate(WARM_UP_TIMES):
        cold = np.exp(-clock / share)
        yield WARM_UP, k, 0, cold * sign
        yield WARM_UP, k, 1, cold * qd


def yielding(q: Array) -> Array:
    """x (distances, N) of dry friction that yields before it slides, along positions q (N,): Dahl's law, LuGre's without its damping.

    Along each way in one direction s from q₀ on, x = s + (x₀ − s) e^(−|q − q₀|/δ): it depends on where the joint has been, not on speed.
    """
    direction = np.sign(np.diff(q))
    moving = np.maximum.accumulate(np.where(direction != 0.0, np.arange(len(direction)), 0))
    direction = direction[moving]  # a rest keeps it
    out = np.zeros((len(PRESLIDING_DISTANCES), len(q)))
    if not direction.any():
        return out
    starts = np.append(0, np.flatnonzero(np.diff(direction)) + 1)
    lengths = np.abs(np.diff(q[np.append(starts, len(q) - 1)]))
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(direction))))
    gone = np.abs(q[1:] - q[starts][run])
    for line, distance in zip(out, PRESLIDING_DISTANCES, strict=True):
        begin, x = np.empty(len(starts)), float(direction[0])
        for k, (s, left) in enumerate(
            zip(direction[starts].tolist(), np.exp(-lengths / distance).tolist(), strict=True)
        ):
            begin[k] = x
            x = s + (x - s) * left
        line[0] = direction[0]
        line[1:] = direction + (begin[run] - direction) * np.exp(-gone / distance)
    return out


def rigid_values(fit: Fit) -> Array:
    """Standard parameters of the fit without its elements: what acts behind gears and their friction."""
    bodies = np.array([bool(body) for body, _ in fit.described.columns])
    return np.where(bodies, fit.standard, 0.0)


def rigid_forces(fit: Fit, m: Motion, step: int) -> tuple[NDArray[np.intp], Array]:
    """Every `step`-th sample, and the forces (n, N) of the rigid bodies at all samples, interpolated between those."""
    thin = np.unique(np.append(np.arange(0, len(m), step), len(m) - 1))
    part = replace(m[thin], forces=None)
    own = [fit.described.coordinates[k] for k in fit.described.independent]
    forces = np.zeros((fit.described.n, len(thin)))
    forces[list(fit.described.independent)] = inverse_dynamics(
        fit.described, part, own, rigid_values(fit), engine="numpy"
    ).T
    return thin, between(thin, forces, len(m))


def between(thin: NDArray[np.intp], lines: Array, samples: int) -> Array:
    """Lines (…, k) of some samples at all of them (…, samples), linear between."""
    if len(thin) == samples:
        return lines
    every = np.arange(samples)
    k = np.clip(np.searchsorted(thin, every, side="right") - 1, 0, len(thin) - 2)
    share = (every - thin[k]) / (thin[k + 1] - thin[k])
    return np.asarray(lines[..., k] * (1.0 - share) + lines[..., k + 1] * share, dtype=np.float64)


def whole_lines(
    fit: Fit, m: Motion, rows: Sequence[str], thin: NDArray[np.intp], rigid: Array
) -> Iterator[tuple[ColumnLine, Array]]:
    """Lines (R, N) that act in all rows of an open machine on the ground."""
    machine, part, N = fit.described, replace(m[thin], forces=None), len(m)
    values = rigid_values(fit)
    drives = coupled_drives(machine)
    alone = moving_alone(drives)
    axes = [(c, np.eye(machine.n)[i]) for i, c in enumerate(machine.coordinates) if i not in alone]
    places = [*axes, *((d.name, d.moves) for d in drives)]
    bent = [part]
    for _, moves in places:
        slopes = _derivatives(part.t, moves @ rigid[:, thin])
        q, qd, qdd = (
            x - DIFFERENCE * slope[:, None] * moves
            for x, slope in zip((part.q, part.qd, part.qdd), slopes, strict=True)
        )
        bent.append(replace(part, q=q, qd=qd, qdd=qdd))
    forces = inverse_dynamics(machine, joined(bent), list(rows), values, engine="numpy")
    still, *every = forces.reshape(len(bent), len(part), -1)
    for (c, _), after in zip(places, every, strict=True):
        yield ColumnLine(FLEXIBLE, c, 0, 0), between(thin, (after - still).T / DIFFERENCE, N)
    before = inverse_dynamics(machine, part, list(rows), fit.standard, engine="numpy")
    g = np.asarray(machine.gravity, dtype=np.float64)
    if np.any(g):
        for k, axis in enumerate(_across(g)):
            other = replace(machine, gravity=g + DIFFERENCE * np.linalg.norm(g) * axis)
            turned = inverse_dynamics(other, part, list(rows), fit.standard, engine="numpy")
            yield ColumnLine(GRAVITY, "", 0, k), between(thin, (turned - before).T / DIFFERENCE, N)
    load = load_columns(machine)
    lines = regressor(machine, part, list(rows), load, engine="numpy")
    for k in range(len(load)):
        yield ColumnLine(PAYLOAD, "", 0, k), between(thin, lines[:, :, k].T, N)


def _across(g: Array) -> list[Array]:
    """Two unit vectors across gravity."""
    least = int(np.argmin(np.abs(g)))
    first = np.cross(g, np.eye(3)[least])
    both = (first, np.cross(g, first))
    return [np.asarray(v / np.linalg.norm(v), dtype=np.float64) for v in both]


def load_columns(machine: Machine) -> list[int]:
    """The mass and first moments of the last body."""
    last = next((b.name for b in reversed(bodies_of(machine)) if b.real), "")
    own = [k for k, (body, _) in enumerate(machine.columns) if body == last]
    return [own[9], own[6], own[7], own[8]] if len(own) == 10 else []


def _derivatives(t: Array, x: Array) -> tuple[Array, Array, Array]:
    """x (N,) with its first and second derivatives, by parabolas through neighbours: derivatives of noise would be larger than theirs."""
    step = float(np.median(np.diff(t))) if len(t) > 1 else 1.0
    half = int(min(max(2, round(SMOOTHING_S / step)), (len(x) - 1) // 2))
    if half < 1:
        return x, np.zeros_like(x), np.zeros_like(x)
    k = step * np.arange(-half, half + 1)
    weights = np.linalg.pinv(np.vander(k, 3, increasing=True))
    padded = np.concatenate([2 * x[0] - x[half:0:-1], x, 2 * x[-1] - x[-2 : -half - 2 : -1]])
    smooth = [np.asarray(np.convolve(padded, w[::-1], mode="valid"), dtype=np.float64) for w in weights]
    return smooth[0], smooth[1], 2.0 * smooth[2]
