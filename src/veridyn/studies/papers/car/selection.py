"""Straight or curved suspensions: the model that predicts the drive it did not learn from is reported, and drives are compared.

Each training drive is predicted by a model that learned from the others alone; the sum over rows of the squared errors, each in units of
its row's variance, decides. The drive that validates the study takes no part. The same fits of single drives say how much estimates
vary from drive to drive (:mod:`veridyn.identify.takes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.identify.sampling import Sampling
from veridyn.identify.takes import TakeVariation, take_variation
from veridyn.identify.validate import validate
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.studies.papers.car.bent import SuspensionFit, SuspensionModel, fitted, mean_clearances

STRAIGHT, CURVED = "straight", "curved"
# Parameters whose drive-to-drive variation is pooled, by how their names begin.
KINDS = {
    "k_ar": "bars",
    "k_": "springs",
    "off_": "springs",
    "h_": "dampers",
    "fs_": "dampers",
    "Cx": "air",
    "zero_fx": "air",
}


@dataclass(frozen=True, eq=False)
class Selected:
    """`errors`: model → rms over rows of rms/std on drives it did not learn from; `chosen` and `other` learned from all of them."""

    errors: Mapping[str, float]
    chosen: SuspensionFit
    other: SuspensionFit
    takes: TakeVariation

    @property
    def name(self) -> str:
        return CURVED if self.chosen.model.curved else STRAIGHT

    def of(self, curved: bool) -> SuspensionFit:
        return self.chosen if self.chosen.model.curved == curved else self.other


def kind_of(name: str) -> str:
    """The group of a parameter of Table II."""
    for start, kind in KINDS.items():
        if name.startswith(start):
            return kind
    return "masses" if name in ("M1", "M2", "M3", "M4") else "chassis"


def selected(machine: Machine, motions: Sequence[Motion], how: Sampling) -> Selected:
    """Fit both models on all drives, and on all but one after the other."""
    centre = mean_clearances(machine, motions)
    errors: dict[str, float] = {}
    singles: dict[str, list[SuspensionFit]] = {}
    wholes: dict[str, SuspensionFit] = {}
    for name, curved in ((STRAIGHT, False), (CURVED, True)):
        model = SuspensionModel(machine, curved, centre)
        wholes[name] = fitted(model, motions, how)
        singles[name] = [fitted(model, [m], how, over=motions) for m in motions]
        errors[name] = float(np.sqrt(np.mean(list(_held_out(model, singles[name], motions, how)))))
    best, other = sorted((STRAIGHT, CURVED), key=lambda n: errors[n])
    chosen = wholes[best]
    values, sigma = np.full((2, len(motions), len(chosen.names)), np.nan)
    for k, single in enumerate(singles[best]):
        at = [chosen.names.index(n) for n in single.names]
        values[k, at], sigma[k, at] = single.values, single.sigma
    takes = take_variation(values, sigma, chosen.sigma, [kind_of(n) for n in chosen.names])
    return Selected(errors, chosen, wholes[other], takes)


def _held_out(
    model: SuspensionModel, singles: Sequence[SuspensionFit], motions: Sequence[Motion], how: Sampling
) -> list[float]:
    """(rms/std)² of every row of every drive, by the fit of every other drive."""
    found = []
    for k, single in enumerate(singles):
        for m in (m for j, m in enumerate(motions) if j != k):
            check = validate(single.fit, model.prepared([m])[0], sampling=how)
            found += [r.std_error**2 for r in check.rows]
    return found
