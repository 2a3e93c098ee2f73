"""Many quadratic forms of the coordinates at once, as machine code: values, gradients and second derivatives.

    Φ = ½ yᵀ S y,  ∂Φ/∂q = (S y)_q,  y = (q, 1)

The forms are those of :class:`veridyn.mechanics.natural.constraints.CoefficientTable`; their pattern never changes, and is planned once.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from veridyn.mechanics.compiled import core, summing
from veridyn.mechanics.natural.constraints import CoefficientTable
from veridyn.mechanics.record import Numbers, Places, Vector

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
SAME_DIGITS = 14  # decimals to which rows of coefficients agree that differ by rounding alone


class Forms(NamedTuple):
    """A :class:`CoefficientTable`: gradients as multiples of a few compressed sums, and the second derivatives one by one.

    The sum number s, Σ `value` y[`source`] from `start[s]` on, times `scale[k]` is the entry of form `row[k]` at place `column[k]` for
    `used[s]` <= k < `used[s + 1]`: a vector between two points is in many gradients. Sums stand in the order of their lengths and of how
    often they are used, so that the processor foresees where each ends. `pair_…`: the second derivatives form by form, each pair of
    coordinates once.
    """

    rows: int
    start: Places
    source: Places
    value: Vector
    used: Places
    row: Places
    column: Places
    scale: Vector
    bend_row: Numbers
    bend_left: Places
    bend_right: Places
    bend_value: Vector
    pair_start: Places
    pair_left: Places
    pair_right: Places
    pair_value: Vector


def forms_of(t: CoefficientTable) -> Forms:
    """A table for the kernels."""
    start, source, value, used, order, scale = _sums(t.gather)
    left, right = t.bend_place // t.n, t.bend_place % t.n
    keys = (t.bend_row * t.n + np.minimum(left, right)) * t.n + np.maximum(left, right)
    pairs, at = np.unique(keys, return_inverse=True)
    pair_row = pairs // t.n**2

    def places(x: object) -> Places:
        return np.array(x, dtype=np.uint64)

    return Forms(
        t.rows,
        places(start),
        places(source),
        value,
        places(used),
        places(t.row[order]),
        places(t.column[order]),
        scale,
        t.bend_row.astype(np.int64),
        places(left),
        places(right),
        np.array(t.bend_value, dtype=np.float64),
        places(np.searchsorted(pair_row, np.arange(t.rows + 1))),
        places(pairs // t.n % t.n),
        places(pairs % t.n),
        np.bincount(at, t.bend_value, minlength=len(pairs)).astype(np.float64),
    )


def _sums(gather: csr_array) -> tuple[Whole, Whole, Array, Whole, Whole, Array]:
    """The rows of a matrix that are not multiples of each other, compressed, each with 1 in front.

    Where they begin, their columns and numbers; where the rows of the matrix that are multiples of each begin in a list of all rows, that
    list, and the multiples.
    """
    g = csr_array(gather)
    g.sort_indices()
    indices, numbers = np.asarray(g.indices, dtype=np.int64), np.asarray(g.data, dtype=np.float64)
    ends = np.asarray(g.indptr, dtype=np.int64).tolist()
    rows = [(indices[a:b], numbers[a:b]) for a, b in itertools.pairwise(ends)]
    alike: dict[object, list[int]] = {}
    for k, (at, data) in enumerate(rows):
        key = (tuple(at.tolist()), tuple(np.round(data / data[0], SAME_DIGITS).tolist()))
        alike.setdefault(key, []).append(k)
    groups = sorted(alike.values(), key=lambda group: (len(rows[group[0]][0]), len(group)))
    first, order = (
        [rows[group[0]] for group in groups],
        np.array([k for group in groups for k in group], dtype=np.int64),
    )
    lengths = [len(at) for at, _ in first], [len(group) for group in groups]
    start, used = (np.cumsum([0, *each], dtype=np.int64) for each in lengths)
    source = np.concatenate([np.zeros(0, dtype=np.int64), *(at for at, _ in first)])
    value = np.concatenate([np.zeros(0), *(data / data[0] for _, data in first)])
    return start, source, value, used, order, np.array([rows[k][1][0] for k in order], dtype=np.float64)


@core
def gather(f: Forms, y: Array, values: Array, slopes: Array) -> None:
    """Values and gradients of quadratic forms at y = (q, 1)."""
    n = slopes.shape[1]
    for i in range(f.rows):
        values[i] = 0.0
    for s in range(len(f.start) - 1):
        total = 0.0
        for p in range(f.start[s], f.start[s + 1]):
            total += f.value[p] * y[f.source[p]]
        for k in range(f.used[s], f.used[s + 1]):
            slope = f.scale[k] * total
            values[f.row[k]] += 0.5 * slope * y[f.column[k]]
            if f.column[k] < n:
                slopes[f.row[k], f.column[k]] = slope


@summing
def second(f: Forms, form: int, qd: Array) -> float:
    """q̇ᵀ ∂²Φ/∂q² q̇ of one form."""
    total = 0.0
    for k in range(f.pair_start[form], f.pair_start[form + 1]):
        total += f.pair_value[k] * qd[f.pair_left[k]] * qd[f.pair_right[k]]
    return total
