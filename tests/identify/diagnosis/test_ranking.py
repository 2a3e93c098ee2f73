"""Which cause comes first where several explain a log: structure before sensors, the simpler of two that contain each other, and ties."""

from __future__ import annotations

import pytest

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.identify.diagnosis.causes import Damage
from veridyn.identify.diagnosis.signatures import examine
from veridyn.identify.regression.sampling import Sampling


def groups(change: u.Change, j: int, size: float, seed: int = 100) -> list[list[Damage]]:
    robot, log = machine(u.four_joints()), u.untold(change, j, size, seed).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    return examine(vd.identify(robot, motion, diagnose="off"), [motion], Sampling()).found


def test_an_offset_is_named_before_friction_of_which_it_is_a_part() -> None:
    """Dry friction that differs with direction is an offset: where nothing of its viscous part is seen, the offset is the simpler cause."""
    first = groups(u.offset_force, 2, 0.3)[0]
    assert (first[0].kind, first[0].where) == ("force offset", "q3")
    assert abs(first[0].size - 0.3) < 4.0 * first[0].sigma
    assert ("asymmetric friction", "q3") in {(d.kind, d.where) for d in first}


@pytest.mark.parametrize("seconds", [0.02, 0.05])
def test_a_low_pass_is_no_delay_where_the_motion_is_fast_enough(seconds: float) -> None:
    first = groups(u.low_passed_force, 2, seconds)[0]
    assert ("low-pass of the force", "q3") in {(d.kind, d.where) for d in first}
    assert {d.kind for d in first} <= {"low-pass of the force", "late force"}


@pytest.mark.parametrize("deflection", [0.002, 0.006])
def test_bristles_that_yield_are_no_delay(deflection: float) -> None:
    """LuGre friction, integrated by SciPy: its dry friction is that of the arm, to a tenth at the nearest distance of the grid."""
    found = groups(u.bristles, 2, deflection, 102)
    assert [(d.kind, d.where) for d in (g[0] for g in found)] == [("friction that yields", "q3")]
    assert abs(found[0][0].size - u.four_joints()[2].coulomb) < 0.1 * u.four_joints()[2].coulomb


@pytest.mark.parametrize("seconds", [0.02, 0.05])
def test_a_delay_is_no_friction_that_yields(seconds: float) -> None:
    """Its smooth part is late as well; the size is known to a fifth, the grid's deviation."""
    found = groups(u.late_force, 2, seconds, 102)
    assert [(d.kind, d.where) for d in (g[0] for g in found)] == [("late force", "q3")]
    assert abs(found[0][0].size - seconds) < 0.2 * seconds


def test_what_was_found_is_not_named_again() -> None:
    found = groups(u.rotor, 3, 0.2)
    names = [(d.kind, d.where) for group in found for d in group]
    assert names[0] == ("rotor inertia", "q4") and len(set(names)) == len(names)
