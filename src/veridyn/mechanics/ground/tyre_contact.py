"""How a tyre stands on the road and lags behind its slip: load, rolling radius, relaxation, in compiled code.

    F_z = max(0, K_z d + C_z ḋ),        σ_κ κ̇' + V κ' = v_r − v_x,        σ_α (tan α')˙ + V tan α' = v_y,        V = max(|v_x|, 1 m/s)

d is how far the tyre is pressed in along the road's normal, v_r = ω R_e its rolling speed. The lagging slips κ' and α' go into
:func:`~veridyn.mechanics.ground.tyre.combined_forces`. Above the floor they tend to κ = (v_r − v_x)/|v_x| and tan α = v_y/|v_x|; below, to
the same over 1 m/s, so that nothing is divided by a speed that vanishes: a wheel at rest holds by creeping, as on a damper of
C_κ/(1 m/s). p is ``TyreParameters.packed``; axes and signs as there.
Reference: H. B. Pacejka, Tyre and Vehicle Dynamics, chapter 7 and section 4.3.2; relaxation lengths in the form of PAC2002.
"""

from __future__ import annotations

from math import atan, exp, sin

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.ground import tyre_parameters as c
from veridyn.mechanics.ground.tyre import load_in_range

Array = NDArray[np.float64]

SPEED_FLOOR = 1.0  # m/s, the least denominator of a slip
RELAXATION_FLOOR = (
    0.05  # m, so that a tyre without load, or without the coefficients, lags little and not infinitely little
)


@compiled
def vertical_force(p: Array, deflection: float, rate: float) -> float:
    """F_z of a tyre pressed in by `deflection` (m), growing at `rate` (m/s); zero off the road, and the road never pulls."""
    if deflection <= 0.0:
        return 0.0
    force = p[c.VERTICAL_STIFFNESS] * deflection + p[c.VERTICAL_DAMPING] * rate
    return 0.0 if force < 0.0 else force  # not max(), which would turn NaN into zero


@compiled
def effective_radius(p: Array, deflection: float) -> float:
    """R_e = R_0 − (F_z0/K_z) (D_reff atan(B_reff r) + F_reff r) with r = K_z d/F_z0: the radius a free wheel rolls on, m.

    F_z0 is FNOMIN as it is, for the carcass knows no scaling factor. Without the three coefficients the radius is R_0.
    """
    nominal = p[c.FNOMIN]
    pressed = p[c.VERTICAL_STIFFNESS] * max(deflection, 0.0) / nominal
    lost = p[c.DREFF] * atan(p[c.BREFF] * pressed) + p[c.FREFF] * pressed
    return p[c.UNLOADED_RADIUS] - nominal / p[c.VERTICAL_STIFFNESS] * lost


@compiled
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
        across = p[c.PTY1] * sin(2.0 * atan(load / (p[c.PTY2] * nominal))) * (1.0 - p[c.PKY3] * abs(gamma * p[c.LGAY]))
        across *= radius * p[c.LFZO] * p[c.LSGAL]
    return max(along, RELAXATION_FLOOR), max(across, RELAXATION_FLOOR)


@compiled
def steady_slip(vx: float, vy: float, vr: float) -> tuple[float, float]:
    """κ = (v_r − v_x)/V and tan α = v_y/V of a wheel in steady motion; speeds of the contact in the wheel's axes, m/s."""
    speed = max(abs(vx), SPEED_FLOOR)
    return (vr - vx) / speed, vy / speed


@compiled
def slip_rates(
    p: Array, fz: float, gamma: float, vx: float, vy: float, vr: float, kappa: float, tan_alpha: float
) -> tuple[float, float]:
    """κ̇' and (tan α')˙, 1/s, of the lagging slips (`kappa`, `tan_alpha`); their time constants are σ/V."""
    speed = max(abs(vx), SPEED_FLOOR)
    along, across = relaxation_lengths(p, fz, gamma)
    return (vr - vx - speed * kappa) / along, (vy - speed * tan_alpha) / across
