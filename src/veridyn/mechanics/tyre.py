"""Forces of a rolling tyre by the Magic Formula (PAC2002), steady state, compiled.  SIGNATURES; bodies follow.

p is TyreParameters.packed. All scalar functions below are numba-compiled and callable from other compiled code.
Signs ISO: x forward, y left, z up; kappa > 0 drives; alpha = atan(vy/|vx|) > 0 gives fy < 0; gamma > 0 leans to the right (turn about +x).
mu: friction of the road relative to that of the measurement (scales the peaks, LMUX and LMUY; not the slip stiffnesses).
fz <= 0 gives zeros.

pure_longitudinal(p, fz, kappa, gamma, mu) -> fx
pure_lateral(p, fz, alpha, gamma, mu) -> fy
combined_forces(p, fz, kappa, alpha, gamma, mu, direction=1.0) -> (fx, fy, mz)   direction -1: wheel rolls backwards (trail turned round)
overturning_moment(p, fz, fy, gamma) -> mx
rolling_moment(p, fz, fx, vx, omega) -> my          (about the wheel's y axis; negative when rolling forward)
slip_stiffness(p, fz, gamma) -> (c_kappa, c_alpha)  (both positive)
linear_tyre(c_kappa, c_alpha, kappa, alpha) -> (fx, fy)
forces(parameters, fz, kappa, alpha, gamma=0, mu=1) -> (fx, fy, mz) arrays     (NumPy front, broadcasts)

tyre_contact.py (same convention):
vertical_force(p, deflection, rate) -> fz           (0 without contact; never pulls)
effective_radius(p, deflection) -> re
relaxation_lengths(p, fz, gamma) -> (sigma_kappa, sigma_alpha)   (floored, never 0)
steady_slip(vx, vy, vr) -> (kappa, tan_alpha)       vr = re*omega; denominators at least SPEED_FLOOR = 1 m/s
slip_rates(p, fz, gamma, vx, vy, vr, kappa, tan_alpha) -> (d kappa/dt, d tan_alpha/dt)    alpha = atan(tan_alpha)
"""
