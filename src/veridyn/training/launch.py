"""What machine code of a function is told, on any device: where arrays lie, how far apart their numbers are, and how many there are.

All arrays are (sets, samples, columns); one that all sets or all samples share has length 1 there, and a stride of zero. The parameters of
a call are shared by all samples (1, 1, p), by those of a set (sets, 1, p), or are each sample's own (1 or sets, samples, p).

The product of shared parameters is a sum over samples. Machine code leaves it as partial sums of so many samples each, (sets, p, parts),
whose number and order depend on the number of samples alone; they are added up over the last dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction

DOUBLE = 8  # bytes
STRIDE_LIMIT = 2**32  # bytes between two columns, which kernels multiply as 32-bit numbers
SAMPLE_LIMIT = 2**31  # of one set
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One piece of machine code: a function, or its product by those of its inputs that are `wanted`; `own` parameters of each sample."""

    function: MachineFunction
    wanted: tuple[bool, ...] | None  # None: the function itself
    own: bool

    @property
    def inputs(self) -> list[tuple[str, ...]]:
        """Names of the columns of each array that is read."""
        f = self.function
        return f.inputs if self.wanted is None else [*f.inputs, f.weights]

    @property
    def widths(self) -> list[int]:
        """Columns of each array that is written."""
        f = self.function
        if self.wanted is None:
            return [len(f.outputs)]
        return [len(names) if asked else 0 for names, asked in zip(f.inputs, self.wanted, strict=True)]

    @property
    def parameters(self) -> int:
        """The number of the array of parameters."""
        return len(self.function.arrays)

    @property
    def summed(self) -> int:
        """The number of the written array that is a sum over samples, or −1."""
        return self.parameters if self.wanted is not None and self.wanted[-1] and not self.own else -1

    @property
    def key(self) -> str:
        """What its machine code is kept under."""
        return f"{self.function.key} {self.wanted} {self.own}"


def common_size(shapes: Sequence[Shape]) -> tuple[int, int]:
    """Sets and samples of arrays (sets, samples, columns), in which a length of 1 goes with any other."""
    found = [1, 1]
    for axis in (0, 1):
        lengths = {shape[axis] for shape in shapes} - {1}
        if len(lengths) > 1:
            raise DataError(
                "arrays have different numbers of samples or sets.",
                expected="one length, or 1",
                found=", ".join(map(str, shapes)),
            )
        found[axis] = lengths.pop() if lengths else 1
    return found[0], found[1]


def row(address: int, strides: Sequence[int], shape: Shape, size: tuple[int, int]) -> list[int]:
    """The four numbers of an array: where it lies, and bytes to the next set, sample and column. `strides` are in bytes."""
    apart = [0 if length == 1 else stride for length, stride in zip(shape[:2], strides[:2], strict=True)]
    if not 0 <= strides[2] < STRIDE_LIMIT or size[1] >= SAMPLE_LIMIT:
        raise DataError("an array is too large for one call.", found=f"{shape}", hint="Give fewer samples in one call.")
    return [address, *apart, strides[2]]


def packed(rows: Sequence[Sequence[int]], samples: int, parts: int) -> np.ndarray:
    """The integers of a launch: all arrays, the samples of a set, and the parts into which a set is cut."""
    return np.array([*(x for r in rows for x in r), samples, parts], dtype=np.int64)
