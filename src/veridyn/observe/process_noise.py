"""Process noise of a model and the uncertainty of its start, and the covariance that a step adds.

    ẋ = A x + w,  E[w(t) w(s)ᵀ] = W δ(t − s)   →   x_{k+1} = F x_k + w_k,   F = exp(A Δt),
    Q = E[w_k w_kᵀ] = ∫₀^Δt exp(A s) W exp(A s)ᵀ ds

W is a spectral density: the unit of the state, squared, per second. A standard deviation, or a density where a variance is
meant, is off by orders of magnitude, so the functions here say which of them they take.

Parameters that drift while a machine is used walk as well. They are followed with the state, unless the log does not determine them:

    θ̇ = w,  E[w(t) w(s)] = by²/within δ(t − s),    P_θθ(0) = Σ_θθ + by²,    P_θκ(0) = Σ_θκ

Σ is the covariance that the machine has from its fit, with all that θ has in common with the parameters κ that are considered: the log is
taken to begin `within` seconds after the logs of the fit. A parameter is determined where the readings bring its deviation below
`DETERMINED` of what it would be without them,

    P_θθ(t) < DETERMINED² (P_θθ(0) + t by²/within)        at some time of the log

One that is not, such as friction of a joint that stands still, is frozen: no reading corrects it, so that errors of the model are not taken
for its drift, and its uncertainty enters the bands as that of considered parameters does (S. F. Schmidt, 1966). Beside a running machine
there is no log that says so in advance. There all drifting parameters begin frozen, a second filter follows them, and each is released when
that one has determined it.

Reference: C. F. Van Loan, "Computing integrals involving the matrix exponential", IEEE TAC 23 (1978) 395-404.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import expm

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.model.parameters import Drift
from veridyn.observe.result import Estimates

ASYMMETRY = 1e-9  # largest |P − Pᵀ| and smallest −eigenvalue of the correlations that count as rounding
DETERMINED = 0.5  # of the deviation without readings
Size = float | Mapping[str, float]


class StateNames(NamedTuple):
    """Independent coordinates, unknown forces, estimated parameters, how many are considered, and elements' own states."""

    coordinates: tuple[str, ...]
    forces: tuple[str, ...]
    estimated: tuple[str, ...]
    considered: int
    elements: tuple[str, ...]


@dataclass(frozen=True)
class ProcessNoise:
    """Process noise and uncertainty at the start; each one number for all coordinates (or forces), or by name, the default for the others.

    Densities, added while it moves: `position` (unit²/s), `acceleration`, white ((unit/s²)²/Hz), and `force`, the walk of the unknown
    forces ((N or N*m)²/s), `white_force`, their part that is new at every instant ((N or N*m)²/Hz), as noise of a measured torque is,
    `parameter`, that of parameters which are estimated with the state (unit²/s), and `element`, that of the states
    which elements have of their own (unit²/s). Deviations at the start: `start` of the coordinates, `start_rate`, `start_force`,
    `start_parameter`, `start_element`.

    Examples
    --------
    >>> import veridyn as vd
    >>> noise = vd.ProcessNoise(force={"shoulder": 1e-2}, start_rate=0.1)  # N²*m²/s of one joint, none of the others
    >>> noise.start, noise.start_rate
    (1.0, 0.1)
    """

    position: Size = 0.0
    acceleration: Size = 0.0
    force: Size = 0.0
    start: Size = 1.0
    start_rate: Size = 1.0
    start_force: Size = 0.0
    parameter: Size = 0.0
    start_parameter: Size = 0.0
    element: Size = 0.0
    start_element: Size = 0.0
    white_force: Size = 0.0

    def coordinate_densities(self, names: tuple[str, ...]) -> Array:
        """Those of positions, then of accelerations, of the coordinates `names`: one that none is given for gets the largest that is."""
        return np.concatenate([_by_name(size, names) for size in (self.position, self.acceleration)])

    def densities(self, of: StateNames, biases: Sequence[float]) -> Array:
        """Those of all states, as they lie in a state, `biases` of sensors behind them; then those of the white forces."""
        given = (
            sizes(self.position, of.coordinates, "position"),
            sizes(self.acceleration, of.coordinates, "acceleration"),
            sizes(self.force, of.forces, "force"),
            sizes(self.parameter, of.estimated, "parameter"),
            np.zeros(of.considered),
            sizes(self.element, of.elements, "element"),
        )
        return np.concatenate([*given, biases, sizes(self.white_force, of.forces, "white_force")])

    def deviations(self, of: StateNames, biases: Sequence[float]) -> Array:
        """Those of all states at the start, `biases` behind them; zero for what is considered, which has a covariance of its own."""
        given = (
            sizes(self.start, of.coordinates, "start"),
            sizes(self.start_rate, of.coordinates, "start_rate"),
            sizes(self.start_force, of.forces, "start_force"),
            sizes(self.start_parameter, of.estimated, "start_parameter"),
            np.zeros(of.considered),
            sizes(self.start_element, of.elements, "start_element"),
        )
        return np.concatenate([*given, biases])

    def on_coordinates(self, drives: Mapping[str, str]) -> ProcessNoise:
        """With forces that are named by their drives named by the coordinates these act on, as states are."""
        force, start = (_renamed(size, drives) for size in (self.force, self.start_force))
        same = force is self.force and start is self.start_force
        return self if same else replace(self, force=force, start_force=start)

    def with_parameters(
        self, names: Sequence[str], walk: Mapping[str, float], sigma: Mapping[str, float]
    ) -> ProcessNoise:
        """With the walks and first deviations that some parameters bring of their own; `names`: all that are estimated."""
        if not walk:
            return self
        own = _with_own(self.parameter, names, walk), _with_own(self.start_parameter, names, sigma)
        return replace(self, parameter=own[0], start_parameter=own[1])


def _renamed(size: Size, names: Mapping[str, str]) -> Size:
    if not isinstance(size, Mapping) or not set(size) & set(names):
        return size
    return {names.get(name, name): value for name, value in size.items()}


def _with_own(given: Size, names: Sequence[str], own: Mapping[str, float]) -> dict[str, float]:
    """A number for each name: its own, else what is given for it or for all."""
    rest = given if isinstance(given, Mapping) else dict.fromkeys(names, float(given))
    return {**{n: float(v) for n, v in rest.items()}, **own}


def _by_name(size: Size, names: tuple[str, ...]) -> Array:
    if not isinstance(size, Mapping):
        return np.full(len(names), float(size))
    largest = max(map(float, size.values()), default=0.0)
    return np.array([float(size.get(name, largest)) for name in names])


def sizes(given: Size, names: tuple[str, ...], what: str) -> Array:
    """One number per name, from one for all or a mapping, which leaves the default to those it does not name.

    Refused by name where one is negative or belongs to nothing. `what`: which field of :class:`ProcessNoise` it is.
    """
    faults, at = Faults(), ("process_noise", what)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                faults.add(
                    f"there is no '{name}' here.",
                    where=what,
                    at=at,
                    hint=did_you_mean(name, names),
                )
        default = float(getattr(ProcessNoise(), what))
        values = [float(given.get(name, default)) for name in names]
    else:
        values = [float(given)] * len(names)
    for name, value in zip(names, values):
        if not (np.isfinite(value) and value >= 0.0):
            faults.add(
                f"that of '{name}' is not usable.",
                where=what,
                at=at,
                expected="zero or more",
                found=f"{value:g}",
            )
    faults.raise_if_any(ModelError)
    return np.array(values, dtype=np.float64)


def as_covariance(P: ArrayLike, names: Sequence[str], where: str, *, definite: bool = False) -> Array:
    """`P` as an (n, n) covariance of the named quantities; a vector (n,) is its diagonal of variances.

    Refused by name: a wrong shape, numbers that are not finite, a negative variance, correlations beyond ±1, a matrix that
    is not symmetric or not positive semi-definite. With `definite` also a variance of zero or a perfect correlation.
    """
    given = np.asarray(P, dtype=np.float64)
    n = len(names)
    if given.shape == (n,):
        given = np.diag(given)
    if given.shape != (n, n):
        raise ModelError(
            "the covariance has the wrong shape.", where=where, expected=f"({n}, {n}) or ({n},)", found=f"{given.shape}"
        )
    faults = Faults()
    if not np.isfinite(given).all():
        row = int(np.argmin(np.isfinite(given).all(axis=1)))
        faults.add(f"the covariance of '{names[row]}' is not finite.", where=where)
        faults.raise_if_any(ModelError)
    variances = np.diag(given)
    for name, v in zip(names, variances.tolist()):
        if v < 0.0:
            faults.add(f"the variance of '{name}' is negative.", where=where, expected="zero or more", found=f"{v:g}")
        elif definite and v == 0.0:
            faults.add(
                f"the variance of '{name}' is zero.",
                where=where,
                expected="a positive variance",
                hint="No sensor is perfect: a quantum Δ alone has the variance Δ²/12.",
            )
    faults.raise_if_any(ModelError)
    _check_correlations(given, names, where, definite)
    return symmetric(given)


def quick_covariance(P: ArrayLike, names: Sequence[str], where: str) -> Array:
    """The checks that cost next to nothing, for a covariance that is computed anew at every step.

    Shape, finite numbers and the signs of the variances; whatever is wrong is reported by :func:`as_covariance`.
    """
    given = np.asarray(P, dtype=np.float64)
    if given.shape == (len(names), len(names)) and np.isfinite(given).all() and (given.diagonal() >= 0.0).all():
        return given
    return as_covariance(given, names, where)


def _check_correlations(P: Array, names: Sequence[str], where: str, definite: bool) -> None:
    sigma = np.sqrt(np.diag(P))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    C = P / np.outer(scale, scale)
    skew = np.abs(C - C.T)
    if skew.max(initial=0.0) > ASYMMETRY:
        i, j = (int(k) for k in np.unravel_index(np.argmax(skew), skew.shape))
        raise ModelError(
            f"the covariance is not symmetric between '{names[i]}' and '{names[j]}'.",
            where=where,
            found=f"{P[i, j]:g} and {P[j, i]:g}",
        )
    off = np.abs(C - np.diag(np.diag(C)))
    if off.max(initial=0.0) > 1.0 + ASYMMETRY:
        i, j = (int(k) for k in np.unravel_index(np.argmax(off), off.shape))
        raise ModelError(
            f"'{names[i]}' and '{names[j]}' are correlated beyond ±1.",
            where=where,
            expected="a correlation between −1 and 1",
            found=f"{C[i, j]:g}",
        )
    lowest, vectors = np.linalg.eigh((C + C.T) / 2.0)
    if len(names) and (lowest[0] < -ASYMMETRY or (definite and lowest[0] <= 1e-14)):
        worst = np.argsort(-np.abs(vectors[:, 0]))[:3]
        raise ModelError(
            "the covariance is not positive " + ("definite." if definite else "semi-definite."),
            where=where,
            found=f"an eigenvalue {lowest[0]:.3g} of the correlations, mostly of "
            + ", ".join(f"'{names[int(k)]}'" for k in worst),
        )


def symmetric(P: Array) -> Array:
    """(P + Pᵀ)/2, which rounding alone makes different from P."""
    half = 0.5 * P  # first: a sum of two large numbers overflows
    return half + half.T


def van_loan(A: ArrayLike, W: ArrayLike, dt: float) -> tuple[Array, Array]:
    """F and Q of one step `dt` (s) for ẋ = A x + w with the spectral density W (n, n), exactly.

    exp([[−A, W], [0, Aᵀ]] Δt) = [[·, F⁻¹Q], [0, Fᵀ]]. W is not checked here: it is where it is given.
    """
    A, W = np.asarray(A, dtype=np.float64), np.asarray(W, dtype=np.float64)
    if not (np.isfinite(dt) and dt >= 0.0):
        raise ModelError(
            "the step is not a time.", where="process noise", expected="zero or a positive time", found=f"{dt} s"
        )
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape != W.shape:
        raise ModelError(
            "A and W do not belong together.",
            where="process noise",
            expected="both (n, n)",
            found=f"A {A.shape} and W {W.shape}",
        )
    n = len(A)
    E: Array = np.asarray(expm(np.block([[-A, W], [np.zeros((n, n)), A.T]]) * dt), dtype=np.float64)
    F = E[n:, n:].T
    return F, symmetric(F @ E[:n, n:])


@dataclass(frozen=True, eq=False)
class DriftingStates:
    """Drifting parameters by `names`: their `places` among the states, variances `before` any reading, and densities of their walks."""

    names: tuple[str, ...]
    places: NDArray[np.intp]
    before: Array
    density: Array

    def determined(self, P: Array, t: Array) -> tuple[str, ...]:
        """Those whose deviation some reading brought below `DETERMINED` of what it would be without; P (N, n, n) at the times t (N,) since
        the first reading."""
        without = self.before + np.multiply.outer(t, self.density)
        reached = np.any(P[:, self.places, self.places] < DETERMINED**2 * without, axis=0)
        return tuple(self.names[k] for k in np.flatnonzero(reached).tolist())

    def frozen_along(self, estimates: Estimates, frozen: tuple[str, ...]) -> tuple[str, ...]:
        """Those that were frozen in a run, and those that its readings did not determine."""
        determined = self.determined(estimates.P, estimates.t - estimates.t[0])
        return tuple(name for name in self.names if name in frozen or name not in determined)


def followed_drifts(
    marked: Mapping[str, Drift], chosen: bool | Sequence[str], estimated: tuple[str, ...], machine: str
) -> dict[str, Drift]:
    """The drifting parameters that are estimated by default, of those `chosen`: without the ones whose estimation is described."""
    faults = Faults()
    for name in () if isinstance(chosen, bool) else chosen:
        if name not in marked:
            faults.add(
                f"'{name}' is not marked as drifting.",
                where="ObserveSettings.drifts",
                expected="parameters under drifts in the model file",
                hint=did_you_mean(name, [*marked]),
            )
    faults.raise_if_any(ModelError, machine)
    names = [n for n in marked if chosen is True or (chosen is not False and n in chosen)]
    return {name: marked[name] for name in names if name not in estimated}
