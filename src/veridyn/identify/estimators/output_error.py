"""Output error: the parameters with which a simulation of the machine comes nearest to what was measured.

    minimise Σ_t Σ_k (y_k(t) − ŷ_k(t; χ, x₀))²/σ_k²

ŷ are the coordinates of a simulation under the measured forces or, where a control `law` is given, the forces of a simulation in
closed loop (Gautier, Janot and Vandanjon, 2013, IEEE T-CST 21(2)). Neither derivatives of noisy positions nor filters enter, so noise
on positions does not bias the estimate; noise on the forces that drive the simulation does. Gauss and Newton's steps with exact
sensitivities (:mod:`veridyn.identify.estimators.shooting`), damped where they do not reduce the residual. The initial state of each run is
estimated along and eliminated run by run, so that the problem keeps the size of the machine. σ_k comes from the residuals unless it
is known. Elements may have states of their own (tyres, LuGre friction, relaxation), and constants inside their laws can be estimated with
the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.errors import DataError, Fault, Faults, IdentificationError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.error_measures import Moments, RowReport, moments_of_runs
from veridyn.identify.estimator import Estimator, FitProblem
from veridyn.identify.estimators.coloured import Hac, lags_for
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL
from veridyn.identify.estimators.log_runs import check_motions, check_tree, chunks, cut, with_element_states
from veridyn.identify.estimators.long_run import bartlett
from veridyn.identify.estimators.output_problem import OutputProblem, Values
from veridyn.identify.estimators.shooting import LAW, Hold, Law, Shooting
from veridyn.identify.fitting import fit_of
from veridyn.identify.law_constants import DEFAULT_CONSTANT_SIZE, LawConstants
from veridyn.identify.result import Fit
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.settings import above, at_least

Array = NDArray[np.float64]
ROUNDING = 1e-10  # of the outputs' sensitivity to the parameters: with exact data a smaller step is rounding
MIN_DECREASE = 1e-5  # of the sum of squares: an iteration that gains less ends the search
CONVERGED_SIGMAS = 0.5  # deviations from the minimum, by the linear model, within which the search has converged
SIGMA_CHANGE = 0.02  # a change of every σ_k below which they are held
MAX_DAMPING = 1e8  # of the damping: no step reduces the residual any more
MAX_TRIALS = (
    5  # simulations of trial steps, for each iteration that is allowed: a search that needs more does not converge
)


@dataclass(frozen=True, repr=False, kw_only=True)
class OutputError(Estimator):
    """Output error: the parameters with which a simulation comes nearest to the measurement. All rows of the machine are needed.

    Parameters
    ----------
    law : callable (t, q, qd) -> forces, or None
        None, the default, simulates under the measured forces and compares coordinates. A control law (time in s, coordinates and rates
        (n,), forces (n,) in N or N*m) simulates in closed loop and compares forces.
    horizon : float above 0
        Seconds after which a simulation starts again from a new initial state; infinite by default. Over a longer horizon model errors
        accumulate and count for more.
    initial : {"estimated", "measured"}
        The state at the start of each run: estimated with the parameters (the default), or as measured.
    start : {"best", "data", "tree"}
        Parameters to start from: least squares on the same data, the tree's own values, or whichever of the two simulates nearer to the
        measurement (the default).
    constants : names
        Constants inside the laws of elements ("tyre_wheel.C_KAPPA", "fst_q1.speed") that are estimated with the parameters, from the
        values they have; none by default. They are in ``fit.constants``, and ``fit.machine()`` has them.
    hold : {"linear", "zero"}
        Forces between samples: linear interpolation (the default), or the last sample.
    friction_speed : float of at least 0
        Speed in rad/s or m/s below which dry friction is smoothed in the simulation; 0.05 by default.
    substeps : int of at least 1
        Integrator steps per sample; 1 by default.
    iterations : int of at least 1
        Gauss-Newton steps, at most; 40 by default. It is an error where they do not suffice.
    tolerance : float above 0
        The step of all parameters together, in standard deviations, below which the iteration has converged; 0.02 by default. It has
        also converged where a step is small and the residual no longer falls.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.OutputError(horizon=0.5))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'output error by simulation'
    """

    name: ClassVar[str] = "oe"
    title: ClassVar[str] = "output error by simulation"

    law: Annotated[Law | None, LAW] = None
    horizon: Annotated[float, above(0.0, infinite=True)] = math.inf
    initial: Literal["estimated", "measured"] = "estimated"
    start: Literal["best", "data", "tree"] = "best"
    constants: tuple[str, ...] = ()
    hold: Hold = "linear"
    friction_speed: Annotated[float, at_least(0.0)] = 0.05
    substeps: Annotated[int, at_least(1)] = 1
    iterations: Annotated[int, at_least(1)] = 40
    tolerance: Annotated[float, above(0.0)] = 0.02

    def check(self, tree: Tree, rows: Rows, covariance: Hac | None) -> None:
        super().check(tree, rows, covariance)
        if tree.select_rows(rows) != tree.select_rows("all"):
            what = "a simulation needs every row of the machine."
            raise IdentificationError(Fault(what, where="OutputError", expected="rows='all'"))
        check_tree(tree, "OutputError").raise_if_any(DataError, tree.name)
        self._check_constants(tree)

    def _check_constants(self, tree: Tree) -> None:
        faults, known = Faults(), [c.name for c in tree.constants]
        for name in self.constants:
            if name not in known:
                hint = did_you_mean(name, known) if known else "No element of this machine gives a constant."
                faults.add(f"there is no constant '{name}'.", where="OutputError.constants", hint=hint)
        if len(set(self.constants)) < len(self.constants):
            faults.add("a constant is named twice.", where="OutputError.constants", found=", ".join(self.constants))
        faults.raise_if_any(IdentificationError, tree.name)

    def fit(self, problem: FitProblem) -> Fit:
        """The groups and, unless ``start="tree"``, the start come from least squares on the same samples."""
        tree, hac = problem.tree, problem.covariance
        if tree.states:
            given = [problem.motion] if isinstance(problem.motion, Motion) else problem.motion
            problem = replace(problem, motion=[with_element_states(tree, m, problem.progress) for m in given])
        samples = problem.stream()
        if self.constants and not tree.parameters.select("estimated"):
            plain = _nothing_linear(tree, self.title, problem)
        else:
            plain = fit_of(tree, problem.least_squares(samples), self.title, problem.acceptance)

        def values_of(x: Array) -> Array:
            return replace(plain, values=x).standard

        starts = [plain.values] if self.start == "data" else [_own_values(plain)] if self.start == "tree" else []
        if self.start == "best":
            starts = [plain.values, *([plain.priors] if np.isfinite(plain.priors).all() else [])]
        found = output_error(tree, samples.motions, starts, values_of, self, problem.sigma, hac, samples.progress)
        p = len(plain.values)
        constants = (
            LawConstants.of(tree, self.constants, found.values[p:], found.covariance[p:])
            if p < len(found.values)
            else None
        )
        turning = [kind == "turning" for kind in tree.coordinate_kinds]
        units = [("rad" if t else "m") if self.law is None else ("N*m" if t else "N") for t in turning]
        reports = tuple(
            RowReport(name, found.samples, float(rms), m.rms, float(s), measured_std=m.std, noise=m.noise, unit=unit)
            for name, unit, rms, m, s in zip(
                tree.coordinates, units, found.rms, found.measured, found.output_sigma, strict=True
            )
        )
        what = (
            "coordinates simulated under the measured forces" if self.law is None else "forces simulated in closed loop"
        )
        runs = f"{found.runs} run(s) of {found.samples // found.runs} samples"
        notes = [f"rows compare {what}, {runs}; {found.iterations} iterations"]
        if hac is not None:
            notes.append(f"deviations allow for residuals that remember {found.lags} samples within a run")
        sizes = [*tree.parameters.typical[list(plain.base.columns)], *found.constant_sizes]
        return replace(
            plain,
            tree=tree
            if constants is None
            else tree.with_constants(dict(zip(constants.names, constants.values.tolist(), strict=True))),
            values=found.values[:p],
            covariance=found.covariance[:p, :p],
            constants=constants,
            rows=reports,
            residual_sigma=found.residual_sigma,
            condition=float(np.linalg.cond(found.triangle)),
            condition_scaled=float(np.linalg.cond(found.triangle * np.array(sizes))),
            notes=(*plain.notes, *notes),
        )


def _nothing_linear(tree: Tree, title: str, problem: FitProblem) -> Fit:
    """The fit of a machine whose parameters are all known: only constants of laws are left to estimate."""
    base = BaseParameters(
        parameters=tree.parameters,
        columns=(),
        matrix=np.zeros((0, len(tree.parameters))),
        dead=(),
        gap=math.inf,
        singular_values=np.zeros(0),
        source="no parameter is estimated",
    )
    return Fit(
        tree=tree,
        base=base,
        values=np.zeros(0),
        covariance=np.zeros((0, 0)),
        rows=(),
        estimator=title,
        residual_sigma=math.nan,
        condition=math.nan,
        condition_scaled=math.nan,
        acceptance=problem.acceptance,
    )


def _own_values(fit: Fit) -> Array:
    """The tree's own values of the base parameters; refused where there are none."""
    first = fit.priors
    if not np.isfinite(first).all():
        named = ", ".join(n for n, v in zip(fit.names, first, strict=True) if not np.isfinite(v))
        what = f"the tree has no values to start from: {named}."
        raise IdentificationError(Fault(what, where="OutputError.start", hint="start='data'"))
    return first


@dataclass(frozen=True, eq=False, kw_only=True)
class Shot:
    """Base parameters and constants of the least output error, their covariance, and what is left of each output.

    `triangle` is the R factor of the weighted sensitivities; `rms` and `measured` of each output, over `samples` of it.
    """

    values: Array
    covariance: Array  # of both, (p + c, p + c)
    triangle: Array
    output_sigma: Array
    rms: Array
    measured: tuple[Moments, ...]
    samples: int
    runs: int
    iterations: int
    residual_sigma: float
    constant_sizes: tuple[float, ...]
    lags: int = 0


def output_error(
    tree: Tree,
    motions: Sequence[Motion],
    starts: Sequence[Array],
    values_of: Values,
    how: OutputError,
    sigma: Mapping[str, float] | None = None,
    hac: Hac | None = None,
    progress: Progress = silent,
) -> Shot:
    """Iterate from the best of the base parameters `starts`; `values_of` gives all parameters of the tree from them and is affine."""
    check_motions(tree, motions, how.law is not None, "OutputError")
    origin = values_of(np.zeros_like(starts[0]))
    spread = np.array([values_of(unit) - origin for unit in np.eye(len(starts[0]))]).reshape(-1, len(origin)).T
    shooting = Shooting(
        tree=tree,
        law=how.law,
        hold=how.hold,
        friction_speed=how.friction_speed,
        substeps=how.substeps,
        constants=tuple(how.constants),
    )
    groups = cut(tree, motions, how.horizon)
    problem = OutputProblem(shooting, shooting.size if how.initial == "estimated" else 0, groups, values_of, spread)
    _enough(problem, len(starts[0]) + len(how.constants))
    initial = [runs.initial for runs in groups]
    x, residuals = _first(
        problem, [np.concatenate([s, _values(tree, how.constants)]) for s in starts], initial, progress
    )
    given = np.array([(sigma or {}).get(c, np.nan) for c in tree.coordinates])
    damping, done, length, trials = 0.0, 0, math.inf, 0
    s, held = np.full(tree.n, math.inf), False
    while done < how.iterations and trials < MAX_TRIALS * how.iterations:
        progress("output error", float(done), float(how.iterations))
        done += 1
        fresh = _sigma(problem, residuals, given, len(x))
        if not held:
            held = bool(np.abs(fresh / s - 1.0).max() < SIGMA_CHANGE)
            s = fresh
        factors = problem.factors(x, initial, s)
        T, _ = problem.reduced(factors)
        cost = _cost(residuals, s)
        own = T[: len(x), : len(x)]
        length = float(np.linalg.norm(T[: len(x), -1])) / math.sqrt(
            len(x)
        )  # of the step without damping, in deviations
        rounding = ROUNDING * float(np.linalg.norm(own @ x)) / math.sqrt(len(x))
        if length < max(how.tolerance * _inflation(problem, residuals, s, len(x)), rounding):
            return _finished(problem, x, initial, residuals, given, done, hac)
        tried = 0
        while True:
            tried += 1
            progress("output error", done - 0.5**tried, float(how.iterations))
            step, states = problem.stepped(factors, initial, damping)
            trial = x + step
            new = problem.residuals(trial, states)
            if new is not None and _cost(new, s) <= cost * (1.0 + 1e-9):
                break
            damping = max(10.0 * damping, 1e-4)
            if damping > MAX_DAMPING:
                break
        trials += tried
        if damping > MAX_DAMPING or new is None:
            break
        x, initial, residuals = trial, states, new
        if held and length < CONVERGED_SIGMAS and 1.0 - _cost(new, s) / cost < MIN_DECREASE:
            return _finished(problem, x, initial, residuals, given, done, hac)
        damping = 0.0 if damping < 1e-3 else damping / 100.0
    share = [f"{c} {100.0 * r:.3g} %" for c, r in zip(tree.coordinates, _relative(problem, residuals), strict=True)]
    raise IdentificationError(
        Fault(
            f"the output error has not converged after {done} iterations and {trials} simulations of trial steps.",
            where="OutputError",
            expected=f"a step below {how.tolerance:g} deviations",
            found=f"{length:.3g}, with errors of {', '.join(share)} of what was measured",
            hint="Shorten the horizon, start='tree' from values that are nearer, allow more iterations, or ask for fewer parameters.",
        )
    )


def _values(tree: Tree, constants: Sequence[str]) -> Array:
    value = {c.name: c.value for c in tree.constants}
    return np.array([value[name] for name in constants], dtype=np.float64)


def _first(
    problem: OutputProblem, starts: Sequence[Array], initial: list[Array], progress: Progress
) -> tuple[Array, list[Array]]:
    """Of several starts the one that simulates nearest to the measurement, and its residuals; refused where none can be simulated."""
    found: list[tuple[float, Array, list[Array]]] = []
    for k, start in enumerate(starts):
        progress("output error, start", float(k), float(len(starts)))
        residuals = problem.residuals(start, initial)
        if residuals is not None:
            found.append((float((_relative(problem, residuals) ** 2).sum()), start, residuals))
    if not found:
        raise IdentificationError(
            Fault(
                "the machine cannot be simulated with the parameters that the estimate starts from.",
                where="OutputError",
                hint="Shorten the horizon, take more substeps where a law is stiff, or start='tree' where the tree's own values are those "
                "of a possible machine.",
            )
        )
    _, x, residuals = min(found, key=lambda f: f[0])
    return x, residuals


def _relative(problem: OutputProblem, residuals: list[Array]) -> Array:
    """‖r‖/‖y‖ of each output."""
    error = sum((r**2).sum(axis=(0, 1)) for r in residuals)
    size = sum((problem.measured(runs) ** 2).sum(axis=(0, 1)) for runs in problem.groups)
    return np.sqrt(error / np.where(size > 0.0, size, 1.0))


def _enough(problem: OutputProblem, p: int) -> None:
    equations = sum(runs.q.size for runs in problem.groups)
    unknowns = p + problem.free * sum(len(runs) for runs in problem.groups)
    short = min(runs.samples for runs in problem.groups)
    if equations <= unknowns or short < 3:
        raise IdentificationError(
            Fault(
                "there are fewer equations than parameters.",
                where="OutputError",
                expected=f"more than {unknowns} samples of outputs, and at least 3 in each run",
                found=f"{equations}, {short} in the shortest run",
                hint="Record longer, or lengthen the horizon.",
            )
        )


def _cost(residuals: list[Array], sigma: Array) -> float:
    return float(sum(np.sum((r / sigma) ** 2) for r in residuals))


def _sigma(problem: OutputProblem, residuals: list[Array], given: Array, p: int) -> Array:
    """σ_k of each output: given, or from the residuals, with their share of the parameters taken into account."""
    n, samples = len(given), sum(r[..., 0].size for r in residuals)
    freedom = samples * n - p - problem.free * sum(len(r) for r in residuals)
    square = sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples
    size = sum((problem.measured(runs) ** 2).sum(axis=(0, 1)) for runs in problem.groups) / samples
    found = np.sqrt(np.maximum(square * samples * n / freedom, EXACT_RESIDUAL**2 * np.where(size > 0.0, size, 1.0)))
    return np.where(np.isfinite(given), given, found)


def _inflation(problem: OutputProblem, residuals: list[Array], sigma: Array, p: int) -> float:
    """How much larger residuals are than the σ they were weighed with: 1 where the weights are right."""
    equations = sum(r.size for r in residuals)
    freedom = equations - p - problem.free * sum(len(r) for r in residuals)
    return math.sqrt(_cost(residuals, sigma) / freedom)


def _finished(
    problem: OutputProblem,
    x: Array,
    initial: list[Array],
    residuals: list[Array],
    given: Array,
    iterations: int,
    hac: Hac | None,
) -> Shot:
    p = len(x)
    sigma = _sigma(problem, residuals, given, p)
    T, heads = problem.reduced(problem.factors(x, initial, sigma))
    A = T[:p, :p]
    if np.abs(np.diag(A)).min() < 1e-12 * np.abs(np.diag(A)).max():
        raise IdentificationError(
            Fault(
                "the outputs do not fix every parameter: some change nothing that is compared.",
                where="OutputError",
                hint="In closed loop compare forces; in open loop lengthen the horizon.",
            )
        )
    inverse = solve_triangular(A, np.eye(p))
    scale = _inflation(problem, residuals, sigma, p)
    covariance, lags = scale**2 * inverse @ inverse.T, 0
    if hac is not None:
        meat, lags = _meat(problem, x, initial, heads, sigma, inverse, hac)
        covariance = inverse @ meat @ inverse.T
    samples = sum(r[..., 0].size for r in residuals)
    rms = np.sqrt(sum((r**2).sum(axis=(0, 1)) for r in residuals) / samples)
    size: list[Moments] | None = None
    for g in problem.groups:
        size = moments_of_runs(problem.measured(g), size)
    count = sum(len(g) for g in problem.groups)
    return Shot(
        values=x,
        covariance=covariance,
        triangle=A,
        output_sigma=sigma,
        rms=rms,
        measured=tuple(size or ()),
        samples=samples,
        runs=count,
        iterations=iterations,
        residual_sigma=scale,
        constant_sizes=tuple(np.maximum(np.abs(x[problem.spread.shape[1] :]), DEFAULT_CONSTANT_SIZE).tolist()),
        lags=lags,
    )


def _meat(
    problem: OutputProblem,
    x: Array,
    initial: list[Array],
    heads: list[Array],
    sigma: Array,
    inverse: Array,
    hac: Hac,
) -> tuple[Array, int]:
    """S of the sandwich for residuals that remember within a run, in coordinates in which the sensitivities are orthonormal."""
    p, free = len(x), problem.free
    scores: list[Array] = []
    for runs, state, T in zip(problem.groups, initial, heads, strict=True):
        for part in chunks(runs, problem.shooting.substeps * (p + problem.shooting.size)):
            r, J = problem.columns(runs[part], state[part], x)
            for residual, own, t in zip(r, J, T[part], strict=True):
                W = own[..., :p]
                if free:
                    W = W - own[..., p:] @ np.linalg.lstsq(t[:, :free], t[:, free:-1], rcond=1e-12)[0]
                scores.append(np.einsum("tki,tk->ti", W / sigma[:, None], residual / sigma) @ inverse)
    lags = lags_for(scores) if hac.lags is None else hac.lags
    longest = min(len(h) for h in scores) - 1
    lags = min(lags, longest)
    return sum((bartlett(h, lags) for h in scores), np.zeros((p, p))), lags
