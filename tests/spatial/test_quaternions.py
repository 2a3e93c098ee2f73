"""Quaternions of rotation matrices."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_rotation
from veridyn.spatial.quaternions import quaternion
from veridyn.spatial.rotations import matrix_of


def test_quaternions_of_all_branches() -> None:
    rng = np.random.default_rng(3)
    halves = [np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])]
    for R in [*halves, *(random_rotation(rng) for _ in range(30))]:
        assert matrix_of(quaternion(R)) == pytest.approx(R, abs=1e-12)
