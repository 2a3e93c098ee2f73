"""What a filter needs to know of a machine: how its state moves, what its sensors read, and how uncertain both are.

    x_{k+1} = f(x_k, u_k) + w_k,  cov(w) = Q        y_k = h(x_k, u_k) + v_k,  cov(v) = R        (paper 003, equation 52)

:class:`System` is the protocol; :class:`Discrete` and :class:`Continuous` make one from plain callables. A state may live
on a curved space (an attitude): then `add` and `subtract` say what a small change of it is, and covariances are of such
changes. `move` and `sense` take one state (n,) or many (k, n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import as_array, checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.mechanics.system.stepper import explicit_step, tableau
from veridyn.observe.process_noise import as_covariance, quick_covariance, van_loan
from veridyn.observe.settings import ParameterBounds

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
class Callables:
    """What both kinds share: sensors h(x, u, t), their derivative H(x, u, t), the noises, and the geometry of the state.

    `R` is a covariance or its diagonal, or a callable of t. `batched`: f and h take many states (k, n) at once.
    `F` and `H` may be left out for a filter that does not ask for them (UKF).
    `parameters` (k,): numbers that f, F, h and H get as their last argument; without any they get none.
    `limits`: state → (lower, upper), within which every correction leaves it. `consider`: states that no reading corrects, whose
    uncertainty enters that of the others (Schmidt's filter).
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
    parameters: ArrayLike = ()
    limits: Mapping[str, tuple[float, float]] | None = None
    consider: Sequence[str] = ()
    _last: ClassVar[tuple[Any, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "parameters", np.atleast_1d(np.asarray(self.parameters, dtype=np.float64)))
        object.__setattr__(self, "_last", (self.parameters,) if np.size(self.parameters) else ())
        if not callable(self.Q):
            object.__setattr__(self, "Q", as_covariance(self.Q, self.states, "process noise"))
        if not callable(self.R):
            object.__setattr__(self, "R", as_covariance(self.R, self.outputs, "measurement noise", definite=True))
        faults = Faults()
        for where, names in (("limits", self.limits or {}), ("consider", self.consider)):
            for name in names:
                if name not in self.states:
                    faults.add(f"there is no state '{name}'.", where=where, hint=did_you_mean(name, self.states))
        for name, (low, high) in (self.limits or {}).items():
            if not low < high:
                faults.add(f"the limits of '{name}' leave nothing.", where="limits", found=f"{low:g} to {high:g}")
        faults.raise_if_any(ModelError)

    @cached_property
    def bounds(self) -> ParameterBounds | None:
        """The limits as every filter takes them."""
        if not self.limits:
            return None
        at = np.array([self.states.index(name) for name in self.limits], dtype=np.int64)
        low, high = (np.array([pair[k] for pair in self.limits.values()], dtype=np.float64) for k in (0, 1))
        return ParameterBounds(names=tuple(self.limits), places=at, changes=at, lower=low, upper=high)

    @cached_property
    def _one(self) -> Array:
        return np.eye(len(self.states))

    @cached_property
    def considered(self) -> NDArray[np.bool_] | None:
        """Which states (n,) no reading corrects; None where there are none."""
        return np.isin(self.states, list(self.consider)) if len(self.consider) else None

    def _apply(self, function: StateMap, x: Array, *rest: object) -> Array:
        if x.ndim == 1 or self.batched:
            return np.asarray(function(x, *rest, *self._last), dtype=np.float64)
        return np.array([function(one, *rest, *self._last) for one in x], dtype=np.float64)

    def sense(self, x: Array, u: Array, t: float) -> Array:
        return shaped(self._apply(self.h, x, u, t), (*x.shape[:-1], len(self.outputs)), "h")

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        H = derivative_of(self.H, "H")(x, u, t, *self._last)
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

    @property
    def curved(self) -> bool:
        """Whether a change of the state is not a plain difference."""
        return self.add_change is not None or self.change_between is not None


@checked_record
@dataclass(frozen=True, eq=False)
class Discrete(Callables):
    """f(x, u, t, dt) → the next state, F(x, u, t, dt) its derivative; Q a covariance per step, or a callable of x, u, t, dt.

    A constant Q is added at every step whatever its length; give a callable where steps differ.

    Examples
    --------
    A cart that coasts, with its position measured:

    >>> import numpy as np
    >>> from veridyn import filters
    >>> def f(x, u, t, dt):
    ...     return np.array([x[0] + dt * x[1], x[1]])
    >>> def F(x, u, t, dt):
    ...     return np.array([[1.0, dt], [0.0, 1.0]])
    >>> cart = filters.Discrete(
    ...     ("x", "v"), ("x",), f, lambda x, u, t: x[:1], np.diag([0.0, 1e-4]), [0.01], F, lambda x, u, t: np.eye(1, 2)
    ... )
    >>> cart.move(np.array([0.0, 2.0]), np.zeros(0), 0.0, 0.5)
    array([1., 2.])
    """

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return shaped(self._apply(self.f, x, u, t, dt), x.shape, "f")

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        n = len(self.states)
        F = derivative_of(self.F, "F")(x, u, t, dt, *self._last)
        return self.move(x, u, t, dt), shaped(F, (n, n), "F")

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        if not callable(self.Q):
            return np.asarray(self.Q)
        return quick_covariance(self.Q(x, u, t, dt), self.states, f"process noise at {t:.6g} s")


@checked_record
@dataclass(frozen=True, eq=False)
class Continuous(Callables):
    """f(x, u, t) → ẋ, F(x, u, t) = ∂ẋ/∂x; Q a spectral density (unit²/s), or a callable of x, u, t.

    Integrated by `integrator` in equal steps no longer than `step`; the derivative is that of the integrator's own map,
    exactly. The noise of a step is Van Loan's with ∂ẋ/∂x at its start. The state is a plain vector.

    Examples
    --------
    A pendulum whose angle is measured, with f, F, h and H compiled so that a step takes microseconds:

    >>> import numba
    >>> import numpy as np
    >>> from veridyn import filters
    >>> @numba.njit
    ... def f(x, u, t):
    ...     return np.array([x[1], -9.81 * np.sin(x[0])])
    >>> @numba.njit
    ... def F(x, u, t):
    ...     return np.array([[0.0, 1.0], [-9.81 * np.cos(x[0]), 0.0]])
    >>> @numba.njit
    ... def h(x, u, t):
    ...     return x[:1].copy()
    >>> @numba.njit
    ... def H(x, u, t):
    ...     return np.array([[1.0, 0.0]])
    >>> pendulum = filters.Continuous(("angle", "rate"), ("angle",), f, h, [0.0, 1e-3], [1e-4], F, H)
    >>> log = filters.Measurements(np.linspace(0.0, 1.0, 101), 0.3 * np.cos(np.linspace(0.0, 3.13, 101)), ("angle",))
    >>> found = filters.run(filters.EKF(), pendulum, log, filters.Belief(np.array([0.3, 0.0]), np.array([0.01, 0.01])))
    >>> found.x.shape
    (101, 2)
    """

    integrator: Integrator = "rk4"
    step: float = np.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.integrator not in RULES:
            raise ModelError(f"there is no integrator '{self.integrator}'.", where="system", expected=", ".join(RULES))
        if not self.step > 0.0:
            raise ModelError(
                "the longest step is not usable.", where="system", expected="a positive time", found=f"{self.step}"
            )
        if self.add_change is not None:
            raise ModelError(
                "a continuous system's state is a plain vector.",
                where="system",
                hint="Integrate it yourself in Discrete.",
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
            slope = shaped(self.f(y[:, 0], u, time, *self._last), (n,), "f")
            return np.column_stack([slope, shaped(A(y[:, 0], u, time, *self._last), (n, n), "F") @ y[:, 1:]])

        y = np.column_stack([x, np.eye(n)])
        for k in range(count):
            y = explicit_step(rule, rate, t + k * dt / count, y, dt / count)
        return y[:, 0].copy(), y[:, 1:].copy()

    def move_with_slopes(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        """:meth:`move_and_jacobian` written out for few states, and ∂ẋ/∂x at the start, which the noise needs."""
        f, A, n, last = self.f, derivative_of(self.F, "F"), len(self.states), self._last
        shape, count = (n, n), 1 if dt <= self.step else self._count(dt)
        h, X = dt / count, self._one
        first = X
        for k in range(count):
            at = t + k * h
            k1, K1 = shaped(f(x, u, at, *last), (n,), "f"), shaped(A(x, u, at, *last), shape, "F")
            if k == 0:
                first = K1
            else:
                K1 = K1 @ X
            if self.integrator == "euler":
                x, X = x + h * k1, X + h * K1
                continue
            half, mid = 0.5 * h, at + 0.5 * h
            y, Y = x + half * k1, X + half * K1
            k2, K2 = shaped(f(y, u, mid, *last), (n,), "f"), shaped(A(y, u, mid, *last), shape, "F") @ Y
            if self.integrator == "midpoint":
                x, X = x + h * k2, X + h * K2
                continue
            y, Y = x + half * k2, X + half * K2
            k3, K3 = shaped(f(y, u, mid, *last), (n,), "f"), shaped(A(y, u, mid, *last), shape, "F") @ Y
            y, Y = x + h * k3, X + h * K3
            k4, K4 = shaped(f(y, u, at + h, *last), (n,), "f"), shaped(A(y, u, at + h, *last), shape, "F") @ Y
            x = x + (h / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)
            X = X + (h / 6.0) * (K1 + 2.0 * (K2 + K3) + K4)
        return x, X, first

    def density(self, x: Array, u: Array, t: float, dt: float) -> Array:
        """The spectral density at the start of a step."""
        if not callable(self.Q):
            return np.asarray(self.Q)
        return quick_covariance(self.Q(x, u, t), self.states, f"spectral density at {t:.6g} s")

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        n = len(self.states)
        A = self._slopes(x, u, t) if self.F is None else shaped(self.F(x, u, t, *self._last), (n, n), "F")
        return van_loan(A, self.density(x, u, t, dt), dt)[1]

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
            f"the system has no {name}, which this filter needs.", where="system", hint="Give it, or use the UKF."
        )
    return function


def shaped(value: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """What a callable returned, refused by the callable's name where its shape is wrong."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(f"{name} has the wrong shape.", where="system", expected=f"{shape}", found=f"{array.shape}")
    return array


STEPS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)  # of the typical size of a state
SHOWN_ENTRIES = 12


@dataclass(frozen=True, eq=False)
class JacobianCheck:
    """`numeric` (m, n) by differences with its `accuracy`, `given` by the model, and the largest relative `error`.

    Errors are relative to the largest entry of a row, each times its state's typical size.
    """

    given: Array
    numeric: Array
    accuracy: Array
    error: float


def numeric_jacobian(
    h: Callable[[Array], ArrayLike],
    x: ArrayLike,
    scales: ArrayLike | None = None,
    add: Callable[[Array, Array], Array] | None = None,
) -> tuple[Array, Array]:
    """∂h/∂x (m, n) and how far it can be trusted (m, n).

    Central differences at several step lengths, each improved by Richardson's extrapolation; for every entry the length is taken at which
    two neighbours agree best, and their disagreement is the accuracy.
    """
    x = np.asarray(x, dtype=np.float64)
    sizes = np.ones(len(x)) if scales is None else np.asarray(scales, dtype=np.float64)
    columns, accuracies = [], []
    for j, size in enumerate(sizes.tolist()):
        tries = []
        for step in STEPS:
            d = np.zeros(len(sizes))
            d[j] = step * size
            wide, narrow = (_central(h, x, f * d, add) / (2.0 * f * step * size) for f in (1.0, 0.5))
            tries.append((4.0 * narrow - wide) / 3.0)
        t = np.array(tries)
        gaps = np.abs(np.diff(t, axis=0))
        best = np.argmin(gaps, axis=0)
        columns.append(np.take_along_axis(t, best[None] + 1, axis=0)[0])
        accuracies.append(np.take_along_axis(gaps, best[None], axis=0)[0])
    return np.array(columns).T, np.array(accuracies).T


@checked
def check_jacobian(
    h: Callable[[Array], ArrayLike],
    H: Callable[[Array], ArrayLike],
    x: ArrayLike,
    *,
    tolerance: float = 1e-6,
    scales: ArrayLike | None = None,
    add: Callable[[Array, Array], Array] | None = None,
    outputs: Sequence[str] = (),
    states: Sequence[str] = (),
) -> JacobianCheck:
    """Compare H(x) with finite differences of h at x; every wrong entry is named in one ModelError.

    `scales` (n,): typical sizes of the states (default 1). `add`: how a change is added where x is not a plain vector.
    """
    x = as_array(x, "check_jacobian, x", (None,))
    given = np.atleast_2d(as_array(H(x), "check_jacobian, H(x)"))
    if given.ndim != 2:
        as_array(given, "check_jacobian, H(x)", (None, len(x)))
    count = given.shape[1] if add is not None else len(x)
    sizes = np.ones(count) if scales is None else as_array(scales, "check_jacobian, scales", (count,))
    numeric, accuracy = numeric_jacobian(h, x, sizes, add)
    faults = Faults()
    if given.shape != numeric.shape:
        faults.add("H has the wrong shape.", where="derivative", expected=f"{numeric.shape}", found=f"{given.shape}")
        faults.raise_if_any(ModelError)
    reference = np.abs(numeric * sizes).max(axis=1, keepdims=True)
    floor = 1e-9 * np.maximum(1.0, np.abs(np.atleast_1d(np.asarray(h(x), dtype=np.float64))))[:, None]
    beyond = np.maximum(np.abs(given - numeric) - 10.0 * accuracy, 0.0) * sizes
    error = beyond / np.maximum(reference, floor / tolerance)
    for i, j in np.argwhere(~(error <= tolerance))[:SHOWN_ENTRIES].tolist():
        output = outputs[i] if outputs else f"output {i}"
        state = states[j] if states else f"state {j}"
        faults.add(
            "H is not the derivative of h.",
            where=f"∂({output})/∂({state})",
            expected=f"{numeric[i, j]:.9g} by finite differences",
            found=f"{given[i, j]:.9g}",
        )
    faults.raise_if_any(ModelError)
    return JacobianCheck(given, numeric, accuracy, float(error.max(initial=0.0)))


def _central(h: Callable[[Array], ArrayLike], x: Array, d: Array, add: Callable[[Array, Array], Array] | None) -> Array:
    """h(x + d) − h(x − d)."""
    there = (x + d, x - d) if add is None else (add(x, d), add(x, -d))
    ahead, behind = (np.atleast_1d(as_array(h(as_array(at, "add(x, d)")), "h(x)")) for at in there)
    return ahead - behind
