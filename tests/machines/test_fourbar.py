"""The four-bar linkage from its file."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.machines.fourbar import fourbar
from veridyn.mechanics.natural_dynamics import initial_state
from veridyn.mechanics.natural_rank import mobility
from veridyn.mechanics.natural_system import system_of


def test_it_is_the_mechanism_of_the_thesis() -> None:
    """Initial acceleration −2.0233 rad/s² from 60° and 1 rad/s (FACTS 6), in the upper assembly."""
    system = system_of(fourbar())
    state = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    assert state.qdd[system.mechanism.index("phi")] == pytest.approx(-2.0233, abs=5e-5)
    assert state.q[system.mechanism.index("2.y")] > 0.0
    assert mobility(system, state.q).degrees_of_freedom == 1
