"""What a log does not show of drives, in words."""

from __future__ import annotations

import numpy as np

from veridyn.identify.drives.drive_unknowns import DriveUnknown
from veridyn.identify.drives.undetermined import open_directions


def unknown(key: str, joint: str) -> DriveUnknown:
    return DriveUnknown(name=f"{joint}.{key}", key=key, joints=(joint,), unit="", prior=1.0, spread=1.0, scales=True)


def test_directions_are_named_joint_by_joint() -> None:
    own = [unknown(key, joint) for joint in ("hip", "calf") for key in ("kp", "kd", "viscous", "zero")]
    C = np.diag([0.01, 0.45, 0.45, 0.02, 0.04, 0.1, 0.1, 0.9])
    C[1, 2] = C[2, 1] = -0.44  # only their sum is seen
    found = open_directions(own, C)
    assert [set(one.names) for one in found] == [{"hip.kd", "hip.viscous"}, {"calf.zero"}]
    assert "kd and viscous friction of hip" in found[0].text or "viscous friction and kd of hip" in found[0].text
    assert "94 %" in found[0].text and "another kd" in found[0].text  # √0.89
    assert "encoder zero of calf" in found[1].text and "95 %" in found[1].text  # √0.9


def test_none_that_is_not_determined_is_left_out() -> None:
    """An unknown whose variance is spread over three directions owes none of them half of it."""
    own = [unknown(key, "calf") for key in ("kp", "kd", "viscous", "zero")]
    V = np.eye(4)
    V[:, 0] = [0.577, -0.577, 0.577, 0.0]
    V[:, 1] = [0.577, 0.789, 0.211, 0.0]
    V[:3, 2] = np.cross(V[:3, 0], V[:3, 1])
    Q, _ = np.linalg.qr(V)
    C = Q @ np.diag([0.9, 0.8, 0.7, 0.01]) @ Q.T
    assert (np.array([0.9, 0.8, 0.7]) * Q[0, :3] ** 2 < 0.5 * C[0, 0]).all()  # kp
    named = {name for one in open_directions(own, C) for name in one.names}
    assert named == {"calf.kp", "calf.kd", "calf.viscous"}
