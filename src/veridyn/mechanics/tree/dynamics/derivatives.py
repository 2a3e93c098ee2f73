"""Exact derivatives of inverse and forward dynamics with respect to coordinates and rates.

Inverse dynamics is differentiated line by line through the recursion, sharing everything with it. Forward dynamics needs no derivative of a
solve: with a the accelerations that forces cause, M ∂a/∂x = −∂Γ/∂x at that a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.engine import (
    Engine,
    compiled,
    filled,
    sample_arrays,
    uniform_values,
    wants_compiled,
)
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.symbols import Request
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.samples import complete_values, loaded_bodies
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import evaluate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Derivatives:
    """(N, rows, n) each: with respect to q, to q̇, and to what drives (accelerations for inverse, forces for forward dynamics)."""

    by_q: Array
    by_qd: Array
    by_drive: Array


@takes_machine
def inverse_derivatives(
    machine: Machine | Tree,
    motion: Motion,
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Derivatives:
    """∂Γ/∂q, ∂Γ/∂q̇ and ∂Γ/∂q̈ = M along a motion. Dry friction counts as constant, which it is but at standstill."""
    tree = tree_of(machine)
    tree.check_open("a derivative of the dynamics")
    tree.check_motion(motion)
    values = complete_values(tree, parameters)
    rows, n = len(tree.rows), tree.n
    bodies = loaded_bodies(tree, motion.wrenches)
    request = Request("inverse_derivatives", tuple(range(rows)), bodies=bodies)
    if wants_compiled(engine, tree, request, len(motion)):
        both = filled(compiled(tree, request), tree, motion, (2, rows, n), values=values, threads=threads)
    else:
        f = formula(tree, request)
        given = dict(zip(f.samples, sample_arrays(tree, motion, f.samples), strict=True))
        given |= dict(zip(f.parameters, uniform_values(tree, values, f.parameters), strict=True))
        both = np.zeros((len(motion), 2, rows, n))
        for label, value in zip(f.labels, evaluate(f.graph, f.outputs, given), strict=True):
            both[(slice(None), *label)] = value
    M = mass_matrix(tree, motion.q, values, engine=engine, threads=threads)
    return Derivatives(both[:, 0], both[:, 1], M[:, :, rows - n :])


@takes_machine
def forward_derivatives(
    machine: Machine | Tree,
    motion: Motion,
    parameters: Array | None = None,
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Derivatives:
    """∂a/∂q, ∂a/∂q̇ and ∂a/∂Γ of the accelerations a that ``motion.forces`` cause: rows [v̇ − g; ω̇; q̈] for a free base, else q̈.

    What drives a prescribed coordinate is its acceleration, so its column of ∂a/∂Γ is ∂a/∂q̈.
    """
    tree = tree_of(machine)
    values = complete_values(tree, parameters)
    caused = forward_dynamics(tree, motion, values, engine=engine, threads=threads)
    inverse = inverse_derivatives(tree, caused, values, engine=engine, threads=threads)
    M = mass_matrix(tree, motion.q, values, engine=engine, threads=threads)
    first, held = len(tree.rows) - tree.n, list(tree.held)
    drive = np.broadcast_to(np.eye(len(tree.rows))[:, first:], inverse.by_q.shape).copy()
    fixed = [first + k for k in held]
    drive[:, :, held] = -M[:, :, fixed]
    right = np.concatenate([-inverse.by_q, -inverse.by_qd, drive], axis=2)
    free = list(tree.solved_rows)
    solved = np.zeros_like(right)
    solved[:, free] = np.linalg.solve(M[:, free][:, :, free], right[:, free])
    by_q, by_qd, by_force = np.split(solved, 3, axis=2)
    by_force[:, fixed, held] = 1.0
    return Derivatives(by_q, by_qd, by_force)
