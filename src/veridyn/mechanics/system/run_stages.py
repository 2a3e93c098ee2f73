"""One explicit Runge-Kutta step of a compiled run: rates of a state under inputs, dry friction and elements' own states.

    k_i = f(t + c_i h, y + h Σ_j A_ij k_j),     y⁺ = y + h Σ_i b_i k_i,     f = (q̇, M⁻¹(Γ − Cᵀ f_dry − b), ż)

The dry friction that holds has given shares s over a step, as :mod:`veridyn.mechanics.system.dry_friction` states; its limits depend on
the speed where the law falls with it. All functions work on the record of :mod:`veridyn.mechanics.system.run_record`.

The deflection of LuGre bristles follows the path of a step exactly. With the speed of a step held, the deflection z over a path Δc in a
time Δt has the closed form

    z⁺ = σ d + (z − σ d) e^(−|Δc|/d),     σ = sign Δc,     d = deflection · (1 + (ratio − 1) e^(−(Δc/(Δt speed))²))

which no length of a step makes unstable, where an explicit rule asks for |Δc| < 2d. Path and time are those that the rule gives to the
coordinates, for every stage and for the whole step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, merged
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.run_record import call_law, call_part
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.steps.record import Place, call_kernel, view
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.own_law import LOG_OFFSET

Numbers = NDArray[np.int64]
BRISTLE_CONSTANTS = ("deflection", "ratio", "speed")  # of the law, in the order of BRISTLE_CONSTANT and BRISTLE_COLUMN


@dataclass(frozen=True, eq=False)
class BristleElements:
    """LuGre elements of a tree that act on coordinates: number among elements, place among elements' own states, coefficients (n,)."""

    number: tuple[int, ...]
    state: tuple[int, ...]
    C: Array

    @classmethod
    def of(cls, tree: Tree) -> BristleElements:
        states = [s.name for s in tree.states]
        own = [k for k, e in enumerate(tree.elements) if e.kind == "lugre" and e.on]
        C = np.array([[tree.elements[k].on.get(c, 0.0) for c in tree.coordinates] for k in own])
        state = tuple(states.index(f"{tree.elements[k].parameter_name}.z") for k in own)
        return cls(tuple(own), state, C.reshape(len(own), tree.n))

    def constants(self, tree: Tree) -> Array:
        """(elements, 3): those of the law, of a tree of the same structure."""
        values = [tree.elements[k].constant(key) for k in self.number for key in BRISTLE_CONSTANTS]
        return np.array(values).reshape(-1, len(BRISTLE_CONSTANTS))


@core
def path_of(I: Numbers, W: Array, b: int, y: int, end: int) -> float:
    """Δc of bristles b from the state W[y …] to the state W[end …]."""
    total, n = 0.0, I[record.COUNT]
    for j in range(n):
        total += W[I[record.BRISTLE_C] + b * n + j] * (W[end + j] - W[y + j])
    return float(total)


@core
def falling_part(I: Numbers, W: Array, b: int, path: float, time: float) -> float:
    """e^(−(v/speed)²) of the speed of a path."""
    v = path / (time * W[I[record.BRISTLE_CONSTANT] + 3 * b + 2])
    return float(np.exp(-v * v))


@core
def follow_path(I: Numbers, W: Array, y: int, end: int, time: float) -> None:
    """Deflections of the state W[end …], `time` seconds behind W[y …], whose coordinates are known."""
    for b in range(I[record.BRISTLES]):
        place = I[I[record.BRISTLE_PLACE] + 2 * b]
        z, path = W[y + place], path_of(I, W, b, y, end)
        if path == 0.0:
            W[end + place] = z
            continue
        fall = falling_part(I, W, b, path, time)
        limit = W[I[record.BRISTLE_CONSTANT] + 3 * b] * (1.0 + (W[I[record.BRISTLE_CONSTANT] + 3 * b + 1] - 1.0) * fall)
        far = limit if path > 0.0 else -limit
        W[end + place] = far + (z - far) * np.exp(-abs(path) / limit)


@core
def differentiate_path(I: Numbers, W: Array, y: int, end: int, time: float, before: int, after: int) -> None:
    """Rows of the deflections in the sensitivities from W[after] on, those of the state W[end …], from W[before] on at W[y …]."""
    n = I[record.COUNT]
    for b in range(I[record.BRISTLES]):
        place, row = I[I[record.BRISTLE_PLACE] + 2 * b], I[I[record.BRISTLE_PLACE] + 2 * b + 1]
        block = I[I[record.BRISTLE_COLUMN] + 4 * b + 3]
        first, P = (
            I[I[record.COORDINATE_FROM] + block],
            I[I[record.COLUMN_FROM] + block + 1] - I[I[record.COLUMN_FROM] + block],
        )
        nb = I[I[record.COORDINATE_FROM] + block + 1] - first
        at = I[I[record.BLOCK_AT] + block]
        z, path = W[y + place], path_of(I, W, b, y, end)
        way = np.sign(path)
        constant = I[record.BRISTLE_CONSTANT] + 3 * b
        deflection, ratio, speed = W[constant], W[constant + 1], W[constant + 2]
        fall = falling_part(I, W, b, path, time) if path != 0.0 else 1.0
        limit = deflection * (1.0 + (ratio - 1.0) * fall)
        share = np.exp(-abs(path) / limit)
        by_limit = way * (1.0 - share) + (z - way * limit) * share * abs(path) / (limit * limit)
        slower = 2.0 * deflection * (ratio - 1.0) * fall / (speed * speed)  # ∂d/∂v is −slower v
        v = path / time if path != 0.0 else 0.0
        by_path = (1.0 - way * z / limit) * share - (by_limit * slower * v / time if path != 0.0 else 0.0)
        for p in range(P):
            moved = 0.0
            for a in range(nb):
                c = W[I[record.BRISTLE_C] + b * n + I[I[record.COORDINATE] + first + a]]
                if c != 0.0:
                    moved += c * (W[after + at + a * P + p] - W[before + at + a * P + p])
            W[after + at + row * P + p] = share * W[before + at + row * P + p] + by_path * moved
        for key in range(3):
            column = I[I[record.BRISTLE_COLUMN] + 4 * b + key]
            if column >= 0:
                by = (
                    1.0 + (ratio - 1.0) * fall
                    if key == 0
                    else deflection * fall
                    if key == 1
                    else slower * v * v / speed
                )
                W[after + at + row * P + column] += by_limit * by


Numbers = NDArray[np.int64]


@merged
def copy(W: Array, at: Place, count: Place, out: Place) -> None:
    """W[out …] = W[at …]."""
    x, y = view(W, at, count), view(W, out, count)
    for j in range(count):
        y[j] = x[j]


@merged
def add_to(W: Array, w: float | Array, at: Place, count: Place, out: Place) -> None:
    """W[out …] += w W[at …]."""
    x, y = view(W, at, count), view(W, out, count)
    for j in range(count):
        y[j] += w * x[j]


@merged
def interpolate(I: Numbers, W: Array, first: int, count: int, out: int) -> None:
    """Inputs from number `first` on at the instant: as at the sample before, or between it and the next one."""
    share = (
        0.0 if I[record.HOLDS] else min(W[I[record.CLOCK] + record.INSTANT] / W[I[record.CLOCK] + record.INTERVAL], 1.0)
    )
    if share == 0.0:
        copy(W, I[record.BEFORE] + first, count, out)
        return
    x, y = view(W, I[record.BEFORE] + first, count), view(W, I[record.AFTER] + first, count)
    z = view(W, out, count)
    for j in range(count):
        z[j] = (1.0 - share) * x[j] + share * y[j]


@merged
def set_instant(I: Numbers, W: Array, instant: float) -> None:
    """Forces and signals so many seconds after the sample before; joint controllers hold their forces from tick to tick."""
    n = I[record.COUNT]
    W[I[record.CLOCK] + record.INSTANT] = instant
    if I[record.SERVO] == 0:
        interpolate(I, W, 0, n, I[record.FORCE])
    if I[record.SIGNALS] > I[record.STATES]:
        interpolate(I, W, n, I[record.SIGNALS] - I[record.STATES], I[record.GIVEN] + 4 * n)


@core
def set_command(I: Numbers, W: Array, with_slopes: bool) -> None:
    """Feed-forward and commands of the joint controllers at the instant, and the commands' slopes, which sensitivities need."""
    n = I[record.COUNT]
    interpolate(I, W, 0, n, I[record.FEED])
    interpolate(I, W, n + I[record.SIGNALS] - I[record.STATES], 4 * n if with_slopes else 2 * n, I[record.WANTED])


@core
def law_forces(I: Numbers, W: Array) -> int:
    """FORCE by the control law, at the state that kernels read."""
    if I[record.LAW] == 0:
        return record.DONE
    clock = I[record.CLOCK]
    time = W[clock + record.START_TIME] + (W[clock + record.INTERVAL_TIME] + W[clock + record.INSTANT])
    return record.DONE if call_law(I[record.LAW], float(time)) == 0 else record.LAW_FAILED


@merged
def along_speed(I: Numbers, W: Array, i: int, qd: int) -> float:
    """ċ_i of combination i at rates that begin at W[qd]."""
    total, n = 0.0, I[record.COUNT]
    for j in range(n):
        total += W[I[record.C] + i * n + j] * W[qd + j]
    return float(total)


@core
def along_way(I: Numbers, W: Array, e: int, qd: int) -> float:
    """u = (c − middle)/half of an element that changes along the way, of the state whose rates begin at W[qd]."""
    c = along_speed(I, W, int(I[I[record.OF] + e]), qd - I[record.COUNT] - 6 * I[record.FREE])
    return float((c - W[I[record.EXPONENT] + e]) / W[I[record.SPEED] + e])


@core
def magnitude(I: Numbers, W: Array, e: int, qd: int) -> float:
    """The law of a unit parameter of friction element e, without its sign, at rates that begin at W[qd], behind the coordinates."""
    if I[I[record.KIND] + e] < record.FALLS:
        return 1.0
    i = int(I[I[record.OF] + e])
    if I[I[record.KIND] + e] >= record.VARIES:
        u, out = along_way(I, W, e, qd), 1.0
        for _ in range(I[I[record.KIND] + e] // record.VARIES):
            out *= u
        return float(out)
    ratio = abs(along_speed(I, W, i, qd) / W[I[record.SPEED] + e])
    power = W[I[record.EXPONENT] + e]
    return float(1.0 / (1.0 + ((ratio + LOG_OFFSET) ** power if power > 0.0 else ratio * ratio)))


@core
def load_share(I: Numbers, W: Array, j: int, way: float) -> float:
    """Friction of coordinate j per force of its drive, against motion in the direction `way`: more where the load drives the motor."""
    back = W[I[record.BACKDRIVE] + j] if W[I[record.FORCE] + j] * way < 0.0 else 0.0
    return float(W[I[record.LOAD] + j] + back)


@core
def by_load(I: Numbers, W: Array, j: int, way: float) -> float:
    """Friction of coordinate j that grows with the force of its drive, against motion in the direction `way`."""
    return float(abs(W[I[record.FORCE] + j]) * load_share(I, W, j, way))


@core
def set_limits(I: Numbers, W: Array, qd: int) -> None:
    """AHEAD and BACK: friction against motion forwards and backwards, at rates that begin at W[qd]."""
    for i in range(I[record.COMBINATIONS]):
        W[I[record.AHEAD] + i] = 0.0
        W[I[record.BACK] + i] = 0.0
    for e in range(I[record.ELEMENTS]):
        i, kind = int(I[I[record.OF] + e]), I[I[record.KIND] + e]
        size = W[I[record.VALUE] + e]
        if size == 0.0:  # as of terms that a search has not taken yet
            continue
        if kind >= record.FALLS:
            size *= magnitude(I, W, e, qd)
        if kind % record.FALLS != record.BACKWARDS:
            W[I[record.AHEAD] + i] += size
        if kind % record.FALLS != record.FORWARDS:
            W[I[record.BACK] + i] += size
    for j in range(I[record.COUNT]):
        i = int(I[I[record.LOADED] + j])
        if i >= 0:
            W[I[record.AHEAD] + i] += by_load(I, W, j, 1.0)
            W[I[record.BACK] + i] += by_load(I, W, j, -1.0)


@merged
def set_push(I: Numbers, W: Array, qd: int, shares: int) -> None:
    """PUSH: what friction with shares from W[shares] on does to the coordinates at rates from W[qd] on."""
    n = I[record.COUNT]
    for j in range(n):
        W[I[record.PUSH] + j] = 0.0
    for e in range(I[record.ELEMENTS]):
        i, kind = int(I[I[record.OF] + e]), I[I[record.KIND] + e]
        share = W[shares + i]
        if W[I[record.VALUE] + e] == 0.0:
            continue
        if (kind % record.FALLS == record.FORWARDS and share < 0.0) or (
            kind % record.FALLS == record.BACKWARDS and share > 0.0
        ):
            continue
        force = share * W[I[record.VALUE] + e]
        if kind >= record.FALLS:
            force *= magnitude(I, W, e, qd)
        for j in range(n):
            W[I[record.PUSH] + j] -= force * W[I[record.C] + i * n + j]
    for j in range(n):
        i = int(I[I[record.LOADED] + j])
        if i >= 0:
            W[I[record.PUSH] + j] -= W[shares + i] * by_load(I, W, j, float(W[shares + i]))


@merged
def set_state(I: Numbers, W: Array, y: int) -> None:
    """Put the state that begins at W[y] where kernels read it."""
    n, own = I[record.COUNT], I[record.STATES]
    copy(W, y, 2 * n, I[record.GIVEN])
    if own:
        copy(W, y + 2 * n, own, I[record.GIVEN] + 4 * n + I[record.SIGNALS] - own)


@merged
def rate(I: Numbers, W: Array, y: int, slope: int) -> int:
    """The rate of the state that begins at W[y], under FORCE or the law and PUSH, into W[slope …]; q̈ stands in GIVEN too."""
    n, given = I[record.COUNT], I[record.GIVEN]
    if I[record.BOUND_CODE]:
        I[record.FROM_STATE], I[record.TO_SLOPE] = y, slope
        return call_part(I, record.BOUND_CODE, W, record.ACCELERATE, 0.0, 0.0, 0)
    set_state(I, W, y)
    if law_forces(I, W) != record.DONE:
        return record.LAW_FAILED
    force, push, acting = view(W, I[record.FORCE], n), view(W, I[record.PUSH], n), view(W, given + 2 * n, n)
    for j in range(n):
        acting[j] = force[j] + push[j]
    call_kernel(I, record.FORWARD_KERNEL)
    near = view(W, I[record.ACC] + n, I[record.LANES])
    for lane in range(I[record.LANES]):
        if not near[lane] < W[I[record.CLOCK] + record.NEAREST]:  # also where it is no number
            return record.ESCAPED
    q, qdd, usable = view(W, y, n), view(W, I[record.ACC], n), True
    for j in range(n):
        usable &= (abs(q[j]) < LARGEST_ANGLE_RAD) & (abs(qdd[j]) < np.inf)  # not where one is no number
    if not usable:
        return record.ESCAPED
    copy(W, y + n, n, slope)
    copy(W, I[record.ACC], n, slope + n)
    copy(W, I[record.ACC], n, given + 3 * n)
    if I[record.STATES]:
        call_kernel(I, record.RATES_KERNEL)
        copy(W, I[record.RATES], I[record.STATES], slope + 2 * n)
    return record.DONE


@merged
def combine(I: Numbers, W: Array, y: int, h: float, weights: int, count: int, out: int) -> None:
    """y + h Σ w_j k_j over the first `count` slopes, into W[out …]; bristles follow the path."""
    size, time = I[record.SIZE], 0.0
    copy(W, y, size, out)
    for i in range(count):
        w = h * W[weights + i]
        time += w
        if w != 0.0:
            add_to(W, w, I[record.SLOPES] + i * size, size, out)
    if I[record.BRISTLES]:
        follow_path(I, W, y, out, time)


@merged
def stage(I: Numbers, W: Array, i: int, y: int, instant: float, h: float, shares: int) -> int:
    """Slope i of a step of h seconds from W[y …] at an instant of the interval."""
    combine(I, W, y, h, I[record.TABLE_A] + i * I[record.STAGES], i, I[record.STAGE])
    set_instant(I, W, float(instant + W[I[record.TABLE_C] + i] * h))
    if I[record.COMBINATIONS]:
        set_push(I, W, I[record.STAGE] + I[record.COUNT], shares)
    return int(rate(I, W, I[record.STAGE], I[record.SLOPES] + i * I[record.SIZE]))


@merged
def acting_share(I: Numbers, W: Array, e: int, shares: int) -> float:
    """The share of a friction element, 0 where it acts the other way only."""
    share, kind = W[shares + I[I[record.OF] + e]], I[I[record.KIND] + e] % record.FALLS
    idle = (kind == record.FORWARDS and share < 0.0) or (kind == record.BACKWARDS and share > 0.0)
    return 0.0 if idle else float(share)


@merged
def is_usable(I: Numbers, W: Array, y: int) -> bool:
    """Whether a step that is one formula went through usable states alone, to the one at W[y …]."""
    usable = True
    for i in range(I[record.STAGES]):
        usable = usable and W[I[record.NEARNESS] + i] < W[I[record.CLOCK] + record.NEAREST]  # not where it is no number
    for j in range(I[record.SIZE]):
        usable = usable and abs(W[y + j]) < (LARGEST_ANGLE_RAD if j < I[record.COUNT] else np.inf)
    return bool(usable)


@merged
def set_leap(I: Numbers, W: Array, instant: float, h: float, shares: int) -> None:
    """What a step that is one formula reads besides state, inputs and sensitivities."""
    leap, interval = I[record.LEAP], W[I[record.CLOCK] + record.INTERVAL]
    W[leap] = h
    W[leap + 1] = 0.0 if I[record.HOLDS] else min(instant / interval, 1.0)
    W[leap + 2] = 0.0 if I[record.HOLDS] else h / interval
    if I[record.COMBINATIONS]:
        set_push(I, W, I[record.Y] + I[record.COUNT], shares)
    for e in range(I[record.ELEMENTS]):
        W[I[record.ACTING] + e] = acting_share(I, W, e, shares)


@core
def advance(I: Numbers, W: Array, instant: float, h: float, shares: int, first: int) -> int:
    """The state END after h seconds from Y; `first`: how many slopes are known already."""
    y, out = I[record.Y], I[record.END]
    if I[record.WRITTEN_OUT]:
        set_leap(I, W, instant, h, shares)
        call_kernel(I, record.STEP_KERNEL)
        if is_usable(I, W, out):
            return record.DONE
        first = 0
    for i in range(first, I[record.STAGES]):
        status = stage(I, W, i, y, instant, h, shares)
        if status != record.DONE:
            return int(status)
    combine(I, W, y, h, I[record.TABLE_B], I[record.STAGES], out)
    return record.DONE
