"""Control laws as forces for :func:`~veridyn.mechanics.system.integrate.integrate`: joints that follow a reference.

    Γ = Γ_ff(t) + K_p (q_r(t) − q) + K_d (q̇_r(t) − q̇)

The law is continuous in time, as a drive whose own loop is much faster than the motion. Γ_ff comes from a model along the
reference, so the law needs no model while it runs; a wrong model leaves a tracking error, which the feedback bounds.
Units: N*m or N for Γ, per rad or m for the gains.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline, PPoly

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import element_rows
from veridyn.mechanics.tree.recursion.inputs import complete_values, state_of
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS, ArrayAlgebra, rounded_sign


def spline_at(spline: PPoly) -> Callable[[float], Array]:
    """The values of a cubic spline as a function of one time, equal to the spline's own to rounding, in a tenth of its time.

    Beyond the ends the first and the last cubic go on, as the spline's own do.
    """
    knots, c = spline.x.tolist(), np.ascontiguousarray(np.moveaxis(spline.c, 1, 0))

    def at(time: float) -> Array:
        k = min(max(bisect_right(knots, time) - 1, 0), len(c) - 1)
        h, (a, b, slope, value) = time - knots[k], c[k]
        return ((a * h + b) * h + slope) * h + value

    return at


class Reference(Protocol):
    """A motion to follow: q, q̇ and q̈ at times of any shape (…,), each (…, n)."""

    def at(self, t: ArrayLike, /) -> tuple[Array, Array, Array]: ...


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
