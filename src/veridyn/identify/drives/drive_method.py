"""The method "drives" of identify: what is known of the drives, what is to be found, and what was different in each run.

Runs of one machine whose drives had other gains or whose links had other loads are joined into one fit. What is unknown is the same in all
of them. A gain is known up to a factor, x = κ x₀ with the x₀ that a run states, and κ is one number for all of them: runs with another kd
separate it from viscous friction, and known loads show the scale of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from veridyn.errors import IdentificationError, VeridynError, did_you_mean, part_at
from veridyn.identify.drives.drive_log import Between
from veridyn.identify.drives.drive_unknowns import KEYS, check_drives, with_drives
from veridyn.model.machine import Machine
from veridyn.settings import Settings, above, at_least

DEFAULT_KEYS = tuple(k for k in KEYS if k != "measurement_delay")


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveRun:
    """What was different while a log of commands and positions was recorded.

    Parameters
    ----------
    kp, kd : float above 0, optional
        Gains of all drives in this run, N*m/rad and N*m*s/rad (N/m, N*s/m); those of the machine where left out.
    machine : Machine, optional
        The machine of this run, with other loads or another pose of its base: the same joints and elements.

    Examples
    --------
    >>> import veridyn as vd
    >>> runs = (vd.estimators.DriveRun(), vd.estimators.DriveRun(kd=3.0))  # for vd.identify(robot, [first, second], drives)
    >>> drives = vd.estimators.Drives(kp=20.0, kd=1.5, runs=runs)
    >>> drives.runs[1].kd
    3.0
    """

    kp: float | None = None
    kd: float | None = None
    machine: Machine | None = None

    @property
    def gains(self) -> dict[str, float]:
        """Those that are its own, by key."""
        return {key: x for key, x in (("kp", self.kp), ("kd", self.kd)) if x is not None}


def machines_of_runs(
    machine: Machine, runs: Sequence[DriveRun], logs: int, kp: float, kd: float, rate: float
) -> tuple[Machine, ...]:
    """The machine with its drives of each log; gains of joints without a controller as given."""
    if runs and len(runs) != logs:
        raise IdentificationError(
            "there are not as many runs as logs.", where="Drives.runs", expected=f"{logs}", found=f"{len(runs)}"
        )
    machines: list[Machine] = []
    for run in runs or [DriveRun()] * logs:
        own = with_drives(machine if run.machine is None else run.machine, kp, kd, rate)
        if run.gains:
            own = own.with_controllers([replace(c, constants={**c.constants, **run.gains}) for c in own.controllers])
        check_drives(own)
        machines.append(own)
    for number, own in enumerate(machines[1:], 2):
        first = machines[0]
        if own.coordinates != first.coordinates or own.parameters.names != first.parameters.names:
            raise IdentificationError(
                "its machine has other joints, links or elements than that of the first run.",
                where=part_at("run", f"{number}"),
                expected=", ".join(first.coordinates),
                found=", ".join(own.coordinates),
                hint="Change masses and places of the same bodies.",
            )
        if {c.on: c.rate for c in own.controllers} != {c.on: c.rate for c in first.controllers}:
            raise IdentificationError("its drives have other rates.", where=part_at("run", f"{number}"))
    return tuple(machines)


@dataclass(frozen=True, repr=False, kw_only=True)
class Drives(Settings):
    """Drives from commands and encoders, without forces: a simulation of the closed loop that comes nearest to the positions, with priors.

    Gains are those of the data sheet or the configuration of the drives. Only what the machine has, and does not state to be known, can be
    estimated; delays are one number for joints that move each other. Further terms of dry friction are change along the way, own friction
    forwards, Stribeck's, growth with the load and more where the gear is backdriven; or the joint yields before it slides. It is an error
    where the iterations do not suffice.

    Parameters
    ----------
    kp : float of at least 0
        Gain of the position, N*m/rad or N/m, of joints that have no controller in the model file; required where one is missing.
    kd : float of at least 0
        Gain of the speed, N*m*s/rad or N*s/m, of the same joints.
    rate : float above 0
        Ticks of these drives each second.
    estimate : names
        What is estimated: any of armature, viscous, coulomb, kp, kd, zero, command_delay, measurement_delay.
    friction : "auto" or "coulomb"
        auto: further terms of dry friction where the fitted samples show them by Schwarz's criterion.
    commands : "hold" or "linear"
        Whether a drive holds each command until the next, or moves along the line between both.
    until : float above 0
        Seconds of each training log that are fitted; the rest is held out, and simulated on from the start. All if left out.
    iterations : int of at least 1
        Steps of each search, at most.
    tolerance : float above 0
        The step, in posterior deviations, below which a search has converged.
    runs : DriveRun of each log
        What was different in each training log, one for each: other gains, or a machine with other loads. The first describes the result.

    Examples
    --------
    >>> import veridyn as vd
    >>> drives = vd.estimators.Drives(kp=20.0, kd=1.5, until=16.0)  # for vd.identify(robot, log, drives)
    >>> drives.rate, drives.friction
    (1000.0, 'auto')
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str] = "drives"
    title: ClassVar[str] = "drives by simulation of the closed loop"

    kp: Annotated[float, at_least(0.0)] = 0.0
    kd: Annotated[float, at_least(0.0)] = 0.0
    rate: Annotated[float, above(0.0)] = 1000.0
    estimate: tuple[str, ...] = DEFAULT_KEYS
    friction: Literal["auto", "coulomb"] = "auto"
    commands: Between = "hold"
    until: Annotated[float, above(0.0, infinite=True)] = np.inf
    iterations: Annotated[int, at_least(1)] = 60
    tolerance: Annotated[float, above(0.0)] = 0.3
    runs: tuple[DriveRun, ...] = ()

    def check(self) -> None:
        """Refuse words that mean nothing."""
        for word in self.estimate:
            if word not in KEYS:
                raise IdentificationError(
                    f"'{word}' cannot be estimated.", where="Drives.estimate", hint=did_you_mean(word, KEYS)
                )
        for number, run in enumerate(self.runs, 1):
            for key, x in run.gains.items():
                if not x > 0.0:
                    raise IdentificationError(
                        f"{key} is not above zero.", where=f"Drives.runs, run {number}", found=f"{x:g}"
                    )
