"""What loads on a tree do to its rows, over scalars of any kind: Q = Σ B u, one column of B for each component u of a load.

By virtual work a column is Jᵀ times a unit force or torque. Q has the sign of the forces of joints, Γ + Q = M a + h. Rows are those of
``tree.rows``: of a free base force and moment about its origin in its own axes, then one for each coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.recursion.newton_euler import Outward, Wrench, carry
from veridyn.mechanics.tree.recursion.sensing import moving, place_of, sizes
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Force, Load, check_loads, components
from veridyn.model.names import GROUND
from veridyn.spatial.algebra import ARRAYS, Scalar, add, mul
from veridyn.spatial.linalg import IDENTITY, ZERO, Mat, Vec, cross, rotate_back

Array = NDArray[np.float64]


def load_rows(
    tree: Tree, load: Load, o: Outward, frames: Sequence[tuple[Mat, Vec]], component: int, R: Mat = IDENTITY
) -> dict[int, Scalar]:
    """The generalised force of a unit of one component of a load: row → value; rows that it does not act on are left out.

    `o` and `frames`: poses of the bodies, from :func:`~veridyn.mechanics.tree.recursion.newton_euler.outward` and
    :func:`~veridyn.mechanics.tree.recursion.newton_euler.frames_in_root`. `R`: the attitude of a free base, in whose axes the ground's are
    seen.
    """
    if isinstance(load, Drive):
        return {tree.rows.index(load.coordinate): 1.0}
    unit = IDENTITY[component]
    if isinstance(load, Force):
        j, at = place_of(tree, load.at)
        f = rotate_back(frames[j][0], rotate_back(R, unit))
        return carry(tree, o, j, (f, cross(at, f)))
    rows: dict[int, Scalar] = {}
    for body, sign in ((load.body, 1.0), (load.against, -1.0)):
        if body != GROUND:
            j = tree.index(body)
            wrench: Wrench = (ZERO, rotate_back(frames[j][0], rotate_back(R, unit)))
            for r, value in carry(tree, o, j, wrench).items():
                rows[r] = add(rows.get(r, 0.0), mul(sign, value))
    return rows


def load_matrix(tree: Tree, q: ArrayLike, loads: Sequence[Load] | None = None) -> Array:
    """B (N, rows, components) with Q = B u, of configurations q (N, nq) as :mod:`veridyn.mechanics.tree.recursion.sensing` orders them.

    `loads`: by default ``tree.loads``; their components are in order, one of a drive and three of a force or torque.
    """
    chosen = tuple(tree.loads if loads is None else loads)
    faults = check_loads(chosen, [b.name for b in tree.bodies], tree.coordinates)
    if faults:
        raise ModelError(faults, tree.name)
    values, (nq, nv) = np.asarray(q, dtype=np.float64), sizes(tree)
    if values.ndim != 2 or values.shape[1] != nq:
        raise DataError(
            "wrong shape of the configurations.", where=tree.name, expected=f"(N, {nq})", found=f"{values.shape}"
        )
    still = [0.0] * nv
    m = moving(tree, list(np.ascontiguousarray(values.T)), still, still, ARRAYS)
    columns = [(load, k) for load in chosen for k in range(components(load))]
    B = np.zeros((len(values), len(tree.rows), len(columns)))
    for c, (load, k) in enumerate(columns):
        for r, value in load_rows(tree, load, m.o, m.frames, k, m.R).items():
            B[:, r, c] = value
    return B
