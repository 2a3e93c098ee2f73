"""The compiled terms against NumPy's: quadratic forms, constraints, drift, stiffness of the constraints, forces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.natural_mechanisms import random_mechanism
from veridyn.mechanics.compiled import Bound, compiled, opened
from veridyn.mechanics.natural.equations.constraints import CoefficientTable
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.equations.terms import (
    Forms,
    Scratch,
    Tables,
    acting,
    constraints_at,
    curvature,
    drift,
    forms_of,
    gather,
    scratch_of,
    second,
)

Array = NDArray[np.float64]
N = 9


def between(a: int, b: int, size: float) -> Array:
    """S of |r_a − r_b|² − size² over three points of three coordinates, where the gradients of both points are opposite."""
    D = np.zeros((3, N + 1))
    D[range(3), range(3 * a, 3 * a + 3)], D[range(3), range(3 * b, 3 * b + 3)] = 1.0, -1.0
    S = D.T @ D
    S[N, N] = -(size**2)
    return S


@compiled
def _evaluated(address: NDArray[np.int64], y: Array, values: Array, slopes: Array, seconds: Array) -> None:
    f = opened(address, Forms)
    gather(f, y, values, slopes)
    for i in range(len(seconds)):
        seconds[i] = second(f, i, y)


def test_values_gradients_and_second_derivatives_of_forms() -> None:
    """Φ = yᵀ S y with y = (q, 1): Φ, 2 (S y)_q and 2 qᵀ S_qq q are those of dense matrices."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(N + 1, N + 1))
    given = [between(0, 1, 1.0), between(1, 2, 2.0), 0.3 * between(0, 1, 0.5), A + A.T, np.zeros((N + 1, N + 1))]
    forms, q = forms_of(CoefficientTable.of(given, N)), rng.normal(size=N)
    y = np.append(q, 1.0)
    values, slopes, seconds = np.full(5, np.nan), np.zeros((5, N)), np.full(5, np.nan)
    bound = Bound(forms)
    _evaluated(bound.address, y, values, slopes, seconds)
    np.testing.assert_allclose(values, [y @ S @ y for S in given], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(slopes, [2.0 * (S @ y)[:N] for S in given], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(seconds, [2.0 * q @ S[:N, :N] @ q for S in given], rtol=1e-13, atol=1e-13)


def test_gradients_that_are_multiples_share_a_sum() -> None:
    """Three forms of two distances have six different sums, where there are eighteen entries and the constants."""
    given = [between(0, 1, 1.0), between(1, 2, 2.0), 0.3 * between(0, 1, 0.5)]
    forms = forms_of(CoefficientTable.of(given, N))
    assert len(forms.row) == 21 and len(forms.start) - 1 == 7  # the constants are multiples of one sum, 1
    assert len(forms.source) == 6 * 2 + 1


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
        at, out, K = scratch_of(system.tables, m, True), np.empty(m), np.zeros((n, n))
        all_terms(Bound(Terms(system.tables, at)).address, load, turning, q, qd, lam, out, K)
        assert np.abs(at.J - c.jacobian(q)).max() < 1e-12
        assert np.abs(out - c.jacobian_rate(q, qd) @ qd).max() < 1e-10
        assert np.abs(K - c.curvature(q, lam)).max() < 1e-10
        stiff, damp = f.tangents(q, qd, values)
        assert np.abs(at.Q - f.forces(q, qd, values)).max() < 1e-9
        assert np.abs(at.T - system.mass - 0.3 * stiff - 0.7 * damp).max() < 1e-9
