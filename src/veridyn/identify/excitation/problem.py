"""The search for an excitation as a problem of numbers: unknowns u in, goal and limits out, with exact slopes.

A periodic motion is x(φ) = B(φ) C with phases φ, a basis B (Fourier series or splines) and coefficients C (basis, n); at the frequency f
its rate is f B'C and its acceleration f² B''C. So positions on a grid of phases do not depend on f, and everything is linear in C.
The unknowns u are C over the reach of each coordinate and, where f is free, ln f last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import VeridynError
from veridyn.identify.excitation.criteria import Criterion, criterion
from veridyn.identify.excitation.limits import Bounds
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.shape import Shape
from veridyn.identify.interior import Limited
from veridyn.identify.interior_slopes import LimitSlopes, StackedSlopes, WholeSlopes, in_blocks

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExcitationProblem:
    """The goal and the limits on `phases` of one period, over unknowns u.

    `reach` (n,): by what each coordinate's coefficients are divided. `whitener` L⁻¹ with Σ = L Lᵀ. `frequency`: fixed, or its two ends.
    `margin`: the share of each limit that is kept free, for what lies between the phases.
    """

    plant: Plant
    shape: Shape
    bounds: Bounds
    goal: Criterion
    phases: Array
    reach: Array
    whitener: Array
    frequency: tuple[float, float]
    friction_speed: float
    margin: float = 0.0

    @cached_property
    def basis(self) -> Array:
        return self.shape.basis(self.phases)

    def with_dry_friction(self) -> ExcitationProblem:
        """The same with limits on forces that see friction jump, as the machine does, and not rounded off as in the search."""
        return replace(self, bounds=replace(self.bounds, friction_speed=0.0))

    @property
    def free_frequency(self) -> bool:
        return self.frequency[1] > self.frequency[0]

    def unknowns(self, C: Array, frequency: float) -> Array:
        u = (C / self.reach).ravel()
        return np.append(u, np.log(frequency)) if self.free_frequency else u

    def motion_of(self, u: Array) -> tuple[Array, float]:
        """Coefficients C and frequency."""
        f = float(np.exp(u[-1])) if self.free_frequency else self.frequency[0]
        flat = u[:-1] if self.free_frequency else u
        return flat.reshape(self.shape.count, -1) * self.reach, f

    def samples(self, u: Array, basis: Array | None = None) -> Array:
        """X (3, N, n) on the phases."""
        C, f = self.motion_of(u)
        X = (self.basis if basis is None else basis) @ C
        return X * np.array([1.0, f, f * f])[:, None, None]

    def information(self, X: Array, friction_speed: float | None = None) -> tuple[Array, Array]:
        """M over one sample on average, and the whitened regressor (N, rows, p)."""
        A = self.plant.regressor(X, self.friction_speed if friction_speed is None else friction_speed)
        Aw = np.ascontiguousarray(self.whitener @ A) if self.goal != "condition" else np.ascontiguousarray(A)
        flat = Aw.reshape(-1, A.shape[2])
        return flat.T @ flat / X.shape[1], Aw

    def value(self, u: Array) -> tuple[float, Array]:
        """The criterion and its gradient."""
        X = self.samples(u)
        M, Aw = self.information(X)
        value, Q = criterion(self.goal, M, self.typical)
        G = (2.0 / X.shape[1]) * (Aw @ Q)
        if self.goal != "condition":
            G = self.whitener.T @ G
        by_X = self.plant.adjoint(X, G, self.friction_speed)
        return value, self._pulled(X, by_X, u)

    def goal_alone(self, u: Array) -> float:
        """The criterion without its gradient."""
        return criterion(self.goal, self.information(self.samples(u))[0], self.typical)[0]

    @cached_property
    def typical(self) -> Array:
        base = self.plant.base
        return base.parameters.typical[list(base.columns)]

    def _pulled(self, X: Array, by_X: Array, u: Array) -> Array:
        """From the gradient by samples to that by unknowns."""
        f = self.motion_of(u)[1]
        scale = np.array([1.0, f, f * f])[:, None, None]
        by_C = (np.swapaxes(self.basis, 1, 2) @ (scale * by_X)).sum(axis=0) * self.reach
        if not self.free_frequency:
            return by_C.ravel()
        return np.append(by_C.ravel(), (X[1] * by_X[1]).sum() + 2.0 * (X[2] * by_X[2]).sum())

    def bounded(self, u: Array) -> Array:
        """All g, one after the other, and the place of ln f between its ends last; NaN where the machine cannot go."""
        try:
            g = self.bounds(self.samples(u), slopes=False)[0].ravel()
        except VeridynError:
            g = np.full(len(self.phases) * len(self.bounds.names), np.nan)
        return np.append(g, self._place(u)) if self.free_frequency else g

    def _place(self, u: Array) -> float:
        low, high = np.log(self.frequency)
        return float((2.0 * u[-1] - low - high) / (high - low))

    def slopes(self, u: Array) -> Array:
        """J (limits, unknowns)."""
        X = self.samples(u)
        dg = self.bounds(X)[1]
        assert dg is not None
        J = self._by_coefficients(dg, self.motion_of(u)[1])
        if not self.free_frequency:
            return J
        by_f = np.einsum("nki,ni->nk", dg[:, :, 1], X[1]) + 2.0 * np.einsum("nki,ni->nk", dg[:, :, 2], X[2])
        low, high = np.log(self.frequency)
        last = np.zeros((1, J.shape[1] + 1))
        last[0, -1] = 2.0 / (high - low)
        return np.vstack([np.column_stack([J, by_f.ravel()]), last])

    def _by_coefficients(self, dg: Array, f: float) -> Array:
        """(N k, unknowns) from slopes by samples (N, k, 3, n) at the frequency f."""
        scaled = self.basis * np.array([1.0, f, f * f])[:, None, None]
        N, k = dg.shape[:2]
        J = np.zeros((N, k, self.shape.count, dg.shape[3]))
        for order in range(3):
            if dg[:, :, order].any():
                J += scaled[order][:, None, :, None] * dg[:, :, order][:, :, None, :]
        return (J * self.reach).reshape(N * k, -1)

    def _split_slopes(self, joints: int) -> Callable[[Array], LimitSlopes]:
        """J as a function of u, where the first `joints` limits of a sample have constant slopes, joint by joint, and others follow."""
        count, n, f = self.shape.count, len(self.reach), self.frequency[0]
        still = self.bounds(self.samples(np.zeros(count * n)), only="joints")[1]
        assert still is not None  # slopes were asked for
        fixed = in_blocks(self._by_coefficients(still, f), np.arange(count * n).reshape(count, n).T)
        every = np.arange(len(self.phases) * len(self.bounds.names)).reshape(len(self.phases), -1)
        rows, others = every[:, :joints].ravel(), every[:, joints:].ravel()

        def slopes(u: Array) -> LimitSlopes:
            dg = self.bounds(self.samples(u), only="others")[1]
            assert dg is not None
            return StackedSlopes(fixed, WholeSlopes(self._by_coefficients(dg, f)), rows, others)

        return slopes if len(others) else lambda u: fixed

    def sides(self) -> tuple[Array, Array]:
        """The two sides of every limit in :meth:`bounded`."""
        low, high = self.bounds.sides
        low, high = np.where(low < 0.0, low * (1.0 - self.margin), self.margin), high * (1.0 - self.margin)
        low, high = np.tile(low, len(self.phases)), np.tile(high, len(self.phases))
        return (np.append(low, -1.0), np.append(high, 1.0)) if self.free_frequency else (low, high)

    def limited(self, goal: Callable[[Array], tuple[float, Array]] | None = None) -> Limited:
        """For :func:`~veridyn.identify.interior.minimise`; `goal`: another than the exact one."""
        joints = self.bounds.joint_limits
        fixed = joints > 0 and not self.free_frequency and self.plant.bounded == self.plant.coordinates
        return Limited(
            goal or self.value, self.bounded, self._split_slopes(joints) if fixed else self.slopes, *self.sides()
        )
