"""What a machine may do, guessed where its file does not say it: ranges, speeds, accelerations, and the forces these ask for.

A URDF has ranges, speeds and efforts, often the ones its author never filled in (±10 rad, 1000 rad/s, 1000 N*m). The guesses are those of a
careful first experiment; each is marked as a guess where it is written down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.files.machine.urdf import UrdfLimits, urdf_limits
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
HALF_RANGE = {"turning": 1.0, "sliding": 0.1}  # rad, m: of a coordinate without a range, about where it is assembled
LARGEST_HALF_RANGE = {"turning": math.pi, "sliding": 1.0}  # rad, m: what is wider is the word of nobody
LARGEST_SPEED = {"turning": 2.0, "sliding": 0.5}  # rad/s, m/s
RAMP = 0.25  # s in which a joint reaches its largest speed
POSTURES = 200  # random ones, whose forces are predicted
NOISE_SHARE = 0.02  # of the rms force of a row
LEAST_NOISE_SHARE = 0.001  # of the rms force of the strongest row of the same kind
FRICTION_SHARE = (
    0.5  # of an effort that dry friction may use up; with more the effort is taken for a mistake of the file
)


@dataclass(frozen=True)
class JointGuess:
    """Limits of one coordinate (rad or m, per s, per s²); `guessed` names those that no file gave."""

    name: str
    kind: str
    low: float
    high: float
    speed: float
    acceleration: float
    guessed: tuple[str, ...]


def guessed_limits(machine: Machine, model: Path) -> tuple[JointGuess, ...]:
    """For each coordinate that is led, limits of the URDF where they can be meant, and guesses elsewhere."""
    said = urdf_limits(model) if model.suffix.lower() == ".urdf" else {}
    home = assembled(machine).home if machine.closed else np.zeros(machine.n)
    led = machine.independent if machine.closed else range(machine.n)
    return tuple(
        _guess(
            machine.coordinates[k],
            machine.coordinate_kinds[k],
            said.get(machine.coordinates[k], UrdfLimits()),
            float(home[k]),
        )
        for k in led
    )


def _guess(name: str, kind: str, said: UrdfLimits, home: float) -> JointGuess:
    guessed = ["acceleration"]
    low, high = said.lower, said.upper
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        reach = LARGEST_HALF_RANGE if said != UrdfLimits() else HALF_RANGE
        low, high = home - reach[kind], home + reach[kind]
        guessed.append("range")
    elif high - low > 2.0 * LARGEST_HALF_RANGE[kind]:
        middle = min(max(home, low + LARGEST_HALF_RANGE[kind]), high - LARGEST_HALF_RANGE[kind])
        low, high = middle - LARGEST_HALF_RANGE[kind], middle + LARGEST_HALF_RANGE[kind]
        guessed.append("range")
    speed = said.velocity
    if not 0.0 < speed <= LARGEST_SPEED[kind]:
        speed = LARGEST_SPEED[kind]
        guessed.append("speed")
    return JointGuess(name, kind, low, high, speed, speed / RAMP, tuple(guessed))


def guessed_efforts(machine: Machine, model: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Efforts of a URDF that its own dry friction leaves room in, by row, and those that it does not."""
    said = urdf_limits(model) if model.suffix.lower() == ".urdf" else {}
    dry: dict[str, float] = {}
    for e in machine.elements:
        if e.jumps and list(e.on.values()) == [1.0] and math.isfinite(e.value):
            dry[next(iter(e.on))] = dry.get(next(iter(e.on)), 0.0) + abs(e.value)
    given = {c: x.effort for c, x in said.items() if c in machine.coordinates and 0.0 < x.effort < math.inf}
    usable = {c: effort for c, effort in given.items() if dry.get(c, 0.0) < FRICTION_SHARE * effort}
    return usable, {c: effort for c, effort in given.items() if c not in usable}


def force_sizes(machine: Machine, limits: tuple[JointGuess, ...]) -> dict[str, float]:
    """Coordinate → rms force (N*m or N) in random states within these limits; nothing where the model cannot predict any."""
    if machine.closed or machine.base == "free" or machine.parameters.missing() or machine.parameters.values.size == 0:
        return {}
    rng = np.random.default_rng(0)
    low, high, speed, acceleration = (
        np.array([getattr(x, key) for x in limits]) for key in ("low", "high", "speed", "acceleration")
    )
    size = (POSTURES, len(limits))
    qd, qdd = (limit * rng.uniform(-0.5, 0.5, size) for limit in (speed, acceleration))
    m = Motion(np.arange(float(POSTURES)), rng.uniform(low, high, size), qd, qdd)
    force = inverse_dynamics(machine, m, "joints")
    return dict(zip(machine.coordinates, (float(x) for x in np.sqrt((force**2).mean(axis=0))), strict=True))


def guessed_noise(machine: Machine, sizes: Mapping[str, float]) -> dict[str, float]:
    """Coordinate → standard deviation of its force sensor: 2 % of the rms force, and 0.1 % of the strongest of its kind at least."""
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    most = {kind: max((x for c, x in sizes.items() if kinds[c] == kind), default=0.0) for kind in set(kinds.values())}
    noise = {c: max(NOISE_SHARE * x, LEAST_NOISE_SHARE * most[kinds[c]]) for c, x in sizes.items()}
    return {c: float(f"{x:.2g}") if x > 0.0 else 1e-3 for c, x in noise.items()}
