"""Inverse dynamics of a sampled motion: which forces it takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.engine import Buffer, Engine, compiled, filled, wants_compiled
from veridyn.mechanics.forces import all_rows, needs_velocity
from veridyn.mechanics.formula import Request
from veridyn.mechanics.loops.projection import open_rows, projected, projection
from veridyn.mechanics.newton_euler import outward, rigid_rows
from veridyn.mechanics.samples import acting_of, blocks, complete_values, loaded_bodies, split, state_of
from veridyn.model.accept import accepts_machine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.spatial.algebra import ARRAYS

Array = NDArray[np.float64]


@accepts_machine
def inverse_dynamics(
    tree: Tree,
    motion: Motion,
    rows: Rows = "all",
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
    out: Buffer | None = None,
) -> Array:
    """Γ (N, rows) = D(q, q̇, q̈) φ − Gᵀ wrenches: (3) and (17) of paper 000, and (19) for the rows of a free base.

    With `parameters` (in the order of ``tree.parameters``) or the tree's own. Rows of a free base are zero when every force on the
    machine is in ``motion.wrenches``. `engine`: "compiled" machine code, "numpy" the reference, or "auto", which compiles where it
    pays. `out`: a :class:`~veridyn.mechanics.engine.Buffer` that compiled results are written into again and again. Units: N for
    sliding rows and forces, N*m for turning rows and moments. A tree with loops has rows for its independent coordinates alone,
    (∂q/∂q_a)ᵀ Γ, and the motion must keep the loops closed.
    """
    tree.check_motion(motion)
    chosen = tree.select_rows(rows)
    values = complete_values(tree, parameters)
    if not tree.loops:
        return _open(tree, motion, chosen, values, engine, threads, out)
    gamma, own = np.empty((len(motion), len(chosen))), open_rows(tree, chosen)
    for block in blocks(len(motion)):
        part = motion[block]
        gamma[block] = projected(
            tree, projection(tree, part, engine), chosen, own, _open(tree, part, own, values, engine, threads)
        )
    return gamma


def _open(
    tree: Tree,
    motion: Motion,
    chosen: tuple[int, ...],
    values: Array,
    engine: Engine,
    threads: int,
    out: Buffer | None = None,
) -> Array:
    """Rows of the open tree."""
    bodies = loaded_bodies(tree, motion.wrenches)
    request = Request("inverse", tuple(sorted(chosen)), bodies=bodies)
    if wants_compiled(engine, tree, request, len(motion)):
        place = {(r,): (k,) for k, r in enumerate(chosen)}
        return filled(compiled(tree, request), tree, motion, (len(chosen),), place, values, threads, out)
    X, gains = split(tree, values)
    gamma_of = np.empty((len(motion), len(chosen)))
    for block in blocks(len(motion)):
        part = motion[block]
        state = state_of(tree, part)
        o = outward(tree, state, ARRAYS, needs_velocity(tree))
        gamma = all_rows(tree, state, o, X, gains, acting_of(tree, part), part.signals, ARRAYS)
        for k, r in enumerate(chosen):
            gamma_of[block, k] = gamma[r]
    return gamma_of


def external_rows(tree: Tree, motion: Motion) -> Array:
    """Γ_ext (N, all rows): what the wrenches of a motion alone ask of each row, −Gᵀ wrenches (paper 001, equation 4).

    Passive joints of closed loops keep what the open tree asks of them.
    """
    tree.check_motion(motion)
    out = np.zeros((len(motion), len(tree.rows)))
    if not motion.wrenches:
        return out
    for block in blocks(len(motion)):
        part = motion[block]
        o = outward(tree, state_of(tree, part), ARRAYS)
        for r, value in enumerate(rigid_rows(tree, o, {}, acting_of(tree, part))):
            out[block, r] = value
        if tree.loops:
            chosen = tree.select_rows("all")
            every = range(len(tree.rows))
            out[block][:, list(chosen)] = projected(tree, projection(tree, part), chosen, every, out[block])
    return out
