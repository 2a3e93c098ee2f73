"""The compiled terms against NumPy's: constraints, drift, stiffness of the constraints, forces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from strangers.natural_mechanisms import random_mechanism
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.natural.position import position
from veridyn.mechanics.natural.room import room_of
from veridyn.mechanics.natural.system import system_of
from veridyn.mechanics.natural.terms import Scratch, Tables, acting, constraints_at, curvature, drift
from veridyn.mechanics.record import Bound, opened


class Terms(NamedTuple):
    t: Tables
    at: Scratch


@compiled
def all_terms(address, load, turning, q, qd, lam, drifted, K):
    """A door for Python to kernels that have none."""
    t, at = opened(address, Terms).t, opened(address, Terms).at
    constraints_at(t, q, at.y, at.phi, at.J, at.AB, at.slopes)
    drift(t, q, qd, at.AB, at.slopes, drifted)
    curvature(t, q, lam, at.AB, at.slopes, 1.0, K)
    acting(t, load, turning, q, qd, 0.3, 0.7, at.Q, at.T, at.way)


@pytest.mark.slow
def test_terms_are_those_of_the_tables() -> None:
    """Each term alone, through a door that takes 8 s to compile; the quick form is test_explicit's, of the steps that are made of them."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        c, n, m = system.constraints, system.n, system.constraints.m
        q, qd, lam = position(system), rng.normal(size=system.n), rng.normal(size=m)
        f, values = system.forces, system.forces.values
        load = f.weight[:-1] + f.constant @ values
        turning = np.tensordot(values[f.active], f.turning[f.active], axes=1)
        at, out, K = room_of(n, m, n - m, 0, len(c.places)).at, np.empty(m), np.zeros((n, n))
        all_terms(Bound(Terms(system.tables, at)).address, load, turning, q, qd, lam, out, K)
        assert np.abs(at.J - c.jacobian(q)).max() < 1e-12
        assert np.abs(out - c.jacobian_rate(q, qd) @ qd).max() < 1e-10
        assert np.abs(K - c.curvature(q, lam)).max() < 1e-10
        stiff, damp = f.tangents(q, qd, values)
        assert np.abs(at.Q - f.forces(q, qd, values)).max() < 1e-9
        assert np.abs(at.T - system.mass - 0.3 * stiff - 0.7 * damp).max() < 1e-9
