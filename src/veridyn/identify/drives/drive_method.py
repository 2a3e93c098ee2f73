"""The method "drives" of identify: what is known of the drives, and what is to be found. Data only, which need no compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from veridyn.errors import IdentificationError, VeridynError, did_you_mean
from veridyn.identify.drives.drive_log import Between
from veridyn.identify.drives.drive_run import DriveRun
from veridyn.identify.drives.drive_unknowns import KEYS
from veridyn.settings import Settings, above, at_least

DEFAULT_KEYS = tuple(k for k in KEYS if k != "measurement_delay")


@dataclass(frozen=True, repr=False, kw_only=True)
class Drives(Settings):
    """Drives from commands and encoders, without forces: a simulation of the closed loop that comes nearest to the positions, with priors.

    Parameters
    ----------
    kp, kd : float
        Gains of the drives in N*m/rad and N*m*s/rad (N/m, N*s/m), as their data sheet or configuration states them, for joints that have no
        controller in the model file; both are 0 by default, and kp must be given where a controller is missing.
    rate : float above 0
        Ticks of these drives each second, 1000 by default.
    estimate : names
        What is estimated: any of armature, viscous, coulomb, kp, kd, zero, command_delay, measurement_delay; all but the last by default.
        Only what the machine has, and does not state to be known, can be estimated. Delays are one number for joints that move each other.
    friction : "auto" or "coulomb"
        "auto", the default, adds terms to the dry friction of a joint (change along the way, own friction forwards, Stribeck, growth
        with the load, more where the gear is backdriven), or lets it yield before it slides, where the fitted samples show that by
        Schwarz's criterion; "coulomb" does not.
    commands : "hold" or "linear"
        Whether a drive holds each command until the next (the default), or moves along the line between both and reads its slope.
    until : float above 0
        Seconds of each log that are fitted; what follows is held out, and simulated on from the start. Infinite by default.
    iterations : int of at least 1
        Steps of each search, at most; 60 by default. It is an error where they do not suffice.
    runs : DriveRun of each log
        What was different in it: other gains, or a machine with other loads. The first describes the result; none by default.
    tolerance : float above 0
        The step of all unknowns together, in posterior deviations, below which a search has converged; 0.3 by default.

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
    friction: str = "auto"
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
        if self.friction not in ("auto", "coulomb"):
            raise IdentificationError(
                f"friction cannot be '{self.friction}'.", where="Drives.friction", expected="auto or coulomb"
            )
