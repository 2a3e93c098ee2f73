"""Filter steps on a user's own equations, bound to one caller: wholly compiled where f, F, h and H are, otherwise all but these four.

numba-compiled functions (`@numba.njit`) are called by machine code without Python in between, over a whole log in one call
(:class:`CallableStep`). Plain functions are called by Python, and only the algebra between them is compiled (:class:`PlainStep`). Both
agree with the reference (:func:`~veridyn.observe.filters.filter.advance` and `absorb`) to rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.record import Bound
from veridyn.observe.filters.compiled_step import CompiledStep, SensorRows, filter_record
from veridyn.observe.filters.kernels.callable_step import (
    DISCRETE,
    EULER,
    MIDPOINT,
    RK4,
    CallableFilter,
    callable_steps,
    finish_step,
)
from veridyn.observe.filters.kernels.correction import DONE
from veridyn.observe.filters.passage import Passage
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief
from veridyn.observe.system import Callables, Continuous, Discrete

RULES = {"euler": EULER, "midpoint": MIDPOINT, "rk4": RK4}
POINTER = types.CPointer(types.float64)
AT_ADDRESS = "veridyn_address"  # attribute of a function that is machine code (x, u, p, clock, out) already


def is_compiled(function: Any) -> bool:
    """Whether machine code can call it without Python."""
    return isinstance(function, Dispatcher) or hasattr(function, AT_ADDRESS)


def callable_step(system: Callables, gate: float | None, wholly: bool) -> CompiledStep | None:
    """Steps by machine code; whole ones where f, F, h and H are compiled (numba), and noises and geometry are plain.

    Otherwise, unless they are to be so `wholly`, with everything but the four functions compiled; None where a derivative is missing or
    the state is curved.
    """
    if not isinstance(system, Continuous | Discrete) or system.curved:
        return None
    plain = not callable(system.Q) and not callable(system.R) and system.reading_error is None
    if plain and all(is_compiled(function) for function in (system.f, system.F, system.h, system.H)):
        return CallableStep(system, gate)
    return None if wholly or system.F is None or system.H is None else PlainStep(system, gate)


class CallableStep(CompiledStep):
    """Steps of a system whose f, F, h and H are compiled."""

    def __init__(self, system: Continuous | Discrete, gate: float | None) -> None:
        n, m, integrator = len(system.states), len(system.outputs), getattr(system, "integrator", None)
        R = np.zeros((m, m)) if callable(system.R) else np.asarray(system.R)
        rows = SensorRows(R, np.zeros(m), np.zeros((m, 0)), np.zeros(m, dtype=np.bool_))
        density, longest = np.zeros(0), float(getattr(system, "step", np.inf))
        super().__init__(callable_steps, filter_record(system, n, 0, gate, rows, density, longest))
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
    ) -> tuple[int, Array]:
        self._fit(inputs.shape[1])
        return super().march(belief, before, t, values, flags, inputs, sigma)

    def _acting(self, inputs: Array) -> Array:
        return inputs

    def _address(self, belief: Belief) -> NDArray[np.int64]:
        return self._bound.address


class PlainStep(CallableStep):
    """Steps of a system of plain Python functions, with the algebra between them compiled."""

    def __init__(self, system: Continuous | Discrete, gate: float | None) -> None:
        super().__init__(system, gate)
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
            if callable(system.Q):
                s.W[:] = system.density(x, before, start, t - start)
            x, p.F[:], slopes = system.move_with_slopes(x, before, start, t - start)
            if slopes is not None:
                s.A[:] = slopes
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
