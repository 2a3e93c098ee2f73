"""States over the freedoms of a tree for callers in Python: names, where it starts, steps of many at once, what a state is checked by.

A start is given by a few numbers by name, a free base's attitude in angles. Checked are energies and how far loops are open; where a state
cannot be reached, the reason is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, SimulationError, did_you_mean
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.closure import close
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.steps.record import (
    A_X,
    ADVANCE,
    CLOCK,
    COUNT_V,
    DELTA,
    DONE,
    EXTRA,
    FORCES,
    FREEDOM,
    LAM,
    LAM_X,
    LOOPED,
    RATE,
    REACTIONS,
    SLOT_MOTION,
    SLOT_TANGENT,
    START,
    STATE,
    STATES,
    UNKNOWN,
    UNSETTLED,
    V_Z,
    VARYING,
    A,
    B,
    F,
    R,
    V,
    X,
    call_step,
)
from veridyn.mechanics.tree.steps.step_kernel import MAX_ITERATIONS
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import angles_of, matrix_of, rotation_vector

BASE_NAMES = ("base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw")
BASE_RATES = ("base.vx", "base.vy", "base.vz", "base.wx", "base.wy", "base.wz")
Numbers = NDArray[np.int64]


class _Freed(Protocol):
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def free(self) -> bool: ...
    @property
    def f(self) -> int: ...
    def attitude(self, q: Array, /) -> Array: ...


class OverFreedoms:
    """The part of :class:`~veridyn.mechanics.formulation.MachineModel` that is the same for every model over the freedoms of a tree.

    There is one set of them, those of a free base first, whose attitude is changed by turns in its own axes.
    """

    @property
    def left_out(self) -> tuple[str, ...]:
        """Constraints that follow from others: all are kept."""
        return ()

    def keeping(self) -> Self:
        """The same model, which has no other set."""
        return self

    def change(self, at: Instant, to: int) -> Array:
        """d(z, ż)/d(z, ż)."""
        return np.eye(2 * at.R.shape[1])

    def names_in(self: _Freed, number: int) -> tuple[str, ...]:
        """The independent coordinates of the one set."""
        return self.names

    @cached_property
    def rate_names(self: _Freed) -> tuple[str, ...]:
        """Of a free base in the axes of what they are, then of the joints."""
        first = 6 if self.free else 0
        return (*BASE_RATES[:first], *(f"{name}_dot" for name in self.names[first:]))

    def reporting(self: _Freed, q: Array) -> Array | None:
        """d(reported z)/d(change of z) (…, f, f) where they differ: roll, pitch, yaw against a turn in the base's axes; None elsewhere."""
        return reported_attitude(self.f, self.attitude(q)) if self.free else None

    def turn(self: _Freed, qa: Array, qb: Array) -> Array:
        """The turn of a free base (…, 3), in its own axes, that leads from the configuration b to a."""
        return rotation_vector(np.swapaxes(self.attitude(qb), -1, -2) @ self.attitude(qa))


def independent_joints(
    tree: Tree, independents: Iterable[str] = ()
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Numbers of the coordinates that determine a tree, by default the actuated ones, of those that follow, and of the equations used."""
    if not tree.loops:
        return tuple(k for k in range(tree.n) if k not in tree.held), (), ()
    split = splitting(tree, tuple(independents) or "actuated")
    return tuple(k for k in split.given if k not in tree.held), split.solved, split.rows


def named_start(
    tree: Tree, z: Sequence[int], given: Mapping[str, float] | None, rates: Mapping[str, float] | None
) -> tuple[Array, Array, dict[str, float]]:
    """A configuration, the rates of the independent coordinates z, and q.C of prescribed ones, from coordinates and rates by name."""
    free, faults = tree.base == "free", Faults()
    places, speeds = dict(given or {}), dict(rates or {})
    known = {*tree.coordinates, *(BASE_NAMES if free else ())}
    free_names = [tree.coordinates[k] for k in z]
    for what, names in (("start", places), ("rates", speeds)):
        for name, value in names.items():
            if name not in known:
                faults.add(f"there is no coordinate '{name}'.", where=what, hint=did_you_mean(name, sorted(known)))
            elif not np.isfinite(value):
                faults.add(f"that of '{name}' is not a number.", where=what, found=f"{value}")
    for name in speeds:
        if name in tree.coordinates and name not in free_names:
            faults.add(
                f"the rate of '{name}' follows from the others.",
                where="rates",
                expected=f"rates of {', '.join(free_names)}",
            )
    faults.raise_if_any(DataError, tree.name)
    q = np.array([places.get(c, 0.0) for c in tree.coordinates])
    if tree.loops:
        leading = [*free_names, *tree.prescribed]
        home = splitting(tree, leading).home
        wanted = np.array([[places.get(c, float(home[tree.coordinates.index(c)])) for c in leading]])
        q = close(tree, wanted, at=leading, path=False).q[0]
    x, rate = q, np.array([speeds.get(c, 0.0) for c in free_names])
    if free:
        p = [places.get(name, 0.0) for name in BASE_NAMES]
        x = np.concatenate([p[:3], _quaternion(*p[3:]), q])
        rate = np.concatenate([[speeds.get(name, 0.0) for name in BASE_NAMES], rate])
    return x, rate, {f"q.{c}": float(q[tree.coordinates.index(c)]) for c in tree.prescribed}


def led_inputs(prescribed: Sequence[str]) -> tuple[str, ...]:
    """The inputs of prescribed coordinates: q.C of each, then qd.C, then qdd.C."""
    return tuple(f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in prescribed)


def reported_attitude(f: int, attitude: Array) -> Array:
    """d(reported z)/d(change of z) (…, f, f): roll, pitch and yaw, coordinates 3 to 5, against a turn in the base's axes (…, 3, 3)."""
    roll, pitch, _ = np.moveaxis(angles_of(attitude), -1, 0)
    s, c, t, q = np.sin(roll), np.cos(roll), np.tan(pitch), np.cos(pitch)
    T = np.broadcast_to(np.eye(f), (*attitude.shape[:-2], f, f)).copy()
    T[..., 3, 4], T[..., 3, 5] = s * t, c * t
    T[..., 4, 4], T[..., 4, 5] = c, -s
    T[..., 5, 4], T[..., 5, 5] = s / q, c / q
    return T


def _quaternion(roll: float, pitch: float, yaw: float) -> Array:
    """Of Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.array([roll, pitch, yaw]) / 2), np.sin(np.array([roll, pitch, yaw]) / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def tree_energies(tree: Tree, values: Array, q: Array, qd: Array) -> Array:
    """Kinetic, gravity's and elastic energy (J), (N, 3), of configurations (N, nq) and rates (N, nv), with these parameters."""
    N, free = len(q), tree.base == "free"
    base, R = None, None
    if free:
        R = matrix_of(q[:, 3:7])
        velocity = np.einsum("nji,nj->ni", R, qd[:, :3])
        base = BaseMotion(qd[:, 3:6], np.zeros((N, 3)), np.zeros((N, 3)), velocity)
    joints = qd[:, 6 if free else 0 :]
    motion = Motion(np.arange(float(N)), q[:, 7 if free else 0 :], joints, np.zeros_like(joints), base)
    found = energy(tree, motion, base_rotation=R, base_position=q[:, :3] if free else None, parameters=values)
    return np.column_stack([found.kinetic, found.gravity, found.elastic])


def loop_errors(tree: Tree, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
    """The largest error of the equations of the loops, of their rates and of their second rates, at one state."""
    if not tree.loops:
        return 0.0, 0.0, 0.0
    n, joints = tree.n, slice(-tree.n, None)
    T = loop_values(tree, q[None, joints], qd[None, joints])[0]
    J = T[:, :n]
    errors = (T[:, n], J @ qd[joints], J @ qdd[joints] + T[:, n + 1])
    first, second, third = (float(np.abs(x).max(initial=0.0)) for x in errors)
    return first, second, third


def state_error(
    tree: Tree, independents: Sequence[int], state: int, h: float, *, finite: bool
) -> SimulationError | DataError:
    """Why the kernels end with this `state`: of a step of h seconds, or of a pose where h is zero."""
    if state == UNSETTLED:
        return SimulationError(
            f"a step of {h:.6g} s does not converge in {MAX_ITERATIONS} iterations.",
            where=tree.name,
            hint="Try a smaller step, or look for a pose where the machine locks.",
        )
    names = ", ".join(tree.coordinates[k] for k in independents)
    return (SimulationError if h else DataError)(
        Fault(
            "the machine cannot reach this state." if tree.loops else "the mass matrix is singular here.",
            where=tree.name,
            expected=f"all loops closed, and a pose where {names} determine the others"
            if tree.loops
            else "a positive mass matrix and finite numbers",
            found="a singular pose, or loops that cannot be closed" if finite else "a state that is not finite",
            hint="Look at the correction that leads here: a wild reading without a gate, or a start far from the truth.",
        )
    )


@core
def set_unknown(I: Numbers, W: Array) -> None:
    """Generalised forces B u of UNKNOWN are added to EXTRA, and values of what varies and of states put where the kernels read them."""
    k, u = I[FORCES], I[UNKNOWN]
    for j in range(k):
        for i in range(I[COUNT_V]):
            W[I[EXTRA] + i] += W[I[B] + i * k + j] * W[u + j]
    for j in range(I[VARYING]):
        motion, tangent = I[I[SLOT_MOTION] + j], I[I[SLOT_TANGENT] + j]
        if motion >= 0:
            W[motion] = W[u + k + j]
        if tangent >= 0:
            W[tangent] = W[u + k + j]


@core
def put(I: Numbers, W: Array, section: int, values: Array) -> None:
    """Write a section."""
    for i in range(len(values)):
        W[I[section] + i] = values[i]


@core
def get(I: Numbers, W: Array, section: int, out: Array) -> None:
    """Read a section, row by row, into an array of its size."""
    flat = out.reshape(out.size)
    for i in range(len(flat)):
        flat[i] = W[I[section] + i]


@kept
def tree_trapezoid(
    I: Numbers,
    W: Array,
    x: Array,
    delta: Array,
    rate: Array,
    extra: Array,
    unknown: Array,
    since: float,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each state x (N, nq) ⊞ delta (N, f) with rates `rate` (N, f) one step h on, or for h = 0 that state itself.

    `since`: the time that has passed since the values of prescribed coordinates were given. First DONE, SINGULAR or UNSETTLED; then
    (N, …) of x, v, a, λ, R, ∂v/∂z, ∂a/∂(z, ż, u), ∂λ/∂(z, ż, u), F, and of the unknown quantities, of which states of elements have moved.
    """
    many, nv, m, f, u = len(x), I[COUNT_V], I[LOOPED], I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    xs, v, a, lam = np.empty((many, x.shape[1])), np.empty((many, nv)), np.empty((many, nv)), np.empty((many, m))
    size = many if derivative else 0
    r, v_z, a_x = np.empty((many, nv, f)), np.empty((size, nv, f)), np.empty((size, nv, u))
    lam_x, F_, state = np.empty((size, m, u)), np.empty((size, 2 * f + I[STATES], u)), 0
    after = np.empty(unknown.shape)
    for i in range(many):
        put(I, W, EXTRA, extra)
        put(I, W, UNKNOWN, unknown[i])
        set_unknown(I, W)
        put(I, W, START, x[i])
        put(I, W, X, x[i])
        put(I, W, DELTA, delta[i])
        put(I, W, RATE, rate[i])
        W[I[CLOCK]] = since
        state = call_step(I, ADVANCE, W, h, REACTIONS if derivative else STATE)
        if state != DONE:
            break
        get(I, W, X, xs[i])
        get(I, W, V, v[i])
        get(I, W, A, a[i])
        get(I, W, LAM, lam[i])
        get(I, W, R, r[i])
        get(I, W, UNKNOWN, after[i])
        if derivative:
            get(I, W, V_Z, v_z[i])
            get(I, W, A_X, a_x[i])
            get(I, W, LAM_X, lam_x[i])
            get(I, W, F, F_[i])
    return state, xs, v, a, lam, r, v_z, a_x, lam_x, F_, after


@core
def turn_between(a: Array, b: Array, out: Array) -> None:
    """The rotation vector of the turn from the unit quaternion a to b, in the axes of a."""
    w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
    out[0] = a[0] * b[1] - a[1] * b[0] - a[2] * b[3] + a[3] * b[2]
    out[1] = a[0] * b[2] - a[2] * b[0] - a[3] * b[1] + a[1] * b[3]
    out[2] = a[0] * b[3] - a[3] * b[0] - a[1] * b[2] + a[2] * b[1]
    sine = np.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    scale = 2.0 * np.arctan2(sine, abs(w)) / sine if sine > 0.0 else 2.0
    for i in range(3):
        out[i] *= scale if w >= 0.0 else -scale
