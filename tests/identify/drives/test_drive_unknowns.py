"""Unknowns of drives with their priors: defaults, deviations of the model file, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import KD, KP, leg

from veridyn.errors import IdentificationError
from veridyn.identify.drives.drive_unknowns import KEYS, check_drives, drive_unknowns, with_drives
from veridyn.model.parameters import Uncertainty


def test_priors_are_stated_or_assumed(tmp_path: Path) -> None:
    machine = with_drives(leg(tmp_path), KP, KD, 1000.0)
    own = machine.controllers[0]
    machine = machine.with_controllers([replace(own, sigma={"kp": 1.0}), *machine.controllers[1:]])
    machine = machine.with_uncertainty(Uncertainty(("Ia_calf",), np.array([[1e-6]])))
    found = {u.name: u for u in drive_unknowns(machine, machine.coordinates, "leg", KEYS)}
    assert found["Ia_calf"].stated and found["Ia_calf"].spread == pytest.approx(1e-3 / 0.01)
    assert not found["Ia_thigh"].stated and found["Ia_thigh"].spread == pytest.approx(math.log(4.0))
    assert found["thigh_drive.kp"].spread == pytest.approx(1.0 / KP) and found["calf_drive.kp"].spread == pytest.approx(
        0.1
    )
    assert found["calf_drive.zero"].spread == 0.02 and found["leg.command_delay"].joints == ("thigh", "calf")
    u = found["thigh_drive.kp"]
    assert u.value(2.0) == pytest.approx(KP * math.exp(0.1)) and u.slope(2.0) == pytest.approx(
        0.05 * KP * math.exp(0.1)
    )
    assert found["leg.command_delay"].lowest == 0.0 and u.lowest == -math.inf


def test_drives_that_are_not_covered_are_refused(tmp_path: Path) -> None:
    machine = with_drives(leg(tmp_path), KP, KD, 1000.0)
    one, other = machine.controllers
    with pytest.raises(IdentificationError, match="feed-forward"):
        check_drives(machine.with_controllers([replace(one, feedforward="gravity"), other]))
    with pytest.raises(IdentificationError, match="different rates"):
        check_drives(machine.with_controllers([replace(one, rate=500.0), other]))
    with pytest.raises(IdentificationError, match="it has no drive"):
        check_drives(machine.with_controllers([one]))
