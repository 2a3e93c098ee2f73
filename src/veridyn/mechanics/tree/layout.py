"""Where everything of a tree's step stands in its work record: sections, lists of whole numbers and kernels, by name.

``W[I[M] + i * nv + j]`` is entry (i, j) of the section M (:mod:`veridyn.mechanics.tree.record`). n coordinates, nv velocities, nq numbers
of a configuration, m equations of loops, f degrees of freedom; behind the state (z, ż) stand the unknown quantities: k forces, then what
varies (loads, parameters, constants of elements' laws), then the s states that elements have of their own.
"""

from __future__ import annotations

HEADER = ("free", "n", "nv", "nq", "m", "f", "forces", "varying", "held", "states", "blocks", "advance")
SECTIONS = (
    # what the kernels read: configuration, velocity, acceleration, forces of cut joints, what acts from outside; their parameters
    "X", "V", "A", "LAM", "OUTSIDE", "P_MOTION", "P_TANGENT",
    # what they write: M, Γ − h, the loops' Φ_q, Φ, b and the rates of elements' states; derivatives of all these; Φ_q, Φ while loops close
    "M", "LOAD", "J", "OPENING", "DRIFT", "STATE_RATE",
    "BY_X", "BY_V", "LOOPS_BY_X", "LOOPS_BY_V", "SLOPE_RATES", "COLUMNS", "RATE_BY_X", "RATE_BY_V", "RATE_COLUMNS",
    "J_CLOSING", "OPEN_CLOSING",
    # results: ∂x/∂z, ∂v/∂z; derivatives of a, λ and the states' rates with respect to (z, ż, u); the derivative of the step
    "R", "V_Z", "A_X", "LAM_X", "S_X", "F",
    # given for a step: where it starts, change from there, rates, generalised forces, columns B of the unknown forces, the unknown
    # quantities; q, q̇, q̈ of the prescribed coordinates at the time of the inputs, and the time since then
    "START", "DELTA", "RATE", "EXTRA", "B", "UNIT", "UNKNOWN", "GIVEN", "CLOCK",
    # room; KEPT: the step (s) that the factors of N were made for, 0 where there are none; AGE: the steps since then; PACE: what a change
    # of Newton's method left of the one before when both were last computed, over the age then, and how large that was; 0 before
    "DEP", "MASS", "RM", "N", "BEFORE", "BEFORE_S", "T0", "T1", "NV_A", "NV_B", "M_A", "M_B", "F_B", "A0", "A1", "TRIED",
    "S0", "S1", "S_RATE", "S_SIZE", "LEFT", "CHANGE", "BOTH", "KEPT", "AGE", "ENOUGH", "PACE", "BEGUN", "RIGHT", "LOOPS_RIGHT",
)  # fmt: skip
# Loops that share no dependent coordinate are blocks of their own: block b has the equations EQUATION[i] and the dependent coordinates
# POSITION[i] (numbers in DEPENDENT) for BLOCK[b] <= i < BLOCK[b + 1], its factors begin at DEP + FACTOR[b]. OWN: the velocities that are
# independent rates. Column c of R has entries besides its own in the rows TIED[i] of the velocities, TIED_FROM[c] <= i < TIED_FROM[c + 1],
# and reaches the blocks REACHED[i], REACHED_FROM[c] <= i < REACHED_FROM[c + 1].
LISTS = (
    "Z", "DEPENDENT", "PRESCRIBED", "SLOT_MOTION", "SLOT_TANGENT", "PIVOT_DEP", "PIVOT_MASS", "PIVOT_N",
    "OWN", "BLOCK", "FACTOR", "EQUATION", "POSITION", "TIED_FROM", "TIED", "REACHED_FROM", "REACHED",
)  # fmt: skip
KERNELS = ("MOTION", "TANGENT", "CLOSING")
(FREE, COUNT, COUNT_V, COUNT_Q, LOOPED, FREEDOM, FORCES, VARYING, HELD, STATES, BLOCKS, ADVANCE) = range(len(HEADER))
(
    X, V, A, LAM, OUTSIDE, P_MOTION, P_TANGENT,
    M, LOAD, J, OPENING, DRIFT, STATE_RATE,
    BY_X, BY_V, LOOPS_BY_X, LOOPS_BY_V, SLOPE_RATES, COLUMNS, RATE_BY_X, RATE_BY_V, RATE_COLUMNS,
    J_CLOSING, OPEN_CLOSING,
    R, V_Z, A_X, LAM_X, S_X, F,
    START, DELTA, RATE, EXTRA, B, UNIT, UNKNOWN, GIVEN, CLOCK,
    DEP, MASS, RM, N, BEFORE, BEFORE_S, T0, T1, NV_A, NV_B, M_A, M_B, F_B, A0, A1, TRIED,
    S0, S1, S_RATE, S_SIZE, LEFT, CHANGE, BOTH, KEPT, AGE, ENOUGH, PACE, BEGUN, RIGHT, LOOPS_RIGHT,
) = range(len(HEADER), len(HEADER) + 3 * len(SECTIONS), 3)  # fmt: skip
_after = len(HEADER) + 3 * len(SECTIONS)
(
    Z, DEPENDENT, PRESCRIBED, SLOT_MOTION, SLOT_TANGENT, PIVOT_DEP, PIVOT_MASS, PIVOT_N,
    OWN, BLOCK, FACTOR, EQUATION, POSITION, TIED_FROM, TIED, REACHED_FROM, REACHED,
) = range(_after, _after + 2 * len(LISTS), 2)  # fmt: skip
_after += 2 * len(LISTS)
(MOTION, TANGENT, CLOSING) = range(_after, _after + 6 * len(KERNELS), 6)
DONE, SINGULAR, UNSETTLED = 0, 1, 2  # how a step ended
# What is asked for: position and velocity alone; accelerations; derivatives, the step's too; also those of λ; derivatives at the end alone.
PLACE, STATE, TANGENTS, REACTIONS, SLOPES = -1, 0, 1, 2, 3
