"""The gradient of anything that is made of a regressor: what experiment design needs.

A criterion f(D) of the regressor along a motion has, with G = ∂f/∂D (N, rows, columns), the gradient

    ∂f/∂q_k = Σ_rc G_rc ∂D_rc/∂q_k,   and so for q̇ and q̈,

at each sample for itself. The sum is differentiated in one pass backwards through the recursion, so that the whole gradient costs a few
regressors whatever the number of columns; no derivative of D is ever written down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelError
from veridyn.mechanics.engine import Engine, compiled, sample_arrays, uniform_values, wants_compiled
from veridyn.mechanics.formula import formula
from veridyn.mechanics.symbols import Request
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.symbolic.evaluate import evaluate
from veridyn.symbolic.kernel import padded

Array = NDArray[np.float64]


def regressor_adjoint(
    tree: Tree,
    motion: Motion,
    weights: Array,
    rows: Rows = "all",
    wanted: Sequence[int] | None = None,
    *,
    friction_speed: float = 0.0,
    engine: Engine = "auto",
) -> Array:
    """(N, 3, n): the gradient of Σ G∘D by q, q̇ and q̈, where G is `weights` (N, rows, columns).

    Rows and columns as for :func:`~veridyn.mechanics.regressor.regressor`. Dry friction counts as constant, which it is but at standstill;
    with a `friction_speed` it is rounded off below that speed, and the derivative is that of the rounded one.
    """
    tree.check_motion(motion)
    if tree.loops:
        raise ModelError(
            Fault("the adjoint is that of an open tree.", where=tree.name, found=f"{len(tree.loops)} loops")
        )
    wanted_columns = tuple(range(len(tree.columns)) if wanted is None else wanted)
    return open_adjoint(tree, motion, weights, tree.select_rows(rows), wanted_columns, friction_speed, engine)


def open_adjoint(
    tree: Tree,
    motion: Motion,
    weights: Array,
    chosen: tuple[int, ...],
    wanted_columns: tuple[int, ...],
    friction_speed: float = 0.0,
    engine: Engine = "auto",
) -> Array:
    """The same over rows of the open tree by number, whatever its loops are."""
    G = np.asarray(weights, dtype=np.float64)
    if G.shape != (len(motion), len(chosen), len(wanted_columns)):
        raise DataError(
            Fault(
                "the weights have the wrong shape.",
                where=tree.name,
                expected=f"({len(motion)}, {len(chosen)}, {len(wanted_columns)})",
                found=f"{G.shape}",
            )
        )
    request = Request(
        "regressor_adjoint", tuple(sorted(chosen)), tuple(sorted(wanted_columns)), friction_speed=friction_speed
    )
    place = {(r, c): (a, b) for a, r in enumerate(chosen) for b, c in enumerate(wanted_columns)}
    out = np.zeros((3, tree.n, padded(len(motion))))
    if wants_compiled(engine, tree, request, len(motion)):
        made = compiled(tree, request)
        columns = _inputs(tree, motion, made.kernel.inputs, G, place)
        at = [np.ravel_multi_index(label, (3, tree.n)) for label in made.labels]
        addresses = out.ctypes.data + out.strides[1] * np.array(at, dtype=np.uintp)
        made.kernel.run(columns, uniform_values(tree, np.zeros(0), made.kernel.parameters), addresses, len(motion))
    else:
        f = formula(tree, request)
        given: dict[str, Array | float] = dict(zip(f.samples, _inputs(tree, motion, f.samples, G, place), strict=True))
        given |= dict(zip(f.parameters, uniform_values(tree, np.zeros(0), f.parameters), strict=True))
        for label, value in zip(f.labels, evaluate(f.graph, f.outputs, given), strict=True):
            out[(*label, slice(0, len(motion)))] = value
    return np.moveaxis(out[..., : len(motion)], -1, 0)


def _inputs(
    tree: Tree, motion: Motion, names: Sequence[str], G: Array, place: dict[tuple[int, int], tuple[int, int]]
) -> list[Array]:
    own = iter(sample_arrays(tree, motion, [name for name in names if not name.startswith("g.")]))
    return [_weight(G, name, place) if name.startswith("g.") else next(own) for name in names]


def _weight(G: Array, name: str, place: dict[tuple[int, int], tuple[int, int]]) -> Array:
    _, r, c = name.split(".")
    return G[(slice(None), *place[int(r), int(c)])]
