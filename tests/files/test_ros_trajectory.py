"""The text of a trajectory message, read back by a YAML reader."""

from __future__ import annotations

import numpy as np
import pytest
from ruamel.yaml import YAML

from veridyn.files.ros_trajectory import joint_trajectory


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_a_message_is_read_back(version: tuple[int, int]) -> None:
    """Fields of trajectory_msgs/JointTrajectory; numbers stay numbers in YAML 1.1 too, the times add up."""
    rng = np.random.default_rng(0)
    t = np.arange(130) / 100.0
    q, qd, qdd, effort = (rng.normal(size=(130, 2)) * 10.0 ** rng.integers(-9, 2, (130, 2)) for _ in range(4))
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    said = reader.load(joint_trajectory(("a", "yes"), t, q, qd, qdd, effort))
    assert list(said) == ["header", "joint_names", "points"] and said["joint_names"] == ["a", "yes"]
    assert said["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    points = said["points"]
    assert list(points[0]) == ["positions", "velocities", "accelerations", "effort", "time_from_start"]
    for key, values in (("positions", q), ("velocities", qd), ("accelerations", qdd), ("effort", effort)):
        assert np.array([p[key] for p in points], dtype=np.float64) == pytest.approx(values, abs=1e-9)
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    assert times == pytest.approx(t) and all(isinstance(p["time_from_start"]["sec"], int) for p in points)


def test_without_efforts_the_list_is_empty() -> None:
    one = np.ones((1, 1))
    said = YAML(typ="safe").load(joint_trajectory(("a",), np.zeros(1), one, one, one))
    assert said["points"][0]["effort"] == []
