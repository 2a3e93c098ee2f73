"""The step of the linear Kalman filter on a machine as machine code, for one step or many, in any formulation with a step of its own.

    x ← there ⊞ F (x ⊖ x₀),  P ← F P Fᵀ + Q        y = h(x₀) + H (x ⊖ x₀)                        (paper 003, equations 45 to 50)

The equations are those of :class:`~veridyn.observe.observer_setup.Linearised`, which stays the reference. The tangent at x₀, there = f(x₀),
F and Q of a step of Δt under what acts, h(x₀) and H under what acts from then on, is what the machine's own step finds from x₀ without
readings, so that it is kept while these stay the same. Machine code of the formulation is called by address: its step, and x ⊞ d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Matrix, Numbers, Vector, address_of, core, kept, opened
from veridyn.mechanics.tree.steps.states import turn_between
from veridyn.observe.filters.compiled_step import (
    REFERENCE,
    ROUNDING,
    FilterRecord,
    SampleRows,
    as_rows,
    begin_step,
    corrected,
    ended,
    go_on,
    take,
)
from veridyn.observe.filters.correction import DONE
from veridyn.observe.filters.covariance import spread
from veridyn.observe.filters.machine_step import MachineStep
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import MISSING
from veridyn.observe.result import Belief
from veridyn.observe.system import System


def _called(typing_context: Any, function: Any, record: Any, given: Any) -> tuple[Any, Callable[..., Any]]:
    numbers = types.Array(types.int64, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(args[0].type, [a.type for a in args[1:]])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, numbers, numbers), codegen


_called.__doc__ = "Call a kept function of the addresses of two records, which gives an integer, by its address."
call_kept: Callable[[int, NDArray[np.int64], NDArray[np.int64]], int] = cast(Any, intrinsic(_called))


class Tangent(NamedTuple):
    """The machine's own step in first order about the state `about`, and what it was found for."""

    about: Vector  # (N,)
    there: Vector  # (N,)
    F: Matrix  # (n, n)
    Q: Matrix
    y: Vector  # (m,)
    H: Matrix  # (m, n)
    known: Numbers  # (2,) whether there is a step, and whether there are readings
    dt: Vector  # (1,)
    before: Vector  # what acts over the step
    now: Vector  # and on the sensors


class LinearFilter(NamedTuple):
    """A linear filter on one machine; `own` is the record of the formulation at the address `of`, `one` what its step is given."""

    filter: FilterRecord
    tangent: Tangent
    places: Numbers  # (2f,) of independent coordinates and their rates in a state, −1 for turns of a free base
    first: int  # of a state's unknown forces, parameters and biases
    d: Vector  # (n,)
    own: FilterRecord
    of: Numbers
    step: int  # addresses of machine code
    changed: int
    one: SampleRows
    given: Numbers  # the address of `one`


@kept
def linear_steps(address: NDArray[np.int64], given: NDArray[np.int64]) -> int:
    """Steps from the state of the record to one sample after the other, as far as it goes: how many were done."""
    s, samples = opened(address, LinearFilter), opened(given, SampleRows)
    for k in range(len(samples.values)):
        take(s.filter, samples, k)
        if _step(s, samples.t[k + 1] - samples.t[k], samples.rows[k]) != DONE:
            return k
        go_on(s.filter)
    return len(samples.values)


@core
def _step(s: LinearFilter, dt: float, out: Array) -> int:
    f, p, t = s.filter, s.filter.found, s.tangent
    begin_step(f, dt >= 0.0)  # always, but a literal True would make the compiler work twice
    if dt > 0.0:
        if not _step_known(s, dt):
            return REFERENCE
        _difference(s, f.x, s.d)
        for a in range(len(s.d)):
            total = 0.0
            for b in range(len(s.d)):
                p.F[a, b], p.Q[a, b] = t.F[a, b], t.Q[a, b]
                total += t.F[a, b] * s.d[b]
            p.product[0, a] = total
        if not _changed(s, t.there, p.product[0], p.x):
            return REFERENCE
    spread(f.P, p.F, p.Q, dt, p.product, p.G, p.P)
    if not _readings_known(s):
        return REFERENCE
    _difference(s, p.x, s.d)
    for j in range(len(p.y)):
        total = t.y[j]
        for a in range(len(s.d)):
            p.H[j, a] = t.H[j, a]
            total += t.H[j, a] * s.d[a]
        p.y[j] = total
    if not corrected(f):
        return REFERENCE
    return ended(f, f.gate.used[0] == 0 or _changed(s, p.x, f.corrected.dx, p.after), out)


@core
def _step_known(s: LinearFilter, dt: float) -> bool:
    """The tangent of a step of dt seconds under what acts before its end."""
    t, acting = s.tangent, s.filter.before
    known = t.known[0] == 1 and abs(t.dt[0] - dt) <= ROUNDING * dt
    for i in range(len(acting)):
        known = known and t.before[i] == acting[i]
    if known:
        return True
    t.known[0] = 0
    if not _run(s, acting, dt):
        return False
    t.known[0], t.dt[0] = 1, dt
    for i in range(len(acting)):
        t.before[i] = acting[i]
    found = s.own.found
    for i in range(len(t.there)):
        t.there[i] = found.x[i]
    for a in range(len(t.F)):
        for b in range(len(t.F)):
            t.F[a, b], t.Q[a, b] = found.F[a, b], found.Q[a, b]
    return True


@core
def _readings_known(s: LinearFilter) -> bool:
    """The tangent of what sensors read under what acts now."""
    t, acting = s.tangent, s.filter.now
    known = t.known[1] == 1
    for i in range(len(acting)):
        known = known and t.now[i] == acting[i]
    if known:
        return True
    t.known[1] = 0
    if not _run(s, acting, 0.0):
        return False
    t.known[1] = 1
    for i in range(len(acting)):
        t.now[i] = acting[i]
    found = s.own.found
    for j in range(len(t.y)):
        t.y[j] = found.y[j]
        for a in range(len(t.F)):
            t.H[j, a] = found.H[j, a]
    return True


@core
def _run(s: LinearFilter, acting: Array, dt: float) -> bool:
    """The machine's own step of dt seconds from the state of the tangent, known exactly, and without readings."""
    own, one = s.own, s.one
    for i in range(len(own.x)):
        own.x[i] = s.tangent.about[i]
    for a in range(len(own.P)):
        for b in range(len(own.P)):
            own.P[a, b] = 0.0
    for i in range(len(acting)):
        one.acting[0, i] = one.acting[1, i] = acting[i]
    one.t[1] = dt
    return call_kept(s.step, s.of, s.given) == 1


@core
def _changed(s: LinearFilter, x: Array, d: Array, out: Array) -> bool:
    """x ⊞ d by the machine code of the formulation."""
    own = s.own
    for i in range(len(x)):
        own.found.x[i] = own.found.after[i] = x[i]
    for a in range(len(d)):
        own.corrected.dx[a] = d[a]
    if call_kept(s.changed, s.of, s.given) != DONE:
        return False
    for i in range(len(x)):
        out[i] = own.found.after[i]
    return True


@core
def _difference(s: LinearFilter, x: Array, out: Array) -> None:
    """The way from the state of the tangent to the state x."""
    about, freedoms = s.tangent.about, len(s.places)
    for c in range(freedoms):
        if s.places[c] >= 0:
            out[c] = x[s.places[c]] - about[s.places[c]]
    for i in range(freedoms, len(out)):
        k = s.first + i - freedoms
        out[i] = x[k] - about[k]
    if freedoms > 3 and s.places[3] < 0:
        turn_between(about[3:7], x[3:7], out[3:6])


class LinearStep(MachineStep):
    """Steps along the tangent at the state `about`. `step`: those of the machine, which nobody else uses, with code for x ⊞ d."""

    def __init__(self, step: MachineStep, system: MachineSystem, limit: float, about: Array) -> None:
        super().__init__(linear_steps, system, limit, step.packed)
        assert step.changed is not None
        self._of, f, one = step, self._filter, step._one
        n, m, L = len(f.P), len(f.values), len(f.now)
        one.flags[:] = MISSING
        square = {name: np.zeros((n, n)) for name in ("F", "Q")}
        tangent = Tangent(
            about=as_rows(about),
            there=np.zeros(len(about)),
            y=np.zeros(m),
            H=np.zeros((m, n)),
            known=np.zeros(2, dtype=np.int64),
            dt=np.zeros(1),
            before=np.zeros(L),
            now=np.zeros(L),
            **square,
        )
        numbers = types.Array(types.int64, 1, "C")
        codes = [address_of(code, (numbers, numbers)) for code in (step._kernel, step.changed)]
        self._bound = Bound(
            LinearFilter(
                filter=f,
                tangent=tangent,
                places=_places(system),
                first=system.nq + system.nv,
                d=np.zeros(n),
                own=step._filter,
                of=step._address(Belief(about, np.zeros((n, n)))),
                step=codes[0],
                changed=codes[1],
                one=one,
                given=step._given_one.address,
            )
        )

    def adopt(self, system: System) -> bool:
        self._bound.record.tangent.known[0] = 0
        return self._of.adopt(cast(Any, system).system)  # that of the tangent


def _places(system: MachineSystem) -> NDArray[np.int64]:
    """Where a state has the numbers whose differences are changes of state, by the states that have one number 1; −1 for turns."""
    model, q, v = system.model, np.zeros(system.nq), np.zeros(system.nv)
    each = np.eye(len(q) + len(v))
    places = np.argmax(model.difference(each[:, : len(q)], each[:, len(q) :], q, v), axis=0)
    if model.free:
        places[3:6] = -1
    return places.astype(np.int64)
