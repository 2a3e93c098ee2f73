"""Filter steps on a user's own equations as machine code: predict, expect, correct, for one stamp or for a whole log.

    x ← f(x),  P ← F P Fᵀ + Q        y = h(x),  H = ∂h/∂x        dx, P by correction        x ← x + dx

The equations are those of :class:`~veridyn.observe.system.Continuous` and `Discrete`, which stay the reference. f, F, h and H are called by
their addresses as functions of C, (x, u, p, clock, out) with clock = (t, dt, number of inputs), so that this code is compiled once and
for all. A result that is not finite is left to the reference, which reports it by name.

The noise that a step of a linear system adds, as machine code: Van Loan's integral by a series and doubling.

    Q(h) = ∫₀^h exp(A s) W exp(A s)ᵀ ds = Σ_k h^k/k! L_k,    L_1 = W,  L_{k+1} = A L_k + L_k Aᵀ
    Q(2h) = Q(h) + Φ(h) Q(h) Φ(h)ᵀ,    Φ(h) = exp(A h)

The step is halved until ‖A‖h is at most 2, where the series has converged to rounding after at most 40 terms, as a rule after ten. The
reference with the matrix exponential is :func:`veridyn.observe.process_noise.van_loan`.
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
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core, kept, opened
from veridyn.observe.filters.kernels.correction import (
    DOF,
    DONE,
    Corrected,
    correct_into,
    project,
    put_results,
    refuses,
)

SERIES_NORM = 2.0  # largest ‖A‖h of the series
TERMS = 40
CONVERGED = 1e-17  # of a sum: a smaller term changes nothing
MOST_HALVINGS = 60


@core
def step_noise(A: Array, W: Array, dt: float, Q: Array, term: Array, product: Array, Phi: Array) -> None:
    """Q (n, n) of a step of `dt` seconds; the other matrices are room to work in."""
    n = len(A)
    norm = 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(A[i, j])
        norm = max(norm, row)
    halvings, h = 0, dt
    while norm * h > SERIES_NORM and halvings < MOST_HALVINGS:
        h *= 0.5
        halvings += 1
    for i in range(n):
        for j in range(n):
            term[i, j] = h * W[i, j]
            Q[i, j] = term[i, j]
    for k in range(2, TERMS + 1):
        multiply(A, term, product)
        largest, sum_size = 0.0, 0.0
        for i in range(n):
            for j in range(i + 1):
                x = (product[i, j] + product[j, i]) * (h / k)  # A L + L Aᵀ: L is symmetric
                term[i, j] = term[j, i] = x
                Q[i, j] += x
                Q[j, i] = Q[i, j]
                largest, sum_size = max(largest, abs(x)), max(sum_size, abs(Q[i, j]))
        if largest <= CONVERGED * sum_size:
            break
    if halvings == 0:
        return
    _exponential(A, h, Phi, term, product)
    for _ in range(halvings):
        multiply(Phi, Q, term)
        multiply_transposed(term, Phi, product)
        for i in range(n):
            for j in range(i + 1):
                Q[i, j] += 0.5 * (product[i, j] + product[j, i])
                Q[j, i] = Q[i, j]
        multiply(Phi, Phi, product)
        copy(product, Phi)


@core
def _exponential(A: Array, h: float, Phi: Array, term: Array, product: Array) -> None:
    """exp(A h) by its series, for ‖A‖h of at most `SERIES_NORM`."""
    n = len(A)
    for i in range(n):
        for j in range(n):
            Phi[i, j] = term[i, j] = 1.0 if i == j else 0.0
    for k in range(1, TERMS + 1):
        multiply(A, term, product)
        largest = 0.0
        for i in range(n):
            for j in range(n):
                term[i, j] = product[i, j] * (h / k)
                Phi[i, j] += term[i, j]
                largest = max(largest, abs(term[i, j]))
        if largest <= CONVERGED:
            break


@core
def multiply(A: Array, B: Array, out: Array) -> None:
    """out = A B; rows of A that are zero in a column cost nothing there."""
    rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
    for i in range(rows):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(inner):
            a = A[i, k]
            if a != 0.0:
                for j in range(columns):
                    out[i, j] += a * B[k, j]


@core
def multiply_transposed(A: Array, B: Array, out: Array) -> None:
    """out = A Bᵀ."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[j, k]
            out[i, j] = s


@core
def copy(A: Array, out: Array) -> None:
    """out = A."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j]


REFERENCE = 2  # the reference must look at this step
DISCRETE, EULER, MIDPOINT, RK4 = 0, 1, 2, 3
RATE, RATE_SLOPE, READING, READING_SLOPE = 0, 1, 2, 3  # places in `functions`
ROUNDING = 1e-9  # of a number of sub-steps


class CallableSettings(NamedTuple):
    """The rule of a step, the longest sub-step (s) and the gate (ν²/s, or infinity)."""

    rule: int
    longest: float
    limit: float


class CallableBounds(NamedTuple):
    """Bounds of states, as :class:`~veridyn.observe.bounds.ParameterBounds` has them."""

    places: Numbers
    changes: Numbers
    lower: Vector
    upper: Vector


class CallableRoom(NamedTuple):
    """What is found on the way. n states, m readings."""

    x: Vector
    P: Matrix
    F: Matrix
    Q: Matrix
    A: Matrix  # ∂ẋ/∂x at the start of the step
    y: Vector
    H: Matrix
    residual: Vector
    after: Vector
    stage: Vector
    slope: Vector
    total: Vector
    S: Matrix  # ∂(stage)/∂(start)
    slopes: Matrix
    totals: Matrix
    local: Matrix
    product: Matrix


class CallableFilter(NamedTuple):
    """A filter on callables: addresses, settings and noises, what a step is given, room, and what it finds."""

    functions: Numbers
    settings: CallableSettings
    W: Matrix  # density, or covariance of a step where the system is discrete
    R: Matrix
    p: Vector
    x: Vector
    P: Matrix
    before: Vector
    now: Vector
    values: Vector
    flags: Codes
    clock: Vector
    room: CallableRoom
    corrected: Corrected
    bounds: CallableBounds
    out: Vector


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
    r, n = s.room, len(s.x)
    _evaluate(s, RATE, r.stage, s.before, t, 0.0, r.slope)
    _evaluate(s, RATE_SLOPE, r.stage, s.before, t, 0.0, r.local)
    multiply(r.local, r.S, r.slopes)
    for i in range(n):
        r.total[i] += weight * r.slope[i]
        r.stage[i] = r.x[i] + step * r.slope[i]
        for j in range(n):
            r.totals[i, j] += weight * r.slopes[i, j]
            r.S[i, j] = r.F[i, j] + step * r.slopes[i, j]


@core
def _integrate(s: CallableFilter, t: float, dt: float) -> None:
    """x and F over the step by the settings' rule, in equal sub-steps; F is the derivative of the rule's own map."""
    r, n, rule = s.room, len(s.x), s.settings.rule
    count = max(1, int(np.ceil(dt / s.settings.longest - ROUNDING)))
    h = dt / count
    for k in range(count):
        at = t + k * h
        for i in range(n):
            r.stage[i], r.total[i] = r.x[i], 0.0
            for j in range(n):
                r.S[i, j], r.totals[i, j] = r.F[i, j], 0.0
        if rule == EULER:
            _stage(s, h, 0.0, at)
        elif rule == MIDPOINT:
            _stage(s, 0.0, 0.5 * h, at)
        else:
            _stage(s, h / 6.0, 0.5 * h, at)
        if k == 0:
            copy(r.local, r.A)
        if rule == MIDPOINT:
            _stage(s, h, 0.0, at + 0.5 * h)
        elif rule == RK4:
            _stage(s, h / 3.0, 0.5 * h, at + 0.5 * h)
            _stage(s, h / 3.0, h, at + 0.5 * h)
            _stage(s, h / 6.0, 0.0, at + h)
        for i in range(n):
            r.x[i] += r.total[i]
            for j in range(n):
                r.F[i, j] += r.totals[i, j]


@core
def _spread(s: CallableFilter, dt: float) -> bool:
    """P = F P Fᵀ + Q from the state's F and, where it is continuous, A; False where numbers are not finite."""
    r, n = s.room, len(s.P)
    if dt == 0.0:
        copy(s.P, r.P)
        return True
    if s.settings.rule == DISCRETE:
        copy(s.W, r.Q)
    else:
        step_noise(r.A, s.W, dt, r.Q, r.S, r.product, r.totals)
    multiply(r.F, s.P, r.product)
    multiply_transposed(r.product, r.F, r.P)
    finite = True
    for i in range(n):
        finite = finite and np.isfinite(r.x[i])
        for j in range(i + 1):
            x = 0.5 * (r.P[i, j] + r.P[j, i])
            r.P[i, j], r.P[j, i] = x + r.Q[i, j], x + r.Q[j, i]
            finite = finite and np.isfinite(r.P[i, j])
    return finite


@core
def _predict(s: CallableFilter, t: float, dt: float) -> bool:
    r, n = s.room, len(s.x)
    for i in range(n):
        r.x[i] = s.x[i]
        for j in range(n):
            r.F[i, j] = 1.0 if i == j else 0.0
    if dt > 0.0:
        if s.settings.rule == DISCRETE:
            _evaluate(s, RATE, s.x, s.before, t, dt, r.x)
            _evaluate(s, RATE_SLOPE, s.x, s.before, t, dt, r.F)
        else:
            _integrate(s, t, dt)
    return _spread(s, dt)


@core
def _correct(s: CallableFilter, out: Array) -> int:
    """Correct the prediction by `residual` and H, keep the bounds, and put everything into `out`."""
    r, n, m = s.room, len(s.x), len(s.values)
    for j in range(m):
        if not np.isfinite(r.y[j]):
            return REFERENCE
        for i in range(n):
            if not np.isfinite(r.H[j, i]):
                return REFERENCE
    code = correct_into(r.P, r.H, s.R, r.residual, s.flags, s.settings.limit, s.corrected)
    if code != DONE:
        return REFERENCE
    c = s.corrected
    if len(s.bounds.places) and c.statistics[DOF] > 0:
        project(r.x, c, s.bounds.places, s.bounds.changes, s.bounds.lower, s.bounds.upper)
    for i in range(n):
        r.after[i] = r.x[i] + c.dx[i]
    put_results(out, r.after, r.x, r.P, r.F, r.H, c)
    return DONE


@core
def _step(s: CallableFilter, t: float, dt: float, out: Array) -> int:
    r = s.room
    if not _predict(s, t, dt):
        return REFERENCE
    _evaluate(s, READING, r.x, s.now, t + dt, 0.0, r.y)
    _evaluate(s, READING_SLOPE, r.x, s.now, t + dt, 0.0, r.H)
    for j in range(len(s.values)):
        r.residual[j] = s.values[j] - r.y[j]
    return _correct(s, out)


@kept
def callable_step(address: NDArray[np.int64], t: float, dt: float) -> int:
    """From x and P at t under `before` to the readings at t + dt where `now` acts, into `out`; `DONE`, or `REFERENCE`."""
    s = opened(address, CallableFilter)
    return _step(s, t, dt, s.out)


@kept
def finish_step(address: NDArray[np.int64], dt: float) -> int:
    """The algebra of a step whose functions Python has called: x, F, A, H and the residual of the room in, `out` out."""
    s = opened(address, CallableFilter)
    return _correct(s, s.out) if _spread(s, dt) else REFERENCE


@kept
def callable_march(
    address: NDArray[np.int64],
    t: Array,
    values: Array,
    flags: NDArray[np.int8],
    inputs: Array,
    rows: Array,
) -> int:
    """Steps from x and P of the record, which stand at t[0], to t[1], t[2] and so on: how many were done, their results into `rows`.

    It ends where the reference must go on, and before a step in which the gate refuses a reading.
    """
    s = opened(address, CallableFilter)
    n = len(s.x)
    for k in range(1, len(t)):
        for i in range(len(s.before)):
            s.before[i], s.now[i] = inputs[k - 1, i], inputs[k, i]
        for j in range(len(s.values)):
            s.values[j], s.flags[j] = values[k, j], flags[k, j]
        if _step(s, t[k - 1], t[k] - t[k - 1], rows[k - 1]) != DONE or refuses(s.corrected):
            return k - 1
        for i in range(n):
            s.x[i] = s.room.after[i]
            for j in range(n):
                s.P[i, j] = s.corrected.P[i, j]
    return len(t) - 1
