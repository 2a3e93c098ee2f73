"""Control laws: one tick over scalars of any kind, the same as machine code, and the instants at which controllers read and act.

    requested(…) → Γ before limits,  limited(…) → Γ and the state after the tick

The laws are those of :mod:`veridyn.model.controller`; over expressions, their derivatives by state and constants are exact. A limit is
x (1 − s) + s L sign(x) with s = 1 beyond it and 0 within, so that what is within it is unchanged to the last bit, and its derivative is
1 − s.

As machine code a law is three kernels that compiled runs call at its ticks: ``request`` is Γ before limits, ``limit`` Γ within them with
the state of the law after the tick, ``voltage`` a tick of the current loop. They read and write fields of the controller's row of a table,
and are shared by all controllers of one kind with the same constants given, whatever their values.

A controller ticks at start + m/rate, its current loop current_ticks times as often, and it reads its measurement_delay before each tick of
its law. Instants closer than rounding are one; at each, measurements are read before laws act.

:class:`Tracker` is a law continuous in time, as a drive whose own loop is much faster than the motion:

    Γ = Γ_ff(t) + K_p (q_r(t) − q) + K_d (q̇_r(t) − q̇)

Γ_ff comes from a model along the reference, so the law needs no model while it runs; a wrong model leaves a tracking error, which the
feedback bounds. Units: N*m or N for Γ, per rad or m for the gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.mechanics.system.simulation import SAME_INSTANT_S, spline_at
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import element_rows
from veridyn.mechanics.tree.recursion.inputs import complete_values, state_of
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.steps.record import addresses_in, call_addresses
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.controller import Controller
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Reference
from veridyn.spatial.algebra import ARRAYS, FLOATS, Algebra, ArrayAlgebra, Scalar, add, mul, rounded_sign, sub
from veridyn.symbolic.expression import Graph, Number
from veridyn.symbolic.kernel import Kernel, formula_kernel

State = Mapping[str, Scalar]


class ControlTick(NamedTuple):
    """What a law reads at a tick: the command r with its rates, the measured q and q̇, and what a model adds."""

    r: Scalar
    rd: Scalar
    rdd: Scalar
    q: Scalar
    qd: Scalar
    model: Scalar = 0.0


class ControlConstants(NamedTuple):
    """The constants of a controller as scalars: inputs of a graph of expressions where it names them, else their values."""

    controller: Controller
    algebra: Algebra = FLOATS

    def __call__(self, key: str) -> Scalar:
        c = self.controller
        return self.algebra.given(f"{c.name}.{key}", c.constants[key]) if key in c.constants else c.constant(key)

    def given(self, key: str) -> bool:
        """Whether the controller has this constant, and not its default alone."""
        return key in self.controller.constants


def law_states(c: Controller) -> tuple[str, ...]:
    """The states that a law keeps from tick to tick, all zero at the start: its integral, and its force where that changes slowly."""
    return ("integral",) * c.integrates + ("force",) * ("rate_limit" in c.constants)


def position_error(x: ControlTick, k: ControlConstants) -> Scalar:
    """r − (q + zero): the encoder reads its zero with the position."""
    return sub(x.r, add(x.q, k("zero")) if k.given("zero") else x.q)


def requested(c: Controller, x: ControlTick, state: State, k: ControlConstants) -> Scalar:
    """Γ before limits; of a computed torque the acceleration that its model is asked for."""
    e = position_error(x, k)
    if c.kind == "cascade":
        return add(add(mul(k("kv"), _speed_error(x, k)), state.get("integral", 0.0)), x.model)
    out = add(mul(k("kp"), e), mul(k("kd"), sub(x.rd, x.qd)))
    if c.kind == "computed_torque":
        return add(x.rdd, out)
    out = add(out, mul(k("velocity_feedforward"), x.rd))
    out = add(out, mul(k("acceleration_feedforward"), x.rdd))
    return add(add(out, state.get("integral", 0.0)), x.model)


def limited(
    c: Controller, x: ControlTick, raw: Scalar, state: State, k: ControlConstants
) -> tuple[Scalar, dict[str, Scalar]]:
    """Γ within its limits, and the states of the law after the tick, from Γ before limits."""
    algebra, period = k.algebra, 1.0 / c.rate
    force = bounded(raw, k("limit"), algebra) if k.given("limit") else raw
    after: dict[str, Scalar] = {}
    if k.given("rate_limit"):
        before = state["force"]
        force = add(before, bounded(sub(force, before), mul(period, k("rate_limit")), algebra))
    if c.integrates:
        error = _speed_error(x, k) if c.kind == "cascade" else position_error(x, k)
        growth = mul(k("ki"), error)
        if c.anti_windup == "clamp":
            growth = mul(growth, _outside_limits(sub(raw, force), growth, algebra))
        elif c.anti_windup == "back_calculation":
            growth = add(growth, sub(force, raw) / k("tracking_time"))
        after["integral"] = add(state["integral"], mul(period, growth))
    if k.given("rate_limit"):
        after["force"] = force
    return force, after


def voltage(
    c: Controller, wanted: Scalar, current: Scalar, integral: Scalar, k: ControlConstants
) -> tuple[Scalar, Scalar]:
    """A tick of the current loop: the voltage for a wanted current (A), and the integral after it."""
    algebra = k.algebra
    error = sub(bounded(wanted, k("current_limit"), algebra) if k.given("current_limit") else wanted, current)
    raw = add(mul(k("current_kp"), error), integral)
    out = bounded(raw, k("voltage_limit"), algebra) if k.given("voltage_limit") else raw
    growth = mul(k("current_ki"), error)
    growth = mul(growth, _outside_limits(sub(raw, out), growth, algebra))
    return out, add(integral, mul(1.0 / (c.rate * c.current_ticks), growth))


def bounded(x: Scalar, limit: Scalar, algebra: Algebra) -> Scalar:
    """x within ±limit; x itself where it is within."""
    beyond = _above_zero(algebra.sign(sub(algebra.abs(x), limit)), algebra)
    return add(mul(x, sub(1.0, beyond)), mul(beyond, mul(limit, algebra.sign(x))))


def _speed_error(x: ControlTick, k: ControlConstants) -> Scalar:
    """v_r − q̇ of a cascade."""
    wanted = add(mul(k("kp"), position_error(x, k)), mul(k("speed_feedforward"), x.rd))
    return sub(bounded(wanted, k("speed_limit"), k.algebra) if k.given("speed_limit") else wanted, x.qd)


def _outside_limits(excess: Scalar, growth: Scalar, algebra: Algebra) -> Scalar:
    """0 where an integral would grow further into a limit, which `excess` of the force before limits over it shows; else 1."""
    return sub(1.0, _above_zero(algebra.sign(mul(excess, growth)), algebra))


def _above_zero(sign: Scalar, algebra: Algebra) -> Scalar:
    """1 for a sign of 1, else 0."""
    return mul(0.5, add(sign, algebra.abs(sign)))


Part = Literal["request", "limit", "voltage"]
PARTS: tuple[Part, ...] = ("request", "limit", "voltage")
# Fields of a controller's row: what a tick reads, states of the law, what comes of it, and the same of the current loop.
FIELDS = (
    *ControlTick._fields, "raw", "integral", "force", "out", "integral_after", "force_after",
    "wanted", "current", "current_integral", "volts", "current_integral_after",
)  # fmt: skip
(
    R, RD, RDD, Q, QD, MODEL, RAW, INTEGRAL, FORCE, OUT, INTEGRAL_AFTER, FORCE_AFTER,
    WANTED, CURRENT, CURRENT_INTEGRAL, VOLTS, CURRENT_INTEGRAL_AFTER,
) = range(len(FIELDS))  # fmt: skip
WIDTH = len(FIELDS)


def law_kernel(c: Controller, part: Part) -> tuple[Kernel, tuple[str, ...]]:
    """A part of a law as machine code, of the controller's kind and of the constants that it gives, and the fields it writes in order."""
    own, constants = replace(c, name="law"), repr(sorted(c.constants))
    words = (
        "control law",
        part,
        c.kind,
        c.anti_windup,
        constants,
        repr(c.rate),
        str(c.current_ticks),
        str(bool(c.motor)),
    )
    return formula_kernel(__name__, words, lambda graph: _formula(graph, own, part), FIELDS)


def _formula(graph: Graph, c: Controller, part: Part) -> dict[str, Number]:
    """Field → what a part of the law writes into it."""
    k = ControlConstants(c, graph)
    if part == "voltage":
        wanted, current, integral = (graph.input(name) for name in ("wanted", "current", "current_integral"))
        volts, integral = voltage(c, wanted, current, integral, k)
        return {"volts": volts, "current_integral_after": integral}
    x = ControlTick(*(graph.input(name) for name in ControlTick._fields))
    state = {name: graph.input(name) for name in law_states(c)}
    if part == "request":
        return {"raw": requested(c, x, state, k)}
    out, after = limited(c, x, graph.input("raw"), state, k)
    return {"out": out, **{f"{name}_after": value for name, value in after.items()}}


def connect_law(c: Controller, row: Array) -> tuple[list[int], list[object]]:
    """The addresses by which compiled code calls the three kernels on the fields of `row`, six for each, and what must be kept alive."""
    addresses: list[int] = []
    held: list[object] = [row]
    for part in PARTS:
        if part == "voltage" and not c.motor:
            addresses += [0] * 6
            continue
        kernel, written = law_kernel(c, part)
        constants = np.array([c.constants[name.partition(".")[2]] for name in kernel.parameters] or [0.0])
        inputs, outputs = (addresses_in(row, map(FIELDS.index, names)) for names in (kernel.inputs, written))
        found, alive = call_addresses(kernel, inputs, outputs, constants.ctypes.data)
        addresses += found
        held += [constants, *alive]
    return addresses, held


Numbers = NDArray[np.int64]
READ, LAW, CURRENT_LOOP = range(
    3
)  # a measurement is taken; a law ticks, and its current loop with it; a current loop ticks alone


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events first[k] … first[k + 1] happen at time[k]: `what` to which `controller`, for the tick `number` of its law."""

    time: Array
    first: Numbers
    what: Numbers
    controller: Numbers
    number: Numbers


def schedule(controllers: Sequence[Controller], start: float, end: float) -> Schedule:
    """All instants from start to end; a tick whose measurement is older than the start has no READ, and reads the start."""
    parts: list[tuple[Array, Numbers, Numbers, Numbers]] = []
    for j, c in enumerate(controllers):
        each = c.current_ticks
        m = np.arange(math.floor((end - start) * c.rate * each + 1e-9) + 1)
        time, law = start + m / (c.rate * each), m % each == 0
        parts.append((time, np.where(law, LAW, CURRENT_LOOP), np.full(len(m), j), m // each))
        read = time[law] - c.constant("measurement_delay")
        after = read > start + SAME_INSTANT_S
        count = int(after.sum())
        parts.append((read[after], np.full(count, READ), np.full(count, j), m[law][after] // each))
    time, what, controller, number = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(time, kind="stable")
    begins = np.diff(time[order], prepend=-math.inf) > SAME_INSTANT_S
    instant = np.empty(len(order), dtype=np.int64)
    instant[order] = np.cumsum(begins) - 1
    place = np.lexsort((controller, what != READ, instant))
    first = np.searchsorted(instant[place], np.arange(int(begins.sum()) + 1))
    return Schedule(np.minimum(time[order][begins], end), first, what[place], controller[place], number[place])


def measurement_slots(found: Schedule, controllers: int) -> tuple[Numbers, int]:
    """Of every event the place of its measurement among past states, the first of which is the start; and their number."""
    slot, base = np.zeros(len(found.what), dtype=np.int64), 1
    for j in range(controllers):
        own = found.controller == j
        reads = np.flatnonzero(own & (found.what == READ))
        ticks = np.flatnonzero(own & (found.what == LAW))
        if len(reads) == 0:
            continue
        # A measurement is on its way from its event to that of its tick.
        first = int(found.number[reads[0]])
        waiting = np.searchsorted(reads, ticks[-len(reads) :]) - np.arange(len(reads))
        deep = int(waiting.max()) + 1
        slot[reads] = base + found.number[reads] % deep
        later = ticks[found.number[ticks] >= first]
        slot[later] = base + found.number[later] % deep
        base += deep
    return slot, base


@dataclass(frozen=True, eq=False)
class Tracker:
    """The law above. `kp` and `kd` (n,), zero or more; usable as the forces of ``integrate``."""

    reference: Reference
    kp: Array
    kd: Array
    feedforward: Callable[[float], Array] | None = None

    def __post_init__(self) -> None:
        faults = Faults()
        n = len(self.reference.at(0.0)[0])
        for name in ("kp", "kd"):
            gains = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, gains)
            if gains.shape != (n,) or not (np.isfinite(gains) & (gains >= 0.0)).all():
                faults.add(
                    "the gains are not usable.", where=name, expected=f"({n},), each zero or more", found=f"{gains}"
                )
        if self.feedforward is not None and np.shape(self.feedforward(0.0)) != (n,):
            faults.add(
                "it has another number of coordinates than the reference.",
                where="feed-forward",
                expected=f"({n},)",
                found=f"{np.shape(self.feedforward(0.0))}",
            )
        faults.raise_if_any(DataError, "tracking control")

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        wanted, speed, _ = self.reference.at(t)
        force = self.kp * (wanted - q) + self.kd * (speed - qd)
        return force if self.feedforward is None else force + self.feedforward(t)


def feedforward(
    machine: Machine | Tree,
    reference: Reference,
    start: float,
    end: float,
    *,
    step: float = 2e-3,
    friction_speed: float = 0.0,
) -> Callable[[float], Array]:
    """Γ_ff(t) = Γ(q_r, q̇_r, q̈_r) of a model on a fixed base: a cubic spline through one value every `step` seconds.

    Of a machine with loops, reference and forces are those of its independent coordinates. Drive gains have no signal.

    `friction_speed`: the controller takes dry friction as rounded off below it where given, so that it switches gently;
    with 0 it is sign(v), which the spline rounds within a step.
    """
    model = tree_of(machine)
    if not (step > 0.0 and end > start and friction_speed >= 0.0):
        raise DataError(
            "its times or its friction speed are not usable.",
            where="feed-forward",
            expected="a step above zero, an end after the start, a friction speed of zero or more",
            found=f"{step:g} s, {start:g} s to {end:g} s, {friction_speed:g}",
        )
    t = start + step * np.arange(int(np.ceil((end - start) / step)) + 1, dtype=np.float64)
    motion = closed_motion(model, t, *reference.at(t)) if model.loops else Motion(t, *reference.at(t))
    idle = {e.signal: np.zeros(len(t)) for e in model.elements if e.kind in ("drive_gain", "dc_motor")}
    idle |= {f"{e.parameter_name}.i": np.zeros(len(t)) for e in model.elements if e.kind == "dc_motor"}
    motion = replace(motion, signals=idle)
    forces = inverse_dynamics(model, motion, "joints")
    if friction_speed > 0.0:
        change = _softer(model, motion, friction_speed)
        forces += np.einsum("nij,ni->nj", loop_jacobian(model, motion.q), change) if model.loops else change
    table, first, last = spline_at(CubicSpline(t, forces)), float(t[0]), float(t[-1])
    return lambda time: table(min(max(time, first), last))


def _softer(model: Tree, motion: Motion, speed: float) -> Array:
    """What dry friction changes by when sign(v) is rounded off below a speed."""
    change, values = np.zeros_like(motion.qd), complete_values(model)
    state, first = state_of(model, motion), len(model.rows) - model.n
    o = outward(model, state, ARRAYS)
    for e in model.elements:
        if e.has_sign:
            gain = values[model.parameters.index(e.parameter_name)]
            soft, sharp = (element_rows(model, e, state, o, motion.signals, a) for a in (_Rounded(speed), ARRAYS))
            for r in sharp:
                change[:, r - first] += gain * (soft[r] - sharp[r])
    return change


@dataclass(frozen=True)
class _Rounded(ArrayAlgebra):
    """sign(v) rounded off below a speed."""

    speed: float

    def sign(self, x: Array) -> Array:
        return rounded_sign(x, self.speed)
