"""What acts on a machine in a compiled run besides forces and signals: prescribed coordinates, roads, wrenches, and loads at places.

Functions of Python are called at each stage for what they say, prescribed coordinates and loads once for each time. The rest is machine
code: the plane that touches the road below each wheel, and the generalised forces Q = B u of loads. A prescribed coordinate is where it is
given, and as fast, at every stage and after every step; the force that it needs is found afterwards. The code is part of that of
:mod:`veridyn.mechanics.system.run_bound`, and works on the record of :mod:`veridyn.mechanics.system.run_record`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.compiled import core
from veridyn.mechanics.ground.road import road_at
from veridyn.mechanics.system import run_record as k
from veridyn.mechanics.system.run_record import (
    COUNT,
    FREE,
    GIVEN,
    LED,
    LED_AT,
    LED_MOTION,
    PLACED,
    PLACES,
    PLACES_CALL,
    PUSHED,
    PUSHED_CALL,
    ROAD,
    ROAD_AT,
    ROOT_WRENCH,
    WHEELS,
    WRENCHES,
)
from veridyn.mechanics.tree.dynamics.engine import compiled
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.loops.assembly import units
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies
from veridyn.mechanics.tree.steps.record import TreeRecord, call_kernel, connect, view
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Load, components

Numbers = NDArray[np.int64]
Acting = Callable[[float, Array, Array], None]


@core
def lead(I: Numbers, W: Array, y: int) -> None:
    """Prescribed coordinates and rates of the state W[y …], and what kernels read of them, as they were given last."""
    n, led, given, motion = I[COUNT], I[LED], I[GIVEN], I[LED_MOTION]
    for i in range(led):
        at = I[I[LED_AT] + i]
        W[given + at] = W[y + 7 * I[FREE] + at] = W[motion + i]
        W[given + n + at] = W[y + 13 * I[FREE] + n + at] = W[motion + led + i]
        W[given + 3 * n + at] = W[motion + 2 * led + i]


@core
def read_road(I: Numbers, W: Array) -> None:
    """The signals that tyres read of the road: height at the ground's origin and slopes of the plane below each wheel."""
    signals, road = I[GIVEN] + 4 * I[COUNT], view(W, I[ROAD], I[ROAD + 2])
    call_kernel(I, I[PLACES_CALL])
    for i in range(I[WHEELS]):
        x, y, read = W[I[PLACES] + 2 * i], W[I[PLACES] + 2 * i + 1], I[ROAD_AT] + 3 * i
        z, along, across = road_at(road, float(x), float(y))
        W[signals + I[read]] = z - (along * x + across * y)
        W[signals + I[read + 1]] = along
        W[signals + I[read + 2]] = across


@core
def push(I: Numbers, W: Array) -> None:
    """Add what loads at places do to the forces that kernels read, and to the wrench on the root."""
    n, first, root = I[COUNT], 6 * I[FREE], I[ROOT_WRENCH]
    call_kernel(I, I[PUSHED_CALL])
    for j in range(first):
        W[root + j] = W[I[WRENCHES] + j] + W[I[PUSHED] + j]
    for j in range(n):
        W[I[GIVEN] + 2 * n + j] += W[I[PUSHED] + first + j]


@core
def act(I: Numbers, W: Array) -> None:
    """What kernels read of the road and of loads at places, in the state that they read."""
    if I[WHEELS]:
        read_road(I, W)
    if I[PLACED]:
        push(I, W)


class OtherBodies(Exception):
    """A function of Python gave wrenches on bodies that the compiled run has none for."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)


@dataclass(frozen=True, eq=False)
class Outside:
    """What a compiled run has room for: `bodies` on which wrenches act, `loads` at places, and a packed `road`, which may be empty."""

    bodies: tuple[int, ...] = ()
    loads: tuple[Load, ...] = ()
    road: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, acting: ActingInputs, wrenches: Iterable[str]) -> Outside:
        """That of inputs which give wrenches on these bodies; the root of a free base has the forces of loads at places too."""
        tree, road = acting.tree, acting.inputs.road
        bodies = set(loaded_bodies(tree, wrenches)) | ({0} if acting.placed and acting.free else set())
        packed = np.empty(0) if road is None or not tree.wheels else road.packed
        return cls(tuple(sorted(bodies)), acting.placed, packed)

    def header(self, tree: Tree) -> list[int]:
        """LED, WHEELS and PLACED."""
        return [len(tree.held), len(tree.wheels) if len(self.road) else 0, len(tree.rows) if self.loads else 0]

    def lengths(self, tree: Tree) -> dict[str, int]:
        """Of the sections."""
        led, wheels, rows = self.header(tree)
        return {
            "LED_MOTION": 3 * led, "FREED": tree.n, "ROAD": len(self.road), "PLACES": 2 * wheels,
            "WRENCHES": 6 * len(self.bodies), "LOADS": sum(components(load) for load in self.loads), "PUSHED": rows, "ROOT_WRENCH": 6,
        }  # fmt: skip

    def lists(self, tree: Tree) -> list[list[int]]:
        """LED_AT, ROAD_AT, and room for the calls."""
        read = [tree.signals.index(name) for name in tree.road_signals] if len(self.road) else []
        return [list(tree.held), read, [0] * 6, [0] * 6]

    def places(self, tree: Tree, at: Mapping[str, int]) -> dict[str, int]:
        """Where kernels find wrenches and loads."""
        found = {f"c.{i}": at["LOADS"] + i for i in range(sum(components(load) for load in self.loads))}
        for i, j in enumerate(self.bodies):
            start = at["ROOT_WRENCH"] if j == 0 and self.loads and tree.base == "free" else at["WRENCHES"] + 6 * i
            found |= {f"{kind}.{j}.{axis}": start + 3 * (kind == "m") + axis for kind in "fm" for axis in range(3)}
        return found

    def connect(self, tree: Tree, record: TreeRecord, at: Mapping[str, int], place: Mapping[str, int]) -> None:
        """Let the kernels of wheels' places and of loads read and write the record, and put there what stays."""
        W, I = record.W, record.I
        for wanted, request, call, section, width in (
            (len(self.road), Request("wheel_places"), PLACES_CALL, "PLACES", 2),
            (len(self.loads), Request("pushed"), PUSHED_CALL, "PUSHED", 1),
        ):
            if wanted:
                made = compiled(tree, request, single=True)
                assert not made.kernel.parameters  # geometry alone
                inputs = [place[name] for name in made.kernel.inputs]
                outputs = [at[section] + width * label[0] + sum(label[1:]) for label in made.labels]
                connect(record, int(I[call]), made.kernel, 0, inputs, outputs)
        freed = units(tree).copy()
        freed[list(tree.held)] = 0.0
        W[at["FREED"] : at["FREED"] + tree.n] = freed
        W[at["ROAD"] : at["ROAD"] + len(self.road)] = self.road
        own = [np.atleast_1d(np.asarray(load.value, dtype=np.float64)) for load in self.loads]
        W[at["LOADS"] : at["LOADS"] + sum(x.size for x in own)] = np.concatenate([np.empty(0), *own])


def called_outside(outside: Outside, acting: ActingInputs, record: TreeRecord, at: Mapping[str, int]) -> Acting | None:
    """What functions of Python say at a time and a state, into the record; q and q̇ become as prescribed. None where nothing is asked."""
    given, tree, W, I = acting.inputs, acting.tree, record.W, record.I
    held, moves = list(tree.held), bool(outside.loads) and given.loads is not None
    pushes = given.wrenches is not None or given.contacts is not None
    if not (held or moves or pushes):
        return None
    lengths = outside.lengths(tree)
    led, wrenches, loads = (W[at[name] : at[name] + lengths[name]] for name in ("LED_MOTION", "WRENCHES", "LOADS"))
    led, wrenches = led.reshape(3, -1), wrenches.reshape(-1, 6)
    number = {tree.bodies[j].name: i for i, j in enumerate(outside.bodies)}
    size = 2 * tree.n + 13 * acting.free
    last = math.nan

    def say(time: float, q: Array, qd: Array) -> None:
        nonlocal last
        if time != last:
            if held:
                led[:] = acting.prescribed(time)[:, held]
            if moves:
                values = acting.values_of_loads(time)
                loads[:] = np.concatenate([values[load.name] for load in outside.loads])
            last = time
        if held:
            q[held], qd[held] = led[0], led[1]
        if pushes:
            y = W[I[k.FROM_STATE] : I[k.FROM_STATE] + size]
            found = wrenches_of(acting, time, y, q, qd)
            if not found.keys() <= number.keys():
                raise OtherBodies(found)
            wrenches[:] = 0.0
            for body, six in found.items():
                wrenches[number[body]] = six
                if not math.isfinite(sum(six.tolist())):
                    what = f"the wrench on '{body}' is no number at {time:.6g} s."
                    raise SimulationError(what, where=tree.name, expected="finite numbers", found=f"{six}")

    return say


def wrenches_of(acting: ActingInputs, time: float, y: Array, q: Array, qd: Array) -> dict[str, Array]:
    """Wrenches and contacts together, by body, at a time and a state y without elements' own states."""
    given = acting.inputs
    found = {} if given.wrenches is None else dict(given.wrenches(time, q, qd))
    found = {body: np.asarray(six, dtype=np.float64) for body, six in found.items()}
    if given.contacts is not None:
        for body, six in given.contacts(time, acting.base_state(y), q, qd).items():
            found[body] = found.get(body, 0.0) + np.asarray(six, dtype=np.float64)
    return found
