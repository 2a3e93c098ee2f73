"""The leg of the demonstration: equations written by hand against those of the model file, and what is recorded of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import veridyn as vd
from veridyn.identify.drives.drive_log import drive_records
from veridyn.identify.drives.drive_unknowns import rung_terms
from veridyn.machines.leg import DRIVES, JOINTS, QUANTUM, LegDemo, _equations, _simulated, demonstration, leg
from veridyn.model.motion import Motion


def test_equations_by_hand_are_those_of_the_file() -> None:
    """M and the bias of two links in a plane, at random states, without the elements of the drives."""
    machine = leg()
    bare = machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})
    rng = np.random.default_rng(1)
    q, qd, qdd = (rng.normal(size=(20, 2)) for _ in range(3))
    forces = vd.inverse_dynamics(bare, vd.Motion(np.arange(20.0), q, qd, qdd))
    for k in range(20):
        M11, M12, M22, h1, h2 = _equations(*q[k], *qd[k])
        own = np.array([[M11, M12], [M12, M22]]) @ qdd[k] + (h1, h2)
        assert own == pytest.approx(forces[k], rel=1e-12, abs=1e-12)


def test_the_leg_holds_where_friction_does() -> None:
    """At rest under a constant command: kp (r − q − zero) balances gravity within the friction, and nothing moves."""
    asked = np.tile([0.9, -1.6], (400, 1))
    q = _simulated(asked)
    assert np.ptp(q[-100:], axis=0) == pytest.approx(
        [0.0, 0.0], abs=1e-6
    )  # a hundredth of the noise: impulses are iterated
    _, _, _, h1, h2 = _equations(*q[-1], 0.0, 0.0)
    for joint, (d, h) in enumerate(zip(DRIVES, (h1, h2), strict=True)):
        assert abs(d.kp * (asked[-1, joint] - q[-1, joint] - d.zero) - h) <= d.dry + d.slope * (q[-1, joint] - d.middle)


@cache
def made_once() -> LegDemo:
    return demonstration(np.random.default_rng(4), quick=True)


def test_what_is_recorded() -> None:
    made, again = made_once(), demonstration(np.random.default_rng(4), quick=True)
    for j in JOINTS:
        read, asked = made.training[f"position.{j}"], made.training[f"command.{j}"]
        assert np.array_equal(read.values, again.training[f"position.{j}"].values)
        steps = read.values / QUANTUM
        assert steps == pytest.approx(np.round(steps), abs=1e-6)
        assert np.abs(np.gradient(asked.values, asked.t)).max() < 21.0  # rad/s, what drives of this size reach
    assert made.truth["fs_calf"] == pytest.approx(DRIVES[1].dry, abs=0.1)


def test_the_truth_of_friction_along_the_way_is_that_of_the_law() -> None:
    """fs + fq u as an identification writes it, u about the middle of what was read, is dry + slope (q − middle) of the true angle q."""
    made = made_once()
    record = drive_records(made.model, made.training)[0].until(made.fitted)
    law = next(e for u, e in rung_terms(made.model, [record]) if u.name == "fq_calf")
    machine = made.model.with_elements([law])
    q2 = np.linspace(-2.0, -1.2, 9)
    q, v = (
        np.stack([np.zeros(9), q2], axis=1),
        np.stack([np.zeros(9), np.full(9, 5.0)], axis=1),
    )  # far above the rounding
    D = vd.regressor(machine, Motion(np.arange(9.0), q, v, np.zeros((9, 2))))[:, 1]
    columns = D[:, [machine.parameters.index(name) for name in ("fs_calf", "fq_calf")]]
    true = DRIVES[1].dry + DRIVES[1].slope * (q2 - DRIVES[1].middle)
    # Middle and half of the way stand in the formula with three decimals.
    assert columns @ [made.truth["fs_calf"], made.truth["fq_calf"]] == pytest.approx(true, abs=2e-3)
