"""A closed machine put together: the home position, which equations count, what determines its position.

Cut joints may say a thing twice (the joints of a planar linkage all keep the plane). The equations that count are picked once, at a closed
position without symmetry, and the others are only checked. The pose that 'assembly' leads to can be had closed or not, with how far every
cut joint stays open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, did_you_mean
from veridyn.mechanics.tree.loops.equations import equation_values, names_of, widest
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.kinematics import root_pose
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Attachment

Numbers = tuple[int, ...]
CLOSED_TOLERANCE_M = 1e-10  # m, and of products of unit axes: how far a loop may stay open
SINGULAR_RATIO = 1e-7  # of the largest singular value, sliding coordinates in units of the machine's reach
GAUSS_NEWTON_STEPS = 50  # before the loops count as open where 'assembly' leads
INDEPENDENT_PREFERENCE = 10.0  # how much rather a coordinate with an equation of its own is taken than another (chosen)
UNDETERMINED_MOTION = 1e-6  # of the largest: coordinates that move the machine less do not determine it
SYMMETRY_OFFSET = 0.02  # rad, and of the machine's reach: from the home position to one without symmetry


@dataclass(frozen=True, eq=False)
class Assembled:
    """A closed machine at home: `home` (n,), Φ_q there (equations, n), the equations that count, and the unit of each coordinate.

    The unit is 1 rad, or the reach in m.
    """

    home: Array
    slopes: Array
    rows: Numbers
    unit: Array
    freedom: int


@dataclass(frozen=True, eq=False)
class Split:
    """Coordinates that are given and those that follow; `sign` of the determinant of Φ_q over the latter at home.

    `clock`: the times of the samples, for messages.
    """

    tree: Tree
    given: Numbers
    solved: Numbers
    rows: Numbers
    unit: Array
    home: Array
    sign: float
    clock: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The given coordinates."""
        return tuple(self.tree.coordinates[k] for k in self.given)

    def sample(self, k: int) -> str:
        """A sample in words."""
        time = "" if self.clock is None or k >= len(self.clock) else f" (t = {self.clock[k]:.6g} s)"
        return f"{self.tree.name}, sample {k}{time}"

    def place(self, q: Array) -> str:
        """The given coordinates of a position (n,), in words."""
        return ", ".join(f"{self.tree.coordinates[k]} = {q[k]:.4g}" for k in self.given)

    def block(self, values: Array) -> Array:
        """Φ_q over the coordinates that follow, (N, m, m), of :func:`~veridyn.mechanics.tree.loops.equations.equation_values`."""
        return values[:, np.array(self.rows)[:, None], np.array(self.solved)]


class _Shape:
    """A tree that equals every other of the same joints and loops, whatever their parameters."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        home = tree.assembly
        self.key = (tree.base, tree.bodies, tree.loops, tuple(home.hold.items()), tuple(home.guess.items()))
        self.code = hash(self.key)

    def __hash__(self) -> int:
        return self.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shape) and self.key == other.key


def assembled(tree: Tree) -> Assembled:
    """The machine at home; refused where its loops cannot be closed there."""
    return _assembled(_Shape(tree))


@lru_cache(maxsize=64)
def _assembled(shape: _Shape) -> Assembled:
    tree = shape.tree
    n, unit = tree.n, units(tree)
    home, T = nearest_pose(tree)
    opening = np.abs(T[:, n])
    if not opening.max(initial=0.0) <= CLOSED_TOLERANCE_M:
        raise ModelError(
            "its loops cannot be closed from where 'assembly' puts it.",
            where=tree.name,
            expected=f"every loop closed to {CLOSED_TOLERANCE_M:g}",
            found=widest(tree, opening),
            hint="Hold fewer coordinates, or give better guesses under 'assembly'.",
        )
    J = T[:, :n] * unit
    still = np.linalg.svd(J)[2][_rank(J) :]
    weights = np.sin(1.0 + 2.0 * np.arange(len(still)))
    nudged = home + SYMMETRY_OFFSET * unit * (weights @ still) if len(still) else home
    beside = _least(tree, nudged, np.ones(n, dtype=bool), unit)[1]
    K = beside[:, :n] * unit if np.abs(beside[:, n]).max(initial=0.0) <= CLOSED_TOLERANCE_M else J
    rank = _rank(K)
    if _rank(J) < rank:
        raise ModelError(
            "its home position is a singular one: there its loops leave more freedom than elsewhere.",
            where=tree.name,
            found=f"{n - _rank(J)} degrees of freedom at home, {n - rank} beside it",
            hint="Hold a coordinate elsewhere under 'assembly'.",
        )
    from scipy.linalg import qr  # here: importing it takes longer than all that is done with an open machine

    order = qr(K.T, mode="r", pivoting=True)[-1]
    return Assembled(home, T[:, :n], tuple(sorted(int(i) for i in order[:rank])), unit, n - rank)


def nearest_pose(tree: Tree) -> tuple[Array, Array]:
    """All coordinates (n,) where 'assembly' leads, closed or not, and the equations of the loops there (equations, n + 2)."""
    if not tree.loops:
        raise ModelError("this machine has no loops to close.", where=tree.name)
    q = np.array([tree.assembly.hold.get(c, tree.assembly.guess.get(c, 0.0)) for c in tree.coordinates])
    free = np.array([c not in tree.assembly.hold for c in tree.coordinates])
    return _least(tree, q, free, units(tree))


def splitting(tree: Tree, at: str | Sequence[str] = "actuated") -> Split:
    """What follows from the coordinates `at`; refused where these do not determine the machine, or say too much."""
    return _splitting(_Shape(tree), at if isinstance(at, str) else tuple(at))


@lru_cache(maxsize=256)
def _splitting(shape: _Shape, at: str | tuple[str, ...]) -> Split:
    tree = shape.tree
    home = assembled(tree)
    names = tuple(tree.coordinates[k] for k in tree.independent) if at == "actuated" else at
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name not in tree.coordinates:
            hint = did_you_mean(name, tree.coordinates)
            raise DataError(f"there is no coordinate '{name}'.", where=tree.name, hint=hint)
    given = tuple(tree.coordinates.index(name) for name in names)
    solved = tuple(k for k in range(tree.n) if k not in given)
    if len(set(given)) != home.freedom or len(given) != home.freedom:
        raise ModelError(
            f"{len(given)} coordinates ({', '.join(names)}) cannot determine this machine.",
            where=tree.name,
            expected=f"{home.freedom} of them, the degrees of freedom that its loops leave",
            hint="Mark exactly as many joints of the loops actuated, or name other coordinates.",
        )
    A = home.slopes[list(home.rows)][:, list(solved)]
    s = np.linalg.svd(A * home.unit[list(solved)], compute_uv=False)
    if s[-1] < SINGULAR_RATIO * s[0]:
        raise ModelError(
            f"the coordinates {', '.join(names)} do not determine this machine at its home position.",
            where=tree.name,
            found=f"smallest singular value {s[-1]:.1e} of the largest {s[0]:.1e}",
            hint="Name other coordinates, or hold it elsewhere under 'assembly'.",
        )
    sign = float(np.linalg.slogdet(A)[0])
    return Split(tree, given, solved, home.rows, home.unit, home.home, sign)


def determined_by(tree: Tree, known: Sequence[str]) -> Split | None:
    """The split whose given coordinates are among those that are `known`; None where these do not determine the machine.

    The independent coordinates where they are known, else such that an independent one is taken rather than another.
    """
    own = tuple(tree.coordinates[k] for k in tree.independent)
    if set(own) <= set(known):
        return splitting(tree)
    at = assembled(tree)
    if len(known) < at.freedom:
        return None
    from scipy.linalg import qr

    free = np.linalg.svd(at.slopes[list(at.rows)] * at.unit)[2][len(at.rows) :]  # (freedom, n): how it can move at home
    weights = np.array([INDEPENDENT_PREFERENCE if c in own else 1.0 for c in known])
    factors = qr(free[:, [tree.coordinates.index(c) for c in known]] * weights, mode="r", pivoting=True)
    sizes, order = np.abs(np.diag(np.atleast_2d(factors[0]))), [int(k) for k in factors[-1]]
    if not sizes[at.freedom - 1] > UNDETERMINED_MOTION * sizes[0]:
        return None
    return splitting(tree, [known[k] for k in sorted(order[: at.freedom])])


def units(tree: Tree) -> Array:
    """1 rad for a turning coordinate, the machine's reach for a sliding one: what counts as a large step."""
    places = [b.placement.position for b in tree.bodies]
    places += [end.placement.position for loop in tree.loops for end in (loop.first, loop.second)]
    reach = max((float(np.linalg.norm(p)) for p in places), default=0.0)
    return np.where(np.array(tree.coordinate_kinds) == "sliding", reach or 1.0, 1.0)


def _least(tree: Tree, q: Array, free: NDArray[np.bool_], unit: Array) -> tuple[Array, Array]:
    """The nearest closed position by Gauss-Newton steps of least norm in the free coordinates, and the equations there."""
    n, at = tree.n, q.copy()
    T = equation_values(tree, at[None])[0]
    for _ in range(GAUSS_NEWTON_STEPS):
        if np.abs(T[:, n]).max(initial=0.0) <= 0.01 * CLOSED_TOLERANCE_M or not free.any():
            break
        J = (T[:, :n] * unit)[:, free]
        step = np.linalg.lstsq(J, -T[:, n], rcond=1e-9)[0]
        step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
        at[free] += step * unit[free]
        T = equation_values(tree, at[None])[0]
    return at, T


def _rank(J: Array) -> int:
    s = np.linalg.svd(J, compute_uv=False)
    return int((s > SINGULAR_RATIO * s[0]).sum()) if len(s) and s[0] > 0 else 0


@dataclass(frozen=True, eq=False)
class AssembledPose:
    """`coordinates`: name → rad or m. `pins`: loop → where both ends of its cut joint lie, m, in the ground's frame or that of a free base.

    `openings`: loop → largest of what its equations leave, in m and in products of unit axes.
    """

    coordinates: Mapping[str, float]
    pins: Mapping[str, tuple[Array, Array]]
    openings: Mapping[str, float]

    @property
    def closed(self) -> bool:
        """Whether every loop closes."""
        return max(self.openings.values(), default=0.0) <= CLOSED_TOLERANCE_M


@takes_machine
def assembled_pose(machine: Machine | Tree) -> AssembledPose:
    """The pose nearest to 'assembly' in which the loops of a machine are as closed as they get; refused where it has none."""
    tree = tree_of(machine)
    q, T = nearest_pose(tree)
    openings = dict.fromkeys((loop.name for loop in tree.loops), 0.0)
    for name, x in zip(names_of(tree.loops), np.abs(T[:, tree.n]).tolist(), strict=True):
        openings[name] = max(openings[name], x)
    pins = {loop.name: (_place(tree, q, loop.first), _place(tree, q, loop.second)) for loop in tree.loops}
    return AssembledPose(dict(zip(tree.coordinates, q.tolist(), strict=True)), pins, openings)


def _place(tree: Tree, q: Array, end: Attachment) -> Array:
    """Where an end of a cut joint lies (3,)."""
    at = np.asarray(end.placement.position, dtype=np.float64)
    if end.body == GROUND:
        return at
    R, p = root_pose(tree, q[None], end.body)
    return p[0] + R[0] @ at
