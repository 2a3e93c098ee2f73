"""Paper 002: ``veridyn demo hexapod`` and what its report has beside its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from scipy.stats import jarque_bera

from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.estimators.likelihood import force_noise, jointly, periodic_data, scan
from veridyn.identify.excitation.plant import plant_of
from veridyn.papers.hexapod.comparison import EXPLICIT, FILTERED_FORCES, ORDER
from veridyn.papers.hexapod.machine import POSE, SensorNoise, controlled, prior, recorded, task
from veridyn.papers.hexapod.machine import hexapod as hexapod_machine
from veridyn.papers.hexapod.passive_friction import AXES, PERIODS, chosen_friction, own_friction
from veridyn.papers.hexapod.study import HARMONICS, MEMORY, hexapod_study, period_fit, periods_of, series_of
from veridyn.papers.hexapod.study import PERIODS as PERIODS_UNDER_CONTROL
from veridyn.papers.hexapod.trials import FREQUENCY, designed

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


def likelihood(seed: int, quick: bool = False) -> dict[str, float]:
    """What maximum likelihood assumes and costs, on a log under control: chances of Gaussian noise, and processor seconds of estimators.

    The chance of the smallest of six drives by Jarque and Bera, of noise that is whitened, six times that chance: the periods' deviations
    from their mean. Seconds: Gauss-Markov at the reference's harmonics, likelihood with the cut-off as the unknown, and with the
    trajectory as unknowns.
    """
    rng, noise = np.random.default_rng([seed, 24]), SensorNoise()
    motion = series_of(designed("d", starts=1, iterations=10 if quick else 60, rng=np.random.default_rng(seed)))
    made = controlled(task(motion.at, 1.0 / FREQUENCY, prior()), PERIODS_UNDER_CONTROL + 1, noise, rng)[0]
    log = recorded(made, noise, rng, skip=1.0 / FREQUENCY, fresh=False)
    lengths, forces = periods_of(log, FREQUENCY)
    data = periodic_data(plant_of(hexapod_machine(), "all", POSE), lengths, forces, force_noise(forces, MEMORY))
    spent = {}
    for name, work in (
        ("gauss_markov", lambda: period_fit(log, FREQUENCY, HARMONICS)),
        ("likelihood", lambda: scan(data, 10 if quick else 30)),
        ("trajectory", lambda: jointly(data, HARMONICS)),
    ):
        work()  # code may be compiled
        before = time.process_time()
        work()
        spent[name] = time.process_time() - before
    figures = {f"seconds_{name}": seconds for name, seconds in spent.items()}
    return figures | {
        "gaussian_chance_lengths": _gaussian_chance(lengths.deviations),
        "gaussian_chance_forces": _gaussian_chance(forces.deviations),
        "trajectory_over_likelihood_seconds": spent["trajectory"] / spent["likelihood"],
        "likelihood_over_gauss_markov_seconds": spent["likelihood"] / spent["gauss_markov"],
    }


def _gaussian_chance(deviations: np.ndarray) -> float:
    """Of noise (periods, N, drives) that is Gaussian: a moment ratio as far from that as found; the smallest of the drives, corrected."""
    periods, count, drives = deviations.shape
    noise = NoiseModel.from_runs(deviations, ORDER, count * (periods - 1))
    white = noise.whitened(deviations[..., None])[:, ORDER:, :, 0].reshape(-1, drives)
    chances = [float(np.asarray(jarque_bera(x))[1]) for x in white.T]
    return min(1.0, drives * min(chances))


CASES: dict[str, Callable[[int, bool], Figures]] = {
    "hexapod": hexapod,
    "hexapod_friction": friction,
    "hexapod_likelihood": likelihood,
}
