"""Quantities of a tree that no sensor reads, as expressions: reactions of joints, forces of elements and of drives, accelerations.

The wrench that a joint carries is the sum over all bodies beyond it of what their motion needs, less what acts on them from elsewhere
(loads, measured wrenches, elements between places, cut joints). What acts in the joint itself along its axis (motor, friction, springs on
its coordinate) is no part of its reaction. Derivatives are those of the tangent of :mod:`veridyn.mechanics.tree.steps.statement`.

A cut joint acts on its two ends by its multipliers. The equations of motion hold Φ_qᵀ λ on the side of the inertia, so it acts with −λ ∂Φ.
Of the equations of :mod:`veridyn.mechanics.tree.loops.equations`, with d the way from the place on the second end to that on the first, the
second end gets

    d·e = 0         the force λ e                            (e fixed in the root's axes, or an axis of the first end)
    u·w = 0         the moment λ u × w                       (u an axis of the first end, w of the second)
    (d·d − L²)/2L   the force λ d/L

about its place; the first end gets the opposite about the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from veridyn.mechanics.laws import law
from veridyn.mechanics.tree.loops.equations import COUNTS
from veridyn.mechanics.tree.loops.equations import equations as loop_equations
from veridyn.mechanics.tree.recursion.equations import acting, strut_of
from veridyn.mechanics.tree.recursion.inputs import Label, Request, Symbols
from veridyn.mechanics.tree.recursion.newton_euler import (
    NO_WRENCH,
    Outward,
    State,
    Wrench,
    body_wrench,
    frames_in_root,
    inward,
    outward,
    squared_speed,
)
from veridyn.mechanics.tree.recursion.sensing import place_of
from veridyn.mechanics.tree.steps.statement import Base, Column, input_of, load_columns, residual_rows
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.graph import Loop
from veridyn.model.load import Drive, Force
from veridyn.model.place import GROUND, Attachment
from veridyn.spatial.algebra import (
    IDENTITY,
    ZERO,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    minus,
    mul,
    plus,
    rotate,
    rotate_back,
    scaled,
)
from veridyn.symbolic.expression import Expression, Number, reverse

X, Y, Z = range(3)
ALONG = ((X, Z), (Y, Z))  # z of the second end has no component along x and y of the first
RIGID = ((X, Y), *ALONG)
CROSSED = {
    "turning": ALONG,
    "fixed": RIGID,
    "planar": ALONG,
    "cylindrical": ALONG,
    "sliding": RIGID,
    "universal": ((Z, Z),),
}
WITHOUT_MOMENT = ("spherical", "distance")


def place_of_end(tree: Tree, frames: Sequence[tuple[Mat, Vec]], end: Attachment) -> tuple[Mat, Vec]:
    """The frame of an end in the root's frame: its axes as columns, and its origin."""
    R, p = end.placement.rotation, end.placement.position
    own: Mat = tuple((float(row[0]), float(row[1]), float(row[2])) for row in R)  # pyright: ignore[reportAssignmentType]
    at: Vec = (float(p[0]), float(p[1]), float(p[2]))
    if end.body == GROUND:
        return own, at
    A, P = frames[tree.index(end.body)]
    axes = [rotate(A, (own[0][k], own[1][k], own[2][k])) for k in range(3)]
    columns: Mat = tuple((axes[0][i], axes[1][i], axes[2][i]) for i in range(3))  # pyright: ignore[reportAssignmentType]
    return columns, plus(P, rotate(A, at))


def cut_wrench(tree: Tree, frames: Sequence[tuple[Mat, Vec]], loop: Loop, lam: Sequence[Scalar]) -> tuple[Wrench, Vec]:
    """Force and moment on the second end about its place, in the root's axes, and that place; `lam`: one for each of its equations."""
    (A, a), (B, b) = place_of_end(tree, frames, loop.first), place_of_end(tree, frames, loop.second)
    d = minus(a, b)
    if loop.joint == "distance":
        return (scaled(lam[0] / loop.length, d), ZERO), b
    if loop.joint == "planar":
        lines: list[Vec] = [_column(A, Z)]
    elif loop.joint in ("cylindrical", "sliding"):
        lines = [_column(A, X), _column(A, Y)]
    else:
        lines = list(IDENTITY)
    force, moment = ZERO, ZERO
    for line, size in zip(lines, lam, strict=False):
        force = plus(force, scaled(size, line))
    for (u, w), size in zip(CROSSED.get(loop.joint, ()), lam[len(lines) :], strict=True):
        moment = plus(moment, scaled(size, cross(_column(A, u), _column(B, w))))
    return (force, moment), b


def _column(A: Mat, k: int) -> Vec:
    return (A[0][k], A[1][k], A[2][k])


Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Quantity:
    """One quantity by numbers of its tree, without names.

    `kind`: "joint" (of body `on`), "cut" (loop `on`), "element", "drive" (the force on coordinate `on`) or "acceleration" (of the place
    `at` on body `on`).
    """

    kind: str
    on: int
    at: Triple = (0.0, 0.0, 0.0)

    def count(self, tree: Tree) -> int:
        """How many numbers it has."""
        if self.kind == "joint":
            return 6
        if self.kind == "cut":
            joint = tree.loops[self.on].joint
            return 1 if joint == "distance" else 3 if joint in WITHOUT_MOMENT else 6
        return 3 if self.kind == "acceleration" else 1


def quantities(s: Symbols, request: Request) -> dict[Label, Number]:
    """(i, 0): the values, one quantity behind the other; (i, 1 + k) by tangent coordinate k of x, then by v, a, λ, and `columns`.

    ``request.columns`` is (quantities, columns); λ are the multipliers of all equations of all loops.
    """
    wanted = cast(Sequence[Quantity], request.columns[0])
    columns = cast(Sequence[Column], request.columns[1])
    made = _Made(s, request.bodies)
    values = [value for quantity in wanted for value in made.values(quantity)]
    tree, body = s.tree, made.body
    base_v, base_a = (
        [f"{symbol}.{k}" for symbol in symbols for k in range(3)] for symbols in (("V", "w"), ("A", "wd"))
    )
    names = [f"e.{k}" for k in range(4)] if body.free else []
    names += [f"q.{k}" for k in range(tree.n)]
    names += [*(base_v if body.free else []), *(f"qd.{k}" for k in range(tree.n))]
    names += [*(base_a if body.free else []), *(f"qdd.{k}" for k in range(tree.n))]
    names += [f"l.{k}" for k in range(len(made.lam))] + [input_of(tree, column) for column in columns]
    inputs: list[Expression] = [s.graph.input(name) for name in names]
    found: dict[Label, Number] = {}
    for i, value in enumerate(values):
        by = reverse(s.graph, value, inputs)
        if body.free:
            by = [*(_turning(way, by[:4]) for way in body.ways_of_x()[:6]), *by[4:]]
        found |= {(i, 1 + k): slope for k, slope in enumerate(by)} | {(i, 0): value}
    return found


def _turning(way: dict[str, Number], by_e: Sequence[Number]) -> Number:
    total: Number = 0.0
    for k, slope in enumerate(by_e):
        total = add(total, mul(slope, way.get(f"e.{k}", 0.0)))
    return total


class _Made:
    """A tree in motion on symbols, with everything that acts on its bodies."""

    def __init__(self, s: Symbols, bodies: Sequence[int]) -> None:
        self.s, self.tree, self.body, self.bodies = s, s.tree, Base.of(s), bodies
        self.state: State = self.body.accelerating(s)
        self.o: Outward = outward(s.tree, self.state, s.graph, velocity=True)
        self.frames = frames_in_root(s.tree, self.o)
        self.R: Mat = IDENTITY if self.body.R is None else self.body.R
        self.lam = [s.graph.input(f"l.{k}") for k in range(sum(COUNTS[loop.joint] for loop in s.tree.loops))]

    def values(self, quantity: Quantity) -> list[Number]:
        kind, on = quantity.kind, quantity.on
        if kind == "joint":
            return self.joint(on)
        if kind == "cut":
            return self.cut(on)
        if kind == "element":
            return [mul(self.s.gains()[on], self.law(self.tree.elements[on]))]
        if kind == "drive":
            return [self.drive(on)]
        assert kind == "acceleration"  # there is no other
        specific = plus(self.o.vd[on], rotate(self.o.U[on], quantity.at))
        g = self.tree.gravity
        return list(plus(self.in_ground(on, specific), (float(g[0]), float(g[1]), float(g[2]))))

    def joint(self, j: int) -> list[Number]:
        """What carries body j does to it through their joint: force, and moment about the origin of its frame, in the ground's axes."""
        f, m = inward(self.tree, self.o, self.needed())[j]
        if self.tree.sigma[j] == 0:
            m = (m[0], m[1], 0.0)
        elif self.tree.sigma[j] == 1:
            f = (f[0], f[1], 0.0)
        return [*self.in_ground(j, f), *self.in_ground(j, m)]

    def cut(self, number: int) -> list[Number]:
        """What the first end of a cut joint does to the second; of a distance the tension."""
        loop, lam = self.tree.loops[number], self.multipliers(number)
        if loop.joint == "distance":
            return [lam[0]]
        (f, m), _ = cut_wrench(self.tree, self.frames, loop, lam)
        force, moment = rotate(self.R, f), rotate(self.R, m)
        return [*force] if loop.joint in WITHOUT_MOMENT else [*force, *moment]

    def drive(self, k: int) -> Number:
        """The force on a coordinate that its motion needs, besides loads, elements and cut joints."""
        s, first = self.s, len(self.tree.rows) - self.tree.n
        row = residual_rows(s, self.bodies, self.body, self.state, self.o, load_columns(s, self.body))[first + k]
        for i, equation in enumerate(loop_equations(self.tree, self.state.q, [0.0] * self.tree.n, s.graph)):
            row = add(row, mul(self.lam[i], equation.slopes.get(k, 0.0)))
        return row

    def in_ground(self, j: int, v: Vec) -> Vec:
        return rotate(self.R, rotate(self.frames[j][0], v))

    def multipliers(self, number: int) -> list[Expression]:
        before = sum(COUNTS[loop.joint] for loop in self.tree.loops[:number])
        return self.lam[before : before + COUNTS[self.tree.loops[number].joint]]

    def law(self, e: Element) -> Number:
        """The law of an element, before its parameter; of drag the squared speed."""
        if e.on_body is not None:
            return squared_speed(self.o.v[self.tree.index(e.on_body[0])]) if e.kind == "drag" else 1.0
        strut = None if e.between is None else strut_of(self.tree, e.between, self.o, self.s.graph)
        return law(e, acting(self.tree, e, self.state, self.s.signals(), self.s.graph, strut))

    def needed(self) -> list[Wrench]:
        """For each body what its motion needs, less what acts on it from elsewhere than joints, in its own frame."""
        o, X = self.o, self.s.inertias()
        total: list[Wrench] = [
            body_wrench(o.w[j], o.wd[j], o.U[j], o.vd[j], X[j]) if j in X else NO_WRENCH
            for j in range(len(self.tree.bodies))
        ]
        self._total = total
        for j, (f, m) in self.s.acting(self.bodies).items():
            self._push(j, f, m)
        self._push_loads()
        for e, gain in zip(self.tree.elements, self.s.gains(), strict=True):
            self._push_element(e, gain)
        for k, loop in enumerate(self.tree.loops):
            (f, m), at = cut_wrench(self.tree, self.frames, loop, self.multipliers(k))
            for end, sign in ((loop.second, 1.0), (loop.first, -1.0)):
                if end.body != GROUND:
                    self._push_at(self.tree.index(end.body), at, scaled(sign, f), scaled(sign, m))
        return total

    def _push(self, j: int, f: Vec, m: Vec) -> None:
        """A wrench on body j about its origin, in its axes."""
        F, N = self._total[j]
        self._total[j] = (minus(F, f), minus(N, m))

    def _push_at(self, j: int, at: Vec, f: Vec, m: Vec = ZERO) -> None:
        """A force at a place and a moment on body j, all in the root's frame."""
        A, P = self.frames[j]
        self._push(j, rotate_back(A, f), rotate_back(A, plus(m, cross(minus(at, P), f))))

    def _push_loads(self) -> None:
        number = 0
        for load in self.tree.loads:
            c: Vec = tuple(self.s.graph.input(f"c.{number + k}") for k in range(load.components))  # pyright: ignore[reportAssignmentType]
            number += load.components
            if isinstance(load, Drive):
                continue  # along the axis of a joint
            v = rotate_back(self.R, c)
            if isinstance(load, Force):
                j, at = place_of(self.tree, load.at)
                self._push_at(j, self._place(j, at), v)
                continue
            for body, sign in ((load.body, 1.0), (load.against, -1.0)):
                if body != GROUND:
                    self._push_at(self.tree.index(body), ZERO, ZERO, scaled(sign, v))

    def _push_element(self, e: Element, gain: Number) -> None:
        if e.on_body is not None:
            six: list[Number] = [0.0] * 6
            six[e.on_body[1]] = mul(-next(iter(e.on.values())), mul(gain, self.law(e)))
            self._push(self.tree.index(e.on_body[0]), (six[0], six[1], six[2]), (six[3], six[4], six[5]))
        if e.between is None:
            return
        (ja, a), (jb, b) = (place_of(self.tree, end) for end in e.between)
        from_, to = self._place(ja, a), self._place(jb, b)
        strut = strut_of(self.tree, e.between, self.o, self.s.graph)
        free = e.kind == "spring" and "rest" not in e.constants  # k r, also where its length is zero
        pull = scaled(gain if free else mul(gain, self.law(e)) / strut.length, minus(to, from_))
        for j, at, sign in ((ja, from_, 1.0), (jb, to, -1.0)):
            if j >= 0:
                self._push_at(j, at, scaled(sign, pull))

    def _place(self, j: int, at: Triple) -> Vec:
        """A place on body j, or on the ground (−1) of a fixed tree, in the root's frame."""
        if j < 0:
            return at
        A, P = self.frames[j]
        return plus(P, rotate(A, at))
