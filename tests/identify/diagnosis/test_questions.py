"""Causes that are asked at all places of a machine together."""

from __future__ import annotations

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.identify.diagnosis.signatures import examine
from veridyn.identify.regression.sampling import Sampling


def test_what_every_gear_has_a_little_of_is_seen_in_all_of_them_together() -> None:
    """Some three deviations of load-dependent friction at each of three joints: too little at any of them."""

    def everywhere(x: u.Machinery, _j: int, size: float) -> None:
        for j, share in enumerate((1.3, 0.85, 1.9)):
            u.load_friction(x, j, size * share)

    robot, log = machine(u.four_joints()), u.untold(everywhere, 0, 0.0013, 100).log
    motion = vd.motion(robot, log, vd.Signals(lowpass=20.0, trim=0.2))
    first = examine(vd.identify(robot, motion, diagnose="off"), [motion], Sampling()).found[0][0]
    assert first.kind == "load-dependent friction" and first.also
    assert {first.where, *first.also} <= {"q1", "q2", "q3", "q4"}
    assert first.evidence > 15.0 and 0.0 < first.sigma < first.size
