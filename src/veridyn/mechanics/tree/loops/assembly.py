"""A closed machine put together: steps that close loops, the home position, which equations count, what determines its position.

Newton's steps close many samples at once. Cut joints may say a thing twice (the joints of a planar linkage all keep the plane). The
equations that count are picked once, at a closed position without symmetry, and the others are only checked. The pose that 'assembly'
leads to can be had closed or not, with how far every cut joint stays open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, did_you_mean
from veridyn.mechanics.tree.dynamics.engine import Engine, compiled, filled, wants_compiled
from veridyn.mechanics.tree.loops.equations import COUNTS, equation_values, names_of
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.kinematics import at_rest, root_pose
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import GROUND, Attachment

Numbers = tuple[int, ...]
CLOSED_TOLERANCE_M = 1e-10  # m, and of products of unit axes: how far a loop may stay open
SINGULAR_RATIO = 1e-7  # of the largest singular value, sliding coordinates in units of the machine's reach
SYMMETRY_OFFSET = 0.02  # rad, and of the machine's reach: from the home position to one without symmetry


def loop_values(tree: Tree, q: Array, qd: Array | None = None, engine: Engine = "auto") -> Array:
    """:func:`~veridyn.mechanics.tree.loops.equations.equation_values`, by machine code where that pays."""
    request = Request("loops" if qd is None else "loop_motion")
    if not wants_compiled(engine, tree, request, len(q)):
        return equation_values(tree, q, qd)
    at = at_rest(tree, q)
    motion = at if qd is None else Motion(at.t, q, qd, at.qdd, at.base)
    shape = (sum(COUNTS[loop.joint] for loop in tree.loops), tree.n + 2)
    return np.ascontiguousarray(filled(compiled(tree, request), tree, motion, shape))


@dataclass(frozen=True, eq=False)
class Assembled:
    """A closed machine at home: `home` (n,), the equations that count, and the unit of each coordinate (1 rad, or the reach in m)."""

    home: Array
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

    def block(self, values: Array) -> Array:
        """Φ_q over the coordinates that follow, (N, m, m), of :func:`loop_values`."""
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
    unit = units(tree)
    home, opening = nearest_pose(tree)
    if not opening.max(initial=0.0) <= CLOSED_TOLERANCE_M:
        raise ModelError(
            "its loops cannot be closed from where 'assembly' puts it.",
            where=tree.name,
            expected=f"every loop closed to {CLOSED_TOLERANCE_M:g}",
            found=widest(tree, opening),
            hint="Hold fewer coordinates, or give better guesses under 'assembly'.",
        )
    J = equation_values(tree, home[None])[0, :, : tree.n] * unit
    still = np.linalg.svd(J)[2][_rank(J) :]
    weights = np.sin(1.0 + 2.0 * np.arange(len(still)))
    nudged = home + SYMMETRY_OFFSET * unit * (weights @ still) if len(still) else home
    beside, opening = _least(tree, nudged, np.ones(tree.n, dtype=bool), unit)
    if not opening.max(initial=0.0) <= CLOSED_TOLERANCE_M:
        beside = home
    K = equation_values(tree, beside[None])[0, :, : tree.n] * unit
    rank = _rank(K)
    if _rank(J) < rank:
        raise ModelError(
            "its home position is a singular one: there its loops leave more freedom than elsewhere.",
            where=tree.name,
            found=f"{tree.n - _rank(J)} degrees of freedom at home, {tree.n - rank} beside it",
            hint="Hold a coordinate elsewhere under 'assembly'.",
        )
    from scipy.linalg import qr  # here: importing it takes longer than all that is done with an open machine

    order = qr(K.T, mode="r", pivoting=True)[-1]
    return Assembled(home, tuple(sorted(int(i) for i in order[:rank])), unit, tree.n - rank)


def nearest_pose(tree: Tree) -> tuple[Array, Array]:
    """All coordinates (n,) where 'assembly' leads, closed or not, and what each equation of the loops leaves open."""
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
    A = equation_values(tree, home.home[None])[:, home.rows, :][:, :, solved]
    s = np.linalg.svd(A[0] * home.unit[list(solved)], compute_uv=False)
    if s[-1] < SINGULAR_RATIO * s[0]:
        raise ModelError(
            f"the coordinates {', '.join(names)} do not determine this machine at its home position.",
            where=tree.name,
            found=f"smallest singular value {s[-1]:.1e} of the largest {s[0]:.1e}",
            hint="Name other coordinates, or hold it elsewhere under 'assembly'.",
        )
    sign = float(np.linalg.slogdet(A)[0][0])
    return Split(tree, given, solved, home.rows, home.unit, home.home, sign)


def units(tree: Tree) -> Array:
    """1 rad for a turning coordinate, the machine's reach for a sliding one: what counts as a large step."""
    places = [b.placement.position for b in tree.bodies]
    places += [end.placement.position for loop in tree.loops for end in (loop.first, loop.second)]
    reach = max((float(np.linalg.norm(p)) for p in places), default=0.0)
    return np.where(np.array(tree.coordinate_kinds) == "sliding", reach or 1.0, 1.0)


def widest(tree: Tree, opening: Array) -> str:
    """Which loop is open, and by how much; `opening` (equations,)."""
    k = int(np.argmax(np.abs(opening)))
    return f"loop '{names_of(tree.loops)[k]}' open by {abs(float(opening[k])):.3g}"


def _least(tree: Tree, q: Array, free: NDArray[np.bool_], unit: Array) -> tuple[Array, Array]:
    """The nearest closed position by Gauss-Newton steps of least norm in the free coordinates, and what stays open."""
    n, at = tree.n, q.copy()
    for _ in range(50):
        T = equation_values(tree, at[None])[0]
        if np.abs(T[:, n]).max(initial=0.0) <= 0.01 * CLOSED_TOLERANCE_M or not free.any():
            break
        J = (T[:, :n] * unit)[:, free]
        step = np.linalg.lstsq(J, -T[:, n], rcond=1e-9)[0]
        step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
        at[free] += step * unit[free]
    return at, np.abs(equation_values(tree, at[None])[0, :, n])


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
    q, opening = nearest_pose(tree)
    openings = dict.fromkeys((loop.name for loop in tree.loops), 0.0)
    for name, x in zip(names_of(tree.loops), opening, strict=True):
        openings[name] = max(openings[name], float(x))
    pins = {loop.name: (_place(tree, q, loop.first), _place(tree, q, loop.second)) for loop in tree.loops}
    return AssembledPose(dict(zip(tree.coordinates, q.tolist(), strict=True)), pins, openings)


def _place(tree: Tree, q: Array, end: Attachment) -> Array:
    """Where an end of a cut joint lies (3,)."""
    at = np.asarray(end.placement.position, dtype=np.float64)
    if end.body == GROUND:
        return at
    R, p = root_pose(tree, q[None], end.body)
    return p[0] + R[0] @ at


Counts = NDArray[np.intp]
MAX_NEWTON_STEPS = 30  # Newton steps before a position counts as out of reach
LONGEST_NEWTON_STEP = 0.5  # rad, and of the reach: what one Newton step may change


def newton(split: Split, q: Array, tolerance: float, engine: Engine = "auto") -> tuple[Counts, Array]:
    """Newton's steps on all samples of q (N, n), in place, until each is closed; how many steps, and what stays open."""
    n, unit = split.tree.n, split.unit[list(split.solved)]
    count, residual = np.zeros(len(q), dtype=np.intp), np.full(len(q), np.inf)
    active = np.arange(len(q))
    for step in range(MAX_NEWTON_STEPS + 1):
        T = loop_values(split.tree, q[active], engine=engine)
        residual[active] = np.abs(T[:, :, n]).max(axis=1, initial=0.0)
        still = residual[active] > tolerance
        active, T = active[still], T[still]
        if not len(active) or step == MAX_NEWTON_STEPS:
            break
        move = _solved(split.block(T) * unit, -T[:, split.rows, n])
        move /= np.maximum(1.0, np.abs(move).max(axis=1, keepdims=True) / LONGEST_NEWTON_STEP)
        q[active[:, None], list(split.solved)] += move * unit
        count[active] += 1
    return count, residual


def inverse(split: Split, values: Array) -> tuple[Array, Array, Array]:
    """Φ_s⁻¹ (N, m, m) of :func:`~veridyn.mechanics.tree.loops.assembly.loop_values`, its condition and the sign of the determinant of Φ_s.

    The condition, in the largest column sum and with sliding coordinates in units of the machine's reach, is infinite where Φ_s is
    singular.
    """
    A = split.block(values)
    unit = split.unit[list(split.solved)]
    sign = np.linalg.slogdet(A)[0]
    regular = sign != 0.0
    scaled = A[regular] * unit
    B, condition = np.zeros_like(A), np.full(len(A), np.inf)
    B[regular] = np.linalg.inv(scaled)
    condition[regular] = _norm(scaled) * _norm(B[regular])
    return B * unit[:, None], condition, sign


def slopes(split: Split, values: Array, inverted: Array) -> Array:
    """∂q_s/∂q_g = −Φ_s⁻¹ Φ_g (N, m, n_given)."""
    return -(inverted @ values[:, np.array(split.rows)[:, None], np.array(split.given)])


def times(A: Array, x: Array) -> Array:
    """A x, sample by sample: (N, a, b) and (N, b)."""
    return (A @ x[..., None])[..., 0]


def side_of(split: Split, q: Array) -> float:
    """On which side of the singular positions a closed position (n,) lies."""
    return float(np.linalg.slogdet(split.block(equation_values(split.tree, q[None])))[0][0])


def check_regular(
    split: Split, q: Array, condition: Array, sign: Array, side: float, samples: Counts | None = None
) -> None:
    """Refuse singular positions, and a change of side, which no machine makes without passing a singular position."""
    number = np.arange(len(q)) if samples is None else samples
    names = ", ".join(split.names)
    bad = ~(condition < 1.0 / SINGULAR_RATIO)
    if bad.any():
        k = int(np.argmax(bad))
        raise DataError(
            f"a singular position: there {names} do not decide how the machine moves.",
            where=split.sample(int(number[k])),
            expected=f"a condition below {1.0 / SINGULAR_RATIO:.0e}",
            found=f"{condition[k]:.1e} at {place(split, q[k])}",
            hint="Lead the motion around it.",
        )
    if (sign != side).any():
        k = int(np.argmax(sign != side))
        raise DataError(
            "a singular position lies on the way here: behind it the machine is assembled the other way round.",
            where=split.sample(int(number[k])),
            found=place(split, q[k]),
            hint="Lead the motion around it, or give a start on this side of it.",
        )


def refuse_unreachable(split: Split, q: Array, sample: int) -> None:
    """Say that a position (n,) could not be closed, and which loop stays open."""
    tree = split.tree
    T = equation_values(tree, q[None])
    _, condition, _ = inverse(split, T)
    flat = " There the loops are stretched out: a singular position." if not condition[0] < 1e4 else ""
    raise DataError(
        f"this position is out of reach: no closed position was found for it.{flat}",
        where=split.sample(sample),
        expected="all loops closed",
        found=f"{widest(tree, T[0, :, tree.n])} at {place(split, q)}",
        hint="Look at the units and the zero of these coordinates, or give a better start.",
    )


def place(split: Split, q: Array) -> str:
    """The given coordinates of a position, in words."""
    return ", ".join(f"{split.tree.coordinates[k]} = {q[k]:.4g}" for k in split.given)


def _solved(A: Array, b: Array) -> Array:
    """A⁻¹ b for each sample; the shortest of least squares where some A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return times(np.asarray(np.linalg.pinv(A), dtype=np.float64), b)


def _norm(A: Array) -> Array:
    return np.abs(A).sum(axis=-2).max(axis=-1, initial=0.0)
