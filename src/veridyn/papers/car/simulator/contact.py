"""Where a tyre meets the road, and the wrench that the road exerts there, carried to the wheel centre; and compiled vector algebra.

The wheel is a thin disc; the road is its tangent plane below the wheel centre. Load acts along the road's normal n, side and
longitudinal forces in its plane, x̂ = e × n with e the spin axis. Slips relax over the distances σ:

    u̇ = −(Vx − r_e Ω) − |Vx| u / σ_κ,  κ = u / σ_κ;      v̇ = Vy − |Vx| v / σ_α,  tan α = v / σ_α

so that a tyre at rest is a spring; below walking pace a damper is added to it. Signs are those of ISO 8855.

The Magic Formula of four tyres at once is written here a second time: that of :mod:`veridyn.mechanics.ground.tyre`, without branches.
Coefficients are an array (coefficients, 4), one column for each wheel, by the names of :mod:`veridyn.mechanics.ground.tyre_parameters`.
Limits and what happens without load are those of the other writing, whose documentation holds the equations.

Three-vectors are tuples of floats, or of :data:`~veridyn.papers.car.simulator.lanes.Lanes` where they are one of each wheel: in compiled
equations tuples live in registers, arrays in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import NamedTuple, TypeAlias

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, lean, merged
from veridyn.mechanics.ground import tyre_parameters as c
from veridyn.mechanics.ground.tyre_parameters import TyreParameters, mirrored
from veridyn.papers.car.simulator.lanes import (
    Lanes,
    anywhere,
    arctangent,
    exponential,
    four,
    hyperbolic_tangent,
    least,
    most,
    root,
    sine_cosine,
    size,
    where,
    with_sign,
)

SMALLEST_FORCE_N = 1e-9  # N: what a peak or a stiffness is at least, where it divides
LEAST_FRICTION = 1e-3  # of the measurement's: where the friction of the road divides
ROLLING_SPEED = 0.1  # m/s: rolling resistance grows to its full value over this speed
RELAXATION_FLOOR = (
    0.05  # m, so that a tyre without load, or without the coefficients, lags little and not infinitely little
)


@core
def _of(p: Array, name: int) -> Lanes:
    """A coefficient of the four tyres."""
    return four(p, 4 * name)


@core
def _line(p: Array, name: int, dfz: Lanes) -> Lanes:
    """A coefficient and the next, which belongs to df_z."""
    return _of(p, name) + _of(p, name + 1) * dfz


@core
def _square(p: Array, name: int, dfz: Lanes) -> Lanes:
    """Three coefficients, which belong to 1, df_z and df_z²."""
    return _of(p, name) + (_of(p, name + 1) + _of(p, name + 2) * dfz) * dfz


@core
def _nominal(p: Array) -> Lanes:
    return _of(p, c.FNOMIN) * _of(p, c.LFZO)


@merged
def _bent(bx: Lanes, e: Lanes) -> Lanes:
    """Bx − E (Bx − atan Bx); many tyres have no E in some of their curves."""
    if anywhere(size(e) > 0.0):
        return bx - e * (bx - arctangent(bx))
    return bx


@merged
def _formula(x: Lanes, b: Lanes, shape: Lanes, e: Lanes) -> tuple[Lanes, Lanes]:
    """sin and cos of C atan(Bx − E (Bx − atan Bx))."""
    return sine_cosine(shape * arctangent(_bent(b * x, e)))


@merged
def _cosine_of_atan(x: Lanes) -> Lanes:
    return 1.0 / root(1.0 + x * x)


@merged
def _away_from_zero(value: Lanes, smallest: float) -> Lanes:
    return where(size(value) > smallest, value, with_sign(smallest, value))


@merged
def _range(p: Array, value: Lanes, low: int) -> Lanes:
    """A value within its range, whose ends are a coefficient and the next."""
    return least(most(value, _of(p, low)), _of(p, low + 1))


@merged
def load_in_range(p: Array, fz: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """The load at which coefficients are taken, its df_z, and F_z over it; without load that of the nominal load, and no share."""
    nominal = _nominal(p)
    carries = fz > 0.0
    load = where(carries, _range(p, fz, c.FZMIN), nominal)
    return load, (load - nominal) / nominal, where(carries, fz / load, 0.0)


@merged
def combined_forces(
    p: Array, fz: Lanes, kappa: Lanes, alpha: Lanes, gamma: Lanes, mu: float, direction: Lanes
) -> tuple[Lanes, Lanes, Lanes]:
    """F_x, F_y (N) and M_z (N*m) at any slip; `direction` is −1 where a wheel rolls backwards."""
    load, dfz, share = load_in_range(p, fz)
    kappa, alpha, gamma = _range(p, kappa, c.KPUMIN), _range(p, alpha, c.ALPMIN), _range(p, gamma, c.CAMMIN)
    nominal, radius = _nominal(p), _of(p, c.UNLOADED_RADIUS)
    muy = _of(p, c.LMUY) * mu

    # F_x without side slip.
    mux = _of(p, c.LMUX) * mu
    x = kappa + _line(p, c.PHX1, dfz) * _of(p, c.LHX)
    shape = _of(p, c.PCX1) * _of(p, c.LCX)
    lean = gamma * _of(p, c.LGAX)
    d = _line(p, c.PDX1, dfz) * (1.0 - _of(p, c.PDX3) * lean * lean) * mux * load
    e = _square(p, c.PEX1, dfz) * (1.0 - _of(p, c.PEX4) * with_sign(1.0, x)) * _of(p, c.LEX)
    along = load * _line(p, c.PKX1, dfz) * exponential(_of(p, c.PKX3) * dfz) * _of(p, c.LKX)
    b = along / _away_from_zero(shape * d, SMALLEST_FORCE_N)
    lift = load * _line(p, c.PVX1, dfz) * _of(p, c.LVX) * mux
    fx0 = d * _formula(x, b, shape, least(e, 1.0))[0] + lift

    # F_y of a freely rolling wheel.
    lean = gamma * _of(p, c.LGAY)
    shift = _line(p, c.PHY1, dfz) * _of(p, c.LHY) + _of(p, c.PHY3) * lean
    x = alpha + shift
    shape = _of(p, c.PCY1) * _of(p, c.LCY)
    friction = _line(p, c.PDY1, dfz) * (1.0 - _of(p, c.PDY3) * lean * lean) * muy
    d = friction * load
    turn = (_of(p, c.PEY3) + _of(p, c.PEY4) * lean) * with_sign(1.0, x)
    e = _line(p, c.PEY1, dfz) * (1.0 - turn) * _of(p, c.LEY)
    rise = load / (_of(p, c.PKY2) * nominal)
    rise = 2.0 * rise / (1.0 + rise * rise)  # sin(2 atan)
    across = _of(p, c.PKY1) * nominal * rise * (1.0 - _of(p, c.PKY3) * size(lean)) * _of(p, c.LKY)
    b = across / _away_from_zero(shape * d, SMALLEST_FORCE_N)
    bc = b * shape
    camber = _line(p, c.PVY3, dfz) * lean
    lift = load * (_line(p, c.PVY1, dfz) * _of(p, c.LVY) + camber) * muy
    stiff = _away_from_zero(across, SMALLEST_FORCE_N)
    fy0 = d * _formula(x, b, shape, least(e, 1.0))[0] + lift
    shift = shift + lift / stiff

    # What each slip leaves of the other's force.
    b = _of(p, c.RBX1) * _cosine_of_atan(_of(p, c.RBX2) * kappa) * _of(p, c.LXAL)
    e, shape, own = least(_line(p, c.REX1, dfz), 1.0), _of(p, c.RCX1), _of(p, c.RHX1)
    fx = fx0 * _formula(alpha + own, b, shape, e)[1] / _formula(own, b, shape, e)[1]
    b = _of(p, c.RBY1) * _cosine_of_atan(_of(p, c.RBY2) * (alpha - _of(p, c.RBY3))) * _of(p, c.LYKA)
    e, shape, own = least(_line(p, c.REY1, dfz), 1.0), _of(p, c.RCY1), _line(p, c.RHY1, dfz)
    pulled = fy0 * _formula(kappa + own, b, shape, e)[1] / _formula(own, b, shape, e)[1]
    ply = _line(p, c.RVY1, dfz) + _of(p, c.RVY3) * gamma
    ply = ply * friction * load * _cosine_of_atan(_of(p, c.RVY4) * alpha) * _of(p, c.LVYKA)
    fy = pulled + ply * sine_cosine(_of(p, c.RVY5) * arctangent(_of(p, c.RVY6) * kappa))[0]

    # The aligning moment: trail, residual, and the arm of F_x.
    lean = gamma * _of(p, c.LGAZ)
    grip = _away_from_zero(muy, LEAST_FRICTION)
    spun = along * kappa / stiff
    forward = sine_cosine(alpha)[1] * direction
    x = alpha + _line(p, c.QHZ1, dfz) + _line(p, c.QHZ3, dfz) * lean
    b = _square(p, c.QBZ1, dfz) * (1.0 + _of(p, c.QBZ4) * lean + _of(p, c.QBZ5) * size(lean)) * _of(p, c.LKY) / grip
    d = load * _line(p, c.QDZ1, dfz) * (1.0 + (_of(p, c.QDZ3) + _of(p, c.QDZ4) * lean) * lean)
    d = d * radius / nominal * _of(p, c.LTR)
    shape = _of(p, c.QCZ1)
    turn = 1.0 + (_of(p, c.QEZ4) + _of(p, c.QEZ5) * lean) * (2.0 / pi) * arctangent(b * shape * x)
    e = least(_square(p, c.QEZ1, dfz) * turn, 1.0)
    trail = d * _formula(_equivalent(x, spun), b, shape, e)[1] * forward
    x = _equivalent(alpha + shift, spun)
    b = _of(p, c.QBZ9) * _of(p, c.LKY) / grip + _of(p, c.QBZ10) * bc
    d = _line(p, c.QDZ6, dfz) * _of(p, c.LRES) + _line(p, c.QDZ8, dfz) * lean
    residual = d * load * radius * muy * _cosine_of_atan(b * x) * forward
    arm = _of(p, c.SSZ1) + _of(p, c.SSZ2) * fy / nominal + _line(p, c.SSZ3, dfz) * gamma
    mz = -trail * pulled + residual + arm * radius * _of(p, c.LS) * fx
    return share * fx, share * fy, share * mz


@merged
def _equivalent(alpha: Lanes, spun: Lanes) -> Lanes:
    """The slip angle that would slide as far as both slips do."""
    s, k = sine_cosine(alpha)
    side = s / k
    return with_sign(arctangent(root(side * side + spun * spun)), alpha)


@merged
def overturning_moment(p: Array, fz: Lanes, fy: Lanes, gamma: Lanes) -> Lanes:
    """M_x about the contact, N*m."""
    slope = _of(p, c.QSX3) * fy / _nominal(p) - _of(p, c.QSX2) * gamma
    return _of(p, c.UNLOADED_RADIUS) * most(fz, 0.0) * (_of(p, c.QSX1) * _of(p, c.LVMX) + slope * _of(p, c.LMX))


@merged
def rolling_moment(p: Array, fz: Lanes, fx: Lanes, vx: Lanes, omega: Lanes) -> Lanes:
    """M_y against the rotation ω, N*m; it vanishes at standstill without a jump."""
    ratio, radius = size(vx) / _of(p, c.LONGVL), _of(p, c.UNLOADED_RADIUS)
    share = _of(p, c.QSY1) + _of(p, c.QSY2) * fx / _nominal(p)
    share = share + _of(p, c.QSY3) * ratio + _of(p, c.QSY4) * ((ratio * ratio) * (ratio * ratio))
    return -radius * most(fz, 0.0) * share * _of(p, c.LMY) * hyperbolic_tangent(omega * radius / ROLLING_SPEED)


@merged
def vertical_force(p: Array, deflection: Lanes, rate: Lanes) -> Lanes:
    """F_z of a tyre pressed in by `deflection` (m), growing at `rate` (m/s); the road never pulls."""
    force = _of(p, c.VERTICAL_STIFFNESS) * deflection + _of(p, c.VERTICAL_DAMPING) * rate
    return where(deflection <= 0.0, 0.0, most(force, 0.0))


@merged
def effective_radius(p: Array, deflection: Lanes) -> Lanes:
    """The radius a free wheel rolls on, m."""
    over = _of(p, c.FNOMIN) / _of(p, c.VERTICAL_STIFFNESS)
    pressed = most(deflection, 0.0) / over
    lost = _of(p, c.DREFF) * arctangent(_of(p, c.BREFF) * pressed) + _of(p, c.FREFF) * pressed
    return _of(p, c.UNLOADED_RADIUS) - over * lost


@merged
def relaxation_lengths(p: Array, fz: Lanes, gamma: Lanes) -> tuple[Lanes, Lanes]:
    """σ_κ and σ_α in metres, at least RELAXATION_FLOOR."""
    load, dfz, share = load_in_range(p, fz)
    load = where(share > 0.0, load, 0.0)
    radius = _of(p, c.UNLOADED_RADIUS)
    along = load * _line(p, c.PTX1, dfz) * exponential(-_of(p, c.PTX3) * dfz)
    along = along * radius / _of(p, c.FNOMIN) * _of(p, c.LSGKP)
    # Without PTY2 there is no such length: no load is then far beyond every load.
    steep = _of(p, c.PTY2) * _nominal(p)
    rise = load / where(size(steep) > 0.0, steep, 1e300)
    across = _of(p, c.PTY1) * (2.0 * rise / (1.0 + rise * rise))
    across = across * (1.0 - _of(p, c.PKY3) * size(gamma * _of(p, c.LGAY))) * radius * _of(p, c.LFZO) * _of(p, c.LSGAL)
    return most(along, RELAXATION_FLOOR), most(across, RELAXATION_FLOOR)


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
