"""Pauses of a log are told; what else is wrong with one is in tests/cli/test_damaged_observer.py."""

from __future__ import annotations

import numpy as np

from veridyn.studies.run.observe_log import gaps


def test_pauses_are_told_and_counted() -> None:
    steady = 0.01 * np.arange(400)
    assert gaps(steady) == [] and gaps(steady[:1]) == []
    assert gaps(np.delete(steady, slice(101, 150))) == [
        "the log pauses from 1 s to 1.5 s: the model goes on alone, and its bands grow."
    ]
    often = gaps(np.delete(steady, [k for a in (20, 80, 140, 200, 260) for k in range(a, a + 30)]))
    assert len(often) == 4 and often[-1] == "the log has 2 more such pauses."


def test_sensors_of_several_rates_do_not_pause() -> None:
    slow, fast = 0.05 * np.arange(40), 0.01 * np.arange(200)
    assert gaps(np.unique(np.round(np.concatenate([slow, fast]), 6))) == []
