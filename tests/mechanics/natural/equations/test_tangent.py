"""Second and third derivatives of the constraints against differences of the first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from strangers.natural_mechanisms import random_mechanism
from veridyn.mechanics.compiled import Bound, compiled, opened
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.equations.tangent import Room, add_third, bend, room_of
from veridyn.mechanics.natural.equations.terms import Tables, constraints_at


class Bench(NamedTuple):
    t: Tables
    room: Room


@compiled
def both_bends(address, q, u, v, d, second, third):
    """A door for Python to kernels that have none: Φ_qq[u, v], and Φ_qqq[d, u, u] added to `third`."""
    t, room = opened(address, Bench).t, opened(address, Bench).room
    at = room.at
    constraints_at(t, q, at.y, at.phi, at.J, at.AB, at.slopes)
    bend(t, room, q, u, v, second)
    add_third(t, room, q, d, u, third)


def test_bends_of_the_constraints() -> None:
    """Φ_qq[v, w] is Φ̇_q along v, times w; Φ_qqq[d, v, v] its change along d, by central differences (error h² ~ 1e-8)."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        c, n, m = system.constraints, system.n, system.constraints.m
        q, v, w, d = position(system), *rng.normal(size=(3, n))
        room = room_of(system.tables, m, n - m, 0)
        out, third = np.empty(m), np.zeros(m)
        both_bends(Bound(Bench(system.tables, room)).address, q, v, w, d, out, third)
        assert np.abs(out - c.jacobian_rate(q, v) @ w).max() < 1e-9
        h = 1e-5
        numeric = (c.jacobian_rate(q + h * d, v) @ v - c.jacobian_rate(q - h * d, v) @ v) / (2.0 * h)
        assert np.abs(third - numeric).max() < 1e-5 * max(1.0, np.abs(numeric).max())
