"""Leading dimensions of arrays as sets and samples: they are broadcast against each other, as array libraries do it.

States (N, n) go with parameters (p,), the same for all samples; with (N, p), one set for each sample; with (S, 1, p), sets that each have
all samples. Machine code takes sets and samples; other shapes are brought to these two where that needs no copy, and written out else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from veridyn.errors import DataError

Shape = tuple[int, ...]


def broadcast(shapes: Sequence[Shape], where: str) -> Shape:
    """The leading shape that all arrays have together."""
    rank = max(len(own) for own in shapes)
    padded = [(1,) * (rank - len(own)) + tuple(own) for own in shapes]
    whole = tuple(next((n for n in lengths if n != 1), 1) for lengths in zip(*padded, strict=True))
    if any(n not in (1, full) for own in padded for n, full in zip(own, whole, strict=True)):
        raise DataError(
            "the arrays do not go together.",
            where=where,
            expected="leading dimensions that can be broadcast: (N, n) with (p,), (N, p) or (sets, 1, p)",
            found=", ".join(str(tuple(own)) for own in shapes),
        )
    return whole


def check_columns(widths: Mapping[str, int], arrays: Mapping[str, Any], where: str) -> None:
    """Refuse arrays whose last dimension is not the one of the function."""
    for name, array in arrays.items():
        if not array.ndim or array.shape[-1] != widths[name]:
            raise DataError(
                "an array has the wrong shape.",
                where=f"{where}, '{name}'",
                expected=f"(..., {widths[name]})",
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
    names: Sequence[str], states: Mapping[str, Any], base: Mapping[str, Any] | None, where: str
) -> dict[str, Any]:
    """The arrays of these names in their order; those of a free base are taken from `base`."""
    given = dict(states)
    for name in names:
        if name not in given:
            if base is None or name not in base:
                raise DataError(
                    "the motion of the base is not complete.", where=where, expected=f"base={{'{name}': (..., 3), …}}"
                )
            given[name] = base[name]
    return {name: given[name] for name in names}
