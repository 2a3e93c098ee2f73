"""Functions of JAX's arrays: values and gradients of a plain recursion, in jit, vmap and grad; steps; what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from batch_machines import MACHINES, arm, states
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor

jax = pytest.importorskip("jax")
vj = pytest.importorskip("veridyn.jax")
plain_recursion = pytest.importorskip("strangers.plain_recursion")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy
SAMPLES = 300


def arrays(machine, samples: int = SAMPLES) -> list:
    m = states(machine, samples)
    return [jnp.asarray(x) for x in (m.q, m.qd, m.qdd)]


@pytest.mark.parametrize("name", MACHINES)
def test_values_are_those_of_the_dynamics(name: str) -> None:
    machine = MACHINES[name]()
    m = states(machine, SAMPLES)
    names = ("omega", "omega_dot", "acceleration", "velocity")
    base = (
        None
        if m.base is None
        else {n: jnp.asarray(getattr(m.base, n)) for n in names if getattr(m.base, n) is not None}
    )
    given = arrays(machine)
    pairs = [
        (vj.inverse_dynamics(machine, *given, base=base), inverse_dynamics(machine, m)),
        (vj.mass_matrix(machine, given[0]), mass_matrix(machine, m.q)),
        (vj.regressor(machine, *given, base=base), regressor(machine, m)),
        (
            vj.forward_dynamics(machine, *given[:2], jnp.asarray(m.forces), base=base)[:, -machine.n :],
            forward_dynamics(machine, m).qdd,
        ),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["shared", "own", "sets"])
def test_gradients_are_those_of_a_plain_recursion(kind: str) -> None:
    machine = arm()
    plain = plain_recursion.PlainArm(machine, jnp, jnp.asarray)
    p = jnp.asarray(machine.parameters.values)
    phi = {"shared": p, "own": jnp.linspace(0.9, 1.1, SAMPLES)[:, None] * p, "sets": jnp.stack([p, 1.2 * p])[:, None]}[
        kind
    ]
    given = [*arrays(machine), phi]

    def loss(law):
        return jax.jit(jax.grad(lambda *x: jnp.sin(law(*x)).sum(), argnums=(0, 1, 2, 3)))

    ours, theirs = (loss(law)(*given) for law in (lambda *x: vj.inverse_dynamics(machine, *x), plain.inverse_dynamics))
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and float(abs(a - b).max()) < 1e-10 * float(abs(b).max())


def test_steps_are_those_of_forward_dynamics_and_a_loop_has_gradients() -> None:
    machine = small_arm()
    q, qd, _ = (x[:3] for x in arrays(machine))
    p, forces = jnp.asarray(machine.parameters.values), jnp.zeros((4, 3, 2))
    at, _ = vj.run(machine, q, qd, forces, 1e-3, p, friction_speed=0.1)
    state = (q, qd)
    for k in range(4):
        state = vj.step(machine, *state, forces[k], 1e-3, p, friction_speed=0.1)
        np.testing.assert_allclose(at[k + 1], state[0], atol=1e-14)

    def goal(phi):
        return sum(x[-1].sum() for x in vj.run(machine, q, qd, forces, 1e-3, phi, friction_speed=0.1))

    direction = 1e-5 * np.random.default_rng(8).normal(size=len(p)) * p
    slope = float(jax.grad(goal)(p) @ direction)
    assert slope == pytest.approx(float(goal(p + direction) - goal(p - direction)) / 2.0, rel=1e-5)


def test_what_is_no_double_is_refused_by_name() -> None:
    machine = small_arm()
    q, qd, qdd = arrays(machine)
    with pytest.raises(DataError, match=r"'qd'(.|\n)*jax_enable_x64"):
        vj.inverse_dynamics(machine, q, qd.astype(jnp.float32), qdd)
    assert vj.inverse_dynamics(machine, q[:0], qd[:0], qdd[:0]).shape == (0, 2)
    assert vj.forward_kinematics(machine, q, ["1"]).shape == (SAMPLES, 1, 3, 4)


@pytest.mark.slow
def test_no_compiler_of_c_is_needed() -> None:
    """Handlers are made and registered with nothing on the path."""
    code = (
        "import jax; jax.config.update('jax_enable_x64', True); import jax.numpy as jnp, veridyn.jax as vj\n"
        "from studies.small_arm import small_arm; z = jnp.zeros((2, 2)); print(vj.inverse_dynamics(small_arm(), z, z, z).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd="tests",
        env={"PATH": "", "HOME": "/nowhere"},
    )
    assert "(2, 2)" in done.stdout, done.stderr
