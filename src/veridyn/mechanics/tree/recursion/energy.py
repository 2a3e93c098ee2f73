"""Kinetic and potential energy of a tree and of its springs, offsets and motors along a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError
from veridyn.mechanics.laws import potential
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.forces import acting, combination
from veridyn.mechanics.tree.recursion.kinematics import pose_in_root
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.recursion.samples import complete_values, split, state_of
from veridyn.mechanics.tree.recursion.struts import strut_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS, Scalar, add, mul
from veridyn.spatial.inertia import inertia_matrix
from veridyn.spatial.linalg import cross, dot, plus, rotate, scaled

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """Joules, (N,) each: of motion, in the field of gravity, and stored in springs and offsets, on coordinates and between places."""

    kinetic: Array
    gravity: Array
    elastic: Array

    @property
    def total(self) -> Array:
        return self.kinetic + self.gravity + self.elastic


@takes_machine
def energy(
    machine: Machine | Tree,
    motion: Motion,
    *,
    base_rotation: ArrayLike | None = None,
    base_position: ArrayLike | None = None,
    parameters: Array | None = None,
) -> Energy:
    """Energies along a motion; d(total)/dt is the power of the forces and wrenches less what friction takes.

    T = Σ ½ (M V² + 2 V·(ω × MS) + ω·J ω), in gravity −g·(M p + R MS). A free base must give its velocity, and its pose
    (N, 3, 3) and (N, 3) in the ground's frame for the part in gravity's field.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    N = len(motion)
    free = tree.base == "free"
    if free and (motion.base is None or motion.base.velocity is None or base_rotation is None or base_position is None):
        raise DataError(
            "the energy of a free tree needs its base's velocity and pose.",
            where=tree.name,
            expected="motion.base.velocity, base_rotation (N, 3, 3) and base_position (N, 3)",
        )
    X, gains = split(tree, complete_values(tree, parameters))
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, velocity=True)
    R = np.asarray(base_rotation, dtype=np.float64) if free else np.broadcast_to(np.eye(3), (N, 3, 3))
    p = np.asarray(base_position, dtype=np.float64) if free else np.zeros((N, 3))
    g = np.einsum("nji,j->ni", R, tree.gravity)  # gravity in the root's axes
    kinetic: Scalar = 0.0
    moment = np.zeros((N, 3))
    mass = 0.0
    for j, x in X.items():
        v, w, MS, M = o.v[j], o.w[j], x[6:9], x[9]
        ms = (MS[0], MS[1], MS[2])
        kinetic = add(kinetic, mul(0.5 * M, dot(v, v)))
        kinetic = add(kinetic, dot(v, cross(w, ms)))
        kinetic = add(kinetic, mul(0.5, dot(w, rotate(inertia_matrix(x), w))))
        A, P = pose_in_root(tree, o, j)
        moment += np.stack(
            [np.broadcast_to(np.asarray(c, dtype=np.float64), (N,)) for c in plus(scaled(M, P), rotate(A, ms))], axis=-1
        )
        mass += M
    elastic = np.zeros(N)
    for e, gain in zip(tree.elements, gains, strict=True):
        if e.on_body is not None:  # it follows the body's axes, and stores nothing
            continue
        strut = None if e.between is None else strut_of(tree, e.between, o, ARRAYS)
        stored = potential(e, acting(tree, e, state, motion.signals, ARRAYS, strut))
        if stored is not None:
            elastic += gain * stored
        elif e.kind == "inertia":
            kinetic = add(kinetic, 0.5 * gain * combination(tree, e, state.qd) ** 2)
    height = -np.einsum("ni,ni->n", g, moment) - mass * (p @ tree.gravity)
    return Energy(np.broadcast_to(np.asarray(kinetic, dtype=np.float64), (N,)).copy(), height, elastic)
