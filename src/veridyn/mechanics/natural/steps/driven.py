"""A mechanism in natural coordinates that moves: driven by loads, or led along a motion of its independent coordinates.

Driven, its equations are integrated. Led, positions, rates and accelerations follow from the constraints, and the drives push with what
that takes: with R of q̇ = R ż, the equations Rᵀ (M q̈ − Q₀) = Rᵀ B u hold no constraint forces, so they give u.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.natural.equations.dynamics import NaturalState, solve_accelerations
from veridyn.mechanics.natural.equations.position import acceleration, position, r_matrix, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.steps.integrate import Loads, NaturalMethod, NaturalMotion, integrate_natural
from veridyn.mechanics.natural.steps.minimal import start_of
from veridyn.mechanics.system.control import Reference
from veridyn.mechanics.system.simulation import clock
from veridyn.model.load import Drive
from veridyn.progress import Progress, silent

SINGULAR_DRIVE = 1e-9  # of the drives' grip on the motion, relative to the largest


@dataclass(frozen=True, eq=False)
class MechanismRun:
    """A motion of a mechanism, and the loads that acted: name → (N, components)."""

    system: NaturalSystem
    motion: NaturalMotion
    loads: Mapping[str, Array]


def driven(
    system: NaturalSystem,
    duration: float,
    rate: float,
    loads: Loads | None = None,
    *,
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    method: NaturalMethod | None = None,
    progress: Progress = silent,
) -> MechanismRun:
    """The motion from coordinates and rates by name (rest, and the model's own pose, where left out) under loads given over time."""
    t = clock(duration, rate)
    q, qd = start_of(system, start, rates)
    qdd, multipliers = solve_accelerations(system, q, qd, None if loads is None else loads(0.0))
    state = NaturalState(0.0, q, qd, qdd, multipliers)
    motion = integrate_natural(system, t, state, loads, method=method, progress=progress)
    return MechanismRun(system, motion, _acting(system, t, loads))


def led(
    system: NaturalSystem,
    duration: float,
    rate: float,
    reference: Reference,
    names: Sequence[str],
    loads: Loads | None = None,
    *,
    progress: Progress = silent,
) -> MechanismRun:
    """The motion in which the coordinates `names` follow a reference exactly; every drive that `loads` does not give does what it takes.

    `names` must determine the mechanism, and there must be one such drive for each of them.
    """
    m, f = system.mechanism, system.forces
    t = clock(duration, rate)
    z, zd, zdd = reference.at(t)
    given = [] if loads is None else list(loads(0.0))
    drives = [load.name for load in m.loads if isinstance(load, Drive) and load.name not in given]
    faults = Faults()
    for name in names:
        if name not in m.coordinates:
            hint = did_you_mean(name, m.coordinates)
            faults.add(f"there is no coordinate '{name}'.", where=m.name, hint=hint)
    if z.shape[1] != len(names) or len(drives) != len(names):
        faults.add(
            "it cannot be led along this motion.",
            where=m.name,
            expected=f"one free drive for each of {', '.join(names)}",
            found=", ".join(drives) or "none",
        )
    faults.raise_if_any(DataError)
    at = [f.loads[name].start for name in drives]
    q, states, forces = system.guess, [], []
    for k, time in enumerate(t.tolist()):
        q = position(system, dict(zip(names, z[k].tolist())), q)
        qd = velocity(system, q, dict(zip(names, zd[k].tolist())))
        qdd = acceleration(system, q, qd, dict(zip(names, zdd[k].tolist())))
        values = f.load_values(None if loads is None else loads(time)).copy()
        values[at] = 0.0
        u = _taken(system, q, qd, qdd, values, at, tuple(names))
        values[at] = u
        _, multipliers = solve_accelerations(system, q, qd, values)
        states.append((q, qd, qdd, multipliers))
        forces.append(values)
        progress("simulating", time, float(t[-1]))
    motion = NaturalMotion(system.coordinates, t, *(np.array(x) for x in zip(*states)))
    table = np.array(forces)
    return MechanismRun(system, motion, {name: table[:, part] for name, part in f.loads.items()})


def _taken(
    system: NaturalSystem, q: Array, qd: Array, qdd: Array, values: Array, at: list[int], names: tuple[str, ...]
) -> Array:
    """What the drives push with, so that the mechanism accelerates so."""
    R = r_matrix(system, q, names)
    B = R.T @ system.forces.constant[:, at]
    s = np.linalg.svd(B, compute_uv=False)
    if s[-1] <= SINGULAR_DRIVE * s[0]:
        raise DataError(
            "its drives cannot move it along this motion: a push of theirs does nothing.",
            where=system.mechanism.name,
            found=f"smallest singular value {s[-1]:.1e} of the largest {s[0]:.1e}",
        )
    needed = R.T @ (system.mass @ qdd - system.forces.forces(q, qd, values))
    return np.asarray(np.linalg.solve(B, needed), dtype=np.float64)


def _acting(system: NaturalSystem, t: Array, loads: Loads | None) -> dict[str, Array]:
    f = system.forces
    table = np.array([f.load_values(None if loads is None else loads(time)) for time in t.tolist()])
    return {name: table[:, part] for name, part in f.loads.items()}
