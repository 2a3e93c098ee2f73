"""Speeds of Stribeck curves: found to within their intervals, from the small factors, against a search by whole identifications."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import NOISE, clean, truth
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.friction.stribeck import stribeck_speeds
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.spatial.inertia import INERTIAL

TRUE = {"q1": 0.25, "q3": 0.6}  # rad/s
BANK = np.geomspace(0.03, 3.0, 9)


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


def test_the_interval_is_one_deviation():
    """Over 16 logs the error of ln(speed) over half the interval has mean square 1, within chance (± 0.25)."""
    scores = []
    for seed in range(16):
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
