"""Which further terms of friction a joint needs: those that lower the residual by more than Schwarz's criterion charges for them.

A term that is not in the model has a column all the same (its value is zero). The decrease of Q that its column promises, beside the
unknowns that are estimated already, chooses the next term of each joint; a term stays where Q really falls by more than ln N, N the
independent samples of the log. Only the samples of the fit are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.errors import IdentificationError
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_search import DriveMinimum, DriveProblem, LinearDrives, search
from veridyn.identify.drives.drive_unknowns import LOAD, PRESLIDING, RUNGS, DriveUnknown

LOOSE_SIGMAS = 0.7  # a step as short ends a search whose weights or terms still change
STEPS_PER_WEIGHTS = 2  # of a search whose weights are not settled: one moves, the next tells whether that was far
WEIGHT_CHANGE = 0.2  # relative: smaller changes of weights ask for no other search


@dataclass(frozen=True)
class Rung:
    """A term of friction that was tried: the decrease of Q, what it had to be, and whether it stayed."""

    joint: str
    term: str
    decrease: float
    needed: float
    kept: bool


def settle(
    problem: DriveProblem, found: DriveMinimum, iterations: int, tolerance: float = LOOSE_SIGMAS
) -> tuple[DriveProblem, DriveMinimum]:
    """Weights and values that agree with each other: weights of residuals that were larger give priors too much say.

    Weights are renewed every other step of the search. Where they swing between two values, the last ones are as good as the others.
    """
    for _ in range(iterations):
        found = search(problem, found, iterations=iterations, tolerance=tolerance, steps=STEPS_PER_WEIGHTS)
        new, there = problem.reweighted(found)
        if np.abs(new.weights / problem.weights - 1.0).max() >= WEIGHT_CHANGE:
            problem, found = new, there
        elif found.converged:
            return problem, found
    return problem, search(problem, found, iterations=iterations, tolerance=tolerance)


def independent(problem: DriveProblem, found: DriveMinimum) -> float:
    """Independent samples of all joints: Σ N/m."""
    raw = found.linear.residuals / problem.weights
    variance = (raw**2).mean(axis=0)
    return float((len(raw) * problem.weights**2 * variance).sum())


def price(problem: DriveProblem, found: DriveMinimum) -> float:
    """ln N: by how much a further number has to lower Q."""
    return math.log(max(independent(problem, found), 2.0))


def choose_terms(
    problem: DriveProblem, found: DriveMinimum, iterations: int
) -> tuple[DriveProblem, DriveMinimum, tuple[Rung, ...]]:
    """The problem with the terms of friction that it needs, settled, and what was tried."""
    tried: list[Rung] = []
    for _ in RUNGS:
        gone = {(r.joint, r.term) for r in tried if not r.kept}
        chosen = [k for _, k in promises(problem, found, gone).values()]
        if not chosen:
            break
        needed = price(problem, found)
        larger = replace(problem, active=tuple(sorted((*problem.active, *chosen))))
        try:
            new = search(larger, found, iterations=iterations, tolerance=LOOSE_SIGMAS)
        except IdentificationError:
            new = found
        decrease = found.cost - new.cost
        kept, share = decrease > needed * len(chosen), decrease / len(chosen)
        by_load = [k for k in chosen if problem.unknowns[k].key in LOAD]
        if not kept and 0 < len(by_load) < len(chosen):  # terms of other joints have another try without them
            chosen = by_load
        tried += [Rung(problem.unknowns[k].joints[0], problem.unknowns[k].key, share, needed, kept) for k in chosen]
        if kept:
            problem, found = settle(larger, new, iterations)
    return problem, found, tuple(tried)


def promises(
    problem: DriveProblem, found: DriveMinimum, gone: Collection[tuple[str, str]] = ()
) -> dict[str, tuple[float, int]]:
    """Of each joint the term whose column promises the largest decrease of Q, where that is more than it costs: decrease, unknown."""
    linear, z = found.linear, found.z
    needed = price(problem, found)
    active = list(problem.active)
    A, g = linear.normal(active, z)
    J = linear.columns.reshape(-1, linear.columns.shape[2])
    r, JA = linear.residuals.ravel(), J[:, active]
    best: dict[str, tuple[float, int]] = {}
    yielding, loaded = (
        {problem.unknowns[k].joints[0] for k in active if problem.unknowns[k].key == key}
        for key in (PRESLIDING, "load_friction")
    )
    for k, u in enumerate(problem.unknowns):
        if k in active or u.key not in RUNGS or (u.joints[0], u.key) in gone:
            continue
        if u.key in LOAD and u.joints[0] in yielding:  # load adds to friction that holds
            continue
        if u.key == "backdrive_friction" and u.joints[0] not in loaded:  # it is more of what grows with load
            continue
        c = J[:, k]
        across = JA.T @ c
        half = np.linalg.solve(A, across)
        curvature = float(c @ c + 1.0 - across @ half)
        slope = float(c @ r - half @ g)
        promised = slope**2 / curvature if slope < 0.0 or u.prior > u.low else 0.0
        if promised > needed and promised > best.get(u.joints[0], (0.0, 0))[0]:
            best[u.joints[0]] = (promised, k)
    return best


def with_columns(
    problem: DriveProblem, found: DriveMinimum, further: Sequence[DriveUnknown]
) -> tuple[DriveProblem, DriveMinimum]:
    """The same point with columns of further unknowns, which are not estimated yet."""
    group = problem.group
    larger = replace(problem, group=DriveGroup(group.whole, group.joints, (*group.unknowns, *further), group.runs))
    return larger, larger.at(np.append(found.z, np.zeros(len(further))))


def without_columns(
    problem: DriveProblem, found: DriveMinimum, keys: Collection[str]
) -> tuple[DriveProblem, DriveMinimum]:
    """The same point without unknowns of these keys that are not estimated."""
    kept = [k for k, u in enumerate(problem.unknowns) if u.key not in keys or k in problem.active]
    if len(kept) == len(problem.unknowns):
        return problem, found
    group = problem.group
    smaller = DriveGroup(group.whole, group.joints, [problem.unknowns[k] for k in kept], group.runs)
    active = tuple(kept.index(k) for k in problem.active)
    linear = LinearDrives(found.linear.residuals, found.linear.columns[:, :, kept])
    return replace(problem, group=smaller, active=active), replace(found, z=found.z[kept], linear=linear)
