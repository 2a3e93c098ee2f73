"""The columns of some hundred samples for the questions of a diagnosis: those that separate, by machine code where it is there already.

Least squares leaves the same residual over independent columns as over all, and the machine code that streamed the log serves again;
forces of a fit are its columns times its values. Nothing is compiled for a diagnosis. Of their second moments many measurements are
explained by least squares at little cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from veridyn.arrays import Array
from veridyn.identify.regression.equation_plan import EquationPlan
from veridyn.identify.regression.observation import dependence
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Places = NDArray[np.intp]
LIKELIHOOD_ROUNDS = 4  # of weighing rows by what is left of them; each gains a factor
ROUNDING = 1e-9  # relative: what is smaller beside the largest of its kind is rounding
DIFFERENCE = float(
    np.cbrt(np.finfo(float).eps)
)  # step of a difference, where its truncation is as small as rounding allows
RIDGE = 1e-10  # beside columns of norm one
BLOCK_SAMPLES = 1024  # at a time: memory that stays in cache
TOGETHER_SAMPLES = 4096  # of motions whose columns are computed in one pass: memory that stays small


class Columns(NamedTuple):
    """`W` (rows, N, k) of some samples; `known` (rows, N): what wrenches and known parameters ask of the rows.

    `parts` (rows, N): √Σ of the squares of what each known parameter asks, which does not cancel where a drive lifts a known machine.
    `numbers` (k,): the estimated parameters whose columns these are; `acting`: for each row, which of them can enter it.
    """

    W: Array
    known: Array
    parts: Array
    numbers: Places
    acting: tuple[Places, ...]


def columns_of(
    machine: Machine, m: Motion, rows: Sequence[str], every: bool = False, *, parts: bool = False
) -> Columns:
    """The columns of the rows along a motion: those that no others make up whatever the motion, or `every` estimated one.

    `parts`: what each known parameter asks is wanted, too; zero without.
    """
    plan = plan_of(machine, tuple(rows), every)
    p = machine.parameters
    numbers = np.array(sorted(set().union(*plan.columns)), dtype=np.intp)
    acting = tuple(np.searchsorted(numbers, np.array(cs, dtype=np.intp)) for cs in plan.columns)
    values = p.tie_matrix() @ np.where(np.array(p.states) == "known", p.values, 0.0)
    if not every and not machine.closed:
        there = compiled_plan(machine, rows, m, numbers.tolist())
        if there is not None:
            return _by_machine_code(there, m, numbers, values if parts else np.zeros_like(values))
    T = p.estimated_matrix()[:, numbers]
    used = np.flatnonzero(T.any(axis=1) | (values != 0.0))
    D = regressor(machine, replace(m, wrenches={}), list(rows), used.tolist(), engine="numpy").transpose(1, 0, 2)
    known = D @ values[used]
    asked = np.sqrt(D**2 @ values[used] ** 2) if parts and values.any() else np.zeros_like(known)
    if m.wrenches:
        known = known + external_rows(machine, m)[:, list(machine.select_rows(list(rows)))].T
    own = T[used]
    alone = np.array_equal(own, np.eye(len(used)))  # nothing is known or tied
    return Columns(D if alone else D @ own, known, asked, numbers, acting)


def fit_forces(fit: Fit, m: Motion, rows: Sequence[str]) -> Array:
    """Forces (N, rows) that a fit predicts along a motion: its inverse dynamics."""
    plan = (
        None if fit.described.closed else compiled_plan(fit.described, [r.row for r in fit.rows], m, fit.base.columns)
    )
    names = [] if plan is None else [fit.described.rows[r] for r in plan.rows]
    if plan is None or not set(rows) <= set(names):
        return inverse_dynamics(fit.described, m, list(rows), fit.standard)
    out, tables = np.empty((len(m), len(rows))), plan.tables(0)
    value = dict(zip(fit.base.columns, fit.values, strict=True))
    values = [np.array([*(value.get(c, 0.0) for c in columns), 1.0]) for columns in plan.columns]
    for start in range(0, len(m), tables.block):
        part = slice(start, min(start + tables.block, len(m)))
        for j, A in enumerate(tables.fill(m[part])):
            if names[j] in rows:
                out[part, rows.index(names[j])] = A @ values[j]
    return out


def compiled_plan(machine: Machine, rows: Sequence[str], m: Motion, columns: Sequence[int]) -> EquationPlan | None:
    """Of these estimated columns, and maybe more, by machine code that is there already; None where there is none."""
    for every in (True, False):
        plan = plan_of(machine, tuple(rows), every, True)
        if plan.kept is not None and not set(columns) <= set(plan.kept):
            continue
        if plan.pays("auto", m, 0):
            return plan
    return None


@lru_cache(maxsize=8)
def plan_of(machine: Machine, rows: tuple[str, ...], every: bool, compile: bool = False) -> EquationPlan:
    """Of `every` estimated column, or of those that no others make up."""
    rule = None if every else dependence(machine)
    chosen, how = machine.select_rows(list(rows)), Sampling(block=BLOCK_SAMPLES)
    return EquationPlan(machine, chosen, how, compile, kept=None if rule is None else rule.kept)


def _by_machine_code(plan: EquationPlan, m: Motion, numbers: Places, values: Array) -> Columns:
    """Columns with these `numbers`, by a plan that has them and maybe more; `values` of known parameters, zero of others."""
    own = [np.flatnonzero(np.isin(cs, numbers)) for cs in plan.columns]
    acting = tuple(np.searchsorted(numbers, np.array(cs, dtype=np.intp)[o]) for cs, o in zip(plan.columns, own))
    W, known = np.zeros((len(plan.rows), len(m), len(numbers))), np.zeros((len(plan.rows), len(m)))
    tables = plan.tables(0)
    for start in range(0, len(m), tables.block):
        part = slice(start, min(start + tables.block, len(m)))
        for j, A in enumerate(tables.fill(m[part])):
            W[j, part, acting[j]] = A[:, own[j]].T
            known[j, part] = A[:, -1]
    parts, there = np.zeros_like(known), np.flatnonzero(values)
    if len(there):
        names = [plan.machine.rows[r] for r in plan.rows]
        D = regressor(plan.machine, replace(m, wrenches={}), names, there.tolist(), engine="numpy").transpose(1, 0, 2)
        parts = np.sqrt(D**2 @ values[there] ** 2)
    return Columns(W, known, parts, numbers, acting)


@dataclass(frozen=True, eq=False)
class Equations:
    """W φ = y of some samples, row by row: `W` (rows, N, k), `y` (rows, N), both divided by `sizes` (rows,).

    `numbers` (k,): the estimated parameters whose columns W has.
    """

    W: Array
    y: Array
    sizes: Array
    numbers: NDArray[np.intp]

    @cached_property
    def triangles(self) -> Array:
        """(rows, ≤ k + 1, k + 1): the R factors of [W_j | y_j]; least squares of them are those of W and y, however rows are weighed."""
        return triangles_of(np.concatenate([self.W, self.y[:, :, None]], axis=2))

    def solved(self, extra: Array | None = None) -> tuple[Array, Array]:
        """Least squares over the parameters and `extra` columns (rows, N, k): the values of the latter, and the residual (rows, N)."""
        if extra is None:
            return np.zeros(0), self.y - self.W @ _least_squares(self.triangles)
        A = np.concatenate([self.W, extra], axis=2)
        x = _least_squares(triangles_of(np.concatenate([A, self.y[:, :, None]], axis=2)))
        return x[self.W.shape[2] :], self.y - A @ x

    def values(self) -> Array:
        """Least squares of the parameters (k,), rows weighed by what is left of them."""
        left = self.triangles @ np.append(_least_squares(self.triangles), -1.0)
        return _least_squares(self.triangles / np.sqrt(squares(left))[:, None, None])

    def error(self) -> float:
        """What least squares leaves, as a share."""
        return share(self.triangles @ np.append(_least_squares(self.triangles), -1.0))


def triangles_of(columns: Array) -> Array:
    """(rows, ≤ k, k): the R factor of each row's columns (rows, N, k)."""
    return np.stack([np.linalg.qr(own, mode="r") for own in columns])


def _least_squares(triangles: Array) -> Array:
    """The parameters (k,) of rows [W_j | y_j] that are stacked."""
    flat = triangles.reshape(-1, triangles.shape[2])
    A, y = flat[:, :-1], flat[:, -1]
    norms = np.linalg.norm(A, axis=0)
    scale = np.where(norms > 0.0, norms, 1.0)
    return np.linalg.lstsq(A / scale, y, rcond=ROUNDING)[0] / scale


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """`W` (rows, N, p), and `grams` (rows, p, p) of it."""

    W: Array
    grams: Array

    @classmethod
    def of(cls, W: Array, acting: Sequence[NDArray[np.intp]]) -> SecondMoments:
        """Of columns (rows, N, p); `acting`: for each row those that are not zero there, which are about half of a chain's."""
        grams = np.zeros((len(W), W.shape[2], W.shape[2]))
        for gram, row, columns in zip(grams, W, acting, strict=True):
            own = row[:, columns]
            gram[np.ix_(columns, columns)] = own.T @ own
        return cls(W, grams)

    def left(self, y: Array, least: Array | float = 0.0) -> Array:
        """‖r_j‖ of each row (rows,) that least squares leaves of y (rows, N), rows weighed by s_j = ‖y_j‖, or `least` (rows,) if larger."""
        weights = _weights(y, least)
        phi = _solved(np.tensordot(weights, self.grams, 1), weights @ self._products(y))
        return np.asarray(np.linalg.norm(y - self.W @ phi, axis=1))

    def least(self, y: Array, weights: Array) -> float:
        """The least Σ_j w_j ‖y_j − W_j φ‖² of all parameters."""
        right = weights @ self._products(y)
        phi = _solved(np.tensordot(weights, self.grams, 1), right)
        return float(weights @ np.einsum("jn,jn->j", y, y) - right @ phi)

    def residual(self, y: Array) -> Array:
        """What is left (rows, N) of y by least squares in which each row is weighed by what is left of it."""
        r, weights, products = y, _weights(y), self._products(y)
        largest = weights / RIDGE**2  # of a row that is explained to rounding
        for _ in range(LIKELIHOOD_ROUNDS):
            phi = _solved(np.tensordot(weights, self.grams, 1), weights @ products)
            r = np.asarray(y - self.W @ phi, dtype=np.float64)
            weights = np.minimum(1.0 / squares(r), largest)
        return r

    def factor(self, y: Array, j: int) -> float:
        """λ of λ y_j = W_j φ beside the other rows as they are: the factor of one force that agrees best with the others."""
        weights = _weights(y)
        products = self._products(y)
        others = np.delete(np.arange(len(y)), j)
        p = self.grams.shape[1]
        gram = np.zeros((p + 1, p + 1))
        gram[:p, :p] = np.tensordot(weights, self.grams, 1)
        gram[:p, p] = gram[p, :p] = -weights[j] * products[j]
        gram[p, p] = weights[j] * float(y[j] @ y[j])
        return float(_solved(gram, np.append(weights[others] @ products[others], 0.0))[p])

    def _products(self, y: Array) -> Array:
        return (y[:, None, :] @ self.W)[:, 0]


def _weights(y: Array, least: Array | float = 0.0) -> Array:
    """1/s_j², s_j = max(‖y_j‖, least_j), one where nothing is measured."""
    sizes = np.maximum(np.einsum("jn,jn->j", y, y), np.square(least))
    return np.asarray(1.0 / np.where(sizes > 0.0, sizes, 1.0), dtype=np.float64)


def _solved(gram: Array, right: Array) -> Array:
    norms = np.sqrt(np.diag(gram))
    scale = np.where(norms > 0.0, norms, 1.0)
    scaled = gram / np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += RIDGE
    scaled[norms == 0.0, norms == 0.0] = 1.0
    return cho_solve(cho_factor(scaled, check_finite=False), right / scale, check_finite=False) / scale


def squares(r: Array) -> Array:
    """‖r_j‖² of each row, never zero."""
    return np.asarray(np.maximum(np.einsum("jn,jn->j", r, r), np.finfo(float).tiny), dtype=np.float64)


def share(residual: Array) -> float:
    """√(mean over rows of ‖r_j‖²) of residuals (rows, N) that are relative already."""
    return float(np.sqrt(np.mean(np.sum(residual**2, axis=1))))


def independent_share(correlation: float) -> float:
    """Which share of samples with this correlation of neighbours is as good as independent: (1 − a)/(1 + a) of an autoregression."""
    return (1.0 - correlation) / (1.0 + correlation)


def independent(r: Array) -> Array:
    """How many independent samples (rows,) those of residuals (rows, N) are worth, by the correlation of neighbours."""
    a = np.clip(np.einsum("jn,jn->j", r[:, 1:], r[:, :-1]) / squares(r), 0.0, 1.0 - 1.0 / r.shape[1])
    return np.asarray(r.shape[1] * (1.0 - a) / (1.0 + a), dtype=np.float64)
