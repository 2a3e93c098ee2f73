"""Newton's steps that close loops, for many samples at once, and the faults where they fail."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.assembly import SINGULAR_RATIO, Split, loop_values, widest

Counts = NDArray[np.intp]
MAX_NEWTON_STEPS = 30  # Newton steps before a position counts as out of reach
LONGEST_NEWTON_STEP = 0.5  # rad, and of the reach: what one Newton step may change


def newton(split: Split, q: Array, tolerance: float, engine: Engine = "auto") -> tuple[Counts, Array]:
    """Newton's steps on all samples of q (N, n), in place, until each is closed; how many steps, and what stays open."""
    n, unit = split.tree.n, split.unit[list(split.solved)]
    count, residual = np.zeros(len(q), dtype=np.intp), np.full(len(q), np.inf)
    active = np.arange(len(q))
    for step in range(MAX_NEWTON_STEPS + 1):
        T = loop_values(split.tree, q[active], engine=engine)
        residual[active] = np.abs(T[:, :, n]).max(axis=1, initial=0.0)
        still = residual[active] > tolerance
        active, T = active[still], T[still]
        if not len(active) or step == MAX_NEWTON_STEPS:
            break
        move = _solved(split.block(T) * unit, -T[:, split.rows, n])
        move /= np.maximum(1.0, np.abs(move).max(axis=1, keepdims=True) / LONGEST_NEWTON_STEP)
        q[active[:, None], list(split.solved)] += move * unit
        count[active] += 1
    return count, residual


def inverse(split: Split, values: Array) -> tuple[Array, Array, Array]:
    """Φ_s⁻¹ (N, m, m) of :func:`~veridyn.mechanics.tree.loops.assembly.loop_values`, its condition and the sign of the determinant of Φ_s.

    The condition, in the largest column sum and with sliding coordinates in units of the machine's reach, is infinite where Φ_s is
    singular.
    """
    A = split.block(values)
    unit = split.unit[list(split.solved)]
    sign = np.linalg.slogdet(A)[0]
    regular = sign != 0.0
    scaled = A[regular] * unit
    B, condition = np.zeros_like(A), np.full(len(A), np.inf)
    B[regular] = np.linalg.inv(scaled)
    condition[regular] = _norm(scaled) * _norm(B[regular])
    return B * unit[:, None], condition, sign


def slopes(split: Split, values: Array, inverted: Array) -> Array:
    """∂q_s/∂q_g = −Φ_s⁻¹ Φ_g (N, m, n_given)."""
    return -(inverted @ values[:, np.array(split.rows)[:, None], np.array(split.given)])


def times(A: Array, x: Array) -> Array:
    """A x, sample by sample: (N, a, b) and (N, b)."""
    return (A @ x[..., None])[..., 0]


def side_of(split: Split, q: Array) -> float:
    """On which side of the singular positions a closed position (n,) lies."""
    return float(np.linalg.slogdet(split.block(loop_values(split.tree, q[None], engine="numpy")))[0][0])


def check_regular(
    split: Split, q: Array, condition: Array, sign: Array, side: float, samples: Counts | None = None
) -> None:
    """Refuse singular positions, and a change of side, which no machine makes without passing a singular position."""
    tree = split.tree
    number = np.arange(len(q)) if samples is None else samples
    names = ", ".join(tree.coordinates[k] for k in split.given)
    bad = ~(condition < 1.0 / SINGULAR_RATIO)
    if bad.any():
        k = int(np.argmax(bad))
        raise DataError(
            f"a singular position: there {names} do not decide how the machine moves.",
            where=split.sample(int(number[k])),
            expected=f"a condition below {1.0 / SINGULAR_RATIO:.0e}",
            found=f"{condition[k]:.1e} at {place(split, q[k])}",
            hint="Lead the motion around it.",
        )
    if (sign != side).any():
        k = int(np.argmax(sign != side))
        raise DataError(
            "a singular position lies on the way here: behind it the machine is assembled the other way round.",
            where=split.sample(int(number[k])),
            found=place(split, q[k]),
            hint="Lead the motion around it, or give a start on this side of it.",
        )


def refuse_unreachable(split: Split, q: Array, sample: int) -> None:
    """Say that a position (n,) could not be closed, and which loop stays open."""
    tree = split.tree
    T = loop_values(tree, q[None], engine="numpy")
    _, condition, _ = inverse(split, T)
    flat = " There the loops are stretched out: a singular position." if not condition[0] < 1e4 else ""
    raise DataError(
        f"this position is out of reach: no closed position was found for it.{flat}",
        where=split.sample(sample),
        expected="all loops closed",
        found=f"{widest(tree, T[0, :, tree.n])} at {place(split, q)}",
        hint="Look at the units and the zero of these coordinates, or give a better start.",
    )


def place(split: Split, q: Array) -> str:
    """The given coordinates of a position, in words."""
    return ", ".join(f"{split.tree.coordinates[k]} = {q[k]:.4g}" for k in split.given)


def _solved(A: Array, b: Array) -> Array:
    """A⁻¹ b for each sample; the shortest of least squares where some A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return times(np.asarray(np.linalg.pinv(A), dtype=np.float64), b)


def _norm(A: Array) -> Array:
    return np.abs(A).sum(axis=-2).max(axis=-1, initial=0.0)
