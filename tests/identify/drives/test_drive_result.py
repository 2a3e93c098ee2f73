"""Replays: rms by joint and time."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.identify.drives.drive_result import DriveReplay


def test_rms_of_a_part() -> None:
    t = np.arange(10.0)
    off = np.stack([np.where(t < 6, 0.0, 3.0), np.where(t < 6, 1.0, 4.0)], axis=1)
    one = DriveReplay(name="x", joints=("a", "b"), t=t, measured=off, simulated=0 * off)
    assert one.rms(6.0) == {"a": 3.0, "b": 4.0} and one.rms(0.0, 6.0) == {"a": 0.0, "b": 1.0}
    assert one.rms_of_all(6.0) == pytest.approx(np.sqrt(12.5))
    with pytest.raises(DataError, match="no samples"):
        one.rms(20.0)
