from dataclasses import replace

import numpy as np
import pytest

from studies.bench_evidence import SAMPLING, bench_evidence, bench_motion
from studies.bench_robot import JOINTS, robot
from veridyn.identify.diagnosis.delays import HELD, Delays, delays, late_forces, without_delays
from veridyn.identify.regression.sampling import Sampling
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
    assert delays(robot(), [m], JOINTS, SAMPLING) == Delays(seconds={})
    assert without_delays(robot(), [m], {})[0] is m


def test_noise_of_a_force_is_no_delay_of_it() -> None:
    """White noise of a tenth of each force, at 200 Hz: its slopes are several times those of the motion, and moved by a part of a sample it
    is smaller. No delay is known to better than 1/√(Σ Γ̇²/σ²) of the motion's own slopes, nor confirmed.
    """
    m, confirmed = bench_motion(), 0
    for seed in range(5):
        scale = 0.1 * np.std(m.forces, axis=0)
        noisy = replace(m, forces=m.forces + scale * np.random.default_rng(seed).normal(size=m.forces.shape))
        found = delays(robot(), [noisy], JOINTS, Sampling())
        confirmed += bool(found.confirmed)
        slopes = np.gradient(m.forces, m.t, axis=0)
        known_to = scale / np.linalg.norm(slopes, axis=0)
        assert all(found.sigma[c] > 0.7 * known for c, known in zip(JOINTS, known_to, strict=True))
    assert confirmed == 0  # at the rate of false alarms one in forty such series has one


def test_one_late_force_is_named_by_its_joint() -> None:
    found = delays(robot(), [late((0.0, 0.03, 0.0))], JOINTS, SAMPLING)
    assert found.confirmed == (JOINTS[1],)
    named = late_forces(bench_evidence(), found)
    assert named is not None and named.where == f"force of '{JOINTS[1]}'"


def test_half_a_step_of_the_clock_is_no_delay() -> None:
    m = bench_motion()
    held = HELD * float(np.median(np.diff(m.t)))
    assert not delays(robot(), [late((0.9 * held,) * 3)], JOINTS, SAMPLING).confirmed
