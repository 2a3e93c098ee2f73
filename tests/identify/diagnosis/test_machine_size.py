"""What a machine of another size leaves in a log, against Pinocchio and as a damage that is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify.smooth_arm import clean, drawn, forces, noisy, truth
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import IdentificationWarning
from veridyn.identify.diagnosis.machine_size import size_slopes
from veridyn.identify.diagnosis.signatures import find_damages
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.transforms import Placement

HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})


def larger(share: float) -> Machine:
    """The true arm with every joint that much farther from the one before it."""
    return scaled(truth(), 1.0 + share)


def scaled(machine: Machine, factor: float) -> Machine:
    joints = []
    for joint in machine.joints:
        before, _ = machine.ends(joint)
        place = Placement(before.placement.rotation, factor * before.placement.position)
        joints.append(replace(joint, a=replace(before, placement=place)))
    return replace(machine, joints=tuple(joints))


def recorded(share: float) -> Motion:
    """With a tenth of the noise that this arm has otherwise, which would hide such sizes."""
    m = noisy(np.random.default_rng(11))
    return replace(m, forces=0.1 * (forces(m) - forces(clean())) + inverse_dynamics(larger(share), clean()))


def test_slopes_are_those_of_pinocchio() -> None:
    m, h = clean(200), 1e-4
    ahead, back = (PinModel(larger(x)).inverse_dynamics(m) for x in (h, -h))
    machine = truth()
    found = size_slopes(machine, machine.parameters.values, m, machine.coordinates, inverse_dynamics(machine, m))
    assert found == pytest.approx((ahead - back) / (2.0 * h), abs=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("share", [0.1, -0.05])
def test_a_machine_of_another_size_is_named(share: float) -> None:
    """With its size, to first order; links as long as the model's raise nothing (test_signatures)."""
    motion = recorded(share)
    fit = vd.identify(drawn(), motion, sampling=HOW, diagnose="off")
    best = find_damages(fit, [motion], HOW)[0][0]
    assert best.kind == "machine size"
    assert abs(best.size - share) < 4.0 * best.sigma + 0.35 * abs(share)
    with pytest.warns(IdentificationWarning, match="these bodies sit elsewhere"):
        vd.identify(drawn(), motion, sampling=HOW)


def test_a_model_ten_times_too_large_is_named_by_the_weights_it_predicts() -> None:
    """Its parameters shrink until it fits nearly as well, and the column of its size is theirs to explain."""
    machine = drawn()
    large = scaled(machine, 10.0)
    with pytest.warns(
        IdentificationWarning, match=r"(?s)a small part of the weights that the model's own values predict.*q2 0\."
    ):
        vd.identify(large, noisy(np.random.default_rng(11)), sampling=HOW)
