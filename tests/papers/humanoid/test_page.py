"""The robot as lines. The page itself is made, from a whole study, in tests/studies/test_humanoid.py."""

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, swinging
from veridyn.papers.humanoid.machine import HIP, SHANK, THIGH
from veridyn.papers.humanoid.page import moving


def test_the_lines_are_as_long_as_the_robot_s_limbs_in_every_frame() -> None:
    drawn = moving(CAD, swinging(), "swing")
    layer = drawn.layers[0]
    points = np.asarray(layer.points)
    length = {s: np.linalg.norm(points[:, s[0]] - points[:, s[1]], axis=1) for s in layer.segments}
    for one in length.values():
        assert np.ptp(one) < 1e-9  # rigid
    hips = [s for s, one in length.items() if one[0] == pytest.approx(HIP)]
    limbs = sorted(round(float(one[0]), 6) for one in length.values())
    assert len(hips) == 2 and limbs.count(THIGH) + limbs.count(SHANK) >= 4
    assert drawn.title == "swing" and points[:, :, 2].min() > 0.0  # the pedestal lifts both feet
