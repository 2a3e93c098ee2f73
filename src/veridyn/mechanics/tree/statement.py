"""The equations of motion of a tree and their tangent as expressions, for a configuration x, velocities v and accelerations a.

    M(x) a + h(x, v) + Φ_qᵀ λ = Γ,      Φ_q q̈ + b(x, v) = 0

A fixed base has x = q, v = q̇, a = q̈. A free base stands in front: x = (p, e, q) with the position p of its origin in the ground's frame
and its quaternion e (w, x, y, z), v = (V, ω, q̇) and a = (V̇, ω̇, q̈) with V in the ground's axes and ω in the base's own. Rows are forces
in the ground's axes, moments in the base's own, then one for each coordinate, so that M is symmetric. Derivatives with respect to x are
along its tangent (dp, dθ, dq), where the attitude R becomes R exp(dθ).

The recursion is that of :mod:`veridyn.mechanics.newton_euler`, run on symbols; λ are the forces of cut joints. Loads of the tree act with
the values of the inputs c.k, component after component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from veridyn.mechanics.columns import columns
from veridyn.mechanics.forces import all_rows, needs_velocity
from veridyn.mechanics.loading import load_rows
from veridyn.mechanics.loops.equations import Equation
from veridyn.mechanics.loops.equations import equations as loop_equations
from veridyn.mechanics.mass import equations_of_motion
from veridyn.mechanics.newton_euler import State, frames_in_root, outward
from veridyn.mechanics.samples import minus_gravity
from veridyn.model.load import components
from veridyn.model.tree import Tree
from veridyn.spatial.algebra import add, is_zero, mul, sub
from veridyn.spatial.linalg import IDENTITY, ZERO, Vec, rotate, rotate_back, rotation_matrix
from veridyn.symbolic.derivative import along
from veridyn.symbolic.expression import Graph, Number

if TYPE_CHECKING:
    from veridyn.mechanics.formula import Label, Request, Symbols

MASS, LOAD, SLOPES, OPENING, DRIFT = range(5)  # first numbers of the labels of `motion`
BY_X, BY_V, LOOPS_BY_X, LOOPS_BY_V, SLOPE_RATES, COLUMNS = range(6)  # of `tangent`


def motion(s: Symbols, request: Request) -> dict[Label, Number]:
    """M as (0, row, column), −h as (1, row, 0); of the loops' equations `request.rows` Φ_q (2, i, coordinate), Φ (3, i, 0), b (4, i, 0)."""
    tree, body = s.tree, _Base.of(s)
    state = State(_coordinates(s, "q"), _coordinates(s, "qd"), [0.0] * tree.n, w=body.w, v=body.v)
    if not body.free:
        state = State(state.q, state.qd, state.qdd, vd=minus_gravity(tree))
    entries, bias = equations_of_motion(
        tree, state, s.inertias(), s.gains(), s.acting(request.bodies), s.signals(), s.graph
    )
    M = body.turned_matrix(entries, len(tree.rows))
    load = body.turned_rows([mul(-1.0, b) for b in bias])
    for k, rows in enumerate(_loads(s, body)):
        for r, value in enumerate(rows):
            load[r] = add(load[r], mul(s.graph.input(f"c.{k}"), value))
    if body.free:  # the recursion's accelerations are those relative to free fall
        for r in range(len(load)):
            for k in range(3):
                load[r] = add(load[r], mul(M.get((r, k), 0.0), float(tree.gravity[k])))
    found: dict[Label, Number] = {(MASS, r, c): value for (r, c), value in M.items()}
    found |= {(LOAD, r, 0): value for r, value in enumerate(load)}
    for i, equation in _loops(s, request):
        found |= {(SLOPES, i, k): slope for k, slope in equation.slopes.items()}
        found |= {(OPENING, i, 0): equation.value, (DRIFT, i, 0): equation.bias}
    return found


def closing(s: Symbols, request: Request) -> dict[Label, Number]:
    """Of the loops' equations `request.rows`, Φ_q and Φ alone, labelled as by :func:`motion`."""
    found: dict[Label, Number] = {}
    for i, equation in _loops(s, request, still=True):
        found |= {(SLOPES, i, k): slope for k, slope in equation.slopes.items()}
        found[OPENING, i, 0] = equation.value
    return found


def tangent(s: Symbols, request: Request) -> dict[Label, Number]:
    """Derivatives of M a + h + Φ_qᵀ λ and of Φ_q q̈ + b at given a and λ, with respect to x and v.

    (0, row, k) and (1, row, k) of the first, (2, i, k) and (3, i, k) of the second; Φ̇_q as (4, i, coordinate); as (5, row, j) the
    derivatives with respect to `request.columns`: numbers of parameters, whose columns are those of the regressor, or −1 − k for
    component k of the loads.
    """
    tree, graph, body = s.tree, s.graph, _Base.of(s)
    q, qd, qdd = (_coordinates(s, symbol) for symbol in ("q", "qd", "qdd"))
    first = len(tree.rows) - tree.n
    if body.free:
        state = State(q, qd, qdd, w=body.w, wd=s.vector("wd"), vd=body.specific(s.vector("A")), v=body.v)
    else:
        state = State(q, qd, qdd, vd=minus_gravity(tree))
    o = outward(tree, state, graph, needs_velocity(tree))
    rows = all_rows(tree, state, o, s.inertias(), s.gains(), s.acting(request.bodies), s.signals(), graph)
    residual = body.turned_rows(rows)
    pushes = _loads(s, body)
    for k, push in enumerate(pushes):
        for r, value in enumerate(push):
            residual[r] = sub(residual[r], mul(graph.input(f"c.{k}"), value))
    closed: list[Number] = []
    slopes: list[tuple[int, int, Number]] = []
    for i, equation in _loops(s, request):
        force = graph.input(f"l.{i}")
        total: Number = equation.bias
        for k, slope in equation.slopes.items():
            residual[first + k] = add(residual[first + k], mul(slope, force))
            total = add(total, mul(slope, qdd[k]))
            slopes.append((i, k, slope))
        closed.append(total)
    found: dict[Label, Number] = {}
    for which, ways in ((BY_X, body.ways_of_x()), (BY_V, body.ways_of_v())):
        for k, seeds in enumerate(ways):
            if not seeds:
                continue
            moved = along(graph, [*residual, *closed], seeds)
            found |= {(which, r, k): value for r, value in enumerate(moved[: len(residual)])}
            found |= {(which + 2, i, k): value for i, value in enumerate(moved[len(residual) :])}
    rates: dict[str, Number] = {f"q.{k}": rate for k, rate in enumerate(qd)}
    turning = along(graph, [slope for _, _, slope in slopes], rates)
    found |= {(SLOPE_RATES, i, k): value for (i, k, _), value in zip(slopes, turning, strict=True)}
    wanted = [int(c) for c in request.columns]  # pyright: ignore[reportArgumentType]
    for c, entries in columns(tree, state, o, s.signals(), graph, [c for c in wanted if c >= 0]):
        column = body.turned_rows([entries.get(r, 0.0) for r in range(len(tree.rows))])
        found |= {(COLUMNS, r, wanted.index(c)): value for r, value in enumerate(column)}
    for j, c in enumerate(wanted):
        if c < 0:
            found |= {(COLUMNS, r, j): mul(-1.0, value) for r, value in enumerate(pushes[-1 - c])}
    return {label: value for label, value in found.items() if not is_zero(value)}


def _coordinates(s: Symbols, symbol: str) -> list[Number]:
    return [s.graph.input(f"{symbol}.{k}") for k in range(s.tree.n)]


def _loops(s: Symbols, request: Request, still: bool = False) -> list[tuple[int, Equation]]:
    """The equations of the loops that are asked for, numbered from zero."""
    if not s.tree.loops:
        return []
    rates = [0.0] * s.tree.n if still else _coordinates(s, "qd")
    every = loop_equations(s.tree, _coordinates(s, "q"), rates, s.graph)
    return [(i, every[row]) for i, row in enumerate(request.rows)]


def _loads(s: Symbols, body: _Base) -> list[list[Number]]:
    """For each component of the tree's loads, the rows of a unit of it."""
    if not s.tree.loads:
        return []
    tree, still = s.tree, [0.0] * s.tree.n
    o = outward(tree, State(_coordinates(s, "q"), still, still), s.graph)
    frames, R = frames_in_root(tree, o), IDENTITY if body.R is None else body.R
    found: list[list[Number]] = []
    for load in tree.loads:
        for component in range(components(load)):
            rows = load_rows(tree, load, o, frames, component, R)
            found.append(body.turned_rows([rows.get(r, 0.0) for r in range(len(tree.rows))]))
    return found


class _Base:
    """The base of a tree as symbols: the attitude, rates, and directions in which its configuration and velocity can change."""

    def __init__(self, tree: Tree, graph: Graph, free: bool, w: Vec, V: Vec, e: Sequence[Number]) -> None:
        self.tree, self.graph, self.free, self.w, self.e = tree, graph, free, w, e
        self.R = rotation_matrix((e[0], e[1], e[2], e[3])) if free else None
        self.v: Vec = ZERO if self.R is None else rotate_back(self.R, V)

    @classmethod
    def of(cls, s: Symbols) -> _Base:
        if s.tree.base != "free":
            return cls(s.tree, s.graph, False, ZERO, ZERO, ())
        return cls(s.tree, s.graph, True, s.vector("w"), s.vector("V"), [s.graph.input(f"e.{k}") for k in range(4)])

    def specific(self, A: Vec) -> Vec:
        """V̇ − g in the base's axes, from V̇ in the ground's."""
        assert self.R is not None  # only a free base has one
        g = self.tree.gravity
        return rotate_back(self.R, (sub(A[0], float(g[0])), sub(A[1], float(g[1])), sub(A[2], float(g[2]))))

    def turned_rows(self, rows: Sequence[Number]) -> list[Number]:
        """Rows with the base's force in the ground's axes."""
        if self.R is None:
            return list(rows)
        return [*rotate(self.R, (rows[0], rows[1], rows[2])), *rows[3:]]

    def turned_matrix(self, entries: Mapping[tuple[int, int], Number], size: int) -> dict[tuple[int, int], Number]:
        """T M Tᵀ with T that of :meth:`turned_rows`."""
        if self.R is None:
            return dict(entries)
        half = [[entries.get((r, c), 0.0) for r in range(size)] for c in range(size)]  # columns of M
        half = [self.turned_rows(column) for column in half]
        rows = [self.turned_rows([half[c][r] for c in range(size)]) for r in range(size)]
        return {(r, c): rows[r][c] for r in range(size) for c in range(size) if not is_zero(rows[r][c])}

    def ways_of_x(self) -> list[dict[str, Number]]:
        """For each direction of the configuration's tangent, the rates of the inputs; none where nothing depends on it."""
        ways: list[dict[str, Number]] = []
        if self.free:
            w, x, y, z = self.e
            ways += [{}, {}, {}]
            turns = ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))  # e ∘ (0, u) for u = x, y, z
            ways += [{f"e.{i}": mul(0.5, rate) for i, rate in enumerate(turn)} for turn in turns]
        joints: list[dict[str, Number]] = [{f"q.{k}": 1.0} for k in range(self.tree.n)]
        return [*ways, *joints]

    def ways_of_v(self) -> list[dict[str, Number]]:
        names = [f"{symbol}.{k}" for symbol in ("V", "w") for k in range(3)] if self.free else []
        ways: list[dict[str, Number]] = [{name: 1.0} for name in (*names, *(f"qd.{k}" for k in range(self.tree.n)))]
        return ways
