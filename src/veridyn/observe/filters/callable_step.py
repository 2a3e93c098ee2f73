"""Filter steps on a user's own equations, bound to one caller: wholly compiled where f, F, h and H are, otherwise all but these four.

numba-compiled functions (`@numba.njit`) are called by machine code without Python in between, over a whole log in one call
(:class:`CompiledCallables`). Plain functions are called by Python, and only the algebra between them is compiled (:class:`PlainCallables`).
Both agree with the reference (:func:`~veridyn.observe.filters.filter.advance` and `absorb`) to rounding, which does every step that is
not plain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.core import types
from numba.core.dispatcher import Dispatcher

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound
from veridyn.observe.filters.kernels.callable_step import (
    DISCRETE,
    EULER,
    MIDPOINT,
    RK4,
    CallableBounds,
    CallableFilter,
    CallableRoom,
    CallableSettings,
    callable_march,
    callable_step,
    finish_step,
)
from veridyn.observe.filters.kernels.correction import DONE, OUTLIER, corrected_of
from veridyn.observe.filters.passage import CompiledPassage, Passage, PassageLayout, with_start
from veridyn.observe.filters.update import threshold
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief
from veridyn.observe.system import Callables, Continuous, Discrete

RULES = {"euler": EULER, "midpoint": MIDPOINT, "rk4": RK4}
POINTER = types.CPointer(types.float64)
AT_ADDRESS = "veridyn_address"  # attribute of a function that is machine code (x, u, p, clock, out) already


def is_compiled(function: Any) -> bool:
    """Whether machine code can call it without Python."""
    return isinstance(function, Dispatcher) or hasattr(function, AT_ADDRESS)


def compiled_callables(system: Callables, gate: float | None) -> CompiledCallables | None:
    """Whole steps by machine code where f, F, h and H are compiled (numba), and noises and geometry are plain; otherwise None."""
    if not isinstance(system, Continuous | Discrete):
        return None
    if not all(is_compiled(function) for function in (system.f, system.F, system.h, system.H)):
        return None
    if callable(system.Q) or callable(system.R) or system.curved or system.reading_error is not None:
        return None
    return CompiledCallables(system, gate)


def quick_callables(system: Callables, gate: float | None) -> PlainCallables | None:
    """Steps with everything but the four functions compiled; None where a derivative is missing or the state is curved."""
    if system.F is None or system.H is None or system.curved or not isinstance(system, Continuous | Discrete):
        return None
    return PlainCallables(system, gate)


def _record(system: Continuous | Discrete, gate: float | None, functions: list[int], inputs: int) -> CallableFilter:
    n, m = len(system.states), len(system.outputs)
    integrator = getattr(system, "integrator", None)
    b, none = system.bounds, np.zeros(0, dtype=np.int64)
    square = {name: np.zeros((n, n)) for name in ("P", "F", "Q", "A", "S", "slopes", "totals", "local", "product")}
    rows = {name: np.zeros(n) for name in ("x", "after", "stage", "slope", "total")}
    return CallableFilter(
        functions=np.array(functions, dtype=np.int64),
        settings=CallableSettings(
            DISCRETE if integrator is None else RULES[integrator],
            float(getattr(system, "step", np.inf)),
            np.inf if gate is None else threshold(gate),
        ),
        W=np.zeros((n, n)) if callable(system.Q) else np.array(system.Q, dtype=np.float64, order="C"),
        R=np.zeros((m, m)) if callable(system.R) else np.array(system.R, dtype=np.float64, order="C"),
        p=np.array(system.parameters, dtype=np.float64),
        x=np.zeros(n),
        P=np.zeros((n, n)),
        before=np.zeros(inputs),
        now=np.zeros(inputs),
        values=np.zeros(m),
        flags=np.zeros(m, dtype=np.int8),
        clock=np.zeros(3),
        room=CallableRoom(**rows, **square, y=np.zeros(m), H=np.zeros((m, n)), residual=np.zeros(m)),
        corrected=corrected_of(n, m, system.considered),
        bounds=CallableBounds(none, none, np.zeros(0), np.zeros(0))
        if b is None
        else CallableBounds(b.places, b.changes, b.lower, b.upper),
        out=np.zeros(PassageLayout(n, n, m).size),
    )


class CompiledCallables:
    """Steps of a system whose f, F, h and H are compiled: a :class:`~veridyn.observe.filters.filter.CompiledStep`
    that also marches over a log.
    """

    def __init__(self, system: Continuous | Discrete, gate: float | None) -> None:
        n, m = len(system.states), len(system.outputs)
        sizes = {"f": n, "F": n * n, "h": m, "H": m * n}
        self._system, self._gate, self._layout = system, gate, PassageLayout(n, n, m)
        self._held, addresses = list[object](), list[int]()
        for name, size in sizes.items():
            function = getattr(system, name)
            steps = name in "fF" and not hasattr(system, "integrator")
            at, held = _address(function, n, len(np.atleast_1d(system.parameters)), size, steps)
            addresses.append(at)
            self._held.append(held)
        self._addresses = addresses
        self._bind(0)

    def _bind(self, inputs: int) -> None:
        self._parts = _record(self._system, self._gate, self._addresses, inputs)
        self._bound = Bound(self._parts)

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
        """One step; None where the reference must do it: it alone gives readings a noise of their own."""
        if sigma is not None and np.isfinite(sigma).any():
            return None
        if len(inputs) != len(self._parts.now):
            self._bind(len(inputs))
        s = self._parts
        if len(before) != len(s.before):
            return None
        s.x[:], s.P[:], s.values[:], s.flags[:], s.before[:], s.now[:] = (
            belief.x,
            belief.P,
            values,
            flags,
            before,
            inputs,
        )
        start = t if belief.t is None else belief.t
        if callable_step(self._bound.address, start, t - start) != DONE:
            return None
        return CompiledPassage(self._layout, s.out.copy(), t)

    def march(
        self, belief: Belief, before: Array, t: Array, values: Array, flags: Codes, inputs: Array
    ) -> tuple[int, Array]:
        """Steps from the belief to the readings at t[0], t[1] and so on: how many were done, and their results a row each.

        It ends before a step in which the gate refuses a reading.
        """
        if inputs.shape[1] != len(self._parts.now):
            self._bind(inputs.shape[1])
        s = self._parts
        if len(before) != len(s.before):
            return 0, np.zeros((0, 0))
        s.x[:], s.P[:] = belief.x, belief.P
        rows = np.empty((len(t), self._layout.size))
        clock, readings, codes, acting = with_start(belief, before, t, values, flags, inputs)
        return int(callable_march(self._bound.address, clock, readings, codes, acting, rows)), rows


class PlainCallables:
    """Steps of a system of plain Python functions, with the algebra between them compiled."""

    def __init__(self, system: Continuous | Discrete, gate: float | None) -> None:
        n, m = len(system.states), len(system.outputs)
        self._system, self._layout = system, PassageLayout(n, n, m)
        self._parts, self._one = _record(system, gate, [0, 0, 0, 0], 0), np.eye(n)
        self._bound = Bound(self._parts)

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
        """One step; None where the reference must do it: it alone gives readings a noise of their own."""
        if sigma is not None and np.isfinite(sigma).any():
            return None
        s = self._parts
        s.x[:], s.P[:] = belief.x, belief.P
        done = self._step(t if belief.t is None else belief.t, before, t, values, flags, inputs)
        return CompiledPassage(self._layout, s.out.copy(), t) if done else None

    def march(
        self, belief: Belief, before: Array, t: Array, values: Array, flags: Codes, inputs: Array
    ) -> tuple[int, Array]:
        """Steps from the belief to the readings at t[0], t[1] and so on, as :meth:`CompiledCallables.march` does them."""
        s, n, m = self._parts, len(self._parts.x), len(self._parts.values)
        s.x[:], s.P[:] = belief.x, belief.P
        rows, out = np.empty((len(t), self._layout.size)), s.out
        last, acting = t[0] if belief.t is None else belief.t, before
        for k, time in enumerate(t.tolist()):
            if not self._step(last, acting, time, values[k], flags[k], inputs[k]) or OUTLIER in out[-3 - m : -3]:
                return k, rows
            rows[k] = out
            s.x[:], s.P[:] = out[:n], s.corrected.P
            last, acting = time, inputs[k]
        return len(t), rows

    def _step(self, start: float, before: Array, t: float, values: Array, flags: Codes, inputs: Array) -> bool:
        """A step from x and P of the record at `start`; whether it was done."""
        s, system = self._parts, self._system
        r, dt, x = s.room, t - start, s.x.copy()
        s.flags[:] = flags
        if dt == 0.0:
            r.F[:] = self._one
        else:
            if callable(system.Q):
                s.W[:] = system.density(x, before, start, dt)
            x, r.F[:], slopes = system.move_with_slopes(x, before, start, dt)
            if slopes is not None:
                r.A[:] = slopes
        if callable(system.R):
            s.R[:] = system.sensor_noise(t)
        r.x[:] = x
        y, r.H[:] = system.sense_and_jacobian(x, inputs, t)
        r.y[:], r.residual[:] = y, system.residual(values, y)
        return finish_step(self._bound.address, dt) == DONE


@lru_cache(maxsize=256)  # compiling it takes a third of a second, and a fit builds a system many times
def _address(function: Any, n: int, parameters: int, size: int, steps: bool) -> tuple[int, object]:
    """Where machine code finds `function` as (x, u, p, clock, out), and what must be kept for as long as it is used."""
    if hasattr(function, AT_ADDRESS):
        return int(getattr(function, AT_ADDRESS)), function
    if steps and parameters:

        def call(x, u, p, clock, out):
            y = function(
                carray(x, (n,)),
                carray(u, (int(clock[2]),)),
                clock[0],
                clock[1],
                carray(p, (parameters,)),
            )
            if y.size == size:
                carray(out, (size,))[:] = np.ascontiguousarray(y).reshape(size)
    elif steps:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0], clock[1])
            if y.size == size:
                carray(out, (size,))[:] = np.ascontiguousarray(y).reshape(size)
    elif parameters:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0], carray(p, (parameters,)))
            if y.size == size:
                carray(out, (size,))[:] = np.ascontiguousarray(y).reshape(size)
    else:

        def call(x, u, p, clock, out):
            y = function(carray(x, (n,)), carray(u, (int(clock[2]),)), clock[0])
            if y.size == size:
                carray(out, (size,))[:] = np.ascontiguousarray(y).reshape(size)

    made = numba.cfunc(types.void(POINTER, POINTER, POINTER, POINTER, POINTER))(call)
    assert made.address is not None  # it has just been compiled
    return int(made.address), made
