"""Functions of a machine as nodes of PyTorch's graph: two custom operators, the function and its product, and the rules around them.

Operators take arrays (sets, samples, columns), the parameters last, and are known to tracers by their shapes. The product is a node
itself, so that derivatives of derivatives are refused by name. Rules for ``torch.func.vmap`` put the mapped dimension among samples or
sets, so that one call of machine code has them all.
"""

# Types are checked where torch is installed; where it is not, nothing is known of it.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction
from veridyn.training.card import card_blocks, card_parts, card_program
from veridyn.training.host import host_parts, host_program
from veridyn.training.launch import Call, common_size, packed, row

WIDE = 32  # columns above which samples lie together in memory, so that neighbouring threads write neighbouring numbers
_functions: dict[str, MachineFunction] = {}


def known(function: MachineFunction) -> str:
    """The name under which operators find a function."""
    _functions[function.key] = function
    return function.key


def _empty(like: Tensor, sets: int, samples: int, columns: int) -> Tensor:
    """Room for results: rows of columns, or columns of samples where there are many."""
    if columns > WIDE:
        return like.new_empty((sets, columns, samples)).transpose(1, 2)
    return like.new_empty((sets, samples, columns))


def _run(call: Call, reads: Sequence[Tensor], writes: Sequence[Tensor], size: tuple[int, int]) -> None:
    sets, samples = size
    if not sets * samples:
        return
    where = reads[0].device
    parts = card_parts(samples) if where.type == "cuda" else host_parts(samples)
    rows = [_row(x, (*x.shape,), size) for x in reads]
    for k, x in enumerate(writes):
        rows.append(_row(x, (sets, parts, x.shape[-1]) if k == call.summed else (*x.shape,), size))
    if where.type == "cuda":
        index = torch.cuda.current_device() if where.index is None else where.index
        stream = torch.cuda.current_stream(index).cuda_stream
        card_program(call, index).run(packed(rows, samples, card_blocks(samples)), sets, stream)
    else:
        host_program(call).run(packed(rows, samples, parts), sets, torch.get_num_threads())


def _row(x: Tensor, shape: tuple[int, ...], size: tuple[int, int]) -> list[int]:
    return row(x.data_ptr(), [8 * k for k in x.stride()], shape, size)


@torch.library.custom_op("veridyn::function", mutates_args=())
def function_op(key: str, arrays: Sequence[Tensor]) -> Tensor:
    """The outputs (sets, samples, outputs) of arrays (sets or 1, samples or 1, columns), the parameters last."""
    function = _functions[key]
    size = common_size([tuple(x.shape) for x in arrays])
    out = _empty(arrays[0], *size, len(function.outputs))
    _run(Call(function, None, _own(arrays[-1])), arrays, [out], size)
    return out


@function_op.register_fake
def _(key: str, arrays: Sequence[Tensor]) -> Tensor:
    return _empty(arrays[0], *_fake_size(arrays), len(_functions[key].outputs))


@torch.library.custom_op("veridyn::product", mutates_args=())
def product_op(key: str, arrays: Sequence[Tensor], weights: Tensor, wanted: Sequence[bool]) -> list[Tensor]:
    """The gradients of Σ weights outputs by each of the arrays that is wanted, for every set and sample; nothing for the others.

    The gradient by parameters that all samples share is summed over them: (sets, 1, p).
    """
    size = common_size([*(tuple(x.shape) for x in arrays), tuple(weights.shape)])
    sets, samples = size
    call = Call(_functions[key], tuple(wanted), _own(arrays[-1]))
    writes = [_empty(weights, sets, samples, columns) for columns in call.widths]
    if call.summed >= 0:
        parts = card_parts(samples) if weights.device.type == "cuda" else host_parts(samples)
        writes[-1] = weights.new_empty((sets, arrays[-1].shape[-1], parts)).transpose(1, 2)
    _run(call, [*arrays, weights], writes, size)
    if call.summed >= 0:
        writes[-1] = writes[-1].transpose(1, 2).sum(-1)[:, None]
    return [x if asked else weights.new_empty(0) for x, asked in zip(writes, wanted, strict=True)]


@product_op.register_fake
def _(key: str, arrays: Sequence[Tensor], weights: Tensor, wanted: Sequence[bool]) -> list[Tensor]:
    sets, samples = _fake_size([*arrays, weights])
    found = [_empty(weights, sets, samples, x.shape[-1]) for x in arrays]
    if arrays[-1].shape[1] == 1:
        found[-1] = weights.new_empty((sets, 1, arrays[-1].shape[-1]))
    return [x if asked else weights.new_empty(0) for x, asked in zip(found, wanted, strict=True)]


def _own(parameters: Tensor) -> bool:
    return parameters.shape[1] != 1


def _fake_size(arrays: Sequence[Tensor]) -> tuple[Any, Any]:
    """Sets and samples where lengths may be symbols: an array's length where it is not 1."""
    found: list[Any] = [1, 1]
    for axis in (0, 1):
        for x in arrays:
            if not (isinstance(x.shape[axis], int) and x.shape[axis] == 1):
                found[axis] = x.shape[axis]
    return found[0], found[1]


def _keep(ctx: Any, inputs: tuple[str, Sequence[Tensor]], output: Tensor) -> None:
    ctx.key = inputs[0]
    ctx.save_for_backward(*inputs[1])


def _product_of(ctx: Any, weights: Tensor) -> tuple[None, list[Tensor | None]]:
    wanted = [bool(x) for x in ctx.needs_input_grad[1]]
    found = product_op(ctx.key, ctx.saved_tensors, weights, wanted)
    pairs = zip(found, ctx.saved_tensors, wanted, strict=True)
    return None, [_summed(g, x) if asked else None for g, x, asked in pairs]


# The rule that ``torch.compile`` follows; ``torch.func`` cannot follow a rule of this kind, so that it is given nodes instead.
function_op.register_autograd(_product_of, setup_context=_keep)


def evaluated(key: str, arrays: Sequence[Tensor]) -> Tensor:
    """The outputs (sets, samples, outputs), with their place in the graph of derivatives."""
    return function_op(key, arrays) if torch.compiler.is_compiling() else FunctionNode.apply(key, *arrays)


class FunctionNode(torch.autograd.Function):
    """The function in the graph of derivatives."""

    @staticmethod
    def forward(key: str, *arrays: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return function_op(key, arrays)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.key = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        wanted = tuple(ctx.needs_input_grad[1:])
        return None, *ProductNode.apply(ctx.key, wanted, weights, *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], key: str, *arrays: Tensor) -> tuple[Tensor, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        mapped, back = _mapped(info.batch_size, in_dims[1:], arrays, each=False)
        return back(FunctionNode.apply(key, *mapped)), 0


class ProductNode(torch.autograd.Function):
    """The product in the graph of derivatives, where it ends."""

    @staticmethod
    def forward(key: str, wanted: tuple[bool, ...], weights: Tensor, *arrays: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        found = product_op(key, arrays, weights, wanted)
        return tuple(_summed(g, x) if asked else None for g, x, asked in zip(found, arrays, wanted, strict=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *weights: Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise DataError(
            "second derivatives of a machine's functions are not made.",
            where="veridyn.torch",
            expected="one derivative: loss.backward(), torch.autograd.grad or torch.func.grad and vjp",
            found="a derivative of a derivative",
            hint="Detach the gradient, or take differences of gradients.",
        )

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any, in_dims: tuple[Any, ...], key: str, wanted: tuple[bool, ...], weights: Tensor, *arrays: Tensor
    ) -> tuple[Any, Any]:
        given, back = _mapped(info.batch_size, in_dims[2:], (weights, *arrays), each=True)
        found = ProductNode.apply(key, wanted, *given)
        outputs = tuple(None if x is None else back(x) for x in found)
        return outputs, tuple(None if x is None else 0 for x in found)


def _summed(gradient: Tensor, array: Tensor) -> Tensor:
    """A gradient in the shape of its array: summed over what the array shares."""
    for axis in (0, 1):
        if array.shape[axis] == 1 and gradient.shape[axis] != 1:
            gradient = gradient.sum(axis, keepdim=True)
    return gradient


def _mapped(batch: int, dims: Sequence[int | None], arrays: Sequence[Tensor], each: bool) -> tuple[list[Tensor], Any]:
    """Arrays of a mapped call as arrays of one that is not, and what gives its results their mapped dimension back, the first.

    The mapped dimension becomes the samples where there is one of each, else the sets, else more sets than there were. With `each`, what
    is not mapped is written out, so that it has a result for each.
    """
    front = [x[None] if d is None else x.movedim(d, 0) for x, d in zip(arrays, dims, strict=True)]
    sets = max(x.shape[1] for x in front)
    samples = max(x.shape[2] for x in front)
    if each or sets > 1:
        front = [x.expand(batch, *x.shape[1:]) for x in front]
    if sets == 1 and samples == 1:
        given = [x.reshape(1, x.shape[0], x.shape[3]) for x in front]
        return given, lambda y: y.reshape(batch, 1, 1, y.shape[-1])
    if sets == 1:
        given = [x.reshape(x.shape[0], *x.shape[2:]) for x in front]
        return given, lambda y: y.reshape(batch, 1, *y.shape[1:])
    given = [x.expand(batch, sets, *x.shape[2:]).reshape(batch * sets, *x.shape[2:]) for x in front]
    return given, lambda y: y.reshape(batch, sets, *y.shape[1:])
