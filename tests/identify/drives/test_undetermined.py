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
