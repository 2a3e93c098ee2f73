"""The filter step of a tree as machine code, for one step or many: predict, expect, correct, retract.

The equations are those of :class:`~veridyn.mechanics.tree.steps.model.TreeModel`, the reference; a state is x = (q, q̇, u, b, 0). Motion
and readings are kernels of the tree's own expressions, called by their addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps import record as tree
from veridyn.mechanics.tree.steps.ground_below import Ground, GroundBelow, find_ground
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.motion_kernel import own_row
from veridyn.mechanics.tree.steps.record import call_addresses, call_kernel, call_step
from veridyn.mechanics.tree.steps.states import set_unknown
from veridyn.observe.filters.compiled_step import (
    REFERENCE,
    FilterRecord,
    SampleRows,
    add_bias,
    add_sub_step,
    begin_step,
    corrected,
    derivatives_due,
    ended,
    go_on,
    sub_steps,
    take,
)
from veridyn.observe.filters.correction import DONE
from veridyn.observe.filters.covariance import INTEGRATOR, spread
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import TURNS, MachineSystem
from veridyn.observe.system import System


class TreeFilter(NamedTuple):
    """A filter on one tree."""

    filter: FilterRecord  # what acts: generalised forces (nv,), then what kernels read from outside, with prescribed coordinates behind it
    I: Numbers
    W: Vector
    turns: Vector  # (n,) 1 for a coordinate that turns, 0 for one that slides
    readings: Numbers  # addresses of the kernel of the sensors
    sensed: Matrix  # (m, 1 + 3 nv) that it writes: the reading, and its derivatives by q, q̇ and q̈
    accelerates: bool  # whether readings depend on accelerations or inputs
    push: Matrix  # (f, k)
    slopes: Matrix  # (f, 2f + k)
    step: Matrix  # (2f + s, 2f + k)
    ground: Ground  # below the wheels; without slots where the inputs say what it is


@kept
def tree_steps(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """Steps from the state of the record to one sample after the other, as far as it goes: how many were done."""
    s, samples = opened(address, TreeFilter), opened(given, SampleRows)
    for k in range(len(samples.values)):
        take(s.filter, samples, k)
        _look_down(s, samples, k)
        if _step(s, samples.t[k + 1] - samples.t[k], samples.rows[k]) != DONE:
            return k
        go_on(s.filter)
    return len(samples.values)


@kept
def tree_changed(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """The predicted state changed by the correction dx that the record has, into the state after it; `given` is not read."""
    s = opened(address, TreeFilter)
    return DONE if _reachable(s, s.filter.found.x) and _retract(s) else REFERENCE


@core
def _reachable(s: TreeFilter, x: Array) -> bool:
    """Whether no coordinate of the state x has turned too far; the reference refuses one by name."""
    first, reachable = s.I[tree.COUNT_Q] - s.I[tree.COUNT], True
    for i in range(len(s.turns)):
        reachable = reachable and abs(x[first + i]) * s.turns[i] <= LARGEST_ANGLE_RAD
    return reachable


@core
def _look_down(s: TreeFilter, samples: SampleRows, k: int) -> None:
    """What acts from sample k on, with the ground below the wheels of the state before it."""
    if len(s.ground.slots) > 0:
        find_ground(s.I, s.W, s.ground, s.filter.x)
    for i in range(len(s.ground.slots)):
        place = s.I[tree.COUNT_V] + s.ground.slots[i]
        s.filter.now[place] = samples.acting[k + 1, place] = s.ground.planes[i]


@core
def _step(s: TreeFilter, dt: float, out: Array) -> int:
    f = s.filter
    if not _reachable(s, f.x) or not _predict(s, dt):
        return REFERENCE
    _expect(s)
    if not corrected(f):
        return REFERENCE
    return ended(f, f.gate.used[0] == 0 or _retract(s), out)


@core
def _act(s: TreeFilter, acting: Array, x: Array) -> None:
    """Put what acts, and the unknown forces and parameters of the state x, where the kernels of the tree read them."""
    I, W, at = s.I, s.W, s.I[tree.COUNT_Q] + s.I[tree.COUNT_V]
    nv, held = I[tree.COUNT_V], len(acting) - 3 * I[tree.HELD]
    for i in range(nv):
        W[I[tree.EXTRA] + i] = acting[i]
    for i in range(nv, held):
        W[I[tree.OUTSIDE] + i - nv] = acting[i]
    for i in range(held, len(acting)):
        W[I[tree.GIVEN] + i - held] = acting[i]
    for i in range(I[tree.FORCES] + I[tree.VARYING]):
        W[I[tree.UNKNOWN] + i] = x[at + i]
    set_unknown(I, W)


@core
def _begin(s: TreeFilter, x: Array, since: float) -> None:
    """The state x as the start of a step."""
    I, W, nq = s.I, s.W, s.I[tree.COUNT_Q]
    for i in range(nq):
        W[I[tree.START] + i] = x[i]
        W[I[tree.X] + i] = x[i]
    for c in range(I[tree.FREEDOM]):
        W[I[tree.DELTA] + c] = 0.0
        W[I[tree.RATE] + c] = x[nq + own_row(I, c)]
    W[I[tree.CLOCK]] = since


@core
def _predict(s: TreeFilter, dt: float) -> bool:
    """x and P after dt seconds, with F gathered over the sub-steps, and the instant at which the sensors read."""
    I, W, f, p = s.I, s.W, s.filter, s.filter.found
    nq, nv = I[tree.COUNT_Q], I[tree.COUNT_V]
    extra, ns, steps = I[tree.FORCES] + I[tree.VARYING], I[tree.STATES], f.refresh.steps
    count = sub_steps(f, dt)
    h = dt / max(count, 1)
    due = derivatives_due(f, count, h)
    # An integrator takes no derivative of the step, and where derivatives are kept over some, those at its end serve for all else.
    slopes = f.settings.error_model == INTEGRATOR and steps[1] > 1 and count > 0
    asked = (tree.SLOPES if slopes else tree.TANGENTS) if due else tree.STATE
    moved = due or steps[2] != count  # otherwise F and Q are those of the step before
    steps[2] = 0
    begin_step(f, moved)
    if count > 0:
        _act(s, f.before, p.x)
    for k in range(count):
        _begin(s, p.x, k * h)
        if call_step(I, tree.ADVANCE, W, h, asked) != tree.DONE:
            return False
        for i in range(ns):
            p.x[nq + nv + extra - ns + i] = W[I[tree.UNKNOWN] + extra - ns + i]
        for i in range(nq):
            p.x[i] = W[I[tree.X] + i]
        for i in range(nv):
            p.x[nq + i] = W[I[tree.V] + i]
        if due:
            _derive(s, h, slopes)
        if moved:
            add_sub_step(f, f.density, s.step, s.slopes, s.push, h, k == 0)
    steps[2] = count
    if count == 0 or (s.accelerates and not _goes_on(s)):  # the instant under the inputs that act from now on
        _act(s, f.now, p.x)
        _begin(s, p.x, 0.0)
        if call_step(I, tree.ADVANCE, W, 0.0, asked) != tree.DONE:
            return False
    spread(f.P, p.F, p.Q, dt, p.product, p.G, p.P)
    return True


@core
def _derive(s: TreeFilter, h: float, slopes: bool) -> None:
    """The derivatives of a step, where filters read them; `slopes`: those at its end alone."""
    I, W, f = s.I, s.W, s.I[tree.FREEDOM]
    every = 2 * f + I[tree.FORCES] + I[tree.VARYING]
    if not slopes:
        for a in range(2 * f + I[tree.STATES]):
            for b in range(every):
                s.step[a, b] = W[I[tree.F] + a * every + b]
    for a in range(f):
        for b in range(every):
            s.slopes[a, b] = W[I[tree.A_X] + own_row(I, a) * every + b]
        for b in range(every - 2 * f):
            s.push[a, b] = s.slopes[a, 2 * f + b] if slopes else s.step[f + a, 2 * f + b] / h


@core
def _goes_on(s: TreeFilter) -> bool:
    """Whether what acts from now on is what acted over the step, so that the instant at its end is the one that sensors read."""
    I, W, now, before = s.I, s.W, s.filter.now, s.filter.before
    nh = I[tree.HELD]
    count = len(now) - 3 * nh
    for i in range(count):
        if now[i] != before[i]:
            return False
    given, t = I[tree.GIVEN], W[I[tree.CLOCK]]
    for c in range(nh):
        q, qd, qdd = W[given + c], W[given + nh + c], W[given + 2 * nh + c]
        if now[count + c] != q + t * qd + 0.5 * t * t * qdd:
            return False
        if now[count + nh + c] != qd + t * qdd or now[count + 2 * nh + c] != qdd:
            return False
    return True


@core
def _expect(s: TreeFilter) -> None:
    """y and H of the sensors at the instant in hand."""
    I, W, p = s.I, s.W, s.filter.found
    nv, f, at = I[tree.COUNT_V], I[tree.FREEDOM], I[tree.COUNT_Q] + I[tree.COUNT_V]
    k = I[tree.FORCES] + I[tree.VARYING]
    every = 2 * f + k
    call_kernel(s.readings, 0)
    for j in range(len(p.y)):
        add_bias(s.filter, j, s.sensed[j, 0], p.x[at + k :], every)
        for c in range(every):
            p.H[j, c] = 0.0
        for i in range(nv):
            by_x, by_v, by_a = s.sensed[j, 1 + i], s.sensed[j, 1 + nv + i], s.sensed[j, 1 + 2 * nv + i]
            if by_x != 0.0 or by_v != 0.0:
                for c in range(f):
                    r = W[I[tree.R] + i * f + c]
                    p.H[j, c] += by_x * r + by_v * W[I[tree.V_Z] + i * f + c]
                    p.H[j, f + c] += by_v * r
            if by_a != 0.0:
                for c in range(every):
                    p.H[j, c] += by_a * W[I[tree.A_X] + i * every + c]


@core
def _retract(s: TreeFilter) -> bool:
    """x ⊞ dx: the position and velocity problem; forces, parameters and biases are added."""
    I, W, p, d = s.I, s.W, s.filter.found, s.filter.corrected.dx
    nq, nv, f = I[tree.COUNT_Q], I[tree.COUNT_V], I[tree.FREEDOM]
    _begin(s, p.x, 0.0)
    for c in range(I[tree.HELD]):  # prescribed coordinates stay where they are
        k, nh = I[I[tree.PRESCRIBED] + c], I[tree.HELD]
        W[I[tree.GIVEN] + c] = p.x[nq - I[tree.COUNT] + k]
        W[I[tree.GIVEN] + nh + c] = p.x[nq + nv - I[tree.COUNT] + k]
        W[I[tree.GIVEN] + 2 * nh + c] = 0.0
    for c in range(f):
        W[I[tree.DELTA] + c] = d[c]
        W[I[tree.RATE] + c] += d[f + c]
    if call_step(I, tree.ADVANCE, W, 0.0, tree.PLACE) != tree.DONE:
        return False
    for i in range(nq):
        p.after[i] = W[I[tree.X] + i]
    for i in range(nv):
        p.after[nq + i] = W[I[tree.V] + i]
    for i in range(len(d) - 2 * f):
        p.after[nq + nv + i] = p.x[nq + nv + i] + d[2 * f + i]
    return True


ENOUGH = 1e4  # times the change of a step that counts as settled: 1e-7 of the machine's size, as velocity (chosen)


class TreeStep(MachineStep):
    """Filter steps of a tree; they work in the memory of its model. `limit`: what ν²/s of a reading that is taken stays below."""

    keeps_derivatives: ClassVar[bool] = True
    changed = staticmethod(tree_changed)

    def __init__(self, system: MachineSystem, limit: float) -> None:
        model: Any = system.model
        f, k, record = system.f, system.extra, model.kernels.record
        super().__init__(tree_steps, system, limit, np.concatenate)
        self._held = list[object]()
        readings, sensed = self._connected(system, model)
        self._bound = Bound(
            TreeFilter(
                filter=self._filter,
                I=record.I,
                W=record.W,
                turns=np.array(model.tree.turns, dtype=np.float64),
                readings=readings,
                sensed=sensed,
                accelerates=system.table.accelerates or bool(model.tree.held),
                push=np.zeros((f, k)),
                slopes=np.zeros((f, 2 * f + k)),
                step=np.zeros((2 * f + len(system.inner), 2 * f + k)),
                ground=GroundBelow(model, None).ground,
            )
        )

    def adopt(self, system: System) -> bool:
        assert isinstance(system, MachineSystem)  # a tree has no other
        self._filter.density[:] = system.density
        return True

    def on_ground(self, below: GroundBelow, columns: Sequence[int]) -> bool:
        self._bound = Bound(self._bound.record._replace(ground=below.ground))
        self._looked_up = list(columns), [self._places[column] for column in columns]
        return True

    def refresh(self, steps: int) -> None:
        """Compute derivatives at every so many steps only, and end Newton's method of the steps between as soon as noise hides the rest."""
        super().refresh(steps)
        record = self._bound.record
        record.W[record.I[tree.ENOUGH]] = ENOUGH if steps > 1 else 0.0

    def _connected(self, system: MachineSystem, model: TreeModel) -> tuple[NDArray[np.int64], Array]:
        """The sensors' kernel, reading q, q̇ and q̈ where the tree's kernels have them: its addresses, and what it writes.

        Derivatives that the filter is to take as zero are written where nobody reads.
        """
        table = system.table
        made, record = table.compiled, model.kernels.record  # pyright: ignore[reportAttributeAccessIssue]
        nq, nv, width = model.nq, model.nv, 1 + 3 * model.nv
        starts = [int(record.I[s]) for s in (tree.X, tree.V, tree.A)]
        where = np.concatenate([starts[0] + np.arange(nq), starts[1] + np.arange(nv), starts[2] + np.arange(nv)])
        slopes = np.zeros((len(table.names), width))
        take = table.take  # pyright: ignore[reportAttributeAccessIssue]
        pointers = record.W.ctypes.data + 8 * np.append(where[take], 0).astype(np.uintp)
        out = slopes.ctypes.data + 8 * np.array([*(i * width + k for i, k in made.labels), 0], dtype=np.uintp)
        nowhere = np.zeros(1)
        self._held.append(nowhere)
        if system.attitude_rows is not None:
            out[:-1][[system.attitude_rows[i] and k > nv for i, k in made.labels]] = nowhere.ctypes.data
        if system.place_rows is not None:  # column 0 is the reading itself
            turning = range(1 + TURNS.start, 1 + TURNS.stop)
            out[:-1][[bool(system.place_rows[i]) and k in turning for i, k in made.labels]] = nowhere.ctypes.data
        addresses, held = call_addresses(made.kernel, pointers, out, record.W.ctypes.data)  # they have no parameters
        self._held += held
        return np.array(addresses, dtype=np.int64), slopes
