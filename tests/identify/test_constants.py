"""Constants of laws from data: forces by Pinocchio and closed forms, fresh noise, deviations that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import NOISE, clean, truth
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine
from veridyn.errors import IdentificationError
from veridyn.identify.constants import fit_constants, stribeck_speeds
from veridyn.identify.estimate import identify
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element, coulomb, damper, spring
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import INERTIAL

TRUE = {"q1": 0.25, "q3": 0.6}  # rad/s
BANK = np.geomspace(0.03, 3.0, 9)


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


@pytest.mark.parametrize("draws", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_speed_and_exponent_of_a_stribeck_curve(draws: int) -> None:
    """Both constants of the curve beside all inertias, dry and viscous friction; errors are within their deviations over all draws, of
    which more are slow."""
    scores, fits = [], []
    for seed in range(draws):
        machine, motion = measured(seed, lambda q, qd: friction(qd))
        curve = Element(kind="stribeck", on={"q1": 1.0}, constants={"speed": 0.3, "exponent": 2.0})
        machine = machine.with_elements([coulomb("q1"), damper("q1"), curve])
        fit = fit_constants(machine, motion, ["fst_q1.speed", "fst_q1.exponent"])
        assert fit.converged, fit.summary()
        scores.append((fit.values - [0.15, 1.4]) / fit.sigma)
        fits.append(fit)
    z, last = np.array(scores), fits[-1]
    assert np.abs(z).max() < 4.0
    wider = 10.0 / draws
    assert (
        1.0 - 0.5 * np.sqrt(wider) < np.sqrt((z**2).mean()) < 1.0 + 0.6 * np.sqrt(wider)
    )  # of 20 unit normals, or fewer
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


def machine():
    """The arm with two curves, as high as its dry friction."""
    machine = truth()
    inertia = {b.name: [machine.parameters[b.parameter(s)] for s in INERTIAL] for b in tree_of(machine).bodies}
    curves = [vd.elements.stribeck(c, v, 1.5 if c == "q1" else 0.6) for c, v in TRUE.items()]
    return vd.Machine.of_bodies(tree_of(machine).bodies, inertia=inertia, elements=[*machine.elements, *curves])


def recorded(size, seed=0, samples=4000):
    motion = clean(samples, 0)
    forces = inverse_dynamics(machine(), motion)
    noise = size * NOISE * np.random.default_rng(seed).normal(size=forces.shape)
    return replace(motion, forces=forces + noise)


def test_speeds_and_heights_are_found():
    machine, curves = stribeck_speeds(truth(), recorded(0.3), TRUE, BANK)
    for c, speed in TRUE.items():
        print(curves[c].summary(), f"(true {speed})")
        deviation = 0.5 * np.log(curves[c].high / curves[c].low)
        assert abs(np.log(curves[c].speed / speed)) < 3.5 * deviation < 0.2
        assert curves[c].gain_percent > 0.3
    fit = identify(machine, recorded(0.3))
    found = dict(zip(fit.names, fit.values, strict=True))
    assert found["fst_q1"] == pytest.approx(1.5, rel=0.15) and found["fst_q3"] == pytest.approx(0.6, rel=0.15)


@pytest.mark.parametrize("logs", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_the_interval_is_one_deviation(logs):
    """Over 16 logs the error of ln(speed) over half the interval has mean square 1, within chance (± 0.25; of 8 logs ± 0.35)."""
    scores = []
    for seed in range(logs):
        _, curves = stribeck_speeds(truth(), recorded(0.3, seed, 1500), TRUE, BANK)
        for c, speed in TRUE.items():
            scores.append(np.log(curves[c].speed / speed) / (0.5 * np.log(curves[c].high / curves[c].low)))
    print(f"mean square {np.mean(np.square(scores)):.2f}, mean {np.mean(scores):.2f}")
    assert 0.4 < np.mean(np.square(scores)) < 1.8


def test_a_speed_beyond_those_tried_leaves_the_interval_open():
    _, curves = stribeck_speeds(truth(), recorded(0.3), TRUE, [0.3, 0.4, 0.6, 0.8])
    assert curves["q1"].low == 0.0 and curves["q1"].high == pytest.approx(0.3)


def test_the_profile_is_that_of_whole_identifications():
    """The residual of each speed from the bank's factors is that of an identification of a tree with that curve alone."""
    motion = recorded(0.3)
    _, curves = stribeck_speeds(truth(), motion, ["q1"], BANK)
    plain = identify(truth(), motion, diagnose="off")  # without the curve the model is wrong, and would be called so
    weights = {r.row: r.sigma for r in plain.rows}
    machine = truth()
    inertia = {b.name: [machine.parameters[b.parameter(s)] for s in INERTIAL] for b in tree_of(machine).bodies}
    sizes = []
    for speed in curves["q1"].speeds[::4]:
        with_one = vd.Machine.of_bodies(
            tree_of(machine).bodies, inertia=inertia, elements=[*machine.elements, vd.elements.stribeck("q1", speed)]
        )
        fit = identify(with_one, motion, settings=IdentifySettings(sigma=weights), diagnose="off")
        sizes.append(fit.residual_sigma**2)
    assert np.array(curves["q1"].residuals[::4]) / sizes == pytest.approx(
        curves["q1"].residuals[0] / sizes[0], rel=1e-8
    )


def test_known_and_tied_parameters_stay():
    machine = truth().with_parameters(truth().parameters.known(["h_q1"]).tied({"h_q2": "h_q3"}))
    made, _ = stribeck_speeds(machine, recorded(0.3, samples=600), ["q1"], BANK)
    assert made.parameters.states[made.parameters.index("h_q1")] == "known"
    assert made.parameters.ties["h_q2"].to == "h_q3"
    assert made.parameters.names[:-1] == machine.parameters.names


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(IdentificationError, match=r"there is no coordinate 'q9'[\s\S]*three at least"):
        stribeck_speeds(truth(), recorded(0.3), ["q9"], [0.1, 0.2])
    with pytest.raises(IdentificationError, match="there is a Stribeck curve on it already"):
        stribeck_speeds(machine(), recorded(0.3), ["q1"], BANK)
