"""Faults built into recordings from an independent engine: each found, measured and named; none found where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, bending, walking
from veridyn.errors import IdentificationError
from veridyn.identify.laboratory import Diagnosis, Offsets, Trial, diagnose, encoder_offsets
from veridyn.papers.humanoid.machine import FEET, SOLE, bend
from veridyn.papers.humanoid.walk import LOWPASS, SIGMA, SOLE_AXES, Faulty, read, recorded
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.rotations import Placement

TURNED = ((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
SWAPPED = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def looked_at(faulty: Faulty, seed: int = 0) -> Diagnosis:
    trial = read(CAD, recorded(CAD, walking(), np.random.default_rng(seed), faulty)).trial
    found = diagnose(CAD, [trial], SIGMA, low=Butterworth(LOWPASS))
    print(faulty, "→", found.summary())
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 6))])
def test_nothing_is_found_in_a_sound_laboratory(seed: int) -> None:
    found = looked_at(Faulty(), seed)
    assert found.faults == () and "nothing wrong was found" in found.summary()
    assert found.residual_before == found.residual_after < 1.0


@pytest.mark.parametrize("late", [0.020, -0.020])
def test_a_plate_out_of_step(late: float) -> None:
    # A sensor cannot be early, so for −20 ms the recording itself is moved.
    trial = read(CAD, recorded(CAD, walking(), np.random.default_rng(0), Faulty(late=max(late, 0.0)))).trial
    if late < 0.0:
        moved = np.stack([np.interp(trial.motion.t - late, trial.motion.t, w) for w in trial.plate.T], axis=1)
        trial = Trial(trial.motion, trial.pose, moved)
    (fault,) = diagnose(CAD, [trial], SIGMA, low=Butterworth(LOWPASS)).faults
    assert fault.kind == "late" and fault.size[0] == pytest.approx(late, abs=0.002)
    assert ("late" if late > 0 else "early") in fault.text


def test_a_plate_whose_origin_is_off() -> None:
    (fault,) = looked_at(Faulty(shift=(0.02, -0.01, 0.0))).faults
    assert fault.kind == "origin"
    assert fault.size == pytest.approx((0.02, -0.01, 0.0), abs=0.005)
    off = (np.array(fault.size) - (0.02, -0.01, 0.0)) / np.array(fault.sigma)
    assert np.abs(off).max() < 4.0


@pytest.mark.parametrize(
    ("axes", "text"), [(SWAPPED, "what is called y is x, what is called x is y"), (TURNED, "what is called y is -x")]
)
def test_a_plate_with_swapped_axes(axes: tuple, text: str) -> None:
    found = looked_at(Faulty(axes=axes))
    assert found.faults[0].kind == "axes" and text in found.faults[0].text
    assert np.array(found.faults[0].size).reshape(3, 3) @ np.array(axes) == pytest.approx(np.eye(3))
    assert len(found.faults) == 1 and found.residual_after < 0.1 * found.residual_before


def test_two_faults_at_once_are_both_found() -> None:
    found = looked_at(Faulty(late=0.02, shift=(0.03, 0.0, 0.0)))
    assert {s.kind for s in found.faults} == {"late", "origin"}


def test_what_cannot_be_looked_at_is_refused() -> None:
    trial = read(CAD, recorded(CAD, walking(), np.random.default_rng(0))).trial
    with pytest.raises(IdentificationError) as error:
        diagnose(CAD, [Trial(trial.motion, trial.pose, trial.plate[:5])], {})
    assert "not of the same samples" in str(error.value) and "needs a positive deviation" in str(error.value)
    with pytest.raises(IdentificationError, match="no recording"):
        diagnose(CAD, [], SIGMA)


SOLES = {foot: Placement(SOLE_AXES, (SOLE, 0.0, 0.0)) for foot in FEET}


def soles_looked_at(encoder: dict[str, float], seed: int = 0) -> Offsets:
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
    found = soles_looked_at({}, seed)
    assert found.faulty == () and "no encoder is off" in found.summary()


@pytest.mark.parametrize("joint", CAD.coordinates[:6])
def test_an_offset_of_50_mrad_is_found_at_its_joint(joint: str) -> None:
    found = soles_looked_at({joint: 0.05})
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
