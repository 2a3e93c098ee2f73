"""A light joint whose large dry friction changes along its way: ticks of the drive are too long for what 0.05 rad/s would ask of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_search import DriveProblem
from veridyn.identify.drives.drive_unknowns import ROUNDED_SPEED, drive_unknowns, rung_terms, with_drives
from veridyn.identify.drives.rounding import rounded_speeds, with_rounding

Array = NDArray[np.float64]
INERTIA, LINK, VISCOUS = 0.004, 0.004, 0.05  # kg m² of the drive and of the link, N m s/rad
DRY, ALONG = 1.6, 2.0  # N m in the middle, and N m/rad along the way
KP, KD, RATE, NOISE = 20.0, 0.6, 1000, 1e-4
TICKS = 6 * RATE


def command() -> Array:
    """Slow and fast reversals about zero, held every 5 ms."""
    t = np.arange(TICKS + 1) / RATE
    path = 0.4 * np.sin(1.3 * t) + 0.3 * np.sin(2.0 * np.pi * 0.9 * t) + 0.05 * np.sin(2.0 * np.pi * 3.0 * t + 0.4)
    return np.repeat(path[::5], 5)[: TICKS + 1]


def moved() -> Array:
    """Coulomb friction by steps of 20 µs: a speed that would turn against it ends there, until the force exceeds friction."""
    q, v, out, parts = 0.0, 0.0, [], 50
    h = 1.0 / (RATE * parts)
    for r in command().tolist():
        out.append(q)
        held = KP * (r - q) - KD * v
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


@pytest.fixture(scope="module")
def log() -> vd.Experiment:
    path = moved()
    values = {
        "command.arm": command()[::5],
        "position.arm": path[::5] + NOISE * np.random.default_rng(4).normal(size=len(path[::5])),
    }
    return vd.Experiment.from_arrays(np.arange(len(path[::5])) * 5 / RATE, values, dict.fromkeys(values, "rad"))


def problem(log: vd.Experiment, machine: vd.Machine) -> DriveProblem:
    machine = with_drives(machine, KP, KD, RATE)
    records = drive_records(machine, log)
    terms = rung_terms(machine, records)
    larger = machine.with_elements([e for _, e in terms])
    base = drive_unknowns(larger, ("arm",), "arm", ("armature", "coulomb"))
    group = DriveGroup(larger, ("arm",), (*base, *(u for u, _ in terms)), (larger,))
    return DriveProblem(group=group, records=records, active=tuple(range(len(base))), weights=np.ones(1))


def test_the_speed_keeps_the_rate_of_friction_below_that_of_ticks(log: vd.Experiment) -> None:
    """v₀ = f_s h/I; where that is below 0.05 rad/s nothing changes."""
    heavy, light = problem(log, servo(1.0)), problem(log, servo(0.4))
    start = heavy.at(np.zeros(len(heavy.unknowns)))
    assert rounded_speeds(heavy, start) == {"arm": pytest.approx(1.0 / RATE / (0.006 + LINK), rel=0.05)}
    assert 0.4 / RATE / (0.006 + LINK) < ROUNDED_SPEED
    same = light.at(np.zeros(len(light.unknowns)))
    assert with_rounding(light, same, light.records) == (light, same, {})


def test_ticks_follow_what_is_rounded_so(log: vd.Experiment) -> None:
    """At the truth the simulation runs away with 0.05 rad/s; with v₀ it follows the encoder, though friction is rounded off below it."""
    q = log["position.arm"].values
    middle = 0.5 * float(q.max() + q.min())
    machine = servo(DRY + ALONG * middle)
    own = problem(log, machine.with_parameters({"Ia": INERTIA, "h": VISCOUS}))
    z = np.zeros(len(own.unknowns))
    wide, _, speeds = with_rounding(own, own.at(z), own.records)
    assert speeds["arm"] > ROUNDED_SPEED
    coulomb = np.std(wide.raw(z))
    k = next(k for k, u in enumerate(own.unknowns) if u.key == "position")
    z[k] = ALONG * 0.5 * np.ptp(q) / own.unknowns[k].spread
    assert not np.isfinite(own.cost(z))
    assert np.std(wide.raw(z)) < 0.25 * coulomb


def test_it_is_found(log: vd.Experiment) -> None:
    drives = vd.estimators.Drives(kp=KP, kd=KD)
    fit = vd.identify(servo(), log, drives)
    assert isinstance(fit, vd.estimators.DrivesFit)
    found = {d.name: d for d in fit.drives}
    half = 0.5 * np.ptp(log["position.arm"].values)
    assert found["fq_arm"].value == pytest.approx(ALONG * half, rel=0.1)
    assert abs(found["arm.command_delay"].value) < 2e-4
    law = next(e for e in fit.machine().elements if e.name == "fq_arm")
    assert "tanh(v/0.05)" not in law.formula
    assert fit.machine().parameters["fq_arm"] == found["fq_arm"].value
