"""Closed positions from coordinates that are given, and the loops there: one solver, Newton's, for all samples at once.

Φ(q) = 0, so with q_g given and q_s solved for: ∂q_s/∂q_g = −Φ_s⁻¹ Φ_g, and q̈_s = −Φ_s⁻¹ (Φ_g q̈_g + bias). Closed positions that are hard
to reach at once are reached by steps along a path, or along straight lines from a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.mechanics.tree.dynamics.engine import Engine, compiled, filled, wants_compiled
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, SINGULAR_RATIO, Split
from veridyn.mechanics.tree.loops.equations import COUNTS, equation_values, widest
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion

Counts = NDArray[np.intp]
MAX_NEWTON_STEPS = 30  # Newton steps before a position counts as out of reach
LONGEST_NEWTON_STEP = 0.5  # rad, and of the reach: what one Newton step may change
PATH_STRIDE = 0.1  # rad, and of the reach: between two positions of a path that is followed
SHORTEST_PATH_STRIDE = PATH_STRIDE / 128.0  # steps shorter than this say that it cannot be followed
PATH_TOLERANCE = 1e-6  # how far loops may stay open on the way
LONG_PATH = 100  # positions of a path from which on equations in machine code earn the time to compile them
SAME_PLACE = 1e-9  # rad, and of the machine's reach: a step that changes slopes by no more than rounding
MORE_STEPS = 4  # of Newton's, from a tolerance in m to rounding in the coordinates
ROUGHEST_TOLERANCE_M = 1e-6  # m: looser tolerances leave errors of the pose beyond those of sensors
STRETCHED_OUT_CONDITION = 1e4  # above it the loops of a position out of reach count as stretched out


def loop_values(tree: Tree, q: Array, qd: Array | None = None, engine: Engine = "auto") -> Array:
    """:func:`~veridyn.mechanics.tree.loops.equations.equation_values`, by machine code where that pays."""
    request = Request("loops" if qd is None else "loop_motion")
    if not wants_compiled(engine, tree, request, len(q)):
        return equation_values(tree, q, qd)
    still = np.zeros_like(q)
    motion = Motion(np.arange(float(len(q))), q, still if qd is None else qd, still)
    shape = (sum(COUNTS[loop.joint] for loop in tree.loops), tree.n + 2)
    return np.ascontiguousarray(filled(compiled(tree, request), tree, motion, shape))


@dataclass(frozen=True, eq=False)
class LoopsAt:
    """The loops of a machine at positions `q` (N, n): `values` of :func:`loop_values`, and what solves them for q_s.

    `inverted` (N, m, m) is Φ_s⁻¹, `sign` (N,) that of the determinant of Φ_s. `condition` (N,), in the largest column sum and with sliding
    coordinates in units of the machine's reach, is infinite where Φ_s is singular.
    """

    split: Split
    q: Array
    values: Array
    inverted: Array
    condition: Array
    sign: Array

    @cached_property
    def slope(self) -> Array:
        """∂q_s/∂q_g = −Φ_s⁻¹ Φ_g (N, m, n_given)."""
        return -(self.inverted @ self.values[:, np.array(self.split.rows)[:, None], np.array(self.split.given)])

    @property
    def jacobian(self) -> Array:
        """∂q/∂q_g (N, n, n_given)."""
        given = self.split.given
        G = np.zeros((len(self.q), self.split.tree.n, len(given)))
        G[:, given, range(len(given))] = 1.0
        G[:, self.split.solved] = self.slope
        return G

    def bias(self, qd: Array, engine: Engine) -> Array:
        """What is left of Φ̈ (N, m) under rates of all coordinates while their accelerations are zero."""
        return loop_values(self.split.tree, self.q, qd, engine)[:, self.split.rows, self.split.tree.n + 1]

    def rates(self, given: Array, changing: Array, engine: Engine) -> tuple[Array, Array]:
        """Rates and accelerations of all coordinates from those of the given ones."""
        split = self.split
        qd, qdd = np.zeros_like(self.q), np.zeros_like(self.q)
        qd[:, split.given], qdd[:, split.given] = given, changing
        qd[:, split.solved] = times(self.slope, given)
        qdd[:, split.solved] = times(self.slope, changing) - times(self.inverted, self.bias(qd, engine))
        return qd, qdd

    def check(self, side: float, samples: Counts | None = None) -> LoopsAt:
        """Refuse singular positions, and a change of `side`, which no machine makes without passing a singular position."""
        split, number = self.split, np.arange(len(self.q)) if samples is None else samples
        bad = ~(self.condition < 1.0 / SINGULAR_RATIO)
        if bad.any():
            k = int(np.argmax(bad))
            raise DataError(
                f"a singular position: there {', '.join(split.names)} do not decide how the machine moves.",
                where=split.sample(int(number[k])),
                expected=f"a condition below {1.0 / SINGULAR_RATIO:.0e}",
                found=f"{self.condition[k]:.1e} at {split.place(self.q[k])}",
                hint="Lead the motion around it.",
            )
        if (self.sign != side).any():
            k = int(np.argmax(self.sign != side))
            raise DataError(
                "a singular position lies on the way here: behind it the machine is assembled the other way round.",
                where=split.sample(int(number[k])),
                found=split.place(self.q[k]),
                hint="Lead the motion around it, or give a start on this side of it.",
            )
        return self


def loops_at(split: Split, q: Array, engine: Engine = "auto") -> LoopsAt:
    """The loops at positions q (N, n)."""
    return solved_loops(split, q, loop_values(split.tree, q, engine=engine))


def solved_loops(split: Split, q: Array, values: Array) -> LoopsAt:
    """The same where :func:`loop_values` are known."""
    A = split.block(values)
    unit = split.unit[list(split.solved)]
    sign = np.linalg.slogdet(A)[0]
    regular = sign != 0.0
    scaled = A[regular] * unit
    B, condition = np.zeros_like(A), np.full(len(A), np.inf)
    B[regular] = np.linalg.inv(scaled)
    condition[regular] = _norm(scaled) * _norm(B[regular])
    return LoopsAt(split, q, values, B * unit[:, None], condition, sign)


def times(A: Array, x: Array) -> Array:
    """A x, sample by sample: (N, a, b) and (N, b)."""
    return (A @ x[..., None])[..., 0]


def _norm(A: Array) -> Array:
    return np.abs(A).sum(axis=-2).max(axis=-1, initial=0.0)


def newton(split: Split, q: Array, tolerance: float, engine: Engine = "auto") -> tuple[Counts, Array]:
    """Newton's steps on all samples of q (N, n), in place, until each is closed; how many steps, and what stays open."""
    n, unit = split.tree.n, split.unit[list(split.solved)]
    count, residual = np.zeros(len(q), dtype=np.intp), np.full(len(q), np.inf)
    active = np.arange(len(q))
    for step in range(MAX_NEWTON_STEPS + 1):
        T = loop_values(split.tree, q[active], engine=engine)
        residual[active] = np.abs(T[:, :, n]).max(axis=1, initial=0.0)
        still = residual[active] > tolerance
        active, T = active[still], T[still]
        if not len(active) or step == MAX_NEWTON_STEPS:
            break
        move = _solved(split.block(T) * unit, -T[:, split.rows, n])
        move /= np.maximum(1.0, np.abs(move).max(axis=1, keepdims=True) / LONGEST_NEWTON_STEP)
        q[active[:, None], list(split.solved)] += move * unit
        count[active] += 1
    return count, residual


def _solved(A: Array, b: Array) -> Array:
    """A⁻¹ b for each sample; the shortest of least squares where some A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        return times(np.asarray(np.linalg.pinv(A), dtype=np.float64), b)


def refuse_unreachable(split: Split, q: Array, sample: int) -> None:
    """Say that a position (n,) could not be closed, and which loop stays open."""
    at = loops_at(split, q[None], "numpy")
    flat = not at.condition[0] < STRETCHED_OUT_CONDITION
    stretched = " There the loops are stretched out: a singular position." if flat else ""
    raise DataError(
        f"this position is out of reach: no closed position was found for it.{stretched}",
        where=split.sample(sample),
        expected="all loops closed",
        found=f"{widest(split.tree, at.values[0, :, split.tree.n])} at {split.place(q)}",
        hint="Look at the units and the zero of these coordinates, or give a better start.",
    )


def refuse_open(split: Split, q: Array, residual: Array, tolerance: float) -> None:
    """Refuse positions that stay open by more than the tolerance."""
    if not (residual <= tolerance).all():
        k = int(np.argmin(residual <= tolerance))
        refuse_unreachable(split, q[k], k)


def closing(
    split: Split,
    values: Array,
    start: ArrayLike | None,
    path: bool,
    patient: bool,
    tolerance: float,
    engine: Engine,
) -> tuple[LoopsAt, Counts, Array]:
    """The loops at closed positions with these values (N, n_given) of the given coordinates; Newton's steps, and what stays open.

    The arguments are those of :func:`~veridyn.mechanics.tree.loops.closure.close`.
    """
    n = split.tree.n
    begin = _start(split, start, len(values), tolerance)
    q = begin.copy()
    q[:, split.given] = values
    side = split.sign if start is None else float(loops_at(split, begin[:1], "numpy").sign[0])
    count, residual = newton(split, q, tolerance, engine)
    at = loops_at(split, q, engine)
    lost = ~((residual <= tolerance) & (at.sign == side))
    on_path = path and len(values) > 1
    if start is not None and np.ndim(start) == 2:  # every sample has a start of its own, and its side is what was meant
        on_path, lost = False, ~(residual <= tolerance)
    if patient and (lost.any() or (on_path and not smooth(split, q, at.slope))):
        if on_path:
            q, steps = track_branch(split, values, _closed_start(split, begin[0]), engine)
        else:
            q[lost], steps = step_towards(split, values[lost], begin[lost], engine)
        more, residual = newton(split, q, tolerance, engine)
        count = more + (-(-steps // len(values)) if on_path else count)
        at = loops_at(split, q, engine)
    refuse_open(split, q, residual, tolerance)
    at.check(side)
    for _ in range(MORE_STEPS):
        step = times(at.inverted, at.values[:, split.rows, n])
        q[:, split.solved] -= step  # one step more, which costs nothing here: closed to rounding; `at` is where it ends
        if not (np.abs(step) > SAME_PLACE * split.unit[list(split.solved)]).any():
            break
        at = loops_at(split, q, engine).check(side)  # near a singular position the step is no small one
    return at, count, residual


def _start(split: Split, start: ArrayLike | None, samples: int, tolerance: float) -> Array:
    n = split.tree.n
    begin = np.asarray(split.home if start is None else start, dtype=np.float64)
    faults = Faults()
    if begin.shape not in ((n,), (samples, n)):
        faults.add("the start has the wrong shape.", expected=f"({n},) or ({samples}, {n})", found=f"{begin.shape}")
    if not 0.0 < tolerance <= ROUGHEST_TOLERANCE_M:
        faults.add(
            "no tolerance to close loops to.",
            expected=f"above 0, at most {ROUGHEST_TOLERANCE_M:g}",
            found=f"{tolerance:g}",
        )
    faults.raise_if_any(DataError, split.tree.name)
    return np.broadcast_to(begin, (samples, n)).copy()


def _closed_start(split: Split, begin: Array) -> Array:
    """A start for a path must itself be closed."""
    q = begin[None].copy()
    refuse_open(split, q, newton(split, q, CLOSED_TOLERANCE_M)[1], CLOSED_TOLERANCE_M)
    return q[0]


def smooth(split: Split, q: Array, slope: Array) -> bool:
    """Whether neighbouring samples lie on one branch: each step is about what its tangents `slope` (N, m, n_given) say."""
    unit = split.unit[list(split.solved)]
    expected = times(0.5 * (slope[1:] + slope[:-1]), np.diff(q[:, split.given], axis=0)) / unit
    found = np.diff(q[:, split.solved], axis=0) / unit
    size = np.abs(expected).max(axis=1, initial=0.0)
    near = np.abs(found - expected).max(axis=1, initial=0.0) <= 0.5 * size + PATH_TOLERANCE
    return bool(near.all())


def track_branch(split: Split, values: Array, begin: Array, engine: Engine) -> tuple[Array, int]:
    """A good start for every sample of a path `values` (N, n_given) that begins at the closed position `begin`; and the steps it took.

    Positions along the path, a stride apart, are found one from the other; every sample starts from the one before it.
    """
    travel = np.abs(np.diff(values, axis=0) / split.unit[list(split.given)]).max(axis=1)
    passed = np.floor(np.concatenate([[0.0], np.cumsum(travel)]) / PATH_STRIDE)
    keys = np.flatnonzero(np.diff(passed, prepend=-1.0) > 0.0)
    found, at, steps = np.empty((len(keys), split.tree.n)), begin, 0
    one_by_one: Engine = engine if engine != "auto" else "compiled" if len(keys) > LONG_PATH else "numpy"
    for i, k in enumerate(keys):
        at, used = _led(split, at, values[k], int(k), one_by_one)
        found[i], steps = at, steps + used
    last = np.searchsorted(keys, np.arange(len(values)), side="right") - 1
    slope = loops_at(split, found, engine).slope
    q = found[last]
    q[:, split.solved] += times(slope[last], values - q[:, split.given])
    q[:, split.given] = values
    return q, steps


def step_towards(split: Split, values: Array, origin: Array, engine: Engine) -> tuple[Array, int]:
    """A good start for every sample for itself: the end of a straight line of small steps from `origin` (N, n); and how many steps."""
    begin = origin[:, split.given]
    longest = (np.abs(values - begin) / split.unit[list(split.given)]).max(initial=0.0)
    steps = int(np.ceil(longest / PATH_STRIDE)) + 1
    q, total = origin.copy(), 0
    for k in range(1, steps):
        q[:, split.given] = begin + (values - begin) * k / steps
        total += int(newton(split, q, PATH_TOLERANCE, engine)[0].max(initial=0))
    q[:, split.given] = values
    return q, total


def _led(split: Split, begin: Array, goal: Array, sample: int, engine: Engine) -> tuple[Array, int]:
    """From one closed position to another along the tangent, in shorter steps where it is hard, and the Newton steps it took."""
    given, solved, unit = list(split.given), list(split.solved), split.unit
    at, first, steps = loops_at(split, begin[None], engine), begin[given].copy(), 0
    side = at.sign[0]
    length = float((np.abs(goal - first) / unit[given]).max(initial=0.0))
    done, stride = 0.0, PATH_STRIDE
    while done < 1.0:
        share = min(1.0, done + stride / length) if length > 0.0 else 1.0
        here = at.q[0]
        guess = here.copy()
        guess[given] = first + share * (goal - first)
        guess[solved] += at.slope[0] @ (guess[given] - here[given])
        trial = guess[None].copy()
        count, residual = newton(split, trial, PATH_TOLERANCE, engine)
        steps += int(count[0])
        corrected = float((np.abs(trial[0] - guess) / unit).max())
        moved = float((np.abs(guess - here) / unit).max())
        there = loops_at(split, trial, engine)
        if residual[0] <= PATH_TOLERANCE and corrected <= max(0.5 * moved, 1e-3) and there.sign[0] == side:
            at, done, stride = there, share, min(PATH_STRIDE, 2.0 * stride)
            continue
        stride *= 0.5
        if stride < SHORTEST_PATH_STRIDE:
            if residual[0] <= PATH_TOLERANCE and there.sign[0] != side:
                there.check(side, np.array([sample]))
            refuse_unreachable(split, trial[0], sample)
    return at.q[0], steps
