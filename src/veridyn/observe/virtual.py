"""Virtual sensors: quantities that nobody measures, from the estimated state, each with its band.

    y = g(q, q̇, q̈, λ, u),    σ² = (∂g/∂x) P (∂g/∂x)ᵀ

What a real sensor on a machine reads, a virtual one does too (:class:`~veridyn.model.sensor.Sensor`); beyond that, accelerations of points,
forces in springs and dampers, and reactions of joints. The formulation of the machine computes g; the band is what the filter's covariance
implies, and as reliable as the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.formulation import Instant
from veridyn.model.place import PointRef
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Track

Kind = Literal[
    "coordinate",
    "rate",
    "position",
    "velocity",
    "distance",
    "acceleration",
    "gyroscope",
    "accelerometer",
    "spring",
    "reaction",
    "force",
]


@dataclass(frozen=True)
class Virtual:
    """A quantity by name: `kind` as of a sensor, or acceleration (of a point, in the ground's axes), spring, or reaction.

    `on`: what it is on. For "spring", the name of a spring or damper: its tension or torque. For "reaction", a joint by its name: what its
    end a does to its end b, force and, where the joint carries one, moment about b's place, in the ground's axes; of a distance the force
    along it (positive: it pulls), of a rack that on its distance. Or (body, point) where bodies share the point, or where it is fixed: what
    the others do to that body there; with shared vectors or further shared points there is a moment about the point. On a tree, a joint by
    the body it carries, by its coordinate, or a cut joint by its name, and "force" for the force on a coordinate
    (:class:`~veridyn.mechanics.tree.formulation.TreeQuantity`).
    """

    name: str
    kind: Kind
    on: PointRef | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reading:
    """Values (N, k) of a virtual sensor with standard deviations (N, k), by the names of its components, each with its unit."""

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    t: Array
    values: Array
    sigma: Array

    def band(self, deviations: float = 1.96) -> tuple[Array, Array]:
        """The interval of so many standard deviations, (N, k) each."""
        return self.values - deviations * self.sigma, self.values + deviations * self.sigma


def placed_quantities(wanted: Sequence[Virtual | str]) -> list[Virtual]:
    """Quantities of a machine of bodies: each says what it is on, a name alone does not."""
    for one in wanted:
        if isinstance(one, str):
            expected = "Virtual(name, kind, on)"
            raise ModelError(
                "a name does not say what is wanted.", where="virtual sensor", expected=expected, found=repr(one)
            )
    return [one for one in wanted if isinstance(one, Virtual)]


def virtual(system: MachineSystem, track: Track, wanted: Sequence[Virtual], inputs: Array) -> dict[str, Reading]:
    """Each of the quantities along a track; `inputs` (N, p) are those of the measurements."""
    quantities = {w.name: quantity_of(system, w) for w in wanted}
    values: dict[str, list[Array]] = {name: [] for name in quantities}
    sigmas: dict[str, list[Array]] = {name: [] for name in quantities}
    for x, P, u in zip(track.x, track.P, inputs, strict=True):
        at = system.instant(x, u)
        for name, quantity in quantities.items():
            y, G = quantity.at(x, at, u)
            values[name].append(y)
            sigmas[name].append(np.sqrt(np.maximum(((G @ P) * G).sum(axis=1), 0.0)))
    return {
        name: Reading(name, q.components, q.units, track.t, np.array(values[name]), np.array(sigmas[name]))
        for name, q in quantities.items()
    }


def quantity_of(system: MachineSystem, wanted: Virtual) -> VirtualQuantity:
    """A virtual sensor on a machine of any formulation, made ready."""
    return VirtualQuantity(system, wanted)


class VirtualQuantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state."""

    def __init__(self, system: MachineSystem, wanted: Virtual) -> None:
        self.system = system
        self._made = system.model.form.quantity(system.model, wanted.name, wanted.kind, wanted.on)

    @property
    def components(self) -> tuple[str, ...]:
        return self._made.components

    @property
    def units(self) -> tuple[str, ...]:
        return self._made.units

    def at(self, x: Array, at: Instant, inputs: Array) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state, with the known loads `inputs` that the instant was made with."""
        system = self.system
        q, qd = system.posed_at(x, at)
        s = self._made.at(q, qd, system.split(x)[2], at, system.acting(inputs))
        G = system.chained(at, s.by_q, s.by_qd, s.by_qdd, s.by_lam)
        f = system.f
        G[:, 2 * f : 2 * f + s.by_u.shape[1]] += s.by_u
        return s.y, G
