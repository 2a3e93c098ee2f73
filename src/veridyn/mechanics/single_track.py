"""The lateral motion of a car on two axles: slip angles, tyre curves with load transfer, and what its sensors read.

    v̇ = (F_f cos δ + F_r)/m − V r − g φ,      r ̇= (a F_f cos δ − b F_r)/I_z                  v lateral speed, r yaw rate, V speed
    α_f = δ − atan((v + a r)/V) + ε_f,       α_r = −atan((v − b r)/V) + ε_r,                  δ = steering/ratio − offset
    F = Σ over the axle's wheels of D tanh(C α/D),   C = c Z,  D = μ Z √(1 − (X/μZ)²)           Z load, X drive or brake force
    ε̇ = −ε/τ_ε,  φ̇ = −φ/τ_φ   (+ white noise)

ε_f and ε_r are what the tyre curves get wrong, as slip angles; φ is the bank of the road, or whatever else looks like one. `linear` tyres
have F = C α, `magic` ones D sin(s atan(C α/(s D))) with the shape s. Wheel loads follow the measured longitudinal acceleration and V r;
with a load sensitivity k a wheel has C and μ times 1 − k (Z/Z₀ − 1), so that load transfer across an axle costs grip.

Axes x forward, y left, z up; angles in rad. Valid where the car moves forward: below `SLOWEST` the slip angles are those at `SLOWEST`.
Derivatives are exact: by the chain rule for what moves, by complex steps through the same equations, Im f(x + i h)/h, for parameters.
All functions have the form of C that :mod:`veridyn.observe.filters.callable_step` calls:
(x, u, p, clock, out) with u = (speed, steering, longitudinal acceleration) and p as :func:`packed` lays it out. Where u has six
entries, the last three are the same inputs over the step that follows, such as their means; readings use the first three.
Reference: R. Rajamani, "Vehicle Dynamics and Control", 2nd ed., Springer 2012, sections 2.3 and 3.1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.core import types
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.mechanics.compiled import address_of, inner, kept
from veridyn.model.car import PARAMETERS, TYRE_LAWS

GRAVITY = 9.81  # m/s²
SLOWEST = 3.0  # m/s
LEAST_GRIP = 0.1  # of the squared friction that a drive or brake force leaves
COMPLEX_STEP = 1e-30
MOVING = ("lateral_speed", "yaw_rate", "front_slip_error", "rear_slip_error", "bank")  # states, before parameters
VY, YAW, FRONT_ERROR, REAR_ERROR, BANK = range(5)
MASS, FRONT, REAR, HEIGHT, TRACK, INERTIA, CF, CR, MUF, MUR, SHAPE, SENSITIVE, ROLL_SHARE = range(13)
RATIO, OFFSET, ROLL_GRADIENT, DRAG, BRAKE, DRIVE, GYRO, AY_BIAS, SLIP_TIME, BANK_TIME = range(13, 23)
COUNT = len(PARAMETERS)
LAWS = {law: code for code, law in enumerate(TYRE_LAWS)}
LINEAR, TANH = LAWS["linear"], LAWS["tanh"]
# What may be read: measured outputs first, then what nobody measures.
READINGS = (
    "yaw_rate",
    "ay",
    "roll",
    "sideslip",
    "lateral_speed",
    "front_force",
    "rear_force",
    "front_slip",
    "rear_slip",
    "load_fl",
    "load_fr",
    "load_rl",
    "load_rr",
)
READING_UNITS = ("rad/s", "m/s^2", "rad", "rad", "m/s", "N", "N", "rad", "rad", "N", "N", "N", "N")


def packed(values: ArrayLike, law: str, estimated: Sequence[int], readings: Sequence[int]) -> Array:
    """p: the values (23,) of `PARAMETERS`, the tyre law, then how many of them are states and which, how many readings and which."""
    tail = [
        float(LAWS[law]),
        float(len(estimated)),
        *map(float, estimated),
        float(len(readings)),
        *map(float, readings),
    ]
    return np.concatenate([np.asarray(values, dtype=np.float64), tail])


@inner
def _axle(alpha, load, transfer, push, stiffness, friction, shape, sensitive, law):
    """The lateral force of the two wheels of an axle with the slip angle `alpha`, and its derivative by it; numbers may be complex."""
    total, slope = 0.0 * (alpha + transfer), 0.0 * (alpha + transfer)
    one = transfer == 0.0
    for side in (-1.0, 1.0):
        if one and side < 0.0:
            continue
        Z = load if one else 0.5 * load + side * transfer
        if Z.real <= 1.0:
            continue
        less = 1.0 if one else 1.0 - sensitive * (2.0 * Z / load - 1.0)
        C = stiffness * Z * less
        if law == LINEAR:
            total += C * alpha
            slope += C
            continue
        D = friction * Z * less
        share = (push if one else 0.5 * push) / D
        left = 1.0 - share * share
        D = D * np.sqrt(left if left.real > LEAST_GRIP else LEAST_GRIP + 0.0 * left)
        if law == TANH:
            T = np.tanh(C * alpha / D)
            total += D * T
            slope += C * (1.0 - T * T)
        else:
            z = C * alpha / (shape * D)
            angle = shape * np.arctan(z)
            total += D * np.sin(angle)
            slope += C * np.cos(angle) / (1.0 + z * z)
    return total, slope


@inner
def _acting(yaw, u, q):
    """Speed, δ, loads of the axles, their drive or brake forces, and the load that each axle moves across: eight numbers."""
    m, ax = q[MASS], u[2]
    V = max(u[0], SLOWEST)
    L = q[FRONT] + q[REAR]
    Zf, Zr = m * (GRAVITY * q[REAR] - q[HEIGHT] * ax) / L, m * (GRAVITY * q[FRONT] + q[HEIGHT] * ax) / L
    X = m * ax + q[DRAG] * u[0] * u[0]
    front = q[DRIVE] if ax > 0.0 else q[BRAKE]
    shift = 0.0 * yaw * m
    if q[TRACK].real > 0.0:
        shift = m * V * yaw * q[HEIGHT] / q[TRACK]
    delta = u[1] / q[RATIO] - q[OFFSET]
    return V, delta, Zf, Zr, front * X, (1.0 - front) * X, q[ROLL_SHARE] * shift, (1.0 - q[ROLL_SHARE]) * shift


@inner
def _axles(x, u, q, law):
    """F_f, F_r, their derivatives by α_f and α_r, these, δ, and the loads and transfers of the axles."""
    V, delta, Zf, Zr, Xf, Xr, to_front, to_rear = _acting(x[YAW], u, q)
    alpha_f = delta - np.arctan((x[VY] + q[FRONT] * x[YAW]) / V) + x[FRONT_ERROR]
    alpha_r = -np.arctan((x[VY] - q[REAR] * x[YAW]) / V) + x[REAR_ERROR]
    Ff, Cf = _axle(alpha_f, Zf, to_front, Xf, q[CF], q[MUF], q[SHAPE], q[SENSITIVE], law)
    Fr, Cr = _axle(alpha_r, Zr, to_rear, Xr, q[CR], q[MUR], q[SHAPE], q[SENSITIVE], law)
    return Ff, Fr, Cf, Cr, alpha_f, alpha_r, delta, Zf, Zr, to_front, to_rear


@inner
def _rates(x, u, q, law, out):
    """ẋ of the moving states into `out` (5,)."""
    Ff, Fr, _, _, _, _, delta, _, _, _, _ = _axles(x, u, q, law)
    Ff = Ff * np.cos(delta)
    out[VY] = (Ff + Fr) / q[MASS] - max(u[0], SLOWEST) * x[YAW] - GRAVITY * x[BANK]
    out[YAW] = (q[FRONT] * Ff - q[REAR] * Fr) / q[INERTIA]
    out[FRONT_ERROR], out[REAR_ERROR] = -x[FRONT_ERROR] / q[SLIP_TIME], -x[REAR_ERROR] / q[SLIP_TIME]
    out[BANK] = -x[BANK] / q[BANK_TIME]


@inner
def _reading(code, x, u, q, law):
    """What one sensor of `READINGS` reads."""
    if code == 0:
        return x[YAW] + q[GYRO]
    if code == 3:
        return np.arctan(x[VY] / max(u[0], SLOWEST)) + 0.0 * q[GYRO]
    if code == 4:
        return x[VY] + 0.0 * q[GYRO]
    Ff, Fr, _, _, alpha_f, alpha_r, delta, Zf, Zr, to_front, to_rear = _axles(x, u, q, law)
    push = (Ff * np.cos(delta) + Fr) / q[MASS]
    if code == 1:
        return push * (1.0 + GRAVITY * q[ROLL_GRADIENT]) + q[AY_BIAS]
    if code == 2:
        return q[ROLL_GRADIENT] * push
    if code == 5:
        return Ff
    if code == 6:
        return Fr
    if code == 7:
        return alpha_f
    if code == 8:
        return alpha_r
    load = 0.5 * (Zf if code < 11 else Zr)
    moved = to_front if code < 11 else to_rear
    return load + (-moved if code % 2 else moved) + 0.0 * push


@inner
def _parameters(x, p, k):
    """The values of `PARAMETERS`, those that are states from the state."""
    q = np.empty(COUNT)
    for i in range(COUNT):
        q[i] = p[i]
    for j in range(k):
        q[int(p[COUNT + 2 + j])] = x[5 + j]
    return q


@inner
def _slipping(x, u, q):
    """∂α_f/∂v, ∂α_f/∂r, ∂α_r/∂v, ∂α_r/∂r."""
    V = max(u[0], SLOWEST)
    s, t = (x[VY] + q[FRONT] * x[YAW]) / V, (x[VY] - q[REAR] * x[YAW]) / V
    f, r = -1.0 / (V * (1.0 + s * s)), -1.0 / (V * (1.0 + t * t))
    return f, q[FRONT] * f, r, -q[REAR] * r


@inner
def _transferred(x, u, q, law):
    """∂F_f/∂r and ∂F_r/∂r through the load that yawing moves across, at constant slip angles."""
    if q[TRACK] == 0.0 or q[SENSITIVE] == 0.0:
        return 0.0, 0.0
    _, _, _, _, alpha_f, alpha_r, _, Zf, Zr, to_front, to_rear = _axles(x, u, q, law)
    _, _, _, _, Xf, Xr, df, dr = _acting(x[YAW] + 1j * COMPLEX_STEP, u, q)
    Ff, _ = _axle(alpha_f + 0j, Zf, to_front + 1j * df.imag, Xf, q[CF], q[MUF], q[SHAPE], q[SENSITIVE], law)
    Fr, _ = _axle(alpha_r + 0j, Zr, to_rear + 1j * dr.imag, Xr, q[CR], q[MUR], q[SHAPE], q[SENSITIVE], law)
    return Ff.imag / COMPLEX_STEP, Fr.imag / COMPLEX_STEP


@inner
def _complex(x, q, n):
    z, w = np.empty(n, np.complex128), np.empty(COUNT, np.complex128)
    for i in range(n):
        z[i] = x[i]
    for i in range(COUNT):
        w[i] = q[i]
    return z, w


@kept
def rates(x: Any, u: Any, p: Any, clock: Any, out: Any) -> None:
    """out (n,) = ẋ; parameters stand still."""
    k, n = int(p[COUNT + 1]), int(clock[2])
    _rates(x, carray(u, (n,))[n - 3 :], _parameters(x, p, k), int(p[COUNT]), out)
    for j in range(k):
        out[5 + j] = 0.0


@kept
def rate_slopes(x: Any, inputs: Any, p: Any, clock: Any, out: Any) -> None:
    """out (n, n) = ∂ẋ/∂x: by the chain rule for moving states, by complex steps for parameters."""
    k, law, given = int(p[COUNT + 1]), int(p[COUNT]), int(clock[2])
    n, q, u = 5 + k, _parameters(x, p, k), carray(inputs, (given,))[given - 3 :]
    for i in range(n * n):
        out[i] = 0.0
    _, _, Cf, Cr, _, _, delta, _, _, _, _ = _axles(x, u, q, law)
    cosine = np.cos(delta)
    Cf *= cosine
    fv, fr, rv, rr = _slipping(x, u, q)
    tf, tr = _transferred(x, u, q, law)
    tf *= cosine
    m, a, b, inertia = q[MASS], q[FRONT], q[REAR], q[INERTIA]
    out[VY * n + VY] = (Cf * fv + Cr * rv) / m
    out[VY * n + YAW] = (Cf * fr + tf + Cr * rr + tr) / m - max(u[0], SLOWEST)
    out[VY * n + FRONT_ERROR], out[VY * n + REAR_ERROR], out[VY * n + BANK] = Cf / m, Cr / m, -GRAVITY
    out[YAW * n + VY] = (a * Cf * fv - b * Cr * rv) / inertia
    out[YAW * n + YAW] = (a * (Cf * fr + tf) - b * (Cr * rr + tr)) / inertia
    out[YAW * n + FRONT_ERROR], out[YAW * n + REAR_ERROR] = a * Cf / inertia, -b * Cr / inertia
    out[FRONT_ERROR * n + FRONT_ERROR] = out[REAR_ERROR * n + REAR_ERROR] = -1.0 / q[SLIP_TIME]
    out[BANK * n + BANK] = -1.0 / q[BANK_TIME]
    if k == 0:
        return
    z, w = _complex(x, q, n)
    found = np.empty(5, np.complex128)
    for j in range(k):
        at = int(p[COUNT + 2 + j])
        w[at] = q[at] + 1j * COMPLEX_STEP
        _rates(z, u, w, law, found)
        w[at] = q[at]
        for i in range(5):
            out[i * n + 5 + j] = found[i].imag / COMPLEX_STEP


@kept
def readings(x: Any, u: Any, p: Any, clock: Any, out: Any) -> None:
    """out (m,) = what the sensors read."""
    k = int(p[COUNT + 1])
    q = _parameters(x, p, k)
    for i in range(int(p[COUNT + 2 + k])):
        out[i] = _reading(int(p[COUNT + 3 + k + i]), x, u, q, int(p[COUNT]))


@kept
def reading_slopes(x: Any, u: Any, p: Any, clock: Any, out: Any) -> None:
    """out (m, n) = ∂(readings)/∂x, as :func:`rate_slopes` finds its own."""
    k, law = int(p[COUNT + 1]), int(p[COUNT])
    n, m, q = 5 + k, int(p[COUNT + 2 + k]), _parameters(x, p, k)
    for i in range(n * m):
        out[i] = 0.0
    z, w = _complex(x, q, n)
    for i in range(m):
        code, row = int(p[COUNT + 3 + k + i]), i * n
        if code == 0:
            out[row + YAW] = 1.0
        elif code == 1:
            _, _, Cf, Cr, _, _, delta, _, _, _, _ = _axles(x, u, q, law)
            fv, fr, rv, rr = _slipping(x, u, q)
            tf, tr = _transferred(x, u, q, law)
            scale = (1.0 + GRAVITY * q[ROLL_GRADIENT]) / q[MASS]
            Cf, tf = Cf * np.cos(delta) * scale, tf * np.cos(delta) * scale
            Cr, tr = Cr * scale, tr * scale
            out[row + VY], out[row + YAW] = Cf * fv + Cr * rv, Cf * fr + tf + Cr * rr + tr
            out[row + FRONT_ERROR], out[row + REAR_ERROR] = Cf, Cr
        else:
            for j in range(5):
                z[j] = x[j] + 1j * COMPLEX_STEP
                out[row + j] = _reading(code, z, u, w, law).imag / COMPLEX_STEP
                z[j] = x[j]
        for j in range(k):
            at = int(p[COUNT + 2 + j])
            w[at] = q[at] + 1j * COMPLEX_STEP
            out[row + 5 + j] = _reading(code, z, u, w, law).imag / COMPLEX_STEP
            w[at] = q[at]


POINTER = types.CPointer(types.float64)
SIGNATURE = (POINTER,) * 5


class LateralFunction:
    """One of the four functions for Python, as ``f(x, u, t, p)``, and where machine code finds it (`veridyn_address`)."""

    def __init__(self, function: Any, rows: str, columns: str) -> None:
        self._shape = (rows, columns)
        self.veridyn_address = address_of(function, SIGNATURE)
        self._door = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 5)(self.veridyn_address)

    def __call__(self, x: Array, u: Array, t: float, p: Array) -> Array:
        state, given, evaluate = self.prepared(p, len(u))
        state[:], given[:] = x, u
        return evaluate()

    def prepared(self, p: Array, inputs: int = 3) -> tuple[Array, Array, Callable[[], Array]]:
        """Arrays for the state and for so many inputs, and what computes the function of what stands in them.

        For loops over many states: the result is one array, written again each time.
        """
        k = int(p[COUNT + 1])
        sizes = {"states": 5 + k, "readings": int(p[COUNT + 2 + k]), "": 1}
        out = np.empty(tuple(sizes[s] for s in self._shape if s))
        clock = np.array([0.0, 0.0, inputs])  # the equations are the same at all times
        arrays = (np.empty(5 + k), np.empty(inputs), np.array(p, dtype=np.float64), clock, out)
        places, door = [a.ctypes.data for a in arrays], self._door

        def evaluate() -> Array:
            door(*places)
            return arrays[-1]

        return arrays[0], arrays[1], evaluate


@cache
def lateral_functions() -> tuple[LateralFunction, ...]:
    """f, F, h and H for :class:`veridyn.observe.system.Continuous`, compiled or loaded now."""
    given = ((rates, "states", ""), (rate_slopes, "states", "states"), (readings, "readings", ""))
    return tuple(LateralFunction(*g) for g in (*given, (reading_slopes, "readings", "states")))
