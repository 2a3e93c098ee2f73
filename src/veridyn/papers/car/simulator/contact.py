"""Where a tyre meets the road, and the wrench that the road exerts there, carried to the wheel centre; and compiled vector algebra.

The wheel is a thin disc; the road is its tangent plane below the wheel centre. Load acts along the road's normal n, side and
longitudinal forces in its plane, x̂ = e × n with e the spin axis. Slips relax over the distances σ:

    u̇ = −(Vx − r_e Ω) − |Vx| u / σ_κ,  κ = u / σ_κ;      v̇ = Vy − |Vx| v / σ_α,  tan α = v / σ_α

so that a tyre at rest is a spring; below walking pace a damper is added to it. Signs are those of ISO 8855.

Three-vectors are tuples of floats, or of :data:`~veridyn.papers.car.simulator.lanes.Lanes` where they are one of each wheel: in compiled
equations tuples live in registers, arrays in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core, lean, merged
from veridyn.mechanics.ground.tyre_parameters import TyreParameters, mirrored
from veridyn.papers.car.simulator.lanes import (
    Lanes,
    anywhere,
    arctangent,
    four,
    hyperbolic_tangent,
    most,
    root,
    sine_cosine,
    size,
    where,
)
from veridyn.papers.car.simulator.magic_formula import (
    combined_forces,
    effective_radius,
    overturning_moment,
    relaxation_lengths,
    rolling_moment,
    vertical_force,
)

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
    """One column for each wheel: of a linear tyre, or Magic Formula coefficients."""

    magic: bool
    linear: Array
    formula: Array
    radius: Array


def packed_tyres(front: TyreParameters | LinearTyre, rear: TyreParameters | LinearTyre) -> TyreNumbers:
    """A left tyre for each axle; the right ones are their mirror images."""
    if isinstance(front, LinearTyre) and isinstance(rear, LinearTyre):
        rows = np.array([front.packed(), front.packed(), rear.packed(), rear.packed()])
        return TyreNumbers(False, rows.T.copy(), np.zeros((1, 4)), rows[:, 2].copy())
    if isinstance(front, TyreParameters) and isinstance(rear, TyreParameters):
        rows = np.array([t.packed for t in (front, mirrored(front), rear, mirrored(rear))])
        radius = np.array([t.UNLOADED_RADIUS for t in (front, front, rear, rear)])
        return TyreNumbers(True, np.zeros((7, 4)), rows.T.copy(), radius)
    raise TypeError("one axle has a linear tyre and the other a Magic Formula tyre")


class WheelContact(NamedTuple):
    """Of four tyres: force, moment about the wheel centre, rates of the slips; load, deflection and its rate, κ, α, Fx, Fy."""

    force: V3
    moment: V3
    slip_rates: tuple[Lanes, Lanes]
    of_tyre: tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]


@merged
def contact(
    P: TyreNumbers, n: V3, e: V3, height: Lanes, vP: V3, w: V3, spin: Lanes, u: Lanes, v: Lanes, mu: float
) -> WheelContact:
    """What the road does to four wheels, in the frame of the vectors given.

    `n` the road's normal, `e` the spin axis, `height` of the wheel centre above the road's plane, `vP` its velocity, `w` the
    carrier's angular velocity, `spin` relative to it.
    """
    lean = dot(n, e)
    upright = root(1.0 - lean * lean)
    upright_inverse = 1.0 / upright
    up = scale(upright_inverse, sub(n, scale(lean, e)))
    ahead = scale(upright_inverse, cross(e, n))
    left = cross(n, ahead)
    radius = four(P.radius, 0)
    deflection = radius * upright - height
    rate = -dot(vP, n)
    arm = scale(-height * upright_inverse, up)
    Vx = dot(vP, ahead)
    Vy = dot(add(vP, cross(w, arm)), left)
    omega = spin + dot(w, e)
    camber = arctangent(lean * upright_inverse)  # a turn about +x lifts e, and the top leans right
    p, q = P.formula, P.linear
    if P.magic:
        fz = vertical_force(p, deflection, rate)
        re = effective_radius(p, deflection)
        sk, sa = relaxation_lengths(p, fz, camber)
    else:
        fz = where(deflection > 0.0, most(four(q, 12) * deflection + four(q, 16) * rate, 0.0), 0.0)
        re = radius - deflection / 3.0
        sk, sa = four(q, 20), four(q, 24)
    slide = Vx - re * omega
    speed = size(Vx)
    kappa, tan_alpha = u / sk, v / sa
    ud = -slide - speed * kappa
    vd = Vy - speed * tan_alpha
    ud = where((size(kappa) > MAX_STANDING_SLIP) & (u * ud > 0.0), 0.0, ud)
    vd = where((size(tan_alpha) > MAX_STANDING_SLIP) & (v * vd > 0.0), 0.0, vd)
    alpha = arctangent(tan_alpha)
    carries = fz > 0.0
    if P.magic:
        fx, fy, mz = combined_forces(p, fz, kappa, alpha, camber, mu, hyperbolic_tangent(Vx / STANDING_SPEED))
        mx = overturning_moment(p, fz, fy, camber)
        my = rolling_moment(p, fz, fx, Vx, omega)
    else:
        fx, fy = where(carries, four(q, 0) * kappa, 0.0), where(carries, -four(q, 4) * tan_alpha, 0.0)
        mx = my = mz = 0.0 * fz
    if anywhere(carries & (speed < SLOW_SPEED)):
        slow = 0.5 * SLOW_DAMPING * (1.0 + sine_cosine(np.pi / SLOW_SPEED * Vx)[1])
        slow = where(carries & (speed < SLOW_SPEED), slow, 0.0)
        fx, fy = fx - slow * slide, fy - slow * Vy
    ud, vd = where(carries, ud, -50.0 * u), where(carries, vd, -50.0 * v)
    force = add(add(scale(fx, ahead), scale(fy, left)), scale(fz, n))
    moment = add(add(scale(mx, ahead), scale(my, e)), scale(mz, n))
    return WheelContact(force, add(moment, cross(arm, force)), (ud, vd), (fz, deflection, rate, kappa, alpha, fx, fy))
