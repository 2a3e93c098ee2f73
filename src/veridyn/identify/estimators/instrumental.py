"""Instrumental variables: least squares that noise on the motion does not bias.

    χ̂ = (Zᵀ P W)⁻¹ Zᵀ P Y,   C = (Zᵀ P W)⁻¹ S (Wᵀ P Z)⁻¹,   S = Σ_t Σ_s k(t − s) h_t h_sᵀ,   h_t = Z_tᵀ P r_t

Measured positions are noisy, their derivatives noisier, and noise in W biases least squares, accelerations towards zero inertia. The
instruments Z are the same columns on a motion without that noise: the motion simulated in closed loop with the previous estimate
(IDIM-IV: Janot, Vandanjon and Gautier, 2014, IEEE T-CST 22(1)), or the reference that the controller followed. Z resembles W and has
nothing to do with its noise, which is all that is needed: a wrong simulation costs precision, not truth. Z and W are streamed side by
side and never stored; the products are summed in coordinates in which W is orthonormal, so that nothing is lost by squaring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.errors import Fault, Faults, IdentificationError, IdentificationWarning, ModelError, SimulationError, warn
from veridyn.identify.estimators.coloured import Hac, andrews
from veridyn.identify.estimators.instruments import summed, weakest_of
from veridyn.identify.estimators.least_squares import EXACT, Solution, solved
from veridyn.identify.estimators.shooting import Law, Shooting, check_motions, cut
from veridyn.identify.observation import Stream
from veridyn.mechanics.control import Reference
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.elements import Element
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
Values = Callable[[Array], Array]  # base parameters → all parameters
WEAK = 0.1  # least correlation between instruments and columns, in any direction, with which they are instruments
SETTLED = 0.02  # a change of every σ_j below which the weights agree with the residuals
ROUNDING = 1e-13  # of the prediction: with exact data no step can be smaller


@dataclass(frozen=True)
class Instrumental:
    """Settings of the instrumental-variable estimator: where the motion without noise comes from.

    `law`: the control law Γ(t, q, q̇) under which the machine moved; it is simulated anew with every estimate. `reference`: anything
    with ``at(t)``, the motion that was asked of the machine, as it is; or "measured", where the motion is good and only the currents
    that drive gains multiply are noisy: their instruments are the currents that the previous estimate asks for. One of the two.
    `start`: the first simulation has the parameters of least squares on the same "data", or the "tree"'s own, as where noise makes
    least squares impossible to simulate. `friction_speed` and `substeps` of the simulation as in
    :class:`~veridyn.identify.estimators.output_error.OutputError`. It has converged when the step of all parameters together is below
    `tolerance` deviations.
    """

    law: Law | None = None
    reference: Reference | Literal["measured"] | None = None
    start: Literal["data", "tree"] = "data"
    friction_speed: float = 0.05
    substeps: int = 1
    iterations: int = 30
    tolerance: float = 0.02

    def check(self, tree: Tree) -> None:
        faults = Faults()
        if (self.law is None) == (self.reference is None):
            faults.add(
                "instruments need a motion without noise.",
                where="instrumental",
                expected="law=, the control law to simulate with, or reference=, the motion that was asked for, or 'measured'",
                found="neither" if self.law is None else "both",
                hint="Without either, filter well and use 'wls', or use 'oe', which needs none.",
            )
        if isinstance(self.reference, str) and self.reference != "measured":
            faults.add(
                "there is no such reference.",
                where="instrumental.reference",
                expected="'measured', or anything with at(t)",
                found=f"'{self.reference}'",
            )
        if self.start not in ("data", "tree"):
            faults.add(
                "there is no such way.",
                where="instrumental.start",
                expected="data or tree",
                found=f"'{self.start}'",
            )
        if self.start == "tree" and tree.parameters.missing():
            faults.add(
                "the tree has no values to start from.",
                where="instrumental.start",
                found=f"none for {', '.join(tree.parameters.missing()[:6])}",
            )
        if self.iterations < 1 or self.substeps < 1 or not self.tolerance > 0.0 or not self.friction_speed >= 0.0:
            faults.add(
                "iterations and substeps must be at least 1, the tolerance positive, the friction speed not negative.",
                where="instrumental",
            )
        faults.raise_if_any(IdentificationError, tree.name)


@dataclass(frozen=True, eq=False)
class Instruments:
    """`solution` at the instrumental values, `covariance` of these, and the least correlation of instruments and columns."""

    solution: Solution
    covariance: Array
    weakest: float
    iterations: int
    converged: bool
    lags: int = 0


def instrumental(
    stream: Stream,
    start: Solution,
    values_of: Values,
    how: Instrumental,
    sigma: Mapping[str, float] | None = None,
    hac: Hac | None = None,
) -> Instruments:
    """Iterate from a weighted least-squares solution; `values_of` gives all parameters of the tree from base parameters."""
    tree, s = stream.plan.tree, start
    how.check(tree)
    if how.law is not None:
        check_motions(tree, stream.motions, how.law, "instrumental")
    done, met, weakest = 0, False, 1.0
    motions: list[Motion] = []
    while not met and done < how.iterations:
        done += 1
        if how.law is not None or _signals(tree) or not motions:
            first = done == 1 and how.start == "tree"
            phi = tree.parameters.values if first else values_of(s.values)
            motions = [_without_noise(tree, m, phi, how) for m in stream.motions]
        sums = summed(stream, motions, s, 0)
        weakest = weakest_of(sums)
        if weakest < WEAK:
            raise IdentificationError(
                Fault(
                    "the instruments hardly resemble the motion.",
                    where="instrumental",
                    expected=f"a correlation of at least {WEAK:g} with every combination of columns",
                    found=f"{weakest:.3g}",
                    hint="Check that law= or reference= is that of this log, on its clock and in its units; a stiff law needs substeps.",
                )
            )
        values = solve_triangular(s.triangle, np.linalg.solve(sums.columns, sums.measured))
        step = float(np.linalg.norm(s.triangle @ (values - s.values))) / math.sqrt(len(values))
        rounding = ROUNDING * float(np.linalg.norm(s.triangle @ values))
        old, s = s.row_sigma, _weighed(s, values, sigma or {})
        met = step < max(how.tolerance, rounding) and bool(np.abs(s.row_sigma / old - 1.0).max() < SETTLED)
    if not met:
        warn(
            IdentificationWarning,
            Fault(
                f"instruments and estimate have not settled after {done} iterations.",
                where="instrumental",
                hint="Allow more iterations, or take the reference as instruments.",
            ),
        )
    lags = 0
    sums = summed(stream, motions, s, 0)
    if hac is not None:
        lags = andrews(sums.square, sums.product, sums.samples)[0] if hac.lags is None else hac.lags
        sums = summed(stream, motions, s, lags)
    half = solve_triangular(s.triangle, np.linalg.inv(sums.columns))
    spread = s.observation.samples / s.freedom
    return Instruments(s, spread * half @ sums.meat @ half.T, weakest, done, met, lags)


def _without_noise(tree: Tree, motion: Motion, values: Array, how: Instrumental) -> Motion:
    """The instruments' motion on the clock of the log."""
    if how.reference is not None:
        states = {} if isinstance(how.reference, str) else dict(zip(("q", "qd", "qdd"), how.reference.at(motion.t)))
        return _heard(tree, replace(motion, **states), values)
    shooting = Shooting(tree, how.law, "linear", how.friction_speed, how.substeps)
    (runs,) = cut(tree, [motion], math.inf)
    try:
        found = shooting.simulate(runs, np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1), values)
    except (SimulationError, ModelError) as error:
        raise IdentificationError(
            Fault(
                f"the machine cannot be simulated with the previous estimate: {error.faults[0].what}",
                where="instrumental",
                hint="Take the reference as instruments, or ask for fewer parameters.",
            )
        ) from error
    return _heard(tree, replace(motion, q=found.q[0], qd=found.qd[0], qdd=found.qdd[0]), values)


def _signals(tree: Tree) -> list[Element]:
    """Drive gains that are asked: their signals are columns, and noisy."""
    p = tree.parameters
    gains = [e for e in tree.elements if e.kind == "drive_gain"]
    return [e for e in gains if p.states[p.index(e.parameter_name)] == "asked"]


def _heard(tree: Tree, motion: Motion, values: Array) -> Motion:
    """Without forces, and with the signals that asked gains need along the motion where these parameters are the true ones."""
    none = np.zeros((len(motion), tree.n))
    gains = _signals(tree)
    signals = dict(motion.signals)
    if gains:
        silent = replace(motion, forces=none, signals={name: np.zeros(len(motion)) for name in signals})
        needed = inverse_dynamics(tree, silent, "joints", values)
        given = none if motion.forces is None else np.where(np.isnan(motion.forces), 0.0, motion.forces)
        for e in gains:
            (name, share), gain = next(iter(e.on.items())), values[tree.parameters.index(e.parameter_name)]
            k = tree.coordinates.index(name)
            signals[e.signal] = (needed[:, k] - given[:, k]) / (share * gain if gain else 1.0)
    return replace(motion, forces=none, signals=signals)


def _weighed(s: Solution, values: Array, given: Mapping[str, float]) -> Solution:
    """A solution at other values, its rows weighed by what these leave of them."""
    full = np.zeros(len(s.observation.parameters))
    full[list(s.columns)] = values
    share = s.observation.samples / s.freedom
    rows = s.observation.rows
    residuals = [f.residual(full[list(f.columns)]) for f in rows]
    row_sigma = np.array(
        [
            given.get(f.row)
            or max(math.sqrt(share / f.samples) * r, EXACT * f.measurement_norm / math.sqrt(f.samples))
            or old
            for f, r, old in zip(rows, residuals, s.row_sigma, strict=True)
        ]
    )
    new = solved(s.observation, s.observation.stacked(list(1.0 / row_sigma)), s.groups, row_sigma, s.tolerance)
    square = sum((r / w) ** 2 for r, w in zip(residuals, row_sigma, strict=True))
    return replace(new, values=values, sigma=math.sqrt(square / s.freedom))
