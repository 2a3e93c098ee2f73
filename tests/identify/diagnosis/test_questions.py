"""Causes that are asked at all places of a machine together."""

from __future__ import annotations

from benchmarks.damage import untold
from benchmarks.damage.foreign import case
from benchmarks.damage.score import damaged
from benchmarks.damage.world import machine_of

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


def test_friction_by_the_load_of_gears_is_asked_at_motors() -> None:
    """A twentieth at every motor of a machine of which two turn two joints: too little at any one, and not at joints and motors both."""
    found = untold.run("load friction", 6412, "fast")
    assert found.wrong and found.first, found


def test_steps_of_friction_are_seen_from_one_sample_to_the_next() -> None:
    """Load-dependent friction that shows by six deviations, half of them in some reversals, under noise that lasts twenty samples."""
    bench, damage = case("load-dependent friction", 9220)
    answer = bench.identified(*damaged(bench, damage, 0.067), "fast")
    assert [(f.cause, f.place) for f in answer.findings] == [("load-dependent friction", "q1")]
    assert not bench.good("fast").said


def test_a_rotor_that_a_geared_machine_must_have_is_named_where_the_log_cannot_show_it() -> None:
    """Rotors of a machine with gears, all but those that are one with their bodies, are not in its model: parameters are off by 20 of their
    deviations, and the residual shows 2. A model without gears is not asked, and one that states its rotors is not either."""
    found = untold.run("rotor", 6404, "fast")
    assert found.worst > 10.0 and found.first, found
    _, bench, damage = untold.prepared("rotor", 6404)
    log, bare = damaged(bench, damage, 1.0)
    answer = bench.identified(log, bare, "fast").findings[0]
    assert answer.cause == "rotor inertia" and "neither shows nor excludes" in str(answer)
    told = bench.identified(log, machine_of("geared"), "fast")
    assert not told.findings and told.fit is not None
