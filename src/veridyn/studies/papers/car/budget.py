"""How far an identified car may be off: noise, the instruments' zeros, what the model leaves out, and what it takes for straight.

    σ² = σ²(noise) + σ²(zeros) + σ²(left out) + bend²/3

Noise: what the residuals of the widest model do to the estimates, allowing for a memory of `MEMORY` seconds (Newey and West, 1987, as in
:mod:`veridyn.identify.estimators.coloured`). Zeros: what is left of each instrument's zero, from its data sheet, carried through the
equations. Left out: the reduced model sets nine inertial parameters of each unsprung body to zero; what a body of that mass and size can
have there is carried through in the same way. Bend: springs, dampers and bars are not straight lines; a model with curves finds other
secants (:mod:`veridyn.studies.papers.car.bent`), and the difference, which is not corrected for, counts as the half-width of an even
distribution, as the Guide to the Expression of Uncertainty in Measurement has it (JCGM 100:2008, 4.3.7). Nothing of this needs the truth.
What no wider model shows stays unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.equation_plan import EquationPlan, Job
from veridyn.identify.observation import stream
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import predicted
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.tree import Tree
from veridyn.studies.papers.car.bent import Bent

Array = NDArray[np.float64]
CENTRE = 0.05  # m, of an unsprung body's centre from the wheel centre, along each axis; chosen
GYRATION = 0.15  # m, its radius of gyration; chosen. Products of inertia: a quarter of its moments
LEFT_OUT = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ")
MEMORY = 1.0  # s, three times that of the filter of the chassis' rows; chosen
SOME = 4  # one equation in so many is asked what a zero does to it
MIRROR = {"XY": -1.0, "YZ": -1.0, "MY": -1.0}  # what a mirror image changes the sign of


@dataclass(frozen=True, eq=False)
class Budget:
    """Standard deviations of the parameters of a fit by where they come from, each (p,), and all together."""

    names: tuple[str, ...]
    noise: Array
    zeros: Array
    left_out: Array
    bend: Array

    @property
    def total(self) -> Array:
        return np.sqrt(self.noise**2 + self.zeros**2 + self.left_out**2 + self.bend**2)


@dataclass(frozen=True, eq=False)
class Weighted:
    """The weighted equations of a fit: W (n, p), what it left over (n,), columns left out (n, m), and where each row of each motion "
    "stands."""

    W: Array
    residual: Array
    more: Array
    more_names: tuple[str, ...]
    places: Mapping[tuple[int, str], tuple[slice, NDArray[np.intp]]]
    sigma: Mapping[str, float]

    def moved(self, change: Array) -> Array:
        """How the parameters answer to changes (n, m) of the weighted measurements, (p, m)."""
        return np.asarray(np.linalg.lstsq(self.W, change)[0], dtype=np.float64)


def budget(
    fit: Fit,
    wide: Tree,
    motions: Sequence[Motion],
    sampling: Sampling,
    zeros: Mapping[str, float],
    curved: Bent,
) -> Budget:
    """The deviations of a fit. `wide`: the same tree with the unsprung bodies' inertia estimated as well; `curved`: the fit with curves.

    `zeros`: kind of instrument (gyro, accelerometer, clearance, speed, steering, force, moment) → deviation of its zero.
    """
    equations = weighted(fit, wide, motions, sampling)
    left = weighted(curved.fit, curved.fit.tree, curved.motions, sampling)
    rate = 1.0 / (float(np.median(np.diff(motions[0].t))) * sampling.decimate)
    changes = np.column_stack(_zero_changes(fit, motions, sampling, equations, zeros))
    some = np.isfinite(changes[:, 0])
    by_zero = np.linalg.lstsq(equations.W[some], changes[some])[0]
    left_out = np.array(list(_left_out(fit, equations)))
    bend = [curved.secants.get(name, float(x)) - float(x) for name, x in zip(fit.names, fit.values, strict=True)]
    return Budget(
        fit.names,
        remembered(equations, left, round(MEMORY * rate)),
        np.sqrt((by_zero**2).sum(axis=1)),
        np.sqrt((left_out**2).sum(axis=0)),
        np.abs(np.array(bend)) / np.sqrt(3.0),
    )


def _kept(plan: EquationPlan, job: Job) -> list[tuple[NDArray[np.intp], list[Array]]]:
    return [(b.numbers, [A.copy() for A in b.equations]) for b in plan.blocks(job)]


def weighted(fit: Fit, wide: Tree, motions: Sequence[Motion], sampling: Sampling) -> Weighted:
    """All equations of the fit at once, divided by the deviations of their rows."""
    rows = [r.row for r in fit.rows]
    sigma = {r.row: r.sigma for r in fit.rows}
    samples = stream(wide, motions[0], rows, sampling)
    p = wide.parameters
    mine = [p.index(fit.tree.parameters.names[c]) for c in fit.base.columns]
    others = [c for c in p.select("estimated") if c not in mine]
    mine_values = np.zeros(len(p))
    mine_values[mine] = fit.values
    W, rest, more, places, first = [], [], [], {}, 0
    for k, motion in enumerate(motions):
        parts = [part for found in replace(samples, motions=(motion,)).each(_kept) for part in found]
        numbers = np.concatenate([n for n, _ in parts])
        numbers = numbers[(numbers >= sampling.trim) & (numbers < len(motion) - sampling.trim)]
        for j, row in enumerate(rows):
            A = np.concatenate([equations[j] for _, equations in parts]) / sigma[row]
            columns = samples.plan.columns[j]
            wideA = np.zeros((len(A), len(p)))
            wideA[:, list(columns)] = A[:, :-1]
            W.append(wideA[:, mine])
            rest.append(A[:, -1] - wideA @ mine_values)
            more.append(wideA[:, others])
            places[k, row] = (slice(first, first + len(A)), numbers)
            first += len(A)
    names = tuple(p.names[c] for c in others)
    return Weighted(np.vstack(W), np.concatenate(rest), np.vstack(more), names, places, sigma)


def remembered(equations: Weighted, left: Weighted, lags: int) -> Array:
    """Deviations of the parameters of `equations` if noise is what another model of the same rows left over, with a memory of `lags`."""
    p = equations.W.shape[1]
    meat = np.zeros((p, p))
    rows = list(equations.sigma)
    for k in sorted({k for k, _ in equations.places}):
        scores: Array = np.zeros((len(equations.places[k, rows[0]][1]), p))
        for row in rows:
            at = equations.places[k, row][0]
            again = left.sigma[row] / equations.sigma[row]
            scores += equations.W[at] * (again * left.residual[left.places[k, row][0]])[:, None]
        padded = np.vstack([np.zeros((lags + 1, p)), scores, np.zeros((lags, p))])
        sums = np.cumsum(padded, axis=0)
        windows = sums[lags + 1 :] - sums[: -lags - 1]
        meat += windows.T @ windows / (lags + 1.0)
    R = np.linalg.qr(equations.W, mode="r")
    half = np.linalg.solve(R, np.linalg.inv(R).T)  # (WᵀW)⁻¹
    return np.sqrt(np.diag(half @ meat @ half))


def _left_out(fit: Fit, equations: Weighted) -> Iterator[Array]:
    """What the unsprung bodies' other inertia may do to the parameters, for each symbol and axle, left and right being mirror images."""
    answer = dict(zip(equations.more_names, equations.moved(equations.more).T, strict=True))
    for symbol in LEFT_OUT:
        for left, right in (("1", "2"), ("3", "4")):
            if f"{symbol}{left}" in answer:
                mass = float(fit.tree.parameters[f"M{left}"])
                moment = mass * GYRATION**2 * (1.0 if symbol[0] == symbol[1] else 0.25)
                size = mass * CENTRE if symbol.startswith("M") else moment
                yield size * (answer[f"{symbol}{left}"] + MIRROR.get(symbol, 1.0) * answer[f"{symbol}{right}"])


def _zero_changes(
    fit: Fit, motions: Sequence[Motion], sampling: Sampling, equations: Weighted, zeros: Mapping[str, float]
) -> list[Array]:
    """The weighted change of one equation in `SOME`, NaN elsewhere, for one deviation of each instrument's zero.

    A zero is slow, so that filters let it pass and some of the equations tell as much as all.
    """
    changes: list[Array] = []
    for k, motion in enumerate(motions):
        step = SOME * sampling.decimate
        thin = motion[::step]
        variants = [thin, *_zeros(fit.tree, thin, zeros)]
        found = _residual(fit, _behind_each_other(variants), sampling).reshape(len(variants), len(thin), -1)
        changes = changes or [np.full(len(equations.W), np.nan) for _ in variants[1:]]
        for change, moved in zip(changes, found[1:] - found[0], strict=True):
            for j, r in enumerate(fit.rows):
                at, numbers = equations.places[k, r.row]
                taken = numbers % step == 0
                change[at][taken] = moved[numbers[taken] // step, j] / equations.sigma[r.row]
    return changes


def _behind_each_other(motions: Sequence[Motion]) -> Motion:
    """Motions of one machine as one, on a clock that only counts."""

    def every(of: str) -> Array:
        return np.concatenate([getattr(m, of) for m in motions])

    bases = [m.base for m in motions if m.base is not None]
    base = BaseMotion(
        *(np.concatenate([getattr(b, f) for b in bases]) for f in ("omega", "omega_dot", "acceleration", "velocity"))
    )
    return Motion(
        np.arange(sum(len(m) for m in motions), dtype=np.float64),
        every("q"),
        every("qd"),
        every("qdd"),
        base,
        wrenches={b: np.concatenate([m.wrenches[b] for m in motions]) for b in motions[0].wrenches},
        signals={s: np.concatenate([m.signals[s] for m in motions]) for s in motions[0].signals},
    )


def _residual(fit: Fit, motion: Motion, sampling: Sampling) -> Array:
    _, measured, model = predicted(fit, motion, sampling=sampling)
    return measured - model


def _zeros(tree: Tree, m: Motion, size: Mapping[str, float]) -> list[Motion]:
    """The motion as it would be with the zero of one instrument after the other off by its deviation."""
    base = m.base
    assert base is not None  # of a free chassis

    def with_base(**fields: Array) -> Motion:
        old = {"omega": base.omega, "omega_dot": base.omega_dot, "acceleration": base.acceleration}
        return replace(m, base=BaseMotion(**{**old, "velocity": base.velocity, **fields}))

    out = []
    for k in range(3):
        step = np.eye(3)[k]
        out.append(with_base(omega=base.omega + size["gyro"] * step))
        out.append(with_base(acceleration=base.acceleration + size["accelerometer"] * step))
        if k < 2 and base.velocity is not None:
            out.append(with_base(velocity=base.velocity + size["speed"] * step))
    kinds = {"z": "clearance", "beta": "steering", "camber": "steering"}
    for c, name in enumerate(tree.coordinates):
        kind = kinds.get(name[:-1])
        if kind is not None:
            q = m.q.copy()
            q[:, c] += size[kind]
            out.append(replace(m, q=q))
    for body, wrench in m.wrenches.items():
        for k in range(6) if body.startswith("unsprung") else ():
            shifted = wrench.copy()
            shifted[:, k] += size["force" if k < 3 else "moment"]
            out.append(replace(m, wrenches={**m.wrenches, body: shifted}))
    return out
