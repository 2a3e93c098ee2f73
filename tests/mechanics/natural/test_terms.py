"""The compiled terms against NumPy's: constraints, drift, stiffness of the constraints, forces."""

from __future__ import annotations

import numpy as np

from strangers.natural_mechanisms import random_mechanism
from veridyn.mechanics.natural.position import position
from veridyn.mechanics.natural.system import system_of
from veridyn.mechanics.natural.terms import acting, constraints_at, curvature, drift


def test_terms_are_those_of_the_tables() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        t, c, n, m = system.tables, system.constraints, system.n, system.constraints.m
        q, qd, lam = position(system), rng.normal(size=system.n), rng.normal(size=m)
        a = len(c.places)
        phi, J, AB, slopes = np.empty(m), np.zeros((m, n)), np.empty(2 * a), np.zeros((2 * a, n))
        constraints_at(t, q, np.empty(n + 1), phi, J, AB, slopes)
        assert np.abs(J - c.jacobian(q)).max() < 1e-12
        out = np.empty(m)
        drift(t, q, qd, AB, slopes, out)
        assert np.abs(out - c.jacobian_rate(q, qd) @ qd).max() < 1e-10
        K = np.zeros((n, n))
        curvature(t, q, lam, AB, slopes, 1.0, K)
        assert np.abs(K - c.curvature(q, lam)).max() < 1e-10
        f = system.forces
        values = f.values
        load = f.weight[:-1] + f.constant @ values
        turning = np.tensordot(values[f.active], f.turning[f.active], axes=1)
        Q, T = np.empty(n), np.empty((n, n))
        acting(t, load, turning, q, qd, 0.3, 0.7, Q, T, np.empty((5, 3)))
        stiff, damp = f.tangents(q, qd, values)
        assert np.abs(Q - f.forces(q, qd, values)).max() < 1e-9
        assert np.abs(T - system.mass - 0.3 * stiff - 0.7 * damp).max() < 1e-9
