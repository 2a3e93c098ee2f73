"""Runs of one machine whose drives had other gains or whose links had other loads, joined into one fit.

What is unknown is the same in all runs. A gain is known up to a factor, x = κ x₀ with the x₀ that a run states, and κ is one number for
all of them: runs with another kd separate it from viscous friction, and known loads show the scale of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from veridyn.errors import IdentificationError, part_at
from veridyn.identify.drives.drive_unknowns import check_drives, with_drives
from veridyn.model.machine import Machine


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
