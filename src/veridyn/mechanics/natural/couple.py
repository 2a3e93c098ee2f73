"""What a motor, spring or damper on an angle does to a bearing: a couple about the axis of turning, and nothing across it.

An added angle φ of a direction d, counted from e towards f, is held by Φ = sin φ d·e − cos φ d·f. Where d is not across the axis a = e × f,
the force −λ ∂Φ/∂d makes, besides the couple about a, one across it that affects no motion and that the bearing would have to carry:

    −λ (d·a) (cos φ e + sin φ f)

A machine has a couple about the axis. So where the angle is that of a bearing, this part is handed to the bearing's reaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.names import GROUND
from veridyn.model.place import Marker, PointRef
from veridyn.model.point_parts import Angle, DirectionRef

Array = NDArray[np.float64]
PERPENDICULAR_TOLERANCE = 1e-6  # of sines and lengths: what still counts as a unit vector, perpendicular or parallel


@dataclass(frozen=True, eq=False)
class Across:
    """The part across the axis of one angle's row: `row` of Φ, `place` of its coordinate, maps of d, e and f, `sign` on the chosen body."""

    row: int
    place: int
    d: Array
    e: Array
    f: Array
    sign: float

    def at(self, q: Array, lam: Array) -> tuple[Array, Array, Array]:
        """The moment (3,) and its derivatives with respect to q (3, n) and to its own multiplier (3,)."""
        y, phi = np.append(q, 1.0), q[self.place]
        d, e, f = self.d @ y, self.e @ y, self.f @ y
        a = np.cross(e, f)
        along, p = float(d @ a), np.cos(phi) * e + np.sin(phi) * f
        by_along = a @ self.d[:, :-1] + np.cross(f, d) @ self.e[:, :-1] + np.cross(d, e) @ self.f[:, :-1]
        by_p = np.cos(phi) * self.e[:, :-1] + np.sin(phi) * self.f[:, :-1]
        by_p[:, self.place] += np.cos(phi) * f - np.sin(phi) * e
        per = -self.sign * along * p
        by_q = -self.sign * lam[self.row] * (np.outer(p, by_along) + along * by_p)
        return lam[self.row] * per, by_q, per


def across_of(system: NaturalSystem, body: str, other: str, axis: Array) -> tuple[Across, ...]:
    """Of each angle between two bodies about this axis (its map, (3, n+1)): the part across, as it acts on `body`."""
    m, g = system.mechanism, system.geometry
    y, out = np.append(g.guess, 1.0), []
    turn = _unit(axis @ y)
    for angle in m.added:
        if m.dimension != 3 or not isinstance(angle, Angle) or angle.towards is None:
            continue
        ends = owner_of(m, angle.of), owner_of(m, angle.reference), owner_of(m, angle.towards)
        sign = 1.0 if ends == (body, other, other) else -1.0 if ends == (other, body, body) else 0.0
        maps = g.angle(angle)
        _, e, f = (A @ y for A in maps)
        square = np.abs([e @ e - 1.0, f @ f - 1.0, e @ f]).max() < PERPENDICULAR_TOLERANCE
        if sign and square and float(np.linalg.norm(np.cross(np.cross(e, f), turn))) < PERPENDICULAR_TOLERANCE:
            out.append(Across(system.constraints.names.index(angle.name), m.index(angle.name), *maps, sign))
    return tuple(out)


def owner_of(m: Mechanism, ref: PointRef | DirectionRef) -> str | None:
    """The body a place or direction belongs to: its marker's, the ground where nothing in it moves, else the first that has all of it."""
    if isinstance(ref, Marker):
        return ref.body
    names = (ref,) if isinstance(ref, str) else tuple(ref)
    if not all(isinstance(name, str) for name in names):
        return GROUND  # components in the ground's axes
    if all(e.fixed for e in (*m.points, *m.vectors) if e.name in names):
        return GROUND
    return next((b.name for b in m.bodies if set(names) <= set(b.elements)), None)


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-300)
