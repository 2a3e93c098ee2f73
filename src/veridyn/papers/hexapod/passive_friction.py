"""Rival models of the hexapod's passive friction: section 2 of paper 002 says how one is chosen, by cond ρ (11), and not from which.

The universal joints of the legs have twelve axes whose forces nobody measures. Table I gives all six first axes one dry friction and all
second ones another. The log of a choice is that of the machine written by hand, under a perfect controller, with the noise of the trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.friction_rivals import FrictionChoice, friction_rivals
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.comparison import drawn_runs
from veridyn.papers.hexapod.machine import LEGS, POSE, hexapod, truth
from veridyn.papers.hexapod.trials import HARMONICS, RATE, experiment
from veridyn.signals.frequency import dft_filter
from veridyn.signals.trajectory import FourierTrajectory

DRIVES, TABLE_I, DRY, VISCOUS = "drives alone", "Table I", "twelve dry", "twelve dry, twelve viscous"
AXES = tuple(f"{axis}{k}" for k in range(1, 7) for axis in "ab")
DRY_NAMES = {f"{axis}{k}": f"r{axis}{'' if k == 1 else f'_{k}'}" for k in range(1, 7) for axis in "ab"}
# Samples at which noise of lengths leaves the sign of a speed open: rates of the filtered motion are exact to some 1e-4 of these
ZONES = Sampling(dead_zone=dict.fromkeys(LEGS, 1e-3) | dict.fromkeys(AXES, 1e-3))  # m/s, rad/s
PERIODS = 8


def rivals() -> dict[str, Machine]:
    """Name → the hexapod with friction of its drives and none, Table I's, own dry, and own dry and viscous friction of passive joints."""
    table = hexapod()
    p = table.parameters
    none = table.with_parameters(p.known(dict.fromkeys(DRY_NAMES.values(), 0.0)))
    dry = table.with_parameters(p.estimated(DRY_NAMES.values()))
    damped = [Element(kind="damper", on={axis: 1.0}, name=f"v_{axis}", typical=0.5) for axis in AXES]
    return {DRIVES: none, TABLE_I: table, DRY: dry, VISCOUS: dry.with_elements(damped)}


def measured_periods(
    motion: FourierTrajectory, rng: np.random.Generator, periods: int = PERIODS, more: Array | None = None
) -> list[Motion]:
    """Each period of a noisy log as a motion, the pose by the explicit filter. `more` (N, 6): forces of the drives beside the machine's."""
    e = experiment(motion, periods)
    if more is not None:
        e = replace(e, forces=e.forces + more)
    positions, forces = (run[0] for run in drawn_runs(e, 1, rng))
    t = np.arange(len(e.positions)) / RATE
    found = []
    for lengths, drives in zip(positions, forces, strict=True):
        pose = dft_filter(e.plant.located(lengths), RATE, HARMONICS)
        found.append(closed_motion(hexapod(), t, *pose, at=POSE, forces=drives))
    return found


def chosen_friction(
    motion: FourierTrajectory, rng: np.random.Generator, periods: int = PERIODS, more: Array | None = None
) -> FrictionChoice:
    """The choice between the rivals on one log."""
    logs = measured_periods(motion, rng, periods, more)
    return friction_rivals(rivals(), logs, settings=IdentifySettings(sampling=ZONES))


def own_friction(motion: FourierTrajectory, dry: Mapping[str, float], viscous: Mapping[str, float]) -> Array:
    """Forces (N, 6) of the drives that passive joints ask for beside Table I: coordinate → N m more dry, and N m s viscous, friction."""
    e = experiment(motion)
    t = np.arange(len(e.positions)) / RATE
    other = truth().with_elements(
        Element(kind="damper", on={c: 1.0}, name=f"v_{c}", value=v) for c, v in viscous.items()
    )
    p = other.parameters
    names = {DRY_NAMES[c]: p[DRY_NAMES[c]] + more for c, more in dry.items()}
    other = other.with_parameters(p.known(p.names).replacing(names))
    own = closed_motion(other, t, *motion.at(t), at=POSE)
    return inverse_dynamics(other, own, LEGS) - inverse_dynamics(truth(), own, LEGS)
