"""Machines with loops, on a free base, or on which more acts than forces and signals, in a compiled run: their accelerations, and the way
back to closed loops after each step.

    M a + Φ_qᵀ λ = Γ − h,    Φ_q a = −bias − 2 ω Φ̇ − ω² Φ

A state of a free base is (position, quaternion, q, velocity in the ground's frame, ω in its own, q̇, z), as in
:mod:`veridyn.mechanics.tree.dynamics.instant`; the equations are those of :mod:`veridyn.mechanics.tree.loops.dynamics`, by the factors
of the bordered matrix over the equations that count. A pivot that is nearly zero ends the run: whether the position is singular, or other
equations count there, is decided by singular values. The code is called at its address, so that runs of open machines are compiled
without it.

What acts besides forces and signals are prescribed coordinates, roads, wrenches, and loads at places. Functions of Python are called at
each stage for what they say, prescribed coordinates and loads once for each time. The rest is machine code: the plane that touches the road
below each wheel, and the generalised forces Q = B u of loads. A prescribed coordinate is where it is given, and as fast, at every stage and
after every step; the force that it needs is found afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics import linear
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.ground.road import road_at
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.run_stages import copy, law_forces
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, compiled
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, units
from veridyn.mechanics.tree.loops.dynamics import MAX_NEWTON_STEPS, REGULAR_RCOND
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies
from veridyn.mechanics.tree.steps.record import TreeRecord, as_pointer, call_kernel, connect, view
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Load

Numbers = NDArray[np.int64]
Acting = Callable[[float, Array, Array], None]


@core
def lead(I: Numbers, W: Array, y: int) -> None:
    """Prescribed coordinates and rates of the state W[y …], and what kernels read of them, as they were given last."""
    n, led, given, motion = I[record.COUNT], I[record.LED], I[record.GIVEN], I[record.LED_MOTION]
    for i in range(led):
        at = I[I[record.LED_AT] + i]
        W[given + at] = W[y + 7 * I[record.FREE] + at] = W[motion + i]
        W[given + n + at] = W[y + 13 * I[record.FREE] + n + at] = W[motion + led + i]
        W[given + 3 * n + at] = W[motion + 2 * led + i]


@core
def read_road(I: Numbers, W: Array) -> None:
    """The signals that tyres read of the road: height at the ground's origin and slopes of the plane below each wheel."""
    signals, road = I[record.GIVEN] + 4 * I[record.COUNT], view(W, I[record.ROAD], I[record.ROAD + 2])
    call_kernel(I, I[record.PLACES_CALL])
    for i in range(I[record.WHEELS]):
        x, y, read = W[I[record.PLACES] + 2 * i], W[I[record.PLACES] + 2 * i + 1], I[record.ROAD_AT] + 3 * i
        z, along, across = road_at(road, float(x), float(y))
        W[signals + I[read]] = z - (along * x + across * y)
        W[signals + I[read + 1]] = along
        W[signals + I[read + 2]] = across


@core
def push(I: Numbers, W: Array) -> None:
    """Add what loads at places do to the forces that kernels read, and to the wrench on the root."""
    n, first, root = I[record.COUNT], 6 * I[record.FREE], I[record.ROOT_WRENCH]
    call_kernel(I, I[record.PUSHED_CALL])
    for j in range(first):
        W[root + j] = W[I[record.WRENCHES] + j] + W[I[record.PUSHED] + j]
    for j in range(n):
        W[I[record.GIVEN] + 2 * n + j] += W[I[record.PUSHED] + first + j]


@core
def act(I: Numbers, W: Array) -> None:
    """What kernels read of the road and of loads at places, in the state that they read."""
    if I[record.WHEELS]:
        read_road(I, W)
    if I[record.PLACED]:
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
            "WRENCHES": 6 * len(self.bodies), "LOADS": sum(load.components for load in self.loads), "PUSHED": rows, "ROOT_WRENCH": 6,
        }  # fmt: skip

    def lists(self, tree: Tree) -> list[list[int]]:
        """LED_AT, ROAD_AT, and room for the calls."""
        read = [tree.signals.index(name) for name in tree.road_signals] if len(self.road) else []
        return [list(tree.held), read, [0] * 6, [0] * 6]

    def places(self, tree: Tree, at: Mapping[str, int]) -> dict[str, int]:
        """Where kernels find wrenches and loads."""
        found = {f"c.{i}": at["LOADS"] + i for i in range(sum(load.components for load in self.loads))}
        for i, j in enumerate(self.bodies):
            start = at["ROOT_WRENCH"] if j == 0 and self.loads and tree.base == "free" else at["WRENCHES"] + 6 * i
            found |= {f"{kind}.{j}.{axis}": start + 3 * (kind == "m") + axis for kind in "fm" for axis in range(3)}
        return found

    def connect(self, tree: Tree, run: TreeRecord, at: Mapping[str, int], place: Mapping[str, int]) -> None:
        """Let the kernels of wheels' places and of loads read and write the record, and put there what stays."""
        W, I = run.W, run.I
        for wanted, request, call, section, width in (
            (len(self.road), Request("wheel_places"), record.PLACES_CALL, "PLACES", 2),
            (len(self.loads), Request("pushed"), record.PUSHED_CALL, "PUSHED", 1),
        ):
            if wanted:
                made = compiled(tree, request, single=True)
                assert not made.kernel.parameters  # geometry alone
                inputs = [place[name] for name in made.kernel.inputs]
                outputs = [at[section] + width * label[0] + sum(label[1:]) for label in made.labels]
                connect(run, int(I[call]), made.kernel, 0, inputs, outputs)
        freed = units(tree).copy()
        freed[list(tree.held)] = 0.0
        W[at["FREED"] : at["FREED"] + tree.n] = freed
        W[at["ROAD"] : at["ROAD"] + len(self.road)] = self.road
        own = [np.atleast_1d(np.asarray(load.value, dtype=np.float64)) for load in self.loads]
        W[at["LOADS"] : at["LOADS"] + sum(x.size for x in own)] = np.concatenate([np.empty(0), *own])


def called_outside(outside: Outside, acting: ActingInputs, run: TreeRecord, at: Mapping[str, int]) -> Acting | None:
    """What functions of Python say at a time and a state, into the record; q and q̇ become as prescribed. None where nothing is asked."""
    given, tree, W, I = acting.inputs, acting.tree, run.W, run.I
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
            y = W[I[record.FROM_STATE] : I[record.FROM_STATE] + size]
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


Numbers = NDArray[np.int64]
# in BASE, behind position, quaternion, velocity and ω in its own axes: 0, gravity in the ground's, and the attitude by rows
ZERO, GRAVITY, ATTITUDE, BASE_SIZE = 13, 14, 17, 26


@core
def is_regular(A: Array) -> bool:
    """Whether no pivot of the factors A is nearly zero against the largest."""
    least, most = np.inf, 0.0
    for i in range(len(A)):
        least, most = min(least, abs(A[i, i])), max(most, abs(A[i, i]))
    return bool(least > REGULAR_RCOND * most)


@core
def set_base(I: Numbers, W: Array, y: int) -> None:
    """Pose and motion of a free base where kernels read them, from the state W[y …]."""
    n, base, R = I[record.COUNT], view(W, I[record.BASE], ATTITUDE), view(W, I[record.BASE] + ATTITUDE, 9)
    w, x, u, z = W[y + 3], W[y + 4], W[y + 5], W[y + 6]
    s = 2.0 / (w * w + x * x + u * u + z * z)
    R[0], R[1], R[2] = 1.0 - s * (u * u + z * z), s * (x * u - w * z), s * (x * z + w * u)
    R[3], R[4], R[5] = s * (x * u + w * z), 1.0 - s * (x * x + z * z), s * (u * z - w * x)
    R[6], R[7], R[8] = s * (x * z - w * u), s * (u * z + w * x), 1.0 - s * (x * x + u * u)
    v = y + 7 + n
    for j in range(7):
        base[j] = W[y + j]
    for j in range(3):
        base[7 + j] = R[j] * W[v] + R[3 + j] * W[v + 1] + R[6 + j] * W[v + 2]
        base[10 + j] = W[v + 3 + j]


@core
def loop_accelerations(I: Numbers, W: Array) -> bool:
    """ACC of the state that kernels read under the forces there; False where a pivot is nearly zero."""
    n, counted, first = I[record.COUNT], I[record.COUNTED], 6 * I[record.FREE]
    rows, m, omega, given = n + first, counted + I[record.LED], W[I[record.CLOSING]], I[record.GIVEN]
    call_kernel(I, record.MASS_KERNEL)
    call_kernel(I, record.INVERSE_KERNEL)
    call_kernel(I, record.LOOPS_KERNEL)
    size = rows + m
    K = W[I[record.BORDER] : I[record.BORDER] + size * size].reshape(size, size)
    right = view(W, I[record.BORDER_RIGHT], size)
    unit, mass, h = (
        view(W, I[record.UNIT], rows),
        view(W, I[record.MASS], rows * rows),
        view(W, I[record.INVERSE], rows),
    )
    scale = 0.0
    for i in range(rows):
        scale += mass[i * rows + i] / rows
    for i in range(rows):
        for j in range(rows):
            K[i, j] = mass[i * rows + j] * unit[i] * unit[j] / scale
        acting = W[given + 2 * n + i - first] if i >= first else 0.0
        right[i] = (acting - h[i]) * unit[i] / scale
    for e in range(counted):
        loop = view(W, I[record.LOOPS] + I[I[record.LOOP_ROW] + e] * (n + 2), n + 2)
        opens = 0.0
        for j in range(first):
            K[rows + e, j] = K[j, rows + e] = 0.0
        for j in range(n):
            K[rows + e, first + j] = K[first + j, rows + e] = loop[j] * unit[first + j]
            opens += loop[j] * W[given + n + j]
        for k in range(m):
            K[rows + e, rows + k] = 0.0
        right[rows + e] = -loop[n + 1] - 2.0 * omega * opens - omega * omega * loop[n]
    for i in range(I[record.LED]):
        e, at = rows + counted + i, first + I[I[record.LED_AT] + i]
        for j in range(size):
            K[e, j] = K[j, e] = 0.0
        K[e, at] = K[at, e] = 1.0
        right[e] = W[I[record.LED_MOTION] + 2 * I[record.LED] + i] / unit[at]
    pivots = I[I[record.PIVOT_BORDER] : I[record.PIVOT_BORDER] + size]
    if not linear.factor(K, pivots) or not is_regular(K):
        return False
    linear.solve(K, pivots, W[I[record.BORDER_RIGHT] : I[record.BORDER_RIGHT] + size])
    for i in range(rows):
        W[I[record.ACC] + i] = right[i] * unit[i]
    return True


@core
def bound_rate(I: Numbers, W: Array, y: int, slope: int) -> int:
    """The rate of the state that begins at W[y], under FORCE or the law and PUSH, into W[slope …]; accelerations stand in ACC."""
    n, free, own, given = I[record.COUNT], I[record.FREE], I[record.STATES], I[record.GIVEN]
    at, first = 7 * free, 6 * free
    q, v = y + at, y + at + n + first
    copy(W, q, n, given)
    copy(W, v, n, given + n)
    if own:
        copy(W, v + n, own, given + 4 * n + I[record.SIGNALS] - own)
    if free:
        set_base(I, W, y)
    if law_forces(I, W) != record.DONE:
        return record.LAW_FAILED
    lead(I, W, y)
    for j in range(n):
        W[given + 2 * n + j] = W[I[record.FORCE] + j] + W[I[record.PUSH] + j]
        if not (abs(W[q + j]) < LARGEST_ANGLE_RAD and abs(W[v + j]) < np.inf):
            return record.ESCAPED
    act(I, W)
    if I[record.EQUATIONS]:
        if not loop_accelerations(I, W):
            return record.SINGULAR
    else:
        call_kernel(I, record.FORWARD_KERNEL)
        if not W[I[record.ACC] + n + first] < W[I[record.CLOCK] + record.NEAREST]:
            return record.SINGULAR
    for j in range(n + first):
        if not abs(W[I[record.ACC] + j]) < np.inf:
            return record.ESCAPED
    copy(W, v, n, slope + at)
    copy(W, I[record.ACC] + first, n, slope + at + n + first)
    if free:
        w, base, R = view(W, y + 3, 4), view(W, I[record.BASE], ATTITUDE), view(W, I[record.BASE] + ATTITUDE, 9)
        a, b, c = base[10], base[11], base[12]
        W[slope + 3] = 0.5 * (-w[1] * a - w[2] * b - w[3] * c)
        W[slope + 4] = 0.5 * (w[0] * a + w[2] * c - w[3] * b)
        W[slope + 5] = 0.5 * (w[0] * b + w[3] * a - w[1] * c)
        W[slope + 6] = 0.5 * (w[0] * c + w[1] * b - w[2] * a)
        for j in range(3):
            W[slope + j] = W[y + 7 + n + j]
            turned = (
                R[3 * j] * W[I[record.ACC]] + R[3 * j + 1] * W[I[record.ACC] + 1] + R[3 * j + 2] * W[I[record.ACC] + 2]
            )
            W[slope + 7 + n + j] = turned + base[GRAVITY + j]
            W[slope + 10 + n + j] = W[I[record.ACC] + 3 + j]
    if own:
        call_kernel(I, record.RATES_KERNEL)
        copy(W, I[record.RATES], own, slope + at + n + first + n)
    return record.DONE


@core
def close_loops(I: Numbers, W: Array, y: int) -> int:
    """Move the state W[y …] to the nearest closed one, steps of least norm in the coordinates' units."""
    n, m, given = I[record.COUNT], I[record.COUNTED], I[record.GIVEN]
    q, v = y + 7 * I[record.FREE], y + 13 * I[record.FREE] + n
    unit = view(W, I[record.FREED], n)
    square, right = (
        W[I[record.BORDER] : I[record.BORDER] + m * m].reshape(m, m),
        W[I[record.BORDER_RIGHT] : I[record.BORDER_RIGHT] + m],
    )
    pivots = I[I[record.PIVOT_BORDER] : I[record.PIVOT_BORDER] + m]
    for _ in range(MAX_NEWTON_STEPS):
        copy(W, q, n, given)
        copy(W, v, n, given + n)
        for j in range(n):
            if not (abs(W[q + j]) < LARGEST_ANGLE_RAD and abs(W[v + j]) < np.inf):
                return record.ESCAPED
        call_kernel(I, record.LOOPS_KERNEL)
        widest = 0.0
        for e in range(I[record.EQUATIONS]):
            widest = max(widest, abs(W[I[record.LOOPS] + e * (n + 2) + n]))
        closed = widest <= 1e-3 * CLOSED_TOLERANCE_M
        for i in range(m):
            of = view(W, I[record.LOOPS] + I[I[record.LOOP_ROW] + i] * (n + 2), n + 2)
            right[i] = of[n]
            if closed:
                right[i] = 0.0
                for j in range(n):
                    right[i] += of[j] * W[v + j]
            for k in range(m):
                other = view(W, I[record.LOOPS] + I[I[record.LOOP_ROW] + k] * (n + 2), n + 2)
                total = 0.0
                for j in range(n):
                    total += of[j] * other[j] * unit[j] * unit[j]
                square[i, k] = total
        if not linear.factor(square, pivots) or not is_regular(square):
            return record.SINGULAR
        linear.solve(square, pivots, right)
        to = v if closed else q
        for i in range(m):
            of = view(W, I[record.LOOPS] + I[I[record.LOOP_ROW] + i] * (n + 2), n + 2)
            for j in range(n):
                W[to + j] -= unit[j] * unit[j] * of[j] * right[i]
        if closed:
            return record.DONE
    return record.SINGULAR


@kept
def bound_part(i_at: int, i_size: int, w_at: int, w_size: int, what: int, instant: float, h: float, unused: int) -> int:
    """ACCELERATE: rates of the state FROM_STATE. CLOSE: Y as prescribed and with closed loops. I and W by address and length."""
    I = carray(as_pointer(i_at), (i_size,), np.int64)
    W = carray(as_pointer(w_at), (w_size,), np.float64)
    if what == record.ACCELERATE:
        return bound_rate(I, W, I[record.FROM_STATE], I[record.TO_SLOPE])
    lead(I, W, I[record.Y])
    return close_loops(I, W, I[record.Y]) if I[record.EQUATIONS] else record.DONE


@cache
def bound_address() -> int:
    """Where the machine code of :func:`bound_part` stands in this process; compiled or loaded now."""
    return address_of(bound_part, record.PART)
