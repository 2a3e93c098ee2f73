"""What a car's maker knows beside the unknown parameters, and how it enters the equations: wheel paths and the air.

A wheel does not rise straight up. Its axle's tables say how half track, wheelbase, toe, camber and kingpin angle follow the clearance, and
the suspension's force is in balance along that path:

    row(z) + Σ ∂q/∂z · row(q) = 0,   q = dl, dL, beta, camber, kingpin

The forces by which links hold the wheel on its path do no work along it, and so need not be known. The row of the clearance alone, which
paper 000 takes, leaves out the work of side force and overturning moment: about a tenth of the side force, which comes with roll and is
taken for stiffness (see docs/papers/car.md). On a driven axle the moment about the wheel's axis that a dynamometer reads comes through
the shaft and not through the carrier, so its kingpin row is left out as long as the brakes are open.

The air's other components come from tables too (paper 000, VI.A); Cx alone is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.car_record import CarKinematics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.simulate.vehicle.aerodynamics import Aerodynamics

Array = NDArray[np.float64]
FOLLOWERS = ("dl", "dL", "beta", "camber", "kingpin")  # in the order of the tables
FINE = 1e-4  # m, over which the tables' slopes are taken


def paths(machine: Machine, driven: tuple[int, ...] = (1, 2)) -> Mapping[str, Mapping[str, str]]:
    """For ``Sampling(along=…)``: clearance → the rows that follow it → signals of :func:`informed`. Empty for a car without such rows.

    `driven` names the wheels on shafts.
    """
    if "dl1" not in machine.coordinates:
        return {}
    rows = {i: [q for q in FOLLOWERS if not (q == "kingpin" and i in driven)] for i in range(1, 5)}
    return {f"z{i}": {f"{q}{i}": f"path.{q}{i}" for q in every} for i, every in rows.items()}


def slopes(kinematics: CarKinematics, clearance: Array) -> Array:
    """∂(half track, wheelbase, toe, camber, kingpin)/∂z of each wheel (N, 4, 5), from the tables at clearances (N, 4)."""
    beside = clearance - np.array(kinematics.design)
    still = np.zeros(len(clearance))
    tables = kinematics.tables
    return (tables.at(beside + FINE, still) - tables.at(beside - FINE, still)) / (2.0 * FINE)


def air(aerodynamics: Aerodynamics, velocity: Array) -> Array:
    """The wrench of the air on the chassis at its origin (N, 6) by its table, less the drag along x that is estimated."""
    speed = np.linalg.norm(velocity, axis=1)
    table = np.stack([np.interp(speed, aerodynamics.speeds, c) for c in np.array(aerodynamics.coefficients).T], axis=1)
    slip = np.where(speed > 1e-6, np.arctan2(velocity[:, 1], velocity[:, 0]), 0.0)
    wrench = -(table + slip[:, None] * np.array(aerodynamics.sideslip)) * (speed**2)[:, None]
    wrench[:, 0] = 0.0
    return wrench


def informed(
    motion: Motion, machine: Machine, kinematics: CarKinematics, aerodynamics: Aerodynamics | None = None
) -> Motion:
    """The motion with slopes of the wheel paths as signals `path.dl1` and so on, and the known part of the air as a wrench on the "
    "chassis."""
    signals, wrenches = dict(motion.signals), dict(motion.wrenches)
    if "dl1" in machine.coordinates:
        z = motion.q[:, [machine.coordinates.index(f"z{i}") for i in range(1, 5)]]
        slope = slopes(kinematics, z)
        signals |= {f"path.{q}{i + 1}": slope[:, i, k] for i in range(4) for k, q in enumerate(FOLLOWERS)}
    if aerodynamics is not None:
        assert motion.base is not None and motion.base.velocity is not None  # the car's own elements ask for them
        wrenches["chassis"] = air(aerodynamics, motion.base.velocity)
    return replace(motion, signals=signals, wrenches=wrenches)
