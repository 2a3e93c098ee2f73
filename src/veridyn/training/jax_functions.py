"""Dynamics of a machine as functions of JAX's arrays, with exact gradients by states, inputs and all parameters."""

# Types are checked where jax is installed; where it is not, nothing is known of it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction, machine_function
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.machine import Machine
from veridyn.training.extras import missing
from veridyn.training.shapes import broadcast, check_columns, complete_arrays, split
from veridyn.training.steps import check_fixed, runge_kutta

try:
    import jax
except ImportError:
    raise missing("jax") from None
import jax.numpy as jnp

from veridyn.training.jax_node import function_node

Base = Mapping[str, jax.Array]


def inverse_dynamics(
    machine: Machine,
    q: jax.Array,
    qd: jax.Array,
    qdd: jax.Array,
    parameters: jax.Array | None = None,
    *,
    base: Base | None = None,
    friction_speed: float = 0.0,
) -> jax.Array:
    """Forces of motions, (..., rows), with gradients by all arrays; works in ``jit``, ``vmap`` and ``grad``.

    Parameters
    ----------
    machine : Machine
        An open machine on a fixed or a free base.
    q, qd, qdd : array (..., n)
        Positions, rates and accelerations, doubles: ``jax.config.update("jax_enable_x64", True)``.
    parameters : array (..., p), optional
        In the order of ``machine.parameters.names``; the machine's own by default. Leading dimensions are broadcast: (p,) is shared by
        all samples, (N, p) is one set for each of N samples, and (S, 1, p) gives S sets all of N samples, a result (S, N, rows).
    base : mapping of arrays (..., 3), optional
        ``omega``, ``omega_dot``, ``acceleration`` and, where it is needed, ``velocity`` of a free base, as in ``BaseMotion``.
    friction_speed : float
        Speed in rad/s or m/s below which dry friction is rounded off; 0, the default, is exact, with the derivative of sign(x) taken as 0.

    Returns
    -------
    array (..., rows)
        For a free base its force and moment first.

    Examples
    --------
    >>> import jax, veridyn as vd, veridyn.jax as vj  # doctest: +SKIP
    >>> slope = jax.grad(lambda phi: ((vj.inverse_dynamics(robot, q, qd, qdd, phi) - measured) ** 2).mean())(phi)  # doctest: +SKIP
    """
    function = machine_function(machine, "inverse", friction_speed=friction_speed)
    return _evaluated(machine, function, {"q": q, "qd": qd, "qdd": qdd}, parameters, base)


def forward_dynamics(
    machine: Machine,
    q: jax.Array,
    qd: jax.Array,
    forces: jax.Array,
    parameters: jax.Array | None = None,
    *,
    base: Base | None = None,
    friction_speed: float = 0.0,
) -> jax.Array:
    """Accelerations (..., rows) under forces (..., n) on the coordinates; shapes as in :func:`inverse_dynamics`.

    Of a free base v̇ − g and ω̇ come first. Where the mass matrix is singular, results are not finite: nothing is checked on the device.
    """
    function = machine_function(machine, "forward", friction_speed=friction_speed)
    return _evaluated(machine, function, {"q": q, "qd": qd, "forces": forces}, parameters, base)


def mass_matrix(machine: Machine, q: jax.Array, parameters: jax.Array | None = None) -> jax.Array:
    """M (..., rows, rows); shapes as in :func:`inverse_dynamics`."""
    return _evaluated(machine, machine_function(machine, "mass"), {"q": q}, parameters)


def regressor(machine: Machine, q: jax.Array, qd: jax.Array, qdd: jax.Array, *, base: Base | None = None) -> jax.Array:
    """D (..., rows, p) with Γ = D φ, columns in the order of the machine's parameters."""
    return _evaluated(machine, machine_function(machine, "regressor"), {"q": q, "qd": qd, "qdd": qdd}, None, base)


def forward_kinematics(machine: Machine, q: jax.Array, frames: Sequence[str]) -> jax.Array:
    """Poses [R | p] of links by name, (..., frames, 3, 4), in the ground's frame, or in that of a free base."""
    return _evaluated(machine, machine_function(machine, "poses", frames), {"q": q}, None)


def step(
    machine: Machine,
    q: jax.Array,
    qd: jax.Array,
    forces: jax.Array,
    h: float,
    parameters: jax.Array | None = None,
    *,
    friction_speed: float = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """q and q̇ after `h` seconds under constant forces, by one step of the classical Runge-Kutta method of fourth order.

    For machines on a fixed base. The gradient is that of the step itself, not of the motion that it approximates.
    """
    check_fixed(machine)

    def rates(at: jax.Array, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
        return speed, forward_dynamics(machine, at, speed, forces, parameters, friction_speed=friction_speed)

    return runge_kutta(rates, q, qd, h)


def run(
    machine: Machine,
    q: jax.Array,
    qd: jax.Array,
    forces: jax.Array,
    h: float,
    parameters: jax.Array | None = None,
    *,
    friction_speed: float = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """Positions and rates (T + 1, ..., n) from a state (..., n), under forces (T, ..., n) that are constant for `h` seconds each.

    The steps are one loop of ``jax.lax.scan``.
    """
    leading = [x.shape[:-1] for x in (q, qd, forces[0])] + ([] if parameters is None else [parameters.shape[:-1]])
    whole = (*broadcast(leading, machine.name), q.shape[-1])

    def advance(state: Any, acting: jax.Array) -> tuple[Any, Any]:
        new = step(machine, state[0], state[1], acting, h, parameters, friction_speed=friction_speed)
        return new, new

    start = (jnp.broadcast_to(q, whole), jnp.broadcast_to(qd, whole))
    _, (at, speeds) = jax.lax.scan(advance, start, forces)
    return jnp.concatenate([start[0][None], at]), jnp.concatenate([start[1][None], speeds])


def _evaluated(
    machine: Machine,
    function: MachineFunction,
    states: dict[str, jax.Array],
    parameters: jax.Array | None,
    base: Base | None = None,
) -> jax.Array:
    """A function of arrays whose leading dimensions are broadcast."""
    given = complete_arrays(list(function.arrays), states, base, machine.name)
    if parameters is None:
        parameters = jnp.asarray(complete_values(tree_of(machine)) if function.parameters else np.zeros(0))
    given["parameters"] = parameters
    for name, x in given.items():
        if not isinstance(x, (jax.Array, np.ndarray)) or x.dtype != np.float64:
            raise DataError(
                "arrays are doubles.",
                where=f"{machine.name}, '{name}'",
                expected="float64",
                found=f"{getattr(x, 'dtype', type(x).__name__)}",
                hint='jax.config.update("jax_enable_x64", True) before the first array: machine code is made for doubles only.',
            )
    check_columns(function.widths, given, machine.name)
    arrays = [jnp.asarray(x) for x in given.values()]
    leading = broadcast([x.shape[:-1] for x in arrays], machine.name)
    sizes = split([x.shape[:-1] for x in arrays], leading)
    if sizes is None:  # no cut of the dimensions: written out
        arrays = [jnp.broadcast_to(x, (*leading, x.shape[-1])) for x in arrays]
        sizes = [(1, int(np.prod(leading)))] * len(arrays)
    if 0 in leading:
        return jnp.zeros((*leading, *function.shape))
    canonical = [x.reshape(*size, x.shape[-1]) for x, size in zip(arrays, sizes, strict=True)]
    return function_node(function)(*canonical).reshape(*leading, *function.shape)
