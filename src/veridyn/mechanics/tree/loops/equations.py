"""What keeps loops closed: the equations Φ(q) = 0 of cut joints, their slopes and what is left of Φ̈, over scalars of any kind.

Each cut joint is made of a few equations between two frames: components of the distance of two points, projections of that distance
on axes, products of axes, a length. With q̈ = 0 the second derivative of an equation is its bias, so that Φ̈ = Φ_q q̈ + bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.recursion.inputs import blocks
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, frames_in_root, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Loop
from veridyn.model.place import GROUND, Attachment
from veridyn.spatial.algebra import (
    ARRAYS,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    minus,
    mul,
    plus,
    rotate,
    scaled,
    sub,
)

X, Y, Z = 0, 1, 2
COUNTS = {"spherical": 3, "turning": 5, "universal": 4, "cylindrical": 4, "sliding": 5, "planar": 3, "fixed": 6}
COUNTS["distance"] = 1
LOOP_TOLERANCE_M = 1e-6  # m, and of rates relative: what a state may open a loop by


@dataclass(frozen=True)
class Equation:
    """One equation of a cut joint: its value, its slopes by number of the coordinate, and its bias."""

    value: Scalar
    slopes: dict[int, Scalar]
    bias: Scalar


@dataclass(frozen=True)
class _Arrow:
    """A vector that moves with the machine, in the root's axes: value, slopes, rate, and second rate while q̈ = 0."""

    value: Vec
    slopes: dict[int, Vec]
    rate: Vec
    bias: Vec


def names_of(loops: Sequence[Loop]) -> tuple[str, ...]:
    """The loop each equation belongs to, in the order of :func:`equations`."""
    return tuple(loop.name for loop in loops for _ in range(COUNTS[loop.joint]))


def equations(tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar], algebra: Algebra) -> list[Equation]:
    """All equations of all loops of a tree, in the order of ``tree.loops``. A free base stands still: its motion opens no loop."""
    o = outward(tree, State(q, qd, [0.0] * tree.n), algebra, velocity=True)
    frames = frames_in_root(tree, o)
    found: list[Equation] = []
    for loop in tree.loops:
        found += _of(loop, _End(tree, o, frames, loop.first), _End(tree, o, frames, loop.second))
    return found


def equation_values(tree: Tree, q: Array, qd: Array | None = None) -> Array:
    """(N, equations, n + 2): Φ_q, then Φ, then the bias of Φ̈ (zero where no rates are given)."""
    n = tree.n
    out = np.zeros((len(q), sum(COUNTS[loop.joint] for loop in tree.loops), n + 2))
    for block in blocks(len(q)):
        rates = [0.0] * n if qd is None else list(np.ascontiguousarray(qd[block].T))
        for i, equation in enumerate(equations(tree, list(np.ascontiguousarray(q[block].T)), rates, ARRAYS)):
            for k, slope in equation.slopes.items():
                out[block, i, k] = slope
            out[block, i, n] = equation.value
            out[block, i, n + 1] = equation.bias
    return out


def widest(tree: Tree, opening: Array) -> str:
    """Which loop is open, and by how much; `opening` (equations,)."""
    k = int(np.argmax(np.abs(opening)))
    return f"loop '{names_of(tree.loops)[k]}' open by {abs(float(opening[k])):.3g}"


def check_closed(tree: Tree, opening: Array, what: str, hint: str) -> None:
    """Refuse positions whose loops are open; `opening` (N, equations)."""
    wide = np.abs(opening).max(axis=1, initial=0.0)
    if not (wide <= LOOP_TOLERANCE_M).all():
        k = int(np.argmax(~(wide <= LOOP_TOLERANCE_M)))
        raise DataError(what, where=f"{tree.name}, sample {k}", found=widest(tree, opening[k]), hint=hint)


def check_rates(tree: Tree, J: Array, x: Array, bias: Array | float, what: str, hint: str, per: str) -> None:
    """Refuse rates or accelerations x (N, n) that open loops: J x + bias (N, equations) is zero, beside the sizes of its terms."""
    terms = J * x[:, None, :]
    off = np.abs(terms.sum(axis=-1) + bias)
    size = np.abs(terms).sum(axis=-1) + np.abs(bias) + 1.0
    if (off > LOOP_TOLERANCE_M * size).any():
        k = int(np.argmax((off / size).max(axis=1)))
        raise DataError(what, where=f"{tree.name}, sample {k}", found=widest(tree, off[k]) + per, hint=hint)


class _End:
    """One frame of a cut joint."""

    def __init__(self, tree: Tree, o: Outward, frames: list[tuple[Mat, Vec]], at: Attachment) -> None:
        self.tree, self.o, self.frames = tree, o, frames
        self.body = -1 if at.body == GROUND else tree.index(at.body)
        R, p = at.placement.rotation, at.placement.position
        self.place: Vec = (float(p[0]), float(p[1]), float(p[2]))
        self.own = tuple((float(R[0, k]), float(R[1, k]), float(R[2, k])) for k in range(3))

    def point(self) -> _Arrow:
        """Where the frame's origin is."""
        if self.body < 0:
            return _Arrow(self.place, {}, ZERO, ZERO)
        o, j = self.o, self.body
        A, P = self.frames[j]
        value = plus(P, rotate(A, self.place))
        slopes: dict[int, Vec] = {}
        for k, turning, ratio, axis, origin in self._joints():
            way = cross(axis, minus(value, origin)) if turning else axis
            slopes[k] = plus(slopes.get(k, ZERO), scaled(ratio, way))
        rate = rotate(A, plus(o.v[j], cross(o.w[j], self.place)))
        bias = rotate(A, plus(o.vd[j], rotate(o.U[j], self.place)))
        return _Arrow(value, slopes, rate, bias)

    def axis(self, k: int) -> _Arrow:
        """The direction of the frame's x, y or z."""
        own = self.own[k]
        if self.body < 0:
            return _Arrow(own, {}, ZERO, ZERO)
        o, j = self.o, self.body
        A = self.frames[j][0]
        value = rotate(A, own)
        slopes: dict[int, Vec] = {}
        for c, turning, ratio, axis, _ in self._joints():
            if turning:
                slopes[c] = plus(slopes.get(c, ZERO), scaled(ratio, cross(axis, value)))
        return _Arrow(value, slopes, rotate(A, cross(o.w[j], own)), rotate(A, rotate(o.U[j], own)))

    def _joints(self) -> Iterator[tuple[int, bool, float, Vec, Vec]]:
        """The joints that move this end: coordinate, whether it turns, ratio, axis and origin in the root's frame."""
        tree = self.tree
        for i in tree.path(self.body):
            if tree.coordinate[i] >= 0:
                A, P = self.frames[i]
                yield tree.coordinate[i], tree.sigma[i] == 0, tree.bodies[i].ratio, (A[0][2], A[1][2], A[2][2]), P


def _of(loop: Loop, a: _End, b: _End) -> list[Equation]:
    apart = _difference(a.point(), b.point())
    if loop.joint == "distance":
        half = 0.5 / loop.length
        square = _product(apart, apart)
        return [
            Equation(
                mul(half, sub(square.value, loop.length**2)),
                {k: mul(half, s) for k, s in square.slopes.items()},
                mul(half, square.bias),
            )
        ]
    together = [_component(apart, k) for k in range(3)]
    along = [(X, Z), (Y, Z)]  # z of one end has no component along x and y of the other
    rigid = [(X, Y), *along]
    if loop.joint == "spherical":
        return together
    if loop.joint == "universal":
        return [*together, _product(a.axis(Z), b.axis(Z))]
    if loop.joint in ("turning", "fixed"):
        return [*together, *_crossed(a, b, along if loop.joint == "turning" else rigid)]
    if loop.joint == "planar":
        return [_product(a.axis(Z), apart), *_crossed(a, b, along)]
    aside = [_product(a.axis(k), apart) for k in (X, Y)]
    return [*aside, *_crossed(a, b, along if loop.joint == "cylindrical" else rigid)]


def _crossed(a: _End, b: _End, pairs: Sequence[tuple[int, int]]) -> list[Equation]:
    return [_product(a.axis(m), b.axis(n)) for m, n in pairs]


def _difference(a: _Arrow, b: _Arrow) -> _Arrow:
    slopes = dict(a.slopes)
    for k, s in b.slopes.items():
        slopes[k] = minus(slopes.get(k, ZERO), s)
    return _Arrow(minus(a.value, b.value), slopes, minus(a.rate, b.rate), minus(a.bias, b.bias))


def _component(a: _Arrow, k: int) -> Equation:
    return Equation(a.value[k], {c: s[k] for c, s in a.slopes.items()}, a.bias[k])


def _product(a: _Arrow, b: _Arrow) -> Equation:
    slopes: dict[int, Scalar] = {}
    for own, other in ((a, b), (b, a)):
        for k, s in own.slopes.items():
            slopes[k] = add(slopes.get(k, 0.0), dot(s, other.value))
    bias = add(add(dot(a.bias, b.value), dot(a.value, b.bias)), mul(2.0, dot(a.rate, b.rate)))
    return Equation(dot(a.value, b.value), slopes, bias)
