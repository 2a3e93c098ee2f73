"""Derivatives of accelerations, reactions and rates of elements' states against differences."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.tree_models import MACHINES, model, moving, small_arm, stateful_model
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import tree_model


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_are_those_of_the_accelerations(name: str) -> None:
    m = model(name)
    x, v, u = moving(m, 7)
    at, eps = m.instant(x, v, u, m.loads()), 1e-6
    for j in range(3 * m.f):
        d, du = np.zeros(2 * m.f), np.zeros(m.f)
        (d if j < 2 * m.f else du)[j % (2 * m.f)] = eps
        a, b = m.moved(x, v, d, u + du, m.loads()), m.moved(x, v, -d, u - du, m.loads())
        for found, ahead, behind in (
            (at.qdd_x[:, j], a.qdd, b.qdd),
            (at.multipliers_x[:, j], a.multipliers, b.multipliers),
            *([(at.qd_z[:, j], a.qd, b.qd)] if j < m.f else []),
            *([(at.R[:, j - m.f], a.qd, b.qd)] if m.f <= j < 2 * m.f else []),
        ):
            scale = 1.0 + np.abs(ahead).max(initial=0.0) + np.abs(found).max(initial=0.0)
            np.testing.assert_allclose(found, (ahead - behind) / (2 * eps), atol=2e-8 * scale)


def test_parameters_that_vary_have_exact_derivatives() -> None:
    tree = tree_of(small_arm())
    names = ("fv", "fs", "ia", tree.parameters.names[9])
    m = tree_model(tree, unknown=(), varying=names)
    q, qd = np.array([0.3, -0.5]), np.array([0.8, -1.1])
    start = m.start_values
    at, eps = m.instant(q, qd, start, m.loads()), 1e-6
    for j in range(len(names)):
        du = eps * np.eye(len(names))[j]
        ahead, behind = m.instant(q, qd, start + du, m.loads()), m.instant(q, qd, start - du, m.loads())
        np.testing.assert_allclose(at.qdd_x[:, 4 + j], (ahead.qdd - behind.qdd) / (2 * eps), atol=1e-7)


def test_constants_of_laws_and_states_of_elements_have_exact_derivatives() -> None:
    """Unknown quantities are the speed of a tanh, the time of a Maxwell element and its state, and that of a LuGre element."""
    m = stateful_model(("ft.speed", "km.time", "M_lower"))
    x, v = np.array([0.3, -0.5]), np.array([0.8, -1.1])
    u = np.concatenate([m.start_values, [0.02, -0.01]])
    at = m.instant(x, v, u, m.loads())
    for j in range(len(u)):
        du = np.zeros(len(u))
        du[j] = 1e-6 * max(abs(u[j]), 1e-2)
        ahead, behind = m.instant(x, v, u + du, m.loads()), m.instant(x, v, u - du, m.loads())
        slope = (ahead.qdd - behind.qdd) / (2.0 * du[j])
        np.testing.assert_allclose(at.qdd_x[:, 4 + j], slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
