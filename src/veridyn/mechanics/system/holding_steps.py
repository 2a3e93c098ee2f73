"""Steps of an explicit rule under dry friction that holds, see :mod:`veridyn.mechanics.system.dry_friction`.

The speeds ċ⁺ at the end of a step are affine in the friction forces f to first order of the step, ċ⁺ = w − H f with H symmetric and
positive semidefinite: each iteration is a small complementarity problem with bounds (:mod:`veridyn.mechanics.system.holding_steps`). Where
sliding ends within a step, the step is parted there by the secant rule; many runs share their parts.

Forces within bounds that stop what they can: a linear complementarity problem with bounds, by pivoting.

Find f with  low ≤ f ≤ high  and  w = b − H f  such that  w_i = 0 where f_i lies between its bounds, w_i ≥ 0 where f_i = high_i and
w_i ≤ 0 where f_i = low_i;  H (m, m) is symmetric and positive semidefinite. It is the optimum of ½ fᵀH f − bᵀf within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import SimulationError
from veridyn.mechanics.system.dry_friction import DryFriction
from veridyn.mechanics.system.stepper import explicit_step
from veridyn.mechanics.system.tableau import tableau

EXCHANGES = (
    10  # of all that is on the wrong side at once, for each unknown; after them one at a time, which cannot cycle
)
ROUNDING = 1e-14  # of the diagonal of H: added to it, so that dependent directions share a force


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


Array = NDArray[np.float64]
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
class StepPart:
    """A part of a step: when and where it ends, the shares (R, m) along it, what came to rest at its end, and q̈ (R, n) just before."""

    time: float
    end: Array
    shares: Array
    stopped: Flags
    arriving: Array | None = None


class HoldingSteps:
    """Steps of R states under dry friction that holds; :attr:`parts` are those of the last step.

    `speeds`: where q̇ stands in a state. `rate`: the rates of states under given friction forces on the coordinates.
    """

    def __init__(
        self, friction: DryFriction, rate: FrictionRate, speeds: slice, runs: int, name: str, advance: Advance = RK4
    ) -> None:
        self.friction, self.rate, self.advance, self.speeds, self.name = friction, rate, advance, speeds, name
        self.shares = np.zeros((runs, len(friction.C)))
        self.parts: list[StepPart] = []
        self._limits = (
            None if friction.constant_limits is None else friction.limits(np.zeros((runs, friction.C.shape[1])))
        )
        self._response = self._own = np.zeros(
            0
        )  # ∂q̈/∂f (R, n, m), of this step or of one before it, and −∂c̈_i/∂f_i (R, m)

    def at_instant(self, t: float, y: Array) -> Array:
        """The shares (R, m) at an instant: signs of the speeds, and at rest those that agree with the accelerations."""
        friction, qd = self.friction, y[:, self.speeds]
        w = qd @ friction.C.T
        if not len(self._response):
            self._refresh(t, y)
        ahead, back, rest = self._bounds(qd)
        still = (np.abs(w) <= rest) & (rest > 0.0)
        shares = np.where(still, 0.0, np.sign(w))
        if still.any():
            self._refresh(t, y)
            a = self.rate(t, y, friction.forces(qd, shares))[:, self.speeds] @ friction.C.T
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
        qd = y[:, self.speeds]
        w = qd @ self.friction.C.T
        rest = self._bounds(qd)[2]
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
        arriving = self.rate(time, end, self.friction.forces(end[:, self.speeds], shares))[:, self.speeds].copy()
        return StepPart(time, self._halted(end, stopped), shares, stopped, arriving)

    def _balanced(self, t: float, y: Array, h: float, shares: Array, holdable: Flags) -> tuple[Array, Array]:
        """States after h seconds and shares: as given, and of what is `holdable` those that agree with the speeds at the end."""
        friction, fresh = self.friction, False
        ahead, back, rest = self._bounds(y[:, self.speeds])
        for trial in range(ITERATIONS):

            def under(time: float, state: Array, shares: Array = shares) -> Array:
                return self.rate(time, state, friction.forces(state[:, self.speeds], shares))

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

    def _bounds(self, qd: Array) -> tuple[Array, Array, Array]:
        """Friction forwards and backwards, and the speed it takes away within AT_REST_S, each (R, m).

        That speed is 0 where friction cannot hold, as what it acts on is not free to move, or it does not resist.
        """
        ahead, back = self._limits or self.friction.limits(qd)
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
    """s of friction forces within their limits."""
    limit = np.where(f > 0.0, ahead, back)
    return np.where(limit > 0.0, np.clip(f / np.where(limit > 0.0, limit, 1.0), -1.0, 1.0), 0.0)
