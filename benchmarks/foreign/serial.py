"""Serial arms with turning joints by Newton's and Euler's equations, written once more. Nothing here calls veridyn.

Frames are those of modified Denavit-Hartenberg: frame j stands in frame j − 1 at Rot_x(α) Trans_x(d) Rot_z(q_j) Trans_z(r), gravity acts
along −z of the ground, and the torque of joint j is the z component of the moment that link j − 1 exerts on link j:

    ω_j = Rᵀ ω + q̇ z,   ω̇_j = Rᵀ ω̇ + q̈ z + (Rᵀ ω) × q̇ z,   a_j = Rᵀ (a + ω̇ × p + ω × (ω × p)),   a_0 = g z
    F_j = m (a + ω̇ × c + ω × (ω × c)),   N_j = J ω̇ + ω × J ω,   n_j = N + c × F + R n + p × R f,   f_j = F + R f

A motion is given, and the torques that it takes follow: nothing is integrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
GRAVITY = 9.81
TERMS = 5  # sines of a motion


@dataclass(frozen=True)
class SerialLink:
    """α, d, r of the frame; mass, centre and the diagonal of the inertia about it; viscous friction of the joint."""

    alpha: float
    d: float
    r: float
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float]
    damping: float


@dataclass(frozen=True)
class SerialArm:
    """A model `file` for veridyn, and the same links here."""

    file: Path
    links: tuple[SerialLink, ...]

    def torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """τ (N, n) of states (N, n)."""
        count, n = q.shape
        w, wd, a = np.zeros((count, 3)), np.zeros((count, 3)), np.tile([0.0, 0.0, GRAVITY], (count, 1))
        z, turns, places, forces, moments = np.array([0.0, 0.0, 1.0]), [], [], [], []
        for k, link in enumerate(self.links):
            R, p = _frame(link, q[:, k])
            a = _back(R, a + np.cross(wd, p) + np.cross(w, np.cross(w, p)))
            before, spin = _back(R, w), qd[:, k, None] * z
            wd = _back(R, wd) + qdd[:, k, None] * z + np.cross(before, spin)
            w = before + spin
            c, J = np.array(link.centre), np.array(link.inertia)
            turns.append(R)
            places.append(p)
            forces.append(link.mass * (a + np.cross(wd, c) + np.cross(w, np.cross(w, c))))
            moments.append(J * wd + np.cross(w, J * w))
        f, m, tau = np.zeros((count, 3)), np.zeros((count, 3)), np.empty((count, n))
        for k in reversed(range(n)):
            m = moments[k] + np.cross(self.links[k].centre, forces[k]) + m
            f = forces[k] + f
            tau[:, k] = m[:, 2] + self.links[k].damping * qd[:, k]
            f, m = _forth(turns[k], f), _forth(turns[k], m)
            m = m + np.cross(places[k], f)
        return tau


def _frame(link: SerialLink, q: Array) -> tuple[Array, Array]:
    """The rotation (N, 3, 3) of a frame in the one before, and its place."""
    ca, sa, c, s = np.cos(link.alpha), np.sin(link.alpha), np.cos(q), np.sin(q)
    zero = np.zeros_like(q)
    R = np.stack([c, -s, zero, ca * s, ca * c, zero - sa, sa * s, sa * c, zero + ca], axis=1).reshape(-1, 3, 3)
    return R, np.array([link.d, -sa * link.r, ca * link.r])


def _back(R: Array, x: Array) -> Array:
    return np.einsum("kji,kj->ki", R, x)


def _forth(R: Array, x: Array) -> Array:
    return np.einsum("kij,kj->ki", R, x)


THREE_JOINTS = SerialArm(
    HERE / "three_joints.yaml",
    (
        SerialLink(0.0, 0.0, 0.3, 4.0, (0.01, -0.02, -0.04), (0.03, 0.03, 0.02), 0.8),
        SerialLink(-np.pi / 2, 0.05, 0.0, 3.0, (0.16, 0.01, 0.03), (0.01, 0.05, 0.05), 0.8),
        SerialLink(0.0, 0.4, 0.0, 1.5, (0.14, 0.02, -0.01), (0.004, 0.02, 0.02), 0.3),
    ),
)
PENDULUM = SerialArm(
    HERE / "one_joint.yaml", (SerialLink(-np.pi / 2, 0.0, 0.0, 2.0, (0.25, 0.01, 0.0), (0.002, 0.04, 0.04), 0.2),)
)


def waves(rng: np.random.Generator, t: Array, n: int, highest: float, reach: float) -> tuple[Array, Array, Array]:
    """q, q̇ and q̈ (N, n) of sums of sines with frequencies up to `highest` Hz."""
    w = 2.0 * np.pi * highest * rng.uniform(0.15, 1.0, (TERMS, n))
    phase, size = rng.uniform(0.0, 2.0 * np.pi, (TERMS, n)), reach * rng.uniform(0.5, 1.0, (TERMS, n)) / TERMS
    angle = t[:, None, None] * w + phase
    s, c = np.sin(angle), np.cos(angle)
    return (size * s).sum(1), (size * w * c).sum(1), (-size * w**2 * s).sum(1)


def dwelling(
    rng: np.random.Generator, t: Array, n: int, reach: float, moves: Sequence[float], rests: Sequence[float]
) -> tuple[Array, Array, Array]:
    """Moves of least jerk from place to place with rests between, each joint on a clock of its own; ranges of seconds."""
    q, qd, qdd = np.zeros((3, len(t), n))
    for k in range(n):
        begin, here = float(t[0]) + rng.uniform(*rests), reach * rng.uniform(-1.0, 1.0)
        q[:, k] = here
        while begin < t[-1]:
            long, there = rng.uniform(*moves), reach * rng.uniform(-1.0, 1.0)
            on = (t >= begin) & (t < begin + long)
            s, way = (t[on] - begin) / long, there - here
            q[on, k] = here + way * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
            qd[on, k] = way / long * 30.0 * s**2 * (1.0 - s) ** 2
            qdd[on, k] = way / long**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
            q[t >= begin + long, k] = there
            begin, here = begin + long + rng.uniform(*rests), there
    return q, qd, qdd
