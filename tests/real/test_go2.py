"""A real quadruped in the air (Unitree Go2, iit-DLSLab), encoders only: drives fitted on 16 s, simulated on to the end of the log."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder

# MuJoCo and SciPy with the same priors and one Coulomb number a joint: 0.0082 rad held out, 0.0188 with the file's values.
PEER, LIMIT = 0.0082, 0.0078


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*of <sensor> is not read")
def test_drives_of_a_quadruped() -> None:
    data = folder("go2")
    robot = vd.load_model(data / "go2.xml", base="fixed")
    log = vd.load_log(data / "encoders.csv")
    fit = vd.identify(robot, log, vd.estimators.Drives(kp=20.0, kd=1.5, until=16.0))
    assert isinstance(fit, vd.estimators.DrivesFit)
    assert fit.rms_held_out <= LIMIT < PEER
    assert fit.rms_held_out_defaults == pytest.approx(0.0188, rel=0.03)
    for d in fit.drives:
        if d.key in ("armature", "viscous", "coulomb", "kp", "kd"):
            assert d.value > 0.0, d.name
        if d.key == "zero":
            assert abs(d.value) < 0.1, d.name
        if d.key == "command_delay":
            assert 0.0 <= d.value < 0.01
    calves = [fit[f"Ia_{leg}_calf_joint"].value for leg in ("FL", "FR", "RL", "RR")]
    assert np.ptp(calves) < 0.3 * np.mean(calves)  # four drives of one kind
    assert any("kd" in one.text for one in fit.open)
