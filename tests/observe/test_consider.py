"""Parameters of a fit considered by the filter (Schmidt): bands that hold for machines drawn from the fit's covariance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from observe.test_machine_trees import BODY, STEP, log_of
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.spatial.rotations import Placement


@cache
def arm() -> Machine:
    return Machine.of_bodies(
        [Body("upper"), Body("lower", "upper", placement=Placement(position=np.array([0.6, 0.0, 0.0])))],
        name="arm",
        inertia={"upper": BODY, "lower": BODY},
        gravity=(0.0, -9.81, 0.0),
        elements=[damper("upper", 0.5, "fv1"), damper("lower", 0.3, "fv2")],
        sensors=[Sensor("q1", "coordinate", "upper", 2e-3), Sensor("q2", "coordinate", "lower", 2e-3)],
    )


def recorded(seed: int, noise: float, samples: int = 600) -> Motion:
    """An exciting motion with noisy torques."""
    rng = np.random.default_rng(seed)
    limits = JointLimits([-2.0] * 2, [2.0] * 2, [4.0] * 2, [20.0] * 2)
    t = 0.005 * np.arange(samples)
    motion = Motion(t, *FourierTrajectory.random(rng, limits, harmonics=4, frequency=0.5).at(t))
    gamma = inverse_dynamics(arm(), motion)
    return replace(motion, forces=gamma + noise * rng.standard_normal(gamma.shape))


@cache
def fitted() -> Machine:
    """Identified from a short and noisy log: parameters uncertain by some percent."""
    return identify(arm(), recorded(1, 4.0), "wls").machine()


def test_the_identified_machine_has_the_covariance_of_the_fit() -> None:
    fit = identify(arm(), recorded(1, 4.0), "wls")
    machine = fit.machine()
    assert machine.uncertainty is not None and len(machine.uncertainty.names) == len(fit.values)
    np.testing.assert_allclose(machine.uncertainty.sigma, fit.sigma)
    motion = recorded(2, 0.0)
    np.testing.assert_allclose(
        inverse_dynamics(machine, motion), inverse_dynamics(fit.described.with_parameters(fit.standard), motion)
    )
    assert machine.with_parameters({"fv1": 1.0}).uncertainty is None


def test_directions_that_were_not_excited_are_named() -> None:
    """Only the upper joint moves: nobody knows the friction of the lower one."""
    motion = recorded(1, 0.5)
    still = replace(motion, q=motion.q * [1.0, 0.0], qd=motion.qd * [1.0, 0.0], qdd=motion.qdd * [1.0, 0.0])
    still = replace(
        still, forces=inverse_dynamics(arm(), still) + 0.1 * np.random.default_rng(0).standard_normal((600, 2))
    )
    fit = identify(arm(), still, "wls")
    with pytest.raises(IdentificationError, match=r"did not show .*fv2"):
        fit.machine()
    machine = fit.machine(unexcited=0.3)
    assert machine.uncertainty is not None and "fv2" in machine.uncertainty.names


def test_a_machine_that_cannot_move_is_refused() -> None:
    """Torques of the wrong sign make inertias negative."""
    motion = recorded(1, 0.0)
    assert motion.forces is not None
    fit = identify(arm(), replace(motion, forces=-motion.forces), "wls", diagnose="off")
    with pytest.raises(IdentificationError, match="mass matrix is not positive definite"):
        fit.machine()


def observed(seed: int, method: EKF | str = "ekf", **more: object) -> tuple[Observation, np.ndarray, np.ndarray]:
    """A machine drawn from the covariance of the fit, observed by the fit's values; with its true motion."""
    machine, rng = fitted(), np.random.default_rng(seed)
    assert machine.uncertainty is not None
    p = machine.parameters
    places = [p.index(name) for name in machine.uncertainty.names]
    drawn = p.values.copy()
    drawn[places] = machine.uncertainty.draw(p.values[places], rng)
    truth = machine.with_parameters(drawn)
    t = np.arange(0.0, 0.8, STEP)
    torque = np.array([14.0, 3.0]) + rng.uniform(-5.0, 5.0, 2)
    start, rates = rng.normal([0.4, -0.3], 0.01), rng.normal([0.5, -0.2], 0.05)
    motion = integrate(truth, t, start, rates, Inputs(lambda time, q, qd: torque), method=Method("RK4", step=STEP / 2))
    log, q, qd = log_of(tree_of(truth), motion, np.broadcast_to(torque, (len(t), 2)), rng)
    found = observe(
        machine,
        log,
        method,
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(start=0.01, start_rate=0.05),
            unknown=(),
            start={"upper": 0.4, "lower": -0.3},
            rates={"upper": 0.5, "lower": -0.2},
            step=1e-3,
            **more,
        ),
    )
    return found, q, qd


def nees_over_draws(draws: int, first: int, consider: bool) -> float:
    """Mean NEES of positions and rates over machines drawn from the covariance of the fit."""
    values = []
    for k in range(draws):
        found, q, qd = observed(first + k, consider=consider)
        values.append(found.nees(q, qd, skip=40).mean)
    return float(np.mean(values))


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_the_compiled_step_considers_as_the_reference_does() -> None:
    compiled, python = (observed(7, EKF(engine=engine))[0].estimates for engine in ("compiled", "python"))
    for a, b in ((compiled.x, python.x), (compiled.P, python.P), (compiled.K, python.K)):
        assert np.abs(a - b).max() <= 1e-12 * np.abs(b).max()
    part = np.flatnonzero(np.abs(compiled.K).max(axis=(0, 2)) == 0.0)
    assert len(part) and (compiled.x[:, -1 - len(part) : -1] == compiled.x[0, -1 - len(part) : -1]).all()


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is)"
)  # where the covariance is not considered
def test_bands_hold_with_the_covariance_considered_and_not_without() -> None:
    """Quick form of the slow test: 10 draws, and 5 without it."""
    with_it, without = nees_over_draws(10, 500, True), nees_over_draws(5, 500, False)
    assert 0.4 < with_it < 1.9  # 10 draws of a nearly constant error: the mean of NEES has a deviation of about 0.25
    assert without > 1.5 and without > 2.0 * with_it


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is)"
)  # where it is not considered
def test_bands_over_a_hundred_draws() -> None:
    with_it, without = nees_over_draws(100, 1000, True), nees_over_draws(100, 1000, False)
    print(f"NEES over 100 draws: considered {with_it:.3f}, not considered {without:.3f}")
    assert 0.8 < with_it < 1.25
    assert without > 1.5
