"""Constants of laws from data: forces by Pinocchio and closed forms, fresh noise, deviations that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine
from veridyn.errors import IdentificationError
from veridyn.identify.constants import fit_constants
from veridyn.model.elements.element import Element, coulomb, damper, spring
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion


def arm() -> Machine:
    return random_open_machine(np.random.default_rng(5), bodies=2, branched=False, kinds=("turning",))


def sines(n: int, seed: int, amplitude: float = 0.3) -> Motion:
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 20.0, 2000)
    q, qd, qdd = np.zeros((3, len(t), n))
    for k in range(n):
        for w in rng.uniform(0.3, 3.0, 4):
            a, p = amplitude * rng.uniform(0.5, 1.5), rng.uniform(0.0, 6.0)
            q[:, k] += a * np.sin(w * t + p)
            qd[:, k] += a * w * np.cos(w * t + p)
            qdd[:, k] -= a * w**2 * np.sin(w * t + p)
    return Motion(t, q, qd, qdd)


def friction(v: np.ndarray) -> np.ndarray:
    """1 N m of dry friction, 0.8 N m more at standstill (speed 0.15 rad/s, exponent 1.4), 0.5 N m s viscous."""
    return np.sign(v) * (1.0 + 0.8 / (1.0 + np.abs(v / 0.15) ** 1.4)) + 0.5 * v


def measured(seed: int, law, noise: float = 0.02) -> tuple[Machine, Motion]:
    machine, motion = arm(), sines(2, 11)
    gamma = PinModel(machine).inverse_dynamics(motion)
    gamma[:, 0] += law(motion.q[:, 0], motion.qd[:, 0])
    noisy = gamma + noise * np.random.default_rng(seed).normal(size=gamma.shape)
    return machine.with_parameters(np.full(len(machine.parameters), np.nan)), replace(motion, forces=noisy)


def test_speed_and_exponent_of_a_stribeck_curve() -> None:
    """Both constants of the curve beside all inertias, dry and viscous friction; errors are within their deviations over ten draws."""
    scores, fits = [], []
    for seed in range(10):
        machine, motion = measured(seed, lambda q, qd: friction(qd))
        curve = Element(kind="stribeck", on={"q1": 1.0}, constants={"speed": 0.3, "exponent": 2.0})
        machine = machine.with_elements([coulomb("q1"), damper("q1"), curve])
        fit = fit_constants(machine, motion, ["fst_q1.speed", "fst_q1.exponent"])
        assert fit.converged, fit.summary()
        scores.append((fit.values - [0.15, 1.4]) / fit.sigma)
        fits.append(fit)
    z, last = np.array(scores), fits[-1]
    assert np.abs(z).max() < 4.0
    assert 0.5 < np.sqrt((z**2).mean()) < 1.6  # 20 numbers: the root mean square of unit normals stays within
    assert last.sigma[0] < 0.03 and last.sigma[1] < 0.3
    assert last.machine.constants[0].value == last.values[0]


@pytest.mark.parametrize(
    ("kind", "key", "start", "truth", "law"),
    [
        ("bump_stop", "gap", 0.2, 0.35, lambda q, qd: 40.0 * np.maximum(q - 0.35, 0.0)),
        ("dead_zone", "gap", 0.4, 0.25, lambda q, qd: 40.0 * np.sign(q) * np.maximum(np.abs(q) - 0.25, 0.0)),
        ("tanh_friction", "speed", 0.3, 0.08, lambda q, qd: 2.0 * np.tanh(qd / 0.08)),
    ],
)
def test_one_constant(kind: str, key: str, start: float, truth: float, law) -> None:
    machine, motion = measured(3, law)
    machine = machine.with_elements([Element(kind=kind, on={"q1": 1.0}, name="e", constants={key: start})])
    fit = fit_constants(machine, motion, [f"e.{key}"])
    assert fit.converged, fit.summary()
    assert abs(fit.values[0] - truth) < 4.0 * fit.sigma[0]
    assert fit.sigma[0] < 0.05 * truth
    assert fit.residual[-1] < fit.residual[0]
    assert f"e.{key}" in fit.summary()


def test_what_cannot_be_separated_is_refused() -> None:
    """The rest of a spring beside an offset on the same coordinate, and names that are none."""
    machine, motion = measured(0, lambda q, qd: 10.0 * (q - 0.2))
    with_rest = Element(kind="spring", on={"q1": 1.0}, constants={"rest": 0.1})
    both = machine.with_elements([with_rest, Element(kind="offset", on={"q1": 1.0})])
    with pytest.raises(IdentificationError, match="cannot separate these constants"):
        fit_constants(both, motion, ["k_q1.rest"])
    alone = fit_constants(machine.with_elements([with_rest]), motion, ["k_q1.rest"])
    assert abs(alone.values[0] - 0.2) < 4.0 * alone.sigma[0]
    with pytest.raises(IdentificationError, match=r"there is no constant 'k_q1\.rust'"):
        fit_constants(machine.with_elements([with_rest]), motion, ["k_q1.rust"])
    with pytest.raises(IdentificationError, match="No element of this machine gives a constant"):
        fit_constants(machine.with_elements([spring("q1")]), motion, ["k_q1.rest"])
