"""What a filter needs to know of a machine: how its state moves, what its sensors read, and how uncertain both are.

    x_{k+1} = f(x_k, u_k) + w_k,  cov(w) = Q        y_k = h(x_k, u_k) + v_k,  cov(v) = R        (paper 003, equation 52)

:class:`System` is the protocol; :class:`Discrete` and :class:`Continuous` make one from plain callables. A state may live
on a curved space (an attitude): then `add` and `subtract` say what a small change of it is, and covariances are of such
changes. `move` and `sense` take one state (n,) or many (k, n).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.stepper import explicit_step
from veridyn.mechanics.tableau import tableau
from veridyn.observe.noise import as_covariance, quick_covariance, van_loan

Array = NDArray[np.float64]
Integrator = Literal["euler", "midpoint", "rk4"]
RULES = {"euler": "euler", "midpoint": "midpoint", "rk4": "RK4"}  # integrator → its tableau


class System(Protocol):
    """A machine and its sensors. `states` names the n entries of a change of state, `outputs` the m readings."""

    @property
    def states(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        """The state at t + dt from the state x at t, under the input u held over the step."""
        ...

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        """The same for one state, and the derivative F (n, n) of the new state with respect to x."""
        ...

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        """Q (n, n): the covariance that the step adds."""
        ...

    def sense(self, x: Array, u: Array, t: float) -> Array:
        """The readings (m,) or (k, m) that the sensors should show."""
        ...

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        """The same for one state, and the derivative H (m, n)."""
        ...

    def sensor_noise(self, t: float) -> Array:
        """R (m, m), positive definite."""
        ...

    def add(self, x: Array, d: Array) -> Array:
        """The state x changed by d (n,) or (k, n)."""
        ...

    def subtract(self, a: Array, b: Array) -> Array:
        """The change (…, n) that leads from the state b to the states a."""
        ...

    def residual(self, y: Array, expected: Array) -> Array:
        """Readings minus what was expected; where a reading is an angle, the short way round."""
        ...


StateMap = Callable[..., ArrayLike]


@dataclass(frozen=True, eq=False)
class _Callables:
    """What both kinds share: sensors h(x, u, t), their derivative H(x, u, t), the noises, and the geometry of the state.

    `R` is a covariance or its diagonal, or a callable of t. `batched`: f and h take many states (k, n) at once.
    `F` and `H` may be left out for a filter that does not ask for them (UKF).
    """

    states: tuple[str, ...]
    outputs: tuple[str, ...]
    f: StateMap
    h: StateMap
    Q: ArrayLike | Callable[..., ArrayLike]
    R: ArrayLike | Callable[[float], ArrayLike]
    F: StateMap | None = None
    H: StateMap | None = None
    add_change: Callable[[Array, Array], Array] | None = None
    change_between: Callable[[Array, Array], Array] | None = None
    reading_error: Callable[[Array, Array], Array] | None = None
    batched: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        if not callable(self.Q):
            object.__setattr__(self, "Q", as_covariance(self.Q, self.states, "process noise"))
        if not callable(self.R):
            object.__setattr__(self, "R", as_covariance(self.R, self.outputs, "measurement noise", definite=True))

    def _apply(self, function: StateMap, x: Array, *rest: object) -> Array:
        if x.ndim == 1 or self.batched:
            return np.asarray(function(x, *rest), dtype=np.float64)
        return np.array([function(one, *rest) for one in x], dtype=np.float64)

    def sense(self, x: Array, u: Array, t: float) -> Array:
        return shaped(self._apply(self.h, x, u, t), (*x.shape[:-1], len(self.outputs)), "h")

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        H = derivative_of(self.H, "H")(x, u, t)
        return self.sense(x, u, t), shaped(H, (len(self.outputs), len(self.states)), "H")

    def sensor_noise(self, t: float) -> Array:
        if not callable(self.R):
            return np.asarray(self.R)
        return quick_covariance(self.R(t), self.outputs, f"measurement noise at {t:.6g} s")

    def add(self, x: Array, d: Array) -> Array:
        return x + d if self.add_change is None else self.add_change(x, d)

    def subtract(self, a: Array, b: Array) -> Array:
        return a - b if self.change_between is None else self.change_between(a, b)

    def residual(self, y: Array, expected: Array) -> Array:
        return y - expected if self.reading_error is None else self.reading_error(y, expected)


@dataclass(frozen=True, eq=False)
class Discrete(_Callables):
    """f(x, u, t, dt) → the next state, F(x, u, t, dt) its derivative; Q a covariance per step, or a callable of x, u, t, dt.

    A constant Q is added at every step whatever its length; give a callable where steps differ.
    """

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return shaped(self._apply(self.f, x, u, t, dt), x.shape, "f")

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        n = len(self.states)
        return self.move(x, u, t, dt), shaped(derivative_of(self.F, "F")(x, u, t, dt), (n, n), "F")

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        if not callable(self.Q):
            return np.asarray(self.Q)
        return quick_covariance(self.Q(x, u, t, dt), self.states, f"process noise at {t:.6g} s")


@dataclass(frozen=True, eq=False)
class Continuous(_Callables):
    """f(x, u, t) → ẋ, F(x, u, t) = ∂ẋ/∂x; Q a spectral density (unit²/s), or a callable of x, u, t.

    Integrated by `integrator` in equal steps no longer than `step`; the derivative is that of the integrator's own map,
    exactly. The noise of a step is Van Loan's with ∂ẋ/∂x at its start. The state is a plain vector.
    """

    integrator: Integrator = "rk4"
    step: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.integrator not in RULES:
            raise ModelError(Fault(f"there is no integrator '{self.integrator}'.", "system", ", ".join(RULES)))
        if not self.step > 0.0:
            raise ModelError(Fault("the longest step is not usable.", "system", "a positive time", f"{self.step}"))
        if self.add_change is not None:
            raise ModelError(
                Fault(
                    "a continuous system's state is a plain vector.",
                    "system",
                    hint="Integrate it yourself in Discrete.",
                )
            )

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        rule, count = tableau(RULES[self.integrator]), self._count(dt)
        h, shape = dt / count, x.shape

        def rate(time: float, at: Array) -> Array:
            return shaped(self._apply(self.f, at, u, time), shape, "f")

        for k in range(count):
            x = explicit_step(rule, rate, t + k * h, x, h)
        return x

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        n = len(self.states)
        A = derivative_of(self.F, "F")
        rule, count = tableau(RULES[self.integrator]), self._count(dt)

        def rate(time: float, y: Array) -> Array:
            """(ẋ, Ẋ) of the state and its derivative X by the start: Ẋ = F X, stepped alongside, is the derivative of the step."""
            slope = shaped(self.f(y[:, 0], u, time), (n,), "f")
            return np.column_stack([slope, shaped(A(y[:, 0], u, time), (n, n), "F") @ y[:, 1:]])

        y = np.column_stack([x, np.eye(n)])
        for k in range(count):
            y = explicit_step(rule, rate, t + k * dt / count, y, dt / count)
        return y[:, 0].copy(), y[:, 1:].copy()

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        n = len(self.states)
        W = self.Q
        if callable(W):
            W = quick_covariance(W(x, u, t), self.states, f"spectral density at {t:.6g} s")
        A = self._slopes(x, u, t) if self.F is None else shaped(self.F(x, u, t), (n, n), "F")
        return van_loan(A, W, dt)[1]

    def _slopes(self, x: Array, u: Array, t: float) -> Array:
        """∂ẋ/∂x by central differences: good enough to spread noise over a step, not for F."""
        eps = 1e-6 * np.maximum(1.0, np.abs(x))
        ahead, behind = x + np.diag(eps), x - np.diag(eps)
        return ((self._apply(self.f, ahead, u, t) - self._apply(self.f, behind, u, t)) / (2.0 * eps[:, None])).T

    def _count(self, dt: float) -> int:
        return max(1, int(np.ceil(dt / self.step - 1e-9)))


def derivative_of(function: StateMap | None, name: str) -> StateMap:
    """The derivative, which must have been given."""
    if function is None:
        raise ModelError(
            Fault(f"the system has no {name}, which this filter needs.", "system", hint="Give it, or use the UKF.")
        )
    return function


def shaped(value: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """What a callable returned, refused by the callable's name where its shape is wrong."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(Fault(f"{name} has the wrong shape.", "system", f"{shape}", f"{array.shape}"))
    return array
