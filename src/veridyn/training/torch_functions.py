"""Dynamics of a machine as functions of PyTorch's tensors, with exact gradients by states, inputs and all parameters."""

# Types are checked where torch is installed; where it is not, nothing is known of it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.machine import Machine
from veridyn.symbolic.cache import remembered
from veridyn.training.extras import missing
from veridyn.training.shapes import broadcast, check_columns, complete_arrays, split
from veridyn.training.steps import check_fixed, runge_kutta

try:
    import torch
except ImportError:
    raise missing("torch") from None
from torch import Tensor

from veridyn.training.torch_node import evaluated, known

Base = Mapping[str, Tensor]


def inverse_dynamics(
    machine: Machine,
    q: Tensor,
    qd: Tensor,
    qdd: Tensor,
    parameters: Tensor | None = None,
    *,
    base: Base | None = None,
    friction_speed: float = 0.0,
) -> Tensor:
    """Forces of motions, (..., rows), with gradients by all tensors.

    Parameters
    ----------
    machine : Machine
        An open machine on a fixed or a free base.
    q, qd, qdd : tensor (..., n)
        Positions, rates and accelerations, doubles on one device; read where they lie, whatever their strides.
    parameters : tensor (..., p), optional
        In the order of ``machine.parameters.names``; the machine's own by default. Leading dimensions are broadcast: (p,) is shared by
        all samples, (N, p) is one set for each of N samples, and (S, 1, p) gives S sets all of N samples, a result (S, N, rows).
    base : mapping of tensors (..., 3), optional
        ``omega``, ``omega_dot``, ``acceleration`` and, where it is needed, ``velocity`` of a free base, as in ``BaseMotion``.
    friction_speed : float
        Speed in rad/s or m/s below which dry friction is rounded off; 0, the default, is exact, with the derivative of sign(x) taken as 0.

    Returns
    -------
    tensor (..., rows)
        For a free base its force and moment first.

    Examples
    --------
    >>> import torch, veridyn as vd, veridyn.torch as vt  # doctest: +SKIP
    >>> phi = torch.tensor(robot.parameters.values, requires_grad=True)  # doctest: +SKIP
    >>> torch.nn.functional.mse_loss(vt.inverse_dynamics(robot, q, qd, qdd, phi), measured).backward()  # doctest: +SKIP
    """
    function = _described(machine, "inverse", friction_speed=friction_speed)
    return _evaluated(machine, function, {"q": q, "qd": qd, "qdd": qdd}, parameters, base)


def forward_dynamics(
    machine: Machine,
    q: Tensor,
    qd: Tensor,
    forces: Tensor,
    parameters: Tensor | None = None,
    *,
    base: Base | None = None,
    friction_speed: float = 0.0,
) -> Tensor:
    """Accelerations (..., rows) under forces (..., n) on the coordinates; shapes as in :func:`inverse_dynamics`.

    Of a free base v̇ − g and ω̇ come first. Where the mass matrix is singular, results are not finite: nothing is checked on the device.
    """
    function = _described(machine, "forward", friction_speed=friction_speed)
    return _evaluated(machine, function, {"q": q, "qd": qd, "forces": forces}, parameters, base)


def mass_matrix(machine: Machine, q: Tensor, parameters: Tensor | None = None) -> Tensor:
    """M (..., rows, rows); shapes as in :func:`inverse_dynamics`."""
    return _evaluated(machine, _described(machine, "mass"), {"q": q}, parameters)


def regressor(machine: Machine, q: Tensor, qd: Tensor, qdd: Tensor, *, base: Base | None = None) -> Tensor:
    """D (..., rows, p) with Γ = D φ, columns in the order of the machine's parameters; samples lie together in memory."""
    return _evaluated(machine, _described(machine, "regressor"), {"q": q, "qd": qd, "qdd": qdd}, None, base)


def forward_kinematics(machine: Machine, q: Tensor, frames: Sequence[str]) -> Tensor:
    """Poses [R | p] of links by name, (..., frames, 3, 4), in the ground's frame, or in that of a free base."""
    return _evaluated(machine, _described(machine, "poses", frames), {"q": q}, None)


def step(
    machine: Machine,
    q: Tensor,
    qd: Tensor,
    forces: Tensor,
    h: float,
    parameters: Tensor | None = None,
    *,
    friction_speed: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """q and q̇ after `h` seconds under constant forces, by one step of the classical Runge-Kutta method of fourth order.

    For machines on a fixed base. The gradient is that of the step itself, not of the motion that it approximates.
    """
    check_fixed(machine)

    def rates(at: Tensor, speed: Tensor) -> tuple[Tensor, Tensor]:
        return speed, forward_dynamics(machine, at, speed, forces, parameters, friction_speed=friction_speed)

    return runge_kutta(rates, q, qd, h)


def run(
    machine: Machine,
    q: Tensor,
    qd: Tensor,
    forces: Tensor,
    h: float,
    parameters: Tensor | None = None,
    *,
    friction_speed: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Positions and rates (T + 1, ..., n) from a state (..., n), under forces (T, ..., n) that are constant for `h` seconds each."""
    at, speeds = [q], [qd]
    for acting in forces:
        new, speed = step(machine, at[-1], speeds[-1], acting, h, parameters, friction_speed=friction_speed)
        at.append(new)
        speeds.append(speed)
    first, moving = torch.broadcast_tensors(at[0], at[-1])[0], torch.broadcast_tensors(speeds[0], speeds[-1])[0]
    return torch.stack([first, *at[1:]]), torch.stack([moving, *speeds[1:]])


Described = tuple[str, tuple[tuple[str, int], ...], tuple[int, ...]]  # name of a function, widths of its arrays, shape


@torch.compiler.assume_constant_result
def _described(machine: Machine, quantity: str, frames: Sequence[str] = (), friction_speed: float = 0.0) -> Described:
    """A function of a machine in words and numbers; compilers of PyTorch do not look into how it is made."""
    function = machine_function(machine, quantity, frames, friction_speed)
    return known(function), tuple(function.widths.items()), function.shape


def _evaluated(
    machine: Machine,
    described: Described,
    states: dict[str, Tensor],
    parameters: Tensor | None,
    base: Base | None = None,
) -> Tensor:
    """A function of tensors whose leading dimensions are broadcast."""
    key, columns, shape = described
    widths = dict(columns)
    given = complete_arrays([name for name, _ in columns[:-1]], states, base, machine.name)
    like = given["q"]
    if parameters is None:
        parameters = _parameters(machine, like) if widths["parameters"] else like.new_empty(0)
    given["parameters"] = parameters
    for name, x in given.items():
        if not isinstance(x, Tensor) or x.dtype != torch.float64 or x.device != like.device:
            raise DataError(
                "tensors are doubles on one device.",
                where=f"{machine.name}, '{name}'",
                expected=f"torch.float64 on {like.device}",
                found=f"{x.dtype} on {x.device}" if isinstance(x, Tensor) else type(x).__name__,
                hint="Machine code is made for doubles only: x.double().",
            )
    check_columns(widths, given, machine.name)
    tensors = list(given.values())
    leading = broadcast([tuple(x.shape[:-1]) for x in tensors], machine.name)
    sizes = split([tuple(x.shape[:-1]) for x in tensors], leading)
    if sizes is None:  # no cut of the dimensions: written out
        tensors = [x.expand(*leading, x.shape[-1]) for x in tensors]
        sizes = [(1, prod(leading))] * len(tensors)
    canonical = [x.reshape(*size, x.shape[-1]) for x, size in zip(tensors, sizes, strict=True)]
    return evaluated(key, canonical).reshape(*leading, *shape)


def _parameters(machine: Machine, like: Tensor) -> Tensor:
    """The machine's own values on the device, brought there once."""
    values = _values(machine)
    if torch.compiler.is_compiling():
        return like.new_tensor(values)
    made: Any = remembered(f"training values {like.device} {values}", lambda: like.new_tensor(values))
    return made


@torch.compiler.assume_constant_result
def _values(machine: Machine) -> tuple[float, ...]:
    """The machine's own parameters, refused where some are unknown."""
    return tuple(float(x) for x in complete_values(tree_of(machine)))
