"""The terms of a mechanism's equations as machine code: quadratic forms of the coordinates, constraints and what acts.

    Φ = ½ yᵀ S y,  ∂Φ/∂q = (S y)_q,  y = (q, 1)

The same equations as ``constraints.py`` and ``forces.py`` over the same tables. Everything is planned when these are made:
patterns, sizes and constants of a mechanism never change, so one function serves all mechanisms and is compiled once in a process.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Cube, Matrix, Numbers, Places, Vector, core, summing
from veridyn.mechanics.natural.equations.constraints import CoefficientTable, Constraints
from veridyn.mechanics.natural.equations.forces import ForceTable
from veridyn.mechanics.natural.equations.law_code import FIRST, LawCode, add_law_tangents, add_laws, law_rows

SAME_DIGITS = 14  # decimals to which rows of coefficients agree that differ by rounding alone


class Forms(NamedTuple):
    """A :class:`CoefficientTable`: gradients as multiples of a few compressed sums, and the second derivatives one by one.

    The sum number s, Σ `value` y[`source`] from `start[s]` on, times `scale[k]` is the entry of form `row[k]` at place `column[k]` for
    `used[s]` <= k < `used[s + 1]`: a vector between two points is in many gradients. Sums stand in the order of their lengths and of how
    often they are used, so that the processor foresees where each ends. `pair_…`: the second derivatives form by form, each pair of
    coordinates once.
    """

    rows: int
    start: Places
    source: Places
    value: Vector
    used: Places
    row: Places
    column: Places
    scale: Vector
    bend_row: Numbers
    bend_left: Places
    bend_right: Places
    bend_value: Vector
    pair_start: Places
    pair_left: Places
    pair_right: Places
    pair_value: Vector


def forms_of(t: CoefficientTable) -> Forms:
    """A table for the kernels."""
    start, source, value, used, order, scale = _sums(t.gather)
    left, right = t.bend_place // t.n, t.bend_place % t.n
    keys = (t.bend_row * t.n + np.minimum(left, right)) * t.n + np.maximum(left, right)
    pairs, at = np.unique(keys, return_inverse=True)
    pair_row = pairs // t.n**2

    def places(x: object) -> Places:
        return np.array(x, dtype=np.uint64)

    return Forms(
        t.rows,
        places(start),
        places(source),
        value,
        places(used),
        places(t.row[order]),
        places(t.column[order]),
        scale,
        t.bend_row.astype(np.int64),
        places(left),
        places(right),
        np.array(t.bend_value, dtype=np.float64),
        places(np.searchsorted(pair_row, np.arange(t.rows + 1))),
        places(pairs // t.n % t.n),
        places(pairs % t.n),
        np.bincount(at, t.bend_value, minlength=len(pairs)).astype(np.float64),
    )


def _sums(gather: csr_array) -> tuple[Numbers, Numbers, Array, Numbers, Numbers, Array]:
    """The rows of a matrix that are not multiples of each other, compressed, each with 1 in front.

    Where they begin, their columns and numbers; where the rows of the matrix that are multiples of each begin in a list of all rows, that
    list, and the multiples.
    """
    g = csr_array(gather)
    g.sort_indices()
    indices, numbers = np.asarray(g.indices, dtype=np.int64), np.asarray(g.data, dtype=np.float64)
    ends = np.asarray(g.indptr, dtype=np.int64).tolist()
    rows = [(indices[a:b], numbers[a:b]) for a, b in itertools.pairwise(ends)]
    alike: dict[object, list[int]] = {}
    for k, (at, data) in enumerate(rows):
        key = (tuple(at.tolist()), tuple(np.round(data / data[0], SAME_DIGITS).tolist()))
        alike.setdefault(key, []).append(k)
    groups = sorted(alike.values(), key=lambda group: (len(rows[group[0]][0]), len(group)))
    first = [rows[group[0]] for group in groups]
    order = np.array([k for group in groups for k in group], dtype=np.int64)
    lengths = [len(at) for at, _ in first], [len(group) for group in groups]
    start, used = (np.cumsum([0, *each], dtype=np.int64) for each in lengths)
    source = np.concatenate([np.zeros(0, dtype=np.int64), *(at for at, _ in first)])
    value = np.concatenate([np.zeros(0), *(data / data[0] for _, data in first)])
    return start, source, value, used, order, np.array([rows[k][1][0] for k in order], dtype=np.float64)


@core
def gather(f: Forms, y: Array, values: Array, slopes: Array) -> None:
    """Values and gradients of quadratic forms at y = (q, 1)."""
    n = slopes.shape[1]
    for i in range(f.rows):
        values[i] = 0.0
    for s in range(len(f.start) - 1):
        total = 0.0
        for p in range(f.start[s], f.start[s + 1]):
            total += f.value[p] * y[f.source[p]]
        for k in range(f.used[s], f.used[s + 1]):
            slope = f.scale[k] * total
            values[f.row[k]] += 0.5 * slope * y[f.column[k]]
            if f.column[k] < n:
                slopes[f.row[k], f.column[k]] = slope


@summing
def second(f: Forms, form: int, qd: Array) -> float:
    """q̇ᵀ ∂²Φ/∂q² q̇ of one form."""
    total = 0.0
    for k in range(f.pair_start[form], f.pair_start[form + 1]):
        total += f.pair_value[k] * qd[f.pair_left[k]] * qd[f.pair_right[k]]
    return total


class Tables(NamedTuple):
    """All constants of a mechanism, as the compiled step reads them.

    `…_start` and `…_column`: where rows have numbers, row after row, as in compressed sparse matrices.
    """

    mass: Matrix
    mass_start: Places
    mass_column: Places
    quadratic: Forms
    angles: Forms
    angle_start: Places  # of the three forms of an angle together
    angle_column: Places
    places: Numbers
    held: Numbers
    struts: Cube
    strut_start: Places
    strut_column: Places
    strut_laws: Matrix
    line_start: Places
    line_column: Places
    line_weight: Vector
    line_laws: Matrix
    laws: LawCode


def tables_of(mass: Array, c: Constraints, f: ForceTable) -> Tables:
    """The constants of a mechanism for the kernels."""
    return Tables(
        np.ascontiguousarray(mass),
        *_compressed(mass != 0.0),
        forms_of(c.quadratic),
        forms_of(c.angles),
        *_compressed(np.asarray(_columns(c.angles).reshape(-1, 3, c.n).any(axis=1))),
        c.places.astype(np.int64),
        c.held.astype(np.int64),
        np.ascontiguousarray(f.struts),
        *_compressed((f.struts[:, :, :-1] != 0.0).any(axis=1)),
        np.ascontiguousarray(f.strut_laws),
        *_compressed(f.lines != 0.0),
        f.lines[f.lines != 0.0],
        np.ascontiguousarray(f.line_laws),
        f.laws.code,
    )


def _compressed(filled: NDArray[np.bool_]) -> tuple[Places, Places]:
    """Where each row's columns begin in the list of all of them, and that list."""
    start = np.concatenate([[0], np.cumsum(filled.sum(axis=1))]).astype(np.uint64)
    return start, np.nonzero(filled)[1].astype(np.uint64)


def _columns(t: CoefficientTable) -> NDArray[np.bool_]:
    """Where the gradients of quadratic forms can differ from zero (rows, n)."""
    filled = np.zeros((t.rows, t.n), dtype=np.bool_)
    filled[t.row[t.inside], t.column[t.inside]] = True
    return filled


class Scratch(NamedTuple):
    """What the terms of one pose are written to, made once for many steps."""

    y: Vector
    phi: Vector
    J: Matrix
    AB: Vector
    slopes: Matrix
    Q: Vector
    T: Matrix  # (n, n), or (0, 0) where no tangent is needed
    way: Matrix


def scratch_of(t: Tables, m: int, tangent: bool) -> Scratch:
    """Room for the terms of a mechanism with m constraints."""
    n, a = len(t.mass), len(t.places)
    size = n if tangent else 0
    return Scratch(
        np.empty(n + 1),
        np.empty(m),
        np.zeros((m, n)),
        np.empty(3 * a),
        np.zeros((3 * a, n)),
        np.empty(n),
        np.empty((size, size)),
        np.empty((FIRST + law_rows(t.laws), 3)),
    )


@core
def turned(turnings: Array, values: Array, out: Array) -> None:
    """Σ values · turnings, the forces that are linear in q; nothing where there are none."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(len(turnings)):
                s += values[k] * turnings[k, i, j]
            out[i, j] = s


@core
def constraints_at(t: Tables, q: Array, y: Array, phi: Array, J: Array, AB: Array, slopes: Array) -> None:
    """Φ and Φ_q; A, B and their gradients are left in `AB` and `slopes`."""
    n, a = len(q), len(t.places)
    k = len(phi) - a
    for i in range(n):
        y[i] = q[i]
    y[n] = 1.0
    gather(t.quadratic, y, phi, J)
    if a == 0:
        return
    gather(t.angles, y, AB, slopes)
    for i in range(a):
        p = t.places[i]
        s, c = np.sin(q[p]), np.cos(q[p])
        phi[k + i] = s * AB[3 * i] - c * AB[3 * i + 1] - AB[3 * i + 2]
        J[k + i, p] = 0.0
        for at in range(t.angle_start[i], t.angle_start[i + 1]):
            j = t.angle_column[at]
            J[k + i, j] = s * slopes[3 * i, j] - c * slopes[3 * i + 1, j] - slopes[3 * i + 2, j]
        J[k + i, p] += c * AB[3 * i] + s * AB[3 * i + 1]


@core
def constrain(t: Tables, at: Scratch, led: Array, q: Array) -> float:
    """Φ and Φ_q at q, prescribed coordinates where they are `led`; the largest |Φ|."""
    constraints_at(t, q, at.y, at.phi, at.J, at.AB, at.slopes)
    for i in range(len(t.held)):
        at.phi[t.held[i]] -= led[0, i]
    off = 0.0
    for i in range(len(at.phi)):
        off = max(off, abs(at.phi[i]))
    return off


@core
def set_rates(t: Tables, led: Array, target: Array) -> None:
    """Φ_q q̇ of a motion on the constraints: zero, and the rates of prescribed coordinates."""
    for i in range(len(target)):
        target[i] = 0.0
    for i in range(len(t.held)):
        target[t.held[i]] = led[1, i]


@core
def set_second_rates(t: Tables, at: Scratch, led: Array, q: Array, qd: Array, target: Array) -> None:
    """Φ_q q̈ of such a motion, after :func:`constrain` at the same q."""
    drift(t, q, qd, at.AB, at.slopes, target)
    for i in range(len(target)):
        target[i] = -target[i]
    for i in range(len(t.held)):
        target[t.held[i]] += led[2, i]


@core
def form_weight(form: int, angle: Any) -> float:
    """How the three forms of an angle count in its constraint: sin φ A − cos φ B − C."""
    if form == 0:
        return float(np.sin(angle))
    return float(-np.cos(angle)) if form == 1 else -1.0


@core
def line_at(t: Tables, e: int, x: Array) -> float:
    """Σ aᵢ xᵢ of a combination of coordinates, or of their rates."""
    total = 0.0
    for at in range(t.line_start[e], t.line_start[e + 1]):
        total += t.line_weight[at] * x[t.line_column[at]]
    return total


@core
def add_line(t: Tables, e: int, force: float, Q: Array) -> None:
    """What a force on a combination of coordinates does to each of them."""
    for at in range(t.line_start[e], t.line_start[e + 1]):
        Q[t.line_column[at]] += t.line_weight[at] * force


@core
def strut_at(t: Tables, e: int, q: Array, qd: Array, way: Array) -> tuple[float, float]:
    """Length of a strut and its rate; its direction and the relative velocity of its ends are left in way[0] and way[1]."""
    n, u, v, length, rate = len(q), way[0], way[1], 0.0, 0.0
    for a in range(t.struts.shape[1]):
        u[a], v[a] = t.struts[e, a, n], 0.0
        for at in range(t.strut_start[e], t.strut_start[e + 1]):
            j = t.strut_column[at]
            u[a] += t.struts[e, a, j] * q[j]
            v[a] += t.struts[e, a, j] * qd[j]
        length += u[a] * u[a]
    length = np.sqrt(length)
    for a in range(t.struts.shape[1]):
        u[a] /= length
        rate += u[a] * v[a]
    return length, rate


@core
def pull_strut(t: Tables, e: int, force: float, u: Array, Q: Array) -> None:
    """What a tension along the direction u does to the coordinates that move the strut's ends."""
    for at in range(t.strut_start[e], t.strut_start[e + 1]):
        j = t.strut_column[at]
        for a in range(t.struts.shape[1]):
            Q[j] -= t.struts[e, a, j] * u[a] * force


@core
def drift(t: Tables, q: Array, qd: Array, AB: Array, slopes: Array, out: Array) -> None:
    """Φ̇_q q̇, after :func:`constraints_at` at the same q."""
    a = len(t.places)
    k = len(out) - a
    for i in range(t.quadratic.rows):
        out[i] = second(t.quadratic, i, qd)
    for i in range(a):
        p = t.places[i]
        s, c, w = np.sin(q[p]), np.cos(q[p]), qd[p]
        A, B, Ad, Bd = AB[3 * i], AB[3 * i + 1], 0.0, 0.0
        for at in range(t.angle_start[i], t.angle_start[i + 1]):
            j = t.angle_column[at]
            Ad += slopes[3 * i, j] * qd[j]
            Bd += slopes[3 * i + 1, j] * qd[j]
        out[k + i] = 2.0 * w * (c * Ad + s * Bd) + w * w * (c * B - s * A)
        out[k + i] += s * second(t.angles, 3 * i, qd) - c * second(t.angles, 3 * i + 1, qd)
        out[k + i] -= second(t.angles, 3 * i + 2, qd)


@core
def curvature(t: Tables, q: Array, lam: Array, AB: Array, slopes: Array, scale: float, out: Array) -> None:
    """Add scale ∂(Φ_qᵀ λ)/∂q, after :func:`constraints_at` at the same q."""
    a = len(t.places)
    k = len(lam) - a
    f = t.quadratic
    for j in range(len(f.bend_row)):
        out[f.bend_left[j], f.bend_right[j]] += scale * f.bend_value[j] * lam[f.bend_row[j]]
    if a == 0:
        return
    f, last, weight = t.angles, -1, 0.0
    for j in range(len(f.bend_row)):
        if f.bend_row[j] != last:
            last = f.bend_row[j]
            weight = scale * lam[k + last // 3] * form_weight(last % 3, q[t.places[last // 3]])
        out[f.bend_left[j], f.bend_right[j]] += f.bend_value[j] * weight
    for i in range(a):
        p = t.places[i]
        s, c, w = np.sin(q[p]), np.cos(q[p]), scale * lam[k + i]
        for at in range(t.angle_start[i], t.angle_start[i + 1]):
            j = t.angle_column[at]
            mixed = w * (c * slopes[3 * i, j] + s * slopes[3 * i + 1, j])
            out[p, j] += mixed
            out[j, p] += mixed
        out[p, p] += w * (c * AB[3 * i + 1] - s * AB[3 * i])


@core
def acting(
    t: Tables, load: Array, turning: Array, q: Array, qd: Array, wk: float, wc: float, Q: Array, T: Array, way: Array
) -> None:
    """Q, and T = M + wk K + wc C unless T is empty; `way` is room for one strut and one law."""
    n, tangent = len(q), len(T) > 0
    for i in range(n):
        Q[i] = load[i]
    if len(turning):
        for i in range(n):
            for j in range(n):
                Q[i] += turning[i, j] * q[j]
            Q[i] += turning[i, n]
    for e in range(len(t.line_start) - 1):
        k, rest, c = t.line_laws[0, e], t.line_laws[1, e], t.line_laws[2, e]
        add_line(t, e, -(k * (line_at(t, e, q) - rest) + c * line_at(t, e, qd)), Q)
    for e in range(len(t.struts)):
        k, rest, c = t.strut_laws[0, e], t.strut_laws[1, e], t.strut_laws[2, e]
        length, rate = strut_at(t, e, q, qd, way)
        pull_strut(t, e, k * (length - rest) + c * rate, way[0], Q)
    add_laws(t.laws, q, qd, way, Q)
    if tangent:
        for i in range(n):
            for j in range(n):
                T[i, j] = t.mass[i, j]
        if len(turning):
            for i in range(n):
                for j in range(n):
                    T[i, j] -= wk * turning[i, j]
        add_tangents(t, q, qd, wk, wc, T, way)


@core
def add_tangents(t: Tables, q: Array, qd: Array, wk: float, wc: float, T: Array, way: Array) -> None:
    """Add wk K + wc C of laws, and of springs and dampers on combinations of coordinates and between points."""
    add_law_tangents(t.laws, q, qd, wk, wc, way, T)
    for e in range(len(t.line_start) - 1):
        weight = wk * t.line_laws[0, e] + wc * t.line_laws[2, e]
        for i in range(t.line_start[e], t.line_start[e + 1]):
            for j in range(t.line_start[e], t.line_start[e + 1]):
                T[t.line_column[i], t.line_column[j]] += weight * (t.line_weight[i] * t.line_weight[j])
    dim, u, v, inner = t.struts.shape[1], way[0], way[1], way[2:]
    for e in range(len(t.struts)):
        k, rest, c = t.strut_laws[0, e], t.strut_laws[1, e], t.strut_laws[2, e]
        length, rate = strut_at(t, e, q, qd, way)
        f = k * (length - rest) + c * rate
        for a in range(dim):
            for b in range(dim):
                inner[a, b] = (wk * (k - f / length) + wc * c) * u[a] * u[b] + wk * c * u[a] * (
                    v[b] - rate * u[b]
                ) / length
            inner[a, a] += wk * f / length
        for at in range(t.strut_start[e], t.strut_start[e + 1]):
            i = t.strut_column[at]
            for b in range(dim):  # in the place of the relative velocity, which has been used
                v[b] = 0.0
                for a in range(dim):
                    v[b] += t.struts[e, a, i] * inner[a, b]
            for to in range(t.strut_start[e], t.strut_start[e + 1]):
                j = t.strut_column[to]
                total = 0.0
                for b in range(dim):
                    total += v[b] * t.struts[e, b, j]
                T[i, j] += total
