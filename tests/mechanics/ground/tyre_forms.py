"""Special forms of the Magic Formula tyre that its tests compare: over arrays, in pure slip, linear, steady and lagging."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.ground.tyre import (
    SPEED_FLOOR,
    _lateral,
    _longitudinal,
    _slips_in_range,
    combined_forces,
    lateral_stiffness,
    load_in_range,
    longitudinal_stiffness,
    relaxation_lengths,
)
from veridyn.mechanics.ground.tyre_parameters import TyreParameters

Array = NDArray[np.float64]


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


@compiled
def _over_arrays(p: Array, fz: Array, kappa: Array, alpha: Array, gamma: Array, mu: Array, out: Array) -> None:
    for i in range(fz.size):
        out[0, i], out[1, i], out[2, i] = combined_forces(p, fz[i], kappa[i], alpha[i], gamma[i], mu[i])


@compiled
def slip_stiffness(p: Array, fz: float, gamma: float) -> tuple[float, float]:
    """C_κ = K_x (N) and C_α = −K_y (N/rad): what a linear tyre has at this load; both positive."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0, 0.0
    return longitudinal_stiffness(p, load, dfz) * share, -lateral_stiffness(p, load, gamma) * share


@compiled
def linear_tyre(c_kappa: float, c_alpha: float, kappa: float, alpha: float) -> tuple[float, float]:
    """F_x = C_κ κ, F_y = −C_α α; for small slips."""
    return c_kappa * kappa, -c_alpha * alpha


@compiled
def pure_longitudinal(p: Array, fz: float, kappa: float, gamma: float, mu: float) -> float:
    """F_x without side slip, N."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0
    kappa, _, gamma = _slips_in_range(p, kappa, 0.0, gamma)
    return share * _longitudinal(p, load, dfz, kappa, gamma, mu)


@compiled
def pure_lateral(p: Array, fz: float, alpha: float, gamma: float, mu: float) -> float:
    """F_y of a freely rolling wheel, N."""
    load, dfz, share = load_in_range(p, fz)
    if load == 0.0:
        return 0.0
    _, alpha, gamma = _slips_in_range(p, 0.0, alpha, gamma)
    return share * _lateral(p, load, dfz, alpha, gamma, mu)[0]


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
