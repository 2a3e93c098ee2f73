"""A KUKA LWR4+ on motion that a fit has not seen: every cut of its logs predicted from the others, by the recipe of its study.

Its two logs repeat one excitation twice each: two phases of one sine, so that positions go round an ellipse. Both are cut alike, so
that no repeat of what is held out is fitted: into quarters, by the halves of the ranges of its first two joints, and into slower and faster
halves by ‖q̇‖. Of each cut the error ‖r‖/‖y‖ is that of a fit of the rest by the recipe in examples/studies/kuka.yaml (model, signals,
estimator and the choice of its prior's scales), of weighted least squares on the same samples, and of the URDF. "Fitted" is what weighted
least squares leaves of the cut where it is fitted too: hardly any model of these columns predicts it better.

    python -m benchmarks.kuka [STUDY.yaml]

Data: the folder kuka_lwr4 in the one that VERIDYN_DATA names.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.identify.estimators.trust import trust_prior
from veridyn.identify.pipeline.identification import Estimation
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.studies.config.study import load_study
from veridyn.studies.run.estimation import estimation_of
from veridyn.studies.run.identify import pipeline_of
from veridyn.studies.run.machine import study_machine
from veridyn.studies.run.recordings import Recordings

STUDY = Path(__file__).parents[1] / "examples" / "studies" / "kuka.yaml"
ACROSS = ("lwr_0_joint", "lwr_1_joint")  # move a quarter of a period apart
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Recipe:
    """A machine, its recorded motions, and how it is identified; `trust`: the prior's scales are chosen within what is fitted."""

    machine: Machine
    motions: list[Motion]
    estimation: Estimation
    trust: bool

    def fitted(self, motions: Sequence[Motion]) -> tuple[Fit, str]:
        """The fit by this recipe, and the scales it chose."""
        method: Any = self.estimation.method
        settings, scales = self.estimation.settings, ""
        if self.trust:
            found = trust_prior(self.machine, motions, method, settings=settings)
            method, scales = found.method, ", ".join(f"{g} {s:g}" for g, s in found.groups.items())
        return vd.identify(self.machine, motions, method, settings, diagnose="off"), scales


@dataclass(frozen=True)
class Cut:
    """Errors on a cut, in percent of ‖y‖: of the recipe's prediction and of others; `scales`: what the recipe chose."""

    name: str
    recipe: float
    least_squares: float
    drawing: float
    fitted: float
    scales: str


def recipe_of(study: Path = STUDY) -> Recipe:
    """The recipe of a study whose training logs are cut."""
    loaded = load_study(study, "identify")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*<origin> stands 2 times")
        machine = study_machine(loaded, ("model",), loaded.study.model, "unknown")
        work = pipeline_of(loaded, machine, Recordings(loaded)).start().logs
        training, _ = work.motions(work.lowpass()[1])
    estimation = estimation_of(loaded, ("estimator",), loaded.study.estimator)
    return Recipe(machine, [part.motion for part in training], estimation, loaded.study.estimator.trust)


def masks(recipe: Recipe) -> dict[str, list[Mask]]:
    """Name of a cut → the samples of each motion that belong to it."""
    places = [recipe.machine.coordinates.index(c) for c in ACROSS]
    q = np.concatenate([m.q[:, places] for m in recipe.motions])
    middle = 0.5 * (q.min(axis=0) + q.max(axis=0))
    upper = [m.q[:, places] > middle for m in recipe.motions]
    found = {}
    for first in (False, True):
        for second in (False, True):
            words = " and ".join(f"{c} {'upper' if up else 'lower'}" for c, up in zip(ACROSS, (first, second)))
            found[words] = [(u == (first, second)).all(axis=1) for u in upper]
    speeds = [np.linalg.norm(m.qd, axis=1) for m in recipe.motions]
    limit = float(np.median(np.concatenate(speeds)))
    return {**found, "slower half": [s <= limit for s in speeds], "faster half": [s > limit for s in speeds]}


def cuts(recipe: Recipe, names: Sequence[str] = ()) -> Iterator[Cut]:
    """Each cut, or those named, predicted from the rest."""
    every = vd.identify(recipe.machine, recipe.motions, "wls", diagnose="off")
    for name, own in masks(recipe).items():
        if names and name not in names:
            continue
        rest = [m[~k] for m, k in zip(recipe.motions, own, strict=True)]
        held = [m[k] for m, k in zip(recipe.motions, own, strict=True)]
        fit, scales = recipe.fitted(rest)
        plain = vd.identify(recipe.machine, rest, "wls", diagnose="off")
        errors = [100.0 * vd.validate(f, held).relative_error for f in (fit, plain, every)]
        yield Cut(name, errors[0], errors[1], drawing_percent(recipe.machine, held), errors[2], scales)


def drawing_percent(machine: Machine, motions: Sequence[Motion]) -> float:
    """The error of the machine's own values."""
    both = [(np.asarray(m.forces), np.asarray(vd.inverse_dynamics(machine, m))) for m in motions]
    return 100.0 * float(np.sqrt(sum(((y - x) ** 2).sum() for y, x in both) / sum((y**2).sum() for y, _ in both)))


def main() -> None:
    recipe = recipe_of(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
    print("| cut | recipe % | least squares % | URDF % | fitted % | scales of the prior |")
    print("|---|---:|---:|---:|---:|---|")
    found = []
    for c in cuts(recipe):
        found.append(c.recipe)
        numbers = " | ".join(f"{x:.2f}" for x in (c.recipe, c.least_squares, c.drawing, c.fitted))
        print(f"| {c.name} | {numbers} | {c.scales} |", flush=True)
    print(f"\nrecipe: root mean square {np.sqrt(np.mean(np.square(found))):.2f} %, worst {max(found):.2f} %")


if __name__ == "__main__":
    main()
