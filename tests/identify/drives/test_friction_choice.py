"""A joint whose dry friction changes along the way is found out; the other keeps one number. A light joint is no exception."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.identify.drives.mujoco_leg import KD, KP, leg, recorded

import veridyn as vd
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_unknowns import rung_terms, with_drives

Array = NDArray[np.float64]
INERTIA, LINK, VISCOUS = 0.004, 0.004, 0.05  # kg m² of the drive and of the link, N m s/rad
DRY, ALONG = 1.6, 2.0  # N m in the middle, and N m/rad along the way
SERVO_KP, SERVO_KD, RATE, NOISE = 20.0, 0.6, 1000, 1e-4
TICKS = 6 * RATE


def servo_command() -> Array:
    """Slow and fast reversals about zero, held every 5 ms."""
    t = np.arange(TICKS + 1) / RATE
    path = 0.4 * np.sin(1.3 * t) + 0.3 * np.sin(2.0 * np.pi * 0.9 * t) + 0.05 * np.sin(2.0 * np.pi * 3.0 * t + 0.4)
    return np.repeat(path[::5], 5)[: TICKS + 1]


def moved() -> Array:
    """Coulomb friction by steps of 20 µs: a speed that would turn against it ends there, until the force exceeds friction."""
    q, v, out, parts = 0.0, 0.0, [], 50
    h = 1.0 / (RATE * parts)
    for r in servo_command().tolist():
        out.append(q)
        held = SERVO_KP * (r - q) - SERVO_KD * v
        for _ in range(parts):
            push, dry = held - VISCOUS * v, DRY + ALONG * q
            if v == 0.0:
                new = h * max(abs(push) - dry, 0.0) * np.sign(push) / (INERTIA + LINK)
            else:
                new = v + h * (push - dry * np.sign(v)) / (INERTIA + LINK)
                new = new if new * v > 0.0 else 0.0
            q, v = q + 0.5 * h * (v + new), new
    return np.array(out)


def servo(dry: float = 1.0) -> vd.Machine:
    elements = [
        vd.elements.motor_inertia("arm", 0.006, "Ia"),
        vd.elements.damper("arm", 0.1, "h"),
        vd.elements.coulomb("arm", dry, "fs"),
    ]
    return vd.Machine.of_bodies(
        [vd.model.Body("arm")],
        name="servo",
        gravity=(0.0, 0.0, 0.0),
        inertia={"arm": [LINK, 0, 0, LINK, 0, LINK, 0, 0, 0, 0.2]},
        elements=elements,
    )


def servo_log() -> vd.Experiment:
    path = moved()
    values = {
        "command.arm": servo_command()[::5],
        "position.arm": path[::5] + NOISE * np.random.default_rng(4).normal(size=len(path[::5])),
    }
    return vd.Experiment.from_arrays(np.arange(len(path[::5])) * 5 / RATE, values, dict.fromkeys(values, "rad"))


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
    assert kept == [("calf", "position")]
    ways = [np.ptp(x.position[:, 1]) for x in (drive_records(machine, made)[0], record)]
    assert fit["fq_calf"].value == pytest.approx(0.1 * ways[0] / ways[1], rel=0.05)
    assert fit.machine().parameters["fq_calf"] == fit["fq_calf"].value


def test_friction_along_the_way_of_a_light_joint() -> None:
    """It holds: a joint that large friction stops within a tick of its drive follows, and its numbers are found."""
    log = servo_log()
    fit = vd.identify(servo(), log, vd.estimators.Drives(kp=SERVO_KP, kd=SERVO_KD))
    assert isinstance(fit, vd.estimators.DrivesFit)
    q = log["position.arm"].values
    half, middle = 0.5 * np.ptp(q), 0.5 * (q.max() + q.min())
    found = {d.name: d for d in fit.drives}
    assert abs(found["fq_arm"].value - ALONG * half) < 3.0 * found["fq_arm"].sigma
    assert abs(found["fs"].value - (DRY + ALONG * middle)) < 3.0 * found["fs"].sigma
    assert found["fq_arm"].value == pytest.approx(ALONG * half, rel=0.02)
    assert found["Ia"].value == pytest.approx(INERTIA, rel=0.1)
    assert abs(found["arm.command_delay"].value) < 1e-4
    assert fit.machine().parameters["fq_arm"] == found["fq_arm"].value
