"""A mechanism in natural coordinates over sets of independent coordinates that take over from each other, as it is run.

A body that turns round in space has no single set. Each set z of coordinates is a chart of the poses: good where dq = R dz stays of the
size of dz, useless where R grows without bound. The set in use is left when another does much better; errors of z and ż go with it by

    dz' = R[z'] dz,    dż' = (∂q̇/∂z)[z'] dz + R[z'] dż

What is reported are always the coordinates of the first set. A change of state solves the position problem, then the velocity problem, in
the set that the state is of. Energies along a motion, and by how much constraints are open, are what a state is checked by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.formulation import Instant, ModelStep
from veridyn.mechanics.natural.channels import Readout, readout
from veridyn.mechanics.natural.equations.dynamics import energies
from veridyn.mechanics.natural.equations.freedoms import Reduced
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.steps.minimal import Minimal
from veridyn.model.parameter_set import Constant
from veridyn.model.parameters import Uncertainty
from veridyn.model.sensor import Sensor

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


@dataclass(frozen=True, eq=False, kw_only=True)
class InPoints:
    """The part of :class:`~veridyn.mechanics.formulation.MachineModel` that follows from the points and vectors of a `system`."""

    system: NaturalSystem

    @property
    def nq(self) -> int:
        """The length of a configuration."""
        return self.system.n

    @property
    def nv(self) -> int:
        """The length of a velocity."""
        return self.system.n

    def readout(self, sensors: Sequence[Sensor]) -> Readout:
        """What sensors read."""
        return readout(self.system, sensors)

    def energies(self, q: Array, qd: Array) -> Array:
        """Kinetic, gravity's and elastic energy (J) along a motion, (N, 3)."""
        return energies(self.system, q, qd)


class PointLoads(NamedTuple):
    """Constant and turning generalised forces (n,), (n, n+1) of the known loads, and the values of these."""

    constant: Array
    turning: Array
    values: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class NaturalModel(InPoints):
    """A mechanism over `charts`, a :class:`~veridyn.mechanics.formulation.MachineModel`; `one_set`: keep to the first set."""

    charts: Charts
    form: Any  # the formulation that prepared it, without redundant constraints
    one_set: bool = False
    inner: tuple[str, ...] = ()  # states of elements' own, of which points have none
    constants: tuple[Constant, ...] = ()  # that could vary

    @property
    def kernel(self) -> str:
        """The layout of its compiled tables."""
        return "points"

    @property
    def name(self) -> str:
        return self.system.mechanism.name

    @property
    def names(self) -> tuple[str, ...]:
        return self.charts.first.names

    @property
    def rate_names(self) -> tuple[str, ...]:
        return tuple(f"{name}_dot" for name in self.names)

    @property
    def unknown(self) -> tuple[str, ...]:
        return self.charts.first.unknown

    @property
    def varying(self) -> tuple[str, ...]:
        return self.charts.first.varying

    @property
    def inputs(self) -> tuple[str, ...]:
        """What may act from outside: numbers of loads."""
        return tuple(self.system.forces.places)

    @property
    def prescribed(self) -> tuple[str, ...]:
        return ()

    @property
    def uncertainty(self) -> Uncertainty | None:
        """Of the last of the parameters that vary, which are considered and not estimated."""
        known = self.system.parameters
        return None if known is None or not self.varying else known.uncertainty

    @property
    def left_out(self) -> tuple[str, ...]:
        """Constraints that follow from others, by name."""
        return self.system.left_out if isinstance(self.system, Reduced) else ()

    @property
    def f(self) -> int:
        """The number of degrees of freedom."""
        return self.charts.first.f

    @property
    def free(self) -> bool:
        """That no base is reported by angles: points are."""
        return False

    @property
    def placed(self) -> bool:
        """That no input places a coordinate."""
        return False

    @property
    def sizes(self) -> Array:
        """Typical sizes (n,) of the coordinates."""
        return self.charts.sizes

    @property
    def z(self) -> NDArray[np.int64]:
        """Numbers of the independent coordinates of the first set."""
        return self.charts.first.z

    @property
    def start_unknown(self) -> Array:
        """The unknown quantities at the start: forces are zero, parameters as the machine has them."""
        known = self.system.parameters
        values = np.zeros(0) if known is None or not self.varying else known.values
        return np.concatenate([np.zeros(len(self.unknown)), values])

    def unit_of(self, coordinate: str) -> str:
        """The unit of a coordinate by name."""
        return self.system.mechanism.unit_of(coordinate)

    def force_unit(self, name: str) -> str:
        """The unit of an unknown force or an input by name."""
        if name.startswith("wrench."):
            return "N" if name.rpartition(".")[2].startswith("f") else "N*m"
        return self.system.mechanism.force_unit(name)

    def varying_unit(self, name: str) -> str:
        """The unit of a parameter that varies."""
        known = self.system.parameters
        assert known is not None  # there are no varying parameters without
        return known.units[known.names.index(name)]

    def names_in(self, number: int) -> tuple[str, ...]:
        """The independent coordinates of a set."""
        return self.charts[number].names

    def keeping(self) -> NaturalModel:
        """The same model that keeps to its first set."""
        return replace(self, one_set=True)

    def loads(self, given: Mapping[str, ArrayLike] | None = None) -> PointLoads:
        """What the inputs by name do; those not given are as the mechanism has them."""
        return PointLoads(*self.charts.first.loads(given), self.system.forces.load_values(given))

    def instant(
        self, q: Array, qd: Array, u: Array, loads: PointLoads, derivative: bool = True, *, number: int = 0
    ) -> Instant:
        """Accelerations, multipliers and all derivatives at one state or many, over a set."""
        model = self.charts[number]
        return model.instant(q, q[..., model.z], qd[..., model.z], u, loads[:2], derivative)

    def posed(
        self, q: Array, qd: Array, u: Array, loads: PointLoads, *, number: int = 0, accelerates: bool = True
    ) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ that sensors read."""
        if not accelerates:
            return q, qd, np.zeros_like(qd)
        return q, qd, self.instant(q, qd, u, loads, derivative=False, number=number).qdd

    def advanced(
        self, q: Array, qd: Array, u: Array, h: float, loads: PointLoads, derivative: bool, since: float, number: int
    ) -> ModelStep:
        """The state a time h later; where a set does not carry the step another does, and a better one takes over after it."""
        into = None

        def go(number: int) -> Instant:
            z = self.charts[number].z
            return self.charts[number].step(q, q[..., z], qd[..., z], u, h, loads[:2], derivative)

        try:
            found = go(number)
        except SimulationError:
            other = number if self.one_set else self.charts.best(_first(q))
            if other == number:
                raise
            if derivative:
                into = self.charts.change(self.instant(q, qd, u, loads, number=number), other)
            number = other
            found = go(number)
        if not self.one_set:
            better = self.charts.better(number, _first(found.q), found.R.reshape(-1, *found.R.shape[-2:])[0])
            if better is not None:
                onto = self.charts.change(found, better) if derivative else None
                return ModelStep(found, u, number, better, into, onto)
        return ModelStep(found, u, number, number, into, settled=derivative)

    def changed(self, q: Array, qd: Array, u: Array, d: Array, number: int = 0) -> tuple[Array, Array]:
        """q and q̇ of a state changed by d (…, 2f + k): position, then velocity problem, under the loads that the mechanism has."""
        f, still, forces = self.f, self.loads(), u + d[..., 2 * self.f :]

        def go(number: int, d: Array) -> Instant:
            z = self.charts[number].z
            aim, speed = q[..., z] + d[..., :f], qd[..., z] + d[..., f : 2 * f]
            return self.charts[number].instant(q, aim, speed, forces, still[:2], derivative=False)

        try:
            at = go(number, d)
        except (
            DataError,
            SimulationError,
        ):  # beyond the range of a coordinate, which is no end of the way in another set
            other = number if self.one_set else self.charts.best(_first(q))
            if other == number:
                raise
            change = self.charts.change(self.instant(_first(q), _first(qd), _first(u), still, number=number), other)
            at = go(other, d[..., : 2 * f] @ change.T)
        return at.q, at.qd

    def local(self, q: Array, qd: Array, number: int = 0) -> Array:
        """(z, ż) (…, 2f) of a set."""
        z = self.charts[number].z
        return np.concatenate([q[..., z], qd[..., z]], axis=-1)

    def difference(self, qa: Array, qda: Array, qb: Array, qdb: Array, number: int = 0) -> Array:
        """The change (…, 2f) that leads from the state b to the state a."""
        return self.local(qa, qda, number) - self.local(qb, qdb, number)

    def reporting(self, q: Array) -> None:
        """That the coordinates of the first set are reported as they change."""
        return None

    def change(self, at: Instant, to: int) -> Array:
        """d(z', ż')/d(z, ż) (2f, 2f) from the set of an instant to another."""
        return self.charts.change(at, to)

    def accelerated(self, found: Instant, number: int = 0) -> Array:
        """∂z̈/∂(z, ż, u) of an instant over a set."""
        return found.qdd_x[self.charts[number].z]

    def constraint_errors(self, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
        """The largest error of all constraints, those left out too, of their rates and second rates."""
        whole = self.system.whole if isinstance(self.system, Reduced) else self.system
        return whole.constraints.errors(q, qd, qdd)


def _first(of_many: Array) -> Array:
    return of_many if of_many.ndim == 1 else of_many.reshape(-1, of_many.shape[-1])[0]
