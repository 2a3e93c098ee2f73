"""Answers that no machine gives: friction that drives, inertia below zero, speeds, clocks and sizes that cannot be.

Data with all signs turned, or in another unit of force or time, fit a model as well as the right ones do: only the parameters are
absurd. These are the questions that find that out. The joint-space inertia M(q) depends on base parameters alone, so that it
must be positive definite whatever the data leave open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import fit_forces
from veridyn.identify.diagnosis.evidence import Evidence
from veridyn.identify.diagnosis.replacements import DEGREES
from veridyn.identify.result import Fit
from veridyn.inference.finding import Mistake
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.loops.closure import loop_jacobian
from veridyn.model.motion import Motion
from veridyn.signals.findings import too_fast

WRONG_SIGNS = ("friction drives", "inertia below zero")  # kinds of mistakes that the values of a fit show
# Deviations that errors of a right model do not reach (those for white noise are often too small)
BEYOND_SIGMAS = 5.0
CONFIGURATIONS = 40
EQUAL_CORRELATION = 0.8  # correlation from which a measured and a predicted force are one and the same up to a factor
OPPOSITE_CORRELATION = -0.5  # correlation from which a measured force goes against the predicted one (chosen)
# Of the forces and of the weights that priors predict: less is no error of priors (chosen)
SMALL_PART, SMALL_WEIGHT = (0.1, 0.25)
PLAUSIBLE_SCALES = (0.4, 2.5)  # factors between measured and predicted forces that priors may be wrong by (chosen)


def absurd_signs(fit: Fit, e: Evidence) -> list[Mistake]:
    """Friction below zero, and inertia M(q) that is not positive definite, at configurations of the log."""
    found: list[Mistake] = []
    machine, m = fit.described, e.motion
    negative = []
    alone = dict(zip(fit.base.names, np.count_nonzero(fit.base.matrix, axis=1) == 1, strict=True))
    for name, value, sigma, column in zip(fit.names, fit.values, fit.sigma, fit.base.columns, strict=True):
        body, number = machine.columns[column]
        kind = machine.elements[number].kind.partition("_")[0] if not body else ""  # forwards and backwards alike
        if (
            kind in ("damper", "coulomb", "inertia")
            and alone[name]
            and e.rows
            and value < -BEYOND_SIGMAS * (sigma if np.isfinite(sigma) else 0.0)
        ):
            column_of = regressor(machine, m, list(e.rows), [column], engine="numpy")[:, :, 0]
            made = abs(value) * np.sqrt(np.mean(column_of**2, axis=0))
            if any(x > SMALL_PART * _size(e, row) for x, row in zip(made, e.rows, strict=True)):
                negative.append(f"{name} = {value:.3g}")
    if negative:
        found.append(
            Mistake.of(
                WRONG_SIGNS[0],
                "friction or a rotor is below zero by many deviations.",
                where="parameters",
                expected="positive values",
                found=", ".join(negative),
                hint="A sign in the log is wrong (force or position), or two channels are shifted in time.",
            )
        )
    worst = least_inertia(fit, m)
    if worst is not None and worst[0] < -max(0.02 * worst[1], BEYOND_SIGMAS * worst[2]):
        found.append(
            Mistake.of(
                WRONG_SIGNS[1],
                "the identified machine would gain speed against a force: its inertia M(q) is not positive definite.",
                where="parameters",
                expected="eigenvalues above zero",
                found=f"{worst[0]:.3g} beside {worst[1]:.3g} at a configuration of the log",
                hint="Forces with the wrong sign or from another joint do this, and logs without quick motion.",
            )
        )
    return found


def _size(e: Evidence, c: str) -> float:
    forces = e.motion.forces
    k = e.machine.coordinates.index(c)
    if forces is None or not np.isfinite(forces[:, k]).any():
        return float("inf")
    return float(np.sqrt(np.nanmean(forces[:, k] ** 2)))


def least_inertia(fit: Fit, m: Motion) -> tuple[float, float, float] | None:
    """The least and the largest eigenvalue of M(q), each coordinate in its own rms acceleration, at the worst configuration, and σ of
    the least where it is below zero: uᵀ M u is linear in the parameters for a given direction u; zero where the fit has no deviations.
    """
    machine = fit.described
    if machine.base != "fixed" or not machine.n:
        return None
    picked = m[np.unique(np.linspace(0, len(m) - 1, CONFIGURATIONS).astype(int))]
    scale = np.sqrt(np.mean(m.qdd[:, list(machine.independent)] ** 2, axis=0))
    if not (scale > 0.0).all():
        return None
    n = len(machine.independent)
    # Accelerations that unit ones of the independent coordinates make without speed: those of a closed machine take others along.
    G = (
        loop_jacobian(machine, picked.q, engine="numpy")
        if machine.closed
        else np.broadcast_to(np.eye(n), (len(picked), n, n))
    )
    # Column k of M: forces of unit acceleration k less those of none, all in one pass.
    N = len(picked)
    unit = np.concatenate([np.zeros_like(picked.q), *(G[:, :, k] for k in range(n))])
    again = {name: np.tile(x, n + 1) for name, x in picked.signals.items()}
    clock = np.arange(float(len(unit)))
    still = Motion(clock, np.tile(picked.q, (n + 1, 1)), np.zeros_like(unit), unit, signals=again)
    forces = fit_forces(fit, still, [machine.coordinates[k] for k in machine.independent]).reshape(n + 1, N, -1)
    M = (forces[1:] - forces[0]).transpose(1, 2, 0)
    M = 0.5 * (M + M.transpose(0, 2, 1)) * scale[:, None] * scale
    values, vectors = np.linalg.eigh(M)
    worst = int(np.argmin(values[:, 0]))
    if values[worst, 0] >= 0.0:
        return float(values[worst, 0]), float(values[worst, -1]), 0.0
    u = scale * vectors[worst, :, 0]
    q = np.repeat(picked.q[worst : worst + 1], 2, axis=0)
    moved = np.stack([G[worst] @ u, np.zeros(machine.n)])
    signals = {name: np.repeat(x[worst], 2) for name, x in picked.signals.items()}
    pair = Motion(np.arange(2.0), q, np.zeros_like(q), moved, signals=signals)
    D = regressor(machine, pair, "joints", list(fit.base.columns), engine="numpy")
    slope = u @ (D[0] - D[1])  # of uᵀ M u over the base parameters
    variance = float(slope @ np.nan_to_num(fit.covariance) @ slope)
    return float(values[worst, 0]), float(values[worst, -1]), float(np.sqrt(max(variance, 0.0)))


def prior_scales(e: Evidence) -> list[Mistake]:
    """Forces that are a steady factor beside what the model's own values predict: motor side, another unit, another constant; forces
    that go against them: a sign, or another gravity, which on some machines cannot be separated from other weights; and forces that are
    a small part of them, whatever their course: a model of a larger machine, whose parameters a fit shrinks until they fit nearly as well.
    """
    machine, m = e.machine, e.motion
    if not e.rows or any(machine.columns[k][0] for k in np.flatnonzero(~np.isfinite(machine.parameters.values))):
        return []  # an inertia without a value predicts nothing; friction without one is left out
    predicted = e.predicted()
    forces = m.forces if m.forces is not None else np.zeros((len(m), machine.n))
    off: dict[str, float] = {}
    against: dict[str, float] = {}
    small: dict[str, float] = {}
    for k, row in enumerate(e.rows):
        y, p = forces[:, machine.coordinates.index(row)], predicted[k]
        if not np.isfinite(y).all() or not np.any(p) or not np.any(y):
            continue
        alike = float(y @ p / (np.linalg.norm(y) * np.linalg.norm(p)))
        factor = float(np.linalg.norm(y) / np.linalg.norm(p)) * np.sign(alike)
        if abs(alike) > EQUAL_CORRELATION and not PLAUSIBLE_SCALES[0] < factor < PLAUSIBLE_SCALES[1]:
            off[row] = factor
        elif alike < OPPOSITE_CORRELATION:
            against[row] = alike
        elif abs(factor) < SMALL_PART:
            small[row] = float(np.linalg.norm(y))
    found = [*([_against(against)] if against else []), *_beside_weights(e, small)]
    if not off:
        return found
    listed = ", ".join(f"{row} {factor:.3g}" for row, factor in off.items())
    return [
        *found,
        Mistake.of(
            "force scale",
            "measured forces are a steady factor beside those the model's own values predict.",
            where="forces",
            expected=f"factors from {PLAUSIBLE_SCALES[0]:g} to {PLAUSIBLE_SCALES[1]:g}",
            found=listed,
            hint="Are they measured at the motor (a gear ratio), in another unit, or with another torque constant or sign?",
        ),
    ]


def _beside_weights(e: Evidence, sizes: Mapping[str, float]) -> list[Mistake]:
    """Of rows whose measured forces have these sizes, those that are a small part of the weights of the model's own values as well.

    Accelerations of a log may be noise, and what they predict with it; positions tell what the machine has to hold.
    """
    if not sizes:
        return []
    machine, m, p = e.machine, e.motion, e.machine.parameters
    still = replace(m, qd=np.zeros_like(m.qd), qdd=np.zeros_like(m.qdd), forces=None)
    weights = inverse_dynamics(machine, still, list(sizes), p.tie_matrix() @ np.nan_to_num(p.values), engine="numpy")
    norms = np.linalg.norm(weights, axis=0)
    small = {row: size / w for (row, size), w in zip(sizes.items(), norms, strict=True) if size < SMALL_WEIGHT * w}
    if not small:
        return []
    listed = ", ".join(f"{row} {factor:.2g}" for row, factor in small.items())
    return [
        Mistake.of(
            "model of a larger machine",
            "measured forces are a small part of the weights that the model's own values predict: its bodies sit elsewhere.",
            where="forces",
            expected=f"at least {SMALL_WEIGHT:g} of them",
            found=listed,
            hint="Look whether the model is of this machine and of its size, and at the units of its lengths and masses.",
        )
    ]


def _against(rows: Mapping[str, float]) -> Mistake:
    listed = ", ".join(f"{row} {alike:.2f}" for row, alike in rows.items())
    return Mistake.of(
        "forces against the model",
        "measured forces go against those the model's own values predict.",
        where="forces",
        expected=f"correlations above {OPPOSITE_CORRELATION:g}",
        found=listed,
        hint="Look at the signs of these forces and positions, and at the gravity of the model.",
    )


def odd_motion(e: Evidence, limits: Mapping[str, tuple[float, float]] | None = None) -> list[Mistake]:
    """Speeds that no joint has, and positions outside the limits that the model states."""
    machine, m, found = e.machine, e.motion, []
    for k, c in enumerate(machine.coordinates):
        if c not in e.given:
            continue
        fast = too_fast(c, "rad" if machine.coordinate_kinds[k] == "turning" else "m", m.qd[:, k])
        if fast is not None:
            hint = "Degrees for radians, a position of the motor, or a clock in another unit do this."
            found.append(Mistake("too fast", replace(fast, hint=hint)))
        low, high = (limits or {}).get(c, (-np.inf, np.inf))
        span = high - low
        out = max(float(low - m.q[:, k].min()), float(m.q[:, k].max() - high))
        if np.isfinite(span) and out > 0.05 * span:
            near = np.abs(m.q[:, k]).max() / DEGREES <= max(abs(low), abs(high))
            hint = (
                "Is it in degrees, at the motor, or of another joint?" if near else "Is this the log of this machine?"
            )
            found.append(
                Mistake.of(
                    "outside limits",
                    "it leaves the range that the model states.",
                    where=f"position of '{c}'",
                    expected=f"{low:.4g} to {high:.4g}",
                    found=f"{m.q[:, k].min():.4g} to {m.q[:, k].max():.4g}",
                    hint=hint,
                )
            )
    return found


def measured_rates(differentiated: Motion, measured: Motion, names: Sequence[str]) -> list[Mistake]:
    """Measured speeds beside the derivative of the positions: their factor, their sign, and whose they are."""
    found = []
    for k, c in enumerate(names):
        v, d = measured.qd[:, k], differentiated.qd[:, k]
        if not np.any(d) or not np.any(v):
            continue
        alike = _correlation(v, d)
        factor = float(v @ d / (d @ d))
        if alike > 0.9 and 0.9 < factor < 1.1:
            continue
        others = [_correlation(v, differentiated.qd[:, j]) for j in range(len(names))]
        best = int(np.argmax(np.abs(others)))
        hint = "Look at its column and unit."
        if abs(factor / DEGREES - 1.0) < 0.1:
            hint = "It is in degrees per second, and declared as radians."
        elif abs(others[best]) > 0.9 and best != k:
            hint = f"It looks like the speed of '{names[best]}'."
        elif alike < -0.9:
            hint = "Its sign is wrong, or that of the position."
        found.append(
            Mistake.of(
                "speed against position",
                "the measured speed is not the derivative of the position.",
                where=f"speed of '{c}'",
                expected="a factor of 1 between them",
                found=f"a factor of {factor:.4g}, correlation {alike:.3f}",
                hint=hint,
            )
        )
    return found


def _correlation(a: Array, b: Array) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0.0 else 0.0
