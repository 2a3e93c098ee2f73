"""Output error: the parameters with which a simulation of the machine comes nearest to what was measured.

    minimise Σ_t Σ_k (y_k(t) − ŷ_k(t; χ, x₀))²/σ_k²

ŷ are the coordinates of a simulation under the measured forces or, where a control `law` is given, the forces of a simulation in
closed loop (Gautier, Janot and Vandanjon, 2013, IEEE T-CST 21(2)). Neither derivatives of noisy positions nor filters enter, so noise
on positions does not bias the estimate; noise on the forces that drive the simulation does. Gauss and Newton's steps with exact
sensitivities (:mod:`veridyn.identify.output_error.output_search`). Elements may have states of their own (tyres, LuGre friction,
relaxation), and constants inside their laws can be estimated with the parameters. Open machines on a fixed base are simulated all runs at
once by an explicit method; machines with loops, free bases, prescribed coordinates or measured wrenches run by run by the implicit
trapezoidal rule, of order two (:mod:`veridyn.identify.output_error.shooting`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, IdentificationError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.estimator import Estimator, FitProblem, fit_of
from veridyn.identify.output_error.log_runs import Hold, check_motions, check_open_tree, cut, with_element_states
from veridyn.identify.output_error.output_problem import OutputProblem, Values
from veridyn.identify.output_error.output_search import Shot, search
from veridyn.identify.output_error.shooting import LAW, Law, check_outputs, run_model
from veridyn.identify.result import Fit, LawConstants, ReplaySettings
from veridyn.identify.settings import Auto, Hac
from veridyn.inference.error_measures import RowReport
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.settings import above, at_least

STEP_MATTERS_SIGMAS = 0.3  # of a parameter: a larger change by half the step calls for more substeps


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
    outputs : names
        Coordinates that are compared: all of an open machine by default, those that determine the others where there are loops, and on a
        free base its position and attitude too ("base.x" … "base.yaw"; the attitude as a turn in the base's own axes).
    hold : {"linear", "zero"}
        Forces between samples: linear interpolation (the default), or the last sample.
    friction_speed : float of at least 0
        Speed in rad/s or m/s below which dry friction is smoothed in the simulation; 0.05 by default. With 0 the friction of an open
        machine on a fixed base holds what it can without creeping: for logs in which joints come to rest under a force.
    substeps : int of at least 1
        Integrator steps per sample; 1 by default.
    iterations : int of at least 1
        Gauss-Newton steps, at most; 40 by default. It is an error where they do not suffice.
    tolerance : float above 0
        The step of all parameters together, in standard deviations, below which the iteration has converged; 0.02 by default. It has
        also converged where a step is small and the residual no longer falls.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.OutputError(horizon=0.5))  # robot and motion as in the example of vd.identify
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
    outputs: tuple[str, ...] = ()
    hold: Hold = "linear"
    friction_speed: Annotated[float, at_least(0.0)] = 0.05
    substeps: Annotated[int, at_least(1)] = 1
    iterations: Annotated[int, at_least(1)] = 40
    tolerance: Annotated[float, above(0.0)] = 0.02

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        if machine.select_rows(rows) != machine.select_rows("all"):
            what = "a simulation needs every row of the machine."
            raise IdentificationError(what, where="OutputError", expected="rows='all'")
        if self.law is not None:
            check_open_tree(machine, "OutputError").raise_if_any(DataError, machine.name)
        check_outputs(machine, self.outputs)
        self._check_constants(machine)

    def _check_constants(self, machine: Machine) -> None:
        faults, known = Faults(), [c.name for c in machine.constants]
        for name in self.constants:
            if name not in known:
                hint = did_you_mean(name, known) if known else "No element of this machine gives a constant."
                faults.add(f"there is no constant '{name}'.", where="OutputError.constants", hint=hint)
        if len(set(self.constants)) < len(self.constants):
            faults.add("a constant is named twice.", where="OutputError.constants", found=", ".join(self.constants))
        faults.raise_if_any(IdentificationError, machine.name)

    def fit(self, problem: FitProblem) -> Fit:
        """The groups and, unless ``start="tree"``, the start come from least squares on the same samples."""
        machine, hac = problem.machine, problem.covariance
        if machine.states:
            given = [problem.motion] if isinstance(problem.motion, Motion) else problem.motion
            problem = replace(problem, motion=[with_element_states(machine, m, problem.progress) for m in given])
        samples = problem.samples
        if self.constants and not machine.parameters.select("estimated"):
            plain = _nothing_linear(machine, self.title, problem)
        else:
            plain = fit_of(machine, problem.weighted, self.title, problem.settings.acceptance)

        def values_of(x: Array) -> Array:
            return replace(plain, values=x).standard

        starts = [plain.values] if self.start == "data" else [_own_values(plain)] if self.start == "tree" else []
        if self.start == "best":
            starts = [plain.values, *([plain.priors] if np.isfinite(plain.priors).all() else [])]
        own = {c.name: c.value for c in machine.constants}
        starts = [np.concatenate([start, [own[name] for name in self.constants]]) for start in starts]
        simulated = self._problem(machine, samples.motions, plain.values, values_of)
        found = search(
            simulated,
            starts,
            iterations=self.iterations,
            tolerance=self.tolerance,
            sigma=problem.settings.sigma,
            hac=hac,
            progress=samples.progress,
        )
        p = len(plain.values)
        constants = (
            LawConstants.of(machine, self.constants, found.values[p:], found.covariance[p:])
            if p < len(found.values)
            else None
        )
        model = simulated.shooting
        reports = tuple(
            RowReport(name, found.samples, float(rms), m.rms, float(s), measured_std=m.std, noise=m.noise, unit=unit)
            for name, unit, rms, m, s in zip(
                model.outputs, model.units, found.rms, found.measured, found.output_sigma, strict=True
            )
        )
        what = (
            "coordinates simulated under the measured forces" if self.law is None else "forces simulated in closed loop"
        )
        runs = f"{found.runs} run(s) of {found.samples // found.runs} samples"
        notes = [f"rows compare {what}, {runs}; {found.iterations} iterations"]
        if found.beyond > 0.0:
            notes.append(
                "the least residual lies where friction just stops a joint, or just does not: no step reduces it, though on one side of "
                f"it a linear model would go {found.beyond:.2g} deviations further; deviations are those of that side"
            )
        if isinstance(hac, Hac):
            notes.append(f"deviations allow for residuals that remember {found.lags} samples within a run")
        names = [*plain.names, *self.constants]
        notes.insert(0, self._step_note(names, found))
        sizes = [*machine.parameters.typical[list(plain.base.columns)], *found.constant_sizes]
        return replace(
            plain,
            described=machine
            if constants is None
            else machine.with_constants(dict(zip(constants.names, constants.values.tolist(), strict=True))),
            values=found.values[:p],
            covariance=found.covariance[:p, :p],
            constants=constants,
            rows=reports,
            residual_sigma=found.residual_sigma,
            condition=float(np.linalg.cond(found.triangle)),
            condition_scaled=float(np.linalg.cond(found.triangle * np.array(sizes))),
            notes=(*plain.notes, *notes),
            replay_settings=self.replay_settings,
        )

    @property
    def replay_settings(self) -> ReplaySettings:
        """How held-out data are simulated to judge a fit of this method."""
        return ReplaySettings(
            horizon=self.horizon,
            hold=self.hold,
            friction_speed=self.friction_speed,
            substeps=self.substeps,
            outputs=self.outputs,
            law=self.law,
        )

    def _step_note(self, names: Sequence[str], found: Shot) -> str:
        """How much half the integration step would change the estimate, and what to do where that matters."""
        sigma = np.sqrt(np.diag(found.covariance))
        share = np.abs(found.step_change) / np.where(sigma > 0.0, sigma, 1.0)
        worst = int(np.argmax(share))
        note = f"half the integration step would change '{names[worst]}' by {share[worst]:.2g} of its deviation"
        return note if share[worst] < STEP_MATTERS_SIGMAS else f"{note}: use substeps={4 * self.substeps}"

    def _problem(self, machine: Machine, motions: Sequence[Motion], first: Array, values_of: Values) -> OutputProblem:
        """The runs with their simulation; `values_of` gives all parameters of the tree from base parameters and is affine."""
        check_motions(machine, motions, self.law is not None, "OutputError")
        origin = values_of(np.zeros_like(first))
        spread = np.array([values_of(unit) - origin for unit in np.eye(len(first))]).reshape(-1, len(origin)).T
        model = run_model(
            machine,
            motions,
            values_of(first),
            self.replay_settings,
            varying=[int(c) for c in np.flatnonzero(spread.any(axis=1))],
            compare="coordinates" if self.law is None else "forces",
            constants=self.constants,
        )
        free = model.size if self.initial == "estimated" else 0
        groups = cut(machine, motions, self.horizon)
        return OutputProblem(
            shooting=model, free=free, groups=groups, values_of=lambda x: origin + spread @ x, spread=spread
        )


def _nothing_linear(machine: Machine, title: str, problem: FitProblem) -> Fit:
    """The fit of a machine whose parameters are all known: only constants of laws are left to estimate."""
    base = BaseParameters(
        parameters=machine.parameters,
        columns=(),
        matrix=np.zeros((0, len(machine.parameters))),
        dead=(),
        gap=math.inf,
        singular_values=np.zeros(0),
        source="no parameter is estimated",
    )
    return Fit(
        described=machine,
        base=base,
        values=np.zeros(0),
        covariance=np.zeros((0, 0)),
        rows=(),
        estimator=title,
        residual_sigma=math.nan,
        condition=math.nan,
        condition_scaled=math.nan,
        acceptance=problem.settings.acceptance,
    )


def _own_values(fit: Fit) -> Array:
    """The tree's own values of the base parameters; refused where there are none."""
    first = fit.priors
    if not np.isfinite(first).all():
        named = ", ".join(n for n, v in zip(fit.names, first, strict=True) if not np.isfinite(v))
        what = f"the tree has no values to start from: {named}."
        raise IdentificationError(what, where="OutputError.start", hint="start='data'")
    return first
