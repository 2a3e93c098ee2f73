"""How much of the validation samples a fit did not use, and what is known of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import small_study
from veridyn.identify.pipeline.held_out import held_out_share, unjudged, used_samples
from veridyn.identify.regression.sampling import Sampling
from veridyn.inference.error_measures import RowReport
from veridyn.model.motion import Motion


def test_the_share_is_that_of_the_samples_that_are_not_in_the_training_motions() -> None:
    study = small_study()
    a, b = study.training, study.validation
    n = len(a)
    assert held_out_share([a], [b]) == 1.0
    assert held_out_share([a], [a]) == 0.0
    assert held_out_share([a[: n // 2]], [a[n // 2 :]]) == 1.0
    assert held_out_share([a[: n // 2]], [a[n // 4 :]]) == pytest.approx(1.0 - (n // 2 - n // 4) / (n - n // 4))
    assert held_out_share([a, b], [a, b]) == 0.0


def test_the_same_path_recorded_again_is_held_out() -> None:
    """Exactly the same coordinates on the same clock, but forces with noise of their own."""
    a = small_study().training
    assert a.forces is not None
    again = replace(a, forces=a.forces + 0.01 * np.random.default_rng(0).normal(size=a.forces.shape))
    assert held_out_share([a], [again]) > 0.99


def test_a_path_repeated_by_coarse_encoders_is_held_out_where_currents_differ() -> None:
    """Whole counts of an encoder are the same now and then, in motion too; the current of the drive is that of its own recording."""
    t = 0.01 * np.arange(1000)
    q = np.round(100.0 * np.sin(t)[:, None])
    a, b = (Motion(t, q, q, q, signals={"current": np.cos(t) + 0.01 * k * np.sin(7.0 * t)}) for k in (0, 1))
    assert held_out_share([a], [b]) > 0.98 and held_out_share([a], [a]) == 0.0


def test_samples_that_the_fit_left_out_are_held_out() -> None:
    """As speeds: leaves them out: slow ones are fitted, fast ones of the same log judge."""
    study = small_study()
    a, rows = study.training, ["q1", "q2", "q3"][: study.training.q.shape[1]]
    slow = np.linalg.norm(a.qd, axis=1) < np.median(np.linalg.norm(a.qd, axis=1))
    learned, judged = (
        used_samples(study.model, [a], Sampling(drop=dict.fromkeys(rows, mask)), rows) for mask in (~slow, slow)
    )
    assert held_out_share([a], [a], learned, judged) == 1.0
    assert held_out_share([a], [a], learned, learned) == 0.0
    assert held_out_share([a], [a], learned) == pytest.approx(np.mean(~slow))


def test_logs_that_begin_at_rest_in_one_pose_are_two_recordings() -> None:
    """A sample at rest is the same in both; where one that moves is, too, it is one recording."""
    m = small_study().training
    rest = np.arange(len(m)) < len(m) // 4
    still, hold = m[:1], np.where(rest[:, None], 0.0, 1.0)
    a, b = (
        replace(m, q=still.q + hold * k * (m.q - still.q), qd=hold * k * m.qd, qdd=hold * k * m.qdd, forces=None)
        for k in (1.0, 1.1)
    )
    assert held_out_share([a], [b]) == 1.0
    assert held_out_share([a], [a]) == 0.0


def test_why_nothing_can_be_judged_is_said_in_words() -> None:
    good = RowReport("q1", 100, 0.1, 2.0, measured_std=1.0, noise=0.1)
    noisy, silent, none = replace(good, measured_std=0.1), replace(good, measured_rms=0.0, measured_std=0.0), ()
    assert unjudged([good, noisy]) == ""
    assert "noise" in unjudged([noisy])
    assert "measured" in unjudged([silent])
    assert "no sample" in unjudged(none)
    assert "cannot be simulated" in unjudged(none, "q1: it runs away")
