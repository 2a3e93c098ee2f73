"""Faults built into recordings from an independent engine: each found, measured and named; none found where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, walking
from veridyn.errors import IdentificationError
from veridyn.identify.laboratory import Diagnosis, Trial, diagnose
from veridyn.papers.humanoid.log import LOWPASS, SIGMA, Faulty, read, recorded
from veridyn.signals.butterworth import Butterworth

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
