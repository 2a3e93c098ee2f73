"""Filters written another way, to judge those of the package: inverses, stacked systems, and no shared code."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class LinearCase:
    """A linear system with constant matrices and a start."""

    F: np.ndarray
    H: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    x0: np.ndarray
    P0: np.ndarray
    step: float = 0.1

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(f"s{i}" for i in range(len(self.F)))

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"y{i}" for i in range(len(self.H)))

    def simulate(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Truth (N, n) drawn from the start's own distribution, and readings (N, m)."""
        n, m = len(self.F), len(self.H)
        x = rng.multivariate_normal(self.x0, self.P0)
        truth, readings = np.empty((count, n)), np.empty((count, m))
        process = rng.multivariate_normal(np.zeros(n), self.Q, count)
        noise = rng.multivariate_normal(np.zeros(m), self.R, count)
        for k in range(count):
            if k:
                x = self.F @ x + process[k]
            truth[k], readings[k] = x, self.H @ x + noise[k]
        return truth, readings


def oscillator() -> LinearCase:
    """A damped oscillator with a drifting offset; one sensor of position plus offset, one of velocity, correlated noise."""
    F = np.array([[0.98, 0.095, 0.0], [-0.38, 0.92, 0.0], [0.0, 0.0, 1.0]])
    H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    Q = np.diag([1e-4, 4e-3, 5e-4])
    R = np.array([[0.04, 0.01], [0.01, 0.09]])
    return LinearCase(F, H, Q, R, np.array([0.5, 0.0, -0.2]), np.diag([0.25, 0.5, 0.1]))


def kalman(case: LinearCase, y: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The covariance form with explicit inverses, all readings of a row at once."""
    x, P = case.x0.copy(), case.P0.copy()
    xs, Ps = [], []
    for k in range(len(y)):
        if k:
            x, P = case.F @ x, case.F @ P @ case.F.T + case.Q
        use = np.ones(y.shape[1], bool) if mask is None else mask[k]
        if use.any():
            H, R = case.H[use], case.R[np.ix_(use, use)]
            K = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
            x, P = x + K @ (y[k, use] - H @ x), P - K @ H @ P
        xs.append(x)
        Ps.append(P)
    return np.array(xs), np.array(Ps)


def whole_log(case: LinearCase, y: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All states of a log as one weighted least-squares problem: its solution (N, n) and covariance (N, n, N, n)."""
    N, n = len(y), len(case.F)
    information, vector = np.zeros((N * n, N * n)), np.zeros(N * n)

    def at(k: int) -> slice:
        return slice(k * n, (k + 1) * n)

    start = np.linalg.inv(case.P0)
    information[at(0), at(0)] += start
    vector[at(0)] += start @ case.x0
    W = np.linalg.inv(case.Q)
    for k in range(1, N):
        a, b = at(k - 1), at(k)
        information[a, a] += case.F.T @ W @ case.F
        information[a, b] -= case.F.T @ W
        information[b, a] -= W @ case.F
        information[b, b] += W
    for k in range(N):
        use = np.ones(y.shape[1], bool) if mask is None else mask[k]
        H, V = case.H[use], np.linalg.inv(case.R[np.ix_(use, use)])
        information[at(k), at(k)] += H.T @ V @ H
        vector[at(k)] += H.T @ V @ y[k, use]
    covariance = np.linalg.inv(information)
    return (covariance @ vector).reshape(N, n), covariance.reshape(N, n, N, n)


def integrated_white_noise(density: ArrayLike, dt: float, order: int) -> np.ndarray:
    """Q of chains of `order` integrators whose last one is driven by white noise of the given densities (n,).

    The state lists all coordinates, then all first derivatives, and so on. In closed form, for i, j = 0 … order − 1:
    Q_ij = q Δt^(2r−1−i−j) / ((r−1−i)! (r−1−j)! (2r−1−i−j)).
    """
    q = np.atleast_1d(np.asarray(density, dtype=np.float64))
    block = np.empty((order, order))
    for i in range(order):
        for j in range(order):
            power = 2 * order - 1 - i - j
            block[i, j] = dt**power / (factorial(order - 1 - i) * factorial(order - 1 - j) * power)
    return np.asarray(np.kron(block, np.diag(q)), dtype=np.float64)
