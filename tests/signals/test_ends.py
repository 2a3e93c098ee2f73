"""Ends of a filtered motion: what the low-pass takes to settle is cut off ends in motion, by default and for every order."""

import numpy as np
import pytest

import veridyn as vd
from strangers.pinocchio_logs import machine, recording, three_joints
from veridyn.model.motion import BaseMotion, Motion
from veridyn.signals.butterworth import Butterworth, overlap
from veridyn.signals.ends import ends_in_motion, settling_time

RATE = 200.0
LINE = np.arange(2000) / RATE


ARM = machine(three_joints())


def swinging(qd: np.ndarray, base: BaseMotion | None = None) -> Motion:
    return Motion(LINE, np.zeros_like(qd), qd, np.zeros_like(qd), base)


@pytest.mark.parametrize("order", [2, 3, 4, 6, 8, 12])
def test_a_filter_has_settled_to_one_percent(order: int) -> None:
    """Beside the impulse response of both passes: what lies beyond that time is 0.5 to 2 % of it."""
    low = Butterworth(3.0, order)
    seconds = settling_time(low)
    assert overlap(low, 500.0, 0.02) / 500.0 <= seconds <= overlap(low, 500.0, 0.005) / 500.0


def test_without_a_filter_nothing_settles() -> None:
    assert settling_time(None) == 0.0
    assert settling_time(Butterworth(15.0)) == pytest.approx(2.0 / 15.0)


def test_an_end_at_rest_keeps_its_samples_and_a_moving_base_counts() -> None:
    still = np.zeros((len(LINE), 1))
    gentle = np.clip(LINE - 3.0, 0.0, 1.0)[:, None] * np.cos(LINE)[:, None]
    assert ends_in_motion(swinging(gentle), 0.5) == (0, 100)
    assert ends_in_motion(swinging(gentle), 0.0) == (0, 0)
    turning = np.cos(LINE)[:, None] * np.ones(3)
    base = BaseMotion(turning, turning, turning)
    assert ends_in_motion(swinging(still, base), 0.5) == (100, 100)
    assert ends_in_motion(swinging(np.cos(LINE)[:, None]), 1e3) == (500, 500)  # a quarter of all at most


def test_accelerations_of_a_filtered_log_are_right_to_its_ends() -> None:
    """Without noise, beside the accelerations of the closed form: at most 2 % is left of what is wrong at ends that are kept."""
    exact = recording(three_joints(), np.random.default_rng(11), seconds=10.0, encoder_noise=0.0, torque_noise=0.0)
    log, size = exact.log, np.abs(exact.qdd).max()

    def worst(m: Motion) -> float:
        return float(np.abs(m.qdd - exact.qdd[np.searchsorted(exact.t, m.t - 1e-9)]).max())

    for cutoff in (6.0, 15.0):
        default = vd.motion(ARM, log, vd.Signals(lowpass=cutoff))
        cut = round(2.0 / cutoff * RATE)
        assert len(default) == len(exact.t) - 2 * cut
        assert default.notes is not None
        (note,) = default.notes
        assert note.startswith(f"trimmed: {cut / RATE:.3g} s ({cut} samples) at its start and ")
        assert note.endswith(f"where the low-pass at {cutoff:g} Hz still settles; Signals(trim=0) keeps them")
        everything = vd.motion(ARM, log, vd.Signals(lowpass=cutoff, trim=0))
        assert len(everything) == len(exact.t) and everything.notes == ()
        assert worst(everything) > 0.2 * size and worst(default) < 0.02 * worst(everything)
    assert len(vd.motion(ARM, log, vd.Signals(lowpass=None))) == len(exact.t)
    assert len(vd.motion(ARM, log, vd.Signals(lowpass=15.0, trim=0.5))) == len(exact.t) - 200


def test_a_log_too_short_for_its_filter_says_so() -> None:
    log = recording(three_joints(), np.random.default_rng(3), seconds=2.0).log
    notes = vd.motion(ARM, log, vd.Signals(lowpass=2.0)).notes
    assert notes is not None and "(it takes 1 s, and a quarter of the log at most is cut)" in notes[-1]


def test_what_was_cut_off_stands_in_the_fit() -> None:
    log = recording(three_joints(), np.random.default_rng(5), seconds=5.0).log
    fit = vd.identify(ARM, vd.motion(ARM, log, vd.Signals(lowpass=20.0)), diagnose="off")
    assert any(n.startswith("trimmed: 0.1 s (20 samples) at its start") for n in fit.notes)


def test_a_trim_that_is_no_time_is_refused() -> None:
    for wrong in ("long", -1.0, np.nan, None):
        with pytest.raises(vd.DataError, match=r"trim: it is no time\.\nExpected seconds, 0 or more, or 'auto'"):
            vd.Signals(trim=wrong)  # pyright: ignore[reportArgumentType]
