"""The road below the wheels of a tree, looked up in machine code where its model has them.

    z = road + road_x x + road_y y         the plane that touches the road below the centre of a wheel

Tyres read its three numbers as signals. A march that simulates, and a filter at every step of a log, look them up at the state in hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Bound, Matrix, Numbers, Vector, core, kept, opened
from veridyn.mechanics.ground.road import Road, road_at
from veridyn.mechanics.tree.dynamics.engine import compiled, uniform_values
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.steps.model import TreeModel
from veridyn.mechanics.tree.steps.record import COUNT_Q, X, addresses_in, call_addresses, call_kernel


class Ground(NamedTuple):
    """A road and the wheels of one tree; no slots where there is neither."""

    road: Vector  # packed
    places: Numbers  # (6,) addresses of the kernel of the wheels' centres
    centres: Matrix  # (wheels, 2) that it writes
    slots: Numbers  # (3 wheels,) where the three numbers of each wheel stand among what kernels read from outside
    planes: Vector  # (3 wheels,) what was found last


@core
def find_ground(I: NDArray[np.int64], W: Array, g: Ground, x: Array) -> None:
    """The planes below the wheels of the configuration that x begins with."""
    for i in range(I[COUNT_Q]):
        W[I[X] + i] = x[i]
    call_kernel(g.places, 0)
    for w in range(len(g.centres)):
        z, along, across = road_at(g.road, g.centres[w, 0], g.centres[w, 1])
        g.planes[3 * w] = z - along * g.centres[w, 0] - across * g.centres[w, 1]
        g.planes[3 * w + 1] = along
        g.planes[3 * w + 2] = across


@kept
def _found(I: NDArray[np.int64], W: Array, address: NDArray[np.int64], x: Array) -> None:
    find_ground(I, W, opened(address, Ground), x)


class GroundBelow:
    """A road below the wheels of a tree; without a road, or without tyres, nothing. It works in the memory of the model.

    `names`: the inputs that it gives, three for each wheel.
    """

    def __init__(self, model: TreeModel, road: Road | None) -> None:
        tree, kernels, self._record = model.tree, model.kernels, model.kernels.record
        wheels = 0 if road is None else len(tree.wheels)
        self.names = tuple(f"signal.{name}" for name in tree.road_signals) if wheels else ()
        slots = np.array([kernels.outside.index(name) for name in self.names], dtype=np.int64)
        centres, addresses = np.zeros((wheels, 2)), [0] * 6
        self._held: list[object] = []
        if wheels:
            made, place = compiled(tree, Request("wheel_places"), single=True), kernels.places(tree)
            inward = addresses_in(self._record.W, map(place.of, made.kernel.inputs))
            outward = addresses_in(centres, (2 * w + c for w, c in made.labels))
            values = np.append(uniform_values(tree, model.values, made.kernel.parameters), 0.0)
            addresses, held = call_addresses(made.kernel, inward, outward, values.ctypes.data)
            self._held = [*held, values]
        packed = np.zeros(0) if road is None else road.packed
        self.ground = Ground(packed, np.array(addresses, dtype=np.int64), centres, slots, np.zeros(3 * wheels))
        self.bound = Bound(self.ground)

    def at(self, x: Array) -> Array:
        """The inputs `names` in the configuration that x begins with: place, attitude and joints."""
        if self.names:
            _found(self._record.I, self._record.W, self.bound.address, x)
        return self.ground.planes
