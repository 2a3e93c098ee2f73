"""Constants inside the laws of elements from data: separable least squares.

For given constants θ (the speed of a Stribeck curve, a gap, a rest length) the equations are linear in all other parameters, so the least
residual over those is a function of θ alone (Golub and Pereyra, 1973, SIAM J. Numer. Anal. 10(2)). At each θ the columns of the chosen
elements with θ a little larger and a little smaller are streamed beside all others into the same small factors; their differences are
∂W/∂θ, and one linear solve gives the step of Gauss and Newton on the projected residual. The factors give the covariance of θ with all
other parameters free, for residuals that are white.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.factor import RowFactors, triangle_of
from veridyn.identify.regression.observation import observation
from veridyn.identify.result import DEFAULT_CONSTANT_SIZE
from veridyn.identify.settings import IdentifySettings
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import Constant
from veridyn.progress import Progress, silent

DIFFERENCE_STEP = 1e-4  # of a constant, or of DEFAULT_CONSTANT_SIZE: what it is shifted by for its slope
SEPARABLE_SLOPE = 1e-6  # of a constant's slope: what must be left of it beside all other columns
MAX_HALVINGS = 6  # of a step that makes the residual larger


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantFit:
    """Estimated constants: `tree` has them, `sigma` are their standard deviations, `covariance` (k, k) theirs with each other.

    `residual`: the sum of squares at the start and after each accepted step, rows weighted as at the start. `converged`: whether the
    last step was small.
    """

    machine: Machine
    constants: tuple[Constant, ...]
    values: Array
    sigma: Array
    covariance: Array
    residual: tuple[float, ...]
    converged: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.constants)

    def summary(self) -> str:
        """One line for each constant."""
        lines = [
            f"{c.name}: {value:.6g} ± {sigma:.2g} {c.unit}"
            for c, value, sigma in zip(self.constants, self.values, self.sigma, strict=True)
        ]
        ending = "converged" if self.converged else "NOT converged"
        return "\n".join([*lines, f"{ending} after {len(self.residual) - 1} steps"])


def fit_constants(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    names: Sequence[str],
    *,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    iterations: int = 30,
    tolerance: float = 1e-5,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ConstantFit:
    """The constants `names` ("fst_q1.speed") of a tree's elements, all estimated parameters being free; from the values they have.

    The search is local: give start values of the right size (:func:`~veridyn.identify.friction.stribeck.stribeck_speeds` searches a bank of
    speeds). It ends where every step is below `tolerance` of its constant. Identify ``result.machine`` for the other parameters; their
    deviations then take the constants as known.

    Example: ``fit_constants(tree, motion, ["fst_q1.speed", "fst_q1.exponent"]).summary()``.
    """
    chosen = _chosen(machine, names)

    def at(theta: Array) -> _Evaluation:
        here = machine.with_constants(dict(zip(names, theta.tolist(), strict=True)))
        shifts = np.array([_shift(c, value) for c, value in zip(chosen, theta, strict=True)])
        probed = here.with_elements(
            [probe for c, h in zip(chosen, shifts, strict=True) for probe in _probes(here, c, h)]
        )
        seen = observation(probed, motion, rows, settings, executor=executor, progress=progress)
        return _Evaluation(here, chosen, shifts, seen)

    theta = np.array([c.value for c in chosen])
    now = at(theta)
    weights = now.weights()
    first = weights
    costs, converged = [now.step(first).cost], False
    for _ in range(iterations):
        step = now.step(weights)
        move = _inside(chosen, theta, step.move)
        small = np.abs(move) <= tolerance * np.maximum(np.abs(theta), DEFAULT_CONSTANT_SIZE)
        if small.all():
            converged = True
            break
        for _ in range(MAX_HALVINGS):
            new = at(theta + move)
            if new.step(weights).cost <= step.cost * (1.0 + 1e-12):
                break
            move = 0.5 * move
        else:
            converged = bool(
                (np.abs(move) <= np.sqrt(tolerance) * np.maximum(np.abs(theta), DEFAULT_CONSTANT_SIZE)).all()
            )
            break
        theta, now = theta + move, new
        weights = now.weights()
        costs.append(now.step(first).cost)
    found = now.step(weights)
    C = found.covariance * found.cost / max(1, found.freedom)
    fitted = tuple(replace(c, value=float(v)) for c, v in zip(chosen, theta, strict=True))
    return ConstantFit(
        machine=now.machine,
        constants=fitted,
        values=theta,
        sigma=np.sqrt(np.diag(C)),
        covariance=C,
        residual=tuple(costs),
        converged=converged,
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """The step of the constants, the covariance of them in units of the residual's variance, and the least residual before the step."""

    move: Array
    covariance: Array
    cost: float
    freedom: int


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """The factors at one value of the constants, with two columns more for each."""

    machine: Machine
    chosen: tuple[Constant, ...]
    shifts: Array
    seen: RowFactors

    def _solution(self) -> Solution:
        return solve(self.seen.of_first(self.machine.parameters))

    def weights(self) -> Array:
        """1/σ of each row at these constants, in units of the whole residual."""
        s = self._solution()
        return 1.0 / (s.row_sigma * s.sigma)

    def step(self, weights: Array) -> _Step:
        """δ of min ‖y − W φ − Σ gain ∂W/∂θ δ‖ over φ and δ."""
        s = self._solution()
        R = self.seen.stacked(list(weights))
        place = {c: k for k, c in enumerate(self.seen.columns)}
        base, plain = [place[c] for c in s.columns], len(self.machine.parameters)
        slopes = []
        for i, c in enumerate(self.chosen):
            gain = self._gain(s, c)
            up, down = (R[:, place[plain + 2 * i + way]] for way in (0, 1))
            slopes.append(gain * (up - down) / (2.0 * self.shifts[i]))
        T = triangle_of(np.column_stack([R[:, base], *slopes, R[:, -1]]))
        m, k = len(base), len(self.chosen)
        S, y = T[m : m + k, m : m + k], T[m : m + k, -1]
        sizes = np.linalg.norm(T[: m + k, m : m + k], axis=0)
        if not (sizes > 0.0).all() or np.linalg.svd(S / sizes, compute_uv=False)[-1] < SEPARABLE_SLOPE:
            raise IdentificationError(
                "the motion cannot separate these constants from the other parameters.",
                where=", ".join(c.name for c in self.chosen),
                hint="Estimate fewer of them, or record a motion that passes through where their laws bend.",
            )
        inverse = np.linalg.inv(S)
        cost = float(np.linalg.norm(T[m:, -1]) ** 2)
        return _Step(inverse @ y, inverse @ inverse.T, cost, self.seen.samples - m - k)

    def _gain(self, s: Solution, c: Constant) -> float:
        p = self.machine.parameters
        number = p.index(c.element)
        if p.states[number] == "known":
            return float(p.values[number])
        if number not in s.columns:
            raise IdentificationError(
                f"the parameter '{c.element}' of its element is not identifiable on its own.",
                where=f"constant '{c.name}'",
                hint="Make that parameter known, or record a motion that excites it.",
            )
        return float(s.values[s.columns.index(number)])


def _probes(machine: Machine, c: Constant, shift: float) -> list[Element]:
    (e,) = [e for e in machine.elements if e.parameter_name == c.element]
    return [
        replace(
            e,
            name=f"{c.name} {sign:+g}",
            value=float("nan"),
            constants={**e.constants, c.key: e.constants[c.key] + sign * shift},
        )
        for sign in (1.0, -1.0)
    ]


def _shift(c: Constant, value: float) -> float:
    """What a constant is shifted by for its slope, within its bounds."""
    span = min(value - c.low, c.high - value)
    return min(DIFFERENCE_STEP * max(abs(value), DEFAULT_CONSTANT_SIZE), 0.1 * span)


def _inside(chosen: Sequence[Constant], theta: Array, move: Array) -> Array:
    """A step that goes at most half the way to a bound, and at most as far as a constant is large."""
    low, high = np.array([c.low for c in chosen]), np.array([c.high for c in chosen])
    out = np.clip(move, 0.5 * (low - theta), 0.5 * (high - theta))
    size = np.maximum(np.abs(theta), DEFAULT_CONSTANT_SIZE)
    return np.where(np.isfinite(low) | np.isfinite(high), np.clip(out, -size, size), out)


def _chosen(machine: Machine, names: Sequence[str]) -> tuple[Constant, ...]:
    known = {c.name: c for c in machine.constants}
    faults = Faults()
    if not names:
        faults.add("no constant is named.", where="fit_constants")
    if len(set(names)) < len(names):
        faults.add("a constant is named twice.", where="fit_constants", found=", ".join(names))
    for name in names:
        if name not in known:
            faults.add(
                f"there is no constant '{name}'.",
                where="fit_constants",
                hint=did_you_mean(name, list(known)) if known else "No element of this machine gives a constant.",
            )
    faults.raise_if_any(IdentificationError, machine.name)
    return tuple(known[name] for name in names)
