"""Spikes and dropouts bridged, everything else untouched."""

import numpy as np

from veridyn.model.experiment import Channel
from veridyn.signals.repair import damaged, repaired

T = np.arange(1000) / 100.0
X = 4.0 * np.sin(2.0 * T) + 0.1 * np.random.default_rng(0).normal(size=len(T))


def test_damaged_samples_are_on_the_line_between_their_neighbours():
    x = X.copy()
    x[300] = 1e6
    x[500:505] = 0.0
    assert damaged(x, 10.0).tolist() == [300, *range(500, 505)]
    y = repaired(Channel("force.q1", T, x, "N*m"), 10.0).values
    untouched = np.delete(np.arange(len(T)), [300, *range(500, 505)])
    assert np.array_equal(y[untouched], X[untouched])
    assert np.isclose(y[300], (X[299] + X[301]) / 2)
    assert np.allclose(np.diff(y[499:506], 2), 0.0, atol=1e-9)


def test_a_good_channel_is_the_same_object_and_kinds_can_be_left_alone():
    good = Channel("force.q1", T, X, "N*m")
    assert repaired(good, 10.0) is good
    x = X.copy()
    x[300], x[500:505] = 1e6, 0.0
    only = repaired(Channel("force.q1", T, x, "N*m"), 10.0, ("spike",)).values
    assert only[300] < 10.0 and np.all(only[500:505] == 0.0)
