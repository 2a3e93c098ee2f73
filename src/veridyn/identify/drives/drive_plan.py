"""Designed commands of drives, with the deviations that they promise beside those of a plain chirp."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from veridyn.arrays import Array
from veridyn.identify.drives.drive_result import DriveEstimate
from veridyn.identify.drives.undetermined import OpenDirection
from veridyn.model.experiment import Experiment

UNITS = {"turning": "rad", "sliding": "m"}


@dataclass(frozen=True, kw_only=True)
class PlannedNumber(DriveEstimate):
    """One number of the drives as a recording of the commands will show it: `value` is the assumed one.

    `plain_sigma`: its deviation after a plain chirp within the same limits, NaN where no chirp keeps them. `asked`: whether the design was
    to determine it.
    """

    plain_sigma: float
    asked: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class DrivePlan:
    """Commands (K, n) of the joints at times t (K,), rad or m, and what a recording of them will determine.

    `open`: what they leave open, in words. `used`: of each joint the share of its tightest limit. `noise` and `memory` are what was
    assumed of the encoders.
    """

    name: str
    joints: tuple[str, ...]
    kinds: tuple[str, ...]
    t: Array
    command: Array
    numbers: tuple[PlannedNumber, ...]
    open: tuple[OpenDirection, ...]
    used: Mapping[str, float]
    noise: float
    memory: float

    def experiment(self) -> Experiment:
        """The commands as channels ``command.JOINT``, for :class:`~veridyn.manoeuvres.Commanded`."""
        names = [f"command.{j}" for j in self.joints]
        units = {n: UNITS[kind] for n, kind in zip(names, self.kinds, strict=True)}
        return Experiment.from_arrays(self.t, dict(zip(names, self.command.T, strict=True)), units, self.name)

    def table(self) -> str:
        """The commands as CSV."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        names = [f"command.{j} [{UNITS[kind]}]" for j, kind in zip(self.joints, self.kinds, strict=True)]
        out.writerow(("time [s]", *names))
        for t, row in zip(self.t, self.command, strict=True):
            out.writerow((f"{t:.9g}", *(f"{x:.9g}" for x in row)))
        return text.getvalue()

    def summary(self) -> str:
        """Deviations that are promised, and what stays open."""
        wide = max(len(n.name) for n in self.numbers)
        lines = [f"{self.name}: commands of {len(self.joints)} joints for {self.t[-1]:g} s"]
        lines.append(f"{'':{wide}}  {'σ before':>10} {'σ designed':>11} {'σ of a chirp':>13}")
        for n in self.numbers:
            mark = "   asked for" if n.asked else ""
            lines.append(f"{n.name:{wide}}  {n.prior_sigma:10.2g} {n.sigma:11.2g} {n.plain_sigma:13.2g} {n.unit}{mark}")
        return "\n".join([*lines, *(f"not determined: {one}" for one in self.open)])
