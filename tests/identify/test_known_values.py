"""Known values with an uncertainty: their part of the deviations against refits, and against how estimates really scatter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, noisy, truth
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.known_values import uncertain
from veridyn.identify.settings import IdentifySettings
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty

KNOWN = ("M4", "MZ4", "h_q1")
SIGMA = np.array([0.02, 0.003, 0.1])
CORRELATED = np.diag(SIGMA) @ np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]) @ np.diag(SIGMA)


def stated(values: dict[str, float] | None = None) -> Machine:
    """The arm with three parameters known to within their covariance."""
    machine = truth()
    known = machine.parameters.known(values or list(KNOWN))
    return replace(machine.with_parameters(known), uncertainty=Uncertainty(KNOWN, CORRELATED))


@pytest.mark.parametrize("method", ["wls", "ols", "robust", Prior()])
def test_the_sensitivity_is_that_of_refits_with_other_values(method: object) -> None:
    """Estimates move by J times a change of what is known: exactly for linear ones, to first order of a small change for "robust"."""
    log = noisy(np.random.default_rng(0))
    sigma = dict(
        zip(truth().coordinates, (0.6, 0.6, 0.2, 0.05), strict=True)
    )  # so that weights do not move with the residuals
    fit = identify(stated(), log, method, settings=IdentifySettings(sigma=sigma))
    assert fit.known is not None and fit.known.names == KNOWN
    own = [truth().parameters[n] for n in KNOWN]
    for k, name in enumerate(KNOWN):
        moved = dict(zip(KNOWN, own, strict=True))
        moved[name] += SIGMA[k]
        other = identify(stated(moved), log, method, settings=IdentifySettings(sigma=sigma))
        change = fit.known.sensitivity[:, k] * SIGMA[k]
        near = 0.05 if method == "robust" else 1e-5
        assert np.abs((other.values - fit.values - change) / fit.sigma).max() < near


def test_the_parts_add_up_and_are_named() -> None:
    log = noisy(np.random.default_rng(0))
    fit = identify(stated(), log)
    exact = identify(truth().with_parameters(truth().parameters.known(KNOWN)), log)
    assert fit.values == pytest.approx(exact.values, rel=1e-12) and exact.known is None
    assert fit.budget["noise"] == pytest.approx(exact.sigma, rel=1e-9)
    assert fit.sigma == pytest.approx(np.hypot(fit.budget["noise"], fit.budget["known values"]))
    assert not exact.budget["known values"].any()
    assert any("known values are not exact (3 of them)" in note for note in fit.notes)
    given = Uncertainty(("M4", "M3"), np.diag([1.0, 1.0]))
    left = uncertain(truth().parameters.known(["M4"]), given)
    assert left is not None and left.names == ("M4",) and uncertain(truth().parameters, given) is None


@pytest.mark.parametrize("machines", [36, pytest.param(100, marks=pytest.mark.slow)])
def test_deviations_hold_where_what_is_known_is_off_by_its_own(machines: int) -> None:
    """Machines whose assumed values are off, drawn from the stated covariance: z² has mean 1, and > 2 without it."""
    rng = np.random.default_rng(3)
    own = np.array([truth().parameters[n] for n in KNOWN])
    scores: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(machines):
        believed = dict(zip(KNOWN, own + rng.multivariate_normal(np.zeros(3), CORRELATED), strict=True))
        fit = identify(
            stated(believed), noisy(rng, clean(600)), settings=IdentifySettings(engine="compiled"), diagnose="off"
        )
        off = fit.values - fit.base.reduce(truth().parameters.values)
        scores["with"] += list((off / fit.sigma) ** 2)
        scores["without"] += list((off / fit.budget["noise"]) ** 2)
    means = {name: float(np.mean(z2)) for name, z2 in scores.items()}
    print(means)
    assert means["with"] == pytest.approx(1.0, abs=1.5 / np.sqrt(machines)) and means["without"] > 2.0


def test_the_machine_of_a_fit_and_a_saved_fit_keep_both(tmp_path: Path) -> None:
    fit = identify(stated(), noisy(np.random.default_rng(0)))
    back = vd.load(vd.save(fit, tmp_path / "fit.json"))
    assert back.known is not None and fit.known is not None
    assert np.array_equal(back.known.sensitivity, fit.known.sensitivity) and back.known.names == KNOWN
    machine = replace(fit, described=fit.described).machine(unexcited=0.1)
    assert machine.uncertainty is not None and set(KNOWN) <= set(machine.uncertainty.names)
    at = [machine.uncertainty.names.index(n) for n in KNOWN]
    assert machine.uncertainty.covariance[np.ix_(at, at)] == pytest.approx(CORRELATED)
    lead = machine.uncertainty.names.index(fit.described.parameters.names[fit.base.columns[0]])
    assert machine.uncertainty.covariance[at, lead] == pytest.approx(fit.known.cross[:, 0])
