"""Fits of the estimators that pass over the samples again, or simulate: robust, instrumental, output error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, IdentificationError
from veridyn.identify.estimators.coloured import Hac, sandwich
from veridyn.identify.estimators.instrumental import Instrumental, instrumental
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.estimators.output_error import OutputError, output_error
from veridyn.identify.estimators.robust import Robust, reweighted
from veridyn.identify.fitting import coloured, fit_of
from veridyn.identify.observation import Stream
from veridyn.identify.result import Acceptance, Fit, RowReport
from veridyn.model.tree import Rows, Tree

Array = NDArray[np.float64]


def robust_fit(
    samples: Stream,
    start: Solution,
    how: Robust,
    sigma: Mapping[str, float] | None,
    hac: Hac | None,
    acceptance: Acceptance,
) -> Fit:
    found = reweighted(samples, start, how, sigma)
    plain = sandwich(samples, found.solution, how)
    solution = replace(found.solution, sigma=plain.residual_sigma)
    worst = max(found.doubted, key=lambda row: found.doubted[row])
    notes = [
        f"{how.loss} weights with c = {how.c:g}, {found.iterations} iterations"
        + ("" if found.converged else ", NOT CONVERGED"),
        f"equations that count less than half: up to {100 * found.doubted[worst]:.2g} % (row '{worst}')",
    ]
    fit = fit_of(samples.plan.tree, solution, "robust", acceptance)
    fit = replace(fit, covariance=plain.covariance, notes=(*fit.notes, *notes))
    return fit if hac is None else coloured(fit, sandwich(samples, found.solution, how, hac), fit.sigma)


def instrumental_fit(
    samples: Stream,
    start: Solution,
    how: Instrumental,
    sigma: Mapping[str, float] | None,
    hac: Hac | None,
    acceptance: Acceptance,
) -> Fit:
    tree = samples.plan.tree
    plain = fit_of(tree, start, "iv", acceptance)
    found = instrumental(samples, start, lambda x: replace(plain, values=x).standard, how, sigma, hac)
    fit = fit_of(tree, found.solution, "iv", acceptance)
    source = "simulated in closed loop" if how.law is not None else "along the reference"
    source = "along the measured motion" if how.reference == "measured" else source
    state = "" if found.converged else ", NOT CONVERGED"
    notes = [f"instruments {source}, {found.iterations} iterations{state}; least correlation {found.weakest:.3f}"]
    if hac is not None:
        notes.append(f"deviations allow for residuals that remember {found.lags} samples")
    return replace(fit, covariance=found.covariance, notes=(*fit.notes, *notes))


def all_joints(tree: Tree, rows: Rows) -> None:
    if tree.select_rows(rows) != tree.select_rows("all"):
        raise IdentificationError(
            Fault("a simulation needs every row of the machine.", where="output_error", expected="rows='all'")
        )


def output_error_fit(
    samples: Stream,
    start: Solution,
    how: OutputError,
    sigma: Mapping[str, float] | None,
    hac: Hac | None,
    acceptance: Acceptance,
) -> Fit:
    """Groups and, unless the tree's own values are asked for, the start from least squares on the same samples."""
    tree, plain = samples.plan.tree, fit_of(samples.plan.tree, start, "oe", acceptance)
    first = plain.values
    if how.start == "tree":
        first = plain.priors
        if not np.isfinite(first).all():
            named = ", ".join(n for n, v in zip(plain.names, first, strict=True) if not np.isfinite(v))
            raise IdentificationError(
                Fault(
                    f"the tree has no values to start from: {named}.", where="output_error.start", hint="start='data'"
                )
            )

    def values_of(x: Array) -> Array:
        return replace(plain, values=x).standard

    found = output_error(tree, samples.motions, first, values_of, how, sigma, hac, samples.progress)
    reports = tuple(
        RowReport(name, found.samples, float(rms), float(size), float(s))
        for name, rms, size, s in zip(tree.coordinates, found.rms, found.measured, found.output_sigma, strict=True)
    )
    what = "coordinates simulated under the measured forces" if how.law is None else "forces simulated in closed loop"
    notes = [
        f"rows compare {what}, {found.runs} run(s) of {found.samples // found.runs} samples; {found.iterations} iterations"
    ]
    if hac is not None:
        notes.append(f"deviations allow for residuals that remember {found.lags} samples within a run")
    return replace(
        plain,
        values=found.values,
        covariance=found.covariance,
        rows=reports,
        residual_sigma=found.residual_sigma,
        condition=float(np.linalg.cond(found.triangle)),
        condition_scaled=float(np.linalg.cond(found.triangle * tree.parameters.typical[list(start.columns)])),
        notes=(*plain.notes, *notes),
    )
