"""Places and directions of a mechanism as linear maps of its natural coordinates: r = A y, with y = (q, 1).

Every point of a rigid body is a fixed combination of the body's points and vectors, r = r₀ + Σ cᵢ dᵢ with constant cᵢ (paper 003,
equations 30 to 32 and 34). The dᵢ are directions from the first point to others, or unit vectors; in the plane the second direction
is the first, turned by a right angle.

A chassis with many joints has a point for each of them, and as many linear constraints (34). Substituted (:func:`compact`), both are
gone, and the bordered matrices of a step are smaller and quicker to factorise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.place import GROUND, QUARTER_TURN, Marker, PointRef, frame
from veridyn.model.point_parts import Angle, DirectionRef, Elevation, RigidBody, length_of

INDEPENDENT = 1e-6  # sine of the smallest angle at which a direction still counts as a new one
IN_SPAN = 1e-9


@dataclass(frozen=True, eq=False)
class Basis:
    """What places a body: its first point, k directions, the same in the body's frame, and the names they come from.

    `maps` (k, dim, n+1) and `local` (dim, k) hold the directions; in the plane there are none or two. `count` of them are not implied
    by the others, and `sources` names the points and vectors of each of those.
    """

    body: str
    origin: str
    place: Array
    local_origin: Array
    maps: Array
    local: Array
    sources: tuple[tuple[str, ...], ...]

    @property
    def count(self) -> int:
        return len(self.sources)

    @property
    def complete(self) -> bool:
        """True when every direction of the body is a combination of these."""
        return self.local.shape[1] == self.local.shape[0]

    def weights(self, along: Array) -> Array:
        """The cᵢ of a direction in the body's frame; refused where the directions do not span it."""
        c = np.linalg.pinv(self.local) @ along if self.local.size else np.zeros(0)
        missed = float(np.linalg.norm(along - self.local @ c))
        if missed > IN_SPAN * max(1.0, float(np.linalg.norm(along))):
            raise ModelError(
                "its points and vectors do not span this place or direction.",
                where=f"body '{self.body}'",
                expected="a combination of the directions of "
                + (", ".join("-".join(s) for s in self.sources) or "none"),
                found=f"{along.tolist()}, {missed:.3g} away from it",
                hint="Give the body one more point or vector.",
            )
        return c


@dataclass(frozen=True, eq=False)
class Geometry:
    """The linear maps of one mechanism."""

    mechanism: Mechanism

    @cached_property
    def elements(self) -> dict[str, Array]:
        """Name of a point or vector → its map (dim, n+1)."""
        m, maps, at, derived = self.mechanism, dict[str, Array](), 0, dict(self.mechanism.derived)
        for name, fixed, value in (
            *((p.name, p.fixed, p.at) for p in m.points),
            *((v.name, v.fixed, v.along) for v in m.vectors),
        ):
            if name in derived:
                continue
            A = np.zeros((m.dimension, m.n + 1))
            if fixed:
                A[:, -1] = value
            else:
                A[:, at : at + m.dimension] = np.eye(m.dimension)
                at += m.dimension
            maps[name] = A
        for owner in dict.fromkeys(derived.values()):
            body = m.body(owner)
            basis = self._basis(body, maps)
            for name in (e for e, of in m.derived if of == owner):
                point = name in body.points
                x = np.array(body.points[name] if point else body.vectors[name])
                c = basis.weights(x - basis.local_origin if point else x)
                c[np.abs(c) < IN_SPAN * np.abs(c).max(initial=0.0)] = 0.0
                maps[name] = np.tensordot(c, basis.maps, axes=1) + (basis.place if point else 0.0)
        return maps

    @cached_property
    def fixed(self) -> frozenset[str]:
        """Names of the points and vectors that do not move."""
        return frozenset(e.name for e in (*self.mechanism.points, *self.mechanism.vectors) if e.fixed)

    @cached_property
    def bases(self) -> dict[str, Basis]:
        """Body name → what places it."""
        return {b.name: self._basis(b, self._without_own(b.name)) for b in self.mechanism.bodies}

    def _without_own(self, body: str) -> dict[str, Array]:
        """Maps of the points and vectors that do not follow from this body."""
        own = {e for e, of in self.mechanism.derived if of == body}
        return {name: A for name, A in self.elements.items() if name not in own}

    def constant(self, value: ArrayLike) -> Array:
        A = np.zeros((self.mechanism.dimension, self.mechanism.n + 1))
        A[:, -1] = value
        return A

    def _basis(self, body: RigidBody, maps: dict[str, Array]) -> Basis:
        """What places a body, of those of its points and vectors that have maps."""
        dim = self.mechanism.dimension
        points = {p: np.array(x) for p, x in body.points.items() if p in maps}
        origin = next(iter(points))
        x0 = points[origin]
        candidates = [((origin, p), x - x0, maps[p] - maps[origin]) for p, x in points.items() if p != origin]
        candidates += [((v,), np.array(x), maps[v]) for v, x in body.vectors.items() if v in maps]
        for source, x, _ in candidates:
            if not np.linalg.norm(x) > 0.0:
                raise ModelError(
                    "two of its points are at one place.",
                    where=f"body '{body.name}'",
                    found=" and ".join(source),
                    source=self.mechanism.name,
                )
        chosen = _independent([x for _, x, _ in candidates], 1 if dim == 2 else 3)
        still = [i for i, (source, _, _) in enumerate(candidates) if self.fixed.issuperset(source)]
        if not set(still) <= set(chosen):
            # A fixed direction has its length already: as a combination of others it would say that once more.
            candidates = [*(candidates[i] for i in still), *(c for i, c in enumerate(candidates) if i not in still)]
            chosen = _independent([x for _, x, _ in candidates], 1 if dim == 2 else 3)
        directions = [(candidates[i][1], candidates[i][2]) for i in chosen]
        if dim == 2 and directions:
            x, A = directions[0]
            directions.append((QUARTER_TURN @ x, QUARTER_TURN @ A))
        return Basis(
            body.name,
            origin,
            maps[origin],
            x0,
            np.array([A for _, A in directions]).reshape(-1, dim, self.mechanism.n + 1),
            np.column_stack([x for x, _ in directions]) if directions else np.zeros((dim, 0)),
            tuple(candidates[i][0] for i in chosen),
        )

    def on_body(self, body: str, at: ArrayLike) -> Array:
        """The map of a place given in a body's frame."""
        x = np.asarray(at, dtype=np.float64)
        if body == GROUND:
            return self.constant(x)
        basis = self.bases[self.mechanism.body(body).name]
        return basis.place + self.along(body, x - basis.local_origin)

    def along(self, body: str, direction: ArrayLike) -> Array:
        """The map of a direction given in a body's frame."""
        x = np.asarray(direction, dtype=np.float64)
        if body == GROUND:
            return self.constant(x)
        basis = self.bases[self.mechanism.body(body).name]
        return np.tensordot(basis.weights(x), basis.maps, axes=1)

    def point(self, ref: PointRef) -> Array:
        """The map of a point by name or of a marker's place."""
        return self.on_body(ref.body, ref.at) if isinstance(ref, Marker) else self.elements[ref]

    def direction(self, ref: DirectionRef) -> Array:
        """The map of a direction: a vector, point to point, a marker's axis (made a unit vector), or constant components."""
        if isinstance(ref, str):
            return self.elements[ref]
        if isinstance(ref, Marker):
            return self.along(ref.body, frame(ref)[0])
        if isinstance(ref[0], str):
            return self.elements[str(ref[1])] - self.elements[str(ref[0])]
        return self.constant(np.asarray(ref, dtype=np.float64))

    def unit(self, ref: DirectionRef) -> Array:
        """The same made a unit vector: two points are some constant length apart, which ``natural_check`` has seen to."""
        two = not isinstance(ref, str | Marker) and isinstance(ref[0], str)
        return self.direction(ref) / length_of(self.mechanism, ref) if two else self.direction(ref)

    def angle(self, a: Angle) -> tuple[Array, Array, Array]:
        """Maps of the direction that turns, of the one it is counted from, and of the one it is counted towards."""
        of = self.direction(a.of)
        if a.towards is None:  # in the plane the two have one length, whatever it is
            e = self.direction(a.reference)
            return of, e, QUARTER_TURN @ e
        return of, self.unit(a.reference), self.unit(a.towards)

    @cached_property
    def guess(self) -> Array:
        """The coordinates as the description gives them, the added ones computed from the others."""
        m = self.mechanism
        y = np.zeros(m.n + 1)
        y[-1] = 1.0
        derived = dict(m.derived)
        moving = [p.at for p in m.points if not p.fixed and p.name not in derived]
        moving += [v.along for v in m.vectors if not v.fixed and v.name not in derived]
        y[: m.n - len(m.added)] = np.concatenate(moving) if moving else []
        for k, a in enumerate(m.added, m.n - len(m.added)):
            if isinstance(a, Angle):
                d, e, f = (A @ y for A in self.angle(a))
                y[k] = np.arctan2(d @ f, d @ e)
                if np.isfinite(a.start):
                    y[k] += 2.0 * np.pi * np.round((a.start - y[k]) / (2.0 * np.pi))
            elif isinstance(a, Elevation):
                y[k] = np.arcsin(np.clip((self.unit(a.of) @ y) @ (self.unit(a.normal) @ y), -1.0, 1.0))
            else:
                r = (self.point(a.b) - self.point(a.a)) @ y
                y[k] = np.linalg.norm(r) if a.along is None else r @ (self.unit(a.along) @ y)
        return y[:-1]

    def rotation(self, body: str, q: ArrayLike) -> Array:
        """The rotation (…, dim, dim) of a body: its axes in the ground's frame."""
        D, basis = self._directions(body, q)
        return D @ np.linalg.inv(basis.local)

    def mirrored(self, q: ArrayLike) -> tuple[str, ...]:
        """Names of the bodies that a pose (n,) places as their mirror images: lengths and angles allow it, no motion leads there."""
        if self.mechanism.dimension == 2:
            return ()  # the second direction is the first one turned
        return tuple(
            name for name, b in self.bases.items() if b.complete and np.linalg.det(self.rotation(name, q)) < 0.0
        )

    def angular_velocity(self, body: str, q: ArrayLike, qd: ArrayLike) -> Array:
        """ω (…, 3) in the ground's frame, ½ Σ dⁱ × ḋᵢ with the reciprocal dⁱ; in the plane (…,), positive counter-clockwise."""
        D, basis = self._directions(body, q)
        rate = np.einsum("kij,...j->...ik", basis.maps[:, :, :-1], np.asarray(qd, dtype=np.float64))
        if self.mechanism.dimension == 2:
            d = D[..., :, 0]
            turned = np.einsum("ij,...j->...i", QUARTER_TURN, d)
            return (turned * rate[..., :, 0]).sum(axis=-1) / (basis.local[:, 0] @ basis.local[:, 0])
        dual = D @ np.linalg.inv(basis.local.T @ basis.local)
        return 0.5 * np.cross(dual, rate, axisa=-2, axisb=-2).sum(axis=-2)

    def _directions(self, body: str, q: ArrayLike) -> tuple[Array, Basis]:
        basis = self.bases[self.mechanism.body(body).name]
        if not basis.complete:
            raise DataError(
                "its points and vectors do not fix its orientation.",
                where=f"body '{body}'",
                hint="Give it more points or vectors.",
                source=self.mechanism.name,
            )
        x = np.asarray(q, dtype=np.float64)
        y = np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
        return np.einsum("kij,...j->...ik", basis.maps, y), basis


def _independent(directions: list[Array], most: int) -> list[int]:
    """Numbers of at most so many directions, each the farthest from the span of those before it."""
    chosen: list[int] = []
    if not directions:
        return chosen
    span = np.zeros((len(directions[0]), 0))
    while len(chosen) < most:
        sines = [np.linalg.norm(x - span @ (span.T @ x)) / np.linalg.norm(x) for x in directions]
        best = int(np.argmax(np.round(sines, 6)))
        if sines[best] < INDEPENDENT:
            break
        chosen.append(best)
        span = np.linalg.qr(np.column_stack([directions[i] for i in chosen]))[0]
    return chosen


def compact(mechanism: Mechanism) -> Mechanism:
    """The mechanism with all points and vectors substituted that follow from a body; they stay its points and vectors by name."""
    geometry = Geometry(mechanism)
    still = geometry.fixed
    beyond: dict[str, list[str]] = {}
    for body in mechanism.bodies:
        basis = geometry.bases[body.name]
        own = {basis.origin, *(s[-1] for s in basis.sources)}
        if basis.complete:
            beyond[body.name] = [e for e in body.elements if e not in own and e not in still]
    derived: dict[str, str] = {}
    kept: set[str] = set()
    for name in sorted(beyond, key=lambda body: -len(beyond[body])):
        basis = geometry.bases[name]
        own = {basis.origin, *(s[-1] for s in basis.sources)}
        chosen = [e for e in beyond[name] if e not in derived and e not in kept]
        if chosen:
            derived |= dict.fromkeys(chosen, name)
            kept |= own
    return replace(mechanism, derived=tuple(derived.items()))
