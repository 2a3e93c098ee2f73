"""Payloads: gains from a known one, a load from known gains; against inverse dynamics of a machine that has the load as a body."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, noisy, truth
from identify.undiagnosed import identify
from veridyn.errors import DataError, IdentificationError, IdentificationWarning, ModelError
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.payload import LoadEstimate, carrying, consistent_load, with_payload
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.spatial.inertia import INERTIAL, broken_law, from_centre, pseudo_inertia, six

GAINS = np.array([30.0, 28.0, 12.0, 5.0])  # N*m/A
LOAD = from_centre(1.2, (0.03, -0.02, 0.08), np.diag([0.004, 0.005, 0.003]))
TYPICAL = np.array([0.01] * 6 + [0.1] * 3 + [1.0])


def loaded_truth():
    """The arm with the load as a fixed body of its own."""
    machine = truth()
    inertia = {b.name: [machine.parameters[b.parameter(s)] for s in INERTIAL] for b in tree_of(machine).bodies}
    elements = [replace(e, value=machine.parameters[e.parameter_name]) for e in machine.elements]
    bodies = [*tree_of(machine).bodies, vd.model.Body("payload", "4", "fixed")]
    return vd.Machine.of_bodies(bodies, inertia={**inertia, "payload": LOAD}, elements=elements)


def driven(rng=None, loaded=False, size=0.3):
    """Currents of a run with or without the load, and no torques at all."""
    seed = 1 if loaded else 0
    motion = clean(1500, seed)
    exact = replace(motion, forces=inverse_dynamics(loaded_truth() if loaded else truth(), motion))
    felt = exact if rng is None else noisy(rng, exact, size)
    currents = {f"i{k}": felt.forces[:, k - 1] / GAINS[k - 1] for k in range(1, 5)}
    return replace(motion, forces=None, signals=currents)


def unknown(gains=None):
    """The arm with nothing known but, where given, its gains."""
    elements = [replace(e, value=float("nan")) for e in truth().elements]
    elements += [
        vd.elements.drive_gain(f"q{k}", f"i{k}", np.nan if gains is None else gains[k - 1], f"K{k}")
        for k in range(1, 5)
    ]
    machine = vd.Machine.of_bodies(tree_of(truth()).bodies, name="arm", elements=elements)
    return (
        machine if gains is None else machine.with_parameters(machine.parameters.known([f"K{k}" for k in range(1, 5)]))
    )


def test_a_load_is_the_wrench_that_inverse_dynamics_of_a_body_says():
    motion = clean(200, 3)
    bare = replace(motion, forces=None)
    assert inverse_dynamics(truth(), carrying(truth(), bare, "4", LOAD)) == pytest.approx(
        inverse_dynamics(loaded_truth(), bare), rel=1e-11, abs=1e-12
    )
    pushed = replace(bare, wrenches={"4": np.ones((200, 6))})
    both = carrying(truth(), pushed, "4", LOAD).wrenches["4"]
    assert both == pytest.approx(1.0 + carrying(truth(), bare, "4", LOAD).wrenches["4"], rel=1e-12)


IV = Instrumental(reference="measured")


@pytest.mark.parametrize("logs", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_gains_from_a_known_payload(logs):
    """One run without and one with a load of 1.2 kg: exact without noise, and within their deviations with it. Twelve logs are slow.

    Least squares, whose columns hold the noise of the currents, finds gains that are too small by many deviations, and warns.
    """
    machine = unknown()
    exact = identify(machine, [driven(), carrying(machine, driven(loaded=True), "4", LOAD)], IV)
    at = [exact.names.index(f"K{k}") for k in range(1, 5)]
    assert exact.values[at] == pytest.approx(GAINS, rel=1e-7)
    scores, least = [], []
    for seed in range(logs):
        rng = np.random.default_rng(seed)
        runs = [driven(rng), carrying(machine, driven(rng, loaded=True), "4", LOAD)]
        fit = identify(machine, runs, IV)
        scores.append((fit.values[at] - GAINS) / fit.sigma[at])
        if seed < 3:
            with pytest.warns(IdentificationWarning, match=r"drive gains K1, K2, K3, K4: the currents[\s\S]*too small"):
                plain = identify(machine, runs, settings=IdentifySettings(covariance="white"))
            least.append((plain.values[at] - GAINS) / plain.sigma[at])
    print(
        f"error over deviation, rms: iv {np.sqrt(np.mean(np.square(scores))):.2f}, wls {np.sqrt(np.mean(np.square(least))):.1f}"
    )
    print(f"mean: iv {np.mean(scores, axis=0).round(2)}, wls {np.mean(least, axis=0).round(1)}")
    assert np.mean(np.square(scores)) < 2.0  # 6 logs of 4 gains: 1 ± 0.3 if they were independent
    assert (np.mean(least, axis=0) < -2.0).all()


def test_a_payload_from_known_gains():
    """The arm fitted without the load, then everything known but what it carries: mass and first moments, ten parameters in all."""
    arm = identify(unknown(GAINS), driven())
    machine = with_payload(arm, "4")
    assert [machine.parameters.names[k] for k in machine.parameters.select("estimated")] == [
        f"{s}_payload" for s in INERTIAL
    ]
    fit = identify(machine, driven(loaded=True))
    found = dict(zip(fit.names, fit.values, strict=True))
    assert found["M_payload"] == pytest.approx(1.2, rel=1e-6)
    assert fit.base.reduce(
        machine.parameters.replacing(dict(zip([f"{s}_payload" for s in INERTIAL], LOAD))).values
    ) == pytest.approx(fit.values, rel=1e-5, abs=1e-8)
    rng = np.random.default_rng(0)
    arm = identify(unknown(GAINS), driven(rng))
    noisy_fit = identify(with_payload(arm, "4"), driven(rng, loaded=True))
    mass = noisy_fit.values[noisy_fit.names.index("M_payload")]
    print(f"payload {mass:.4f} kg, true 1.2")
    assert mass == pytest.approx(1.2, rel=0.02)


def test_loads_that_cannot_be_are_refused():
    with pytest.raises(ModelError, match=r"the load on '4': no load has this inertia: the mass is -1 kg"):
        carrying(truth(), clean(50), "4", [0.0] * 9 + [-1.0])
    with pytest.raises(ModelError, match="it takes ten numbers"):
        carrying(truth(), clean(50), "4", [1.0, 2.0])
    with pytest.raises(ModelError, match="must be known to weigh what it carries"):
        with_payload(unknown(), "4")
    with pytest.raises(DataError, match="there is a body '3' already"):
        with_payload(truth(), "4", name="3")


def test_a_machine_with_a_payload_is_a_machine() -> None:
    """Of a machine and of its fit a machine, of a tree a tree; all weigh the same load."""
    plain = with_payload(truth(), "4")
    whole = with_payload(truth(), "4")
    assert isinstance(plain, Machine) and isinstance(whole, Machine)
    assert whole.parameters.names == plain.parameters.names
    loaded = with_payload(identify(unknown(GAINS), driven()), "4")
    assert isinstance(loaded, Machine)
    fit = identify(loaded, driven(loaded=True))
    assert fit.values[fit.names.index("M_payload")] == pytest.approx(1.2, rel=1e-6)


@pytest.mark.parametrize("arms", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_the_deviation_of_a_load_holds_for_gains_and_an_empty_machine_that_are_not_exact(arms: int) -> None:
    """Arms whose assumed gains are 2 % off, each by itself, weighed empty and loaded.

    z² of the load has mean 1, and more than 5 where gains and the empty machine are taken as exact.
    """
    rng, spread = np.random.default_rng(0), 0.02
    names = tuple(f"K{k}" for k in range(1, 5))
    scores: dict[str, list[float]] = {"with": [], "without": []}
    mass = []
    for _ in range(arms):
        believed = GAINS * (1.0 + spread * rng.normal(size=4))
        machine = replace(unknown(believed), uncertainty=Uncertainty(names, np.diag((spread * believed) ** 2)))
        arm = identify(machine, driven(rng), settings=IdentifySettings(engine="compiled"))
        assert arm.known is not None and arm.known.names == names
        fit = identify(with_payload(arm, "4"), driven(rng, loaded=True), settings=IdentifySettings(engine="compiled"))
        whole = fit.described.parameters.replacing(dict(zip([f"{s}_payload" for s in INERTIAL], LOAD, strict=True)))
        off = fit.values - fit.base.reduce(whole.values)
        scores["with"] += list((off / fit.sigma) ** 2)
        scores["without"] += list((off / fit.budget["noise"]) ** 2)
        mass.append(off[fit.names.index("M_payload")] / fit.sigma[fit.names.index("M_payload")])
    means = {name: float(np.mean(z2)) for name, z2 in scores.items()}
    print(means, f"mass: rms z {np.sqrt(np.mean(np.square(mass))):.2f}")
    wider = np.sqrt(40 / arms)
    assert means["with"] == pytest.approx(1.0, abs=0.3 * wider) and means["without"] > 5.0
    assert np.mean(np.square(mass)) == pytest.approx(1.0, abs=0.7 * wider)  # 40 draws: 1 ± .22, three of them


def estimate(x: np.ndarray, covariance: np.ndarray, determined: np.ndarray | None = None) -> LoadEstimate:
    return LoadEstimate(
        body="hand",
        free=x,
        values=x,
        covariance=covariance,
        determined=np.ones(10, dtype=bool) if determined is None else determined,
        shift=0.0,
        mass_budget={},
    )


def by_clarabel(K: np.ndarray, values: np.ndarray, covariance: np.ndarray) -> float:
    """The smallest distance by cvxpy and Clarabel."""
    x = cp.Variable(10)
    units = [pseudo_inertia(u) for u in np.eye(10)]
    P = sum(x[k] * TYPICAL[k] * units[k] for k in range(10))
    D = np.diag([10.0, 10.0, 10.0, 1.0])  # scales of lengths, for the solver
    W = np.linalg.inv(np.linalg.cholesky(covariance))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(W @ K @ cp.multiply(TYPICAL, x) - W @ values)), [D @ P @ D >> 0])
    return float(np.sqrt(problem.solve(solver=cp.CLARABEL)))


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_possible_load_is_that_of_a_semidefinite_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(14, 10)) / TYPICAL
    C = np.linalg.inv(A.T @ A) * 0.3
    wrong = (
        LOAD + TYPICAL * rng.normal(size=10) * (0.3 if seed else 0.0) - np.array([0.02] * 6 + [0.0] * 4) * (seed > 0)
    )
    K = np.eye(10) if seed < 4 else rng.normal(size=(7, 10)) * TYPICAL.max() / TYPICAL
    values, covariance = K @ wrong, K @ C @ K.T
    x, distance = consistent_load(K, values, covariance, TYPICAL)
    assert broken_law(x, 1e-6) is None
    assert distance == pytest.approx(by_clarabel(K, values, covariance), rel=1e-4, abs=1e-4)
    if seed == 0:
        assert x == pytest.approx(LOAD, rel=1e-9) and distance == 0.0


def test_deviations_of_centre_and_inertia_are_those_of_random_draws() -> None:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(10, 10)) * TYPICAL[:, None] * 0.003
    load = estimate(LOAD, B @ B.T)
    drawn = LOAD + rng.standard_normal((4_000, 10)) @ B.T
    each = [estimate(x, B @ B.T) for x in drawn]
    assert load.centre == pytest.approx([0.03, -0.02, 0.08]) and np.diag(load.inertia) == pytest.approx(
        [0.004, 0.005, 0.003]
    )
    assert load.centre_sigma == pytest.approx(np.std([e.centre for e in each], axis=0), rel=0.06)
    assert load.inertia_sigma == pytest.approx(np.std([six(e.inertia) for e in each], axis=0), rel=0.06)
    assert "1.2 ±" in load.summary()


def test_what_is_not_determined_has_no_deviation() -> None:
    determined = np.array([False] * 6 + [True] * 4)
    load = estimate(LOAD, np.eye(10), determined)
    assert not load.has_inertia and np.isnan(load.inertia_sigma).all()


def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after one step of Newton's, the search is not on the central path."""
    monkeypatch.setattr("veridyn.identify.payload.MAX_STEPS", 1)
    wrong = LOAD - np.array([0.05] * 6 + [0.0] * 4)
    with pytest.raises(IdentificationError, match="did not converge"):
        consistent_load(np.eye(10), wrong, np.diag(TYPICAL**2) * 1e-4, TYPICAL)
