"""Encoder offsets built into a standing robot's recording, found by soles that stand still; base rows cannot see them."""

from __future__ import annotations

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, bending
from veridyn.errors import IdentificationError
from veridyn.identify.encoders import Offsets, encoder_offsets
from veridyn.identify.laboratory import diagnose
from veridyn.papers.humanoid.log import LOWPASS, SIGMA, Faulty, read, recorded
from veridyn.papers.humanoid.machine import FEET, SOLE, bend
from veridyn.papers.humanoid.walk import SOLE_AXES
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.rotations import Placement

SOLES = {foot: Placement(SOLE_AXES, (SOLE, 0.0, 0.0)) for foot in FEET}


def looked_at(encoder: dict[str, float], seed: int = 0) -> Offsets:
    trial = read(CAD, recorded(CAD, bending(), np.random.default_rng(seed), Faulty(encoder=encoder))).trial
    found = encoder_offsets(CAD, [(trial.motion, trial.pose)], SOLES)
    print(encoder, "→", found.summary())
    return found


def test_exact_angles_have_no_offset_and_exact_offsets_are_found_exactly() -> None:
    plan = bend(CAD)
    motion = plan.motion(CAD)
    clean = encoder_offsets(CAD, [(motion, plan.pose)], SOLES)
    assert np.abs(clean.values).max() < 1e-8 and clean.faulty == ()
    given = np.random.default_rng(0).normal(scale=0.02, size=CAD.n)
    motion.q[:] += given
    found = encoder_offsets(CAD, [(motion, plan.pose)], SOLES)
    assert found.names == CAD.coordinates
    assert found.values == pytest.approx(given, abs=1e-6)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 6))])
def test_a_sound_robot_is_not_accused(seed: int) -> None:
    found = looked_at({}, seed)
    assert found.faulty == () and "no encoder is off" in found.summary()


@pytest.mark.parametrize("joint", CAD.coordinates[:6])
def test_an_offset_of_50_mrad_is_found_at_its_joint(joint: str) -> None:
    found = looked_at({joint: 0.05})
    at = found.names.index(joint)
    assert found.faulty == (joint,)
    assert abs(found.values[at] - 0.05) < 4.0 * found.sigma[at] and found.sigma[at] < 0.005


def test_base_rows_cannot_tell_an_offset() -> None:
    """A turned frame turns its link's parameters: the residual stays what it was."""
    sound, off = (
        diagnose(
            CAD,
            [read(CAD, recorded(CAD, bending(), np.random.default_rng(0), Faulty(encoder=e))).trial],
            SIGMA,
            low=Butterworth(LOWPASS),
            most=1,
        )
        for e in ({}, {"right_foot": 0.05})
    )
    assert off.residual_before == pytest.approx(sound.residual_before, rel=0.05)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(IdentificationError, match="a recording and a sole are needed"):
        encoder_offsets(CAD, [], SOLES)
    plan = bend(CAD)
    with pytest.raises(IdentificationError, match="'toe' is no body"):
        encoder_offsets(CAD, [(plan.motion(CAD), plan.pose)], {"toe": Placement()})
    with pytest.raises(IdentificationError, match="not of the same samples"):
        encoder_offsets(CAD, [(plan.motion(CAD)[:10], plan.pose)], SOLES)
