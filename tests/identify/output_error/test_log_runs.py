"""Runs of a log: how it is cut, what of it travels along, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.hanging_arm import clean, truth
from identify.wheel_rig import log, rig, slip
from veridyn.errors import DataError
from veridyn.identify.output_error.log_runs import check_motions, check_open_tree, cut, with_element_states
from veridyn.model.motion import Motion


def test_a_log_is_cut_into_runs_of_equal_length() -> None:
    machine, motion = truth(), clean()
    (runs,) = cut(machine, [motion], 1.0)
    assert len(runs) == 6 and runs.samples == 100
    assert np.array_equal(runs[1:3].q[0], motion.q[100:200])
    (both,) = cut(machine, [motion, motion], 1.0)
    assert len(both) == 12 and np.array_equal(both.initial[6], runs.initial[0])
    apart = cut(machine, [motion, motion[:150]], 2.0)
    assert [len(r) for r in apart] == [3, 1]


def test_states_of_elements_start_each_run_where_the_measured_motion_leads_them() -> None:
    """The slip of the rig's tyre, κ' of the equations by hand, against those the runs start from."""
    machine, motion = rig(), log()
    made = with_element_states(machine, motion)
    assert with_element_states(machine, made) is made
    (runs,) = cut(machine, [made], 1.0)
    assert runs.inner[:, 0] == pytest.approx(slip()[::100], abs=2e-6)  # rates between samples are cubic
    assert runs.inner[:, 1] == pytest.approx(0.0, abs=1e-12)


def test_a_road_that_one_motion_has_keeps_runs_apart() -> None:
    machine, motion = rig(), with_element_states(rig(), log())
    bumpy = replace(motion, signals={**motion.signals, "tyre.road": np.full(len(motion), 0.001)})
    assert [sorted(r.signals) for r in cut(machine, [motion, bumpy], 1.0)] == [[], ["tyre.road"]]


def test_what_cannot_be_simulated_is_refused() -> None:
    motion = clean()
    gap = motion.forces.copy()
    gap[3, 1] = np.nan
    bad = Motion(motion.t, motion.q, motion.qd, motion.qdd, forces=gap, wrenches={"2": np.zeros((len(motion), 6))})
    with pytest.raises(DataError, match="'q2': its force is not measured throughout"):
        check_motions(truth(), [bad], False, "output_error")
    with pytest.raises(DataError, match="wrenches act during the motion"):
        check_motions(truth(), [bad], True, "output_error")
    held = rig().with_prescribed(["x"])
    assert "prescribed coordinates are not simulated" in check_open_tree(held, "OutputError").found[0].what
