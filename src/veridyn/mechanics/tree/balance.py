"""What a state of a tree is checked by: its energies, by how much its loops are open, and why it cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, SimulationError
from veridyn.mechanics.tree.layout import UNSETTLED
from veridyn.mechanics.tree.loops.assembly import loop_values
from veridyn.mechanics.tree.recursion.energy import energy
from veridyn.mechanics.tree.step_kernel import MAX_ITERATIONS
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import matrix_of

Array = NDArray[np.float64]


def tree_energies(tree: Tree, values: Array, q: Array, qd: Array) -> Array:
    """Kinetic, gravity's and elastic energy (J), (N, 3), of configurations (N, nq) and rates (N, nv), with these parameters."""
    N, free = len(q), tree.base == "free"
    base, R = None, None
    if free:
        R = matrix_of(q[:, 3:7])
        velocity = np.einsum("nji,nj->ni", R, qd[:, :3])
        base = BaseMotion(qd[:, 3:6], np.zeros((N, 3)), np.zeros((N, 3)), velocity)
    joints = qd[:, 6 if free else 0 :]
    motion = Motion(np.arange(float(N)), q[:, 7 if free else 0 :], joints, np.zeros_like(joints), base)
    found = energy(tree, motion, base_rotation=R, base_position=q[:, :3] if free else None, parameters=values)
    return np.column_stack([found.kinetic, found.gravity, found.elastic])


def loop_errors(tree: Tree, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
    """The largest error of the equations of the loops, of their rates and of their second rates, at one state."""
    if not tree.loops:
        return 0.0, 0.0, 0.0
    n, joints = tree.n, slice(-tree.n, None)
    T = loop_values(tree, q[None, joints], qd[None, joints])[0]
    J = T[:, :n]
    errors = (T[:, n], J @ qd[joints], J @ qdd[joints] + T[:, n + 1])
    first, second, third = (float(np.abs(x).max(initial=0.0)) for x in errors)
    return first, second, third


def state_error(
    tree: Tree, independents: Sequence[int], state: int, h: float, *, finite: bool
) -> SimulationError | DataError:
    """Why the kernels end with this `state`: of a step of h seconds, or of a pose where h is zero."""
    if state == UNSETTLED:
        return SimulationError(
            f"a step of {h:.6g} s does not converge in {MAX_ITERATIONS} iterations.",
            where=tree.name,
            hint="Try a smaller step, or look for a pose where the machine locks.",
        )
    names = ", ".join(tree.coordinates[k] for k in independents)
    return (SimulationError if h else DataError)(
        Fault(
            "the machine cannot reach this state." if tree.loops else "the mass matrix is singular here.",
            where=tree.name,
            expected=f"all loops closed, and a pose where {names} determine the others"
            if tree.loops
            else "a positive mass matrix and finite numbers",
            found="a singular pose, or loops that cannot be closed" if finite else "a state that is not finite",
            hint="Look at the correction that leads here: a wild reading without a gate, or a start far from the truth.",
        )
    )
