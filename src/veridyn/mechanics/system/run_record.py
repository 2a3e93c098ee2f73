"""The work record of a compiled run: where its state, inputs, friction and sensitivities lie in one array of doubles.

As :mod:`veridyn.mechanics.tree.steps.record`, whose kernels of one sample it calls: sections of W by number, lists of whole numbers behind
them in I. n coordinates, s states of elements' own, a state y = (q, q̇, z) of 2n + s numbers, m combinations of coordinates with dry
friction that holds. Sensitivities lie in blocks: coordinates that no equation ties to each other, as the legs of a walking machine on a
stand, have blocks of their own, each with the columns that it depends on. Two coordinates belong together where the mass matrix, a
derivative of the forces, a combination with dry friction or a state of an element ties them; what is not tied has no influence whatever
on the other, so that its sensitivities are zero and need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from veridyn.arrays import Array
from veridyn.mechanics.system.dry_friction import DryFriction
from veridyn.mechanics.tree.dynamics.engine import Compiled
from veridyn.mechanics.tree.tree import Tree

Numbers = NDArray[np.int64]
# `law`: the address of a control law in Python, 0 where there is none. `holds`: whether inputs are held between samples. `states`: of
# elements of their own. `length`: of all sensitivities. `triples`: of the regressor. `rows`: kept of the sensitivities.
# `fresh`: whether the response of accelerations to friction is known. `first_state`: the column of the first component of the start.
# `friction_code`, `sensitivity_code`: addresses of what only runs with friction that holds or with sensitivities need, 0 in others.
# `bristles`: elements whose deflection follows paths exactly.
# `bound_code`: address of what machines with loops or on a free base need, 0 in others; `free`: whether the base is; `equations` of loops,
# of which `counted` are independent; `led`: prescribed coordinates, `wheels` on a road, `placed`: rows that loads at places act on, see
# :mod:`veridyn.mechanics.system.run_bound`; `from_state`, `to_slope`: where the state and the slope of a call begin.
# `written_out`: whether a step is one formula, which has no lists to go through.
# `lanes`: runs side by side; `n`, `states`, `size` and `signals` count all of them.
HEADER = (
    "n", "states", "size", "signals", "stages", "combinations", "elements", "holds", "law", "blocks", "length", "constants",
    "triples", "rows", "fresh", "first_state", "servo", "ticks", "lag", "friction_code", "sensitivity_code", "lanes", "bristles",
    "led", "wheels", "placed",
    "bound_code", "free", "equations", "counted", "from_state", "to_slope", "written_out",
)  # fmt: skip
(
    COUNT, STATES, SIZE, SIGNALS, STAGES, COMBINATIONS, ELEMENTS, HOLDS, LAW, BLOCKS, LENGTH, CONSTANTS, TRIPLES, ROWS, FRESH,
    FIRST_STATE, SERVO, TICKS, LAG, FRICTION_CODE, SENSITIVITY_CODE, LANES, BRISTLES,
    LED, WHEELS, PLACED,
    BOUND_CODE, FREE, EQUATIONS, COUNTED, FROM_STATE, TO_SLOPE, WRITTEN_OUT,
) = range(len(HEADER))  # fmt: skip
SECTIONS = (
    # states: where a step starts, of a stage, where the step ends; slopes of the stages; the tableau
    "Y", "STAGE", "END", "SLOPES", "TABLE_A", "TABLE_B", "TABLE_C",
    # what kernels read: q, q̇, forces, q̈, signals with elements' own states last; and write; their parameters
    "GIVEN", "ACC", "RATES", "DERIVATIVES", "MASS", "REGRESSOR", "P_FORWARD", "P_RATES", "P_DERIVATIVES", "P_MASS", "P_REGRESSOR",
    "P_INVERSE", "P_LOOPS", "P_STEP", "P_TANGENT", "P_ADJOINT",
    # dry friction: values and constants of its elements, which change with the parameters of kernels
    "VALUE", "SPEED", "EXPONENT",
    # forces and signals at the two samples around, forces at an instant; the start of the run, the time of its interval, its length,
    # the instant within the interval; how near the mass matrix may come to singular
    "BEFORE", "AFTER", "FORCE", "CLOCK",
    # dry friction: combinations; shares; limits and speeds at rest; response of q̈; work
    "C", "SHARE", "GUESS", "TRIED", "AHEAD", "BACK", "REST", "OWN", "RESPONSE", "ALONG", "REACHED",
    "PUSH", "H", "H_WORK", "RIGHT", "LOW", "HIGH", "BOUNDED", "ROOM", "ARRIVING", "ARRIVED", "LEAVING",
    # sensitivities: of the state, of a stage, of the slopes; right sides, mass matrix and held forces of a block; of a control law
    "S", "S_STAGE", "S_SLOPES", "S_RIGHT", "M_BLOCK", "HELD_BLOCK", "HELD_RIGHT", "BY_LAW", "COEFFICIENTS",
    # joint controllers: gains, limits, zeros and ages of measurements, friction by load, feed-forward and command at an instant with its
    # slope, integrals, past states, and sensitivities
    "KP", "KI", "KD", "LIMIT", "ZERO", "AGE", "LOAD", "BACKDRIVE", "FEED", "WANTED", "INTEGRAL", "PAST", "S_FORCE", "S_INTEGRAL", "S_PAST",
    # what acts from outside: q, q̇ and q̈ of prescribed coordinates, units of the others; the road, places of wheels; wrenches on bodies,
    # loads at places, their generalised forces, and all on the root
    "LED_MOTION", "FREED", "ROAD", "PLACES", "WRENCHES", "LOADS", "PUSHED", "ROOT_WRENCH",
    # bristles: combinations (b, n), and deflection, ratio and speed of each
    "BRISTLE_C", "BRISTLE_CONSTANT",
    # bound machines: of a free base position, quaternion, velocity and ω in its own axes, 0, and gravity; h; Φ_q, Φ and bias of Φ̈;
    # the bordered matrix and its right side; units of velocities; with which rate openings die out
    "BASE", "INVERSE", "LOOPS", "BORDER", "BORDER_RIGHT", "UNIT", "CLOSING",
    # a step that is one formula: h, the share of the interval where it starts and that which it covers; nearness of each stage to
    # singular; what a unit of each element's friction does
    "LEAP", "NEARNESS", "ACTING",
    # a sweep backwards: GIVEN of all stages; weights of the rates of speeds and of elements' own states; the gradient of their sum by
    # q, q̇, forces, signals, parameters and constants; that of what follows by the state of each stage, and by the state of a step
    "STAGES_GIVEN", "WEIGHT", "ADJOINT", "STAGES_ADJOINT", "LAMBDA",
)  # fmt: skip
(
    Y, STAGE, END, SLOPES, TABLE_A, TABLE_B, TABLE_C,
    GIVEN, ACC, RATES, DERIVATIVES, MASS, REGRESSOR, P_FORWARD, P_RATES, P_DERIVATIVES, P_MASS, P_REGRESSOR,
    P_INVERSE, P_LOOPS, P_STEP, P_TANGENT, P_ADJOINT,
    VALUE, SPEED, EXPONENT,
    BEFORE, AFTER, FORCE, CLOCK,
    C, SHARE, GUESS, TRIED, AHEAD, BACK, REST, OWN, RESPONSE, ALONG, REACHED,
    PUSH, H, H_WORK, RIGHT, LOW, HIGH, BOUNDED, ROOM, ARRIVING, ARRIVED, LEAVING,
    S, S_STAGE, S_SLOPES, S_RIGHT, M_BLOCK, HELD_BLOCK, HELD_RIGHT, BY_LAW, COEFFICIENTS,
    KP, KI, KD, LIMIT, ZERO, AGE, LOAD, BACKDRIVE, FEED, WANTED, INTEGRAL, PAST, S_FORCE, S_INTEGRAL, S_PAST,
    LED_MOTION, FREED, ROAD, PLACES, WRENCHES, LOADS, PUSHED, ROOT_WRENCH,
    BRISTLE_C, BRISTLE_CONSTANT,
    BASE, INVERSE, LOOPS, BORDER, BORDER_RIGHT, UNIT, CLOSING,
    LEAP, NEARNESS, ACTING,
    STAGES_GIVEN, WEIGHT, ADJOINT, STAGES_ADJOINT, LAMBDA,
) = range(len(HEADER), len(HEADER) + 3 * len(SECTIONS), 3)  # fmt: skip
# Of element e: its combination OF[e], its KIND[e] (0 both ways, 1 forwards, 2 backwards; 4 more where it falls with the speed,
# 8 p where it changes along the way as u^p: SPEED is half of the way then, EXPONENT its middle).
# Flags and pivots of the combinations; PENDING: came to rest, and sensitivities are still those before it.
# Block b: numbers of its coordinates, states, columns and combinations from COORDINATE_FROM[b] on …;
# its sensitivities begin at S + BLOCK_AT[b], its right sides at S_RIGHT + RIGHT_AT[b]. TRIPLE: (entry of the regressor, place in S_RIGHT).
# FRICTION_TRIPLE: (element, place); CONSTANT_TRIPLE: (entry of DERIVATIVES, place); factors of the first two in COEFFICIENTS. OUT_ROW:
# (block, row of it) of the sensitivities that are kept, (−1 − block, coordinate) for the force of a control law or controller.
# SERVO_AT[j]: where the sensitivities of the force of coordinate j begin in S_FORCE; GAIN_COLUMN[8j …]: columns of its block by k_p, k_i,
# k_d, zero, delay of the command, age of the measurement, and friction by load both ways and backdriven, −1 where it is not varied.
# LOADED[j]: the combination with dry friction that is coordinate j alone, −1 where there is none.
# BRISTLE_PLACE[2b …]: where the deflection of bristles b lies in a state, and in the rows of its block; BRISTLE_COLUMN[4b …]: columns of
# its block by deflection, ratio and speed, −1 where it is not varied, and the block.
# LOOP_ROW: the equations of loops that count. LED_AT: the prescribed coordinates; ROAD_AT: which signals each wheel reads of the road;
# PLACES_CALL, PUSHED_CALL: addresses of the kernels of wheels' places and of loads, as of KERNELS.
LISTS = (
    "OF", "KIND", "HOLDABLE", "STOPPED", "PENDING", "INDEX", "SIDE", "PIVOT", "PIVOT_BLOCK",
    "COORDINATE_FROM", "COORDINATE", "STATE_FROM", "STATE", "COLUMN_FROM", "COLUMN", "COMBINATION_FROM", "COMBINATION",
    "BLOCK_AT", "RIGHT_AT", "TRIPLE", "FRICTION_TRIPLE", "CONSTANT_TRIPLE", "OUT_ROW", "SERVO_AT", "GAIN_COLUMN",
    "BRISTLE_PLACE", "BRISTLE_COLUMN", "LOADED", "LOOP_ROW", "PIVOT_BORDER",
    "LED_AT", "ROAD_AT", "PLACES_CALL", "PUSHED_CALL",
)  # fmt: skip
_after = len(HEADER) + 3 * len(SECTIONS)
(
    OF, KIND, HOLDABLE, STOPPED, PENDING, INDEX, SIDE, PIVOT, PIVOT_BLOCK,
    COORDINATE_FROM, COORDINATE, STATE_FROM, STATE, COLUMN_FROM, COLUMN, COMBINATION_FROM, COMBINATION,
    BLOCK_AT, RIGHT_AT, TRIPLE, FRICTION_TRIPLE, CONSTANT_TRIPLE, OUT_ROW, SERVO_AT, GAIN_COLUMN,
    BRISTLE_PLACE, BRISTLE_COLUMN, LOADED, LOOP_ROW, PIVOT_BORDER,
    LED_AT, ROAD_AT, PLACES_CALL, PUSHED_CALL,
) = range(_after, _after + 2 * len(LISTS), 2)  # fmt: skip
_after += 2 * len(LISTS)
KERNELS = (
    "FORWARD_KERNEL", "RATES_KERNEL", "DERIVATIVES_KERNEL", "MASS_KERNEL", "REGRESSOR_KERNEL", "INVERSE_KERNEL", "LOOPS_KERNEL",
    "STEP_KERNEL", "TANGENT_KERNEL", "ADJOINT_KERNEL",
)  # fmt: skip
(FORWARD_KERNEL, RATES_KERNEL, DERIVATIVES_KERNEL, MASS_KERNEL, REGRESSOR_KERNEL, INVERSE_KERNEL, LOOPS_KERNEL,
 STEP_KERNEL, TANGENT_KERNEL, ADJOINT_KERNEL) = range(_after, _after + 6 * len(KERNELS), 6)  # fmt: skip
# CLOCK: time of the run's start, of the interval since then, length of an interval, instant within it, limit of the nearness to singular
START_TIME, INTERVAL_TIME, INTERVAL, INSTANT, NEAREST = range(5)
BOTH_WAYS, FORWARDS, BACKWARDS, FALLS, VARIES = 0, 1, 2, 4, 8  # kinds of dry friction
DONE, ESCAPED, LAW_FAILED, UNBALANCED, SINGULAR = 0, 1, 2, 3, 4  # how a run ended
SETTLE, STEP = range(2)  # what the code of friction is called for
BEGIN, DIFFERENTIATE, HOLD_STILL, PASS_STOPS, LAW_SLOPES = range(5)  # and that of sensitivities
ACCELERATE, CLOSE = range(2)  # and that of bound machines
PART = (*[types.int64] * 5, types.float64, types.float64, types.int64)  # what all of them take, see call_part


def _law(typing_context: Any, address: Any, time: Any) -> tuple[Any, Callable[..., Any]]:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [ir.DoubleType()])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    return types.int64(types.int64, types.float64), codegen


_law.__doc__ = "Call law(time) at an address: 0 where it has put forces into FORCE."
call_law: Callable[[int, float], int] = cast(Any, intrinsic(_law))


def _part(
    typing_context: Any, numbers: Any, at: Any, values: Any, what: Any, instant: Any, h: Any, sensitive: Any
) -> tuple[Any, Callable[..., Any]]:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers, values = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2))
        whole, real = ir.IntType(64), ir.DoubleType()
        kind = ir.FunctionType(whole, [*[whole] * 5, real, real, whole])
        function = builder.inttoptr(builder.load(cgutils.gep(builder, numbers.data, args[1])), kind.as_pointer())
        given = []
        for array in (numbers, values):
            given += [builder.ptrtoint(array.data, whole), cgutils.unpack_tuple(builder, array.shape)[0]]
        return builder.call(function, [*given, *args[3:]])

    return types.int64(numbers, types.int64, values, types.int64, types.float64, types.float64, types.int64), codegen


_part.__doc__ = "part(addresses and lengths of I and W, what, instant, h, sensitive) with the function whose address stands at `at` in I."
call_part: Callable[[Numbers, int, NDArray[np.float64], int, float, float, int], int] = cast(Any, intrinsic(_part))


Pairs = Iterable[tuple[int, ...]]


@dataclass(frozen=True)
class TiedBlock:
    """Numbers of the coordinates, of elements' own states and of combinations with friction, and the columns they depend on."""

    coordinates: tuple[int, ...]
    states: tuple[int, ...]
    combinations: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The length of its part of a state."""
        return 2 * len(self.coordinates) + len(self.states)

    @property
    def width(self) -> int:
        """Its columns, those by the forces of friction included, which come last."""
        return len(self.columns) + len(self.combinations)


def blocks_of(
    n: int,
    states: int,
    ties: Pairs,
    C: Array,
    depends: Pairs,
    first_state: int,
    together: bool,
) -> tuple[TiedBlock, ...]:
    """Blocks of n coordinates and the states of elements' own, which are the rows n, n + 1, …

    `ties`: pairs of rows that one equation holds; `depends`: pairs (row, column). Columns from `first_state` on are those of the initial
    state (q, q̇, z). `together`: one block for all.
    """
    edges = [(a, b) for a, b in ties]
    edges += [(int(np.flatnonzero(c)[0]), int(j)) for c in C for j in np.flatnonzero(c)]
    edges += [(0, k) for k in range(n + states)] if together else []
    at = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=(n + states, n + states))
    count, mark = connected_components(graph, directed=False)
    needed: list[set[int]] = [set() for _ in range(count)]
    for row, column in depends:
        needed[mark[row]].add(column)
    found: list[TiedBlock] = []
    for b in range(count):
        rows = np.flatnonzero(mark == b).tolist()
        coordinates, own = [k for k in rows if k < n], [k - n for k in rows if k >= n]
        start = [*coordinates, *(n + k for k in coordinates), *(2 * n + k for k in own)]
        columns = sorted(needed[b]) + [first_state + k for k in sorted(start)]
        combinations = [i for i, c in enumerate(C) if mark[np.flatnonzero(c)[0]] == b]
        found.append(TiedBlock(tuple(coordinates), tuple(own), tuple(combinations), tuple(columns)))
    return tuple(found)


def starts(sizes: Sequence[int]) -> list[int]:
    """Where parts of these sizes begin, and the end of the last."""
    return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]


# Constants of a joint controller, in the order of GAIN_COLUMN.
GAINS = (
    "kp",
    "ki",
    "kd",
    "zero",
    "command_delay",
    "measurement_delay",
    "load_friction",
    "backdrive_friction",
)


@dataclass(frozen=True, eq=False)
class Varied:
    """What sensitivities are computed by: p combinations of parameters, whose effect on all is `spread` (all, p), then the others.

    `constants` of laws are their numbers in ``tree.constants``; `gains`: constants of joint controllers (key, coordinate), such as
    ("kp", 2), with the keys GAINS. The columns of a result are these three, and behind them the initial state.
    """

    spread: Array
    constants: tuple[int, ...] = ()
    gains: tuple[tuple[str, int], ...] = ()

    @property
    def count(self) -> int:
        return self.spread.shape[1] + len(self.constants) + len(self.gains)


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """Blocks of sensitivities, where they lie, and what of the regressor and of friction enters which column."""

    n: int
    blocks: tuple[TiedBlock, ...]
    at: list[int]
    right_at: list[int]
    triples: list[tuple[int, int]]
    friction: list[tuple[int, int]]
    constants: list[tuple[int, int]]
    coefficients: list[float]
    rows: list[int]
    servo_at: list[int]
    gains: list[int]

    @classmethod
    def of(
        cls,
        tree: Tree,
        varied: Varied | None,
        dry: DryFriction | None,
        made: Mapping[str, Compiled],
        together: bool,
        lanes: int = 1,
    ) -> ColumnLayout:
        """Those of a tree with its kernels by name; none where nothing is varied, for as many runs side by side as there are lanes.

        `together`: one block for all.
        """
        n = tree.n * lanes
        size = 2 * n + len(tree.states)
        if varied is None:
            return cls(n, (), [0], [0], [], [], [], [], [], [0] * (n + 1), [-1] * (len(GAINS) * n))
        spread, states = varied.spread, len(tree.states)
        slopes = made["DERIVATIVES_KERNEL"].labels
        entries = list(enumerate(made["REGRESSOR_KERNEL"].labels)) if "REGRESSOR_KERNEL" in made else []
        C = np.zeros((0, n)) if dry is None else dry.C

        def row_of(column: int) -> int:
            return column % n if column < 2 * n else column - n

        ties = [(int(r), int(c)) for r, c in made["MASS_KERNEL"].labels]
        ties += [(int(r), row_of(int(c))) for r, c in slopes if c < size]
        by_parameter = {int(c): np.flatnonzero(spread[int(c)]).tolist() for c in np.flatnonzero(spread.any(axis=1))}
        depends = [(int(r), j) for _, (r, c) in entries for j in by_parameter[int(c)]]
        depends += [(int(r), spread.shape[1] + int(c) - size) for r, c in slopes if c >= size]
        rubbing = [] if dry is None else [
            (e, i, j, spread[column, j]) for e, (i, _, column) in enumerate(dry.elements) for j in by_parameter.get(column, ())
        ]  # fmt: skip
        depends += [(int(np.flatnonzero(C[i])[0]), j) for _, i, j, _ in rubbing]
        first_gain = spread.shape[1] + len(varied.constants)
        depends += [(j, first_gain + g) for g, (_, j) in enumerate(varied.gains)]
        blocks = blocks_of(n, states, ties, C, depends, varied.count, together)
        at = starts([b.rows * b.width for b in blocks])
        right_at = starts([(len(b.coordinates) + len(b.states)) * b.width for b in blocks])
        home = {
            row: (b, a)
            for b, one in enumerate(blocks)
            for a, row in enumerate([*one.coordinates, *(n + s for s in one.states)])
        }

        def place(row: int, column: int) -> int:
            b, a = home[row]
            return right_at[b] + a * blocks[b].width + blocks[b].columns.index(column)

        triples = [(e, place(int(r), j), spread[int(c), j]) for e, (r, c) in entries for j in by_parameter[int(c)]]
        friction = [
            (e, place(int(row), j), factor * C[i, row]) for e, i, j, factor in rubbing for row in np.flatnonzero(C[i])
        ]
        width = size + len(varied.constants)
        constants = [
            (int(r) * width + int(c), place(int(r), spread.shape[1] + int(c) - size)) for r, c in slopes if c >= size
        ]
        gains = [-1] * (len(GAINS) * n)
        for g, (key, j) in enumerate(varied.gains):
            gains[len(GAINS) * j + GAINS.index(key)] = blocks[home[j][0]].columns.index(first_gain + g)
        return cls(
            n,
            blocks,
            at,
            right_at,
            [t[:2] for t in triples],
            [t[:2] for t in friction],
            constants,
            [float(t[2]) for t in (*triples, *friction)],
            [0] * (2 * size),
            starts([blocks[home[j][0]].width for j in range(n)]),
            gains,
        )

    def lists(self) -> list[list[int]]:
        """The lists of the record from COORDINATE_FROM on."""
        found: list[list[int]] = []
        for name in ("coordinates", "states", "columns", "combinations"):
            parts = [list(getattr(b, name)) for b in self.blocks]
            if name == "columns":
                parts = [[*b.columns, *[-1] * len(b.combinations)] for b in self.blocks]
            found += [starts([len(p) for p in parts]), [x for p in parts for x in p]]
        flat = [[x for pair in pairs for x in pair] for pairs in (self.triples, self.friction, self.constants)]
        return [*found, self.at, self.right_at, *flat, self.rows, self.servo_at, self.gains]

    def kept(self, rows: Sequence[int], law_forces: bool) -> list[int]:
        """(block, row of it) of components of a state, or (−1 − block, coordinate) of forces of a law."""
        if law_forces:
            own = {j: b for b, one in enumerate(self.blocks) for j in one.coordinates}
            return [x for j in rows for x in (-1 - own[j], j)]
        home: dict[int, tuple[int, int]] = {}
        for b, one in enumerate(self.blocks):
            nb = len(one.coordinates)
            for a, j in enumerate(one.coordinates):
                home[j], home[self.n + j] = (b, a), (b, nb + a)
            for a, j in enumerate(one.states):
                home[2 * self.n + j] = (b, 2 * nb + a)
        return [x for row in rows for x in home[row]]
