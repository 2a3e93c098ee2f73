"""Paper 002: ``veridyn demo hexapod`` and what its report has beside its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from veridyn.papers.hexapod.comparison import EXPLICIT, FILTERED_FORCES
from veridyn.papers.hexapod.passive_friction import AXES, PERIODS, chosen_friction, own_friction
from veridyn.papers.hexapod.study import HARMONICS, hexapod_study, series_of
from veridyn.papers.hexapod.trials import designed

Figures = Mapping[str, float]


def hexapod(seed: int, quick: bool = False) -> dict[str, float]:
    """Figures of the demonstration; prediction of the circle by each estimator under control; every speed of the tracking."""
    study = hexapod_study(np.random.default_rng(seed), quick=quick)
    figures = dict(study.figures)
    s = study.trials.statistical
    figures["gm_rows_over_diagonal_median"] = float(np.median(s.empirical("rows") / s.empirical("diagonal")))
    figures["harmonics_by_cost"] = float(study.staircase.least("cost"))
    filters = study.filters
    figures["circle_dft_over_time"] = figures["circle_rms_dft"] / figures["circle_rms_time"]
    exact = filters.of(EXPLICIT.format(h=HARMONICS)).prediction
    figures["circle_filtered_forces_over_dft"] = filters.of(FILTERED_FORCES.format(h=HARMONICS)).prediction / exact
    control = {way: float(np.sqrt(np.mean(e**2))) for way, e in study.errors.items()}
    figures |= {f"circle_control_rms_{way}": rms for way, rms in control.items()}
    figures["circle_control_markov_over_likelihood"] = control["markov"] / control["likelihood"]
    figures["circle_control_markov_over_time"] = control["markov"] / control["time"]
    figures["circle_control_markov_over_best_other"] = control["markov"] / min(
        rms for way, rms in control.items() if way != "markov"
    )
    rms, models = study.tracking.rms, study.tracking.models
    best = rms[:, models.index("identified")]
    for name in ("prior", "none"):
        figures[f"tracking_identified_over_{name}_largest"] = float((best / rms[:, models.index(name)]).max())
    grown = study.friction
    steps = [b.condition / a.condition for a, b in pairwise(grown)]
    figures["friction_growth_largest_step"] = float(max(steps))
    return figures


def friction(seed: int, quick: bool = False) -> dict[str, float]:
    """Which friction of passive joints is chosen where Table I's is true, where each axis has its own, and where some is viscous."""
    rng = np.random.default_rng([seed, 11])
    motion = series_of(designed("d", starts=1, iterations=10 if quick else 60, rng=np.random.default_rng(seed)))
    different = {axis: float(rng.uniform(-0.4, 0.4)) for axis in AXES}
    viscous = {axis: float(rng.uniform(2.0, 4.0)) for axis in AXES}
    periods = 2 if quick else PERIODS
    found = {
        "table": chosen_friction(motion, rng, periods),
        "different": chosen_friction(motion, rng, periods, own_friction(motion, different, {})),
        "viscous": chosen_friction(motion, rng, periods, own_friction(motion, {}, viscous)),
    }
    return {f"{key}_{case}": value for case, choice in found.items() for key, value in choice.figures.items()}


CASES: dict[str, Callable[[int, bool], Figures]] = {"hexapod": hexapod, "hexapod_friction": friction}
