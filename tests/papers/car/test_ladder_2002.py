"""Every difference between Table 4 and the truth of a simulated car is explained, and vanishes step by step."""

from __future__ import annotations

import numpy as np
import pytest

from papers.car.ladder_2002 import ladder_2002


@pytest.mark.slow
def test_differences_vanish_one_by_one() -> None:
    rungs = ladder_2002(np.random.default_rng(0), quick=True)
    for r in rungs:
        print(f"{r.step}: " + ", ".join(f"{k} {x:.2g}" for k, x in r.errors.items()))
    printed, air, places, work, bent, *simpler = (r.errors for r in rungs)
    assert printed["ks"] > 8.0 and printed["MY6, MZ6"] > 1.0
    assert air["MY6, MZ6"] < 0.6 * printed["MY6, MZ6"]
    assert places["M6"] < 0.1 and places["MY6, MZ6"] < 0.15  # what is left: the road beneath the lasers
    assert places["ks"] > 8.0 and work["ks"] < 2.5  # the work of side forces is in the suspensions' rows
    assert bent["ks"] < 0.2 and bent["h"] < 2.0 and bent["h"] < 0.5 * work["h"]
    assert all(e["ks"] < 0.2 and e["M6"] < 0.1 for e in simpler)
