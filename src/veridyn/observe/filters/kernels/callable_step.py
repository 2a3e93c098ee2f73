"""Filter steps on a user's own equations as machine code: predict, expect, correct, for one stamp or for a whole log.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x + dx

The equations are those of :class:`~veridyn.observe.system.Continuous` and `Discrete`, which stay the reference. f, F, h and H are called by
their addresses as functions of C, (x, u, p, clock, out) with clock = (t, dt, number of inputs), so that this code is compiled once and
for all. A result that is not finite is left to the reference, which reports it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.record import Matrix, Numbers, Vector, opened
from veridyn.observe.filters.kernels.correction import DONE
from veridyn.observe.filters.kernels.covariance import copy, multiply, spread, step_noise
from veridyn.observe.filters.kernels.step import (
    REFERENCE,
    FilterRecord,
    SampleRows,
    begin_step,
    corrected,
    ended,
    go_on,
    sub_steps,
    take,
)

DISCRETE, EULER, MIDPOINT, RK4 = 0, 1, 2, 3
RATE, RATE_SLOPE, READING, READING_SLOPE = 0, 1, 2, 3  # places in `functions`


class CallableFilter(NamedTuple):
    """A filter on callables: addresses, the rule of a step, noise, and room."""

    filter: FilterRecord  # what acts: the inputs
    functions: Numbers
    rule: int
    W: Matrix  # density, or covariance of a step where the system is discrete
    p: Vector
    clock: Vector  # (3,) time, step and number of inputs, as functions are handed them
    A: Matrix  # ∂ẋ/∂x at the start of the step
    stage: Vector
    slope: Vector
    total: Vector
    S: Matrix  # ∂(stage)/∂(start)
    slopes: Matrix
    totals: Matrix
    local: Matrix


def _called(typing_context: Any, address: Any, x: Any, u: Any, p: Any, clock: Any, out: Any) -> tuple[Any, Any]:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.DoubleType().as_pointer()
        function = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), [pointer] * 5).as_pointer())
        arrays = zip(signature.args[1:], args[1:], strict=True)
        builder.call(function, [context.make_array(kind)(context, builder, a).data for kind, a in arrays])
        return context.get_dummy_value()

    return types.void(address, x, u, p, clock, out), codegen


_called.__doc__ = "function(x, u, p, clock, out) with the function at this address."
call: Callable[[int, Array, Array, Array, Array, Array], None] = cast(Any, intrinsic(_called))


@core
def _evaluate(s: CallableFilter, which: int, x: Array, u: Array, t: float, dt: float, out: Array) -> None:
    """One of the four functions into `out`, which is NaN where the function fails."""
    flat = out.reshape(out.size)
    for i in range(len(flat)):
        flat[i] = np.nan
    s.clock[0], s.clock[1], s.clock[2] = t, dt, len(u)
    call(s.functions[which], x, u, s.p, s.clock, out)


@core
def _stage(s: CallableFilter, weight: float, step: float, t: float) -> None:
    """Slopes (ẋ, ∂ẋ) at the stage, `weight` times them into the totals, and the next stage, `step` on."""
    p, u = s.filter.found, s.filter.before
    _evaluate(s, RATE, s.stage, u, t, 0.0, s.slope)
    _evaluate(s, RATE_SLOPE, s.stage, u, t, 0.0, s.local)
    multiply(s.local, s.S, s.slopes)
    for i in range(len(s.stage)):
        s.total[i] += weight * s.slope[i]
        s.stage[i] = p.x[i] + step * s.slope[i]
        for j in range(len(s.stage)):
            s.totals[i, j] += weight * s.slopes[i, j]
            s.S[i, j] = p.F[i, j] + step * s.slopes[i, j]


@core
def _integrate(s: CallableFilter, t: float, dt: float) -> None:
    """x and F over the step by the rule, in equal sub-steps; F is the derivative of the rule's own map."""
    p, n, rule, count = s.filter.found, len(s.stage), s.rule, sub_steps(s.filter, dt)
    h = dt / count
    for k in range(count):
        at = t + k * h
        for i in range(n):
            s.stage[i], s.total[i] = p.x[i], 0.0
            for j in range(n):
                s.S[i, j], s.totals[i, j] = p.F[i, j], 0.0
        if rule == EULER:
            _stage(s, h, 0.0, at)
        elif rule == MIDPOINT:
            _stage(s, 0.0, 0.5 * h, at)
        else:
            _stage(s, h / 6.0, 0.5 * h, at)
        if k == 0:
            copy(s.local, s.A)
        if rule == MIDPOINT:
            _stage(s, h, 0.0, at + 0.5 * h)
        elif rule == RK4:
            _stage(s, h / 3.0, 0.5 * h, at + 0.5 * h)
            _stage(s, h / 3.0, h, at + 0.5 * h)
            _stage(s, h / 6.0, 0.0, at + h)
        for i in range(n):
            p.x[i] += s.total[i]
            for j in range(n):
                p.F[i, j] += s.totals[i, j]


@core
def _spread(s: CallableFilter, dt: float) -> bool:
    """P = F P Fᵀ + Q from the state's F and, where it is continuous, A; False where numbers are not finite."""
    f, p = s.filter, s.filter.found
    if dt > 0.0 and s.rule == DISCRETE:
        copy(s.W, p.Q)
    elif dt > 0.0:
        step_noise(s.A, s.W, dt, p.Q, s.S, p.product, s.totals)
    spread(f.P, p.F, p.Q, dt, p.product, p.G, p.P)
    finite = True
    for i in range(len(p.x)):
        finite = finite and np.isfinite(p.x[i])
        for j in range(i + 1):
            finite = finite and np.isfinite(p.P[i, j])
    return finite


@core
def _finish(s: CallableFilter, out: Array) -> int:
    """The correction by what functions say that sensors read, added to the state."""
    f, p = s.filter, s.filter.found
    if not corrected(f):
        return REFERENCE
    for i in range(len(p.x)):
        p.after[i] = p.x[i] + f.corrected.dx[i]
    return ended(f, len(p.x) > 0, out)  # always, but a literal True would make the compiler work twice


@core
def _step(s: CallableFilter, t: float, dt: float, out: Array) -> int:
    f, p = s.filter, s.filter.found
    begin_step(f, dt >= 0.0)
    if dt > 0.0 and s.rule == DISCRETE:
        _evaluate(s, RATE, f.x, f.before, t, dt, p.x)
        _evaluate(s, RATE_SLOPE, f.x, f.before, t, dt, p.F)
    elif dt > 0.0:
        _integrate(s, t, dt)
    if not _spread(s, dt):
        return REFERENCE
    _evaluate(s, READING, p.x, f.now, t + dt, 0.0, p.y)
    _evaluate(s, READING_SLOPE, p.x, f.now, t + dt, 0.0, p.H)
    return _finish(s, out)


@kept
def callable_steps(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """Steps from the state of the record to one sample after the other, as far as it goes: how many were done."""
    s, samples = opened(address, CallableFilter), opened(given, SampleRows)
    for k in range(len(samples.values)):
        take(s.filter, samples, k)
        if _step(s, samples.t[k], samples.t[k + 1] - samples.t[k], samples.rows[k]) != DONE:
            return k
        go_on(s.filter)
    return len(samples.values)


@kept
def finish_step(address: NDArray[np.int64], given: NDArray[np.int64], k: int) -> int:
    """The algebra of the step to sample k, whose functions Python has called; x, F, A, y and H stand in the record."""
    s, samples = opened(address, CallableFilter), opened(given, SampleRows)
    take(s.filter, samples, k)
    if not _spread(s, samples.t[k + 1] - samples.t[k]) or _finish(s, samples.rows[k]) != DONE:
        return REFERENCE
    go_on(s.filter)
    return DONE
