"""Accelerations of a mechanism over independent coordinates z, with their exact derivatives, as machine code.

    (Rᵀ M R) z̈ = Rᵀ (Q − M c),   q̈ = R z̈ + c,   Φ_q c = −Φ̇_q q̇,   Φ_qᵀ λ = Q − M q̈

Along a change dx of z, ż or a force u the constraints and the equations of motion stay satisfied, so that

    Φ_q dq̈ = −Φ_qq[dq, q̈] − 2 Φ_qq[q̇, dq̇] − Φ_qqq[dq, q̇, q̇],    M dq̈ + Φ_qᵀ dλ = dQ − ∂(Φ_qᵀ λ)/∂q dq,

with dq = R dz and dq̇ = (∂R/∂z dz) ż + R dż. One factorisation of the dependent columns of Φ_q serves all of it. Paper 003 writes the
same derivatives out by hand for its four-bar (`Rq` of its appendix, which is misprinted).

Kernels read the mechanism, which callers share, and write to room that is made once for many steps and belongs to one caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Cube, Matrix, Numbers, Vector, core
from veridyn.mechanics.linear import factor, solve, solve_transposed
from veridyn.mechanics.natural.equations.law_code import add_law
from veridyn.mechanics.natural.equations.terms import (
    Forms,
    Scratch,
    Tables,
    acting,
    add_line,
    constraints_at,
    curvature,
    drift,
    line_at,
    pull_strut,
    scratch_of,
    strut_at,
)


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
    A: Matrix  # (m, m) factors of the dependent columns of Φ_q
    MR: Matrix  # (n, f)
    mass: Matrix  # (f, f) factors of Rᵀ M R
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
    N: Matrix  # (f, f) Newton's matrix of the step
    L: Matrix  # (2f, 2f) of the step's derivative
    column: Vector  # (2f,)
    pivot: Numbers  # (m,) rows of A that were exchanged
    mass_pivot: Numbers  # (f,)
    N_pivot: Numbers  # (f,)
    L_pivot: Numbers  # (2f,)


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


def desk_of(t: Tables, m: int, f: int, k: int) -> Desk:
    """Room for a mechanism as of :func:`room_of`, and for an instant."""
    return Desk(room_of(t, m, f, k), found_of(len(t.mass), m, f, k))


def room_of(t: Tables, m: int, f: int, k: int) -> Room:
    """Room for a mechanism with m constraints, f degrees of freedom and k unknown forces."""
    n = len(t.mass)
    matrices = ((n, n), (0, 0), (m, m), (n, f), (f, f), (2, 3 * len(t.places)))
    vectors = (m, m, n, n, n, n, f, f, f, f, f, f, f)
    of_steps = ((f, 2 * f + k), (f, f), (2 * f, 2 * f), 2 * f)
    return Room(
        scratch_of(t, m, True),
        *(np.empty(size) for size in (*matrices, *vectors, *of_steps)),
        pivot=np.empty(m, dtype=np.int64),
        mass_pivot=np.empty(f, dtype=np.int64),
        N_pivot=np.empty(f, dtype=np.int64),
        L_pivot=np.empty(2 * f, dtype=np.int64),
    )


def found_of(n: int, m: int, f: int, k: int) -> Found:
    """Room for one instant."""
    sizes = ((n, f), (n, f), (n, 2 * f + k), (m, 2 * f + k), (2 * f, 2 * f + k))
    return Found(*(np.empty(size) for size in (n, n, n, m)), *(np.zeros(size) for size in sizes))


MAX_NEWTON_STEPS = 30
CLOSED_RATIO = 1e-13  # of the constraints, relative to the square of the mechanism's size
COORDINATE_STRIDE = 0.1  # of the mechanism's size: a longer way of a coordinate is gone in pieces


@core
def second_along(f: Forms, v: Array, w: Array, out: Array) -> None:
    """vᵀ ∂²Φ/∂q² w of quadratic forms."""
    for i in range(f.rows):
        out[i] = 0.0
    for k in range(len(f.bend_row)):
        out[f.bend_row[k]] += f.bend_value[k] * v[f.bend_left[k]] * w[f.bend_right[k]]


@core
def bend(t: Tables, w: Room, q: Array, u: Array, v: Array, out: Array) -> None:
    """Φ_qq[u, v] (m,), after `constraints_at` at the same q."""
    f, a = t.quadratic, len(t.places)
    second_along(f, u, v, out)
    if a == 0:
        return
    f = t.angles
    bent, first, AB, slopes = w.bent[0], len(out) - a, w.at.AB, w.at.slopes
    second_along(f, u, v, bent)
    for i in range(a):
        p = t.places[i]
        s, c, Au, Bu, Av, Bv = np.sin(q[p]), np.cos(q[p]), 0.0, 0.0, 0.0, 0.0
        for at in range(t.angle_start[i], t.angle_start[i + 1]):
            j = t.angle_column[at]
            Au += slopes[3 * i, j] * u[j]
            Bu += slopes[3 * i + 1, j] * u[j]
            Av += slopes[3 * i, j] * v[j]
            Bv += slopes[3 * i + 1, j] * v[j]
        mixed = u[p] * (c * Av + s * Bv) + v[p] * (c * Au + s * Bu)
        own = u[p] * v[p] * (c * AB[3 * i + 1] - s * AB[3 * i])
        out[first + i] = s * bent[3 * i] - c * bent[3 * i + 1] - bent[3 * i + 2] + mixed + own


@core
def add_third(t: Tables, room: Room, q: Array, d: Array, v: Array, out: Array) -> None:
    """Add Φ_qqq[d, v, v] to `out` (m,); only angles have one."""
    a = len(t.places)
    if a == 0:
        return
    f, AB, slopes = t.angles, room.at.AB, room.at.slopes
    vv, dv, first = room.bent[0], room.bent[1], len(out) - a
    second_along(f, v, v, vv)
    second_along(f, d, v, dv)
    for i in range(a):
        p = t.places[i]
        s, c, w, e = np.sin(q[p]), np.cos(q[p]), v[p], d[p]
        Av, Bv, Ad, Bd = 0.0, 0.0, 0.0, 0.0
        for at in range(t.angle_start[i], t.angle_start[i + 1]):
            j = t.angle_column[at]
            Av += slopes[3 * i, j] * v[j]
            Bv += slopes[3 * i + 1, j] * v[j]
            Ad += slopes[3 * i, j] * d[j]
            Bd += slopes[3 * i + 1, j] * d[j]
        turned = 2.0 * e * w * (c * Bv - s * Av) + w * w * (c * Bd - s * Ad)
        curved = e * (c * vv[3 * i] + s * vv[3 * i + 1]) + 2.0 * w * (c * dv[3 * i] + s * dv[3 * i + 1])
        out[first + i] += turned + curved - e * w * w * (c * AB[3 * i] + s * AB[3 * i + 1])


@core
def reduce_columns(m: Model, w: Room, R: Array) -> None:
    """R with Φ_q R = 0 and unit rows for z, from the factors of the dependent columns."""
    z, dep, x, J = m.z, m.dep, w.x, w.at.J
    for c in range(len(z)):
        for i in range(len(dep)):
            x[i] = -J[i, z[c]]
        solve(w.A, w.pivot, x)
        for i in range(len(dep)):
            R[dep[i], c] = x[i]
        for i in range(len(z)):
            R[z[i], c] = 1.0 if i == c else 0.0


@core
def close(m: Model, w: Room, q: Array, target: Array, R: Array, known: bool) -> bool:
    """Move q to z = `target` on Φ = 0 by Newton's method, in pieces where the way is long; True when it is closed there.

    Leaves Φ_q, its factors and R of the new pose behind; `known`: those of the present pose are there already.
    """
    z, dep, x, start, phi, A, J = m.z, m.dep, w.x, w.start, w.at.phi, w.A, w.at.J
    n, f, count = len(q), len(z), len(dep)
    size, longest, pieces = 1.0, 0.0, 1
    for i in range(n):
        size = max(size, abs(q[i]))
    for c in range(f):
        start[c] = q[z[c]]
    piece = 0 if not known else 1
    while piece <= pieces:
        if piece == 1:
            for i in range(n):
                s = 0.0
                for c in range(f):
                    s += R[i, c] * (target[c] - start[c])
                longest = max(longest, abs(s))
            if not np.isfinite(longest):
                return False
            pieces = 1 + min(int(longest / (COORDINATE_STRIDE * size)), 1000)
        if piece > 0:
            for i in range(count):
                for c in range(f):
                    q[dep[i]] += R[dep[i], c] * (target[c] - start[c]) / pieces
            for c in range(f):
                q[z[c]] = target[c] if piece == pieces else start[c] + (target[c] - start[c]) * piece / pieces
        closed = False
        for _ in range(MAX_NEWTON_STEPS):
            constraints_at(m.t, q, w.at.y, phi, J, w.at.AB, w.at.slopes)
            off = 0.0
            for i in range(count):
                off = max(off, abs(phi[i]))
                x[i] = -phi[i]
                for j in range(count):
                    A[i, j] = J[i, dep[j]]
            if not (np.isfinite(off) and factor(A, w.pivot)):
                return False
            if off <= CLOSED_RATIO * size * size:
                closed = True
                break
            solve(A, w.pivot, x)
            for i in range(count):
                q[dep[i]] += x[i]
        if not closed:
            return False
        reduce_columns(m, w, R)
        if piece == 0:
            arrived = True
            for c in range(f):
                arrived = arrived and target[c] == start[c]
            if arrived:
                return True
        piece += 1
    return True


@core
def accelerate(m: Model, w: Room, load: Array, turning: Array, at: Found) -> bool:
    """q̈ and λ at a closed pose; leaves M R and the factors of Rᵀ M R behind. False where no mass resists."""
    t, z, dep, q, R, qdd, lam = m.t, m.z, m.dep, at.q, at.R, at.qdd, at.lam
    n, f, Q, zdd, MR, mass = len(q), len(z), w.at.Q, w.zdd, w.MR, w.mass
    acting(t, load, turning, q, at.qd, 0.0, 0.0, Q, w.none, w.at.way)
    drift(t, q, at.qd, w.at.AB, w.at.slopes, lam)
    solve(w.A, w.pivot, lam)
    for i in range(f):
        qdd[z[i]] = 0.0
        zdd[i] = 0.0
    for i in range(len(dep)):
        qdd[dep[i]] = -lam[i]
    for i in range(n):
        s = Q[i]
        for j in range(n):
            s -= t.mass[i, j] * qdd[j]
        for c in range(f):
            zdd[c] += R[i, c] * s
            s_c = 0.0
            for j in range(n):
                s_c += t.mass[i, j] * R[j, c]
            MR[i, c] = s_c
    for c in range(f):
        for d in range(f):
            s = 0.0
            for i in range(n):
                s += R[i, c] * MR[i, d]
            mass[c, d] = s
    if not factor(mass, w.mass_pivot):
        return False
    solve(mass, w.mass_pivot, zdd)
    for i in range(n):
        for c in range(f):
            qdd[i] += R[i, c] * zdd[c]
    for i in range(len(dep)):
        s = Q[dep[i]]
        for j in range(n):
            s -= t.mass[dep[i], j] * qdd[j]
        lam[i] = s
    solve_transposed(w.A, w.pivot, lam)
    return True


@core
def parameter_force(m: Model, k: int, at: Found, way: Array, out: Array) -> None:
    """Q_k − M_k q̈ (n,) of the k-th parameter: how the equations change with it; `way` is room for one strut and one law."""
    t, s, q, qd = m.t, m.slopes, at.q, at.qd
    n = len(q)
    for i in range(n):
        total = s.force[k, i]
        for j in range(n):
            total -= s.mass[k, i, j] * at.qdd[j]
        out[i] = total
    for e in range(len(t.line_start) - 1):
        stretch = line_at(t, e, q) - s.line_laws[k, 1, e]
        add_line(t, e, -(s.line_laws[k, 0, e] * stretch + s.line_laws[k, 2, e] * line_at(t, e, qd)), out)
    for e in range(len(t.struts)):
        length, rate = strut_at(t, e, q, qd, way)
        f = s.strut_laws[k, 0, e] * (length - s.strut_laws[k, 1, e]) + s.strut_laws[k, 2, e] * rate
        pull_strut(t, e, f, way[0], out)
    for e in range(len(t.laws.gain)):
        add_law(t.laws, e, s.law_gains[k, e], q, qd, way, out)


@core
def differentiate(m: Model, w: Room, load: Array, turning: Array, at: Found) -> None:
    """∂q̇/∂z (n, f), ∂q̈/∂x (n, 2f + k) and ∂λ/∂x for x = (z, ż, u), where the forces B u act; after `accelerate`.

    The last columns are those of the parameters of ``m.slopes``.
    """
    t, z, dep, B, q, R = m.t, m.z, m.dep, m.B, at.q, at.R
    n, f, count = len(q), len(z), len(dep)
    parameters = 2 * f + B.shape[1] - len(m.slopes.mass)  # the first column of those
    K, C, dq, dqd, p, g, da, x, more = w.at.T, w.C, w.dq, w.dqd, w.p, w.g, w.zdd, w.x, w.more
    acting(t, load, turning, q, at.qd, 1.0, 0.0, p, K, w.at.way)
    acting(t, load, turning, q, at.qd, 0.0, 1.0, p, C, w.at.way)
    for i in range(n):
        for j in range(n):
            K[i, j] -= t.mass[i, j]
            C[i, j] -= t.mass[i, j]
    curvature(t, q, at.lam, w.at.AB, w.at.slopes, 1.0, K)
    for column in range(2 * f + B.shape[1]):
        for i in range(n):
            dq[i] = R[i, column] if column < f else 0.0
            dqd[i] = R[i, column - f] if f <= column < 2 * f else 0.0
            g[i] = B[i, column - 2 * f] if column >= 2 * f else 0.0
            p[i] = 0.0
        if column >= parameters:
            parameter_force(m, column - parameters, at, w.at.way, g)
        for i in range(count):
            x[i] = 0.0
        if column < f:
            bend(t, w, q, dq, at.qd, more)
            solve(w.A, w.pivot, more)
            for i in range(count):
                dqd[dep[i]] = -more[i]
            for i in range(n):
                at.qd_z[i, column] = dqd[i]
            bend(t, w, q, dq, at.qdd, x)
            add_third(t, w, q, dq, at.qd, x)
        if column < 2 * f:
            bend(t, w, q, at.qd, dqd, more)
            for i in range(count):
                x[i] += 2.0 * more[i]
            solve(w.A, w.pivot, x)
            for i in range(count):
                p[dep[i]] = -x[i]
            for i in range(n):
                for j in range(n):
                    g[i] -= K[i, j] * dq[j] + C[i, j] * dqd[j]
        for c in range(f):
            s = 0.0
            for i in range(n):
                s += R[i, c] * g[i] - w.MR[i, c] * p[i]
            da[c] = s
        solve(w.mass, w.mass_pivot, da)
        for i in range(n):
            s = p[i]
            for c in range(f):
                s += R[i, c] * da[c]
            at.qdd_x[i, column] = s
        for i in range(count):
            s = g[dep[i]]
            for j in range(n):
                s -= t.mass[dep[i], j] * at.qdd_x[j, column]
            more[i] = s
        solve_transposed(w.A, w.pivot, more)
        for i in range(count):
            at.lam_x[i, column] = more[i]
