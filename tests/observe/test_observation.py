"""What an observation tells: states by name, energy against the textbook, consistency, and names that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from studies.small_crane import small_crane
from veridyn.errors import DataError


def test_states_energy_and_judgements() -> None:
    o = small_crane().best.example
    truth = small_crane().truth
    assert np.array_equal(o.state("x"), o.q[:, o.system.model.system.mechanism.index("x")])
    assert np.abs(o.constraint_errors()).max() < 1e-9
    kinetic, gravity, elastic = o.energy()[-1]
    height = o.q[-1, o.system.model.system.mechanism.index("L.y")]
    assert gravity == pytest.approx((250.0 + 1.5) * 9.81 * height) and elastic == 0.0 and kinetic > 0.0
    assert o.nees(truth.q, truth.qd, 10).mean > 0.0 and o.nis(10).mean > 0.0
    assert set(o.whiteness(10)) == {"travel", "tilt"}
    assert o.qdd.shape == o.q.shape and "ekf on crane" in o.summary()
    smoother = small_crane().scores["smoother"].example
    assert smoother.nees(truth.q, truth.qd, 10).dof[0] == 4
    with pytest.raises(DataError, match="there is no state 'y'"):
        o.state("y")
