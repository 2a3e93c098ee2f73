"""The filters of machines by the words that stand for them.

========================= ====================== ============================================================== ==============
word                      object                 what carries the covariance                                    forces
========================= ====================== ============================================================== ==============
linear                    LinearKF               the machine's tangent where it starts, at rest                 estimated
error_ekf                 ErrorEKF               an integrator (paper 003, equation 54): the thesis' errorEKF   taken as known
error_ekf_force           ForceErrorEKF          the accelerations' exact derivatives, in first order           estimated
ekf                       EKF                    the exact derivative of the machine's step                     estimated
ukf                       UKF                    2n + 1 machines side by side                                   estimated
smoother                  Smoother               that of the ekf, then backwards (Rauch, Tung and Striebel)     estimated
========================= ====================== ============================================================== ==============

The extended filter moves the machine as it does and its errors along the tangent, H at the predicted state (paper 003, 52 and 53):

    x ← f(x),  P ← F P Fᵀ + Q,  F = ∂f/∂x        y = h(x),  H = ∂h/∂x

A system whose `move_and_jacobian` returns F of a simpler error model makes this the error-state filter (54, 57): the predicted error is
zero because the model itself has been corrected. The unscented filter carries the belief by 2n + 1 states instead of by a tangent:

    X₀ = x,  X_i± = x ± γ L e_i,   P = L Lᵀ,   γ² = α² (n + κ)
    d_i± = f(X_i±) − f(X₀),   s_i = (d_i⁺ − d_i⁻)/2γ,   c_i = (d_i⁺ + d_i⁻)/2γ,   δ = Σ c_i/γ
    mean = f(X₀) + δ,    cov = Σ s_i s_iᵀ + Σ c_i c_iᵀ + (β − α²) δ δᵀ

This is the scaled transform with its weights gathered around the centre point: slopes s and curvatures c. Nothing is
subtracted, so for β ≥ α² no covariance can become negative, and a small α does not cancel digits. The slopes make the line
H = S L⁻¹ that fits the points; what it misses, the terms in c and δ, is added to R. Joseph's form and sequential updates
then give the unscented filter's own gain and covariance. Points beyond the bounds of estimated parameters are moved with the bound's
value, while their spread stays as it is, so that a parameter at its bound does not drift away from it.
Reference: S. J. Julier, "The scaled unscented transformation", ACC 2002, 4555-4559.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.filters.callable_step import callable_step
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.filters.filter import ErrorModel, Filter
from veridyn.observe.filters.update import Expectation
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Belief
from veridyn.observe.system import Callables, System
from veridyn.settings import at_least, method_of


@dataclass(frozen=True, repr=False)
class UKF(Filter):
    """The unscented filter; needs no derivatives.

    `alpha` spreads the points, `kappa` adds to the spread, `beta` = 2 is right for normal errors.
    """

    word: ClassVar[str] = "ukf"

    alpha: float = 1.0
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0.0 or not self.beta >= self.alpha**2:
            raise ModelError(
                "these weights may make a covariance negative.",
                where=self.name,
                expected="alpha > 0 and beta ≥ alpha²",
                found=f"alpha = {self.alpha:g}, beta = {self.beta:g}",
            )

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        gamma, L, inverse = self._root(belief.P)
        points = _points(system, belief.x, gamma * L)
        inside = _within(system, points)
        moved = system.move(inside, u, t, dt) + (points - inside)  # parameters do not move by themselves
        delta, S, missed = self._moments(system.subtract(moved[1:], moved[0]), gamma)
        P = symmetric(S @ S.T + missed) + system.noise(belief.x, u, t, dt)
        return system.add(moved[0], delta), P, S @ inverse

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        gamma, L, inverse = self._root(P)
        readings = system.sense(_within(system, _points(system, x, gamma * L)), u, t)
        delta, S, missed = self._moments(system.residual(readings[1:], readings[0]), gamma)
        return Expectation(readings[0] + delta, S @ inverse, system.sensor_noise(t) + missed)

    def _root(self, P: Array) -> tuple[float, Array, Array]:
        """γ, a root L of P and its inverse; where P is only semi-definite, by eigenvectors without its null space."""
        n = len(P)
        spread = self.alpha**2 * (n + self.kappa)
        if not spread > 0.0:
            raise ModelError(
                "the points have no spread.", where=self.name, expected=f"kappa > −{n}", found=f"kappa = {self.kappa:g}"
            )
        try:
            L: Array = np.asarray(np.linalg.cholesky(P), dtype=np.float64)
            return float(np.sqrt(spread)), L, np.asarray(np.linalg.inv(L), dtype=np.float64)
        except np.linalg.LinAlgError:
            values, V = np.linalg.eigh(P)
            kept = values > 1e-14 * max(values[-1], 0.0)
            root = np.sqrt(np.where(kept, values, 0.0))
            back = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
            return float(np.sqrt(spread)), V * root, (V * back).T

    def _moments(self, d: Array, gamma: float) -> tuple[Array, Array, Array]:
        """δ, the slopes as columns of S, and the covariance that they miss."""
        n = len(d) // 2
        slopes, curvatures = (d[:n] - d[n:]) / (2.0 * gamma), (d[:n] + d[n:]) / (2.0 * gamma)
        delta = curvatures.sum(axis=0) / gamma
        missed = symmetric(curvatures.T @ curvatures) + (self.beta - self.alpha**2) * np.outer(delta, delta)
        return delta, slopes.T, missed


def _within(system: System, points: Array) -> Array:
    """The points with bounded parameters within their bounds, where alone the laws of a machine have a meaning."""
    bounds = getattr(system, "bounds", None)
    return points if bounds is None else bounds.inside(points)


def _points(system: System, x: Array, columns: Array) -> Array:
    """x, then x plus each column, then x minus each column."""
    return np.concatenate([x[None], system.add(x, np.concatenate([columns.T, -columns.T]))])


Engine = Literal["auto", "compiled", "python"]


@runtime_checkable
class Compilable(Protocol):
    """A system whose extended filter can run as machine code."""

    def compiled_step(self, limit: float) -> CompiledStep | None:
        """A step that takes readings whose ν²/s is below the limit, for one caller; None where this system has none."""
        ...


@dataclass(frozen=True, repr=False)
class EKF(Filter):
    """The extended Kalman filter; needs F and H.

    `engine`: "compiled" takes whole steps by machine code and refuses a system that has none, "python" is the reference, "auto"
    compiles where the system allows it. The two agree to rounding. `refresh`: by machine code on a tree, or on a vehicle in natural
    coordinates, derivatives are computed anew at every so many steps only, the state itself at every one; larger values save time where
    the machine changes little from step to step.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    >>> pendulum = vd.Machine.build([rod], [hinge], sensors=[encoder], dimension=2)
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-4), start={"hinge": 0.0})
    >>> states = vd.observe(pendulum, log, vd.EKF(gate=0.999), settings)  # refuses one good reading in a thousand
    >>> states.states
    ('hinge', 'hinge_dot', 'force.hinge')
    """

    word: ClassVar[str] = "ekf"

    engine: Engine = "auto"
    refresh: Annotated[int, at_least(1)] = 1

    def compiled_step(self, system: System) -> CompiledStep | None:
        if self.engine == "python":
            return None
        plain = type(self).predict is EKF.predict and type(self).expect is EKF.expect  # others have no machine code
        step = None
        if plain and isinstance(system, Callables):
            step = callable_step(system, self.limit, wholly=self.engine == "compiled")
        elif plain and isinstance(system, Compilable):
            step = system.compiled_step(self.limit)
        if step is None and self.engine == "compiled":
            raise ModelError(
                "there is no compiled step of this filter on this system.",
                where=self.name,
                expected="a system with a compiled_step, such as a mechanism's, or one of compiled functions",
                found=type(system).__name__,
                hint='Use engine="auto" or engine="python".',
            )
        if self.refresh > 1:
            if step is None or not step.keeps_derivatives:
                raise ModelError(
                    "derivatives can be kept over steps by machine code on a tree or a vehicle alone.",
                    where=f"{self.name}, refresh",
                    expected="1, or a machine with formulation: tree, or with tyres, and the compiled engine",
                    found=f"refresh {self.refresh}",
                )
            step.refresh(self.refresh)
        return step

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        x, F = system.move_and_jacobian(belief.x, u, t, dt)
        return x, symmetric(F @ belief.P @ F.T) + system.noise(belief.x, u, t, dt), F

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        y, H = system.sense_and_jacobian(x, u, t)
        return Expectation(y, H, system.sensor_noise(t))


@dataclass(frozen=True, repr=False)
class LinearKF(EKF):
    """The linear Kalman filter on the machine's tangent at rest, in the pose it starts from."""

    word: ClassVar[str] = "linear"


@dataclass(frozen=True, repr=False)
class ErrorEKF(EKF):
    """The error-state filter of paper 003 (equations 54 to 57): errors of acceleration do not depend on the pose, forces are known.

    `accelerometer`: "full" makes rows of H of accelerometers the whole derivative of the reading, accelerations of the machine included;
    "attitude" keeps ∂h/∂q at constant q̇ and q̈, as equation 116 is printed: such a sensor then corrects the attitude alone.
    `position`: "place" leaves the turns of a free base out of the rows of position sensors, lever arm and all, as equation 89 is printed;
    such a sensor then corrects the place alone.
    `correction`: "closed" solves positions, then velocities after each correction; "velocity" moves dependent coordinates by the velocity
    problem alone, as equation 58 is printed, which leaves constraints open until the next step. Natural coordinates alone have it.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    >>> pendulum = vd.Machine.build([rod], [hinge], sensors=[encoder], dimension=2)
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(acceleration=1e-4), start={"hinge": 0.0})
    >>> vd.observe(pendulum, log, vd.ErrorEKF(), settings).states  # forces are taken as known
    ('hinge', 'hinge_dot')
    """

    word: ClassVar[str] = "error_ekf"
    error_model: ClassVar[ErrorModel] = "integrator"
    estimates_forces: ClassVar[bool] = False

    accelerometer: Literal["full", "attitude"] = "full"
    position: Literal["full", "place"] = "full"
    correction: Literal["closed", "velocity"] = "closed"


@dataclass(frozen=True, repr=False)
class ForceErrorEKF(EKF):
    """The error-state filter with estimated forces and the exact derivatives of the accelerations, in first order over a step."""

    word: ClassVar[str] = "error_ekf_force"
    error_model: ClassVar[ErrorModel] = "forward"


@dataclass(frozen=True, repr=False)
class Smoother(EKF):
    """The extended Kalman filter over a whole log, then back along it: every state in the light of all readings."""

    word: ClassVar[str] = "smoother"


FILTERS: dict[str, type[Filter]] = {kind.word: kind for kind in (LinearKF, ErrorEKF, ForceErrorEKF, EKF, UKF, Smoother)}


def filter_of(given: Filter | str, verb: str) -> Filter:
    """The filter that the third argument of `verb` means: an object, or a word for one with default settings."""
    return method_of(given, Filter, FILTERS, verb)


def refuse_smoother(method: Filter) -> None:
    """A filter beside a running program has no later readings to go back from."""
    if isinstance(method, Smoother):
        raise ModelError("a smoother needs the whole log.", where="Observer", expected="another filter")


def extended(method: Filter) -> Filter:
    """The filter that stands in where one is run many times: the extended one for an unscented one, whose steps cost many times as much."""
    return EKF(gate=method.gate, late=method.late, horizon=method.horizon) if isinstance(method, UKF) else method
