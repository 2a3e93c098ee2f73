"""Whole runs with derivatives, against steps that are made one by one in Python and multiplied out there."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import SimulationError
from veridyn.files.access import shipped
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.mechanics.tree.steps.shoot import shoot

VARYING = ("ZZ3", "h1")
H, EVERY, STEPS = 0.004, 3, 24


def started():
    machine = vd.load_model(shipped("veridyn:linkage.yaml"))
    model = tree_model(machine, varying=list(VARYING), friction_speed=0.05)
    u = np.array([machine.parameters.values[machine.parameters.index(name)] for name in VARYING])
    torque = np.zeros((STEPS, 3))
    torque[:, 0] = 1.5 + 4.0 * np.sin(20.0 * H * np.arange(STEPS))
    still = np.tile(model.loads()[1], (STEPS, 1))
    x = assembled(tree_of(machine)).home
    return model, model.instant(x, np.zeros(3), u, (torque[0], still[0])), torque, still


def test_a_run_and_its_derivatives_are_those_of_single_steps() -> None:
    model, start, torque, still = started()
    rng = np.random.default_rng(0)
    chi, S = (
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 4)),
    )  # three columns by what varies, the last by the start alone
    q, slopes = shoot(model, start, H, EVERY, (torque, still), (2, 0), chi, S)
    assert (q.shape, slopes.shape) == ((9, 3), (9, 2, 4))
    at, expected = start, S.copy()
    for k in range(STEPS):
        at = model.step(at.q, at.qd, at.u, H, (torque[k], still[k]))
        expected = at.F[:, :2] @ expected
        expected[:, :3] += at.F[:, 2:] @ chi
        if (k + 1) % EVERY == 0:
            sample = (k + 1) // EVERY
            assert q[sample] == pytest.approx(at.q, abs=1e-10)  # steps are solved to 1e-11 of the machine's size
            assert slopes[sample] == pytest.approx(at.R[[2, 0]] @ expected[:1], rel=1e-7, abs=1e-10)
    alone, nothing = shoot(model, start, H, EVERY, (torque, still))
    assert alone == pytest.approx(q, abs=1e-10)
    assert nothing.size == 0


def test_a_step_that_cannot_be_made_is_named_with_its_time() -> None:
    model, start, torque, still = started()
    torque[10:, 0] = np.nan
    with pytest.raises(SimulationError) as caught:
        shoot(model, start, H, EVERY, (torque, still))
    assert any("in the step 0.04 s after the start of a run" in note for note in caught.value.__notes__)
