"""The equations of one machine, and the readings of its sensors, as expressions: the recursion run on symbols instead of numbers.

Geometry and gravity fold in as constants; coordinates, the base's motion, wrenches and signals are inputs that vary from sample to sample;
inertial parameters, those of elements and the constants of their laws are inputs that do not, so identifying again compiles nothing anew.

The mass matrix is symmetric and positive and has zeros where branches of the tree share nothing. Eliminating from the leaves to the root
makes no new entries (Featherstone, 2005).

Readings have the inputs q.k, qd.k and qdd.k: the numbers of a configuration, of its rates and of its accelerations as
:mod:`veridyn.mechanics.tree.recursion.sensing` orders them, those of a free base included. Derivatives with respect to a configuration are
in its tangent: dp in the ground's axes, dθ with R → R exp(dθ~) in the base's own, and dq of the joints; so they have as many entries as
rates have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from veridyn.errors import ModelError
from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.laws import graph_of_laws
from veridyn.mechanics.tree import quantity
from veridyn.mechanics.tree.loops.equations import equations as loop_equations
from veridyn.mechanics.tree.recursion.equations import all_rows, columns, equations_of_motion, mass_entries, state_rates
from veridyn.mechanics.tree.recursion.inputs import Label, Request, Symbols
from veridyn.mechanics.tree.recursion.newton_euler import State, frames_in_root, jacobian_entries, outward, rigid_rows
from veridyn.mechanics.tree.recursion.sensing import Moving, Output, load_rows, moving, reading, sizes
from veridyn.mechanics.tree.steps import statement
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive
from veridyn.spatial.algebra import IDENTITY, Scalar, add, is_zero, mul, product, rotation_matrix, skew
from veridyn.symbolic.expression import Expression, Graph, Number, along, forward, inserted, live, reverse, seeded


def reading_entries(tree: Tree, graph: Graph, outputs: Sequence[object]) -> dict[Label, Number]:
    """(output, 0): the readings."""
    return {(i, 0): value for i, value in enumerate(_Symbolic(tree, graph, outputs).values)}


def reading_derivatives(tree: Tree, graph: Graph, outputs: Sequence[object]) -> dict[Label, Number]:
    """(output, 0): the readings; (output, 1 + k) by tangent coordinate k of the configuration, then by rates, then by accelerations."""
    s = _Symbolic(tree, graph, outputs)
    columns = [s.values, *s.by_configuration(), *forward(graph, s.values, s.qd), *forward(graph, s.values, s.qdd)]
    return {(i, k): column[i] for k, column in enumerate(columns) for i in range(len(s.values))}


class _Symbolic:
    """The sensors of a tree on symbols."""

    def __init__(self, tree: Tree, graph: Graph, outputs: Sequence[object]) -> None:
        self.tree, self.graph = tree, graph
        nq, nv = sizes(tree)
        self.q, self.qd, self.qdd = (
            graph.inputs_named(f"{symbol}.{k}" for k in range(count))
            for symbol, count in (("q", nq), ("qd", nv), ("qdd", nv))
        )
        self.moving: Moving = moving(tree, self.q, self.qd, self.qdd, graph)
        chosen = cast(Sequence[Output], outputs)
        self.values: list[Number] = [reading(self.moving, output, graph) for output in chosen]

    def by_configuration(self) -> list[list[Number]]:
        if self.tree.base != "free":
            return forward(self.graph, self.values, self.q)
        turned = []
        for axis in IDENTITY:
            rates = product(self.moving.R, skew(axis))  # dR = R dθ~
            seeds = [(self.moving.R[a][b], rates[a][b]) for a in range(3) for b in range(3)]
            turned.append(seeded(self.graph, self.values, seeds))
        joints: list[Expression] = self.q[7:]
        return [
            *forward(self.graph, self.values, self.q[:3]),
            *turned,
            *forward(self.graph, self.values, joints),
        ]


def solve_symmetric(entries: Mapping[tuple[int, int], Scalar], load: Sequence[Scalar]) -> list[Scalar]:
    """x with H x = load, by H = Lᵀ D L from the last row to the first. `entries` holds both halves of H, structural zeros absent."""
    return solve_and_measure(entries, load, lambda x: x)[0]


def solve_and_measure(
    entries: Mapping[tuple[int, int], Scalar], load: Sequence[Scalar], magnitude: Callable[[Scalar], Scalar]
) -> tuple[list[Scalar], Scalar]:
    """The same, and how near H is to singular: Σ|H_kk| Σ|1/D_k|, without bound as a pivot vanishes; `magnitude` is |·|."""
    n = len(load)
    H = {(i, j): value for (i, j), value in entries.items() if j <= i and not is_zero(value)}
    L: dict[tuple[int, int], Scalar] = {}
    inverse: list[Scalar] = [0.0] * n
    diagonal = [H.get((k, k), 0.0) for k in range(n)]
    for k in range(n - 1, -1, -1):
        if (k, k) not in H:
            raise ModelError("it moves no mass, so no force gives it a finite acceleration.", where=f"row number {k}")
        inverse[k] = 1.0 / H[k, k]
        left = [j for j in range(k) if (k, j) in H]
        for j in left:
            L[k, j] = mul(H[k, j], inverse[k])
        for a, i in enumerate(left):
            for j in left[: a + 1]:
                H[i, j] = add(H.get((i, j), 0.0), mul(-1.0, mul(L[k, i], H[k, j])))
    x = list(load)
    for k in range(n - 1, -1, -1):  # Lᵀ y = load
        for j in range(k):
            if (k, j) in L:
                x[j] = add(x[j], mul(-1.0, mul(L[k, j], x[k])))
    x = [mul(v, d) for v, d in zip(x, inverse, strict=True)]
    for k in range(n):  # L x = D⁻¹ y
        for j in range(k):
            if (k, j) in L:
                x[k] = add(x[k], mul(-1.0, mul(L[k, j], x[j])))
    sizes: Scalar = 0.0
    pivots: Scalar = 0.0
    for h, d in zip(diagonal, inverse, strict=True):
        sizes, pivots = add(sizes, magnitude(h)), add(pivots, magnitude(d))
    return x, mul(sizes, pivots)


# how inputs begin that are the same for all samples: parameters, and constants of elements' laws
UNIFORM = ("p.", "const.")


@dataclass(frozen=True, eq=False)
class Formula:
    """Expressions with a label each, and the names of the inputs they are made of."""

    graph: Graph
    outputs: list[Number]
    labels: list[Label]
    samples: tuple[str, ...]
    parameters: tuple[str, ...]


def formula(tree: Tree, request: Request) -> Formula:
    """The expressions of a request."""
    graph = graph_of_laws(request.friction_speed)
    found = _QUANTITIES[request.quantity](Symbols(tree, graph), request)
    kept = {label: value for label, value in found.items() if not is_zero(value)}
    used = set(live(graph, kept.values()))
    names = [name for name, node in graph.inputs.items() if node in used]
    samples = tuple(name for name in names if not name.startswith(UNIFORM))
    parameters = tuple(name for name in names if name.startswith(UNIFORM))
    return Formula(graph, list(kept.values()), list(kept), samples, parameters)


def _regressor(s: Symbols, request: Request) -> dict[Label, Number]:
    state = s.state()
    found: dict[Label, Number] = {}
    wanted = [int(c) for c in request.columns]  # pyright: ignore[reportArgumentType]
    for c, entries in columns(s.tree, state, s.outward(state), s.signals(), s.graph, wanted):
        found |= {(r, c): value for r, value in entries.items() if r in request.rows}
    return found


def _regressor_adjoint(s: Symbols, request: Request) -> dict[Label, Number]:
    """(order, k): the gradient of Σ g.r.c D_rc by q_k, q̇_k and q̈_k, in one pass backwards through the recursion."""
    total: Number = 0.0
    for (r, c), value in _regressor(s, request).items():
        total = add(total, mul(s.graph.input(f"g.{r}.{c}"), value))
    by = [s.graph.input(f"{symbol}.{k}") for symbol in ("q", "qd", "qdd") for k in range(s.tree.n)]
    return {divmod(i, s.tree.n): value for i, value in enumerate(reverse(s.graph, total, by))}


def _equations(s: Symbols, request: Request) -> dict[Label, Number]:
    """Asked columns, tied ones added to them, as (row, column); and as (row, −1) what known parameters and wrenches ask of the row."""
    state = s.state()
    o = s.outward(state)
    outside = rigid_rows(s.tree, o, {}, s.acting(request.bodies))
    found: dict[Label, Number] = {(r, -1): outside[r] for r in request.rows}
    fate = {c: (to, factor, estimated) for c, to, factor, estimated in request.columns}  # pyright: ignore[reportGeneralTypeIssues]
    for c, entries in columns(s.tree, state, o, s.signals(), s.graph, fate):
        to, factor, estimated = fate[c]
        for r, value in entries.items():
            if r in request.rows:
                at = (r, to if estimated else -1)
                value = value if estimated else mul(s.graph.input(f"p.{to}"), value)
                found[at] = add(found.get(at, 0.0), mul(factor, value))
    return found


def _inverse(s: Symbols, request: Request) -> dict[Label, Number]:
    return {(r,): value for r, value in enumerate(_gamma(s, request)) if r in request.rows}


def _gamma(s: Symbols, request: Request) -> list[Number]:
    state = s.state()
    return all_rows(
        s.tree, state, s.outward(state), s.inertias(), s.gains(), s.acting(request.bodies), s.signals(), s.graph
    )


def _inverse_derivatives(s: Symbols, request: Request) -> dict[Label, Number]:
    """(0, row, k) = ∂Γ/∂q_k and (1, row, k) = ∂Γ/∂q̇_k: the recursion differentiated line by line, shared with itself."""
    rows = _gamma(s, request)
    found: dict[Label, Number] = {}
    for which, symbol in enumerate(("q", "qd")):
        by: list[Expression] = [s.graph.input(f"{symbol}.{k}") for k in range(s.tree.n)]
        for k, column in enumerate(forward(s.graph, rows, by)):
            found |= {(which, r, k): column[r] for r in request.rows}
    return found


def _run_derivatives(s: Symbols, request: Request) -> dict[Label, Number]:
    """(row, column): rows are Γ and the rates of elements' own states; columns q, q̇, these states, and the constants of the request."""
    state = s.state()
    rates = state_rates(s.tree, state, s.outward(state), s.signals(), s.graph)
    names = [f"{symbol}.{k}" for symbol in ("q", "qd") for k in range(s.tree.n)]
    names += [*(f"s.{own.name}" for own in s.tree.states), *(f"const.{c}" for c in request.columns)]
    slopes = forward(s.graph, [*_gamma(s, request), *rates], [s.graph.input(name) for name in names])
    return {(r, c): value for c, column in enumerate(slopes) for r, value in enumerate(column)}


def _rates_adjoint(s: Symbols, request: Request) -> dict[Label, Number]:
    """(k,): the gradient of Σ g.i f_i by q, q̇, forces, signals with elements' own states, parameters and constants, one behind the other.

    f are the accelerations, which are read, and the rates of elements' own states z. With M μ = g it is that of g_z·ż − μ·Γ(q, q̇, q̈) at
    constant μ and q̈, in one pass backwards; μ is the gradient by the forces.
    """
    tree, graph, n = s.tree, s.graph, s.tree.n
    state = s.state()
    rates = state_rates(tree, state, s.outward(state), s.signals(), graph)
    total: Number = 0.0
    for k, row in enumerate(_gamma(s, request)):
        total = add(total, mul(mul(-1.0, graph.input(f"mu.{k}")), row))
    for k, rate in enumerate(rates):
        total = add(total, mul(graph.input(f"g.{n + k}"), rate))
    names = [f"{symbol}.{k}" for symbol in ("q", "qd") for k in range(n)]
    names += [*(f"s.{name}" for name in tree.signals), *(f"p.{c}" for c in range(len(tree.parameters)))]
    names += [f"const.{c}" for c in range(len(tree.constants))]
    slopes = reverse(graph, total, list(graph.inputs_named(names)))
    mu = solve_symmetric(_mass_of(s), list(graph.inputs_named(f"g.{k}" for k in range(n))))
    slopes = inserted(graph, graph, slopes, {f"mu.{k}": value for k, value in enumerate(mu)})
    return {(k,): value for k, value in enumerate([*slopes[: 2 * n], *mu, *slopes[2 * n :]])}


def _state_rates(s: Symbols, request: Request) -> dict[Label, Number]:
    """(k,): the rate of the k-th of the states that elements have of their own."""
    state = s.state()
    found = state_rates(s.tree, state, s.outward(state), s.signals(), s.graph)
    return {(k,): value for k, value in enumerate(found)}


def _wheel_places(s: Symbols, request: Request) -> dict[Label, Number]:
    """(wheel, 0…1): where the centre of each wheel with a tyre is, x and y in the ground's frame."""
    still = [0.0] * s.tree.n
    R, p = s.pose()
    state = State([s.graph.input(f"q.{k}") for k in range(s.tree.n)], still, still, R=R, p=p)
    o = outward(s.tree, state, s.graph)
    places = [tyre_of(s.tree, e, state, o, {}, s.graph).wheel.pose[1] for e in s.tree.wheels]
    return {(i, k): place[k] for i, place in enumerate(places) for k in range(2)}


def _pushed(s: Symbols, request: Request) -> dict[Label, Number]:
    """(row,): the generalised forces of the loads at places, whose components are c.0, c.1 … in their order."""
    still, free = [0.0] * s.tree.n, s.tree.base == "free"
    w, x, y, z = (s.graph.input(f"e.{k}") for k in range(4))
    R = rotation_matrix((w, x, y, z)) if free else IDENTITY
    o = outward(s.tree, State([s.graph.input(f"q.{k}") for k in range(s.tree.n)], still, still), s.graph)
    frames, found = frames_in_root(s.tree, o), dict[Label, Number]()
    placed = [(load, k) for load in s.tree.loads if not isinstance(load, Drive) for k in range(load.components)]
    for i, (load, component) in enumerate(placed):
        for r, value in load_rows(s.tree, load, o, frames, component, R).items():
            found[r,] = add(found.get((r,), 0.0), mul(s.graph.input(f"c.{i}"), value))
    return found


def _mass(s: Symbols, request: Request) -> dict[Label, Number]:
    return dict(_mass_of(s))


def _mass_of(s: Symbols) -> dict[tuple[int, int], Number]:
    still = [0.0] * s.tree.n
    state = State([s.graph.input(f"q.{k}") for k in range(s.tree.n)], still, still)
    return mass_entries(s.tree, outward(s.tree, state, s.graph), s.inertias(), s.gains())


def _forward(s: Symbols, request: Request) -> dict[Label, Number]:
    """Accelerations from forces t.k on the coordinates: Γ = M a + bias solved by the sparse factors of M."""
    checked = _forward_checked(s, request)
    return {label: value for label, value in checked.items() if label[0] < len(s.tree.rows)}


def _forward_checked(s: Symbols, request: Request) -> dict[Label, Number]:
    """Accelerations, and behind the last row how near the mass matrix is to singular.

    Those of prescribed coordinates are inputs, and what they ask of the others stands on the side of the load.
    """
    tree = s.tree
    entries, bias = equations_of_motion(
        tree, s.state(), s.inertias(), s.gains(), s.acting(request.bodies), s.signals(), s.graph
    )
    first = len(tree.rows) - tree.n
    force: list[Number] = [0.0] * first + [s.graph.input(f"t.{k}") for k in range(tree.n)]
    load = [f - b if not is_zero(b) else f for f, b in zip(force, bias, strict=True)]
    found: dict[Label, Number] = {(first + k,): s.graph.input(f"qdd.{k}") for k in tree.held}
    for (r, c), value in entries.items():
        if (c,) in found and (r,) not in found:
            load[r] = add(load[r], mul(-1.0, mul(value, found[c,])))
    place = {r: i for i, r in enumerate(tree.solved_rows)}
    inner = {(place[r], place[c]): value for (r, c), value in entries.items() if r in place and c in place}
    solved, nearness = solve_and_measure(inner, [load[r] for r in place], s.graph.abs)
    found |= {(r,): value for r, value in zip(place, solved, strict=True)}
    return found | {(len(tree.rows),): nearness}


def _jacobian(s: Symbols, request: Request) -> dict[Label, Number]:
    """(component, row) of the Jacobian of the one body of the request, in the body's axes."""
    still = [0.0] * s.tree.n
    o = outward(s.tree, State([s.graph.input(f"q.{k}") for k in range(s.tree.n)], still, still), s.graph)
    return dict(jacobian_entries(s.tree, o, request.bodies[0]))


def _loops(s: Symbols, request: Request) -> dict[Label, Number]:
    """(equation, coordinate) of Φ_q and, behind the last coordinate, Φ; with rates also the bias of Φ̈ behind that."""
    n = s.tree.n
    q: list[Number] = [s.graph.input(f"q.{k}") for k in range(n)]
    moving = request.quantity == "loop_motion"
    qd: list[Number] = [s.graph.input(f"qd.{k}") for k in range(n)] if moving else [0.0] * n
    found: dict[Label, Number] = {}
    for i, equation in enumerate(loop_equations(s.tree, q, qd, s.graph)):
        found |= {(i, k): slope for k, slope in equation.slopes.items()}
        found |= {(i, n): equation.value, (i, n + 1): equation.bias}
    return found


def _loop_rates(s: Symbols, request: Request) -> dict[Label, Number]:
    """(order, equation, coordinate): Φ_q, its rate and, on request, its second rate along a motion."""
    n = s.tree.n
    q: list[Number] = [s.graph.input(f"q.{k}") for k in range(n)]
    qd, qdd = ([s.graph.input(f"{symbol}.{k}") for k in range(n)] for symbol in ("qd", "qdd"))
    places = [
        (i, k, slope)
        for i, equation in enumerate(loop_equations(s.tree, q, [0.0] * n, s.graph))
        for k, slope in equation.slopes.items()
    ]
    moving: dict[str, Number] = {f"q.{k}": rate for k, rate in enumerate(qd)}
    moving |= {f"qd.{k}": rate for k, rate in enumerate(qdd)}
    found: dict[Label, Number] = {}
    values = [slope for _, _, slope in places]
    for order in range(3 if request.quantity == "loop_rates" else 2):
        found |= {(order, i, k): value for (i, k, _), value in zip(places, values, strict=True)}
        values = along(s.graph, values, moving)
    return found


def _readings(s: Symbols, request: Request) -> dict[Label, Number]:
    made = reading_entries if request.quantity == "readings" else reading_derivatives
    return made(s.tree, s.graph, request.columns)


_QUANTITIES: dict[str, Callable[[Symbols, Request], dict[Label, Number]]] = {
    "regressor": _regressor,
    "regressor_adjoint": _regressor_adjoint,
    "equations": _equations,
    "inverse": _inverse,
    "inverse_derivatives": _inverse_derivatives,
    "run_derivatives": _run_derivatives,
    "rates_adjoint": _rates_adjoint,
    "state_rates": _state_rates,
    "wheel_places": _wheel_places,
    "pushed": _pushed,
    "mass": _mass,
    "forward": _forward,
    "forward_checked": _forward_checked,
    "jacobian": _jacobian,
    "loops": _loops,
    "loop_motion": _loops,
    "loop_rate": _loop_rates,
    "loop_rates": _loop_rates,
    "motion": statement.motion,
    "closing": statement.closing,
    "tangent": statement.tangent,
    "quantities": quantity.quantities,
    "readings": _readings,
    "reading_derivatives": _readings,
}
