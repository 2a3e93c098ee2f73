"""Draws of a fit: physical, of the right spread, and covering the truth as often as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.identify.drives.demo_leg import fitted_leg

from identify.smooth_arm import NOISE, clean, drawn, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.draws import _gaussian, _Physical, _rejection, _slice, _start, physical_sets
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.feasible_set import POSITIVE
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, broken_law, pseudo_inertia

Array = NDArray[np.float64]


def assert_physical(machine: Machine, sets: Array) -> None:
    """Each body by the laws themselves, not by the kernel that drew it."""
    for phi in sets:
        for k, (body, number) in enumerate(machine.columns):
            if body and number == 0:
                assert broken_law(phi[k : k + 10], tolerance=0.0) is None
            elif not body and machine.elements[number].kind in POSITIVE:
                assert phi[k] >= 0.0


def machine_of_prior(prior: Prior, rng: np.random.Generator) -> Array:
    """Parameters of a physical machine drawn from a prior: rejected body by body, as bodies are independent in it."""
    machine = truth()
    mean, deviation = prior_moments(machine, prior)
    phi = mean.copy()
    for k, (body, number) in enumerate(machine.columns):
        if body and number == 0:
            at = slice(k, k + 10)
            while True:
                phi[at] = mean[at] + deviation[at] * rng.standard_normal(10)
                if np.linalg.eigvalsh(pseudo_inertia(phi[at]))[0] > 0.0:
                    break
        elif not body:
            while (x := mean[k] + deviation[k] * rng.standard_normal()) < 0.0:
                pass
            phi[k] = x
    return phi


def coverage(fits: int, draws: int, seed: int) -> tuple[float, int]:
    """The share of parameters whose truth lies between the 5 % and 95 % quantiles of the draws, and how many there were."""
    prior, motion = Prior(relative=0.2), clean()
    W = regressor(truth(), motion)
    hits: list[Array] = []
    for k in range(fits):
        rng = np.random.default_rng([seed, k])
        phi = machine_of_prior(prior, rng)
        measured = W @ phi + NOISE * rng.standard_normal((len(motion), len(NOISE)))
        # One diagnosis in a hundred warns where nothing is wrong; coverage does not depend on it.
        sets = identify(truth(), replace(motion, forces=measured), prior).draws(draws, rng)
        assert_physical(truth(), sets[:20])
        low, high = np.quantile(sets, [0.05, 0.95], axis=0)
        hits.append((low <= phi) & (phi <= high))
    return float(np.mean(hits)), int(np.size(hits))


def test_few_fits_cover_as_they_say() -> None:
    """Six fits of 48 parameters: parameters of one fit are correlated, so the share is known to about 0.04."""
    share, _ = coverage(6, 200, seed=31)
    assert 0.78 < share < 0.98


@pytest.mark.slow
def test_two_hundred_fits_cover_ninety_per_cent() -> None:
    share, count = coverage(200, 1000, seed=32)
    assert count == 9600
    assert 0.88 <= share <= 0.92


def test_kernel_and_eigenvalues_agree() -> None:
    x = 0.5 * np.random.default_rng(0).standard_normal((4000, 10)) + [2, 0, 0, 2, 0, 2, 0, 0, 0, 1]
    wanted = [np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0 for ten in x]
    none = np.zeros((0, 1), dtype=np.int64)
    assert physical_sets(x, np.zeros(1, dtype=np.int64), none).tolist() == wanted and 0.1 < np.mean(wanted) < 0.9


def test_friction_that_is_less_at_standstill_can_be_drawn() -> None:
    """A fit of drives whose Stribeck term is negative, as friction="auto" may find: dry friction of every draw resists as it acts."""
    fit = fitted_leg()
    p = fit.described.parameters
    values, C = fit.standard.copy(), np.zeros((len(p), len(p)))
    at = [p.index(name) for name in fit.names]
    C[np.ix_(at, at)] = fit.covariance
    for joint, x in (("thigh", -0.1), ("calf", 0.05)):
        k = p.index(f"fst_{joint}")
        values[k], C[k], C[:, k], C[k, k] = x, 0.0, 0.0, 0.3**2  # wide, so that bounds decide
    both = replace(fit, standard_values=values, standard_covariance=C)
    sets = both.draws(300, np.random.default_rng(3))
    for joint in ("thigh", "calf"):
        sliding, standing = sets[:, p.index(f"fs_{joint}")], sets[:, p.index(f"fst_{joint}")]
        assert (sliding >= 0.0).all() and (sliding + standing >= 0.0).all() and (standing < 0.0).any()


def test_slice_sampling_has_the_distribution_of_rejection() -> None:
    """Two samplers of one truncated Gaussian: each parameter by Kolmogorov and Smirnov, at a level of 1 % over all of them."""
    fit = identify(drawn(), noisy(np.random.default_rng(1)), Prior(relative=0.1))
    mean, half = _gaussian(fit)
    physical = _Physical.of(fit, half)
    rng = np.random.default_rng(2)
    exact = _rejection(mean, half, physical, 600, rng)
    chains = _slice(mean, half, physical, _start(fit, mean, half, physical), 600, rng)
    p = [stats.ks_2samp(a, b).pvalue for a, b in zip(exact.T, chains.T, strict=True)]
    assert min(p) > 0.01 / len(p)


def test_draws_without_a_prior_vary_as_the_covariance_says() -> None:
    """Base parameters of the draws have the fit's mean and covariance, here far from every bound; others keep the tree's values."""
    fit = identify(truth(), noisy(np.random.default_rng(5), size=1e-3))
    sets = fit.draws(4000, np.random.default_rng(4))
    base = sets @ fit.base.matrix.T
    whitened = np.linalg.solve(np.linalg.cholesky(fit.covariance), (base - fit.values).T)
    count = len(fit.values)
    assert np.abs(whitened.mean(axis=1)).max() < 5.0 / np.sqrt(4000)
    assert np.abs(np.cov(whitened) - np.eye(count)).max() < 6.0 * np.sqrt(2.0 / 4000)
    kept = [k for k in range(len(fit.described.parameters)) if k not in fit.base.columns]
    assert np.array_equal(sets[:, kept], np.tile(fit.standard[kept], (4000, 1)))
    assert_physical(truth(), sets[:50])


def test_an_inconsistent_fit_has_consistent_draws() -> None:
    """Noise so large that least squares with a prior breaks the laws."""
    fit = identify(drawn(), noisy(np.random.default_rng(5), size=20.0), Prior(relative=1.0))
    assert any(broken_law(fit.standard[k : k + 10]) for k in range(0, 40, 10))
    sets = fit.draws(30, np.random.default_rng(6))
    assert_physical(truth(), sets)
    assert np.array_equal(sets, fit.draws(30, np.random.default_rng(6)))


def test_constraints_do_not_move_the_distribution() -> None:
    """The posterior of Consistent(prior) is the same one, so its draws have the same distribution as those of Prior."""
    pytest.importorskip("cvxpy")
    motion, prior = noisy(np.random.default_rng(7), size=3.0), Prior(relative=0.3)
    one, two = identify(drawn(), motion, prior), identify(drawn(), motion, Consistent(prior=prior))
    assert two.posterior_mean == pytest.approx(one.standard, rel=1e-6, abs=1e-9)
    a, b = one.draws(300, np.random.default_rng(8)), two.draws(300, np.random.default_rng(9))
    p = [stats.ks_2samp(x, y).pvalue for x, y in zip(a.T, b.T, strict=True)]
    assert min(p) > 0.01 / len(p)


def fitted() -> Fit:
    return identify(truth(), noisy(np.random.default_rng(10)))


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
def test_a_count_that_is_none_is_refused(n: object) -> None:
    with pytest.raises(DataError, match="at least 1"):
        fitted().draws(n, np.random.default_rng(0))  # type: ignore[arg-type]


def test_a_seed_in_place_of_a_generator_is_refused() -> None:
    with pytest.raises(DataError, match="random generator"):
        fitted().draws(1, 7)  # type: ignore[arg-type]


def test_what_nobody_knows_is_refused_by_name() -> None:
    unknown = truth().with_parameters(np.full(len(truth().parameters), np.nan))
    fit = identify(unknown, noisy(np.random.default_rng(11)))
    with pytest.raises(IdentificationError, match="the data do not determine XX1"):
        fit.draws(1, np.random.default_rng(0))
    plain = fitted()
    bound = replace(plain, covariance=np.full_like(plain.covariance, np.nan))
    with pytest.raises(IdentificationError, match="no deviation is known"):
        bound.draws(1, np.random.default_rng(0))


def test_a_body_that_is_known_wrongly_is_refused_by_name() -> None:
    """XX1 has no effect on any force of this arm, so nothing else would show it."""
    p = truth().parameters.replacing({"XX1": 9.0})
    known = p.known([tree_of(truth()).bodies[0].parameter(symbol) for symbol in INERTIAL])
    fit = identify(truth().with_parameters(known), noisy(np.random.default_rng(12)))
    with pytest.raises(IdentificationError, match=r"body '1': .*triangle inequality"):
        fit.draws(1, np.random.default_rng(0))
