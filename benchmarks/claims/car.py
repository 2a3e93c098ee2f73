"""Papers 000 and 001: the detailed car identified by both papers' models, what weights do to estimates, and what noise to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from benchmarks.car_steering import steering_alone
from veridyn.mechanics.ground.road import rough_road
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.experiment import Experiment
from veridyn.papers.car.drive import EVERY, RAMPS, STEP, drives_2002
from veridyn.papers.car.log import CarKinematics, from_log
from veridyn.papers.car.machine import TABLE_II, Form, car_2002
from veridyn.papers.car.page import CarDemonstration, car_demonstration
from veridyn.papers.car.sensors import UNITS, sensed, sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.run import VehicleRun, drive
from veridyn.papers.car.study import ERRORS, Variant
from veridyn.papers.car.study_2002 import COMMON, CUT, HOW, LOW, carrying
from veridyn.signals.butterworth import zero_phase

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


def noise(seed: int, quick: bool = False) -> dict[str, float]:
    """Rms of what the instruments' noise leaves in the six rows of the chassis, behind the low-pass of the fit: the mixed form, by the
    inertial unit, over Lagrange's, by Correvit, camera and lasers (section 5.1 of paper 001). The car of 2002 on its first ramp."""
    rng = np.random.default_rng([seed, 5])
    manoeuvre, road_class, seconds = drives_2002(quick)[RAMPS[0]]
    road = rough_road(road_class, rng, length=45.0 * seconds + 200.0, track=1.5)
    run, quiet = drive(Vehicle(), manoeuvre, road, seconds, STEP, EVERY), sensors_2002().quiet()
    noisy = replace(sensors_2002(), biases=dict.fromkeys(UNITS, 0.0))
    exact, log = sensed(run, None, quiet), sensed(run, rng, noisy)
    forms: tuple[Form, ...] = ("mixed", "lagrange")
    mixed, lagrange = (_chassis_rows(run, log, form) - _chassis_rows(run, exact, form) for form in forms)
    along = {"forces": slice(0, 3), "moments": slice(3, 6)}  # axes at right angles, or nearly
    size = {word: [np.linalg.norm(rows[:, part]) for rows in (mixed, lagrange)] for word, part in along.items()}
    return {f"noise_{word}_mixed_over_lagrange": float(one / other) for word, (one, other) in size.items()}


def _chassis_rows(run: VehicleRun, log: Experiment, form: Form) -> np.ndarray:
    """Three forces and three moments (N, 6) that the model asks for, at 62.5 Hz, less the ends that the filter bends."""
    machine = car_2002(form=form)
    motion = from_log(machine, log, CarKinematics.of(run.vehicle), sensors_2002(), COMMON, CUT)
    rows = inverse_dynamics(machine, motion, list(machine.rows[:6]))
    return zero_phase(rows, 62.5, LOW)[HOW.trim : -HOW.trim]


CASES: dict[str, Callable[[int, bool], Figures]] = {
    "car": car,
    "car_steering": steering,
    "car_weights": weights,
    "car_noise": noise,
}
