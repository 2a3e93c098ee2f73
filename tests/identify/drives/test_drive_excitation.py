"""Designed commands of a leg: smaller deviations than those of a chirp, limits that another simulator confirms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import IdentificationError
from veridyn.estimators import DriveExcitation, DrivePlan, DriveRange, design_drive_commands
from veridyn.machines.leg import leg

RANGES = {
    "thigh": DriveRange(low=0.2, high=1.6, speed=12.0, force=12.0),
    "calf": DriveRange(low=-2.2, high=-1.0, speed=12.0, force=12.0),
}


SECONDS = 5.0


def designed(ask: tuple[str, ...], tries: int = 30, seed: int = 0, seconds: float = SECONDS) -> DrivePlan:
    how = DriveExcitation(ask=ask, tries=tries, duration=seconds)
    return design_drive_commands(leg(), RANGES, how, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def plan() -> DrivePlan:
    return designed(("kp", "armature"))


@pytest.mark.slow
def test_longer_commands() -> None:
    longer = designed(("kp", "armature"), seconds=8.0)
    test_what_is_asked_for_becomes_surer_than_by_a_chirp(longer)
    test_limits_are_kept_in_another_simulation(longer)


def test_what_is_asked_for_becomes_surer_than_by_a_chirp(plan: DrivePlan) -> None:
    """The product of the asked deviations is what is made small; a chirp within the same limits is one of the candidates."""
    asked = [n for n in plan.numbers if n.asked]
    assert {n.key for n in asked} == {"kp", "armature"} and len(asked) == 4
    ratio = np.exp(np.mean([np.log(n.sigma / n.plain_sigma) for n in asked]))
    assert ratio < 0.95
    assert all(n.sigma <= n.prior_sigma * (1.0 + 1e-9) for n in plan.numbers)
    assert any("kd and viscous" in str(one) for one in plan.open)  # no motion separates them while commands are held


def test_other_numbers_ask_for_other_commands(plan: DrivePlan) -> None:
    other = designed(("zero",))
    assert {n.key for n in other.numbers if n.asked} == {"zero"}
    assert np.exp(np.mean([np.log(n.sigma / n.plain_sigma) for n in other.numbers if n.asked])) < 0.95
    assert not np.array_equal(other.command, plan.command)


def test_the_same_generator_gives_the_same_plan() -> None:
    one, two = (designed(("kp",), tries=2, seed=5) for _ in range(2))
    assert np.array_equal(one.command, two.command)


def test_limits_are_kept_in_another_simulation(plan: DrivePlan) -> None:
    """By the machine's controllers, stepped by other code; 2 % for speeds and forces that are read between samples."""
    machine, log = leg(), plan.experiment()
    run = vd.manoeuvres.Commanded(log, float(plan.t[-1]), 1000.0).run(machine).motion
    own = {c.on: c for c in machine.controllers}
    for k, (joint, limit) in enumerate(RANGES.items()):
        q, v = run.q[:, k], run.qd[:, k]
        assert limit.low - 0.01 < q.min() and q.max() < limit.high + 0.01
        assert np.abs(v).max() < 1.02 * limit.speed
        r = log[f"command.{joint}"]
        held = r.values[np.clip(np.searchsorted(r.t, run.t + 1e-9, side="right") - 1, 0, None)]
        force = own[joint].constant("kp") * (held - q) - own[joint].constant("kd") * v
        assert np.abs(force).max() < 1.05 * limit.force
    assert max(plan.used.values()) <= 1.0


def test_commands_as_a_table_and_in_words(plan: DrivePlan) -> None:
    lines = plan.table().splitlines()
    assert lines[0] == "time [s],command.thigh [rad],command.calf [rad]" and len(lines) == 2 + SECONDS * 200
    assert "asked for" in plan.summary() and "σ of a chirp" in plan.summary()
    assert np.abs(np.diff(plan.command, axis=0)).max() <= 12.0 / 200.0 + 1e-12


@pytest.mark.parametrize(
    ("ranges", "changes", "words"),
    [
        ({"thigh": RANGES["thigh"]}, {}, "it has no range to move in"),
        (RANGES | {"knee": RANGES["calf"]}, {}, "'knee' is no coordinate"),
        (RANGES | {"calf": DriveRange(low=1.0, high=0.0)}, {}, "its range is empty"),
        (RANGES, {"ask": ("mass",)}, "'mass' is no number of these drives"),
        (RANGES, {"ask": ("measurement_delay",)}, "no number of these drives that can be estimated"),
        (RANGES, {"duration": 2.0}, "it is too short"),
        (RANGES | {"calf": DriveRange(low=-2.2, high=-1.0, force=0.01)}, {"tries": 1}, "no command keeps its limits"),
    ],
)
def test_what_cannot_be_designed_is_refused(
    ranges: dict[str, DriveRange], changes: dict[str, object], words: str
) -> None:
    how = DriveExcitation(**({"duration": 6.0, "tries": 2} | changes))  # pyright: ignore[reportArgumentType]
    with pytest.raises(IdentificationError, match=words):
        design_drive_commands(leg(), ranges, how, rng=np.random.default_rng(0))
