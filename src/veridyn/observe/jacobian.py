"""One check for every derivative: a model's H must be what finite differences of its h say.

Central differences at several step lengths, each improved by Richardson's extrapolation; for every entry the length is
taken at which two neighbours agree best. Their disagreement is the accuracy of the differences, and only what exceeds it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError

STEPS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)  # of the typical size of a state
SHOWN_ENTRIES = 12


@dataclass(frozen=True, eq=False)
class JacobianCheck:
    """`numeric` (m, n) by differences with its `accuracy`, `given` by the model, and the largest relative `error`.

    Errors are relative to the largest entry of a row, each times its state's typical size.
    """

    given: Array
    numeric: Array
    accuracy: Array
    error: float


def numeric_jacobian(
    h: Callable[[Array], ArrayLike],
    x: ArrayLike,
    scales: ArrayLike | None = None,
    add: Callable[[Array, Array], Array] | None = None,
) -> tuple[Array, Array]:
    """∂h/∂x (m, n) and how far it can be trusted (m, n)."""
    x = np.asarray(x, dtype=np.float64)
    sizes = np.ones(len(x)) if scales is None else np.asarray(scales, dtype=np.float64)
    columns, accuracies = [], []
    for j, size in enumerate(sizes.tolist()):
        tries = []
        for step in STEPS:
            d = np.zeros(len(sizes))
            d[j] = step * size
            wide, narrow = (_central(h, x, f * d, add) / (2.0 * f * step * size) for f in (1.0, 0.5))
            tries.append((4.0 * narrow - wide) / 3.0)
        t = np.array(tries)
        gaps = np.abs(np.diff(t, axis=0))
        best = np.argmin(gaps, axis=0)
        columns.append(np.take_along_axis(t, best[None] + 1, axis=0)[0])
        accuracies.append(np.take_along_axis(gaps, best[None], axis=0)[0])
    return np.array(columns).T, np.array(accuracies).T


def check_jacobian(
    h: Callable[[Array], ArrayLike],
    H: Callable[[Array], ArrayLike],
    x: ArrayLike,
    *,
    tolerance: float = 1e-6,
    scales: ArrayLike | None = None,
    add: Callable[[Array, Array], Array] | None = None,
    outputs: Sequence[str] = (),
    states: Sequence[str] = (),
) -> JacobianCheck:
    """Compare H(x) with finite differences of h at x; every wrong entry is named in one ModelError.

    `scales` (n,): typical sizes of the states (default 1). `add`: how a change is added where x is not a plain vector.
    """
    x = np.asarray(x, dtype=np.float64)
    given = np.atleast_2d(np.asarray(H(x), dtype=np.float64))
    sizes = (
        np.ones(given.shape[1] if add is not None else len(x))
        if scales is None
        else np.asarray(scales, dtype=np.float64)
    )
    numeric, accuracy = numeric_jacobian(h, x, sizes, add)
    faults = Faults()
    if given.shape != numeric.shape:
        faults.add("H has the wrong shape.", where="derivative", expected=f"{numeric.shape}", found=f"{given.shape}")
        faults.raise_if_any(ModelError)
    reference = np.abs(numeric * sizes).max(axis=1, keepdims=True)
    floor = 1e-9 * np.maximum(1.0, np.abs(np.atleast_1d(np.asarray(h(x), dtype=np.float64))))[:, None]
    beyond = np.maximum(np.abs(given - numeric) - 10.0 * accuracy, 0.0) * sizes
    error = beyond / np.maximum(reference, floor / tolerance)
    for i, j in np.argwhere(~(error <= tolerance))[:SHOWN_ENTRIES].tolist():
        output = outputs[i] if outputs else f"output {i}"
        state = states[j] if states else f"state {j}"
        faults.add(
            "H is not the derivative of h.",
            where=f"∂({output})/∂({state})",
            expected=f"{numeric[i, j]:.9g} by finite differences",
            found=f"{given[i, j]:.9g}",
        )
    faults.raise_if_any(ModelError)
    return JacobianCheck(given, numeric, accuracy, float(error.max(initial=0.0)))


def _central(h: Callable[[Array], ArrayLike], x: Array, d: Array, add: Callable[[Array, Array], Array] | None) -> Array:
    """h(x + d) − h(x − d)."""
    ahead, behind = (x + d, x - d) if add is None else (add(x, d), add(x, -d))
    return np.atleast_1d(np.asarray(h(ahead), dtype=np.float64)) - np.atleast_1d(np.asarray(h(behind)))
