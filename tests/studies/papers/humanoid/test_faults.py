"""One fault at a time, as the report tells it."""

from __future__ import annotations

import numpy as np
import pytest

from machines.humanoid_runs import CAD, bending, walking
from veridyn.studies.papers.humanoid.faults import FAULTS, found

SAID = {
    "nothing": None,
    "plate origin off by (20, −10, 0) mm": "the plate's origin is not where the set-up has it",
    "plate axes x and y swapped": "the plate's axes are swapped",
    "plate 20 ms late": "out of step",
    "encoder of left_ankle +50 mrad": "the encoder of 'left_ankle' reads +",
    "markers lost for 0.5 s": "fewer than three markers",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FAULTS))
def test_each_fault_is_found_and_named_and_nothing_else_is(name: str) -> None:
    runs = {"4 steps": walking(), "bend": bending()}
    said = found(CAD, runs, np.random.default_rng(7), FAULTS[name])
    print(name, "→", said)
    if SAID[name] is None:
        assert said == ()
    elif name.startswith("markers"):
        assert said and all(str(SAID[name]) in text and "1.200 s to 1.698 s" in text for text in said)
    else:
        assert len(said) == 1 and str(SAID[name]) in said[0]
