"""Below which speed friction that changes along the way is rounded off, so that ticks of the drives can follow it.

The change along the way is a force F(q) tanh(q̇/v₀), which pulls at the speed at a rate F/(v₀ I), I the inertia that the joint feels. An
explicit step of length h follows rates below 2/h and runs away with faster ones. Friction resists motion everywhere, so that F is at most
about the dry friction f_s:

    v₀ ≥ f_s h/I        keeps the rate at half of that or less
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.identify.drives.drive_group import DriveGroup
from veridyn.identify.drives.drive_log import DriveRecord
from veridyn.identify.drives.drive_search import DriveMinimum, DriveProblem
from veridyn.identify.drives.drive_unknowns import ROUNDED_SPEED, only_joint, rung_terms
from veridyn.mechanics.tree.dynamics.forward import mass_matrix
from veridyn.model.machine import Machine

POSES = 20  # of a record, at which inertias are looked at


def rounded_speeds(problem: DriveProblem, found: DriveMinimum) -> dict[str, float]:
    """v₀ in rad/s or m/s of the joints where it is above ROUNDED_SPEED, with the frictions and inertias found."""
    group = problem.group
    x = dict(zip([u.name for u in problem.unknowns], problem.values(found.z).tolist(), strict=True))
    machine = group.machine.with_parameters({n: v for n, v in x.items() if n in group.machine.parameters.names})
    poses = np.concatenate([problem.measured(r)[:: max(1, len(r) // POSES)] for r in problem.records])
    mobility = np.diagonal(np.linalg.inv(mass_matrix(machine, poses)), axis1=1, axis2=2).max(axis=0)
    dry = {
        j: machine.parameters[e.parameter_name]
        for e in machine.elements
        if e.kind == "coulomb" and (j := only_joint(e, group.joints))
    }
    least = {j: f * group.period * float(mobility[group.joints.index(j)]) for j, f in dry.items()}
    return {j: float(f"{v:.2g}") for j, v in least.items() if v > ROUNDED_SPEED}


def with_rounding(
    problem: DriveProblem, found: DriveMinimum, records: Sequence[DriveRecord]
) -> tuple[DriveProblem, DriveMinimum, dict[str, float]]:
    """The same point, where no term along the way is estimated yet, with terms that steps can follow, and their v₀."""
    speeds = rounded_speeds(problem, found)
    if not speeds:
        return problem, found, speeds
    group = problem.group
    runs = [_rounded(m, records, speeds) for m in group.runs]
    larger = replace(
        problem, group=DriveGroup(_rounded(group.whole, records, speeds), group.joints, group.unknowns, runs)
    )
    return larger, larger.at(found.z), speeds


def _rounded(machine: Machine, records: Sequence[DriveRecord], speeds: Mapping[str, float]) -> Machine:
    new = {e.parameter_name: e for _, e in rung_terms(machine, records, speeds) if e.kind == "law"}
    return replace(
        machine, elements=tuple(new.get(e.parameter_name, e) if e.kind == "law" else e for e in machine.elements)
    )
