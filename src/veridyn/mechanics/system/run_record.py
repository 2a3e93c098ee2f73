"""The work record of a compiled run: where its state, inputs, friction and sensitivities lie in one array of doubles.

As :mod:`veridyn.mechanics.tree.steps.record`, whose kernels of one sample it calls: sections of W by number, lists of whole numbers behind
them in I. n coordinates, s states of elements' own, a state y = (q, q̇, z) of 2n + s numbers, m combinations of coordinates with dry
friction that holds. Sensitivities lie in blocks: coordinates that no equation ties to each other, as the legs of a walking machine on a
stand, have blocks of their own, each with the columns that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

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
