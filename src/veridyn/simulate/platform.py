"""A hexapod to experiment on: its geometry and masses, the forces it asks for, and runs under control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Fault, SimulationError
from veridyn.mechanics.compiled import compiled, kept
from veridyn.mechanics.dense import solve_once
from veridyn.simulate.platform_equations import (
    G,
    equations,
    leg,
    pose_rate_of,
    rotation,
    twist_of,
    twist_rate_of,
)

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Platform:
    """Geometry and masses of a hexapod with six equal legs; see :mod:`veridyn.simulate.platform_equations`.

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
    def numbers(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """What the compiled functions take."""
        rest = np.array([*self.leg, *self.body, *self.passive, self.friction_speed])
        return self.hips, self.angles, self.feet, rest, self.dry, self.viscous

    def lengths(self, poses: ArrayLike) -> Array:
        """Leg lengths (N, 6) of poses (N, 6): x y z psi theta phi."""
        return _lengths(_table(poses), *self.numbers[:3])

    def mechanics(self, pose: ArrayLike, twist: ArrayLike) -> tuple[Array, Array, Array]:
        """M, h and J with M ν̇ + h = Jᵀ F at a pose and a twist ν = (v, ω); J ν are the rates of the lengths."""
        M, h, J = np.empty((6, 6)), np.empty(6), np.empty((6, 6))
        equations(_row(pose), _row(twist), *self.numbers, M, h, J)
        return M, h, J

    def forces(self, poses: ArrayLike, rates: ArrayLike, accelerations: ArrayLike) -> Array:
        """Drive forces (N, 6) that a motion of the six pose coordinates asks for."""
        return _inverse(_table(poses), _table(rates), _table(accelerations), *self.numbers)

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
    found = _run(begin, reference, wanted, ahead, blur, gains, control.substeps, *machine.numbers)
    if not np.isfinite(found[1]).all():
        k = int(np.argmin(np.isfinite(found[1]).all(axis=1)))
        raise SimulationError(
            Fault(
                "the controlled machine ran away.",
                where=f"sample {k} of {N}",
                hint="Lower gains, more substeps, or a reference that it can follow.",
            )
        )
    return PlatformRun(np.arange(N) / control.rate, *found)


def _row(values: ArrayLike) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _table(values: ArrayLike) -> Array:
    return np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))


@kept
def _lengths(poses: Array, hips: Array, angles: Array, feet: Array) -> Array:
    out = np.empty((len(poses), 6))
    R, axes, arm = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for n in range(len(poses)):
        rotation(poses[n], R)
        for k in range(6):
            out[n, k] = leg(hips[k], angles[k], feet[k], poses[n], R, axes, arm)[0]
    return out


@kept
def _inverse(
    poses: Array,
    rates: Array,
    accelerations: Array,
    hips: Array,
    angles: Array,
    feet: Array,
    numbers: Array,
    dry: Array,
    viscous: Array,
) -> Array:
    out, M, h, J = np.empty((len(poses), 6)), np.empty((6, 6)), np.empty(6), np.empty((6, 6))
    twist, change, transposed = np.empty(6), np.empty(6), np.empty((6, 6))
    pivot = np.empty(6, dtype=np.int64)
    for n in range(len(poses)):
        twist_of(poses[n], rates[n], twist)
        twist_rate_of(poses[n], rates[n], accelerations[n], change)
        equations(poses[n], twist, hips, angles, feet, numbers, dry, viscous, M, h, J)
        for i in range(6):
            for j in range(6):
                h[i] += M[i, j] * change[j]
                transposed[i, j] = J[j, i]
        solve_once(transposed, pivot, h)
        out[n] = h
    return out


@compiled
def _slope(
    state: Array,
    force: Array,
    hips: Array,
    angles: Array,
    feet: Array,
    numbers: Array,
    dry: Array,
    viscous: Array,
    M: Array,
    h: Array,
    J: Array,
    pivot: Numbers,
    out: Array,
) -> None:
    equations(state[:6], state[6:], hips, angles, feet, numbers, dry, viscous, M, h, J)
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
    hips: Array,
    angles: Array,
    feet: Array,
    numbers: Array,
    dry: Array,
    viscous: Array,
) -> tuple[Array, Array, Array, Array]:
    N = len(lengths)
    poses, found, forces, measured = np.empty((N, 6)), np.empty((N, 6)), np.empty((N, 6)), np.empty((N, 6))
    kp, kd, ki, cutoff, rate = gains[0], gains[1], gains[2], gains[3], gains[4]
    keep, step = np.exp(-2.0 * np.pi * cutoff / rate), 1.0 / (rate * substeps)
    state, at, slope, change = np.empty(12), np.empty(12), np.empty(12), np.empty(12)
    M, h, J, R = np.empty((6, 6)), np.empty(6), np.empty((6, 6)), np.empty((3, 3))
    axes, arm, pivot = np.empty((3, 3)), np.empty(3), np.empty(6, dtype=np.int64)
    total, smooth = np.zeros(6), np.zeros(6)
    state[:6] = start[:6]
    twist_of(start[:6], start[6:], state[6:])
    for n in range(N):
        rotation(state[:6], R)
        poses[n] = state[:6]
        for k in range(6):
            found[n, k] = leg(hips[k], angles[k], feet[k], state[:6], R, axes, arm)[0]
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
                _slope(at, forces[n], hips, angles, feet, numbers, dry, viscous, M, h, J, pivot, slope)
                weight = 1.0 if stage in (0, 3) else 2.0
                reach = 1.0 if stage == 2 else 0.5
                for i in range(12):
                    change[i] += weight * slope[i]
                    at[i] = state[i] + reach * step * slope[i]
            for i in range(12):
                state[i] += step / 6.0 * change[i]
    return poses, found, forces, measured
