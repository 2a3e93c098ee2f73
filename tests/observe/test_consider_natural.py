"""A four-bar described by points: identified, observed with what was identified in its own formulation, its parameters considered."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import IdentificationError, ModelError
from veridyn.files.access import shipped
from veridyn.identify.estimator import TREE_NOTE
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.system.integrate import Inputs, Method, Trajectory, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observation import Observation
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.simulate.simulator import record

STEP = 0.005
MOTOR = 300.0  # N*m, turns the crank against its own weight


@cache
def linkage() -> Machine:
    machine = vd.load_model(shipped("veridyn:fourbar.yaml"))
    return replace(machine, sensors=(vd.Sensor("encoder", "coordinate", "phi", 2e-3),))


@cache
def fitted() -> vd.Fit:
    """From torques with noise of 4 N*m: parameters uncertain by some percent."""
    tree, rng = tree_of(linkage()), np.random.default_rng(4)
    limits = JointLimits([-3.0], [3.0], [12.0], [120.0])
    t = STEP * np.arange(800)
    motion = closed_motion(tree, t, *FourierTrajectory.random(rng, limits, harmonics=5, frequency=0.5).at(t))
    forces = np.full_like(motion.q, np.nan)
    forces[:, [0]] = inverse_dynamics(tree, motion) + 4.0 * rng.standard_normal((len(t), 1))
    return vd.identify(linkage(), replace(motion, forces=forces), "wls")


@cache
def identified() -> Machine:
    return fitted().machine()


def test_the_identified_machine_is_described_as_the_user_did() -> None:
    machine = identified()
    assert machine.formulation == "natural"
    assert (
        mechanism_of(machine).coordinates == mechanism_of(linkage()).coordinates == ("1.x", "1.y", "2.x", "2.y", "phi")
    )
    assert machine.uncertainty is not None
    assert machine.uncertainty.sigma == pytest.approx(fitted().sigma)
    assert machine.parameters.values == pytest.approx(fitted().standard)
    as_tree = vd.identify(linkage().with_formulation("tree"), _motion(), "wls")
    assert as_tree.machine().formulation == "tree"
    assert TREE_NOTE in fitted().notes and TREE_NOTE in fitted().summary() and TREE_NOTE not in as_tree.notes


def _motion() -> vd.Motion:
    tree = tree_of(linkage())
    t = STEP * np.arange(400)
    phi = 1.0 + 2.5 * np.sin(3.0 * t)
    motion = closed_motion(tree, t, phi[:, None], (7.5 * np.cos(3.0 * t))[:, None], (-22.5 * np.sin(3.0 * t))[:, None])
    forces = np.full_like(motion.q, np.nan)
    forces[:, [0]] = inverse_dynamics(tree, motion)
    return replace(motion, forces=forces)


def driven(seed: int) -> tuple[Trajectory, np.random.Generator]:
    """A machine drawn from the covariance of the fit, turned by its motor."""
    machine, rng = identified(), np.random.default_rng(seed)
    assert machine.uncertainty is not None
    p = machine.parameters
    places = [p.index(name) for name in machine.uncertainty.names]
    values = p.values.copy()
    values[places] = machine.uncertainty.draw(p.values[places], rng)
    tree = tree_of(machine.with_parameters(values))
    home = closed_motion(tree, [0.0], [[1.0]], [[0.5]], [[0.0]])
    t = np.arange(0.0, 0.6, STEP)
    torque = MOTOR + 100.0 * rng.uniform(-1.0, 1.0)
    push = Inputs(lambda time, q, qd: [torque, 0.0, 0.0])
    return integrate(tree, t, home.q[0], home.qd[0], push, method=Method("RK4", step=STEP / 2)), rng


def observed(seed: int, machine: Machine, method: EKF | str = "ekf", **more: object) -> tuple[Observation, Trajectory]:
    truth, rng = driven(seed)
    log = record(linkage().with_formulation("tree"), truth, rng=rng)
    found = vd.observe(
        machine,
        log,
        method,
        vd.ObserveSettings(
            model_error="off",
            process_noise=vd.ProcessNoise(start=1e-3, start_rate=1e-3),
            unknown=(),
            independents=("phi",),
            inputs=("motor",),
            start={"phi": 1.0},
            rates={"phi": 0.5},
            step=1e-3,
            **more,
        ),
    )
    return found, truth


def nees(draws: int, first: int, consider: bool) -> float:
    """Of the crank's angle and rate, by hand: eᵀ P⁻¹ e / 2, over machines drawn from the covariance of the fit."""
    values = []
    for seed in range(first, first + draws):
        found, truth = observed(seed, identified(), consider=consider)
        e = np.stack(
            [found.state("phi") - truth.motion.q[:, 0], found.state("phi_dot") - truth.motion.qd[:, 0]], axis=1
        )
        P = found.estimates.P[:, :2, :2]
        values.append(np.mean(np.einsum("ti,tij,tj->t", e, np.linalg.inv(P), e)[30:]) / 2.0)
    return float(np.mean(values))


def test_both_formulations_give_the_same_states_and_bands() -> None:
    machine = identified()
    natural, _ = observed(3, machine)
    tree, _ = observed(3, machine.with_formulation("tree"))
    for name in ("phi", "phi_dot"):
        assert natural.state(name) == pytest.approx(tree.state(name), abs=1e-6)
        at = natural.states.index(name), tree.states.index(name)
        assert natural.sigma[:, at[0]] == pytest.approx(tree.sigma[:, at[1]], rel=1e-4)
    mass = "parameter.ZZ_crank"
    assert (
        natural.state(mass) == pytest.approx(tree.state(mass), rel=1e-12)
        and (natural.state(mass) == natural.state(mass)[0]).all()
    )
    assert natural.units[natural.states.index(mass)] == "kg*m^2"


def test_the_compiled_step_considers_as_the_reference_does() -> None:
    machine = identified()
    compiled, python = (observed(7, machine, EKF(engine=e))[0].estimates for e in ("compiled", "python"))
    for a, b in ((compiled.x, python.x), (compiled.P, python.P), (compiled.K, python.K)):
        assert np.abs(a - b).max() <= 1e-11 * np.abs(b).max()


@pytest.mark.slow  # below they are those of the tree, whose bands test_consider.py looks at
@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
@pytest.mark.filterwarnings("ignore:.*ekf on fourbar")  # a filter that does not consider them is too sure, and says so
def test_bands_hold_with_the_covariance_considered_and_not_without() -> None:
    with_it, without = nees(12, 500, True), nees(4, 500, False)
    print(f"NEES of 12 and 4 draws: considered {with_it:.2f}, not considered {without:.2f}")
    assert 0.4 < with_it < 1.9  # 12 draws of a nearly constant error: the mean has a deviation of about 0.25
    assert without > 1.5 and without > 2.0 * with_it


def test_a_saved_fit_gives_the_same_machine(tmp_path) -> None:
    again = vd.load(vd.save(fitted(), tmp_path / "fit.json")).machine()
    assert again.formulation == "natural"
    assert mechanism_of(again).coordinates == mechanism_of(identified()).coordinates
    assert again.parameters.values == pytest.approx(identified().parameters.values, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_an_unscented_filter_considers_parameters_as_on_the_tree() -> None:
    natural, tree = (observed(3, identified().with_formulation(word), "ukf")[0] for word in ("natural", "tree"))
    assert any(name.startswith("parameter.") for name in natural.states) and natural.states == tree.states
    assert np.abs((natural.reduced - tree.reduced) / tree.sigma).max() < 0.05
    np.testing.assert_allclose(natural.sigma, tree.sigma, rtol=0.05)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_what_cannot_be_considered_is_refused_by_name() -> None:
    found, _ = observed(3, identified(), "ukf", consider=False)
    assert not any(name.startswith("parameter.") for name in found.states)
    crane = vd.load_model(shipped("veridyn:crane.yaml"))
    loose = crane.with_uncertainty(vd.model.Uncertainty(("ZZ_load",), np.eye(1)))
    with pytest.raises(ModelError, match=r"points and vectors of body 'load' cannot carry 'ZZ_load'"):
        vd.Observer(loose, settings=vd.ObserveSettings(model_error="off", process_noise=vd.ProcessNoise(force=1.0)))


def test_a_fit_that_its_formulation_cannot_carry_is_refused() -> None:
    """A mass of zero with first moments has no centre of mass."""
    fit = fitted()
    p = fit.described.parameters
    other = fit.described.with_parameters({"M_crank": 0.0})
    assert p["M_crank"] > 0.0
    broken = replace(fit, described=other)
    with pytest.raises(IdentificationError, match=r"cannot be formulated as it was described \(formulation: natural\)"):
        broken.machine()
