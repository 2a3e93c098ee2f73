"""Collisions by capsules: the distance of segments within a machine and above a floor, with its slopes.

A capsule is all that is within `radius` of a segment. Two of them are apart where the least distance d of their segments is above
D = r_a + r_b + margin. Of two bodies with several capsules the closest pair counts, so that each pair of bodies is one limit

    g = (d/D)² − 1 > 0,     ∂g = 2/D² (x_a − x_b)ᵀ(∂x_a − ∂x_b)

with the closest points x held in their bodies: at a minimum of the distance its own place adds nothing to the slope. A floor is the plane
up·x = height, up against gravity, with g = h|h|/D² − 1 for the height h of an end of a segment above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND

Three = tuple[float, float, float]
FLOOR = "the floor"
PARALLEL = 1e-12  # of the squared lengths: segments with a smaller determinant have their closest points at an end


@dataclass(frozen=True)
class Capsule:
    """All that is within `radius` [m] of the segment from `start` to `end`, in the frame of `body` (or of the ground) [m].

    A sphere where both ends are one.
    """

    body: str
    start: Three
    end: Three
    radius: float


@dataclass(frozen=True)
class Collision:
    """What may not touch: `pairs` of bodies, and bodies `above` the floor at height `floor` [m]; `margin` [m] is kept besides."""

    capsules: tuple[Capsule, ...]
    pairs: tuple[tuple[str, str], ...]
    floor: float | None = None
    above: tuple[str, ...] = ()
    margin: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """What each limit is."""
        return (*(f"distance {a} to {b}" for a, b in self.pairs), *(f"distance {a} to {FLOOR}" for a in self.above))


def closest(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """Shares s and t (N,) with which a + s (b − a) and c + t (d − c) are the closest points of two segments, ends (N, 3)."""
    u, v, w = b - a, d - c, a - c
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    uw, vw = (u * w).sum(-1), (v * w).sum(-1)
    det = uu * vv - uv * uv
    inner = det > PARALLEL * np.maximum(uu * vv, 1e-300)
    safe = np.where(inner, det, 1.0)
    s0, t0 = (uv * vw - vv * uw) / safe, (uu * vw - uv * uw) / safe
    inner &= (s0 >= 0.0) & (s0 <= 1.0) & (t0 >= 0.0) & (t0 <= 1.0)
    zero, one = np.zeros_like(uu), np.ones_like(uu)

    def along(x: Array, size: Array) -> Array:
        return np.clip(np.where(size > 0.0, x / np.where(size > 0.0, size, 1.0), 0.0), 0.0, 1.0)

    candidates = [
        (np.where(inner, s0, zero), np.where(inner, t0, along(vw, vv))),
        (zero, along(vw, vv)),
        (one, along(vw + uv, vv)),
        (along(-uw, uu), zero),
        (along(uv - uw, uu), one),
    ]
    s, t = (np.stack(x) for x in zip(*candidates, strict=True))
    gap = w + s[..., None] * u - t[..., None] * v
    best = (gap * gap).sum(-1).argmin(0)
    pick = np.arange(len(best))
    return s[best, pick], t[best, pick]


def clearances(collision: Collision, at: Posture, slopes: bool = True) -> tuple[Array, Array | None]:
    """g (N, k) of all limits of a collision and, on request, ∂g/∂q (N, k, n)."""
    capsules = collision.capsules
    starts, ends = (np.stack([at.point(c.body, x) for c, x in each]) for each in _both_ends(capsules))  # (C, N, 3)
    g = np.empty((at.N, len(collision.names)))
    dg = np.zeros((*g.shape, at.n)) if slopes else None
    rows = np.arange(at.N)
    first, second, groups = _combinations(collision)
    if len(first):
        D = np.array([c.radius for c in capsules])
        D = D[first] + D[second] + collision.margin
        lines = [x.reshape(-1, 3) for x in (starts[first], ends[first], starts[second], ends[second])]
        s, t = closest(*lines)
        xa, xb = (
            (lines[k] + x[:, None] * (lines[k + 1] - lines[k])).reshape(len(first), -1, 3) for k, x in ((0, s), (2, t))
        )
        ratio = ((xa - xb) ** 2).sum(-1) / D[:, None] ** 2
        for k, (low, high) in enumerate(groups):
            best = low + ratio[low:high].argmin(0)
            g[:, k] = ratio[best, rows] - 1.0
            if dg is not None:
                (a, b), pa, pb = collision.pairs[k], xa[best, rows], xb[best, rows]
                moved = at.slopes(a, pa) - at.slopes(b, pb)
                dg[:, k] = 2.0 * np.einsum("ni,nik->nk", pa - pb, moved) / D[best][:, None] ** 2
    for k, a in enumerate(collision.above, len(collision.pairs)):
        assert collision.floor is not None
        own = [i for i, c in enumerate(capsules) if c.body == a]
        x = np.concatenate([starts[own], ends[own]])
        D = np.tile([capsules[i].radius + collision.margin for i in own], 2)
        share = (x @ at.up - collision.floor) / D[:, None]
        best = share.argmin(0)
        h = share[best, rows]
        g[:, k] = h * np.abs(h) - 1.0
        if dg is not None:
            lowest = at.slopes(a, x[best, rows])
            dg[:, k] = 2.0 * (np.abs(h) / D[best])[:, None] * np.einsum("i,nik->nk", at.up, lowest)
    return g, dg


def _both_ends(capsules: Sequence[Capsule]) -> tuple[list[tuple[Capsule, Three]], list[tuple[Capsule, Three]]]:
    return [(c, c.start) for c in capsules], [(c, c.end) for c in capsules]


def _combinations(collision: Collision) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Numbers of the capsules of every pair of bodies, and which of these combinations belong to each pair."""
    by_body: dict[str, list[int]] = {}
    for k, c in enumerate(collision.capsules):
        by_body.setdefault(c.body, []).append(k)
    first: list[int] = []
    second: list[int] = []
    groups: list[tuple[int, int]] = []
    for a, b in collision.pairs:
        low = len(first)
        first += [i for i in by_body[a] for _ in by_body[b]]
        second += [j for _ in by_body[a] for j in by_body[b]]
        groups.append((low, len(first)))
    return first, second, groups


def separable(
    machine: Machine, capsules: Sequence[Capsule], ignore: Iterable[frozenset[str]] = ()
) -> tuple[tuple[str, str], ...]:
    """Pairs of bodies with capsules that can touch: neither rigidly connected nor joined by one joint, nor ignored."""
    group, joined = {GROUND: GROUND}, set[frozenset[str]]()  # bodies rigidly connected, by the first of them
    for body in bodies_of(machine):
        carrier = group[body.antecedent or GROUND]
        group[body.name] = carrier if body.joint == "fixed" else body.name
        if body.joint != "fixed":
            joined.add(frozenset((body.name, carrier)))
    for joint in machine.cut_joints:
        joined.add(frozenset(group[end.body] for end in machine.ends(joint)))
    order = [*group]
    names = sorted({c.body for c in capsules}, key=order.index)
    left = set(ignore)
    return tuple(
        (a, b)
        for n, a in enumerate(names)
        for b in names[n + 1 :]
        if group[a] != group[b] and frozenset((group[a], group[b])) not in joined and frozenset((a, b)) not in left
    )


def moving(machine: Machine, capsules: Sequence[Capsule]) -> tuple[str, ...]:
    """Bodies with capsules that some joint moves against the ground, in their order."""
    own = {c.body for c in capsules} - {GROUND}
    return tuple(name for name in machine.described.links if name in own and machine.described.moving(name))


def always_touching(machine: Machine, collision: Collision, q: Array) -> tuple[str, ...]:
    """Names of the limits that no posture of q (N, n) keeps: connected bodies, or capsules that are too wide to say anything."""
    g = clearances(collision, Posture(machine, q), slopes=False)[0]
    return tuple(name for name, most in zip(collision.names, g.max(axis=0).tolist(), strict=True) if most <= 0.0)


def without(collision: Collision, names: Iterable[str]) -> Collision:
    """The same without some of its limits."""
    gone = set(names)
    return Collision(
        collision.capsules,
        tuple(p for p in collision.pairs if f"distance {p[0]} to {p[1]}" not in gone),
        collision.floor,
        tuple(a for a in collision.above if f"distance {a} to {FLOOR}" not in gone),
        collision.margin,
    )
