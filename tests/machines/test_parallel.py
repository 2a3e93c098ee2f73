"""The machines with loops as files: what they are, and what they do at home."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.base import base_parameters
from veridyn.machines.parallel import delta, linkage, palletizer
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

MACHINES = {"linkage": linkage, "delta": delta, "palletizer": palletizer}


@pytest.mark.parametrize("name", MACHINES)
def test_statics_is_the_slope_of_potential_energy(name: str) -> None:
    """At rest the drives hold the weight: Γ = ∂V/∂q_a, by differences along closed positions."""
    from veridyn.mechanics.tree.loops.closure import close
    from veridyn.mechanics.tree.recursion.energy import energy

    machine: Machine = MACHINES[name]()
    own = list(machine.independent)
    home = closed_home(machine)

    def at(q: np.ndarray) -> Motion:
        return Motion(np.arange(float(len(q))), q, 0.0 * q, 0.0 * q)

    held = inverse_dynamics(machine, at(home[None]))[0]
    for k, c in enumerate(own):
        h = 1e-5
        given = np.tile(home[own], (2, 1))
        given[:, k] += [h, -h]
        V = energy(machine, at(close(machine, given, path=False).q)).gravity
        assert held[k] == pytest.approx((V[0] - V[1]) / (2 * h), abs=1e-5 * max(1.0, np.abs(held).max())), c


@pytest.mark.parametrize(("name", "count"), [("linkage", 12), ("delta", 40), ("palletizer", 25)])
def test_base_parameters_with_friction(name: str, count: int) -> None:
    base = base_parameters(MACHINES[name]())
    assert base.count == count and base.gap > 1e6


def test_delta_is_symmetrical_at_home() -> None:
    machine = delta()
    home = closed_home(machine)
    angles = [home[machine.coordinates.index(f"q{k}")] for k in (1, 2, 3)]
    assert np.ptp(angles) < 1e-9
    assert body_pose(machine, home[None], "platform")[1][0] == pytest.approx([0, 0, -0.55])
