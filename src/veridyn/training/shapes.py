"""Leading dimensions of arrays as sets and samples: they are broadcast against each other, as array libraries do it.

States (N, n) go with parameters (p,), the same for all samples; with (N, p), one set for each sample; with (S, 1, p), sets that each have
all samples. Machine code takes sets and samples; other shapes are brought to these two where that needs no copy, and written out else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction

Shape = tuple[int, ...]


def broadcast(shapes: Sequence[Shape], where: str) -> Shape:
    """The leading shape that all arrays have together."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise DataError(
            "the arrays do not go together.",
            where=where,
            expected="leading dimensions that can be broadcast: (N, n) with (p,), (N, p) or (sets, 1, p)",
            found=", ".join(map(str, shapes)),
        ) from None


def check_columns(function: MachineFunction, arrays: dict[str, Any], where: str) -> None:
    """Refuse arrays whose last dimension is not the one of the function."""
    wanted = {**function.arrays, "parameters": function.parameters}
    for name, array in arrays.items():
        if not array.ndim or array.shape[-1] != len(wanted[name]):
            raise DataError(
                "an array has the wrong shape.",
                where=f"{where}, '{name}'",
                expected=f"(..., {len(wanted[name])})",
                found=f"{tuple(array.shape)}",
            )


def split(leading: Sequence[Shape], whole: Shape) -> list[Shape] | None:
    """For each array the lengths (sets, samples), each 1 or that of all; None where no cut of the dimensions gives that.

    Samples are as many as can be: what is cut off in front for sets is as short as possible.
    """
    rank = len(whole)
    padded = [(1,) * (rank - len(own)) + tuple(own) for own in leading]
    for cut in range(rank + 1):
        parts = [[(own[:cut], whole[:cut]), (own[cut:], whole[cut:])] for own in padded]
        if all(part == full or prod(part) == 1 for pair in parts for part, full in pair):
            found = [(prod(pair[0][0]), prod(pair[1][0])) for pair in parts]
            # One sample for each set is one set of that many samples.
            return [(1, sets) for sets, _ in found] if prod(whole[cut:]) == 1 else found
    return None


def complete_arrays(
    function: MachineFunction, states: Mapping[str, Any], base: Mapping[str, Any] | None, where: str
) -> dict[str, Any]:
    """All arrays of a function in its order; those of a free base are taken from `base`."""
    given = dict(states)
    for name in function.arrays:
        if name not in given:
            if base is None or name not in base:
                raise DataError(
                    "the motion of the base is not complete.", where=where, expected=f"base={{'{name}': (..., 3), …}}"
                )
            given[name] = base[name]
    return {name: given[name] for name in function.arrays}
