"""Functions of a machine as nodes of JAX's programs: calls of XLA's foreign function interface, their products and their rules.

A node is called with arrays (sets, samples, columns), the parameters last, as the one for PyTorch is. It works in ``jit``, ``vmap`` and
``grad``; what ``vmap`` maps becomes samples or sets of one call of machine code. Derivatives of derivatives are refused by name.
"""

# Types are checked where jax is installed; where it is not, nothing is known of it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction
from veridyn.symbolic.emit_ptx import THREADS
from veridyn.training.card import card_parts, card_program, driver
from veridyn.training.frame import frame_plan, handler_address
from veridyn.training.host import PART, host_parts, host_program
from veridyn.training.launch import Call, common_size

TARGETS = {"cpu": "veridyn_host", "cuda": "veridyn_card"}
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_kept: list[Any] = []  # plans and handlers, whose addresses stand in compiled programs


@cache
def _target(platform: str) -> str:
    """The name of the handler of a platform, registered now where it was not."""
    handler = _HANDLER(handler_address(platform == "cuda"))
    _kept.append(handler)
    jax.ffi.register_ffi_target(
        TARGETS[platform], jax.ffi.pycapsule(handler), platform="CUDA" if platform == "cuda" else "cpu"
    )
    return TARGETS[platform]


@cache
def _plan(function: MachineFunction, wanted: tuple[bool, ...] | None, own: bool, platform: str) -> np.int64:
    """The address of the plan of a call; see :func:`veridyn.training.frame.frame_plan`."""
    call = Call(function, wanted, own)
    arrays = len(call.inputs), len(call.widths), call.summed
    if platform == "cuda":
        program = card_program(call, 0)
        plan = frame_plan(*arrays, THREADS, driver().launcher, program.function)
    else:
        program = host_program(call)
        plan = frame_plan(*arrays, PART, program.plan.ctypes.data, len(program.plan))
    _kept.extend((program, plan))
    return np.int64(plan.ctypes.data)


def _called(function: MachineFunction, wanted: tuple[bool, ...] | None, arrays: Sequence[Any]) -> list[Any]:
    """The arrays that a call writes, sums added up."""
    sets, samples = common_size([x.shape for x in arrays])
    own = arrays[len(function.arrays)].shape[1] != 1
    call = Call(function, wanted, own)

    def on(platform: str) -> Callable[..., list[Any]]:
        parts = (card_parts if platform == "cuda" else host_parts)(samples)
        shapes = [
            (sets, columns, parts) if k == call.summed else (sets, samples, columns)
            for k, columns in enumerate(call.widths)
        ]
        results = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]

        def run(*given: Any) -> list[Any]:
            call_of = jax.ffi.ffi_call(_target(platform), results, vmap_method="sequential")
            found = list(call_of(*given, plan=_plan(function, wanted, own, platform)))
            if call.summed >= 0:
                found[call.summed] = found[call.summed].sum(-1)[:, None]
            return found

        return run

    if jax.default_backend() == "gpu":
        return jax.lax.platform_dependent(*arrays, cpu=on("cpu"), cuda=on("cuda"))
    return on("cpu")(*arrays)


@cache
def function_node(function: MachineFunction) -> Callable[..., Any]:
    """The function of arrays (sets or 1, samples or 1, columns), the parameters last; its outputs (sets, samples, outputs)."""

    @custom_vmap
    def evaluate(*arrays: Any) -> Any:
        return _called(function, None, arrays)[0]

    @evaluate.def_vmap
    def _(batch: int, mapped: Sequence[bool], *arrays: Any) -> tuple[Any, bool]:
        given, back = _without_map(batch, mapped, arrays, each=False)
        return back(evaluate(*given)), True

    @jax.custom_vjp
    def node(*arrays: Any) -> Any:
        return evaluate(*arrays)

    def ahead(*arrays: Any) -> tuple[Any, Any]:
        return node(*arrays), arrays  # itself, so that a derivative of it comes to the product and is refused by name

    def backward(arrays: Any, weights: Any) -> tuple[Any, ...]:
        return tuple(_summed(g, x) for g, x in zip(product_node(function)(weights, *arrays), arrays, strict=True))

    node.defvjp(ahead, backward)
    return node


@cache
def product_node(function: MachineFunction) -> Callable[..., Any]:
    """The gradients of Σ weights outputs by all arrays, for every set and sample, by shared parameters for every set."""
    wanted = tuple(len(names) > 0 for names in function.inputs)

    @custom_vmap
    def evaluate(weights: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(_called(function, wanted, (*arrays, weights)))

    @evaluate.def_vmap
    def _(batch: int, mapped: Sequence[bool], *given: Any) -> tuple[Any, Any]:
        arrays, back = _without_map(batch, mapped, given, each=True)
        found = tuple(back(_summed(g, x)) for g, x in zip(evaluate(*arrays), arrays[1:], strict=True))
        return found, (True,) * len(found)

    @jax.custom_vjp
    def node(weights: Any, *arrays: Any) -> tuple[Any, ...]:
        return evaluate(weights, *arrays)

    def ahead(weights: Any, *arrays: Any) -> Any:
        raise DataError(
            "second derivatives of a machine's functions are not made.",
            where="veridyn.jax",
            expected="one derivative: jax.grad, jax.vjp or jax.jacrev",
            found="a derivative of a derivative",
            hint="Stop the gradient with jax.lax.stop_gradient, or take differences of gradients.",
        )

    node.defvjp(ahead, lambda residuals, weights: ())
    return node


def _summed(gradient: Any, array: Any) -> Any:
    """A gradient in the shape of its array: summed over what the array shares."""
    axes = tuple(k for k in (0, 1) if array.shape[k] == 1 and gradient.shape[k] != 1)
    return gradient.sum(axes, keepdims=True) if axes else gradient


def _without_map(batch: int, mapped: Sequence[bool], arrays: Sequence[Any], each: bool) -> tuple[list[Any], Any]:
    """Arrays of a mapped call as arrays of one that is not, and what gives results their mapped dimension back, the first.

    It becomes the samples where there is one of each, else the sets, else more sets than there were. With `each`, what is not mapped is
    written out, so that it has a result for each.
    """
    front = [x if own else x[None] for x, own in zip(arrays, mapped, strict=True)]
    sets, samples = max(x.shape[1] for x in front), max(x.shape[2] for x in front)
    if each or sets > 1:
        front = [jnp.broadcast_to(x, (batch, *x.shape[1:])) for x in front]
    if sets == 1 and samples == 1:
        return [x.reshape(1, x.shape[0], x.shape[3]) for x in front], lambda y: y.reshape(batch, 1, 1, y.shape[-1])
    if sets == 1:
        return [x.reshape(x.shape[0], *x.shape[2:]) for x in front], lambda y: y.reshape(batch, 1, *y.shape[1:])
    wide = [jnp.broadcast_to(x, (batch, sets, *x.shape[2:])) for x in front]
    return [x.reshape(batch * sets, *x.shape[2:]) for x in wide], lambda y: y.reshape(batch, sets, *y.shape[1:])
