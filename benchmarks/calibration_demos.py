"""The demonstrations as cases of the calibration: their quick form, with everything that it simulates and the model does not know.

Truths of a demonstration are fixed; each run draws priors, motion and noise anew. Its parameters are those of its ``result.json``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.calibration_cases import Case, Outcome
from benchmarks.calibration_machines import drawn_car
from veridyn.machines.arm import demonstration
from veridyn.machines.car import car_38
from veridyn.machines.car_drive import TRAINING, campaign, drives_2006
from veridyn.machines.car_knowledge import CarKnown
from veridyn.machines.car_sensors import sensors_2006
from veridyn.studies.identification import identification
from veridyn.studies.papers.car.budget import budget
from veridyn.studies.papers.car.models import corrected, thirty_three, with_carriers
from veridyn.studies.papers.car.selection import selected
from veridyn.studies.result import ParameterRow


def _of(rows: Iterable[ParameterRow]) -> Outcome:
    known = [p for p in rows if np.isfinite(p.truth)]
    errors, sigma = (np.array(x) for x in ([p.value - p.truth for p in known], [p.sigma for p in known]))
    return Outcome(errors, np.where(sigma > 0.0, sigma, np.nan), tuple(p.name for p in known))


def arm(rng: np.random.Generator) -> Outcome:
    made = demonstration(rng, quick=True)
    study = identification(
        made.model, made.training, made.validation, made.signals, made.sampling, made.rows, truth=made.truth
    )
    return _of(study.parameters)


def car(rng: np.random.Generator) -> Outcome:
    """The study's reported model and budget; what compares it with the paper's other models is left out."""
    vehicle, sensors = drawn_car(rng), sensors_2006()
    given = CarKnown.of(vehicle, sensors).drawn(rng)
    made = campaign(rng, drives_2006(rng, quick=True), vehicle, sensors, known=given)
    tree = thirty_three(car_38())
    how = corrected(tree)
    found = selected(with_carriers(tree, given.carriers), [made.motion(tree, name) for name in TRAINING], how)
    stated = budget(found.chosen, found.takes.sigma, made, TRAINING, how)
    true = made.truth(TRAINING)
    at = [k for k, name in enumerate(found.chosen.names) if name in true]
    names = tuple(found.chosen.names[k] for k in at)
    return Outcome(found.chosen.values[at] - np.array([true[n] for n in names]), stated.total[at], names)


DEMOS: dict[str, Case] = {"demo arm": arm, "demo car": car}
