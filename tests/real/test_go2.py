"""A real quadruped in the air (Unitree Go2, iit-DLSLab), encoders only: drives fitted on 16 s, simulated on to the end of the log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import veridyn as vd
from real_logs import folder
from veridyn.cli.app import app
from veridyn.studies.config.identify_sections import DrivesFile
from veridyn.studies.config.study import load_study

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
    # Four drives of one kind. Without forces the log determines armature over kp, which scale together with friction; armature alone takes
    # its scale from the prior of kp, and is compared by its deviations: χ² of 3 degrees of freedom, at 1 %. Found: 0.22 and 6.2.
    legs = ("FL", "FR", "RL", "RR")
    ratios = [fit[f"Ia_{leg}_calf_joint"].value / fit[f"{leg}_calf_joint_drive.kp"].value for leg in legs]
    assert np.ptp(ratios) < 0.3 * np.mean(ratios)
    armature, sigma = np.array([[(x := fit[f"Ia_{leg}_calf_joint"]).value, x.sigma] for leg in legs]).T
    mean = np.average(armature, weights=sigma**-2)
    assert np.sum(((armature - mean) / sigma) ** 2) < 11.3
    assert any("kd" in one.text for one in fit.open)


@pytest.mark.filterwarnings("ignore:.*of <sensor> is not read")
def test_a_study_is_written_from_the_log(tmp_path: Path) -> None:
    """Its owners state kp 20 and kd 1.5; the guess from the masses of the MJCF file comes within the prior's two deviations."""
    data, study = folder("go2"), tmp_path / "study.yaml"
    files = [str(data / "go2.xml"), str(data / "encoders.csv")]
    done = CliRunner().invoke(app, ["new", *files, "--out", str(study)])
    assert done.exit_code == 0, done.output
    read = load_study(study, "identify").study
    assert isinstance(read, DrivesFile) and read.model.base == "fixed" and len(read.log.columns) == 24
    assert read.drives.kp == pytest.approx(20.0, rel=0.2) and read.drives.kd == pytest.approx(1.5, rel=0.2)
    assert read.drives.until == 16.0
