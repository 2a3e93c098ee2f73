"""Sensitivities of simulated runs against finite differences of the same simulation."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, clean, truth
from veridyn.errors import DataError
from veridyn.identify.estimators.shooting import Shooting, check_motions, cut
from veridyn.model.motion import Motion

LAWS = {
    "direct": None,
    "in closed loop": lambda t, q, qd: (
        np.array([2.0, 1.0]) * (0.5 * np.sin(3 * t) - 1.5 - q) - np.array([0.3, 0.2]) * qd
    ),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_sensitivities_are_those_of_finite_differences(law) -> None:
    """By four parameters and by the initial state. Where dry friction turns round within a step
    the trapezoidal rule is off by its step over that time: 5 % with steps of 10 ms, about 1 % with these of 2.5 ms."""
    tree = truth()
    shooting = Shooting(tree, law, friction_speed=SOFT, substeps=4)
    (runs,) = cut(tree, [clean()], 1.0)
    assert len(runs) == 6 and runs.samples == 100
    runs = runs[:2]
    values = tree.parameters.values.copy()
    initial = np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1)
    names = ("ZZ2", "MX1", "h_q1", "fs_q2")
    spread = np.stack([np.eye(len(values))[tree.parameters.index(n)] for n in names], axis=1)
    found, S_q, S_v, _ = shooting.sensitivities(runs, initial, values, spread)
    assert found.q == pytest.approx(shooting.simulate(runs, initial, values).q, abs=1e-12)
    for k in range(len(names) + 4):
        size = 1e-5
        if k < len(names):
            ends = [shooting.simulate(runs, initial, values + way * size * spread[:, k]) for way in (1.0, -1.0)]
        else:
            move = np.eye(4)[k - len(names)]
            ends = [shooting.simulate(runs, initial + way * size * move, values) for way in (1.0, -1.0)]
        for S, name in ((S_q, "q"), (S_v, "qd")):
            slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2.0 * size)
            assert np.linalg.norm(S[..., k] - slope) < 0.02 * np.linalg.norm(slope), (k, name)


def test_runs_reproduce_what_was_simulated() -> None:
    tree = truth()
    (runs,) = cut(tree, [clean()], 2.0)
    initial = np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1)
    found = Shooting(tree, friction_speed=SOFT).simulate(runs, initial, tree.parameters.values)
    assert found.q == pytest.approx(runs.q, abs=1e-10)


def test_what_cannot_be_simulated_is_refused() -> None:
    motion = clean()
    gap = motion.forces.copy()
    gap[3, 1] = np.nan
    bad = Motion(motion.t, motion.q, motion.qd, motion.qdd, forces=gap, wrenches={"2": np.zeros((len(motion), 6))})
    with pytest.raises(DataError, match=r"wrenches act[\s\S]*'q2': its force is not measured throughout"):
        check_motions(truth(), [bad], None, "output_error")
