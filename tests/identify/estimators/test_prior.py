"""A Gaussian prior: against Bayesian linear regression on the stored matrix, and at both ends of its weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.smooth_arm import NOISE, clean, drawn, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError
from veridyn.identify.estimators.coloured import sandwich
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.prior import Prior, group_of, prior_moments, sizes, unstated
from veridyn.identify.regression.observation import stream
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.identify.validate import validate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.elements.element import law, motor_inertia, offset, spring, stribeck
from veridyn.model.parameters import Tie

SIGMA = dict(zip(truth().coordinates, NOISE, strict=True))


def test_bayesian_linear_regression() -> None:
    """C = (WᵀW + S⁻¹)⁻¹, φ̂ = C (WᵀY + S⁻¹m), over all 48 standard parameters with W held whole; to 1e-6 of a deviation."""
    machine, motion = drawn(), noisy(np.random.default_rng(0))
    fit = identify(machine, motion, "map", settings=IdentifySettings(sigma=SIGMA))
    mean, deviation = prior_moments(machine, Prior())
    W = (regressor(machine, motion) / NOISE[:, None]).reshape(-1, len(mean))
    y = (motion.forces / NOISE).reshape(-1)
    C = np.linalg.inv(W.T @ W + np.diag(deviation**-2))
    phi = C @ (W.T @ y + mean / deviation**2)
    own = np.sqrt(np.diag(C))
    assert np.abs((fit.standard - phi) / own).max() < 1e-6
    assert fit.standard_covariance is not None
    assert np.abs(fit.standard_covariance - C).max() < 1e-6 * np.abs(C).max()
    assert np.sqrt(np.diag(fit.standard_covariance)) == pytest.approx(own, rel=1e-6)
    assert fit.prior_share == pytest.approx(own**2 / deviation**2, rel=1e-6)
    K = fit.base.matrix
    assert fit.values == pytest.approx(K @ phi, rel=1e-6, abs=1e-8)
    assert fit.sigma == pytest.approx(np.sqrt(np.diag(K @ C @ K.T)), rel=1e-5)


def test_a_flat_prior_is_no_prior() -> None:
    motion = noisy(np.random.default_rng(0))
    plain, flat = identify(drawn(), motion), identify(drawn(), motion, Prior(relative=1e5))
    assert np.abs((flat.values - plain.values) / plain.sigma).max() < 1e-4
    assert flat.sigma * plain.residual_sigma == pytest.approx(plain.sigma, rel=1e-4)


def test_a_sharp_prior_is_the_answer() -> None:
    machine = drawn()
    fit = identify(machine, noisy(np.random.default_rng(0)), Prior(relative=1e-7))
    assert fit.standard == pytest.approx(machine.parameters.values, rel=1e-4, abs=1e-8)
    assert fit.prior_share is not None and np.all(fit.prior_share > 0.99)


def test_values_and_deviations_by_name() -> None:
    prior = Prior({"M4": 0.5, "fs_q1": 2.0}, {"fs_q1": 1e-6})
    mean, deviation = prior_moments(truth(), prior)
    names = list(truth().parameters.names)
    assert mean[names.index("M4")] == 0.5 and deviation[names.index("M4")] == pytest.approx(0.15)
    assert mean[names.index("M3")] == 1.5
    fit = identify(truth(), noisy(np.random.default_rng(0)), prior)
    assert fit.standard[names.index("fs_q1")] == pytest.approx(2.0, abs=1e-4)


def test_sizes() -> None:
    x = np.array([0.1, 0.0, 0.0, 0.4, 0.0, 0.2, 0.0, 0.3, 0.0, 2.0])
    values = truth().parameters.values.copy()
    values[:10], values[40], values[41] = x, 0.0, -3.0
    found = sizes(truth(), values)
    assert found[:10] == pytest.approx([0.4] * 6 + [np.sqrt(0.8)] * 3 + [2.0])
    assert found[40] == truth().parameters.typical[40] and found[41] == 3.0


def test_what_only_the_prior_decides_is_named() -> None:
    """Body 1 turns about one axis: of its ten parameters the data know ZZ1 alone, and that with others."""
    fit = identify(drawn(), noisy(np.random.default_rng(0)), "map")
    note = next(n for n in fit.notes if n.startswith("from the prior alone: "))
    named = note.removeprefix("from the prior alone: ").split(", ")
    assert {"XX1", "XY1", "XZ1", "YY1", "YZ1", "MX1", "MY1", "MZ1", "M1"} <= set(named)
    assert not {"ZZ2", "MX2", "fs_q1", "h_q1"} & set(named)
    share = dict(zip(fit.described.parameters.names, fit.prior_share, strict=True))
    assert share["M1"] == pytest.approx(1.0) and share["fs_q1"] < 0.05
    assert any(n.startswith("the prior decides ") for n in fit.notes)
    assert fit.described.with_parameters(fit.standard).parameters["M1"] == pytest.approx(drawn().parameters["M1"])


def test_known_and_tied_parameters() -> None:
    """Known ones keep their value and have no deviation; tied ones follow."""
    p = drawn().parameters.known({"M4": 0.4}).tied({"h_q4": Tie("h_q3", 0.075)})
    fit = identify(drawn().with_parameters(p), noisy(np.random.default_rng(0)), "map")
    own = dict(zip(p.names, fit.standard, strict=True))
    assert own["M4"] == 0.4 and own["h_q4"] == pytest.approx(0.075 * own["h_q3"])
    deviation = np.sqrt(np.diag(fit.standard_covariance))
    assert deviation[p.index("M4")] == 0.0
    assert deviation[p.index("h_q4")] == pytest.approx(0.075 * deviation[p.index("h_q3")])
    assert np.isnan(fit.prior_share[[p.index("M4"), p.index("h_q4")]]).all()


def test_validation_uses_all_that_was_decided() -> None:
    """On a weak log a fair prior predicts another motion better than the data alone; relative error, 5 logs."""
    better = 0
    for seed in range(5):
        motion = noisy(np.random.default_rng(seed), clean(250), 3.0)
        with_prior, without = identify(drawn(seed), motion, "map"), identify(drawn(seed), motion)
        check = clean(400, 7)
        better += validate(with_prior, check).relative_error < validate(without, check).relative_error
    assert better == 5


def test_a_prior_without_values_is_refused() -> None:
    machine = truth().with_parameters(truth().parameters.replacing({"M3": np.nan, "XX2": np.nan}))
    with pytest.raises(IdentificationError, match=r"a prior needs values, and these parameters have none: XX2, M3"):
        identify(machine, clean(), "map")
    assert identify(machine, clean(), Prior({"M3": 1.5, "XX2": 0.1})).values.size == 30


def test_wrong_priors_are_refused_all_at_once() -> None:
    with pytest.raises(IdentificationError) as caught:
        Prior({"M9": 1.0, "M4": np.inf}, {"M3": -1.0}, relative=0.0)
    assert [f.where for f in caught.value.faults] == ["Prior.values.M4", "Prior.sigma.M3", "Prior.relative"]
    with pytest.raises(IdentificationError) as caught:
        identify(truth(), clean(), Prior({"M9": 1.0}, {"M8": 1.0}))
    assert [f.what for f in caught.value.faults] == [
        f"'{name}' is not an estimated parameter." for name in ("M9", "M8")
    ]


def test_autocorrelated_residuals_weigh_the_data_by_their_sandwich() -> None:
    """Deviations are those of this linear estimate under the sandwich C_h: a = G (χ̂ − K m) with G found by moving χ̂, against its own
    error covariance (I − G K) S (I − G K)ᵀ + G C_h Gᵀ, all by matrices of least squares with covariance="hac"."""
    machine, motion = drawn(), noisy(np.random.default_rng(0), memory=0.9)
    prior = Prior()
    fit = identify(machine, motion, prior, settings=IdentifySettings(covariance="hac"))
    samples = stream(machine, motion)
    s = solve(samples.observe())
    made = sandwich(samples, s, None, Hac())
    assert prior.fit_solution(machine, s, made=made).sigma == pytest.approx(fit.sigma, rel=1e-9)
    mean, deviation = prior_moments(machine, prior)
    K, step = fit.base.matrix, np.sqrt(np.diag(made.covariance))
    G = np.zeros((len(mean), len(s.values)))
    for k in range(len(s.values)):
        ends = []
        for sign in (1.0, -1.0):
            moved = s.values.copy()
            moved[k] += sign * step[k]
            ends.append(prior.fit_solution(machine, replace(s, values=moved), made=made).standard)
        G[:, k] = (ends[0] - ends[1]) / (2.0 * step[k])
    rest = np.eye(len(mean)) - G @ K
    C = rest @ np.diag(deviation**2) @ rest.T + G @ made.covariance @ G.T
    assert fit.standard_covariance is not None
    assert np.sqrt(np.diag(fit.standard_covariance)) == pytest.approx(np.sqrt(np.diag(C)), rel=1e-6)
    assert fit.sigma == pytest.approx(np.sqrt(np.diag(K @ C @ K.T)), rel=1e-6)
    assert any("deviations allow for residuals that remember" in note for note in fit.notes)


def test_with_a_prior_that_is_right_deviations_hold_for_autocorrelated_noise_too() -> None:
    """Machines drawn from the prior, noise with ρ = .9: z² has mean 1 by the sandwich, and more than 3 where noise is taken for white."""
    rng, prior = np.random.default_rng(5), Prior(relative=0.1)
    mean, deviation = prior_moments(truth(), prior)
    scores: dict[str, list[float]] = {"white": [], "hac": []}
    bare = clean(2000)
    for _ in range(20):
        machine = truth().with_parameters(mean + deviation * rng.normal(size=len(mean)))
        exact = replace(bare, forces=inverse_dynamics(machine, bare))
        log = noisy(rng, exact, memory=0.9)
        for word, found in scores.items():
            fit = identify(truth(), log, prior, settings=IdentifySettings(covariance=word, engine="compiled"))
            found += list(((fit.values - fit.base.reduce(machine.parameters.values)) / fit.sigma) ** 2)
    means = {word: float(np.mean(found)) for word, found in scores.items()}
    print(means)
    assert means["hac"] == pytest.approx(1.0, abs=0.25) and means["white"] > 3.0


def with_more():
    return truth().with_elements([offset("q1", 0.0), offset("q2", 0.3), spring("q3", 0.0)])


def test_groups_of_parameters() -> None:
    machine = with_more()
    found = dict(zip(machine.parameters.names, group_of(machine), strict=True))
    assert (found["XX1"], found["MY2"], found["M3"]) == ("inertia", "inertia", "mass")
    assert (found["fs_q1"], found["h_q4"], found["off_q1"], found["k_q3"]) == (
        "friction",
        "friction",
        "offset",
        "other",
    )


def test_zeros_of_friction_and_offsets_are_not_believed() -> None:
    """A URDF without friction: the prior's deviation is ten typical sizes, whatever its scale, and other zeros stay what they are."""
    machine = with_more()
    p = machine.parameters
    machine = machine.with_parameters(p.replacing({"fs_q1": 0.0, "h_q2": 0.0}))
    free = {n for n, f in zip(p.names, unstated(machine, machine.parameters.values), strict=True) if f}
    assert free == {"fs_q1", "h_q2", "off_q1"}
    names = [p.names[k] for k in p.select("estimated")]
    _, deviation = prior_moments(machine, Prior(relative=1e-3))
    sigma = dict(zip(names, deviation, strict=True))
    assert sigma["fs_q1"] == pytest.approx(10.0 * p.typical[p.index("fs_q1")])
    assert sigma["off_q2"] == pytest.approx(0.3e-3) and sigma["k_q3"] == pytest.approx(
        1e-3 * p.typical[p.index("k_q3")]
    )
    _, named = prior_moments(machine, Prior(sigma={"fs_q1": 0.01}))
    assert named[names.index("fs_q1")] == 0.01


def test_friction_without_a_value_is_unknown_and_a_body_without_one_is_refused() -> None:
    """A Stribeck curve, a law of the speed and an offset that nobody gave a value; a prior for a spring or a body must have one."""
    added = [stribeck("q1", 0.1), law("q1", "v*abs(v)", name="hq_q1", unit="N*m*s^2/rad^2"), offset("q3")]
    machine = truth().with_elements(added)
    p = machine.parameters
    names = [p.names[k] for k in p.select("estimated")]
    mean, deviation = prior_moments(machine, Prior(relative=1e-3, values={"off_q3": 0.2}))
    for name in ("fst_q1", "hq_q1"):
        k = names.index(name)
        assert mean[k] == 0.0 and deviation[k] == pytest.approx(10.0 * p.typical[p.index(name)])
    assert mean[names.index("off_q3")] == 0.2 and deviation[names.index("off_q3")] == pytest.approx(2e-4)
    with pytest.raises(IdentificationError, match="these parameters have none: k_q3"):
        prior_moments(machine.with_elements([spring("q3")]), Prior())
    with pytest.raises(IdentificationError, match="these parameters have none: M2"):
        prior_moments(machine.with_parameters(p.replacing({"M2": np.nan})), Prior())


def test_a_rotor_without_a_value_is_unknown_and_is_found() -> None:
    """No drawing of links has the inertias of rotors: a study that `veridyn new` writes proposes them without one."""
    true = truth().with_elements([motor_inertia("q1", 0.4), motor_inertia("q3", 0.02)])
    p, motion = true.parameters, clean(400)
    motion = replace(motion, forces=inverse_dynamics(true, motion))
    machine = true.with_parameters(p.replacing({"Ia_q1": np.nan, "Ia_q3": np.nan}))
    names = [p.names[k] for k in p.select("estimated")]
    mean, deviation = prior_moments(machine, Prior(relative=0.1))
    for name in ("Ia_q1", "Ia_q3"):
        k = names.index(name)
        assert mean[k] == 0.0 and deviation[k] == pytest.approx(10.0 * p.typical[p.index(name)])
    zero = true.with_parameters(p.replacing({"Ia_q3": 0.0}))  # stated, as the armature of an MJCF file is
    assert prior_moments(zero, Prior(relative=0.1))[1][names.index("Ia_q3")] == pytest.approx(
        0.1 * p.typical[p.index("Ia_q3")]
    )
    found = dict(
        zip(p.names, identify(machine, noisy(np.random.default_rng(1), motion), Prior(relative=0.05)).standard)
    )
    assert found["Ia_q1"] == pytest.approx(0.4, rel=0.2) and found["Ia_q3"] == pytest.approx(0.02, abs=0.02)


def test_friction_is_found_though_the_drawing_says_zero() -> None:
    """With bodies believed to .1 % and friction of zero in the drawing, dry friction comes out within four deviations of the truth."""
    machine, p = truth(), truth().parameters
    zero = {e.parameter_name: 0.0 for e in machine.elements}
    fit = identify(
        machine.with_parameters(p.replacing(zero)), noisy(np.random.default_rng(0), clean()), Prior(relative=1e-3)
    )
    off = (fit.values - fit.base.reduce(p.values)) / fit.sigma
    at = [k for k, name in enumerate(fit.names) if name.startswith(("fs_", "h_"))]
    assert len(at) == 8 and np.abs(off[at]).max() < 4.0 and (fit.values[at] > 0.0).all()


def test_scales_by_group_and_unknown_groups() -> None:
    prior = Prior(relative=0.5, groups={"mass": 0.1, "friction": 2.0})
    assert [prior.relative_of(g) for g in ("mass", "friction", "inertia")] == [0.1, 2.0, 0.5]
    _, deviation = prior_moments(truth(), prior)
    names = list(truth().parameters.names)
    assert deviation[names.index("M2")] == pytest.approx(0.4) and deviation[names.index("fs_q2")] == pytest.approx(2.4)
    with pytest.raises(IdentificationError, match=r"Prior\.groups: there is no group 'masses'[\s\S]*mass"):
        identify(truth(), clean(), Prior(groups={"masses": 0.1}))
