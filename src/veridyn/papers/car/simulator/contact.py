"""Where a tyre meets the road, and the wrench that the road exerts there, carried to the wheel centre; and compiled vector algebra.

The wheel is a thin disc; the road is its tangent plane below the wheel centre. Load acts along the road's normal n, side and
longitudinal forces in its plane, x̂ = e × n with e the spin axis. Slips relax over the distances σ:

    u̇ = −(Vx − r_e Ω) − |Vx| u / σ_κ,  κ = u / σ_κ;      v̇ = Vy − |Vx| v / σ_α,  tan α = v / σ_α

so that a tyre at rest is a spring; below walking pace a damper is added to it. Signs are those of ISO 8855.

Three-vectors are tuples of floats: in compiled equations tuples live in registers, arrays in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core, lean
from veridyn.mechanics.ground.tyre import (
    combined_forces,
    effective_radius,
    overturning_moment,
    relaxation_lengths,
    rolling_moment,
    vertical_force,
)
from veridyn.mechanics.ground.tyre_parameters import TyreParameters, mirrored

Array: TypeAlias = NDArray[np.float64]
V3: TypeAlias = tuple[float, float, float]
M3: TypeAlias = tuple[V3, V3, V3]
SLOW_SPEED = 2.0  # m/s, below which slip is damped
SLOW_DAMPING = 600.0  # N s/m at rest, of each direction
STANDING_SPEED = 0.2  # m/s, over which the trail turns round with the direction of rolling
MAX_STANDING_SLIP = 1.5  # the slip at which a standing tyre's deflection stops growing


@lean
def add(a: V3, b: V3) -> V3:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@lean
def sub(a: V3, b: V3) -> V3:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@lean
def scale(k: float, a: V3) -> V3:
    return (k * a[0], k * a[1], k * a[2])


@lean
def dot(a: V3, b: V3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@lean
def cross(a: V3, b: V3) -> V3:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@lean
def turned(R: M3, a: V3) -> V3:
    """R a."""
    return (dot(R[0], a), dot(R[1], a), dot(R[2], a))


@lean
def turned_back(R: M3, a: V3) -> V3:
    """Rᵀ a."""
    return add(add(scale(a[0], R[0]), scale(a[1], R[1])), scale(a[2], R[2]))


@core
def third(a: Array) -> V3:
    """The first three numbers of an array."""
    return (a[0], a[1], a[2])


@core
def put(a: Array, v: V3) -> None:
    """v in the place of the first three numbers of an array."""
    a[0], a[1], a[2] = v[0], v[1], v[2]


@lean
def symmetric(J: Array, a: V3) -> V3:
    """J a, with J given as XX XY XZ YY YZ ZZ."""
    return (
        J[0] * a[0] + J[1] * a[1] + J[2] * a[2],
        J[1] * a[0] + J[3] * a[1] + J[4] * a[2],
        J[2] * a[0] + J[4] * a[1] + J[5] * a[2],
    )


@lean
def attitude(w: float, x: float, y: float, z: float) -> M3:
    """The rotation matrix of a quaternion of length one, scalar first."""
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


@dataclass(frozen=True)
class LinearTyre:
    """A tyre without saturation, moments or rolling resistance, for closed forms: N per unit of slip, whatever the load."""

    c_kappa: float = 80e3
    c_alpha: float = 70e3
    radius: float = 0.313
    stiffness: float = 220e3
    damping: float = 0.0
    relaxation: tuple[float, float] = (0.2, 0.5)

    def packed(self) -> Array:
        return np.array((self.c_kappa, self.c_alpha, self.radius, self.stiffness, self.damping, *self.relaxation))


class TyreNumbers(NamedTuple):
    """One row for each wheel: of a linear tyre, or Magic Formula coefficients."""

    magic: bool
    linear: Array
    formula: Array
    radius: Array


def packed_tyres(front: TyreParameters | LinearTyre, rear: TyreParameters | LinearTyre) -> TyreNumbers:
    """A left tyre for each axle; the right ones are their mirror images."""
    if isinstance(front, LinearTyre) and isinstance(rear, LinearTyre):
        rows = np.array([front.packed(), front.packed(), rear.packed(), rear.packed()])
        return TyreNumbers(False, rows, np.zeros((4, 1)), rows[:, 2].copy())
    if isinstance(front, TyreParameters) and isinstance(rear, TyreParameters):
        rows = np.array([t.packed for t in (front, mirrored(front), rear, mirrored(rear))])
        radius = np.array([t.UNLOADED_RADIUS for t in (front, front, rear, rear)])
        return TyreNumbers(True, np.zeros((4, 7)), rows, radius)
    raise TypeError("one axle has a linear tyre and the other a Magic Formula tyre")


@lean
def contact(
    i: int,
    P: TyreNumbers,
    n: V3,
    e: V3,
    height: float,
    vP: V3,
    w: V3,
    spin: float,
    u: float,
    v: float,
    mu: float,
    out: Array,
) -> tuple[V3, V3, float, float]:
    """(force, moment about the wheel centre, u̇, v̇) of one tyre, in the frame of the vectors given.

    `n` the road's normal, `e` the spin axis, `height` of the wheel centre above the road's plane, `vP` its velocity, `w` the
    carrier's angular velocity, `spin` relative to it. To `out`: Fz, deflection, its rate, κ, α, Fx, Fy.
    """
    lean = dot(n, e)
    upright = np.sqrt(1.0 - lean * lean)
    up = scale(1.0 / upright, sub(n, scale(lean, e)))
    ahead = scale(1.0 / upright, cross(e, n))
    left = cross(n, ahead)
    radius = P.radius[i]
    deflection = radius * upright - height
    rate = -dot(vP, n)
    arm = scale(-height / upright, up)
    Vx = dot(vP, ahead)
    Vy = dot(add(vP, cross(w, arm)), left)
    omega = spin + dot(w, e)
    camber = np.arcsin(lean)  # a turn about +x lifts e, and the top leans right
    if P.magic:
        p = P.formula[i]
        fz = vertical_force(p, deflection, rate)
        re = effective_radius(p, deflection)
        sk, sa = relaxation_lengths(p, fz, camber)
    else:
        q = P.linear[i]
        fz = max(q[3] * deflection + q[4] * rate, 0.0) if deflection > 0.0 else 0.0
        re = radius - deflection / 3.0
        sk, sa = q[5], q[6]
    slide = Vx - re * omega
    slow = 0.0
    if abs(Vx) < SLOW_SPEED and fz > 0.0:
        slow = 0.5 * SLOW_DAMPING * (1.0 + np.cos(np.pi * Vx / SLOW_SPEED))
    kappa, tan_alpha = u / sk, v / sa
    ud = -slide - abs(Vx) * kappa
    vd = Vy - abs(Vx) * tan_alpha
    if abs(kappa) > MAX_STANDING_SLIP and u * ud > 0.0:
        ud = 0.0
    if abs(tan_alpha) > MAX_STANDING_SLIP and v * vd > 0.0:
        vd = 0.0
    alpha = np.arctan(tan_alpha)
    fx, fy, mx, my, mz = 0.0, 0.0, 0.0, 0.0, 0.0
    if fz > 0.0:
        if P.magic:
            p = P.formula[i]
            fx, fy, mz = combined_forces(p, fz, kappa, alpha, camber, mu, np.tanh(Vx / STANDING_SPEED))
            mx = overturning_moment(p, fz, fy, camber)
            my = rolling_moment(p, fz, fx, Vx, omega)
        else:
            q = P.linear[i]
            fx, fy = q[0] * kappa, -q[1] * tan_alpha
        fx -= slow * slide
        fy -= slow * Vy
    else:
        ud = -u * 50.0
        vd = -v * 50.0
    force = add(add(scale(fx, ahead), scale(fy, left)), scale(fz, n))
    moment = add(add(scale(mx, ahead), scale(my, e)), scale(mz, n))
    out[0], out[1], out[2], out[3], out[4], out[5], out[6] = fz, deflection, rate, kappa, alpha, fx, fy
    return force, add(moment, cross(arm, force)), ud, vd
