"""Groups of joints, and what their encoders would read: derivatives by every unknown against central differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.identify.drives.mujoco_leg import KD, KP, leg, recorded

import veridyn as vd
from veridyn.identify.drives.drive_group import DriveGroup, groups_of_joints, label_of
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_unknowns import (
    KEYS,
    LOAD,
    drive_unknowns,
    load_terms,
    rung_terms,
    start_unknowns,
    with_drives,
)


def test_branches_from_the_ground_are_groups(tmp_path: Path) -> None:
    machine = leg(tmp_path)
    assert groups_of_joints(machine) == (("thigh", "calf"),)
    two = (tmp_path / "leg.xml").read_text()
    first = two[two.index('<body name="thigh"') : two.index("</worldbody>")]
    second = first.replace('"thigh"', '"thigh2"').replace('"calf"', '"calf2"')
    file = tmp_path / "two.xml"
    file.write_text(
        two.replace("</worldbody>", second + "</worldbody>").replace("<actuator>", "<actuator><motor joint='thigh2'/>")
    )
    assert groups_of_joints(vd.load_model(file, base="fixed")) == (("thigh", "calf"), ("thigh2", "calf2"))
    assert label_of(("FL_hip", "FL_calf")) == "FL" and label_of(("hip", "calf")) == "hip"


@pytest.mark.parametrize(
    ("rule", "further", "off"),
    [
        # Instants of stops are found to 1e-9 of the speeds, which differences over 2e-6 enlarge.
        ("midpoint", {"position_3": 0.0, "position_4": 0.0}, 2e-4),
        # At a stop derivatives are those of the motion, differences those of steps that end there: they agree as well as a rule of
        # order 4 follows friction that changes steeply with the speed, and of order 2 worse, by up to 8e-3 of backdrive_friction.
        ("RK4", {}, 5e-5),
        ("RK4", {"load_friction": 0.15, "backdrive_friction": 0.1}, 5e-5),
    ],
)
def test_derivatives_are_those_of_differences(
    rule: str, further: dict[str, float], off: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all constants of drives, all terms of friction and the start, along half a second in which both joints reverse."""
    monkeypatch.setattr("veridyn.identify.drives.drive_group.RULE", rule)
    machine = with_drives(leg(tmp_path), KP, KD, 1000.0)
    record = drive_records(machine, recorded(1.2))[0].cut(100, 240)
    terms = rung_terms(machine, [record])
    larger = machine.with_elements([e for _, e in terms])
    unknowns = (*drive_unknowns(larger, machine.coordinates, "leg", KEYS), *(u for u, _ in terms))
    unknowns += start_unknowns(machine.coordinates, [record])
    unknowns += load_terms(machine, machine.coordinates) if rule == "RK4" else ()
    group = DriveGroup(larger, machine.coordinates, unknowns)
    start = {"command_delay": 0.0031, "measurement_delay": 0.0017, "zero": 0.01, **dict.fromkeys(LOAD, 0.0), **further}
    x = np.array([start.get(u.key, 0.02 if u.prior == 0.0 else u.prior) for u in unknowns])
    _, J = group.simulate(record, x)
    for k, u in enumerate(unknowns):
        ends = []
        for way in (1e-6, -1e-6):
            there = x.copy()
            there[k] += way
            ends.append(group.simulate(record, there, False)[0])
        slope = (ends[0] - ends[1]) / 2e-6
        assert np.abs(J[:, :, k] - slope).max() < off * np.abs(slope).max() + 1e-6, u.name
