"""The door: identify a tree from a motion."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, noisy, truth
from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_inertia, random_motion, random_open_machine
from veridyn.errors import DataError, IdentificationError, IdentificationWarning, ModelError
from veridyn.identify.base import base_parameters
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.pipeline.estimation import uncertain
from veridyn.identify.settings import TWO_SIGMA_BELOW_TEN, IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Uncertainty
from veridyn.spatial.rotations import MDH

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
    fit = identify(stated(), log, method, settings=IdentifySettings(sigma=sigma), diagnose="off")
    assert fit.known is not None and fit.known.names == KNOWN
    own = [truth().parameters[n] for n in KNOWN]
    for k, name in enumerate(KNOWN):
        moved = dict(zip(KNOWN, own, strict=True))
        moved[name] += SIGMA[k]
        other = identify(stated(moved), log, method, settings=IdentifySettings(sigma=sigma), diagnose="off")
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
    """Machines whose assumed values are off, drawn from the stated covariance: z² has mean 1, and > 2 without it.

    Noise is white, as it is drawn: "auto" takes what wrong values leave of the forces for noise with a memory, and counts it twice.
    """
    rng = np.random.default_rng(3)
    own = np.array([truth().parameters[n] for n in KNOWN])
    scores: dict[str, list[float]] = {"with": [], "without": []}
    settings = IdentifySettings(engine="compiled", covariance="white")
    for _ in range(machines):
        believed = dict(zip(KNOWN, own + rng.multivariate_normal(np.zeros(3), CORRELATED), strict=True))
        fit = identify(stated(believed), noisy(rng, clean(600)), settings=settings, diagnose="off")
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


RIGHT = np.pi / 2


@cache
def arm() -> Machine:
    """Two turning joints and a slide, with friction and a rotor."""
    rng = np.random.default_rng(0)
    bodies = [
        Body("1"),
        Body("2", "1", placement=MDH(alpha=RIGHT, d=0.1)),
        Body("3", "2", "sliding", MDH(alpha=RIGHT, d=0.3)),
    ]
    elements = [coulomb("q1", 0.3), damper("q2", 0.5), motor_inertia("q3", 0.4)]
    return Machine.of_bodies(
        bodies, name="arm", inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements
    )


def log(noise: float = 0.0, seed: int = 0, samples: int = 400, machine: Machine | None = None) -> Motion:
    machine = machine or arm()
    rng = np.random.default_rng(seed)
    motion = random_motion(rng, machine, samples)
    gamma = inverse_dynamics(machine, motion)
    return replace(motion, forces=gamma + noise * rng.normal(size=gamma.shape))


def test_exact_data_give_the_parameters_back() -> None:
    """Noise-free: every base parameter to 1e-8, with wrenches and elements."""
    fit = identify(arm(), log())
    truth = base_parameters(arm(), log()).reduce(arm().parameters.values)
    assert fit.values == pytest.approx(truth, rel=1e-8, abs=1e-10)
    assert fit.priors == pytest.approx(fit.values, rel=1e-8, abs=1e-10)
    assert fit.names == base_parameters(arm(), log()).names


@pytest.mark.parametrize("seed", range(8))
def test_exact_data_of_random_machines(seed: int) -> None:
    """Fixed trees from joint forces; free trees from the wrench that held the base."""
    rng = np.random.default_rng(seed)
    free = bool(seed % 2)
    machine = random_open_machine(rng, bodies=5, base="free" if free else "fixed")
    motion = random_motion(rng, machine, 200, wrenches=False)
    gamma = inverse_dynamics(machine, motion)
    if free:
        motion = replace(motion, wrenches={"1": gamma[:, :6]})
    motion = replace(motion, forces=gamma[:, len(machine.rows) - machine.n :])
    fit = identify(machine, motion)
    truth = fit.base.reduce(machine.parameters.values)
    assert np.abs(fit.values - truth).max() < 1e-8 * np.abs(truth).max()
    again = identify(machine, motion, rows="base" if free else "joints")
    assert again.base.columns == fit.base.columns


def test_the_car_of_2006_from_its_ten_rows() -> None:
    """FACTS 2.10 with a generic motion: 33 parameters from six chassis rows and four suspensions, exact data, to 1e-8."""
    machine = estimated_33(car_20(elements=True))
    truth = machine.parameters
    rng = np.random.default_rng(1)
    motion = random_motion(rng, machine, 300, wrenches=False)
    motion = replace(motion, q=0.1 * motion.q - 0.3)
    gamma = inverse_dynamics(machine, motion)
    # Wheel forces that make the ten rows zero: any that do will serve; here on the chassis and along each suspension.
    wrenches = {"1": gamma[:, :6].copy()}
    for body, z in (("13", "z1"), ("18", "z2"), ("3", "z3"), ("7", "z4")):
        push = np.zeros((300, 6))
        push[:, 2] = gamma[:, machine.rows.index(z)]
        wrenches[body] = push
        before = inverse_dynamics(machine, replace(motion, wrenches={body: push}))
        wrenches["1"] += before[:, :6] - gamma[:, :6]
    motion = replace(motion, wrenches=wrenches)
    assert np.abs(inverse_dynamics(machine, motion, TEN_ROWS)).max() < 1e-8 * np.abs(gamma).max()
    fit = identify(machine, motion, rows=TEN_ROWS)
    assert len(fit.values) == 33
    expected = fit.base.reduce(truth.values)
    assert np.abs(fit.values / np.where(expected == 0, 1, expected) - (expected != 0)).max() < 1e-8


def test_deviations_cover_the_truth() -> None:
    """Over 40 noisy logs the error in units of σ has mean square 1."""
    machine = arm()
    scores = []
    for seed in range(40):
        fit = identify(machine, log(0.3, seed, 150), diagnose="off")
        scores.append((fit.values - fit.base.reduce(machine.parameters.values)) / fit.sigma)
    assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.15)


def test_weighted_beats_ordinary_where_rows_differ() -> None:
    machine = arm()
    errors = {"wls": [], "ols": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        motion = log(0.0, seed, 200)
        noise = np.array([0.01, 0.1, 3.0]) * rng.normal(size=(200, 3))
        motion = replace(motion, forces=inverse_dynamics(machine, motion) + noise)
        for estimator, found in errors.items():
            fit = identify(machine, motion, estimator, diagnose="off")
            found.append(fit.values - fit.base.reduce(machine.parameters.values))
    rms = {e: np.sqrt(np.mean(np.square(x), axis=0)) for e, x in errors.items()}
    assert np.median(rms["wls"] / rms["ols"]) < 0.5


def test_stated_deviations_are_used() -> None:
    sigma = {"q1": 0.3, "q2": 0.3, "q3": 0.3}
    fit = identify(arm(), log(0.3, samples=2000), settings=IdentifySettings(sigma=sigma))
    assert fit.residual_sigma == pytest.approx(1.0, abs=3 * np.sqrt(1 / 6000))
    assert [r.sigma for r in fit.rows] == [0.3] * 3


def test_known_parameters_are_not_estimated() -> None:
    machine = arm().with_parameters(arm().parameters.known(["fs_q1", "h_q2"]))
    fit = identify(machine, log())
    assert not {"fs_q1", "h_q2"} & set(fit.names)
    assert len(fit.values) == len(identify(arm(), log()).values) - 2
    assert fit.values == pytest.approx(fit.base.reduce(machine.parameters.values), rel=1e-8, abs=1e-10)


def test_wrong_known_values_show_in_the_residual() -> None:
    machine = arm().with_parameters(arm().parameters.known({"fs_q1": 3.0}))
    row = {r.row: r for r in identify(machine, log()).rows}["q1"]
    assert row.relative_error > 0.05


def test_tied_parameters_are_one_column() -> None:
    machine = arm()
    values = machine.parameters.replacing({"h_q2": 0.6})
    tied = machine.with_parameters(values.tied({"h_q2": "fs_q1"}))
    equal = machine.with_parameters(values.replacing({"h_q2": values["fs_q1"]}))
    fit = identify(tied, log(machine=equal))
    assert "h_q2" not in fit.names
    k = fit.names.index("fs_q1")
    assert fit.values[k] == pytest.approx(0.3, rel=1e-8)
    phi = dict(zip(machine.parameters.names, fit.standard, strict=True))
    assert phi["h_q2"] == phi["fs_q1"]


def test_acceptance_and_notes_come_along() -> None:
    fit = identify(arm(), log(0.2), settings=IdentifySettings(acceptance=TWO_SIGMA_BELOW_TEN))
    assert fit.acceptance is TWO_SIGMA_BELOW_TEN
    assert any(note.startswith("without effect in this motion, and not estimated: XX1") for note in fit.notes)
    assert any(note.startswith("grouped: ") for note in fit.notes)


def test_a_rank_that_is_a_matter_of_taste_is_noted() -> None:
    """Spring and offset differ by 4e-9, damper and offset by 4e-10: the cut at 1e-9 falls between, and little sets it there."""
    elements = [offset("q1", 1.0), spring("q1", 1.0), damper("q1", 1.0)]
    machine = Machine.of_bodies([Body("1", joint="sliding")], elements=elements)
    machine = machine.with_parameters(
        machine.parameters.known({n: float(n == "M1") for n in machine.parameters.names[:10]})
    )
    a, b, qdd = np.random.default_rng(0).normal(size=(3, 100, 1))
    motion = Motion(np.arange(100.0), 1.0 + 4e-9 * a, 1.0 + 4e-10 * b, qdd)
    fit = identify(machine, replace(motion, forces=inverse_dynamics(machine, motion)))
    assert len(fit.values) == 2 and fit.base.gap < 1e3
    assert fit.notes[0].startswith("note: the rank is not clear-cut: singular values drop only by ")
    assert not any("clear-cut" in note for note in identify(arm(), log()).notes)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(IdentificationError, match=r"there is no method 'lsq'\.\nKnown: ols, wls"):
        identify(arm(), log(), "lsq")


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(ModelError, match="there is no row 'elbow'"):
        identify(arm(), log(), rows=["elbow"])


def test_fewer_samples_than_parameters_are_refused() -> None:
    with pytest.raises(IdentificationError, match="fewer samples than parameters"):
        identify(arm(), log(samples=4))


def test_zero_excitation_is_refused() -> None:
    """A machine at rest without gravity says nothing at all; it is not answered with zeros."""
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=RIGHT))]
    machine = Machine.of_bodies(bodies, gravity=(0.0, 0.0, 0.0))
    still = Motion(np.arange(50.0), *np.zeros((3, 50, 2)), forces=np.ones((50, 2)))
    with pytest.raises(IdentificationError, match=r"nothing is excited[\s\S]*Record a motion in which the joints"):
        identify(machine, still)


def test_a_free_base_without_its_motion_is_refused() -> None:
    machine = car_20()
    with pytest.raises(DataError, match="the base is free, and the motion does not say how it moves"):
        identify(machine, Motion(np.arange(9.0), *np.zeros((3, 9, machine.n))))


def test_a_wrench_on_an_unknown_body_is_refused() -> None:
    motion = log()
    with pytest.raises(DataError, match=r"a wrench acts on 'tool', which is no body\.\nKnown: 1, 2, 3"):
        identify(arm(), replace(motion, wrenches={"tool": np.zeros((len(motion), 6))}))


def test_a_silent_row_is_warned_of() -> None:
    """A passive joint that no force reaches measures zero: its weight is a guess, and that is said."""
    bodies = [Body("1", joint="sliding"), Body("2", "1", "sliding", MDH(alpha=RIGHT), actuated=False)]
    machine = Machine.of_bodies(
        bodies, elements=[damper("q2", name="h")], inertia={b: [1, 0, 0, 1, 0, 1, 0, 0, 0, 2.0] for b in "12"}
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 60, 2))
    motion = Motion(np.arange(60.0), *x, forces=np.column_stack([rng.normal(size=60), np.full(60, np.nan)]))
    with pytest.warns(IdentificationWarning, match="row 'q2': the row measures exactly zero throughout"):
        identify(machine, motion, diagnose="off")  # which would miss the weight of the bodies in these numbers
