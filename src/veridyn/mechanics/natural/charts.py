"""Sets of independent coordinates that take over from each other: a body that turns round in space has no single one.

Each set z of coordinates is a chart of the poses: good where dq = R dz stays of the size of dz, useless where R grows without bound. The
set in use is left when another does much better; errors of z and ż go with it by

    dz' = R[z'] dz,    dż' = (∂q̇/∂z)[z'] dz + R[z'] dż
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.natural.minimal import Minimal

Array = NDArray[np.float64]
# Growth of R, in typical sizes, from which another set is looked for, and by how many times that one must do better. Added angles and
# distances are what users name and noise is given for: they are kept longer. A set of Cartesian ones bends long before it is singular.
ADDED, CARTESIAN = (4.0, 2.0), (1.2, 1.1)


@dataclass(frozen=True, eq=False)
class Charts:
    """The sets in use so far, by number; the `first` is number 0. New ones are added on the way, none is taken away."""

    first: Minimal
    known: list[Minimal] = field(default_factory=list)
    _weights: dict[int, Array] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.known[:] = [self.first]

    def __getitem__(self, number: int) -> Minimal:
        return self.known[number]

    @cached_property
    def sizes(self) -> Array:
        """Typical sizes (n,) of the coordinates: 1 of angles and components of unit vectors, that of the largest body of lengths."""
        mechanism = self.first.system.mechanism
        places = [np.array(list(b.points.values())) for b in mechanism.bodies]
        reach = max((float(np.ptp(p, axis=0).max(initial=0.0)) for p in places if len(p)), default=0.0)
        lengths = [mechanism.unit_of(name) == "m" for name in mechanism.coordinates]
        return np.where(lengths, reach or 1.0, 1.0)

    def weights(self, number: int) -> Array:
        """What R (n, f) of a set is multiplied with, entry by entry, for its strain."""
        if number not in self._weights:
            self._weights[number] = self.sizes[self.known[number].z] / self.sizes[:, None]
        return self._weights[number]

    def strain(self, number: int, R: Array) -> float:
        """By how much coordinates move when those of the set move by their sizes."""
        return float(np.abs(R * self.weights(number)).max(initial=0.0))

    def limits(self, number: int) -> tuple[float, float]:
        """The strain from which a set other than this is looked for, and by how many times that one must do better."""
        return ADDED if self._added.issuperset(self.known[number].names) else CARTESIAN

    @cached_property
    def _added(self) -> frozenset[str]:
        return frozenset(a.name for a in self.first.system.mechanism.added)

    def better(self, number: int, q: Array, R: Array) -> int | None:
        """The number of a set that does much better at the pose q, where R is that of the set in use; None if this one will do."""
        strain = self.strain(number, R)
        strained, times = self.limits(number)
        if strain <= strained:
            return None
        other = self.best(q)
        if other == number:
            return None
        through = R[self.known[other].z]  # dz' = through dz
        if np.linalg.cond(through) > 1.0 / np.finfo(np.float64).eps:
            return None
        return other if self.strain(other, R @ np.linalg.inv(through)) * times < strain else None

    def best(self, q: Array) -> int:
        """The number of the set whose dependent columns of Φ_q are as far from singular as pivoting makes them."""
        system = self.first.system
        J = system.constraints.jacobian(q) * self.sizes
        length = np.linalg.norm(J, axis=1)
        J = J / np.where(length > 0.0, length, 1.0)[:, None]
        _, pivots = cast(tuple[Array, NDArray[np.intp]], qr(J, mode="r", pivoting=True))
        names = tuple(system.coordinates[k] for k in np.sort(pivots[len(J) :]))
        for number, model in enumerate(self.known):
            if set(model.names) == set(names):
                return number
        self.known.append(replace(self.first, names=names))
        return len(self.known) - 1

    def change(self, at: Instant, to: int) -> Array:
        """d(z', ż')/d(z, ż), (2f, 2f), at an instant of the set in use."""
        z, f = self.known[to].z, self.first.f
        T = np.zeros((2 * f, 2 * f))
        T[:f, :f] = T[f:, f:] = at.R[z]
        T[f:, :f] = at.qd_z[z]
        return T
