"""A hexapod to experiment on, by hand: the forces it asks for, and runs under control.

Telescopic legs on universal joints carry a platform, in equations that share nothing with those of the engine. Each leg has coordinates s
= (α, β, l) of its own and Lagrange's equations, written out for symmetrical bodies; the platform has Newton's and Euler's in the frame of
the ground. The rates of all legs are linear in the platform's twist ν = (v, ω), ṡ = J ν, so that

    (M_E + Σ Jᵀ diag(A, B, m₃) J) ν̇ = Σ F_k J_lᵀ − h_E − Σ Jᵀ (h_s + diag(A, B, m₃) b),   A = p₁ + E sin²β,   B = p₃ + m₃l² + 2 l s₃,

with E = p₂ + m₃l² + 2 l s₃ and s̈ = J ν̇ + b. The first axis of a universal joint is horizontal and tangential to the circle of the hips;
α = 0 and β = π/2 is straight down. `rest` of the numbers: p1 p2 p3 s2 s3 m3 | XX YY ZZ MZ M of the platform | friction of α and β |
the speed below which dry friction is rounded off. SI units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import compiled, core, kept, lean
from veridyn.mechanics.linear import solve_once

G = 9.81
Numbers = NDArray[np.int64]


class PlatformNumbers(NamedTuple):
    """What the equations take of a machine: hips, their angles, feet, `rest` as listed above, and friction of the drives."""

    hips: Array
    angles: Array
    feet: Array
    rest: Array
    dry: Array
    viscous: Array


@kept
def rotation(pose: Array, R: Array) -> None:
    """R becomes Rx(ψ) Ry(θ) Rz(φ)."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    cz, sz = np.cos(pose[5]), np.sin(pose[5])
    R[0, 0], R[0, 1], R[0, 2] = cy * cz, -cy * sz, sy
    R[1, 0], R[1, 1], R[1, 2] = cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy
    R[2, 0], R[2, 1], R[2, 2] = sx * sz - cx * sy * cz, sx * cz + cx * sy * sz, cx * cy


@lean
def twist_of(pose: Array, rate: Array, twist: Array) -> None:
    """ν = H ẋ, equation (16) in the order (ψ, θ, φ) in which it holds."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    a, b, c = rate[3], rate[4], rate[5]
    twist[0], twist[1], twist[2] = rate[0], rate[1], rate[2]
    twist[3], twist[4], twist[5] = a + sy * c, cx * b - sx * cy * c, sx * b + cx * cy * c


@lean
def twist_rate_of(pose: Array, rate: Array, acceleration: Array, out: Array) -> None:
    """ν̇ = H ẍ + Ḣ ẋ (16)."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    a, b, c = rate[3], rate[4], rate[5]
    twist_of(pose, acceleration, out)
    out[3] += cy * b * c
    out[4] += -sx * a * b - cx * a * cy * c + sx * sy * b * c
    out[5] += cx * a * b - sx * a * cy * c - cx * sy * b * c


@lean
def pose_rate_of(pose: Array, twist: Array, rate: Array) -> None:
    """ẋ = H⁻¹ ν."""
    cx, sx, cy, sy = np.cos(pose[3]), np.sin(pose[3]), np.cos(pose[4]), np.sin(pose[4])
    c = (cx * twist[5] - sx * twist[4]) / cy
    rate[0], rate[1], rate[2] = twist[0], twist[1], twist[2]
    rate[3], rate[4], rate[5] = twist[3] - sy * c, cx * twist[4] + sx * twist[5], c


@core
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


@core
def leg_rates(length: float, s: float, axes: Array, arm: Array, J: Array) -> None:
    """J (3, 6) becomes the rates of α, β, l from the twist."""
    for row in range(3):
        d = 1 if row == 0 else 0 if row == 1 else 2
        scale = -1.0 / (length * s) if row == 0 else 1.0 / length if row == 1 else 1.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            J[row, i] = scale * axes[d, i]
            J[row, 3 + i] = scale * (arm[j] * axes[d, k] - arm[k] * axes[d, j])


@core
def rounded(speed: float, small: float) -> float:
    """The sign of a speed, rounded off below a small one."""
    return speed / (speed**8 + small**8) ** 0.125


@core
def platform_equations(twist: Array, numbers: Array, R: Array, M: Array, h: Array) -> None:
    """M and h become those of the platform alone: Newton and Euler about the tool centre point."""
    mass, w = numbers[10], (twist[3], twist[4], twist[5])
    first = (numbers[9] * R[0, 2], numbers[9] * R[1, 2], numbers[9] * R[2, 2])
    for i in range(6):
        h[i] = 0.0
        for j in range(6):
            M[i, j] = 0.0
    along = w[0] * first[0] + w[1] * first[1] + w[2] * first[2]
    square = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    h[2] = mass * G
    h[3], h[4] = first[1] * G, -first[0] * G  # −s × g
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        M[i, i] = mass
        M[j, 3 + i], M[k, 3 + i] = -first[k], first[j]  # e_i × s
        M[3 + i, j], M[3 + i, k] = -first[k], first[j]
        h[i] += w[i] * along - first[i] * square
        for n in range(3):
            for m in range(3):
                M[3 + i, 3 + n] += R[i, m] * numbers[6 + m] * R[n, m]
    for i in range(3):
        j, k, spin_j, spin_k = (i + 1) % 3, (i + 2) % 3, 0.0, 0.0
        for n in range(3):
            spin_j += M[3 + j, 3 + n] * w[n]
            spin_k += M[3 + k, 3 + n] * w[n]
        h[3 + i] += w[j] * spin_k - w[k] * spin_j


@kept
def equations(pose: Array, twist: Array, p: PlatformNumbers, M: Array, h: Array, drives: Array) -> None:
    """M and h become those of M ν̇ + h = Jᵀ F, and `drives` the Jacobian J (6, 6) of the lengths."""
    p1, p2, p3, s2, s3, m3, small = p.rest[0], p.rest[1], p.rest[2], p.rest[3], p.rest[4], p.rest[5], p.rest[13]
    R, axes, arm, J = np.empty((3, 3)), np.empty((3, 3)), np.empty(3), np.empty((3, 6))
    own, D, b = np.empty(3), np.empty(3), np.empty(3)
    rotation(pose, R)
    platform_equations(twist, p.rest, R, M, h)
    w = (twist[3], twist[4], twist[5])
    square = w[0] ** 2 + w[1] ** 2 + w[2] ** 2
    for k in range(6):
        length, c = leg(p.hips[k], p.angles[k], p.feet[k], pose, R, axes, arm)
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
        turned = -(np.sin(p.angles[k]) * axes[2, 1] + np.cos(p.angles[k]) * axes[2, 0])  # z of tangential × z3
        own[0] = (2.0 * s * c * db * E + s * s * slope * dl) * da + weight * turned
        own[1] = slope * dl * db - s * c * E * da * da + weight * axes[0, 2]
        own[2] = -0.5 * slope * (s * s * da * da + db * db) + m3 * G * axes[2, 2]
        own[0] += p.rest[11] * rounded(da, small)
        own[1] += p.rest[12] * rounded(db, small)
        own[2] += p.dry[k] * rounded(dl, small) + p.viscous[k] * dl
        for n in range(3):
            load = own[n] + D[n] * b[n]
            for i in range(6):
                h[i] += J[n, i] * load
                for j in range(6):
                    M[i, j] += J[n, i] * D[n] * J[n, j]


@dataclass(frozen=True, eq=False)
class Platform:
    """Geometry and masses of a hexapod with six equal legs.

    `hips` (6, 3) in the ground's frame and their `angles` (6,) about its z axis; `feet` (6, 3) on the platform. `leg`: p1, p2, p3,
    s2 (first moment of the cylinder, away from the platform), s3 (of the rod about its foot, towards the platform) and m3. `body`: XX,
    YY, ZZ, MZ, M of the platform about its tool centre point. `passive`: dry friction of α and β, N*m; `dry` and `viscous` (6,) of
    the drives, N and N*s/m. Dry friction is rounded off below `friction_speed` (m/s and rad/s).
    """

    hips: Array
    angles: Array
    feet: Array
    leg: Array
    body: Array
    passive: Array
    dry: Array
    viscous: Array
    friction_speed: float = 2e-3

    @property
    def numbers(self) -> PlatformNumbers:
        """What the compiled functions take."""
        rest = np.array([*self.leg, *self.body, *self.passive, self.friction_speed])
        return PlatformNumbers(self.hips, self.angles, self.feet, rest, self.dry, self.viscous)

    def lengths(self, poses: ArrayLike) -> Array:
        """Leg lengths (N, 6) of poses (N, 6): x y z psi theta phi."""
        return _lengths(_table(poses), self.numbers)

    def mechanics(self, pose: ArrayLike, twist: ArrayLike) -> tuple[Array, Array, Array]:
        """M, h and J with M ν̇ + h = Jᵀ F at a pose and a twist ν = (v, ω); J ν are the rates of the lengths."""
        M, h, J = np.empty((6, 6)), np.empty(6), np.empty((6, 6))
        equations(_row(pose), _row(twist), self.numbers, M, h, J)
        return M, h, J

    def forces(self, poses: ArrayLike, rates: ArrayLike, accelerations: ArrayLike) -> Array:
        """Drive forces (N, 6) that a motion of the six pose coordinates asks for."""
        return _inverse(_table(poses), _table(rates), _table(accelerations), self.numbers)

    def energy(self, pose: ArrayLike, twist: ArrayLike) -> float:
        """Kinetic energy and energy in the field of gravity, J."""
        x, nu, R = _row(pose), _row(twist), np.empty((3, 3))
        rotation(x, R)
        down = self.lengths(x)[0]
        feet = x[2] + self.feet @ R[2] - self.hips[:, 2]
        weight = self.leg[5] * down + self.leg[4] - self.leg[3]
        height = self.body[4] * x[2] + self.body[3] * R[2, 2] + float(weight @ (feet / down))
        return 0.5 * float(nu @ self.mechanics(x, nu)[0] @ nu) + G * height


@dataclass(frozen=True, eq=False)
class Control:
    """Position control of each drive: F = feed-forward + kp e + kd ė + ki ∫e, with ė low-passed at `cutoff` (Hz).

    `rate` (Hz) is that of the controller; the equations are integrated with `substeps` steps in between (fourth-order Runge-Kutta).
    """

    kp: float = 1.0e5
    kd: float = 1.2e3
    ki: float = 5.0e5
    cutoff: float = 60.0
    rate: float = 960.0
    substeps: int = 2


CONTROL = Control()


@dataclass(frozen=True, eq=False)
class PlatformRun:
    """One run, at the rate of the controller: `t` (N,), true `poses`, `lengths` and drive `forces` (N, 6), and the `measured` lengths
    that the controller saw."""

    t: Array
    poses: Array
    lengths: Array
    forces: Array
    measured: Array


def run(
    machine: Platform,
    start: ArrayLike,
    lengths: ArrayLike,
    speeds: ArrayLike,
    *,
    feedforward: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    control: Control = CONTROL,
) -> PlatformRun:
    """The machine under control along reference `lengths` and `speeds` (N, 6), from rest or motion at the pose and pose rates `start`.

    `start` (12,): pose and its rates. `feedforward` (N, 6) is added to the forces, `noise` (N, 6) to the lengths that the controller
    measures.
    """
    reference, wanted = _table(lengths), _table(speeds)
    N = len(reference)
    ahead = np.zeros((N, 6)) if feedforward is None else _table(feedforward)
    blur = np.zeros((N, 6)) if noise is None else _table(noise)
    gains = np.array([control.kp, control.kd, control.ki, control.cutoff, control.rate])
    begin = np.asarray(start, dtype=np.float64)
    found = _run(begin, reference, wanted, ahead, blur, gains, control.substeps, machine.numbers)
    if not np.isfinite(found[1]).all():
        k = int(np.argmin(np.isfinite(found[1]).all(axis=1)))
        hint = "Lower gains, more substeps, or a reference that it can follow."
        raise SimulationError("the controlled machine ran away.", where=f"sample {k} of {N}", hint=hint)
    return PlatformRun(np.arange(N) / control.rate, *found)


def _row(values: ArrayLike) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _table(values: ArrayLike) -> Array:
    return np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))


@kept
def _lengths(poses: Array, p: PlatformNumbers) -> Array:
    out = np.empty((len(poses), 6))
    R, axes, arm = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for n in range(len(poses)):
        rotation(poses[n], R)
        for k in range(6):
            out[n, k] = leg(p.hips[k], p.angles[k], p.feet[k], poses[n], R, axes, arm)[0]
    return out


@kept
def _inverse(poses: Array, rates: Array, accelerations: Array, p: PlatformNumbers) -> Array:
    out, M, h, J = np.empty((len(poses), 6)), np.empty((6, 6)), np.empty(6), np.empty((6, 6))
    twist, change, transposed = np.empty(6), np.empty(6), np.empty((6, 6))
    pivot = np.empty(6, dtype=np.int64)
    for n in range(len(poses)):
        twist_of(poses[n], rates[n], twist)
        twist_rate_of(poses[n], rates[n], accelerations[n], change)
        equations(poses[n], twist, p, M, h, J)
        for i in range(6):
            for j in range(6):
                h[i] += M[i, j] * change[j]
                transposed[i, j] = J[j, i]
        solve_once(transposed, pivot, h)
        for i in range(6):
            out[n, i] = h[i]
    return out


@compiled
def _slope(
    state: Array, force: Array, p: PlatformNumbers, M: Array, h: Array, J: Array, pivot: Numbers, out: Array
) -> None:
    equations(state[:6], state[6:], p, M, h, J)
    for i in range(6):
        h[i] = -h[i]
        for k in range(6):
            h[i] += J[k, i] * force[k]
    solve_once(M, pivot, h)
    pose_rate_of(state[:6], state[6:], out[:6])
    for i in range(6):
        out[6 + i] = h[i]


@kept
def _run(
    start: Array,
    lengths: Array,
    speeds: Array,
    feedforward: Array,
    noise: Array,
    gains: Array,
    substeps: int,
    p: PlatformNumbers,
) -> tuple[Array, Array, Array, Array]:
    N = len(lengths)
    poses, found, forces, measured = np.empty((N, 6)), np.empty((N, 6)), np.empty((N, 6)), np.empty((N, 6))
    kp, kd, ki, cutoff, rate = gains[0], gains[1], gains[2], gains[3], gains[4]
    keep, step = np.exp(-2.0 * np.pi * cutoff / rate), 1.0 / (rate * substeps)
    state, at, slope, change = np.empty(12), np.empty(12), np.empty(12), np.empty(12)
    M, h, J, R = np.empty((6, 6)), np.empty(6), np.empty((6, 6)), np.empty((3, 3))
    axes, arm, pivot = np.empty((3, 3)), np.empty(3), np.empty(6, dtype=np.int64)
    total, smooth = np.zeros(6), np.zeros(6)
    for i in range(6):
        state[i] = start[i]
    twist_of(start[:6], start[6:], state[6:])
    for n in range(N):
        rotation(state[:6], R)
        for k in range(6):
            poses[n, k] = state[k]
            found[n, k] = leg(p.hips[k], p.angles[k], p.feet[k], state[:6], R, axes, arm)[0]
            measured[n, k] = found[n, k] + noise[n, k]
            error = lengths[n, k] - measured[n, k]
            if n > 0:
                change_of = (measured[n, k] - measured[n - 1, k]) * rate - speeds[n, k]
                smooth[k] = keep * smooth[k] + (1.0 - keep) * change_of
            total[k] += error / rate
            forces[n, k] = feedforward[n, k] + kp * error - kd * smooth[k] + ki * total[k]
        for _ in range(substeps):
            for i in range(12):
                change[i] = 0.0
                at[i] = state[i]
            for stage in range(4):  # Runge and Kutta: slopes at 0, ½, ½ and 1 of the step count 1, 2, 2 and 1 sixths
                _slope(at, forces[n], p, M, h, J, pivot, slope)
                weight = 1.0 if stage in (0, 3) else 2.0
                reach = 1.0 if stage == 2 else 0.5
                for i in range(12):
                    change[i] += weight * slope[i]
                    at[i] = state[i] + reach * step * slope[i]
            for i in range(12):
                state[i] += step / 6.0 * change[i]
    return poses, found, forces, measured
