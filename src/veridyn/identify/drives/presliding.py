"""Whether the dry friction of a joint yields before it slides: Dahl's law in place of Coulomb's, by Schwarz's criterion.

    f_s z/δ,   dz/dt = v − |v| z/δ          Coulomb's law is its limit δ → 0, so that the law has one number more, the distance δ

Each joint with Coulomb friction is simulated with distances δ of a grid and otherwise as it was found; what the residuals change by, less
what the unknowns can make up for by their columns, promises a decrease of Q. The search with the best δ decides, as for other terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.errors import IdentificationError, SimulationError
from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_search import DriveMinimum, DriveProblem, search
from veridyn.identify.drives.drive_unknowns import LOAD, PRESLIDING, WITHIN_FACTOR, DriveUnknown, only_joint
from veridyn.identify.drives.friction_choice import LOOSE_SIGMAS, Rung, price, promises, settle
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.model.elements.element import Element, lugre
from veridyn.model.flexible import BRISTLE_DAMPING_S
from veridyn.model.machine import Machine

# rad of phase of the bristles' own vibration in a tick, above which an explicit step does not follow it
LARGEST_PHASE = 0.5
SPACING = 3.0  # of the grid of δ, a factor; the prior of δ reaches further than to its neighbours
LARGEST_SHARE = 0.1  # of the way of a joint: friction that yields over more of it is a spring


def dry_element(machine: Machine, joint: str) -> Element | None:
    """The Coulomb friction of a joint by itself; None where it has none."""
    own = (e for e in machine.elements if e.kind == "coulomb" and only_joint(e, (joint,)) is not None)
    return next(own, None)


def with_presliding(machine: Machine, distances: Mapping[str, float]) -> Machine:
    """The machine whose Coulomb friction of these joints yields over these distances, rad or m; parameters keep names and values."""
    soft = {
        e: lugre(joint, distance, BRISTLE_DAMPING_S, e.value, e.parameter_name)
        for joint, distance in distances.items()
        if (e := dry_element(machine, joint)) is not None
    }
    return replace(machine, elements=tuple(soft.get(e, e) for e in machine.elements)) if soft else machine


def choose_presliding(
    problem: DriveProblem, found: DriveMinimum, iterations: int, *, rivals: bool
) -> tuple[DriveProblem, DriveMinimum, tuple[Rung, ...]]:
    """The problem with Dahl's law at the joints that need it, settled, and what was tried.

    With `rivals`, joints of which another term of friction promises more are left as they are.
    """
    tried: list[Rung] = []
    others = promises(problem, found) if rivals else {}
    loaded = {problem.unknowns[k].joints[0] for k in problem.active if problem.unknowns[k].key in LOAD}
    for joint in problem.group.joints:
        if joint in loaded:  # load adds to friction that holds
            continue
        needed = price(problem, found)
        promised, distance = _promised(problem, found, joint)
        if promised <= max(needed, others.get(joint, (0.0, 0))[0]):
            continue
        larger, start = _yielding(problem, found, joint, distance)
        try:
            new = search(larger, start, iterations=iterations, tolerance=LOOSE_SIGMAS)
        except IdentificationError:
            continue
        decrease = found.cost - new.cost
        tried.append(Rung(joint, PRESLIDING, decrease, needed, decrease > needed))
        if decrease > needed:
            problem, found = settle(larger, new, iterations)
    return problem, found, tuple(tried)


def _grid(problem: DriveProblem, found: DriveMinimum, joint: str) -> list[float]:
    """Distances to try: from what steps of the drives can follow to a part of the way."""
    group = problem.group
    e = dry_element(group.whole, joint)
    if e is None:
        return []
    x = dict(zip([u.name for u in problem.unknowns], problem.values(found.z).tolist(), strict=True))
    own = {name: v for name, v in x.items() if name in group.machine.parameters.names}
    machine, j = group.machine.with_parameters(own), group.joints.index(joint)
    at = problem.records[0].coordinates.index(joint)
    way = max(float(np.ptp(r.position[:, at])) for r in problem.records)
    q = np.median(
        problem.records[0].position[:, [problem.records[0].coordinates.index(c) for c in group.joints]], axis=0
    )
    inertia = float(mass_matrix(machine, q[None])[0, j, j])
    dry = machine.parameters[e.parameter_name]
    least = dry * (group.period / LARGEST_PHASE) ** 2 / inertia
    most = LARGEST_SHARE * way
    if not 0.0 < least < most:
        return []
    count = 1 + max(0, math.floor(math.log(most / least) / math.log(SPACING)))
    return [most / SPACING**k for k in range(count)]


def _unknown(problem: DriveProblem, joint: str, distance: float) -> DriveUnknown:
    e = dry_element(problem.group.whole, joint)
    assert e is not None  # there is a grid for it
    unit = "rad" if problem.group.machine.kinds[joint] == "turning" else "m"
    return DriveUnknown(
        name=f"{e.parameter_name}.deflection",
        key=PRESLIDING,
        joints=(joint,),
        unit=unit,
        prior=distance,
        spread=math.log(WITHIN_FACTOR),
        scales=True,
    )


def _with_joint(problem: DriveProblem, joint: str, distance: float) -> DriveGroup:
    group, soft = problem.group, {joint: distance}
    runs: Sequence[Machine] = [with_presliding(m, soft) for m in group.runs]
    unknowns = (*group.unknowns, _unknown(problem, joint, distance))
    return DriveGroup(with_presliding(group.whole, soft), group.joints, unknowns, runs)


def _promised(problem: DriveProblem, found: DriveMinimum, joint: str) -> tuple[float, float]:
    """The largest decrease of Q that friction of a joint which yields promises, and its distance."""
    grid = _grid(problem, found, joint)
    if not grid:
        return 0.0, 0.0
    active = list(problem.active)
    A, g = found.linear.normal(active, found.z)
    J = found.linear.columns[:, :, active].reshape(-1, len(active))
    now = found.cost - float(g @ np.linalg.solve(A, g))
    group, x, best = _with_joint(problem, joint, grid[0]), problem.values(found.z), (0.0, 0.0)
    for distance in grid:
        try:
            own = np.concatenate(
                [group.simulate(r, np.append(x, distance), False)[0] - problem.measured(r) for r in problem.records]
            )
        except SimulationError:
            continue
        r = (own * problem.weights).ravel()
        slope = J.T @ r + found.z[active]
        then = float(r @ r + found.z @ found.z - slope @ np.linalg.solve(A, slope))
        if now - then > best[0]:
            best = (now - then, distance)
    return best


def _yielding(
    problem: DriveProblem, found: DriveMinimum, joint: str, distance: float
) -> tuple[DriveProblem, DriveMinimum]:
    """The problem with friction of a joint that yields, and a point to search from."""
    group = _with_joint(problem, joint, distance)
    larger = replace(problem, group=group, active=(*problem.active, len(problem.unknowns)))
    return larger, larger.at(np.append(found.z, 0.0))
