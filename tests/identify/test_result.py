"""What a fit says of itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from strangers.random_trees import random_inertia, random_motion
from veridyn.errors import DataError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.result import Estimate, Feasibility, Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, TWO_SIGMA_BELOW_TEN, Acceptance
from veridyn.inference.error_measures import RowReport
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH


@cache
def arm() -> Machine:
    rng = np.random.default_rng(3)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.2))]
    return Machine.of_bodies(
        bodies, name="arm", inertia={b.name: random_inertia(rng) for b in bodies}, elements=[coulomb("q2", 0.5)]
    )


@cache
def log(seed: int = 0) -> Motion:
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, arm(), 80, wrenches=False)
    return replace(motion, forces=inverse_dynamics(arm(), motion) + 0.2 * rng.normal(size=(80, 2)))


@cache
def fitted() -> Fit:
    return identify(arm(), log())


def test_sigma_and_correlation_come_from_the_covariance() -> None:
    fit = fitted()
    assert fit.sigma**2 == pytest.approx(np.diag(fit.covariance))
    assert np.diag(fit.correlation) == pytest.approx(np.ones(len(fit.values)))
    assert np.abs(fit.correlation).max() <= 1.0 + 1e-12
    assert fit.relative_sigma == pytest.approx(100.0 * fit.sigma / np.abs(fit.values))


def test_an_estimate_by_name() -> None:
    fit = fitted()
    for k, name in enumerate(fit.names):
        assert fit[name] == Estimate(name, fit.values[k], fit.sigma[k], fit.units[k])
    assert list(fit) == list(fit.names) and "fs_q2" in fit and "XX9" not in fit
    assert str(Estimate("fs_q2", 0.51234, 0.0213, "N*m")) == "fs_q2: 0.51234 ± 0.021 N*m"


def test_a_parameter_without_an_estimate_of_its_own_is_refused_with_the_reason() -> None:
    """Joint 1 turns about a fixed axis, so of body 1 only ZZ acts, together with inertias of body 2; its other ones have no effect."""
    machine = arm().with_parameters(arm().parameters.known(["fs_q2"]))
    fit = identify(machine, log())
    led = next(c for c in fit.base.columns if np.count_nonzero(fit.base.matrix[fit.base.columns.index(c)]) > 1)
    led_name = machine.parameters.names[led]
    for name, said in (
        ("fs_q22", r"fit of arm: there is no parameter 'fs_q22'\."),
        (fit.names[0].lower(), r"Known: .*"),
        ("fs_q2", r"'fs_q2' is known, and not estimated\.\nIts value is 0\.5 N\*m"),
        (led_name, rf"'{led_name}' is estimated together with others only\.\n.*{led_name}R = {led_name} "),
        ("XX1", r"'XX1' has no estimate\.\nIt has no effect in the motion of this fit"),
    ):
        with pytest.raises(DataError, match=said):
            fit[name]
    with pytest.raises(DataError, match=r"Did you mean 'ZZ1R'\?"):
        fit["ZZ1RR"]


def test_with_a_prior_every_estimated_parameter_has_an_estimate() -> None:
    fit = identify(arm(), log(), Prior())
    names = [arm().parameters.names[k] for k in arm().parameters.select("estimated")]
    assert set(names) <= set(fit) and fit.standard_covariance is not None
    k = arm().parameters.index("XX1")  # without effect: what is known is the prior
    assert fit["XX1"].value == fit.standard[k] and fit["XX1"].sigma ** 2 == pytest.approx(fit.standard_covariance[k, k])


def test_relative_sigma_of_zero_is_infinite() -> None:
    fit = replace(fitted(), values=np.zeros(len(fitted().values)))
    assert np.all(np.isinf(fit.relative_sigma)) and fit.well_identified() == ()


def test_both_rules_of_acceptance() -> None:
    """σ% < 10 and 2 σ% < 10: of deviations 3, 6 and 12 % the first passes two, the second one (paper 000, VII.A and IV.B)."""
    fit = fitted()
    count = len(fit.values)
    percent = np.array([3.0, 6.0, 12.0] + [50.0] * (count - 3))
    fit = replace(fit, values=np.ones(count), covariance=np.diag((percent / 100.0) ** 2))
    assert fit.well_identified() == fit.names[:2] == fit.well_identified(SIGMA_BELOW_TEN)
    assert fit.well_identified(TWO_SIGMA_BELOW_TEN) == fit.names[:1]
    assert fit.well_identified(Acceptance(percent=20.0)) == fit.names[:3]
    assert replace(fit, acceptance=TWO_SIGMA_BELOW_TEN).well_identified() == fit.names[:1]


def test_priors_are_combinations_of_the_trees_values() -> None:
    assert fitted().priors == pytest.approx(fitted().base.reduce(arm().parameters.values))
    unknown = arm().with_parameters(arm().parameters.replacing({"YY2": np.nan}))
    priors = replace(fitted(), described=unknown).priors
    touched = fitted().base.matrix[:, arm().parameters.index("YY2")] != 0
    assert touched.any() and np.isnan(priors[touched]).all() and np.isfinite(priors[~touched]).all()


@pytest.mark.parametrize("unknown", [False, True])
def test_standard_parameters_reproduce_the_fit(unknown: bool) -> None:
    """χ of the standard ones is the fit, and they predict the same forces; whether priors exist or not."""
    machine = arm().with_parameters(np.full(21, np.nan)) if unknown else arm()
    fit = identify(machine, log())
    phi = fit.standard
    assert fit.base.reduce(phi) == pytest.approx(fit.values, rel=1e-12)
    other = log(1)
    predicted = inverse_dynamics(fit.described.with_parameters(fit.standard), other)
    true = inverse_dynamics(arm(), other)
    assert np.sqrt(np.mean((predicted - true) ** 2)) < 0.2 * 0.6  # a fraction of the noise of one sample
    assert np.array_equal(fit.described.with_parameters(fit.standard).parameters.values, phi)


def test_members_of_a_group_keep_their_priors() -> None:
    fit = fitted()
    leads = set(fit.base.columns)
    for k in range(21):
        if k not in leads:
            assert fit.standard[k] == arm().parameters.values[k]


def test_summary_is_a_table() -> None:
    fit = fitted()
    text = fit.summary()
    first = text.splitlines()[0]
    assert first.startswith(f"arm: {len(fit.values)} base parameters by weighted least squares, ")
    assert f"{len(fit.well_identified())} with 1 sigma% < 10" in first and "condition" in first
    for name, unit in zip(fit.names, fit.units, strict=True):
        line = next(x for x in text.splitlines() if x.startswith(f"{name} "))
        assert unit in line and line.endswith("*") == (name not in fit.well_identified())
    for row in fit.rows:
        assert any(line.startswith(row.row) for line in text.splitlines())
    assert all(note in text for note in fit.notes)


def test_summary_without_priors_shows_a_dash() -> None:
    text = identify(arm().with_parameters(np.full(21, np.nan)), log()).summary()
    assert "–" in text


def test_summary_names_what_was_removed() -> None:
    assert "removed as inessential: fs_q2" in replace(fitted(), removed=("fs_q2",)).summary()


def test_row_reports() -> None:
    rows = {r.row: r for r in fitted().rows}
    assert rows["q1"].samples == 80 and rows["q1"].rms == pytest.approx(0.2, rel=0.3)
    assert rows["q1"].relative_error == pytest.approx(rows["q1"].rms / rows["q1"].measured_rms)
    assert rows["q1"].sigma >= rows["q1"].rms * 0.9
    assert np.isnan(RowReport("fx", 10, 0.0, 0.0).relative_error)


def test_standard_parameters_that_were_decided_are_kept() -> None:
    """`standard` starts from what the estimator decided, not from the tree, and still reproduces the values."""
    decided = 1.1 * arm().parameters.values
    fit = replace(fitted(), standard_values=decided)
    fit = replace(fit, values=fit.base.reduce(decided))
    assert fit.standard == pytest.approx(decided)
    moved = replace(fit, values=2.0 * fit.values)
    assert moved.base.reduce(moved.standard) == pytest.approx(moved.values)
    assert fitted().standard_values is None and fitted().prior_share is None


def test_feasibility_speaks() -> None:
    found = Feasibility({"1": 1e-3, "2": 2e-4}, 1.25, ("2",), ("2", "fs_q2"))
    fit = replace(fitted(), feasibility=found)
    assert found.feasible and not Feasibility({"1": -1e-9}, 0.0).feasible
    for part in ("residual 1.25 % above", "1 0.001, 2 0.0002", "at a bound: 2", "would break: 2, fs_q2"):
        assert part in fit.summary()
    assert "physically" not in fitted().summary()


def test_a_deviation_that_is_not_to_be_had() -> None:
    """NaN in the covariance: not well identified, and shown as such."""
    covariance = fitted().covariance.copy()
    covariance[0] = covariance[:, 0] = np.nan
    fit = replace(fitted(), covariance=covariance)
    assert fit.names[0] not in fit.well_identified(Acceptance(1e9)) and np.isnan(fit.relative_sigma[0])
    assert "nan" in fit.summary().splitlines()[2]
