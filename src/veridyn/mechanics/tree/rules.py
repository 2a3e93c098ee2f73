"""Base parameters by closed rules: what is identifiable by some motion of a tree, without a motion.

From the leaves to the root, at each joint what cannot be separated from its antecedent's parameters is grouped (Gautier and Khalil 1990,
for trees; checked by rank on random trees): a turning joint of M, MZ and YY (as YY diag(1, 1, 0)), a sliding one of J, a fixed one
of everything. What stays is a set of independent combinations of the standard parameters. On a fixed base, bodies that turn only about
one direction, or not at all, identify less still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import own_jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import move_matrix

XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = range(10)
PARALLEL_SINE = 1e-9  # sine of the angle below which two axes are one direction


def _picked(*pairs: tuple[int, int]) -> Array:
    K = np.zeros((10, 10))
    for to, of in pairs:
        K[to, of] = 1.0
    return K


TURNING_LETS_GO = _picked((XX, YY), (YY, YY), (MZ, MZ), (M, M))
SLIDING_LETS_GO = _picked(*((k, k) for k in (XX, XY, XZ, YY, YZ, ZZ)))
PARALLEL_SLIDE_LETS_GO = SLIDING_LETS_GO + _picked((MX, MX), (MY, MY))
EVERYTHING = np.eye(10)


@dataclass(frozen=True)
class Freedom:
    """How freely a body of a fixed tree moves: about no axis, about one direction (in its frame), or generally.

    `shifts`: its origin has an acceleration across that direction (any acceleration, where it turns generally), gravity included.
    `pivot`: without gravity, the height on the body's z axis of a point that stays at rest, though the origin does not.
    """

    turns: str  # "not", "one", "generally"
    direction: Array | None
    shifts: bool
    pivot: float = 0.0


def freedoms(tree: Tree) -> list[Freedom]:
    """The freedom of each body; all bodies of a free tree move generally."""
    if tree.base == "free":
        return [Freedom("generally", None, True) for _ in tree.bodies]
    found: list[Freedom] = []
    g = [np.zeros(3)] * len(tree.bodies)
    # A configuration without symmetry, so that what vanishes here vanishes everywhere.
    generic = np.sin(1.0 + 2.0 * np.arange(tree.n, dtype=np.float64) * np.sqrt(2.0))[None]
    for j, (i, body) in enumerate(zip(tree.antecedent, tree.bodies, strict=True)):
        R = body.placement.rotation
        before = found[i] if i >= 0 else Freedom("not", None, False)
        g[j] = R.T @ (g[i] if i >= 0 else tree.gravity)
        direction = None if before.direction is None else R.T @ before.direction
        turns = before.turns
        if body.joint == "turning":
            if turns == "not":
                turns, direction = "one", np.array([0.0, 0.0, 1.0])
            elif turns == "one" and direction is not None and np.hypot(direction[0], direction[1]) > PARALLEL_SINE:
                turns, direction = "generally", None
        J = own_jacobian(tree, generic, j)[0]
        pivot = _pivot(J) if turns == "generally" and body.joint == "turning" and not tree.gravity.any() else None
        if pivot is not None:
            found.append(Freedom(turns, direction, False, pivot))
            continue
        accelerations = np.column_stack([J[:3], g[j]])
        if direction is not None:
            # Turning about the direction itself leaves what is across it across it, so q = 0 decides for gravity.
            accelerations = accelerations - np.outer(direction, direction @ accelerations)
        found.append(Freedom(turns, direction, bool(np.abs(accelerations).max() > PARALLEL_SINE)))
    return found


def _pivot(J: Array) -> float | None:
    """The height h at which the point (0, 0, h) of a body has no velocity, v + ω × (0, 0, h) = 0 for every joint; None if there is none."""
    v, w = J[:3], J[3:]
    across = np.concatenate([w[1], -w[0]])
    if not across.any():
        return 0.0 if np.abs(v).max() < PARALLEL_SINE else None
    h = float(-(across @ np.concatenate([v[0], v[1]])) / (across @ across))
    left = v + h * np.array([w[1], -w[0], np.zeros_like(w[0])])
    return h if np.abs(left).max() < PARALLEL_SINE else None


def combinations(tree: Tree) -> Array:
    """B (b, 10 n_bodies): independent combinations of all bodies' parameters, virtual ones included, that decide the dynamics.

    The columns of a regressor of all bodies have exactly the linear dependences of the columns of B.
    """
    count = len(tree.bodies)
    G = [np.zeros((10, 10 * count)) for _ in range(count)]
    for j in range(count):
        G[j][:, 10 * j : 10 * j + 10] = np.eye(10)
    kept: list[list[Array]] = [[] for _ in range(count)]
    free = freedoms(tree)
    for j in range(count - 1, -1, -1):
        i, body = tree.antecedent[j], tree.bodies[j]
        if tree.base == "free" and i < 0:
            kept[j] = list(G[j])
            continue
        lets_go, stays = _joint_rule(body.joint, free[j])
        kept[j] = list(stays @ G[j])
        if i >= 0:
            G[i] = G[i] + move_matrix(body.placement.rotation, body.placement.position) @ lets_go @ G[j]
    rows = [row for body in kept for row in body]
    return np.array(rows).reshape(-1, 10 * count)


def structural(machine: Machine | Tree) -> Array:
    """The combinations of the closed rules over a machine's own parameters: real bodies only, elements each for itself."""
    tree = tree_of(machine)
    B = combinations(tree)
    real = [10 * j + k for j, b in enumerate(tree.bodies) if b.real for k in range(10)]
    count = len(tree.elements)
    out = np.zeros((len(B) + count, len(real) + count))
    out[: len(B), : len(real)] = B[:, real]
    out[len(B) :, len(real) :] = np.eye(count)
    return out


def freedom_of(machine: Machine | Tree, body: str) -> Freedom:
    """The freedom of one body, by name."""
    tree = tree_of(machine)
    return freedoms(tree)[tree.index(body)]


def _joint_rule(joint: str, freedom: Freedom) -> tuple[Array, Array]:
    """What goes to the antecedent (10, 10), and the combinations that stay (k, 10)."""
    unit = np.eye(10)
    if joint == "fixed":
        return EVERYTHING, unit[:0]
    if joint == "turning":
        first_moments = [unit[MX], unit[MY]] if freedom.shifts else []
        if freedom.turns == "one":
            return TURNING_LETS_GO, np.array([unit[ZZ], *first_moments])
        inertia = np.array([unit[XX] - unit[YY], unit[XY], unit[XZ], unit[YZ], unit[ZZ]])
        about_pivot = inertia @ move_matrix(np.eye(3), (0.0, 0.0, -freedom.pivot))
        return TURNING_LETS_GO, np.array([*about_pivot, *first_moments])
    if freedom.turns == "not":
        return SLIDING_LETS_GO, unit[[M]]
    if freedom.turns == "generally" or freedom.direction is None:
        return SLIDING_LETS_GO, unit[[MX, MY, MZ, M]]
    u = freedom.direction
    if np.hypot(u[0], u[1]) < PARALLEL_SINE:
        return PARALLEL_SLIDE_LETS_GO, unit[[M]]
    # The first moment along the one direction of turning has no effect; the other two components stay.
    d = int(np.argmax(np.abs(u)))
    stays = [unit[MX + k] - u[k] / u[d] * unit[MX + d] for k in range(3) if k != d]
    return SLIDING_LETS_GO, np.array([*stays, unit[M]])
