"""Many steps of a tree in one call of machine code: a march through samples, or a whole run with the derivatives of what is compared.

    x₀, v₀, u₀ → step → step → … → sample: q, q̇, q̈, u → step → …

Steps and samples are those of :meth:`~veridyn.mechanics.tree.steps.model.TreeModel.step` and
:meth:`~veridyn.mechanics.tree.steps.model.TreeModel.instant`, which stay the reference: the same functions of machine code are called, in
the same order, by their addresses. On a march what acts is given for every step, and the road below wheels is looked up on the way. A
sample is an instant under the inputs that act from then on, as a sensor reads it. Accelerations that the record has already, of the sample
or of the end of the step before where the same acts on, are not computed again.

A run with derivatives takes any tree: with loops, on a free base, with prescribed coordinates, elements' own states and wrenches. With F
the derivative of a step's state s = (z, ż, states of elements) by the state before and by what varies, χ,

    S₊ = F_s S + [F_χ | 0],    ∂x/∂(χ, d) = R S_z

d is the change of the initial state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import core, kept, opened
from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, check_angles
from veridyn.mechanics.tree.steps.ground_below import Ground, GroundBelow, find_ground
from veridyn.mechanics.tree.steps.model import TreeInstant, TreeModel
from veridyn.mechanics.tree.steps.motion_kernel import own_row
from veridyn.mechanics.tree.steps.record import (
    ADVANCE,
    CLOCK,
    COUNT,
    COUNT_Q,
    COUNT_V,
    DELTA,
    DONE,
    ENOUGH,
    EXTRA,
    FORCES,
    FREEDOM,
    GIVEN,
    HELD,
    ONWARD,
    OUTSIDE,
    RATE,
    START,
    STATE,
    STATES,
    TANGENTS,
    UNKNOWN,
    VARYING,
    A,
    F,
    R,
    V,
    X,
    call_step,
)
from veridyn.mechanics.tree.steps.states import put, set_unknown, state_error

Numbers = NDArray[np.int64]
TURNED_TOO_FAR = -1  # how a march ended, besides the codes of a step


@core
def act(I: Numbers, W: Array, extra: Array, outside: Array, unknown: Array) -> None:
    """Put generalised forces, outside values with prescribed coordinates behind them, and unknown quantities where kernels read them."""
    put(I, W, EXTRA, extra)
    count = len(outside) - 3 * I[HELD]
    for i in range(len(outside)):
        if i < count:
            W[I[OUTSIDE] + i] = outside[i]
        else:
            W[I[GIVEN] + i - count] = outside[i]
    put(I, W, UNKNOWN, unknown)
    set_unknown(I, W)


@core
def begin(I: Numbers, W: Array, x: Array, v: Array) -> None:
    """The state (x, v) as the start of a step."""
    put(I, W, START, x)
    put(I, W, X, x)
    for c in range(I[FREEDOM]):
        W[I[DELTA] + c] = 0.0
        W[I[RATE] + c] = v[own_row(I, c)]
    W[I[CLOCK]] = 0.0


@core
def take(I: Numbers, W: Array, x: Array, v: Array, unknown: Array) -> None:
    """The state at the end of a step, and the unknown quantities, of which states of elements have moved."""
    for i in range(I[COUNT_Q]):
        x[i] = W[I[X] + i]
    for i in range(I[COUNT_V]):
        v[i] = W[I[V] + i]
    for i in range(I[FORCES] + I[VARYING]):
        unknown[i] = W[I[UNKNOWN] + i]


@core
def turned_too_far(I: Numbers, x: Array, turns: Array) -> bool:
    """Whether a coordinate that turns (1 in `turns`, by coordinate) is beyond what the kernels can reduce."""
    first, farthest = I[COUNT_Q] - I[COUNT], 0.0
    for i in range(len(turns)):
        farthest = max(farthest, abs(x[first + i]) * turns[i])
    return bool(farthest > LARGEST_ANGLE_RAD)


@core
def acts_on(I: Numbers, W: Array, extra: Array, outside: Array, i: int) -> bool:
    """Whether the state after step i − 1 has its accelerations under row i: the same acts, prescribed coordinates stand still."""
    first = outside.shape[1] - 2 * I[HELD]  # rates and accelerations of prescribed coordinates
    if i == 0 or W[I[ENOUGH]] != 0.0:  # a step that ends by its pace leaves accelerations that were not computed
        return False
    changed = 0.0
    for j in range(extra.shape[1]):
        changed += abs(extra[i, j] - extra[i - 1, j])
    for j in range(outside.shape[1]):
        changed += abs(outside[i, j] - outside[i - 1, j])
        if j >= first:
            changed += abs(outside[i, j])
    return bool(changed == 0.0)


@kept
def _march(
    I: Numbers,
    W: Array,
    turns: Array,
    below: Numbers,
    x: Array,
    v: Array,
    unknown: Array,
    extra: Array,
    outside: Array,
    h: float,
    every: int,
    q: Array,
    qd: Array,
    qdd: Array,
    u: Array,
) -> int:
    """Fill q, q̇, q̈ and u, a row for each `every` steps of h seconds from (x, v, unknown), which move along; DONE, or why it ended.

    Row i of `extra` and `outside` acts over step i, the last one at the last sample. `below`: the address of the ground, on which tyres
    roll on a plane at z = 0 where it has no slots.
    """
    ground = opened(below, Ground)
    slots = ground.slots
    for i in range(len(extra)):
        act(I, W, extra[i], outside[i], unknown)
        if turned_too_far(I, x, turns):
            return TURNED_TOO_FAR
        if len(slots) > 0:
            find_ground(I, W, ground, x)
            for j in range(len(slots)):
                W[I[OUTSIDE] + slots[j]] = ground.planes[j]
        known = len(slots) == 0 and acts_on(I, W, extra, outside, i)
        if i > 0 and i % every == 0:
            if not known:
                begin(I, W, x, v)
                state = call_step(I, ADVANCE, W, 0.0, STATE)
                if state != DONE:
                    return state
                take(I, W, x, v, unknown)
                known = True
            k = i // every - 1
            take(I, W, q[k], qd[k], u[k])
            for j in range(I[COUNT_V]):
                qdd[k, j] = W[I[A] + j]
        if i + 1 < len(extra):
            begin(I, W, x, v)
            state = call_step(I, ADVANCE, W, h, ONWARD if known else STATE)
            if state != DONE:
                return state
            take(I, W, x, v, unknown)
    return DONE


@dataclass(frozen=True, eq=False)
class TreeSamples:
    """Configurations q (N, nq), rates and accelerations (N, nv), and unknown quantities u (N, …) at N samples."""

    q: Array
    qd: Array
    qdd: Array
    u: Array


class TreeMarch:
    """Steps of a tree from sample to sample; on a `road` with its wheels, on a plane at z = 0 without one.

    It works in the memory of the model; not for two threads at once. `x`, `v`, `u`: the state in hand.
    """

    def __init__(self, model: TreeModel, x: Array, v: Array, u: Array, road: Road | None = None) -> None:
        self.model = model
        self.x, self.v, self.u = (np.array(a, dtype=np.float64) for a in (x, v, u))
        self._turns = np.array(model.tree.turns, dtype=np.float64)
        self._below = GroundBelow(model, road)

    def run(self, h: float, every: int, extra: Array, outside: Array) -> TreeSamples:
        """On by len(extra) − 1 steps of h seconds, a whole number of samples `every` so many steps.

        Rows of `extra` (steps + 1, nv) and `outside` (steps + 1, …), as :func:`loads_along` gives them: what acts from each step on.
        """
        m, record, count = self.model, self.model.kernels.record, (len(extra) - 1) // every
        found = TreeSamples(*(np.empty((count, n)) for n in (m.nq, m.nv, m.nv, len(self.u))))
        forces, given = (np.ascontiguousarray(a, dtype=np.float64) for a in (extra, outside))
        state = _march(
            record.I, record.W, self._turns, self._below.bound.address,
            self.x, self.v, self.u, forces, given, float(h), int(every), found.q, found.qd, found.qdd, found.u,
        )  # fmt: skip
        if state == TURNED_TOO_FAR:
            check_angles(m.tree, self.x[m.nq - m.tree.n :])
        if state != DONE:
            finite = bool(np.isfinite(self.x).all() and np.isfinite(self.v).all())
            raise state_error(m.tree, m.z, state, h, finite=finite)
        return found


def loads_along(model: TreeModel, given: Mapping[str, ArrayLike], count: int) -> tuple[Array, Array]:
    """:meth:`~veridyn.mechanics.tree.steps.model.TreeModel.loads` at `count` times: an input is one number, or (count,)."""
    still = model.loads()
    rows = np.tile(np.concatenate(still), (count, 1))
    unit_of = {name: np.concatenate(model.loads({name: 1.0})) for name in given}
    zero_of = {name: np.concatenate(model.loads({name: 0.0})) for name in given}
    for name, values in given.items():
        (column,) = np.flatnonzero(unit_of[name] != zero_of[name])
        rows[:, column] = np.asarray(values, dtype=np.float64)
    split = len(still[0])
    return np.ascontiguousarray(rows[:, :split]), np.ascontiguousarray(rows[:, split:])


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
