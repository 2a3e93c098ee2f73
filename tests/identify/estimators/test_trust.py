"""How far to trust a drawing: a good one is trusted, a bad one is not, and nothing is chosen on what it will be judged by."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from benchmarks.calibration_cases import NOISE, drawing, drawn_from, moved, path
from benchmarks.calibration_cases import noisy as noisy_case

from identify.smooth_arm import clean, drawn, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators import trust
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.estimators.trust import (
    PRIOR_SCALES,
    by_position,
    calibrate_prior,
    slow_and_fast,
    trust_prior,
    unseen_motion,
)
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.identify.validate import validate
from veridyn.model.motion import Motion


def short(seed=0):
    """2.5 s with three times the noise: little to learn from."""
    return noisy(np.random.default_rng(seed), clean(250), 3.0)


def test_a_good_drawing_is_trusted_and_a_bad_one_is_not():
    tried = clean(400, 7)
    good, bad = (trust_prior(drawn(0, share), short(), Prior(), tried) for share in (0.02, 0.9))
    print(good.summary(), bad.summary(), sep="\n")
    assert good.scale < bad.scale
    assert min(good.errors) < 0.5 * good.plain
    assert good.method == Prior(relative=good.scale, groups=good.groups)
    assert set(good.groups) == {"inertia", "mass", "friction"}
    last = min(list(good.curves.values())[-1])
    fit = identify(drawn(0, 0.02), short(), good.method)
    assert validate(fit, tried).relative_error == pytest.approx(last, rel=1e-9) and last <= min(good.errors) + 1e-12


def test_errors_are_those_of_whole_identifications():
    found = trust_prior(drawn(), short(), Prior(), clean(400, 7), scales=(0.3, 0.03))
    assert found.scales == (0.03, 0.3)
    for scale, error in zip(found.scales, found.errors, strict=True):
        fit = identify(drawn(), short(), Prior(relative=scale))
        assert validate(fit, clean(400, 7)).relative_error == pytest.approx(error, rel=1e-9)
    assert validate(identify(drawn(), short()), clean(400, 7)).relative_error == pytest.approx(found.plain, rel=1e-9)


def test_without_samples_to_try_on_other_positions_and_the_faster_half_are_held_back():
    """The errors are root mean squares of those of five trials, none of which is fitted on what it is tried on."""
    motion = short()
    splits = unseen_motion(motion)
    assert len(splits) == 5
    a = trust_prior(drawn(), motion, Prior(), scales=(0.1, 1.0))
    own = np.array([trust_prior(drawn(), f, Prior(), h, scales=(0.1, 1.0)).errors for f, h in splits.values()])
    assert a.errors == pytest.approx(np.sqrt((own**2).mean(axis=0)), rel=1e-12)
    assert list(a.held_out) == list(splits) and "held out, faster half" in a.summary()
    chosen = [validate(identify(drawn(), f, a.method), h).relative_error for f, h in splits.values()]
    assert list(a.held_out.values()) == pytest.approx(chosen, rel=1e-9)


def test_scales_of_groups_are_those_beside_the_others():
    """Neither another scale of one group alone nor the next ones of two together do better; chosen one after the other from one scale for
    all, friction hid the errors of bodies."""
    machine, scales = drawn(1, 0.5), (0.01, 0.1, 1.0)
    found = trust_prior(machine, short(2), Prior(), clean(400, 7), scales=scales)
    error = validate(identify(machine, short(2), found.method), clean(400, 7)).relative_error
    assert found.held_out["tried"] == pytest.approx(error, rel=1e-9)
    at = {name: scales.index(scale) for name, scale in found.groups.items()}
    moved = [{name: k} for name in at for k in range(3)]
    for a, b in combinations(at, 2):
        moved += [{a: at[a] + i, b: at[b] + j} for i, j in product((-1, 1), repeat=2)]
    for places in moved:
        if all(0 <= k < len(scales) for k in places.values()):
            other = Prior(relative=found.scale, groups={**found.groups, **{n: scales[k] for n, k in places.items()}})
            fit = identify(machine, short(2), other)
            assert validate(fit, clean(400, 7)).relative_error >= error * (1.0 - 1e-9)


def test_two_scales_move_together():
    """Each of two by one step, up or down, as far as there are scales."""
    order, groups = (0.01, 0.03, 0.1, 0.3), {"inertia": 0.03, "friction": 0.1, "mass": 0.01}
    found = list(trust._two_moved(groups, ["inertia", "friction"], order))  # pyright: ignore[reportPrivateUsage]
    assert found == [{"inertia": i, "friction": f} for i, f in product((0.01, 0.1), (0.03, 0.3))]
    edges = list(trust._two_moved(groups, list(groups), order))  # pyright: ignore[reportPrivateUsage]
    assert len(edges) == 4 + 2 + 2 and all(x.get("mass", 0.03) == 0.03 for x in edges)


def test_constrained_fits_are_tried_with_their_constraints():
    """Groups were chosen by fits without constraints, which predict unseen motion otherwise."""
    pytest.importorskip("cvxpy")
    how, tried = Consistent(Prior(), metric="entropic"), clean(400, 7)
    found = trust_prior(drawn(), short(), how, tried, scales=(0.03, 0.3))
    fit = identify(drawn(), short(), found.method)
    assert validate(fit, tried).relative_error == pytest.approx(found.held_out["tried"], rel=1e-6)


def test_constraints_with_a_prior_keep_their_other_settings():
    pytest.importorskip("cvxpy")
    how = Consistent(Prior(), metric="entropic", margin=1e-5)
    found = trust_prior(drawn(), short(), how, clean(400, 7), scales=(0.03, 0.3))
    assert found.method.metric == "entropic" and found.method.margin == 1e-5
    assert found.method.prior.relative == found.scale
    assert set(found.groups) == {"inertia", "friction"}  # bodies have one scale in this metric
    assert "note: the chosen scale is at the end" in found.summary()


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(IdentificationError, match=r"scales: each must be positive[\s\S]*there is no prior to scale"):
        trust_prior(drawn(), short(), Consistent(), scales=(0.0,))
    with pytest.raises(IdentificationError, match="a prior needs values"):
        trust_prior(truth().with_parameters(np.full(len(truth().parameters), np.nan)), short(), Prior())


def test_groups_that_a_drawing_knows_differently_well_get_scales_of_their_own():
    """Inertias and masses within 1 %, friction wrong by a factor of two: bodies are trusted, friction is not."""
    machine = drawn(3, 0.01)
    wrong = {e.parameter_name: 2.0 * machine.parameters[e.parameter_name] for e in machine.elements}
    found = trust_prior(machine.with_parameters(machine.parameters.replacing(wrong)), short(), Prior(), clean(400, 7))
    print(found.summary())
    assert found.groups["friction"] >= 10.0 * found.groups["inertia"]
    assert found.held_out["tried"] < 0.8 * min(found.errors)


def test_autocorrelated_residuals_are_tried_as_they_are_fitted():
    """Errors are those of whole identifications with covariance="hac", and data that weigh less ask for no smaller a scale."""
    log, tried = noisy(np.random.default_rng(0), clean(1000), memory=0.9), clean(400, 7)
    found = trust_prior(drawn(), log, Prior(), tried, scales=(0.03, 0.3), settings=IdentifySettings(covariance=Hac(20)))
    for scale, error in zip(found.scales, found.errors, strict=True):
        fit = identify(drawn(), log, Prior(relative=scale), settings=IdentifySettings(covariance=Hac(20)))
        assert validate(fit, tried).relative_error == pytest.approx(error, rel=1e-9)


def ellipse(turns: int, samples: int = 400) -> Motion:
    """Positions of three joints round an ellipse: one leads, two follow a quarter of a period later."""
    t = 0.01 * np.arange(samples)
    a = 2.0 * np.pi * turns * np.arange(samples) / samples
    q = np.column_stack([np.cos(a), 0.5 * np.sin(a), 0.2 * np.sin(a)])
    w = 2.0 * np.pi * turns / (0.01 * samples)
    qd = w * np.column_stack([-np.sin(a), 0.5 * np.cos(a), 0.2 * np.cos(a)])
    return Motion(t, q, qd, -(w**2) * q)


def test_speed_cuts_into_halves() -> None:
    motion = ellipse(1)
    slow, fast = slow_and_fast(motion)
    assert len(slow[0]) + len(fast[0]) == len(motion)
    assert np.linalg.norm(slow[0].qd, axis=1).max() <= np.linalg.norm(fast[0].qd, axis=1).min()


def test_positions_cut_into_quarters_and_repeats_stay_together() -> None:
    """Quarters of an ellipse, one of two turns and one of one: a position belongs to one quarter, whichever turn and motion it is of."""
    motions = [ellipse(2), ellipse(1)]
    splits = by_position(motions)
    assert len(splits) == 4
    total = sum(len(m) for m in motions)
    for fitted, held in splits:
        assert sum(len(m) for m in (*fitted, *held)) == total
        assert sum(len(m) for m in held) == pytest.approx(total / 4, abs=total / 40)
        kept, out = (np.concatenate([m.q for m in part]) for part in (fitted, held))
        angle = np.unwrap(np.sort(np.arctan2(out[:, 1] / 0.5, out[:, 0])))
        assert np.sort(np.diff(angle))[-2] < 0.1  # one stretch of the ellipse, and the gap to its other end
        apart = np.linalg.norm(out[:, None] - kept[None], axis=2).min(axis=1)
        assert np.mean(apart < 0.01) < 0.05  # but for the ends, nothing of it is fitted


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(DataError, match="there is nothing to cut"):
        slow_and_fast([], 0.5)
    with pytest.raises(DataError, match="there is nothing to cut"):
        by_position([])
    assert len(unseen_motion(ellipse(1))) == 5


@pytest.mark.parametrize(
    "spread", [0.03, pytest.param(0.1, marks=pytest.mark.slow)]
)  # the second says that the scale follows
def test_the_scale_is_that_of_the_drawings_errors(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Geometric mean over eight machines, each wrong by `spread` of its sizes; some twenty inertias give each scale to 1/√40, so within
    four standard errors of the mean and half a step of the grid."""
    monkeypatch.setattr("benchmarks.calibration_cases.SPREAD", spread)
    found = []
    for k in range(8):
        rng = np.random.default_rng([3, k])
        truth = drawn_from(drawing(), rng)
        found.append(calibrate_prior(drawing(), noisy_case(rng, moved(truth, path(rng), 800), NOISE)).groups["inertia"])
    mean = float(np.exp(np.mean(np.log(found))))
    step = 0.5 * np.log(PRIOR_SCALES[1] / PRIOR_SCALES[0])
    assert abs(np.log(mean / spread)) < 4.0 / np.sqrt(40.0 * 8.0) + step


def test_its_curve_is_least_at_the_scale_and_named_deviations_stay() -> None:
    rng = np.random.default_rng(4)
    log = noisy_case(rng, moved(drawn_from(drawing(), rng), path(rng), 800), NOISE)
    found = calibrate_prior(drawing(), log, Prior(sigma={"M3": 0.2}))
    assert set(found.groups) == {"inertia", "mass", "friction"} == set(found.curves)
    for group, curve in found.curves.items():
        assert min(curve) == 0.0 and PRIOR_SCALES[curve.index(0.0)] == found.groups[group]
    names = [drawing().parameters.names[k] for k in drawing().parameters.select("estimated")]
    assert prior_moments(drawing(), found.prior)[1][names.index("M3")] == 0.2


def test_the_likelihood_is_that_of_a_normal_sample() -> None:
    """_cost against the density of SciPy, up to a constant that no scale changes."""
    from scipy.stats import multivariate_normal

    from veridyn.identify.estimator import base_of
    from veridyn.identify.estimators.least_squares import solve
    from veridyn.identify.regression.observation import observation

    rng = np.random.default_rng(5)
    machine = drawing()
    s = solve(observation(machine, noisy_case(rng, moved(drawn_from(machine, rng), path(rng), 400), NOISE)))
    K = base_of(s).matrix[:, list(machine.parameters.select("estimated"))]
    both = []
    for scale in (0.02, 0.2):
        groups = dict.fromkeys(("inertia", "mass", "friction"), scale)
        mean, sigma = prior_moments(machine, Prior(groups=groups))
        cov = s.covariance / s.sigma**2 + K @ np.diag(sigma**2) @ K.T
        exact = -2.0 * multivariate_normal(K @ mean, cov).logpdf(s.values)
        both.append(trust._cost(machine, Prior(), groups, s, K) - exact)  # pyright: ignore[reportPrivateUsage]
    assert both[0] == pytest.approx(both[1], rel=1e-6)


def test_nothing_to_compare_with_is_refused() -> None:
    machine = drawing()
    named = {machine.parameters.names[k]: 1.0 for k in machine.parameters.select("estimated")}
    rng = np.random.default_rng(6)
    log = noisy_case(rng, moved(machine, path(rng), 400), NOISE)
    with pytest.raises(IdentificationError, match="how wrong it is"):
        calibrate_prior(machine, log, Prior(sigma=named))
