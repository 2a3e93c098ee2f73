"""What a cut joint does to its two ends, from its multipliers, over scalars of any kind.

The equations of motion hold Φ_qᵀ λ on the side of the inertia, so a cut joint acts with −λ ∂Φ. Of the equations of
:mod:`veridyn.mechanics.loops.equations`, with d the way from the place on the second end to that on the first, the second end gets

    d·e = 0         the force λ e                            (e fixed in the root's axes, or an axis of the first end)
    u·w = 0         the moment λ u × w                       (u an axis of the first end, w of the second)
    (d·d − L²)/2L   the force λ d/L

about its place; the first end gets the opposite about the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

from veridyn.mechanics.newton_euler import Wrench
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.assembly import Attachment
from veridyn.model.body import Loop
from veridyn.model.names import GROUND
from veridyn.spatial.algebra import Scalar
from veridyn.spatial.linalg import IDENTITY, ZERO, Mat, Vec, cross, minus, plus, rotate, scaled

X, Y, Z = range(3)
ALONG = ((X, Z), (Y, Z))  # z of the second end has no component along x and y of the first
RIGID = ((X, Y), *ALONG)
CROSSED = {
    "turning": ALONG,
    "fixed": RIGID,
    "planar": ALONG,
    "cylindrical": ALONG,
    "sliding": RIGID,
    "universal": ((Z, Z),),
}
WITHOUT_MOMENT = ("spherical", "distance")


def place_of_end(tree: Tree, frames: Sequence[tuple[Mat, Vec]], end: Attachment) -> tuple[Mat, Vec]:
    """The frame of an end in the root's frame: its axes as columns, and its origin."""
    R, p = end.placement.rotation, end.placement.position
    own: Mat = tuple((float(row[0]), float(row[1]), float(row[2])) for row in R)  # pyright: ignore[reportAssignmentType]
    at: Vec = (float(p[0]), float(p[1]), float(p[2]))
    if end.body == GROUND:
        return own, at
    A, P = frames[tree.index(end.body)]
    axes = [rotate(A, (own[0][k], own[1][k], own[2][k])) for k in range(3)]
    columns: Mat = tuple((axes[0][i], axes[1][i], axes[2][i]) for i in range(3))  # pyright: ignore[reportAssignmentType]
    return columns, plus(P, rotate(A, at))


def cut_wrench(tree: Tree, frames: Sequence[tuple[Mat, Vec]], loop: Loop, lam: Sequence[Scalar]) -> tuple[Wrench, Vec]:
    """Force and moment on the second end about its place, in the root's axes, and that place; `lam`: one for each of its equations."""
    (A, a), (B, b) = place_of_end(tree, frames, loop.first), place_of_end(tree, frames, loop.second)
    d = minus(a, b)
    if loop.joint == "distance":
        return (scaled(lam[0] / loop.length, d), ZERO), b
    if loop.joint == "planar":
        lines: list[Vec] = [_column(A, Z)]
    elif loop.joint in ("cylindrical", "sliding"):
        lines = [_column(A, X), _column(A, Y)]
    else:
        lines = list(IDENTITY)
    force, moment = ZERO, ZERO
    for line, size in zip(lines, lam, strict=False):
        force = plus(force, scaled(size, line))
    for (u, w), size in zip(CROSSED.get(loop.joint, ()), lam[len(lines) :], strict=True):
        moment = plus(moment, scaled(size, cross(_column(A, u), _column(B, w))))
    return (force, moment), b


def _column(A: Mat, k: int) -> Vec:
    return (A[0][k], A[1][k], A[2][k])
