"""How far to trust a drawing: a good one is trusted, a bad one is not, and nothing is chosen on what it will be judged by."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import clean, drawn, noisy, truth
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.coloured import Hac
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.trust import slow_and_fast, trust_prior
from veridyn.identify.validate import validate


def short(seed=0):
    """2.5 s with three times the noise: little to learn from."""
    return noisy(np.random.default_rng(seed), clean(250), 3.0)


def test_a_good_drawing_is_trusted_and_a_bad_one_is_not():
    tried = clean(400, 7)
    good, bad = (trust_prior(drawn(0, share), short(), Prior(), tried) for share in (0.02, 0.9))
    print(good.summary(), bad.summary(), sep="\n")
    assert good.scale < bad.scale
    assert min(good.errors) < 0.5 * good.plain
    assert good.settings == Prior(relative=good.scale, groups=good.groups)
    assert set(good.groups) == {"inertia", "mass", "friction"}
    last = min(list(good.curves.values())[-1])
    fit = identify(drawn(0, 0.02), short(), good.settings)
    assert validate(fit, tried).relative_error == pytest.approx(last, rel=1e-9) and last <= min(good.errors) + 1e-12


def test_errors_are_those_of_whole_identifications():
    found = trust_prior(drawn(), short(), Prior(), clean(400, 7), scales=(0.3, 0.03))
    assert found.scales == (0.03, 0.3)
    for scale, error in zip(found.scales, found.errors, strict=True):
        fit = identify(drawn(), short(), Prior(relative=scale))
        assert validate(fit, clean(400, 7)).relative_error == pytest.approx(error, rel=1e-9)
    assert validate(identify(drawn(), short()), clean(400, 7)).relative_error == pytest.approx(found.plain, rel=1e-9)


def test_without_samples_to_try_on_the_faster_half_is_held_back():
    motion = short()
    slow, fast = slow_and_fast(motion)
    assert len(slow[0]) + len(fast[0]) == len(motion)
    assert np.linalg.norm(slow[0].qd, axis=1).max() <= np.linalg.norm(fast[0].qd, axis=1).min()
    a = trust_prior(drawn(), motion, Prior(), scales=(0.1, 1.0))
    b = trust_prior(drawn(), slow, Prior(), fast, scales=(0.1, 1.0))
    assert a.errors == b.errors


def test_constraints_with_a_prior_keep_their_other_settings():
    pytest.importorskip("cvxpy")
    how = Consistent(Prior(), metric="entropic", margin=1e-5)
    found = trust_prior(drawn(), short(), how, clean(400, 7), scales=(0.03, 0.3))
    assert found.settings.metric == "entropic" and found.settings.margin == 1e-5
    assert found.settings.prior.relative == found.scale
    assert set(found.groups) == {"friction"}  # bodies have one scale in this metric
    assert "note: the least error is at the end" in found.summary()


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(IdentificationError, match=r"scales: each must be positive[\s\S]*there is no prior to scale"):
        trust_prior(drawn(), short(), Consistent(), scales=(0.0,))
    with pytest.raises(DataError, match="there is nothing to cut"):
        slow_and_fast([], 0.5)
    with pytest.raises(IdentificationError, match="a prior needs values"):
        trust_prior(truth().with_parameters(np.full(len(truth().parameters), np.nan)), short(), Prior())


def test_groups_that_a_drawing_knows_differently_well_get_scales_of_their_own():
    """Inertias and masses within 1 %, friction wrong by a factor of two: bodies are trusted, friction is not."""
    tree = drawn(3, 0.01)
    wrong = {e.parameter_name: 2.0 * tree.parameters[e.parameter_name] for e in tree.elements}
    found = trust_prior(tree.with_parameters(tree.parameters.replacing(wrong)), short(), Prior(), clean(400, 7))
    print(found.summary())
    assert found.groups["friction"] >= 10.0 * found.groups["inertia"]
    assert min(found.curves["friction"]) < 0.8 * min(found.errors)


def test_autocorrelated_residuals_are_tried_as_they_are_fitted():
    """Errors are those of whole identifications with covariance="hac", and data that weigh less ask for no smaller a scale."""
    log, tried = noisy(np.random.default_rng(0), clean(1000), memory=0.9), clean(400, 7)
    found = trust_prior(drawn(), log, Prior(), tried, scales=(0.03, 0.3), covariance=Hac(20))
    for scale, error in zip(found.scales, found.errors, strict=True):
        fit = identify(drawn(), log, Prior(relative=scale), covariance=Hac(20))
        assert validate(fit, tried).relative_error == pytest.approx(error, rel=1e-9)
