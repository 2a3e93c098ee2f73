"""Constants inside the laws of elements from data: separable least squares.

For given constants θ (the speed of a Stribeck curve, a gap, a rest length) the equations are linear in all other parameters, so the least
residual over those is a function of θ alone (Golub and Pereyra, 1973, SIAM J. Numer. Anal. 10(2)). At each θ the columns of the chosen
elements with θ a little larger and a little smaller are streamed beside all others into the same small factors; their differences are
∂W/∂θ, and one linear solve gives the step of Gauss and Newton on the projected residual. The factors give the covariance of θ with all
other parameters free, for residuals that are white.

For the speeds of Stribeck curves, the one parameter of friction in which the equations are not linear, a bank of curves with many speeds
is streamed once beside the other columns into the same small factors; every choice of one curve for each joint is then a solve of the
machine's size. The speeds are chosen joint by joint until none changes, and once more on a finer bank about them. The speed is the vertex
of the parabola there; within the interval the sum of squares is less than one variance above the least, which is one deviation where
residuals are white.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from veridyn.arguments import as_array
from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.factor import RowFactors, triangle_of
from veridyn.identify.regression.observation import observation
from veridyn.identify.result import DEFAULT_CONSTANT_SIZE
from veridyn.identify.settings import IdentifySettings
from veridyn.inference.quadratic import Quadratic
from veridyn.inference.search import Damping, StopRules, search
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element, stribeck
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import Constant
from veridyn.progress import Progress, silent

DIFFERENCE_STEP = 1e-4  # of a constant, or of DEFAULT_CONSTANT_SIZE: what it is shifted by for its slope
SEPARABLE_SLOPE = 1e-6  # of a constant's slope: what must be left of it beside all other columns
COST_SLACK = 1e-12  # relative: by so much rounding may make a sum of squares larger
KINK_STEP = (
    64.0  # of √tolerance: a longer step that would still be taken where none reduces the residual is no convergence
)
MAX_ROUNDS = 10  # of choosing joint by joint; it ends as soon as none changes
FINE_BANK_SPEEDS = 9  # speeds of the finer bank


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

    The search is local: give start values of the right size (:func:`~veridyn.identify.constants.stribeck_speeds` searches a bank of
    speeds). It ends where every step is below `tolerance` of its constant. Identify ``result.machine`` for the other parameters; their
    deviations then take the constants as known.

    Example: ``fit_constants(tree, motion, ["fst_q1.speed", "fst_q1.exponent"]).summary()``.
    """
    first = first_constants(machine, motion, names, rows, settings, executor, progress)
    chosen = first.evaluation.chosen
    # Not to reach the end is told by `converged`: the values so far may be of use as a start.
    stop = StopRules(iterations=iterations + 1, steps=iterations, tolerance=tolerance, slack=COST_SLACK, kink=np.inf)
    end = search(first, stop, Damping(), where=", ".join(names), hint="Give start values that are nearer.")
    point = end.point.renewed()
    theta, step = point.x, point.step
    C = step.covariance * step.cost / max(1, step.freedom)
    fitted = tuple(replace(c, value=float(v)) for c, v in zip(chosen, theta, strict=True))
    return ConstantFit(
        machine=point.evaluation.machine,
        constants=fitted,
        values=theta,
        sigma=np.sqrt(np.diag(C)),
        covariance=C,
        residual=point.costs,
        converged=end.converged and end.beyond <= KINK_STEP * np.sqrt(tolerance),
    )


def first_constants(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    names: Sequence[str],
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ConstantPoint:
    """The constants `names` at the values that they have, to search from."""
    chosen = _chosen(machine, names)

    def evaluate(theta: Array) -> _Evaluation:
        here = machine.with_constants(dict(zip(names, theta.tolist(), strict=True)))
        shifts = np.array([_shift(c, value) for c, value in zip(chosen, theta, strict=True)])
        probed = here.with_elements(
            [probe for c, h in zip(chosen, shifts, strict=True) for probe in _probes(here, c, h)]
        )
        seen = observation(probed, motion, rows, settings, executor=executor, progress=progress)
        return _Evaluation(here, chosen, shifts, seen)

    x = np.array([c.value for c in chosen])
    here = evaluate(x)
    weights = here.weights()
    step = here.step(weights)
    return ConstantPoint(
        evaluate=evaluate,
        x=x,
        evaluation=here,
        weights=weights,
        step=step,
        first_weights=weights,
        costs=(step.cost,),
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """The triangle [S | y] of the constants with all parameters eliminated, and the least residual before the step."""

    triangle: Array
    right: Array
    cost: float
    freedom: int

    @property
    def covariance(self) -> Array:
        """Of the constants, in units of the residual's variance."""
        inverse = np.linalg.inv(self.triangle)
        return inverse @ inverse.T


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantPoint:
    """Constants x with the factors there, rows weighted by `weights`.

    `costs`: the sums of squares at the start of the search and after each step on the way here, rows weighted by `first_weights`.
    """

    evaluate: Callable[[Array], _Evaluation]
    x: Array
    evaluation: _Evaluation
    weights: Array
    step: _Step
    first_weights: Array
    costs: tuple[float, ...]
    settled: bool = True

    @property
    def cost(self) -> float:
        return self.step.cost

    def at(self, x: Array) -> ConstantPoint:
        here = self.evaluate(x)
        costs = (*self.costs, here.step(self.first_weights).cost)
        return replace(self, x=x, evaluation=here, step=here.step(self.weights), costs=costs)

    def renewed(self) -> ConstantPoint:
        weights = self.evaluation.weights()
        return replace(self, weights=weights, step=self.evaluation.step(weights))

    def model(self) -> ConstantModel:
        S, y = self.step.triangle, self.step.right
        low, high = _reach(self.evaluation.chosen, self.x)
        return ConstantModel(x=self.x, hessian=S.T @ S, gradient=-S.T @ y, low=low, high=high)


class ConstantModel(Quadratic):
    """The residual around constants, of which a step is as long as its largest share of a constant."""

    def length(self, d: Array) -> float:
        return float(np.max(np.abs(d) / _sizes(self.x)))


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """The factors at one value of the constants, with two columns more for each."""

    machine: Machine
    chosen: tuple[Constant, ...]
    shifts: Array
    seen: RowFactors

    @cached_property
    def _solution(self) -> Solution:
        return solve(self.seen.of_first(self.machine.parameters))

    def weights(self) -> Array:
        """1/σ of each row at these constants, in units of the whole residual."""
        s = self._solution
        return 1.0 / (s.row_sigma * s.sigma)

    def step(self, weights: Array) -> _Step:
        """δ of min ‖y − W φ − Σ gain ∂W/∂θ δ‖ over φ and δ."""
        s = self._solution
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
        return _Step(S, y, float(np.linalg.norm(T[m:, -1]) ** 2), self.seen.samples - m - k)

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


def _reach(chosen: Sequence[Constant], theta: Array) -> tuple[Array, Array]:
    """Where a step ends at the farthest: half the way to a bound, and for a constant with one at most as far as it is large."""
    low, high = np.array([c.low for c in chosen]), np.array([c.high for c in chosen])
    farthest = np.where(np.isfinite(low) | np.isfinite(high), _sizes(theta), np.inf)
    return theta + np.maximum(0.5 * (low - theta), -farthest), theta + np.minimum(0.5 * (high - theta), farthest)


def _sizes(theta: Array) -> Array:
    return np.maximum(np.abs(theta), DEFAULT_CONSTANT_SIZE)


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


@dataclass(frozen=True, eq=False, kw_only=True)
class StribeckCurve:
    """The Stribeck curve of one coordinate: its speed and the interval of speeds that do as well.

    `speeds` and `residuals`: what was tried, with all other curves as chosen; sums of squares in variances of the best residual.
    """

    on: str
    speed: float
    low: float
    high: float
    speeds: tuple[float, ...]
    residuals: tuple[float, ...]
    gain_percent: float

    def summary(self) -> str:
        return (
            f"{self.on}: {self.speed:.4g} ({self.low:.3g} to {self.high:.3g}), "
            f"residual {self.gain_percent:.2g} % below that without a curve"
        )


@takes_machine
def stribeck_speeds(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    on: Iterable[str],
    speeds: Sequence[float],
    *,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> tuple[Machine, dict[str, StribeckCurve]]:
    """The tree with a Stribeck curve on each coordinate of `on`, its speed the best of `speeds` and of a finer bank about it.

    The heights of the curves are estimated; identify the tree that comes back. `speeds` in rad/s or m/s, three at least.
    """
    names, bank = list(on), sorted(set(as_array(speeds, "stribeck_speeds.speeds", (None,)).tolist()))
    _check(machine, names, bank)
    banks = dict.fromkeys(names, tuple(bank))
    how = {"rows": rows, "settings": settings, "executor": executor, "progress": progress}
    chosen = _searched(machine, motion, banks, how)
    fine = {c: tuple(_about(bank, chosen[c].speed)) for c in names}
    best = _searched(machine, motion, fine, how)
    curves = {c: _vertex(best[c]) for c in names}
    elements = [stribeck(c, curves[c].speed) for c in names]
    return machine.with_elements(elements), curves


def _searched(
    machine: Machine, motion: Motion | Sequence[Motion], banks: dict[str, tuple[float, ...]], how: dict[str, object]
) -> dict[str, StribeckCurve]:
    """The best speed of each bank."""
    bank = [stribeck(c, v, name=f"stribeck {c} {v!r}") for c, speeds in banks.items() for v in speeds]
    whole = machine.with_elements(bank)
    observed = observation(whole, motion, **how)  # pyright: ignore[reportArgumentType]
    plain = len(machine.parameters)
    s = solve(observed.of_first(machine.parameters))
    R = observed.stacked(list(1.0 / s.row_sigma)) / s.sigma
    place = {c: k for k, c in enumerate(observed.columns)}
    base = [place[c] for c in s.columns]
    at = {(e_on, v): place[plain + k] for k, (e_on, v) in enumerate((c, v) for c, vs in banks.items() for v in vs)}

    def cost(speeds: dict[str, float]) -> float:
        columns = [*base, *(at[c, v] for c, v in speeds.items())]
        T = triangle_of(R[:, [*columns, R.shape[1] - 1]])
        return float(np.linalg.norm(T[len(columns) :, -1]) ** 2)

    speeds: dict[str, float] = {}
    for _ in range(MAX_ROUNDS):
        before = dict(speeds)
        for c, options in banks.items():
            speeds[c] = min(options, key=lambda v, c=c: cost({**speeds, c: v}))
        if speeds == before:
            break
    found = {}
    variance = cost(speeds) / (s.freedom - len(speeds))
    for c, options in banks.items():
        tried = [cost({**speeds, c: v}) / variance for v in options]
        gain = 100.0 * (1.0 - np.sqrt(cost(speeds) / cost({k: v for k, v in speeds.items() if k != c})))
        found[c] = StribeckCurve(
            on=c,
            speed=speeds[c],
            low=speeds[c],
            high=speeds[c],
            speeds=options,
            residuals=tuple(tried),
            gain_percent=float(gain),
        )
    return found


def _vertex(curve: StribeckCurve) -> StribeckCurve:
    """The least of the parabola, over the logarithm of speed, through the best speed and its neighbours, and where it has risen by 1.

    At the end of a bank there is none: the interval is open towards the side on which nothing was tried.
    """
    x, y = np.log(curve.speeds), np.array(curve.residuals)
    k = int(np.argmin(y))
    if k in (0, len(y) - 1):
        return replace(curve, low=0.0 if k == 0 else curve.speed, high=curve.speed if k == 0 else np.inf)
    a, b, _ = np.polyfit(x[k - 1 : k + 2] - x[k], y[k - 1 : k + 2], 2)
    least, half = x[k] - b / (2.0 * a), 1.0 / np.sqrt(a)
    return replace(curve, speed=float(np.exp(least)), low=float(np.exp(least - half)), high=float(np.exp(least + half)))


def _about(bank: Sequence[float], speed: float) -> Array:
    """A finer bank between the neighbours of a speed."""
    k = bank.index(speed)
    return np.geomspace(bank[max(k - 1, 0)], bank[min(k + 1, len(bank) - 1)], FINE_BANK_SPEEDS)


def _check(machine: Machine, names: list[str], bank: list[float]) -> None:
    faults = Faults()
    for c in names:
        if c not in machine.coordinates:
            faults.add(
                f"there is no coordinate '{c}'.", where="stribeck_speeds", hint=did_you_mean(c, machine.coordinates)
            )
        if any(e.kind == "stribeck" and c in e.on for e in machine.elements):
            faults.add("there is a Stribeck curve on it already.", where=f"coordinate '{c}'")
    if len(bank) < 3 or not (np.isfinite(bank).all() and bank[0] > 0.0):
        faults.add("they must be positive, three at least.", where="stribeck_speeds.speeds", found=f"{bank}")
    if not names:
        faults.extend([Fault("no coordinate is named.", where="stribeck_speeds.on")])
    faults.raise_if_any(IdentificationError, machine.name)
