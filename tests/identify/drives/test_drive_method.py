"""Runs with other gains and loads in one fit: what one of them leaves open, both determine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import KD, KP, TRUTH, leg, recorded

import veridyn as vd
from veridyn.errors import IdentificationError
from veridyn.identify.drives.drive_method import DriveRun, machines_of_runs

OTHER_KD, LOADED = 2.0, 0.6  # N*m*s/rad, kg


def test_a_run_with_another_kd_and_load_determines_kd_and_viscous_friction(tmp_path: Path) -> None:
    """While commands are held only kd + h acts; the true kd is that of the configuration, and the truth is MuJoCo's."""
    machine = leg(tmp_path)
    first, second = recorded(5.0), recorded(5.0, 1, kd=OTHER_KD, mass=LOADED)
    drives = vd.estimators.Drives(kp=KP, kd=KD, friction="coulomb")
    alone = vd.identify(machine, first, drives)
    runs = (DriveRun(), DriveRun(kd=OTHER_KD, machine=leg(tmp_path, LOADED)))
    both = vd.identify(machine, [first, second], replace(drives, runs=runs))
    assert isinstance(alone, vd.estimators.DrivesFit) and isinstance(both, vd.estimators.DrivesFit)
    for n, joint in enumerate(("thigh", "calf")):
        name = f"{joint}_drive.kd"
        assert not alone.drive(name).determined and both.drive(name).determined
        assert any(name in one.names and f"h_{joint}" in one.names for one in alone.open)
        assert any("record a run with another kd" in one.text for one in alone.open)
        # MuJoCo's friction creeps: 3 % of kd, and what it lacks is found in h.
        assert both[name].value == pytest.approx(KD, rel=0.03)
        assert both[f"h_{joint}"].value == pytest.approx(TRUTH[f"h{n}"], abs=0.03)
        assert both[f"Ia_{joint}"].value == pytest.approx(TRUTH[f"i{n}"], rel=0.04)
    assert not any("kd" in one.text for one in both.open)


def test_gains_and_machines_of_runs(tmp_path: Path) -> None:
    machine = leg(tmp_path)
    machines = machines_of_runs(machine, (DriveRun(), DriveRun(kp=30.0)), 2, KP, KD, 1000.0)
    gains = [[(c.constant("kp"), c.constant("kd")) for c in m.controllers] for m in machines]
    assert gains == [[(KP, KD)] * 2, [(30.0, KD)] * 2]
    with pytest.raises(IdentificationError, match="not as many runs as logs"):
        machines_of_runs(machine, (DriveRun(),), 2, KP, KD, 1000.0)
    with pytest.raises(IdentificationError, match="kd is not above zero"):
        vd.estimators.Drives(kp=KP, runs=(DriveRun(kd=-1.0),)).check()
    other = machine.with_elements([vd.elements.spring("calf", np.nan)])
    with pytest.raises(IdentificationError, match="other joints, links or elements"):
        machines_of_runs(machine, (DriveRun(), DriveRun(machine=other)), 2, KP, KD, 1000.0)
