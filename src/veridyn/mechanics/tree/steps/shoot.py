"""Whole runs of a tree by the implicit trapezoidal step, with the derivatives of what is compared, in one call of machine code.

Any tree: with loops, on a free base, with prescribed coordinates, elements' own states and wrenches. With F the derivative of a step's
state s = (z, ż, states of elements) by the state before and by what varies, χ,

    S₊ = F_s S + [F_χ | 0],    ∂x/∂(χ, d) = R S_z

d is the change of the initial state. Steps are those of :meth:`veridyn.mechanics.tree.steps.model.TreeModel.step`, by the same machine
code, called by its address.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps.march import TURNED_TOO_FAR, act, begin, take, turned_too_far
from veridyn.mechanics.tree.steps.model import TreeInstant, TreeModel
from veridyn.mechanics.tree.steps.record import (
    ADVANCE,
    DONE,
    FORCES,
    FREEDOM,
    STATE,
    STATES,
    TANGENTS,
    VARYING,
    F,
    R,
    call_step,
)
from veridyn.mechanics.tree.steps.states import state_error

Numbers = NDArray[np.int64]


@core
def propagate(I: Numbers, W: Array, chi: Array, S: Array, work: Array) -> None:
    """S over the step that was made last, by the derivative F in the record; `chi` (what varies, columns) by the columns of S."""
    f, ns = I[FREEDOM], I[STATES]
    every, first = 2 * f + I[FORCES] + I[VARYING], 2 * f + I[FORCES]
    size, width = S.shape
    for i in range(size):
        row = I[F] + i * every
        for p in range(width):
            work[i, p] = 0.0
        for k in range(size):
            by = W[row + (k if k < 2 * f else every - ns + k - 2 * f)]
            if by != 0.0:
                for p in range(width):
                    work[i, p] += by * S[k, p]
        for k in range(chi.shape[0]):
            by = W[row + first + k]
            if by != 0.0:
                for p in range(chi.shape[1]):
                    work[i, p] += by * chi[k, p]
    for i in range(size):
        for p in range(width):
            S[i, p] = work[i, p]


@kept
def _shoot(
    I: Numbers,
    W: Array,
    turns: Array,
    rows: Numbers,
    x: Array,
    v: Array,
    unknown: Array,
    extra: Array,
    outside: Array,
    h: float,
    every: int,
    chi: Array,
    S: Array,
    q: Array,
    slopes: Array,
    reached: Array,
) -> int:
    """Fill q and, where S is not empty, `slopes` of the velocities `rows`, one for each `every` steps; DONE, or why it ended.

    Row i of `extra` and `outside` acts over step i. `reached` (1,): the number of the step that could not be made.
    """
    f, sensitive = I[FREEDOM], S.size > 0
    work = np.empty(S.shape)
    for i in range(len(extra)):
        reached[0] = i
        act(I, W, extra[i], outside[i], unknown)
        if turned_too_far(I, x, turns):
            return TURNED_TOO_FAR
        begin(I, W, x, v)
        state = call_step(I, ADVANCE, W, h, TANGENTS if sensitive else STATE)
        if state != DONE:
            return state
        take(I, W, x, v, unknown)
        if sensitive:
            propagate(I, W, chi, S, work)
        if (i + 1) % every == 0:
            k = (i + 1) // every - 1
            for j in range(len(x)):
                q[k, j] = x[j]
            for o in range(len(rows) if sensitive else 0):
                for p in range(S.shape[1]):
                    slopes[k, o, p] = 0.0
                for c in range(f):
                    by = W[I[R] + rows[o] * f + c]
                    if by != 0.0:
                        for p in range(S.shape[1]):
                            slopes[k, o, p] += by * S[c, p]
    return DONE


def shoot(
    model: TreeModel,
    start: TreeInstant,
    h: float,
    every: int,
    loads: tuple[Array, Array],
    rows: Sequence[int] = (),
    chi: Array | None = None,
    S: Array | None = None,
) -> tuple[Array, Array]:
    """Configurations (K, nq) from an instant on, one each `every` steps of h seconds and the first the start; and slopes (K, rows, ·).

    `loads`: generalised forces (steps, nv) and outside values (steps, ·), which act over each step. `S` (2f + states of elements, columns):
    derivatives of the initial state, `chi` (what varies, columns): of what varies, by the first columns; no slopes without them. A
    step that cannot be made is refused with its time.
    """
    extra, outside = (np.ascontiguousarray(a, dtype=np.float64) for a in loads)
    count, record = len(extra) // every, model.kernels.record
    x, v, u = (np.array(a, dtype=np.float64) for a in (start.q, start.qd, start.u))
    S = np.zeros((0, 0)) if S is None else np.array(S, dtype=np.float64, order="C")
    chi = np.zeros((0, 0)) if chi is None else np.ascontiguousarray(chi, dtype=np.float64)
    numbers = np.array(rows, dtype=np.int64)
    q, slopes = np.empty((count + 1, model.nq)), np.empty((count + 1, len(rows), S.shape[1]))
    q[0], reached = x, np.zeros(1)
    if S.size:
        slopes[0] = start.R[numbers] @ S[: model.f]
    turns = np.array(model.tree.turns, dtype=np.float64)
    state = _shoot(
        record.I, record.W, turns, numbers, x, v, u, extra, outside, float(h), int(every), chi, S, q[1:], slopes[1:], reached,
    )  # fmt: skip
    if state == DONE:
        return q, slopes
    time, name = h * float(reached[0]), model.tree.name
    if state == TURNED_TOO_FAR:
        worst = int(np.argmax(np.abs(x[model.nq - model.tree.n :]) * turns))
        raise SimulationError(
            f"the motion has run away {time:.6g} s after the start of a run.",
            where=f"{name}, coordinate '{model.tree.coordinates[worst]}'",
            expected=f"up to {LARGEST_ANGLE_RAD:g} rad",
            found=f"{x[model.nq - model.tree.n + worst]:.3g}",
        )
    finite = bool(np.isfinite(x).all() and np.isfinite(v).all())
    found = state_error(model.tree, model.z, state, h, finite=finite)
    found.add_note(f"in the step {time:.6g} s after the start of a run")
    raise found
