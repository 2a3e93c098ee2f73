"""The linear Kalman filter, exact for linear systems with normal noise, and the gain it settles at.

    x_{k+1} = F x_k + B u_k + w_k      y_k = H x_k + D u_k + v_k                                  (paper 003, equation 46)
    x ← F x + B u,  P ← F P Fᵀ + Q                                                                (47)

The stationary prediction covariance solves P = F P Fᵀ − F P Hᵀ (H P Hᵀ + R)⁻¹ H P Fᵀ + Q (51, with its minus sign).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm, solve_discrete_are

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.update import Expectation
from veridyn.observe.process_noise import as_covariance, quick_covariance, symmetric, van_loan
from veridyn.observe.result import Belief
from veridyn.observe.system import System, shaped

OverStep = Callable[[float, float], ArrayLike]
OverTime = Callable[[float], ArrayLike]


@dataclass(frozen=True, eq=False)
class Linear:
    """Matrices, or callables: F, B, Q of (t, dt); H, D, R of t. Q is the covariance that one step adds.

    `step`: the time that constant F, B and Q are for. Steps of another length are then refused, because they would be
    silently wrong; :func:`from_rates` makes a system for steps of any length.
    """

    states: tuple[str, ...]
    outputs: tuple[str, ...]
    F: ArrayLike | OverStep
    H: ArrayLike | OverTime
    Q: ArrayLike | OverStep
    R: ArrayLike | OverTime
    B: ArrayLike | OverStep | None = None
    D: ArrayLike | OverTime | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        n, m = len(self.states), len(self.outputs)
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        for name, shape in (("F", (n, n)), ("H", (m, n)), ("B", (n, -1)), ("D", (m, -1))):
            value = getattr(self, name)
            if value is None or callable(value):
                continue
            array = np.asarray(value, dtype=np.float64)
            width = array.shape[1] if array.ndim == 2 and shape[1] < 0 else shape[1]
            object.__setattr__(self, name, shaped(array, (shape[0], width), name))
        if not callable(self.Q):
            object.__setattr__(self, "Q", as_covariance(self.Q, self.states, "process noise"))
        if not callable(self.R):
            object.__setattr__(self, "R", as_covariance(self.R, self.outputs, "measurement noise", definite=True))

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return self.move_and_jacobian(x, u, t, dt)[0]

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        if self.step is not None and abs(dt - self.step) > 1e-6 * self.step:
            raise ModelError(
                f"the step at {t:.6g} s is not the one of this system.",
                where="linear system",
                expected=f"{self.step:.6g} s",
                found=f"{dt:.6g} s",
                hint="from_rates makes a linear system for steps of any length.",
            )
        n = len(self.states)
        F = shaped(self.F(t, dt) if callable(self.F) else self.F, (n, n), "F")
        x = x @ F.T
        if self.B is not None:
            x = x + shaped(self.B(t, dt) if callable(self.B) else self.B, (n, len(u)), "B") @ u
        return x, F

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        if not callable(self.Q):
            return np.asarray(self.Q)
        return quick_covariance(self.Q(t, dt), self.states, f"process noise at {t:.6g} s")

    def sense(self, x: Array, u: Array, t: float) -> Array:
        return self.sense_and_jacobian(x, u, t)[0]

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        m = len(self.outputs)
        H = shaped(self.H(t) if callable(self.H) else self.H, (m, len(self.states)), "H")
        y = x @ H.T
        if self.D is not None:
            y = y + shaped(self.D(t) if callable(self.D) else self.D, (m, len(u)), "D") @ u
        return y, H

    def sensor_noise(self, t: float) -> Array:
        if not callable(self.R):
            return np.asarray(self.R)
        return quick_covariance(self.R(t), self.outputs, f"measurement noise at {t:.6g} s")

    def add(self, x: Array, d: Array) -> Array:
        return x + d

    def subtract(self, a: Array, b: Array) -> Array:
        return a - b

    def residual(self, y: Array, expected: Array) -> Array:
        return y - expected


@dataclass(frozen=True, repr=False)
class Kalman(Filter):
    """The linear Kalman filter. It takes a :class:`Linear` system only, so that "exact" is never claimed wrongly."""

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        if not isinstance(system, Linear):
            raise ModelError(
                "the system is not linear.", where=self.name, expected="a Linear system", found=type(system).__name__
            )
        x, F = system.move_and_jacobian(belief.x, u, t, dt)
        return x, symmetric(F @ belief.P @ F.T) + system.noise(belief.x, u, t, dt), F

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        if not isinstance(system, Linear):
            raise ModelError(
                "the system is not linear.", where=self.name, expected="a Linear system", found=type(system).__name__
            )
        y, H = system.sense_and_jacobian(x, u, t)
        return Expectation(y, H, system.sensor_noise(t))


def from_rates(
    states: Sequence[str],
    outputs: Sequence[str],
    A: ArrayLike,
    H: ArrayLike,
    W: ArrayLike,
    R: ArrayLike,
    B: ArrayLike | None = None,
) -> Linear:
    """The system ẋ = A x + B u + w, with u held over each step and w of spectral density W, for steps of any length.

    F = exp(A Δt), G = ∫ exp(A s) B ds (paper 003, equation 45), Q by Van Loan; remembered for the last few step lengths.
    """
    n = len(states)
    rates = shaped(A, (n, n), "A")
    density = as_covariance(W, states, "spectral density")
    inputs = None if B is None else np.asarray(B, dtype=np.float64)

    @lru_cache(maxsize=16)
    def discrete(dt: float) -> tuple[Array, Array, Array]:
        F, Q = van_loan(rates, density, dt)
        if inputs is None:
            return F, Q, np.zeros((n, 0))
        p = inputs.shape[1]
        E: Array = np.asarray(expm(np.block([[rates, inputs], [np.zeros((p, n + p))]]) * dt), dtype=np.float64)
        return F, Q, E[:n, n:]

    def lengthened(dt: float) -> tuple[Array, Array, Array]:
        return discrete(round(dt, 12))  # a clock's rounding must not make every step a new one

    return Linear(
        tuple(states),
        tuple(outputs),
        lambda t, dt: lengthened(dt)[0],
        H,
        lambda t, dt: lengthened(dt)[1],
        R,
        None if B is None else (lambda t, dt: lengthened(dt)[2]),
    )


@dataclass(frozen=True, eq=False)
class SteadyState:
    """Where the filter of a time-invariant system settles: gain `K` (n, m), covariances, and its own `poles`.

    The error of the estimate obeys e⁺ = F (I − K H) e: the poles are the eigenvalues of that matrix.
    """

    K: Array
    P_predicted: Array
    P: Array
    poles: NDArray[np.complex128]

    @property
    def stable(self) -> bool:
        return bool((np.abs(self.poles) < 1.0).all())


def steady_state(F: ArrayLike, H: ArrayLike, Q: ArrayLike, R: ArrayLike) -> SteadyState:
    """The stationary filter by the discrete algebraic Riccati equation; refused where there is none."""
    F, H, Q, R = (np.asarray(a, dtype=np.float64) for a in (F, H, Q, R))
    try:
        P = solve_discrete_are(F.T, H.T, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise ModelError(
            "the filter has no stationary gain.",
            where="steady state",
            hint="An unstable or integrating state is not measured, or nothing excites it. Ask for its observability.",
        ) from error
    K = np.linalg.solve(H @ P @ H.T + R, H @ P).T
    keep = np.eye(len(F)) - K @ H
    return SteadyState(K, P, symmetric(keep @ P @ keep.T + K @ R @ K.T), np.linalg.eigvals(F @ keep))
