from dataclasses import replace

import numpy as np
import pytest

from studies.bench_evidence import SAMPLING, bench_motion
from studies.bench_robot import JOINTS, robot
from veridyn.identify.diagnosis.delays import Delays, delays, without_delays
from veridyn.model.motion import Motion


def late(seconds: tuple[float, float, float]) -> Motion:
    m = bench_motion()
    forces = np.column_stack([np.interp(m.t - d, m.t, m.forces[:, k]) for k, d in enumerate(seconds)])
    return replace(m, forces=forces)[20:]


@pytest.mark.parametrize("seconds", [(0.02, 0.02, 0.02), (0.06, 0.03, -0.02)])
def test_delays_of_each_row_are_found(seconds: tuple[float, float, float]) -> None:
    found = delays(robot(), [late(seconds)], JOINTS, SAMPLING)
    # A delay of 5 ms is one sample; friction, whose steps the filter rounds, leaves some.
    assert [found.seconds[c] for c in JOINTS] == pytest.approx(seconds, abs=0.004)
    assert found.after < 0.6 * found.before
    assert found.confirmed == JOINTS  # taken out as a whole, beside each other


def test_data_without_delay_have_none() -> None:
    found = delays(robot(), [bench_motion()], JOINTS, SAMPLING)
    assert max(abs(d) for d in found.seconds.values()) < 0.003


def test_forces_are_moved_to_when_they_acted() -> None:
    moved = without_delays(robot(), [late((0.05, 0.05, 0.05))], dict.fromkeys(JOINTS, 0.05))[0]
    m = bench_motion()
    at = np.searchsorted(m.t, moved.t)
    np.testing.assert_allclose(moved.forces, m.forces[at], atol=1e-9)


def test_nothing_is_asked_where_no_force_is_measured() -> None:
    m = replace(bench_motion(), forces=None)
    assert delays(robot(), [m], JOINTS, SAMPLING) == Delays({})
    assert without_delays(robot(), [m], {})[0] is m
