"""A hexapod by hand: telescopic legs on universal joints and a platform, in equations that share nothing with those of the engine.

Each leg has coordinates s = (α, β, l) of its own and Lagrange's equations, written out for symmetrical bodies; the platform has Newton's
and Euler's in the frame of the ground. The rates of all legs are linear in the platform's twist ν = (v, ω), ṡ = J ν, so that

    (M_E + Σ Jᵀ diag(A, B, m₃) J) ν̇ = Σ F_k J_lᵀ − h_E − Σ Jᵀ (h_s + diag(A, B, m₃) b),   A = p₁ + E sin²β,   B = p₃ + m₃l² + 2 l s₃,

with E = p₂ + m₃l² + 2 l s₃ and s̈ = J ν̇ + b. The first axis of a universal joint is horizontal and tangential to the circle of the hips;
α = 0 and β = π/2 is straight down. `numbers`: p1 p2 p3 s2 s3 m3 | XX YY ZZ MZ M of the platform | friction of α and β | the speed
below which dry friction is rounded off. SI units.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled, kept

Array = NDArray[np.float64]
G = 9.81


@kept
def rotation(pose: Array, R: Array) -> None:
    """R becomes Rx(ψ) Ry(θ) Rz(φ)."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    cz, sz = np.cos(pose[5]), np.sin(pose[5])
    R[0, 0], R[0, 1], R[0, 2] = cy * cz, -cy * sz, sy
    R[1, 0], R[1, 1], R[1, 2] = cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy
    R[2, 0], R[2, 1], R[2, 2] = sx * sz - cx * sy * cz, sx * cz + cx * sy * sz, cx * cy


@compiled
def twist_of(pose: Array, rate: Array, twist: Array) -> None:
    """ν = H ẋ, equation (16) in the order (ψ, θ, φ) in which it holds."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    a, b, c = rate[3], rate[4], rate[5]
    twist[0], twist[1], twist[2] = rate[0], rate[1], rate[2]
    twist[3], twist[4], twist[5] = a + sy * c, cx * b - sx * cy * c, sx * b + cx * cy * c


@compiled
def twist_rate_of(pose: Array, rate: Array, acceleration: Array, out: Array) -> None:
    """ν̇ = H ẍ + Ḣ ẋ (16)."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    a, b, c = rate[3], rate[4], rate[5]
    twist_of(pose, acceleration, out)
    out[3] += cy * b * c
    out[4] += -sx * a * b - cx * a * cy * c + sx * sy * b * c
    out[5] += cx * a * b - sx * a * cy * c - cx * sy * b * c


@compiled
def pose_rate_of(pose: Array, twist: Array, rate: Array) -> None:
    """ẋ = H⁻¹ ν."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    c = (cx * twist[5] - sx * twist[4]) / cy
    rate[0], rate[1], rate[2] = twist[0], twist[1], twist[2]
    rate[3], rate[4], rate[5] = twist[3] - sy * c, cx * twist[4] + sx * twist[5], c


@compiled
def leg(hip: Array, angle: float, foot: Array, pose: Array, R: Array, axes: Array, arm: Array) -> tuple[float, float]:
    """(l, cos β); `axes` become the directions x3, y3, z3 as rows, `arm` the foot about the platform's origin, in the ground's axes."""
    square = 0.0
    for i in range(3):
        arm[i] = R[i, 0] * foot[0] + R[i, 1] * foot[1] + R[i, 2] * foot[2]
        axes[2, i] = pose[i] + arm[i] - hip[i]
        square += axes[2, i] ** 2
    length = np.sqrt(square)
    for i in range(3):
        axes[2, i] /= length
    ca, sa = np.cos(angle), np.sin(angle)  # inwards (−ca, −sa, 0), tangential (−sa, ca, 0), down (0, 0, −1)
    c = sa * axes[2, 0] - ca * axes[2, 1]
    s = np.sqrt(1.0 - c * c)
    cos_a, sin_a = -axes[2, 2] / s, -(ca * axes[2, 0] + sa * axes[2, 1]) / s
    axes[0, 0], axes[0, 1], axes[0, 2] = -c * sin_a * ca - s * sa, -c * sin_a * sa + s * ca, -c * cos_a
    axes[1, 0], axes[1, 1], axes[1, 2] = cos_a * ca, cos_a * sa, -sin_a
    return length, c


@compiled
def leg_rates(length: float, s: float, axes: Array, arm: Array, J: Array) -> None:
    """J (3, 6) becomes the rates of α, β, l from the twist."""
    for row in range(3):
        d = axes[1] if row == 0 else axes[0] if row == 1 else axes[2]
        scale = -1.0 / (length * s) if row == 0 else 1.0 / length if row == 1 else 1.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            J[row, i] = scale * d[i]
            J[row, 3 + i] = scale * (arm[j] * d[k] - arm[k] * d[j])


@compiled
def rounded(speed: float, small: float) -> float:
    """The sign of a speed, rounded off below a small one."""
    return speed / (speed**8 + small**8) ** 0.125


@compiled
def platform_equations(twist: Array, numbers: Array, R: Array, M: Array, h: Array) -> None:
    """M and h become those of the platform alone: Newton and Euler about the tool centre point."""
    mass, first, w = numbers[10], numbers[9] * R[:, 2], twist[3:]
    for i in range(6):
        h[i] = 0.0
        for j in range(6):
            M[i, j] = 0.0
    along = w[0] * first[0] + w[1] * first[1] + w[2] * first[2]
    square = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    h[2] = mass * G
    h[3], h[4] = first[1] * G, -first[0] * G  # −s × g
    spin = np.zeros(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        M[i, i] = mass
        M[j, 3 + i], M[k, 3 + i] = -first[k], first[j]  # e_i × s
        M[3 + i, j], M[3 + i, k] = -first[k], first[j]
        h[i] += w[i] * along - first[i] * square
        for n in range(3):
            for m in range(3):
                M[3 + i, 3 + n] += R[i, m] * numbers[6 + m] * R[n, m]
            spin[i] += M[3 + i, 3 + n] * w[n]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        h[3 + i] += w[j] * spin[k] - w[k] * spin[j]


@kept
def equations(
    pose: Array,
    twist: Array,
    hips: Array,
    angles: Array,
    feet: Array,
    numbers: Array,
    dry: Array,
    viscous: Array,
    M: Array,
    h: Array,
    drives: Array,
) -> None:
    """M and h become those of M ν̇ + h = Jᵀ F, and `drives` the Jacobian J (6, 6) of the lengths."""
    p1, p2, p3, s2, s3, m3, small = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[13]
    R, axes, arm, J = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty((3, 6))
    own, D, b = np.empty(3), np.empty(3), np.empty(3)
    rotation(pose, R)
    platform_equations(twist, numbers, R, M, h)
    w = twist[3:]
    square = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    for k in range(6):
        length, c = leg(hips[k], angles[k], feet[k], pose, R, axes, arm)
        s = np.sqrt(1.0 - c * c)
        leg_rates(length, s, axes, arm, J)
        da, db, dl, inward = 0.0, 0.0, 0.0, w[0] * arm[0] + w[1] * arm[1] + w[2] * arm[2]
        for i in range(6):
            drives[k, i] = J[2, i]
            da, db, dl = da + J[0, i] * twist[i], db + J[1, i] * twist[i], dl + J[2, i] * twist[i]
        ax, ay, az = 0.0, 0.0, 0.0  # acceleration of the foot along x3, y3, z3 while ν̇ = 0: ω × (ω × arm)
        for i in range(3):
            a = w[i] * inward - arm[i] * square
            ax, ay, az = ax + a * axes[0, i], ay + a * axes[1, i], az + a * axes[2, i]
        b[0] = -(ay + 2.0 * dl * da * s) / (length * s) - 2.0 * da * db * c / s
        b[1] = (ax - 2.0 * dl * db) / length + da * da * s * c
        b[2] = az + length * (db * db + da * da * s * s)
        swept, slope = m3 * length * length + 2.0 * length * s3, 2.0 * m3 * length + 2.0 * s3
        E = p2 + swept
        D[0], D[1], D[2] = p1 + E * s * s, p3 + swept, m3
        weight = G * (m3 * length + s3 - s2)
        turned = -(np.sin(angles[k]) * axes[2, 1] + np.cos(angles[k]) * axes[2, 0])  # z of tangential × z3
        own[0] = (2.0 * s * c * db * E + s * s * slope * dl) * da + weight * turned
        own[1] = slope * dl * db - s * c * E * da * da + weight * axes[0, 2]
        own[2] = -0.5 * slope * (s * s * da * da + db * db) + m3 * G * axes[2, 2]
        own[0] += numbers[11] * rounded(da, small)
        own[1] += numbers[12] * rounded(db, small)
        own[2] += dry[k] * rounded(dl, small) + viscous[k] * dl
        for n in range(3):
            load = own[n] + D[n] * b[n]
            for i in range(6):
                h[i] += J[n, i] * load
                for j in range(6):
                    M[i, j] += J[n, i] * D[n] * J[n, j]
