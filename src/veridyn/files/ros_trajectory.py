"""A motion as the text of a ROS message trajectory_msgs/JointTrajectory, written without ROS: YAML that is also one point a line.

The names are those of ROS 2: header.stamp and time_from_start have sec and nanosec. Positions in rad or m, velocities and accelerations per
second and second squared, efforts in N*m or N; an empty list where none are known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def joint_trajectory(
    names: Sequence[str], t: Array, q: Array, qd: Array, qdd: Array, effort: Array | None = None
) -> str:
    """The message of samples (N,) and (N, n) of the joints `names`."""
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        f"joint_names: {json.dumps(list(names))}",
        "points:",
    ]
    for k, time in enumerate(t):
        sec, nanosec = divmod(round(1e9 * float(time)), 1_000_000_000)
        forces = "[]" if effort is None else _listed(effort[k])
        lines.append(
            f"- {{positions: {_listed(q[k])}, velocities: {_listed(qd[k])}, accelerations: {_listed(qdd[k])}, effort: {forces}, "
            f"time_from_start: {{sec: {sec}, nanosec: {nanosec}}}}}"
        )
    return "\n".join(lines) + "\n"


def _listed(values: Array) -> str:
    """Numbers with a decimal point, which YAML 1.1 needs to read them as floats: 1e-05 without one is text."""
    return "[" + ", ".join(f"{v:.9f}" for v in values) + "]"
