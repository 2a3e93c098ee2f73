"""The equations of motion of a tree and their tangent as expressions, for a configuration x, velocities v and accelerations a.

    M(x) a + h(x, v) + Φ_qᵀ λ = Γ,      Φ_q q̈ + b(x, v) = 0

A fixed base has x = q, v = q̇, a = q̈. A free base stands in front: x = (p, e, q) with the position p of its origin in the ground's frame
and its quaternion e (w, x, y, z), v = (V, ω, q̇) and a = (V̇, ω̇, q̈) with V in the ground's axes and ω in the base's own. Rows are forces
in the ground's axes, moments in the base's own, then one for each coordinate, so that M is symmetric. Derivatives with respect to x are
along its tangent (dp, dθ, dq), where the attitude R becomes R exp(dθ).

The recursion is that of :mod:`veridyn.mechanics.tree.recursion.newton_euler`, run on symbols; λ are the forces of cut joints. Loads of the
tree act with the values of the inputs c.k, component after component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from veridyn.mechanics.tree.loops.equations import Equation
from veridyn.mechanics.tree.loops.equations import equations as loop_equations
from veridyn.mechanics.tree.recursion.equations import all_rows, columns, equations_of_motion, state_rates
from veridyn.mechanics.tree.recursion.inputs import Label, Request, Symbols, minus_gravity, needs_velocity
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, frames_in_root, outward
from veridyn.mechanics.tree.recursion.sensing import load_rows
from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.algebra import IDENTITY, ZERO, Vec, add, is_zero, mul, rotate, rotate_back, rotation_matrix, sub
from veridyn.symbolic.expression import Number, along

MASS, LOAD, SLOPES, OPENING, DRIFT, STATE_RATE = range(6)  # first numbers of the labels of `motion`
BY_X, BY_V, LOOPS_BY_X, LOOPS_BY_V, SLOPE_RATES, COLUMNS, RATE_BY_X, RATE_BY_V, RATE_COLUMNS = range(9)  # of `tangent`
Column = tuple[str, int]  # "parameter", "load" (a component), "constant" or "state", and its number
PREFIXES = {"parameter": "p", "load": "c", "constant": "const"}


def column_of(tree: Tree, name: str) -> Column | None:
    """What a name stands for that can be a state of an observer: a component of a load, a parameter, or a constant of a law."""
    known: dict[str, list[str]] = {
        "load": list(tree.load_channels),
        "parameter": list(tree.parameters.names),
        "constant": [c.name for c in tree.constants],
        "state": [s.name for s in tree.states],
    }
    return next(((kind, names.index(name)) for kind, names in known.items() if name in names), None)


def input_of(tree: Tree, column: Column) -> str:
    """The input of kernels by which a column enters."""
    kind, number = column
    return f"s.{tree.states[number].name}" if kind == "state" else f"{PREFIXES[kind]}.{number}"


def motion(s: Symbols, request: Request) -> dict[Label, Number]:
    """M as (0, row, column), −h as (1, row, 0); of the loops' equations `request.rows` Φ_q (2, i, coordinate), Φ (3, i, 0), b (4, i, 0).

    As (5, i, 0) the rates of the states that elements have of their own.
    """
    tree, body = s.tree, Base.of(s)
    R, p = s.pose()
    state = State(_coordinates(s, "q"), _coordinates(s, "qd"), [0.0] * tree.n, w=body.w, v=body.v, R=R, p=p)
    if not body.free:
        state = State(state.q, state.qd, state.qdd, vd=minus_gravity(tree))
    entries, bias = equations_of_motion(
        tree, state, s.inertias(), s.gains(), s.acting(request.bodies), s.signals(), s.graph
    )
    M = body.turned_matrix(entries, len(tree.rows))
    load = body.turned_rows([mul(-1.0, b) for b in bias])
    for k, rows in enumerate(load_columns(s, body)):
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
    return found | {(STATE_RATE, i, 0): rate for i, rate in enumerate(_rates(s, state))}


def _rates(s: Symbols, state: State) -> list[Number]:
    """The rates of the states of elements."""
    if not s.tree.states:
        return []
    o = outward(s.tree, state, s.graph, needs_velocity(s.tree))
    return state_rates(s.tree, state, o, s.signals(), s.graph)


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
    derivatives of the first with respect to `request.columns`, each a :data:`Column`. As (6, i, k), (7, i, k) and (8, i, j) the derivatives
    of the rates of elements' states, with respect to x, v and the columns.
    """
    tree, graph, body = s.tree, s.graph, Base.of(s)
    qd, qdd = (_coordinates(s, symbol) for symbol in ("qd", "qdd"))
    first = len(tree.rows) - tree.n
    state = body.accelerating(s)
    o = outward(tree, state, graph, needs_velocity(tree))
    pushes = load_columns(s, body)
    residual, rates = residual_rows(s, request.bodies, body, state, o, pushes), _rates(s, state)
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
            moved = along(graph, [*residual, *closed, *rates], seeds)
            after = len(residual) + len(closed)
            found |= {(which, r, k): value for r, value in enumerate(moved[: len(residual)])}
            found |= {(which + 2, i, k): value for i, value in enumerate(moved[len(residual) : after])}
            found |= {(which + RATE_BY_X, i, k): value for i, value in enumerate(moved[after:])}
    moving: dict[str, Number] = {f"q.{k}": rate for k, rate in enumerate(qd)}
    turning = along(graph, [slope for _, _, slope in slopes], moving)
    found |= {(SLOPE_RATES, i, k): value for (i, k, _), value in zip(slopes, turning, strict=True)}
    wanted = [cast(Column, c) for c in request.columns]
    parameters = [c for kind, c in wanted if kind == "parameter"]
    for c, entries in columns(tree, state, o, s.signals(), graph, parameters):  # those of the regressor
        column = body.turned_rows([entries.get(r, 0.0) for r in range(len(tree.rows))])
        found |= {(COLUMNS, r, wanted.index(("parameter", c))): value for r, value in enumerate(column)}
    for j, column in enumerate(wanted):
        if column[0] == "load":
            found |= {(COLUMNS, r, j): mul(-1.0, value) for r, value in enumerate(pushes[column[1]])}
        elif column[0] != "parameter":
            moved = along(graph, [*residual, *rates], {input_of(tree, column): 1.0})
            found |= {(COLUMNS, r, j): value for r, value in enumerate(moved[: len(residual)])}
            found |= {(RATE_COLUMNS, i, j): value for i, value in enumerate(moved[len(residual) :])}
    return {label: value for label, value in found.items() if not is_zero(value)}


def residual_rows(
    s: Symbols, bodies: Sequence[int], body: Base, state: State, o: Outward, pushes: Sequence[Sequence[Number]]
) -> list[Number]:
    """M a + h less the loads: what the forces on coordinates and those of cut joints must make; base rows as those of M."""
    rows = all_rows(s.tree, state, o, s.inertias(), s.gains(), s.acting(bodies), s.signals(), s.graph)
    residual = body.turned_rows(rows)
    for k, push in enumerate(pushes):
        for r, value in enumerate(push):
            residual[r] = sub(residual[r], mul(s.graph.input(f"c.{k}"), value))
    return residual


def _coordinates(s: Symbols, symbol: str) -> list[Number]:
    return [s.graph.input(f"{symbol}.{k}") for k in range(s.tree.n)]


def _loops(s: Symbols, request: Request, still: bool = False) -> list[tuple[int, Equation]]:
    """The equations of the loops that the request names, numbered from zero."""
    if not s.tree.loops:
        return []
    rates = [0.0] * s.tree.n if still else _coordinates(s, "qd")
    every = loop_equations(s.tree, _coordinates(s, "q"), rates, s.graph)
    return [(i, every[row]) for i, row in enumerate(request.rows)]


def load_columns(s: Symbols, body: Base) -> list[list[Number]]:
    """For each component of the tree's loads, the rows of a unit of it."""
    if not s.tree.loads:
        return []
    tree, still = s.tree, [0.0] * s.tree.n
    o = outward(tree, State(_coordinates(s, "q"), still, still), s.graph)
    frames, R = frames_in_root(tree, o), IDENTITY if body.R is None else body.R
    found: list[list[Number]] = []
    for load in tree.loads:
        for component in range(load.components):
            rows = load_rows(tree, load, o, frames, component, R)
            found.append(body.turned_rows([rows.get(r, 0.0) for r in range(len(tree.rows))]))
    return found


class Base:
    """The base of a tree as symbols: the attitude, rates, and directions in which its configuration and velocity can change."""

    def __init__(self, tree: Tree, free: bool, w: Vec, V: Vec, e: Sequence[Number]) -> None:
        self.tree, self.free, self.w, self.e = tree, free, w, e
        self.R = rotation_matrix((e[0], e[1], e[2], e[3])) if free else None
        self.v: Vec = ZERO if self.R is None else rotate_back(self.R, V)

    @classmethod
    def of(cls, s: Symbols) -> Base:
        if s.tree.base != "free":
            return cls(s.tree, False, ZERO, ZERO, ())
        return cls(s.tree, True, s.vector("w"), s.vector("V"), [s.graph.input(f"e.{k}") for k in range(4)])

    def accelerating(self, s: Symbols) -> State:
        """The state of the recursion with accelerations: q, q̇ and q̈, and the motion of the base."""
        q, qd, qdd = (_coordinates(s, symbol) for symbol in ("q", "qd", "qdd"))
        if not self.free:
            return State(q, qd, qdd, vd=minus_gravity(self.tree))
        R, p = s.pose()
        return State(q, qd, qdd, w=self.w, wd=s.vector("wd"), vd=self.specific(s.vector("A")), v=self.v, R=R, p=p)

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
            for i in range(3):
                place: dict[str, Number] = {f"x.{i}": 1.0} if self.tree.wheels else {}  # roads lie somewhere
                ways.append(place)
            turns = ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))  # e ∘ (0, u) for u = x, y, z
            ways += [{f"e.{i}": mul(0.5, rate) for i, rate in enumerate(turn)} for turn in turns]
        joints: list[dict[str, Number]] = [{f"q.{k}": 1.0} for k in range(self.tree.n)]
        return [*ways, *joints]

    def ways_of_v(self) -> list[dict[str, Number]]:
        names = [f"{symbol}.{k}" for symbol in ("V", "w") for k in range(3)] if self.free else []
        ways: list[dict[str, Number]] = [{name: 1.0} for name in (*names, *(f"qd.{k}" for k in range(self.tree.n)))]
        return ways
