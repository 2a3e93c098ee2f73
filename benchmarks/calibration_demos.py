"""The demonstrations as cases of the calibration: their quick form, with everything that it simulates and the model does not know.

Truths of a demonstration are fixed; each run draws priors, motion and noise anew. Its parameters are those of its ``result.json``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.calibration_cases import Case, Outcome
from veridyn.machines.arm import demonstration
from veridyn.studies.identification import identification
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


DEMOS: dict[str, Case] = {"demo arm": arm}
