"""Dry friction that holds: a fixed step over which each friction keeps one value between its limits.

Dry friction on a combination of coordinates c = Σ aᵢ qᵢ is a force s F(ċ) against the motion, s = sign ċ while it slides and anything
between −1 and 1 while it holds. Over a step the shares s are constant, and they agree with the speeds ċ⁺ = C v⁺ that the step ends with:

    s_i = 1 where ċ_i⁺ > 0,    s_i = −1 where ċ_i⁺ < 0,    −1 ≤ s_i ≤ 1 where ċ_i⁺ = 0

(Moreau's implicit rule; Stewart, 2000, SIAM Review 42(1)), so what holds does not creep: while a force changes by ΔF, a held mass m
moves by h² ΔF/(12 m), and back with the force. The speeds at the end of a step of an explicit rule are affine in the friction forces f to
first order of the step, ċ⁺ = w − H f with H symmetric and positive semidefinite: each iteration is a linear complementarity problem with
bounds, solved by pivoting (:func:`solve_bounded`). A step in which a sliding combination comes to rest is parted at that instant by the
secant rule, so that reversals keep their time too.

This is the step of :func:`~veridyn.mechanics.system.integrate.integrate`, whose inputs are functions of Python;
:mod:`veridyn.mechanics.system.run_friction` is the same as machine code.

The kinds coulomb, coulomb_forward, coulomb_backward, coulomb_along … coulomb_along4 and stribeck that act on coordinates are covered.
Friction along the line between two places, and laws of one's own with a sign, stay as the model states them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.system.stepper import explicit_step, tableau
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ALONG_KINDS
from veridyn.model.elements.own_law import LOG_OFFSET
from veridyn.model.machine import Machine

KINDS = ("coulomb", "coulomb_forward", "coulomb_backward", "stribeck", *ALONG_KINDS)
EXCHANGES = 10  # of all on the wrong side at once, for each unknown; then one at a time, which cannot cycle
ROUNDING = 1e-14  # of the diagonal of H: added to it, so that dependent directions share a force
Flags = NDArray[np.bool_]
AT_REST_S = 1e-9  # what friction could stop within this time stands still
ITERATIONS = 20  # of the forces over one step; two suffice where the mass matrix hardly changes over it
SECANTS = 8  # of the instant at which sliding ends
STOPPED = 1e-9  # of the speeds around it: an instant found to this is where sliding ends
PARTS = 8  # of a step, for each run; the rest of a step with more stops is made at once
# Time, states (R, size) and friction forces on the coordinates (R, n) → rates (R, size).
FrictionRate = Callable[[float, Array, Array], Array]
# Rates, time, states and h → the states after a step of h seconds.
Advance = Callable[[Callable[[float, Array], Array], float, Array, float], Array]
RK4: Advance = partial(explicit_step, tableau("RK4"))


@dataclass(frozen=True, eq=False)
class DryFriction:
    """The dry friction of a tree with all its parameters `values`: combinations C (m, n) and the elements that act on each."""

    C: Array
    elements: tuple[tuple[int, Element, int], ...]  # combination, element, number of its parameter
    values: Array

    @property
    def columns(self) -> list[int]:
        """The numbers of the parameters of these elements."""
        return [column for _, _, column in self.elements]

    @property
    def smooth_values(self) -> Array:
        """All parameters of the machine without this friction."""
        out = self.values.copy()
        out[self.columns] = 0.0
        return out

    @cached_property
    def constant_limits(self) -> tuple[Array, Array] | None:
        """:meth:`limits`, each (1, m), where they do not depend on speeds and positions."""
        if any(e.kind == "stribeck" or e.kind in ALONG_KINDS for _, e, _ in self.elements):
            return None
        none = np.zeros((1, self.C.shape[1]))
        return self._limits(none, none)

    def limits(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """F of motion forwards and backwards, each (R, m), at positions and rates (R, n)."""
        if self.constant_limits is None:
            return self._limits(q, qd)
        ahead, back = (np.repeat(x, len(qd), axis=0) for x in self.constant_limits)
        return ahead, back

    def _limits(self, q: Array, qd: Array) -> tuple[Array, Array]:
        ahead, back = (np.zeros((len(qd), len(self.C))) for _ in range(2))
        for i, e, column in self.elements:
            size = self.values[column] * _magnitude(e, q @ self.C[i], qd @ self.C[i])
            ahead[:, i] += 0.0 if e.kind == "coulomb_backward" else size
            back[:, i] += 0.0 if e.kind == "coulomb_forward" else size
        return ahead, back

    def forces(self, q: Array, qd: Array, shares: Array) -> Array:
        """(R, n): what it does to the coordinates at positions and rates (R, n) with shares s (R, m)."""
        ahead, back = self.constant_limits or self._limits(q, qd)
        return -(ahead * np.maximum(shares, 0.0) + back * np.minimum(shares, 0.0)) @ self.C

    def regressor(self, q: Array, qd: Array, shares: Array) -> Array:
        """(N, n, columns): by how much each parameter enters the joint forces Γ, at positions and rates (N, n) and shares (N, m)."""
        out = np.zeros((len(qd), self.C.shape[1], len(self.elements)))
        for k, (i, e, _) in enumerate(self.elements):
            low = 0.0 if e.kind == "coulomb_forward" else -1.0
            high = 0.0 if e.kind == "coulomb_backward" else 1.0
            law = np.clip(shares[:, i], low, high) * _magnitude(e, q @ self.C[i], qd @ self.C[i])
            out[:, :, k] = law[:, None] * self.C[i]
        return out


def dry_friction(machine: Machine | Tree, values: Array) -> DryFriction | None:
    """The dry friction of a tree that can hold; None where it has none."""
    tree = tree_of(machine)
    number = {name: k for k, name in enumerate(tree.parameters.names)}
    combinations: dict[tuple[float, ...], int] = {}
    found: list[tuple[int, Element, int]] = []
    for e in tree.elements:
        if e.kind not in KINDS or not e.on:
            continue
        row = tuple(e.on.get(c, 0.0) for c in tree.coordinates)
        found.append((combinations.setdefault(row, len(combinations)), e, number[e.parameter_name]))
    return DryFriction(np.array(list(combinations)), tuple(found), values) if found else None


def _magnitude(e: Element, c: Array, speed: Array) -> Array | float:
    """The law of a unit parameter without its sign."""
    if e.kind in ALONG_KINDS:
        return ((c - e.constant("middle")) / e.constant("half")) ** ALONG_KINDS[e.kind]
    if e.kind != "stribeck":
        return 1.0
    ratio = np.abs(speed / e.constant("speed"))
    return 1.0 / (
        1.0 + (np.power(ratio + LOG_OFFSET, e.constant("exponent")) if "exponent" in e.constants else ratio**2)
    )


def solve_bounded(H: Array, b: Array, low: Array, high: Array) -> Array:
    """f (m,) of the problem above, by block pivoting (Júdice and Pires, 1994, Computers & Operations Research 21(5))."""
    m = len(b)
    H = H + ROUNDING * np.diag(np.diag(H))
    side = np.zeros(m, dtype=np.int64)  # 1 at the upper bound, −1 at the lower one, 0 between
    tolerance_f = 1e-12 * np.maximum(high - low, np.finfo(float).tiny)
    tolerance_w = 1e-12 * np.abs(np.diag(H)) * np.maximum(high - low, np.finfo(float).tiny) + 1e-15 * np.abs(b)
    at_once = EXCHANGES * (m + 1)
    for exchange in range(at_once + 50 * (m + 1)):
        f = np.where(side > 0, high, low)
        inner = np.flatnonzero(side == 0)
        bound = np.flatnonzero(side)
        if len(inner):
            rest = b[inner] - H[np.ix_(inner, bound)] @ f[bound]
            f[inner] = np.linalg.solve(H[np.ix_(inner, inner)], rest)
        w = b - H @ f
        above = (side == 0) & (f > high + tolerance_f)
        below = (side == 0) & (f < low - tolerance_f)
        freed = ((side > 0) & (w < -tolerance_w)) | ((side < 0) & (w > tolerance_w))
        wrong = np.flatnonzero(above | below | freed)
        if not len(wrong):
            return np.clip(f, low, high)
        if exchange >= at_once:
            wrong = wrong[-1:]  # Murty's rule
        side[wrong] = np.where(above[wrong], 1, np.where(below[wrong], -1, 0))
    raise SimulationError(
        "no friction forces within their limits were found.", where="dry friction", hint="Take shorter steps."
    )


@dataclass(frozen=True, eq=False)
class StepPart:
    """A part of a step: when and where it ends, the shares (R, m) along it, what came to rest at its end, and q̈ (R, n) just before."""

    time: float
    end: Array
    shares: Array
    stopped: Flags
    arriving: Array | None = None


class HoldingSteps:
    """Steps of R states under dry friction that holds; :attr:`parts` are those of the last step.

    `positions`, `speeds`: where q and q̇ stand in a state. `rate`: the rates of states under given friction forces on the coordinates.
    """

    def __init__(
        self,
        friction: DryFriction,
        rate: FrictionRate,
        positions: slice,
        speeds: slice,
        runs: int,
        name: str,
        advance: Advance = RK4,
    ) -> None:
        self.friction, self.rate, self.advance, self.name = friction, rate, advance, name
        self.positions, self.speeds = positions, speeds
        self.shares = np.zeros((runs, len(friction.C)))
        self.parts: list[StepPart] = []
        none = np.zeros((runs, friction.C.shape[1]))
        self._limits = None if friction.constant_limits is None else friction.limits(none, none)
        self._response = self._own = np.zeros(
            0
        )  # ∂q̈/∂f (R, n, m), of this step or of one before it, and −∂c̈_i/∂f_i (R, m)

    def at_instant(self, t: float, y: Array) -> Array:
        """The shares (R, m) at an instant: signs of the speeds, and at rest those that agree with the accelerations."""
        friction, q, qd = self.friction, y[:, self.positions], y[:, self.speeds]
        w = qd @ friction.C.T
        if not len(self._response):
            self._refresh(t, y)
        ahead, back, rest = self._bounds(y)
        still = (np.abs(w) <= rest) & (rest > 0.0)
        shares = np.where(still, 0.0, np.sign(w))
        if still.any():
            self._refresh(t, y)
            a = self.rate(t, y, friction.forces(q, qd, shares))[:, self.speeds] @ friction.C.T
            for r in np.flatnonzero(still.any(axis=1)):
                i = np.flatnonzero(still[r])
                H = -friction.C[i] @ self._response[r][:, i]
                f = solve_bounded(H, a[r, i], -back[r, i], ahead[r, i])
                shares[r, i] = _shares(f, ahead[r, i], back[r, i])
        return shares

    def step(self, t: float, y: Array, h: float) -> Array:
        """States (R, size) at t + h; :attr:`shares` are then those at the end of this step."""
        if not len(self._response):
            self._refresh(t, y)
        end = t + h
        self.parts = []
        while True:
            parted = len(self.parts) < PARTS * len(y)
            part = self._part(t, y, end - t, parted)
            self.parts.append(part)
            self.shares = np.where(part.stopped, 0.0, part.shares)
            t, y = part.time, part.end
            if not part.stopped.any() or end - t <= STOPPED * h:
                return y

    def _part(self, t: float, y: Array, h: float, parted: bool) -> StepPart:
        """From t to t + h, or to the first instant at which a combination that slides comes to rest."""
        w = y[:, self.speeds] @ self.friction.C.T
        rest = self._bounds(y)[2]
        slides = (np.abs(w) > rest) & parted
        guess = np.where(np.abs(w) > rest, np.sign(w), self.shares)
        end, shares = self._balanced(t, y, h, guess, (rest > 0.0) & ~slides)
        after = end[:, self.speeds] @ self.friction.C.T
        crossed = slides & (rest > 0.0) & (after * w < 0.0) & (np.abs(after) > rest)
        if not crossed.any():
            return StepPart(t + h, end, shares, np.zeros_like(slides))
        share = np.where(crossed, w / np.where(crossed, w - after, 1.0), np.inf)
        r, i = (int(k) for k in np.unravel_index(int(np.argmin(share)), share.shape))
        low, high = (0.0, w[r, i]), (1.0, after[r, i])  # shares of h with the speeds there, which have opposite signs
        scale = STOPPED * max(abs(low[1]), abs(high[1]))
        place = float(share[r, i])
        for _ in range(SECANTS):
            end, shares = self._balanced(t, y, place * h, guess, (rest > 0.0) & ~slides)
            after = end[:, self.speeds] @ self.friction.C.T
            if abs(after[r, i]) <= scale:
                break
            low, high = ((place, after[r, i]), high) if after[r, i] * low[1] > 0.0 else (low, (place, after[r, i]))
            place = low[0] + (high[0] - low[0]) * low[1] / (low[1] - high[1])
        stopped = crossed & (np.abs(after) <= np.maximum(scale, rest))
        stopped[r, i] = True
        time = t + place * h
        arriving = self.rate(time, end, self.friction.forces(end[:, self.positions], end[:, self.speeds], shares))[
            :, self.speeds
        ].copy()
        return StepPart(time, self._halted(end, stopped), shares, stopped, arriving)

    def _balanced(self, t: float, y: Array, h: float, shares: Array, holdable: Flags) -> tuple[Array, Array]:
        """States after h seconds and shares: as given, and of what is `holdable` those that agree with the speeds at the end."""
        friction, fresh = self.friction, False
        ahead, back, rest = self._bounds(y)
        for trial in range(ITERATIONS):

            def under(time: float, state: Array, shares: Array = shares) -> Array:
                return self.rate(time, state, friction.forces(state[:, self.positions], state[:, self.speeds], shares))

            end = self.advance(under, t, y, h)
            if not holdable.any():
                return end, shares
            w = end[:, self.speeds] @ friction.C.T
            holds = holdable & (np.abs(shares) < 1.0)
            wrong = (np.abs(w) > rest) & (holds | (holdable & (shares * w < 0.0)))
            if not wrong.any():
                return self._halted(end, holds), shares
            if trial == 2 and not fresh:  # what was kept of an earlier step is not near enough
                fresh = True
                self._refresh(t, y)
            shares = shares.copy()
            for r in np.flatnonzero(wrong.any(axis=1)):
                i = np.flatnonzero(holdable[r])
                f = ahead[r, i] * np.maximum(shares[r, i], 0.0) + back[r, i] * np.minimum(shares[r, i], 0.0)
                H = -h * (friction.C[i] @ self._response[r][:, i])
                f = solve_bounded(H, w[r, i] + H @ f, -back[r, i], ahead[r, i])
                shares[r, i] = _shares(f, ahead[r, i], back[r, i])
        raise SimulationError(
            f"no friction forces agree with the motion in the step from {t:.6g} s.",
            where=self.name,
            hint="Take shorter steps, or round dry friction off by a friction_speed above zero.",
        )

    def _refresh(self, t: float, y: Array) -> None:
        """∂q̈/∂f (R, n, m) by the friction forces f; accelerations are affine in forces, so differences of unit forces are exact."""
        C, none = self.friction.C, np.zeros((len(y), self.friction.C.shape[1]))
        plain = self.rate(t, y, none)[:, self.speeds].copy()
        self._response = np.stack([self.rate(t, y, none - row)[:, self.speeds] - plain for row in C], axis=2)
        self._own = -np.einsum("mn,rnm->rm", C, self._response)

    def _bounds(self, y: Array) -> tuple[Array, Array, Array]:
        """Friction forwards and backwards, and the speed it takes away within AT_REST_S, each (R, m).

        That speed is 0 where friction cannot hold, as what it acts on is not free to move, or it does not resist.
        """
        ahead, back = self._limits or self.friction.limits(y[:, self.positions], y[:, self.speeds])
        holds = (ahead >= 0.0) & (back >= 0.0) & (self._own > 0.0)
        return ahead, back, np.where(holds, AT_REST_S * self._own * (ahead + back), 0.0)

    def _halted(self, end: Array, held: Flags) -> Array:
        """States whose held combinations stand still to rounding: by forces on these combinations alone."""
        for r in np.flatnonzero(held.any(axis=1)):
            C, K = self.friction.C[held[r]], self._response[r][:, held[r]]
            w = C @ end[r, self.speeds]
            if w.any():
                end[r, self.speeds] -= K @ np.linalg.lstsq(C @ K, w, rcond=None)[0]
        return end


def _shares(f: Array, ahead: Array, back: Array) -> Array:
    """s of friction forces within their limits; friction of one direction alone lets all slide the other way: its limit there is 0."""
    limit = np.where(f > 0.0, ahead, back)
    inside = np.where(limit > 0.0, f / np.where(limit > 0.0, limit, 1.0), 0.0)
    return np.where(ahead + back > 0.0, np.where(f >= ahead, 1.0, np.where(f <= -back, -1.0, inside)), 0.0)
