"""What the kernels over independent coordinates read and write: the mechanism, room to work in, and what they find, a record each.

Room is made once and used for many steps. It belongs to one caller, because every step writes to it; the mechanism is only read, and
callers share it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.mechanics.compiled import Cube, Matrix, Numbers, Vector
from veridyn.mechanics.natural.kernels.law_code import FIRST
from veridyn.mechanics.natural.kernels.terms import Scratch, Tables


class Slopes(NamedTuple):
    """What p parameters do with unit value: M_i, constant forces, laws of struts and of coordinates' own springs, and shares of other laws,
    as in the tables."""

    mass: Cube  # (p, n, n)
    force: Matrix  # (p, n)
    strut_laws: Cube  # (p, 3, struts)
    line_laws: Cube  # (p, 3, own)
    law_gains: Matrix  # (p, laws)


class Model(NamedTuple):
    """A mechanism over independent coordinates: its tables, the numbers of coordinates, and how unknown forces act, Q = B u.

    The last p columns of B are zero and stand for the parameters of `slopes`.
    """

    t: Tables
    z: Numbers  # (f,) the independent coordinates
    dep: Numbers  # (m,) the others
    B: Matrix  # (n, k)
    slopes: Slopes


def no_slopes(n: int, t: Tables) -> Slopes:
    """The slopes of no parameter, for a mechanism of n coordinates."""
    return Slopes(
        np.zeros((0, n, n)),
        np.zeros((0, n)),
        np.zeros((0, *t.strut_laws.shape)),
        np.zeros((0, *t.line_laws.shape)),
        np.zeros((0, len(t.laws.gain))),
    )


class Room(NamedTuple):
    """Where the kernels work; nothing in it is a result but what ``close`` of ``tangent.py`` leaves for the next.

    n coordinates, m constraints, f degrees of freedom, a angles, x = (z, ż, u) of 2f + k numbers.
    """

    at: Scratch  # terms of the present pose; T is the stiffness K
    C: Matrix  # (n, n) damping
    none: Matrix  # (0, 0), where no tangent is needed
    A: Matrix  # (m, m) factors of the dependent columns of Φ_q, with
    pivot: Numbers
    MR: Matrix  # (n, f)
    mass: Matrix  # (f, f) factors of Rᵀ M R, with
    mass_pivot: Numbers
    bent: Matrix  # (2, 3a) second derivatives of the angles' forms
    x: Vector  # (m,)
    more: Vector  # (m,)
    dq: Vector  # (n,)
    dqd: Vector
    p: Vector
    g: Vector
    start: Vector  # (f,)
    zdd: Vector
    aim: Vector
    speed: Vector
    change: Vector
    a0: Vector
    a1: Vector
    before: Matrix  # (f, 2f + k) derivatives of z̈ where the step starts
    N: Matrix  # (f, f) Newton's matrix of the step, with
    N_pivot: Numbers
    L: Matrix  # (2f, 2f) of the step's derivative, with
    L_pivot: Numbers
    column: Vector  # (2f,)


class Found(NamedTuple):
    """An instant (:class:`~veridyn.mechanics.natural.steps.minimal.Instant`) as the kernels write it."""

    q: Vector
    qd: Vector
    qdd: Vector
    lam: Vector
    R: Matrix
    qd_z: Matrix
    qdd_x: Matrix
    lam_x: Matrix
    F: Matrix


class Desk(NamedTuple):
    """Room and what is found in it, for one caller."""

    room: Room
    found: Found


def desk_of(n: int, m: int, f: int, k: int, a: int, law: int = 0) -> Desk:
    """Room for a mechanism as of :func:`room_of`, and for an instant."""
    return Desk(room_of(n, m, f, k, a, law), found_of(n, m, f, k))


def room_of(n: int, m: int, f: int, k: int, a: int, law: int = 0) -> Room:
    """Room for a mechanism of n coordinates, m constraints, f degrees of freedom, k unknown forces, a angles, and programs of laws of
    at most `law` values (:func:`~veridyn.mechanics.natural.kernels.law_code.law_rows`)."""
    at = Scratch(
        np.empty(n + 1),
        np.empty(m),
        np.zeros((m, n)),
        np.empty(3 * a),
        np.zeros((3 * a, n)),
        np.empty(n),
        np.empty((n, n)),
        np.empty((FIRST + law, 3)),
    )
    return Room(
        at,
        np.empty((n, n)),
        np.empty((0, 0)),
        np.empty((m, m)),
        np.empty(m, dtype=np.int64),
        np.empty((n, f)),
        np.empty((f, f)),
        np.empty(f, dtype=np.int64),
        np.empty((2, 3 * a)),
        np.empty(m),
        np.empty(m),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(f),
        np.empty(f),
        np.empty(f),
        np.empty(f),
        np.empty(f),
        np.empty(f),
        np.empty(f),
        np.empty((f, 2 * f + k)),
        np.empty((f, f)),
        np.empty(f, dtype=np.int64),
        np.empty((2 * f, 2 * f)),
        np.empty(2 * f, dtype=np.int64),
        np.empty(2 * f),
    )


def found_of(n: int, m: int, f: int, k: int) -> Found:
    """Room for one instant."""
    x = 2 * f + k
    return Found(
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(m),
        np.zeros((n, f)),
        np.zeros((n, f)),
        np.zeros((n, x)),
        np.zeros((m, x)),
        np.zeros((2 * f, x)),
    )
