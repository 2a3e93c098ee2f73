"""The node in JAX's programs: rules of vmap, gradients of each sample, and derivatives that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from batch_machines import states
from studies.small_arm import small_arm
from veridyn.errors import DataError

jax = pytest.importorskip("jax")
vj = pytest.importorskip("veridyn.jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
MACHINE = small_arm()
P = jnp.asarray(MACHINE.parameters.values)
Q, QD, QDD = (jnp.asarray(x) for x in (states(MACHINE, 6).q, states(MACHINE, 6).qd, states(MACHINE, 6).qdd))


def law(*given):
    return vj.inverse_dynamics(MACHINE, *given)


def test_mapped_calls_are_single_ones_side_by_side() -> None:
    vmap, expected, sets = jax.vmap, law(Q, QD, QDD, P), jnp.stack([P, 1.1 * P, 0.9 * P])
    every = law(Q, QD, QDD, sets[:, None])
    np.testing.assert_array_equal(vmap(law, (0, 0, 0, None))(Q, QD, QDD, P), expected)
    np.testing.assert_allclose(vmap(law, (None, None, None, 0))(Q, QD, QDD, sets), every)
    np.testing.assert_allclose(vmap(lambda p: vmap(law, (0, 0, 0, None))(Q, QD, QDD, p))(sets), every)
    nested = vmap(lambda q: law(q, QD, QDD, sets[:, None]))(jnp.stack([Q, 2.0 * Q]))
    np.testing.assert_allclose(nested[1], law(2.0 * Q, QD, QDD, sets[:, None]))


def test_jacobians_and_gradients_of_each_sample() -> None:
    jacobian = jax.jit(jax.vmap(jax.jacrev(law, argnums=3), (0, 0, 0, None)))(Q, QD, QDD, P)
    np.testing.assert_allclose(jacobian, vj.regressor(MACHINE, Q, QD, QDD), atol=1e-12)

    def each(q, p):
        return (law(q, QD[0], QDD[0], p) ** 2).sum()

    mapped = jax.vmap(jax.grad(each, argnums=(0, 1)), (0, None))(Q, P)
    for k in (0, 5):
        for a, b in zip(mapped, jax.grad(each, argnums=(0, 1))(Q[k], P), strict=True):
            np.testing.assert_allclose(a[k], b, atol=1e-11)


def test_sums_repeat_to_the_last_bit() -> None:
    m = states(MACHINE, 2000)
    slope = jax.jit(jax.grad(lambda p: law(*(jnp.asarray(x) for x in (m.q, m.qd, m.qdd)), p).sum()))
    np.testing.assert_array_equal(slope(P), slope(P))


def test_derivatives_of_derivatives_are_refused_by_name() -> None:
    with pytest.raises(DataError, match="second derivatives"):
        jax.grad(lambda a: jax.grad(lambda b: law(b, QD[0], QDD[0], P).sum())(a).sum())(Q[0])
    with pytest.raises(TypeError, match="forward-mode"):  # of JAX itself
        jax.jacfwd(lambda a: law(a, QD[0], QDD[0], P))(Q[0])
