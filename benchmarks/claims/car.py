"""Papers 000 and 001: the detailed car identified by both papers' models, and what weights do to estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.car_steering import steering_alone
from veridyn.papers.car.machine import TABLE_II
from veridyn.papers.car.page import CarDemonstration, car_demonstration
from veridyn.papers.car.study import ERRORS, Variant
from veridyn.papers.car.study_2002 import carrying

Figures = Mapping[str, float]
NEGLIGIBLE = ("fs_1", "fs_3", "fs_4")  # section VII.A
ROWS, SAMPLES, PARAMETERS, TRIALS, QUICK_TRIALS = 5, 60, 6, 4000, 1000  # of the Monte Carlo of weights
SIGMAS = np.array([0.1, 0.2, 1.0, 10.0, 50.0])  # of its rows


def car(seed: int, quick: bool = False) -> dict[str, float]:
    """``veridyn demo car``, and what its report has beside its figures: both cars' differences, filters as printed, dry friction, ramps."""
    made = car_demonstration(np.random.default_rng(seed), quick)
    return {**made.figures, **_degrees(made), **_filters(made), **_friction(made), **_ramps(made)}


def _degrees(made: CarDemonstration) -> dict[str, float]:
    """Differences of the cars of 20 and 38 freedoms, in the deviations that Table II prints (percent of the value), the largest of each
    group; and how many of the 26 well identified ones differ by more than one."""
    study = made.study
    ratios = {name: _difference(study.plain, study.reduced, name) / _stated(name) for name in TABLE_II}
    well = [name for name, line in TABLE_II.items() if line.percent < 10.0]
    out = {
        f"degrees_{label.removesuffix('_error_percent')}": max(ratios[n] for n in names)
        for label, names in ERRORS.items()
    }
    return out | {"degrees_beyond_printed": float(sum(ratios[name] > 1.0 for name in well))}


def _stated(name: str) -> float:
    """The deviation of Table II in percent of its estimate; the printed percentages are rounded to one digit."""
    return 100.0 * TABLE_II[name].sigma / abs(TABLE_II[name].estimate)


def _difference(one: Variant, other: Variant, name: str) -> float:
    """Percent of the value."""
    return 100.0 * abs(other.values[name] / one.values[name] - 1.0)


def _filters(made: CarDemonstration) -> dict[str, float]:
    """Errors of unsprung masses and dampers with filters as printed, and with one filter, percent of the truth."""
    out = {}
    for label, scheme in (("as_printed", made.study.schemes[0]), ("one_filter", made.study.schemes[1])):
        for group in ("unsprung", "damping"):
            names = ERRORS[f"{group}_error_percent"]
            off = [100.0 * abs(scheme.values[n] / made.study.truth[n] - 1.0) for n in names]
            out[f"{group}_error_{label}_percent"] = max(off)
    return out


def _friction(made: CarDemonstration) -> dict[str, float]:
    """Dry friction of the suspensions over their offsets, percent, as section VII.A judges it; the largest of those it removes."""
    s = made.study
    share = [100.0 * s.value(name) / s.value(name.replace("fs", "off")) for name in NEGLIGIBLE]
    sigma = [100.0 * s.sigma(name) / abs(s.value(name)) for name in NEGLIGIBLE]
    return {"dry_friction_over_offset_percent": max(share), "dry_friction_sigma_percent": min(sigma)}


def _ramps(made: CarDemonstration) -> dict[str, float]:
    """Paper 001: errors of rows on the ramps, and of dampers as printed, percent; chassis and suspensions on braking, as printed."""
    second = made.second
    h = [n for n in second.printed.names if n.startswith("h")]
    found = dict(zip(second.printed.names, second.printed.values.tolist(), strict=True))
    ks = [n for n in second.printed.names if n.startswith("ks")]
    return {
        "ramps_worst_percent_2002": 100.0 * max(carrying(second.simple).values()),
        "damper_error_printed_2002_percent": max(100.0 * abs(found[n] / second.truth[n] - 1.0) for n in h),
        "spring_error_printed_2002_percent": max(100.0 * abs(found[n] / second.truth[n] - 1.0) for n in ks),
    }


def steering(seed: int, quick: bool = False) -> dict[str, float]:
    """Sinusoidal steering alone at 90 and 110 km/h, on a rough road."""
    found = steering_alone(np.random.default_rng(seed), duration=5.0 if quick else 10.0)
    return {"identified_by_noise": float(len(found.by_noise)), "identified_by_budget": float(len(found.by_budget))}


def weights(seed: int, quick: bool = False) -> dict[str, float]:
    """(23) as printed against 1/σ: scatter over that of the best estimate, and (27) over the scatter; medians of the parameters."""
    rng = np.random.default_rng([seed, 23])
    W = rng.normal(size=(ROWS, SAMPLES, PARAMETERS))
    noise = SIGMAS[:, None, None] * rng.normal(size=(ROWS, SAMPLES, QUICK_TRIALS if quick else TRIALS))
    out, scatter = {}, {}
    for name, P in (("printed", 1.0 / SIGMAS**2), ("corrected", 1.0 / SIGMAS)):
        A, Y = ((P[:, None, None] * x).reshape(ROWS * SAMPLES, -1) for x in (W, noise))
        Q, R = np.linalg.qr(A)
        errors = np.linalg.solve(R, Q.T @ Y)
        variance = ((Y - A @ errors) ** 2).sum(axis=0) / (ROWS * SAMPLES - PARAMETERS)
        inverse = np.linalg.inv(R)
        scatter[name] = errors.std(axis=1, ddof=1)
        stated = np.sqrt(variance.mean() * np.diag(inverse @ inverse.T))
        out[f"stated_over_empirical_{name}"] = float(np.median(stated / scatter[name]))
    over = scatter["printed"] / scatter["corrected"]
    return out | {"scatter_printed_over_best": float(np.median(over))}


CASES: dict[str, Callable[[int, bool], Figures]] = {"car": car, "car_steering": steering, "car_weights": weights}
