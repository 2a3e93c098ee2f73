"""One tick of a control law, over scalars of any kind: numbers, arrays, or expressions, whose derivatives by state and constants are exact.

    requested(…) → Γ before limits,  limited(…) → Γ and the state after the tick

The laws are those of :mod:`veridyn.model.controller`. A limit is x (1 − s) + s L sign(x) with s = 1 beyond it and 0 within, so that what is
within it is unchanged to the last bit, and its derivative is 1 − s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from veridyn.model.controller import Controller
from veridyn.spatial.algebra import FLOATS, Algebra, Scalar, add, mul, sub

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
