"""A person who walks over two force plates: total mass from plates and motion, and what is left at the pelvis.

OpenSim's own inverse dynamics of the same trial leaves 0.4 to 1.1 N and 0.2 to 0.6 N·m at the pelvis; the person weighs 72.84 kg.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder

MASS = 72.84


@cache
def walked() -> tuple[vd.Machine, vd.Motion]:
    where = folder("gait_subject01")
    model = vd.files.load_osim(where / "subject01.osim")
    coordinates, plates = vd.files.load_storage(where / "coordinates.sto"), vd.files.load_storage(where / "grf_raw.mot")
    t = coordinates.pop("time")
    q, pose = model.drive(t, coordinates)
    machine = model.machine
    values = {f"q.{c}": q[:, k] for k, c in enumerate(machine.coordinates)}
    units = {
        f"q.{c}": "rad" if kind == "turning" else "m"
        for c, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True)
    }
    motion = vd.motion(
        machine, vd.Experiment.from_arrays(t, values, units, "gait"), vd.Signals(rate=200.0, trim=0.05), pose=pose
    )

    def of(side: str) -> np.ndarray:
        force, centre = (np.column_stack([plates[f"ground_force_{side}_{what}{a}"] for a in "xyz"]) for what in "vp")
        free = np.column_stack([plates[f"ground_torque_{side}_{a}"] for a in "xyz"])
        world = vd.dynamics.pressure_wrench(force, centre, free)
        return np.column_stack([np.interp(motion.t, plates["time"], w) for w in world.T])

    feet = {f"calcn_{side}": of(side) for side in "rl"}
    return machine, vd.dynamics.with_contacts(machine, motion, vd.signals.pose_at(pose, motion.t), feet)


def test_the_model_has_the_person_s_mass() -> None:
    machine, _ = walked()
    assert sum(machine.parameters[b.parameter("M")] for b in machine.links if b.real) == pytest.approx(MASS)


@pytest.mark.parametrize("rows", [("fx", "fy", "fz"), "base"])
def test_the_total_mass_is_within_two_percent(rows: str | tuple[str, ...]) -> None:
    """One unknown: the factor of all masses and inertias."""
    machine, motion = walked()
    p = machine.parameters
    zero = {n: 0.0 for n, v in zip(p.names, p.values, strict=True) if v == 0.0}
    ties = {
        n: vd.model.Tie("M_pelvis", v / p["M_pelvis"])
        for n, v in zip(p.names, p.values, strict=True)
        if v != 0.0 and n != "M_pelvis"
    }
    scaled = machine.with_parameters(p.known(zero).tied(ties))
    fit = vd.identify(scaled, motion, rows=rows, settings=vd.IdentifySettings(sampling=vd.estimators.Sampling(trim=10)))
    found = float(fit.values[0] / p["M_pelvis"] * MASS)
    print(f"gait, rows {rows}: {found:.2f} kg, {100 * (found / MASS - 1):+.3f} %")
    assert found == pytest.approx(MASS, rel=0.02)


def test_little_is_left_at_the_pelvis_with_the_given_masses() -> None:
    machine, motion = walked()
    left = vd.inverse_dynamics(machine, motion, "base")[10:-10]
    rms = np.sqrt((left**2).mean(axis=0))
    own = vd.files.load_storage(folder("gait_subject01") / "inverse_dynamics.sto")
    theirs = [np.sqrt((own[k][20:-20] ** 2).mean()) for k in list(own)[1:7]]
    print(
        f"gait, pelvis: {rms[:3].round(2)} N and {rms[3:].round(2)} N·m; "
        f"OpenSim: {np.round(theirs[3:], 2)} N and {np.round(theirs[:3], 2)} N·m"
    )
    assert rms[:3].max() < 1.1 and rms[3:].max() < 1.5
    unloaded = vd.inverse_dynamics(machine, replace(motion, wrenches={}), "base")
    assert np.abs(unloaded[:, 1]).mean() > 500.0  # so the forces do cancel what the motion asks for


def test_swapped_feet_would_not_do_for_joints_but_for_base_rows() -> None:
    machine, motion = walked()
    total = vd.inverse_dynamics(machine, motion)
    assert np.abs(total[:, :3]).max() < 12.0
    knee = machine.rows.index("knee_angle_r")
    assert 20.0 < np.abs(total[:, knee]).max() < 150.0
