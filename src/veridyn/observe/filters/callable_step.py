"""Filter steps on a user's own equations: wholly compiled where f, F, h and H are, otherwise all but these four.

numba-compiled functions (`@numba.njit`) are called by machine code without Python in between, over a whole log in one call
(:class:`CallableStep`): by their addresses as functions of C, (x, u, p, clock, out) with clock = (t, dt, number of inputs), so that this
code is compiled once and for all. Plain functions are called by Python, and only the algebra between them is compiled (:class:`PlainStep`).
Both agree with the reference (:func:`~veridyn.observe.filters.filter.advance` and `absorb`) to rounding; it also does the steps whose
results are not finite, and reports them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Matrix, Numbers, Vector, core, kept, opened
from veridyn.observe.filters.compiled_step import (
    REFERENCE,
    CompiledStep,
    FilterRecord,
    SampleRows,
    SensorRows,
    begin_step,
    corrected,
    ended,
    filter_record,
    go_on,
    sub_steps,
    take,
)
from veridyn.observe.filters.correction import DONE
from veridyn.observe.filters.covariance import copy, multiply, spread, step_noise
from veridyn.observe.filters.update import Passage
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief
from veridyn.observe.system import Callables, Continuous, Discrete

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


RULES = {"euler": EULER, "midpoint": MIDPOINT, "rk4": RK4}
POINTER = types.CPointer(types.float64)
AT_ADDRESS = "veridyn_address"  # attribute of a function that is machine code (x, u, p, clock, out) already


def is_compiled(function: Any) -> bool:
    """Whether machine code can call it without Python."""
    return isinstance(function, Dispatcher) or hasattr(function, AT_ADDRESS)


def callable_step(system: Callables, limit: float, wholly: bool) -> CompiledStep | None:
    """Steps by machine code; whole ones where f, F, h and H are compiled (numba), and noises and geometry are plain.

    Otherwise, unless they are to be so `wholly`, with everything but the four functions compiled; None where a derivative is missing or
    the state is curved.
    """
    if not isinstance(system, Continuous | Discrete) or system.curved:
        return None
    plain = not callable(system.Q) and not callable(system.R) and system.reading_error is None
    if plain and all(is_compiled(function) for function in (system.f, system.F, system.h, system.H)):
        return CallableStep(system, limit)
    return None if wholly or system.F is None or system.H is None else PlainStep(system, limit)


class CallableStep(CompiledStep):
    """Steps of a system whose f, F, h and H are compiled."""

    def __init__(self, system: Continuous | Discrete, limit: float) -> None:
        n, m, integrator = len(system.states), len(system.outputs), getattr(system, "integrator", None)
        R = np.zeros((m, m)) if callable(system.R) else np.asarray(system.R)
        rows = SensorRows(R, np.zeros(m), np.zeros((m, 0)), np.zeros(m, dtype=np.bool_))
        density, longest = np.zeros(0), float(getattr(system, "step", np.inf))
        super().__init__(callable_steps, filter_record(system, n, 0, limit, rows, density, longest))
        functions, self._held = self._functions(system)
        square = {name: np.zeros((n, n)) for name in ("A", "S", "slopes", "totals", "local")}
        self._parts = CallableFilter(
            filter=self._filter,
            functions=functions,
            rule=DISCRETE if integrator is None else RULES[integrator],
            W=np.zeros((n, n)) if callable(system.Q) else np.array(system.Q, dtype=np.float64, order="C"),
            p=np.array(system.parameters, dtype=np.float64),
            clock=np.zeros(3),
            stage=np.zeros(n),
            slope=np.zeros(n),
            total=np.zeros(n),
            **square,
        )
        self._bound = Bound(self._parts)

    def _functions(self, system: Continuous | Discrete) -> tuple[NDArray[np.int64], list[object]]:
        """Addresses of the four, and what is kept for as long as they are called."""
        n, m = len(system.states), len(system.outputs)
        addresses, held = list[int](), list[object]()
        for name, size in {"f": n, "F": n * n, "h": m, "H": m * n}.items():
            steps = name in "fF" and not hasattr(system, "integrator")
            at, made = _address(getattr(system, name), n, len(np.atleast_1d(system.parameters)), size, steps)
            addresses.append(at)
            held.append(made)
        return np.array(addresses, dtype=np.int64), held

    def _fit(self, inputs: int) -> None:
        """Take so many inputs from now on."""
        if inputs != len(self._filter.now):
            self._filter = self._filter._replace(before=np.zeros(inputs), now=np.zeros(inputs))
            self._parts = self._parts._replace(filter=self._filter)
            self._bound = Bound(self._parts)
            self._bind_one()

    def __call__(
        self,
        belief: Belief,
        before: Array,
        t: float,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
    ) -> Passage | None:
        self._fit(len(inputs))
        if len(before) != len(inputs):
            return None
        return super().__call__(belief, before, t, values, flags, inputs, sigma)

    def march(
        self,
        belief: Belief,
        before: Array,
        t: Array,
        values: Array,
        flags: Codes,
        inputs: Array,
        sigma: Array | None = None,
        whole: bool = True,
    ) -> tuple[int, Array]:
        self._fit(inputs.shape[1])
        return super().march(belief, before, t, values, flags, inputs, sigma, whole)

    def _acting(self, inputs: Array) -> Array:
        return inputs


class PlainStep(CallableStep):
    """Steps of a system of plain Python functions, with the algebra between them compiled."""

    def __init__(self, system: Continuous | Discrete, limit: float) -> None:
        super().__init__(system, limit)
        self._system, self._one_matrix = system, np.eye(len(system.states))

    def _functions(self, system: Continuous | Discrete) -> tuple[NDArray[np.int64], list[object]]:
        return np.zeros(4, dtype=np.int64), []

    def _done(self, belief: Belief, given: Bound) -> int:
        for k in range(len(given.record.values)):
            self._call(given.record, k)
            if finish_step(self._bound.address, given.address, k) != DONE:
                return k
        return len(given.record.values)

    def _call(self, given: Any, k: int) -> None:
        """What the functions say of the step to sample k, into the record."""
        s, f, p, system = self._parts, self._filter, self._filter.found, self._system
        before, now, values = given.acting[k], given.acting[k + 1], given.values[k]
        start, t = given.t[k : k + 2].tolist()
        x = f.x.copy()
        if t == start:
            p.F[:] = self._one_matrix
        else:
            over = (x, before, start, t - start)
            if isinstance(system, Continuous):
                if callable(system.Q):
                    s.W[:] = system.density(*over)
                x, p.F[:], s.A[:] = system.move_with_slopes(*over)
            else:
                s.W[:] = system.noise(*over)
                x, p.F[:] = system.move_and_jacobian(*over)
        if callable(system.R):
            f.sensors[:], f.noisy[0] = system.sensor_noise(t), 1
        p.x[:] = x
        y, p.H[:] = system.sense_and_jacobian(x, now, t)
        error = None if system.reading_error is None else np.asarray(system.residual(values, y))
        p.y[:] = y if error is None else np.where(np.isfinite(error), values - error, y)


@lru_cache(maxsize=256)  # compiling it takes a third of a second, and a fit builds a system many times
def _address(function: Any, n: int, parameters: int, size: int, steps: bool) -> tuple[int, object]:
    """Where machine code finds `function` as (x, u, p, clock, out), and what must be kept for as long as it is used."""
    if hasattr(function, AT_ADDRESS):
        return int(getattr(function, AT_ADDRESS)), function
    if steps and parameters:

        def call(x, u, p, clock, out):
            last = carray(p, (parameters,))
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0], clock[1], last)
            if y.size == size:
                for i in range(size):
                    out[i] = float(y.flat[i])
    elif steps:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0], clock[1])
            if y.size == size:
                for i in range(size):
                    out[i] = float(y.flat[i])
    elif parameters:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0], carray(p, (parameters,)))
            if y.size == size:
                for i in range(size):
                    out[i] = float(y.flat[i])
    else:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0])
            if y.size == size:
                for i in range(size):
                    out[i] = float(y.flat[i])

    made = numba.cfunc(types.void(POINTER, POINTER, POINTER, POINTER, POINTER))(call)
    assert made.address is not None  # it has just been compiled
    return int(made.address), made
