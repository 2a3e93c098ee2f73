"""What to record next: the deviations foretold are those that the recording then gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.smooth_arm import clean, noisy, truth
from identify.test_observation_closed import measured as closed_measured
from veridyn.identify.estimate import identify
from veridyn.identify.recording import candidates, what_next
from veridyn.machines.parallel import palletizer
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion


def measured(m: Motion, seed: int) -> Motion:
    return noisy(np.random.default_rng(seed), replace(m, forces=inverse_dynamics(truth(), m)))


def slow() -> Motion:
    m = clean()
    return measured(replace(m, t=m.t * 4, qd=m.qd / 4, qdd=m.qdd / 16), 1)


def test_the_deviations_foretold_are_those_obtained() -> None:
    first = slow()
    fit = identify(truth(), first)
    best = what_next(fit, first)[0]
    second = dict(candidates(truth(), first))[best.motion]
    again = [measured(second, seed) for seed in (2, 3, 4)]  # a candidate has 400 samples, the recording 1500
    both = identify(truth(), [first, *again, measured(second[:300], 5)])
    now = dict(zip(both.names, both.sigma, strict=True))
    assert best.sharpened
    for name, (before, after) in best.sharpened.items():
        assert after < before / 1.5
        assert now[name] == pytest.approx(after, rel=0.1)


def test_of_slow_motion_it_says_faster() -> None:
    first = slow()
    advice = what_next(identify(truth(), first), first)
    assert advice[0].motion == "the same motion runs 1.5 times as fast"
    assert str(advice[0]).startswith("One more recording as long as this one in which the same motion runs")


def test_where_nothing_is_poor_it_says_nothing() -> None:
    first = slow()
    assert what_next(identify(truth(), first), first, poor=1e6) == ()


def test_a_coordinate_alone_keeps_to_what_it_has_done() -> None:
    m = clean()
    for label, other in candidates(truth(), m):
        if "alone" in label:
            assert (np.ptp(other.q, axis=0) <= np.ptp(m.q, axis=0) * (1 + 1e-9)).all()
            assert (np.abs(other.qd).max(axis=0) <= np.abs(m.qd).max(axis=0) * (1 + 1e-9)).all()
            assert (np.abs(other.qdd).max(axis=0) <= np.abs(m.qdd).max(axis=0) * (1 + 1e-9)).all()
            assert np.count_nonzero(np.ptp(other.q, axis=0) > 1e-9) == 1


def test_candidates_of_a_closed_machine_keep_its_loops_closed() -> None:
    machine = palletizer()
    fit = identify(machine, closed_measured(machine, 300, 1.0))
    m = closed_measured(machine, 300, 1.0)
    found = dict(candidates(machine, m))
    assert {label.split(" ")[0] for label in found} >= {"the"}
    for moved in found.values():
        assert np.isfinite(inverse_dynamics(machine, moved)).all()  # refuses open loops
    assert all(a.gain > 0.0 for a in what_next(fit, m))
