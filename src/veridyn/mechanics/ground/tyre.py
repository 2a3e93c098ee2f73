"""The Magic Formula tyre in compiled code: steady forces, load and rolling radius on the road, and the lag behind its slip.

    F = D sin(C atan(Bx − E (Bx − atan Bx))) + S_V,        x = slip + S_H,        B C D = slip stiffness

    forces(parameters, fz=4000.0, kappa=0.02, alpha=np.linspace(-0.2, 0.2, 41))        # (F_x, F_y, M_z), each (41,)

The scalar functions take p = ``parameters.packed`` and may be called from other compiled code. Signs are those of
:mod:`~veridyn.mechanics.ground.tyre_parameters` (ISO: x forward, y left, z up; κ > 0 drives; α > 0 gives F_y < 0); N, N*m, rad.
`mu` is the friction of the road relative to that of the measurement: it scales the peaks and leaves the slip stiffnesses. No load gives
no force. Outside the ranges of the measurement slip and camber stay at the limit, and forces keep their ratio to the load. Forces and
moments act on the wheel, at the contact.

    F_z = max(0, K_z d + C_z ḋ),        σ_κ κ̇' + V κ' = v_r − v_x,        σ_α (tan α')˙ + V tan α' = v_y,        V = max(|v_x|, 1 m/s)

d is how far the tyre is pressed in along the road's normal, v_r = ω R_e its rolling speed. The lagging slips κ' and α' go into
:func:`combined_forces`. Above the floor they tend to κ = (v_r − v_x)/|v_x| and tan α = v_y/|v_x|; below, to the same over 1 m/s, so that
nothing is divided by a speed that vanishes: a wheel at rest holds by creeping, as on a damper of C_κ/(1 m/s).

Reference: H. B. Pacejka, Tyre and Vehicle Dynamics, section 4.3.2, without turn slip, and chapter 7, in the form known as PAC2002.
"""

from __future__ import annotations

from math import atan, copysign, cos, exp, sin, sqrt, tan, tanh

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.mechanics.compiled import kept, lean
from veridyn.mechanics.ground import tyre_parameters as c
from veridyn.mechanics.ground.tyre_parameters import TyreParameters

SMALLEST_FORCE_N = 1e-9  # N: what a peak or a stiffness is at least, where it divides
LEAST_FRICTION = 1e-3  # of the measurement's: where the friction of the road divides
STANDING_SPEED = 0.1  # m/s: rolling resistance grows to its full value over this speed
SPEED_FLOOR = 1.0  # m/s, the least denominator of a slip
RELAXATION_FLOOR = (
    0.05  # m, so that a tyre without load, or without the coefficients, lags little and not infinitely little
)


def forces(
    parameters: TyreParameters,
    fz: ArrayLike,
    kappa: ArrayLike,
    alpha: ArrayLike,
    gamma: ArrayLike = 0.0,
    mu: ArrayLike = 1.0,
) -> tuple[Array, Array, Array]:
    """F_x, F_y and M_z over arrays that broadcast; the identity is that of :func:`combined_forces` for each element."""
    given = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (fz, kappa, alpha, gamma, mu)))
    flat = [np.ascontiguousarray(value).reshape(-1) for value in given]
    out = np.empty((3, flat[0].size))
    _over_arrays(parameters.packed, flat[0], flat[1], flat[2], flat[3], flat[4], out)
    fx, fy, mz = out.reshape(3, *given[0].shape)
    return fx, fy, mz


@lean
def _bent(bx: float, e: float) -> float:
    """Bx − E (Bx − atan Bx); many tyres have no E in some of their curves."""
    return bx if e == 0.0 else bx - e * (bx - atan(bx))


@lean
def _cosine_of_atan(x: float) -> float:
    """cos(atan x)."""
    return 1.0 / sqrt(1.0 + x * x)


@lean
def _sine_of_twice_atan(x: float) -> float:
    """sin(2 atan x)."""
    return 2.0 * x / (1.0 + x * x)


@lean
def magic_formula(x: float, b: float, shape: float, d: float, e: float) -> float:
    """D sin(C atan(Bx − E (Bx − atan Bx))): slope BCD at zero, peak D where C ≥ 1, D sin(Cπ/2) far out for E < 1."""
    return d * sin(shape * atan(_bent(b * x, e)))


@lean
def cosine_form(x: float, b: float, shape: float, e: float) -> float:
    """cos(C atan(Bx − E (Bx − atan Bx))): one at zero; the weight of the other slip, and the fall of the trail."""
    return cos(shape * atan(_bent(b * x, e)))


@lean
def load_in_range(p: Array, fz: float) -> tuple[float, float, float]:
    """The load at which coefficients are taken, its df_z = (F_z − F_z0)/F_z0, and F_z over it; zeros without load."""
    if fz <= 0.0:
        return 0.0, 0.0, 0.0
    load = min(max(fz, p[c.FZMIN]), p[c.FZMAX])
    nominal = p[c.FNOMIN] * p[c.LFZO]
    return load, (load - nominal) / nominal, fz / load


@lean
def longitudinal_stiffness(p: Array, load: float, dfz: float) -> float:
    """K_x = F_z (p_Kx1 + p_Kx2 df_z) exp(p_Kx3 df_z) λ_Kx, N."""
    return load * (p[c.PKX1] + p[c.PKX2] * dfz) * exp(p[c.PKX3] * dfz) * p[c.LKX]


@lean
def lateral_stiffness(p: Array, load: float, gamma: float) -> float:
    """K_y = p_Ky1 F_z0 sin(2 atan(F_z/(p_Ky2 F_z0))) (1 − p_Ky3 |γ|) λ_Ky, N/rad; negative for a tyre that resists."""
    nominal = p[c.FNOMIN] * p[c.LFZO]
    rise = _sine_of_twice_atan(load / (p[c.PKY2] * nominal))
    return p[c.PKY1] * nominal * rise * (1.0 - p[c.PKY3] * abs(gamma * p[c.LGAY])) * p[c.LKY]


@lean
def combined_forces(
    p: Array, fz: float, kappa: float, alpha: float, gamma: float, mu: float, direction: float = 1.0
) -> tuple[float, float, float]:
    """F_x, F_y (N) and M_z (N*m) at any slip. `direction` is −1 for a wheel that rolls backwards, whose trail is ahead.

        F_x = G_xα F_x0,    F_y = G_yκ F_y0 + S_Vyκ,    M_z = −t(α_t,eq) (F_y − S_Vyκ) + M_zr(α_r,eq) + s F_x

    G are cosine forms of the other slip over their value at its shift, so that they are one in pure slip, and
    α_eq = sgn(α) atan √(tan² α + (K_x κ/K_y)²) is the slip angle that would slide as far as both slips do.
    """
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0, 0.0, 0.0
    kappa, alpha, gamma = _slips_in_range(p, kappa, alpha, gamma)

    fx0 = _longitudinal(p, load, dfz, kappa, gamma, mu)
    fy0, stiffness, bc, shift, friction = _lateral(p, load, dfz, alpha, gamma, mu)

    b = p[c.RBX1] * _cosine_of_atan(p[c.RBX2] * kappa) * p[c.LXAL]
    e = min(p[c.REX1] + p[c.REX2] * dfz, 1.0)
    at_shift = cosine_form(p[c.RHX1], b, p[c.RCX1], e)
    fx = fx0 * cosine_form(alpha + p[c.RHX1], b, p[c.RCX1], e) / at_shift

    b = p[c.RBY1] * _cosine_of_atan(p[c.RBY2] * (alpha - p[c.RBY3])) * p[c.LYKA]
    e = min(p[c.REY1] + p[c.REY2] * dfz, 1.0)
    across = p[c.RHY1] + p[c.RHY2] * dfz
    pulled = fy0 * cosine_form(kappa + across, b, p[c.RCY1], e) / cosine_form(across, b, p[c.RCY1], e)
    ply = p[c.RVY1] + p[c.RVY2] * dfz + p[c.RVY3] * gamma
    ply *= friction * load * _cosine_of_atan(p[c.RVY4] * alpha) * p[c.LVYKA]
    fy = pulled + ply * sin(p[c.RVY5] * atan(p[c.RVY6] * kappa))

    mz = _aligning(p, load, dfz, kappa, alpha, gamma, mu, fx, fy, pulled, stiffness, bc, shift, direction)
    return share * fx, share * fy, share * mz


@lean
def overturning_moment(p: Array, fz: float, fy: float, gamma: float) -> float:
    """M_x = R_0 F_z (q_Sx1 λ_VMx + (−q_Sx2 γ + q_Sx3 F_y/F_z0) λ_Mx), N*m."""
    nominal = p[c.FNOMIN] * p[c.LFZO]
    slope = -p[c.QSX2] * gamma + p[c.QSX3] * fy / nominal
    return p[c.UNLOADED_RADIUS] * max(fz, 0.0) * (p[c.QSX1] * p[c.LVMX] + slope * p[c.LMX])


@lean
def rolling_moment(p: Array, fz: float, fx: float, vx: float, omega: float) -> float:
    """M_y = −R_0 F_z (q_Sy1 + q_Sy2 F_x/F_z0 + q_Sy3 |v_x/V_0| + q_Sy4 (v_x/V_0)⁴) λ_My tanh(ω R_0/0.1 m/s), N*m.

    It opposes the rotation ω (rad/s, positive rolling forward) and vanishes at standstill without a jump.
    """
    ratio = abs(vx) / p[c.LONGVL]
    share = p[c.QSY1] + p[c.QSY2] * fx / (p[c.FNOMIN] * p[c.LFZO]) + p[c.QSY3] * ratio + p[c.QSY4] * ratio**4
    radius = p[c.UNLOADED_RADIUS]
    return -radius * max(fz, 0.0) * share * p[c.LMY] * tanh(omega * radius / STANDING_SPEED)


@kept
def _over_arrays(p: Array, fz: Array, kappa: Array, alpha: Array, gamma: Array, mu: Array, out: Array) -> None:
    for i in range(fz.size):
        out[0, i], out[1, i], out[2, i] = combined_forces(p, fz[i], kappa[i], alpha[i], gamma[i], mu[i])


@lean
def _away_from_zero(value: float, least: float) -> float:
    return value if abs(value) > least else copysign(least, value)


@lean
def _slips_in_range(p: Array, kappa: float, alpha: float, gamma: float) -> tuple[float, float, float]:
    return (
        min(max(kappa, p[c.KPUMIN]), p[c.KPUMAX]),
        min(max(alpha, p[c.ALPMIN]), p[c.ALPMAX]),
        min(max(gamma, p[c.CAMMIN]), p[c.CAMMAX]),
    )


@lean
def _longitudinal(p: Array, load: float, dfz: float, kappa: float, gamma: float, mu: float) -> float:
    """F_x0: C_x, D_x = μ_x F_z, E_x ≤ 1, K_x and the shifts, each polynomial in df_z."""
    scale = p[c.LMUX] * mu
    x = kappa + (p[c.PHX1] + p[c.PHX2] * dfz) * p[c.LHX]
    shape = p[c.PCX1] * p[c.LCX]
    lean = gamma * p[c.LGAX]
    d = (p[c.PDX1] + p[c.PDX2] * dfz) * (1.0 - p[c.PDX3] * lean * lean) * scale * load
    e = (p[c.PEX1] + p[c.PEX2] * dfz + p[c.PEX3] * dfz * dfz) * (1.0 - p[c.PEX4] * copysign(1.0, x)) * p[c.LEX]
    b = longitudinal_stiffness(p, load, dfz) / _away_from_zero(shape * d, SMALLEST_FORCE_N)
    lift = load * (p[c.PVX1] + p[c.PVX2] * dfz) * p[c.LVX] * scale
    return magic_formula(x, b, shape, d, min(e, 1.0)) + lift


@lean
def _lateral(
    p: Array, load: float, dfz: float, alpha: float, gamma: float, mu: float
) -> tuple[float, float, float, float, float]:
    """F_y0, and what the moment needs of it: K_y, B_y C_y, S_Hf = S_Hy + S_Vy/K_y, μ_y."""
    scale = p[c.LMUY] * mu
    lean = gamma * p[c.LGAY]
    shift = (p[c.PHY1] + p[c.PHY2] * dfz) * p[c.LHY] + p[c.PHY3] * lean
    x = alpha + shift
    shape = p[c.PCY1] * p[c.LCY]
    friction = (p[c.PDY1] + p[c.PDY2] * dfz) * (1.0 - p[c.PDY3] * lean * lean) * scale
    d = friction * load
    turn = (p[c.PEY3] + p[c.PEY4] * lean) * copysign(1.0, x)
    e = (p[c.PEY1] + p[c.PEY2] * dfz) * (1.0 - turn) * p[c.LEY]
    stiffness = lateral_stiffness(p, load, gamma)
    b = stiffness / _away_from_zero(shape * d, SMALLEST_FORCE_N)
    camber = (p[c.PVY3] + p[c.PVY4] * dfz) * lean
    lift = load * ((p[c.PVY1] + p[c.PVY2] * dfz) * p[c.LVY] + camber) * scale
    fy = magic_formula(x, b, shape, d, min(e, 1.0)) + lift
    return fy, stiffness, b * shape, shift + lift / _away_from_zero(stiffness, SMALLEST_FORCE_N), friction


@lean
def _aligning(
    p: Array,
    load: float,
    dfz: float,
    kappa: float,
    alpha: float,
    gamma: float,
    mu: float,
    fx: float,
    fy: float,
    pulled: float,
    stiffness: float,
    bc: float,
    shift: float,
    direction: float,
) -> float:
    """M_z: trail t = D_t cos(C_t atan …) cos α, residual M_zr = D_r cos(atan(B_r α_r)) cos α, arm s of F_x."""
    nominal, radius = p[c.FNOMIN] * p[c.LFZO], p[c.UNLOADED_RADIUS]
    lean = gamma * p[c.LGAZ]
    friction = _away_from_zero(p[c.LMUY] * mu, LEAST_FRICTION)
    spun = longitudinal_stiffness(p, load, dfz) * kappa / _away_from_zero(stiffness, SMALLEST_FORCE_N)
    forward = cos(alpha) * direction

    x = alpha + p[c.QHZ1] + p[c.QHZ2] * dfz + (p[c.QHZ3] + p[c.QHZ4] * dfz) * lean
    b = (p[c.QBZ1] + p[c.QBZ2] * dfz + p[c.QBZ3] * dfz * dfz) * (1.0 + p[c.QBZ4] * lean + p[c.QBZ5] * abs(lean))
    b *= p[c.LKY] / friction
    d = load * (p[c.QDZ1] + p[c.QDZ2] * dfz) * (1.0 + p[c.QDZ3] * lean + p[c.QDZ4] * lean * lean)
    d *= radius / nominal * p[c.LTR]
    turn = 1.0 + (p[c.QEZ4] + p[c.QEZ5] * lean) * (2.0 / np.pi) * atan(b * p[c.QCZ1] * x)
    e = (p[c.QEZ1] + p[c.QEZ2] * dfz + p[c.QEZ3] * dfz * dfz) * turn
    trail = d * cosine_form(_equivalent(x, spun), b, p[c.QCZ1], min(e, 1.0)) * forward

    x = _equivalent(alpha + shift, spun)
    b = p[c.QBZ9] * p[c.LKY] / friction + p[c.QBZ10] * bc
    d = (p[c.QDZ6] + p[c.QDZ7] * dfz) * p[c.LRES] + (p[c.QDZ8] + p[c.QDZ9] * dfz) * lean
    residual = d * load * radius * p[c.LMUY] * mu * _cosine_of_atan(b * x) * forward

    arm = p[c.SSZ1] + p[c.SSZ2] * fy / nominal + (p[c.SSZ3] + p[c.SSZ4] * dfz) * gamma
    return -trail * pulled + residual + arm * radius * p[c.LS] * fx


@lean
def _equivalent(alpha: float, spun: float) -> float:
    side = tan(alpha)
    return copysign(atan(sqrt(side * side + spun * spun)), alpha)


@lean
def vertical_force(p: Array, deflection: float, rate: float) -> float:
    """F_z of a tyre pressed in by `deflection` (m), growing at `rate` (m/s); zero off the road, and the road never pulls."""
    if deflection <= 0.0:
        return 0.0
    force = p[c.VERTICAL_STIFFNESS] * deflection + p[c.VERTICAL_DAMPING] * rate
    return 0.0 if force < 0.0 else force  # not max(), which would turn NaN into zero


@lean
def effective_radius(p: Array, deflection: float) -> float:
    """R_e = R_0 − (F_z0/K_z) (D_reff atan(B_reff r) + F_reff r) with r = K_z d/F_z0: the radius a free wheel rolls on, m.

    F_z0 is FNOMIN as it is, for the carcass knows no scaling factor. Without the three coefficients the radius is R_0.
    """
    nominal = p[c.FNOMIN]
    pressed = p[c.VERTICAL_STIFFNESS] * max(deflection, 0.0) / nominal
    lost = p[c.DREFF] * atan(p[c.BREFF] * pressed) + p[c.FREFF] * pressed
    return p[c.UNLOADED_RADIUS] - nominal / p[c.VERTICAL_STIFFNESS] * lost


@lean
def relaxation_lengths(p: Array, fz: float, gamma: float) -> tuple[float, float]:
    """σ_κ and σ_α in metres, at least RELAXATION_FLOOR.

    σ_κ = F_z (p_Tx1 + p_Tx2 df_z) exp(−p_Tx3 df_z) (R_0/F_z0) λ_σκ,
    σ_α = p_Ty1 sin(2 atan(F_z/(p_Ty2 F_z0 λ_Fz0))) (1 − p_Ky3 |γ|) R_0 λ_Fz0 λ_σα.
    """
    load, dfz, _ = load_in_range(p, fz)
    nominal, radius = p[c.FNOMIN] * p[c.LFZO], p[c.UNLOADED_RADIUS]
    along = load * (p[c.PTX1] + p[c.PTX2] * dfz) * exp(-p[c.PTX3] * dfz) * radius / p[c.FNOMIN] * p[c.LSGKP]
    across = 0.0
    if p[c.PTY2] != 0.0:
        across = (
            p[c.PTY1] * _sine_of_twice_atan(load / (p[c.PTY2] * nominal)) * (1.0 - p[c.PKY3] * abs(gamma * p[c.LGAY]))
        )
        across *= radius * p[c.LFZO] * p[c.LSGAL]
    return max(along, RELAXATION_FLOOR), max(across, RELAXATION_FLOOR)


@lean
def slip_rates(
    p: Array, fz: float, gamma: float, vx: float, vy: float, vr: float, kappa: float, tan_alpha: float
) -> tuple[float, float]:
    """κ̇' and (tan α')˙, 1/s, of the lagging slips (`kappa`, `tan_alpha`); their time constants are σ/V."""
    speed = max(abs(vx), SPEED_FLOOR)
    along, across = relaxation_lengths(p, fz, gamma)
    return (vr - vx - speed * kappa) / along, (vy - speed * tan_alpha) / across
