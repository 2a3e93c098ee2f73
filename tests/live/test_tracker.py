"""Stamps that can be used, and those that cannot."""

import numpy as np

from veridyn.live.tracker import RESTART_AFTER, StampCheck


def test_stamps_that_go_back_or_jump_are_named():
    check = StampCheck(longest=10.0)
    assert check(5.0) is None and check(5.0) is None and check(15.0) is None
    assert check(14.9).key == "out of order" and check(25.1).key == "clock jumps"
    assert "14.9 s came after one at 15 s" in check(14.9).text
    assert check(16.0) is None and check.refused == 0


def test_where_readings_may_be_late_they_pass():
    check = StampCheck(longest=10.0, ordered=False)
    assert check(5.0) is None and check(4.5) is None and check.newest == 5.0
    assert check(-6.0).key == "out of order"


def test_a_sender_that_began_again_is_followed():
    check = StampCheck()
    assert check(1000.0) is None
    keys = {check(0.01 * k).key for k in range(RESTART_AFTER)}
    assert keys == {"out of order"} and check.restarts
    check.reset()
    assert check(0.5) is None and not check.restarts and np.isfinite(check.newest)
