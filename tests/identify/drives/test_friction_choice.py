"""A joint whose dry friction changes along the way is found out; the other keeps one number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import KD, KP, leg, recorded

import veridyn as vd
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_unknowns import rung_terms, with_drives


def test_friction_along_the_way_is_chosen(tmp_path: Path) -> None:
    machine = with_drives(leg(tmp_path), KP, KD, 1000.0)
    log = recorded(6.0)
    record = drive_records(machine, log)[0]
    terms = rung_terms(machine, [record])
    rubbing = machine.with_elements([replace(e, value=0.1) for u, e in terms if u.name == "fq_calf"])
    read, _ = DriveGroup(rubbing, machine.coordinates, ()).simulate(record, np.zeros(0), False)
    read = read + 1e-4 * np.random.default_rng(3).normal(size=read.shape)
    made = log.replacing(*(replace(log[f"position.{c}"], values=read[:, k]) for k, c in enumerate(machine.coordinates)))
    drives = vd.estimators.Drives(kp=KP, kd=KD, estimate=("armature", "viscous", "coulomb", "zero"))
    fit = vd.identify(machine, made, drives)
    assert isinstance(fit, vd.estimators.DrivesFit)
    kept = [(t.joint, t.term) for t in fit.terms if t.kept]
    # The middle of the way differs a little from that of the truth: what is left is rounded off at low speed as no Coulomb friction is.
    assert kept[0] == ("calf", "position") and {joint for joint, _ in kept} == {"calf"}
    ways = [np.ptp(x.position[:, 1]) for x in (drive_records(machine, made)[0], record)]
    assert fit["fq_calf"].value == pytest.approx(0.1 * ways[0] / ways[1], rel=0.05)
    assert fit.machine().parameters["fq_calf"] == fit["fq_calf"].value
