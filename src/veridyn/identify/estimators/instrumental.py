"""Instrumental variables: least squares that noise on the motion does not bias.

    χ̂ = (Zᵀ P W)⁻¹ Zᵀ P Y,   C = (Zᵀ P W)⁻¹ S (Wᵀ P Z)⁻¹,   S = Σ_t Σ_s k(t − s) h_t h_sᵀ,   h_t = Z_tᵀ P r_t

Measured positions are noisy, their derivatives noisier, and noise in W biases least squares, accelerations towards zero inertia. The
instruments Z are the same columns on a motion without that noise: the motion simulated in closed loop with the previous estimate
(IDIM-IV: Janot, Vandanjon and Gautier, 2014, IEEE T-CST 22(1)), or the reference that the controller followed. Z resembles W and has
nothing to do with its noise, which is all that is needed: a wrong simulation costs precision, not truth. Z and W are streamed side by
side and never stored; the products are summed in coordinates in which W is orthonormal, so that nothing is lost by squaring. Jobs and
blocks of the instruments' motion are those of the log; what the log drops is dropped from both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.arrays import Array
from veridyn.errors import (
    DataError,
    Fault,
    Faults,
    IdentificationError,
    IdentificationWarning,
    ModelError,
    SimulationError,
    warn,
)
from veridyn.identify.estimator import Estimator, FitProblem, fit_of, with_sandwich
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.instrument_sums import by_spectrum, summed, weakest_of
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL, Solution, solved
from veridyn.identify.output_error.log_runs import check_motions, check_open_tree, cut
from veridyn.identify.output_error.shooting import LAW, Law, Shooting
from veridyn.identify.regression.observation import EquationStream
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto, Hac
from veridyn.inference.lag_window import andrews
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Reference
from veridyn.settings import Rule, above, at_least

Values = Callable[[Array], Array]  # base parameters → all parameters
# Least correlation between instruments and columns, in any direction, with which they are instruments
WEAK_CORRELATION = 0.1
SIGMA_CHANGE = 0.02  # a change of every σ_j below which the weights agree with the residuals
ROUNDING = 1e-13  # of the prediction: with exact data no step can be smaller


def _is_reference(value: Any) -> bool:
    return (
        value is None or value == "measured" if isinstance(value, str | None) else callable(getattr(value, "at", None))
    )


REFERENCE = Rule(
    _is_reference,
    "an object with at(t), 'measured', or None; the reference at samples, of a Motion too, is vd.signals.SampledTrajectory(t, q, qd, qdd)",
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Instrumental(Estimator):
    """Instrumental variables: least squares that noise on the measured motion does not bias.

    The settings say where a motion without that noise comes from: either `law` or `reference` must be given.

    Parameters
    ----------
    law : callable (t, q, qd) -> forces, or None
        The control law under which the machine moved: time in s, coordinates and their rates (n,), forces (n,) in N or N*m. The machine
        is simulated in closed loop with every estimate.
    reference : object with ``at(t)``, "measured", or None
        The motion that the controller followed: ``at(t)`` returns q, qd and qdd, each (N, n). "measured": the motion is good and only
        the currents that drive gains multiply are noisy; their instruments are the currents that the previous estimate predicts.
    start : {"data", "tree"}
        Parameters of the first simulation: least squares on the same data (the default), or the tree's own values, for data so noisy
        that the least-squares solution cannot be simulated.
    friction_speed : float of at least 0
        Speed in rad/s or m/s below which dry friction is smoothed in the simulation; 0.05 by default.
    substeps : int of at least 1
        Integrator steps per sample; 1 by default. A stiff control law needs more.
    iterations : int of at least 1
        Estimates, at most; 30 by default. A warning is given where they do not suffice.
    tolerance : float above 0
        The step of all parameters together, in standard deviations, below which the iteration has converged; 0.02 by default.

    Examples
    --------
    >>> method = vd.estimators.Instrumental(reference=path)
    >>> fit = vd.identify(robot, motion, method)  # robot, motion and path as in the example of vd.identify
    >>> fit.estimator
    'instrumental variables'
    """

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"

    law: Annotated[Law | None, LAW] = None
    reference: Annotated[Reference | Literal["measured"] | None, REFERENCE] = None
    start: Literal["data", "tree"] = "data"
    friction_speed: Annotated[float, at_least(0.0)] = 0.05
    substeps: Annotated[int, at_least(1)] = 1
    iterations: Annotated[int, at_least(1)] = 30
    tolerance: Annotated[float, above(0.0)] = 0.02

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        faults = Faults()
        if (self.law is None) == (self.reference is None):
            faults.add(
                "instruments need a motion without noise.",
                where="Instrumental",
                expected="law=, the control law to simulate with, or reference=, the motion that the controller followed, or 'measured'",
                found="neither" if self.law is None else "both",
                hint="Without either, filter well and use 'wls', or use 'oe', which needs none.",
            )
        if self.start == "tree" and machine.parameters.missing():
            faults.add(
                "the tree has no values to start from.",
                where="Instrumental.start",
                found=f"none for {', '.join(machine.parameters.missing()[:6])}",
            )
        faults.raise_if_any(IdentificationError, machine.name)
        if self.law is not None:
            refused = check_open_tree(machine, "Instrumental")
            if machine.states:
                refused.add(
                    "instruments of elements with a state of their own are not simulated.",
                    where="Instrumental",
                    found=", ".join(s.name for s in machine.states),
                    hint="Use OutputError, which simulates them.",
                )
            refused.raise_if_any(DataError, machine.name)

    def fit(self, problem: FitProblem) -> Fit:
        """Iterated from the least-squares solution, whose groups it keeps."""
        samples, machine, hac = problem.samples, problem.machine, problem.covariance
        start = problem.weighted
        plain = fit_of(machine, start, self.title, problem.settings.acceptance)
        found = instrumental(
            samples, start, lambda x: replace(plain, values=x).standard, self, problem.settings.sigma, hac
        )
        fit = fit_of(machine, found.solution, self.title, problem.settings.acceptance)
        source = "simulated in closed loop" if self.law is not None else "along the reference"
        source = "along the measured motion" if self.reference == "measured" else source
        state = "" if found.converged else ", NOT CONVERGED"
        notes = [f"instruments {source}, {found.iterations} iterations{state}; least correlation {found.weakest:.3f}"]
        white = np.sqrt(np.diag(found.plain))
        fit = replace(fit, notes=(*fit.notes, *notes))
        return replace(fit, covariance=found.plain) if hac is None else with_sandwich(fit, found.made, white)


@dataclass(frozen=True, eq=False, kw_only=True)
class Instruments:
    """`solution` at the instrumental values and the least correlation of instruments and columns.

    `plain`: the covariance for residuals that are uncorrelated in time; `made`: the one that was asked for.
    """

    solution: Solution
    plain: Array
    made: Sandwich
    weakest: float
    iterations: int
    converged: bool


def instrumental(
    stream: EquationStream,
    start: Solution,
    values_of: Values,
    how: Instrumental,
    sigma: Mapping[str, float] | None = None,
    how_correlated: Hac | Auto | None = None,
) -> Instruments:
    """Iterate from a weighted least-squares solution; `values_of` gives all parameters of the tree from base parameters."""
    machine, s = stream.plan.machine, start
    if how.law is not None:
        check_motions(machine, stream.motions, True, "Instrumental")
    done, met, weakest = 0, False, 1.0
    motions: list[Motion] = []
    while not met and done < how.iterations:
        done += 1
        if how.law is not None or _signals(machine) or not motions:
            first = done == 1 and how.start == "tree"
            phi = machine.parameters.values if first else values_of(s.values)
            motions = [_without_noise(machine, m, phi, how) for m in stream.motions]
        sums = summed(stream, motions, s, 0)
        weakest = weakest_of(sums)
        if weakest < WEAK_CORRELATION:
            raise IdentificationError(
                "the instruments hardly resemble the motion.",
                where="Instrumental",
                expected=f"a correlation of at least {WEAK_CORRELATION:g} with every combination of columns",
                found=f"{weakest:.3g}",
                hint="Check that law= or reference= is that of this log, on its clock and in its units; a stiff law needs substeps.",
            )
        values = solve_triangular(s.triangle, np.linalg.solve(sums.columns, sums.measured))
        step = float(np.linalg.norm(s.triangle @ (values - s.values))) / math.sqrt(len(values))
        rounding = ROUNDING * float(np.linalg.norm(s.triangle @ values))
        old, s = s.row_sigma, _weighed(s, values, sigma or {})
        met = step < max(how.tolerance, rounding) and bool(np.abs(s.row_sigma / old - 1.0).max() < SIGMA_CHANGE)
    if not met:
        warn(
            IdentificationWarning,
            Fault(
                f"instruments and estimate have not settled after {done} iterations.",
                where="Instrumental",
                hint="Allow more iterations, or take the reference as instruments.",
            ),
        )
    lags = 0
    sums = summed(stream, motions, s, 0)
    half = solve_triangular(s.triangle, np.linalg.inv(sums.columns))
    spread = s.observation.samples / s.freedom
    plain = spread * half @ sums.meat @ half.T
    if isinstance(how_correlated, Hac):
        given = how_correlated.lags
        lags = andrews(sums.square, sums.product, sums.samples)[0] if given is None else given
        sums = summed(stream, motions, s, lags)
    made = Sandwich(covariance=spread * half @ sums.meat @ half.T, lags=lags, residual_sigma=s.sigma)
    if isinstance(how_correlated, Auto):
        made = by_spectrum(stream, motions, s, half, plain)
    return Instruments(
        solution=s,
        plain=plain,
        made=made,
        weakest=weakest,
        iterations=done,
        converged=met,
    )


def _without_noise(machine: Machine, motion: Motion, values: Array, how: Instrumental) -> Motion:
    """The instruments' motion on the clock of the log."""
    if how.reference is not None:
        states = {} if isinstance(how.reference, str) else _along(how.reference, motion)
        return _with_signals(machine, replace(motion, **states), values)
    shooting = Shooting(machine=machine, law=how.law, friction_speed=how.friction_speed, substeps=how.substeps)
    (runs,) = cut(machine, [motion], math.inf)
    try:
        found = shooting.simulate(runs, runs.initial, values)
    except (SimulationError, ModelError) as error:
        raise IdentificationError(
            f"the machine cannot be simulated with the previous estimate: {error.faults[0].what}",
            where="Instrumental",
            hint="Take the reference as instruments, or ask for fewer parameters.",
        ) from error
    return _with_signals(machine, replace(motion, q=found.q[0], qd=found.qd[0], qdd=found.qdd[0]), values)


def _along(reference: Reference, motion: Motion) -> dict[str, Array]:
    """q, q̇ and q̈ of the reference on the clock of the log."""
    found = reference.at(motion.t)
    shapes = [np.shape(x) for x in found]
    if shapes != [motion.q.shape] * 3:
        raise DataError(
            "the reference is no motion of this machine.",
            where="Instrumental.reference",
            expected=f"at(t) that returns q, qd and qdd, each {motion.q.shape}",
            found=", ".join(map(str, shapes)) or "nothing",
        )
    return dict(zip(("q", "qd", "qdd"), found, strict=True))


def _signals(machine: Machine) -> list[Element]:
    """Drive gains that are estimated: their signals are columns, and noisy."""
    p = machine.parameters
    gains = [e for e in machine.elements if e.kind == "drive_gain"]
    return [e for e in gains if p.states[p.index(e.parameter_name)] == "estimated"]


def _with_signals(machine: Machine, motion: Motion, values: Array) -> Motion:
    """Without forces, and with the signals that estimated gains need along the motion where these parameters are the true ones."""
    none = np.zeros((len(motion), machine.n))
    gains = _signals(machine)
    signals = dict(motion.signals)
    if gains:
        silent = replace(motion, forces=none, signals={name: np.zeros(len(motion)) for name in signals})
        needed = inverse_dynamics(machine, silent, "joints", values)
        given = none if motion.forces is None else np.where(np.isnan(motion.forces), 0.0, motion.forces)
        for e in gains:
            (name, share), gain = next(iter(e.on.items())), values[machine.parameters.index(e.parameter_name)]
            k = machine.coordinates.index(name)
            signals[e.signal] = (needed[:, k] - given[:, k]) / (share * gain if gain else 1.0)
    return replace(motion, forces=none, signals=signals)


def _weighed(s: Solution, values: Array, given: Mapping[str, float]) -> Solution:
    """A solution at other values, its rows weighed by what these leave of them."""
    full = replace(s, values=values).all_values
    share = s.observation.samples / s.freedom
    rows = s.observation.rows
    residuals = [f.residual(full[list(f.columns)]) for f in rows]
    row_sigma = np.array(
        [
            given.get(f.row)
            or max(math.sqrt(share / f.samples) * r, EXACT_RESIDUAL * f.measurement_norm / math.sqrt(f.samples))
            or old
            for f, r, old in zip(rows, residuals, s.row_sigma, strict=True)
        ]
    )
    new = solved(s.observation, s.observation.stacked(list(1.0 / row_sigma)), s.groups, row_sigma, s.tolerance)
    square = sum((r / w) ** 2 for r, w in zip(residuals, row_sigma, strict=True))
    return replace(new, values=values, sigma=math.sqrt(square / s.freedom))
