"""The demonstrations as cases of the calibration: their quick form, with everything that it simulates and the model does not know.

Each run draws its own machine, its motion or road, what is handed in, and the noise. Parameters are those that the demonstration reports in
its ``result.json``; of the four-bar linkage, which is observed and not identified, states at times drawn from the whole run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

import numpy as np

from benchmarks.calibration_cases import Case, Outcome, outcome
from benchmarks.calibration_machines import drawn_arm, drawn_car, drawn_fourbar, drawn_hexapod, drawn_humanoid
from veridyn.errors import IdentificationWarning, SimulationError
from veridyn.identify.pipeline.identification import identification
from veridyn.machines.arm import demonstration
from veridyn.mechanics.natural.channels import exact_readings
from veridyn.mechanics.natural.equations.dynamics import initial_state
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.model.machine import Machine
from veridyn.observe.pipeline import observe_with
from veridyn.papers.car.bent import selected
from veridyn.papers.car.budget import budget, corrected, thirty_three, with_carriers
from veridyn.papers.car.drive import TRAINING, campaign, campaign_2002, drives_2006
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import SIXTEEN, drawn_2002
from veridyn.papers.car.machine import car_38
from veridyn.papers.car.sensors import sensors_2002, sensors_2006
from veridyn.papers.car.study_2002 import study_2002
from veridyn.papers.fourbar import SAMPLES, SKIP, STEP, FourbarRun, fourbar_settings, wrong_fourbar
from veridyn.papers.hexapod.machine import TABLE_NAMES, SensorNoise, controlled, machine, prior, task
from veridyn.papers.hexapod.machine import recorded as sensed_lengths
from veridyn.papers.hexapod.machine import truth as hexapod_truth
from veridyn.papers.hexapod.study import INSTRUMENT_HARMONICS, PERIODS, cross_fit, series_of
from veridyn.papers.hexapod.trials import FREQUENCY, designed
from veridyn.papers.humanoid.machine import cad, walk
from veridyn.papers.humanoid.study import CONSISTENT, walking_fits
from veridyn.papers.humanoid.walk import Performed, performed, recorded
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.studies.result import ParameterRow

WALKERS = 10  # humanoids that are drawn until one walks without falling
OBSERVED = 6  # times of an observed run, drawn evenly from all that its demonstration counts


def _of(rows: Iterable[ParameterRow]) -> Outcome:
    known = [p for p in rows if np.isfinite(p.truth)]
    errors, sigma = (np.array(x) for x in ([p.value - p.truth for p in known], [p.sigma for p in known]))
    return Outcome(errors, np.where(sigma > 0.0, sigma, np.nan), tuple(p.name for p in known))


def arm(rng: np.random.Generator) -> Outcome:
    made = demonstration(rng, quick=True, truth=drawn_arm(rng))
    study = identification(
        made.model, made.training, made.validation, made.signals, made.sampling, made.rows, truth=made.truth
    )
    return _of(study.parameters)


def car(rng: np.random.Generator) -> Outcome:
    """The study's reported model and budget; what compares it with the paper's other models is left out."""
    vehicle, sensors = drawn_car(rng), sensors_2006()
    given = CarKnown.of(vehicle, sensors).drawn(rng)
    made = campaign(rng, drives_2006(rng, quick=True), vehicle, sensors, known=given)
    machine = thirty_three(car_38())
    how = corrected(machine)
    found = selected(with_carriers(machine, given.carriers), [made.motion(machine, name) for name in TRAINING], how)
    stated = budget(found.chosen, found.takes.sigma, made, TRAINING, how)
    true = made.truth(TRAINING)
    at = [k for k, name in enumerate(found.chosen.names) if name in true]
    names = tuple(found.chosen.names[k] for k in at)
    return Outcome(found.chosen.values[at] - np.array([true[n] for n in names]), stated.total[at], names)


def car_2002(rng: np.random.Generator) -> Outcome:
    """Table 4 of paper 001: two ramps, the reported sixteen with their whole budget."""
    vehicle = drawn_car(rng)
    given = drawn_2002(CarKnown.of(vehicle, sensors_2002()), rng)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "paper 001", IdentificationWarning)  # errors are what is counted here
        found = study_2002(campaign_2002(rng, True, vehicle, known=given))
    errors = np.array([found.values[n] - found.truth[n] for n in SIXTEEN])
    return Outcome(errors, np.array([found.sigma[n] for n in SIXTEEN]), SIXTEEN)


def humanoid(rng: np.random.Generator) -> Outcome:
    """Four steps of walking in the engine; the study's reported fit: consistent, the drawing as prior with scales from the data."""
    model = cad()
    true, walked = _walking(model, rng)
    log = recorded(model, walked, rng)
    fit = walking_fits(model, log, (CONSISTENT,))[0][CONSISTENT]
    found = outcome(fit, true.parameters.values)
    return Outcome(found.errors, found.sigma, fit.names)


def _walking(model: Machine, rng: np.random.Generator) -> tuple[Machine, Performed]:
    """A humanoid and its walk. One that falls leaves no log to identify it from, so another is drawn; WALKERS in a row are an error."""
    plan = walk(model, 4)
    for _ in range(WALKERS - 1):
        true = drawn_humanoid(rng)
        with suppress(SimulationError):
            return true, performed(true, plan)
    true = drawn_humanoid(rng)
    return true, performed(true, plan)


@cache
def _excitation() -> FourierTrajectory:
    """The D-optimal motion of the hexapod's demonstration, designed once."""
    return series_of(designed("d", starts=1, iterations=60, rng=np.random.default_rng(0)))


def hexapod(rng: np.random.Generator) -> Outcome:
    """The machine under control along one motion; the reported fit, with instruments from other periods."""
    values, noise, motion = drawn_hexapod(rng), SensorNoise(), _excitation()
    wanted = task(motion.at, 1.0 / FREQUENCY, prior())
    made = controlled(wanted, PERIODS + 1, noise, rng, machine(values=values))[0]
    log = sensed_lengths(made, noise, rng, skip=1.0 / FREQUENCY, fresh=False)
    fit = cross_fit(log, FREQUENCY, INSTRUMENT_HARMONICS)
    names = tuple(TABLE_NAMES[n] for n in fit.names)
    found = outcome(fit, hexapod_truth(values).parameters.values)
    return Outcome(found.errors, found.sigma, names)


def fourbar(rng: np.random.Generator) -> Outcome:
    """The linkage with another coupler, start and torque, observed by the EKF with the thesis' wrong model: crank angle and speed at times
    drawn evenly from those that the demonstration counts, the moments after a jump of the torque among them."""
    true = natural_system(drawn_fourbar(rng))
    t = STEP * np.arange(SAMPLES)
    start = {"phi": np.pi / 3.0 + 0.3 * float(rng.standard_normal())}, {"phi": 1.0 + 0.3 * float(rng.standard_normal())}
    constant, pulse = -10.0 + 3.0 * float(rng.standard_normal()), 100.0 + 20.0 * float(rng.standard_normal())

    def torque(time: float) -> dict[str, float]:
        return {"motor": pulse if 4.0 < time < 5.0 else constant}

    moved = integrate_natural(true, t, initial_state(true, *start), torque, method=NaturalMethod(step=STEP))
    log = FourbarRun(moved, moved, exact_readings(true, moved)).log(rng)
    seen = observe_with(fourbar_settings()["ekf"], wrong_fourbar(), log)
    at = rng.integers(SKIP, SAMPLES, OBSERVED)
    column = true.mechanism.index("phi")
    errors, sigma, names = [], [], []
    for name, actual in (("phi", moved.q[:, column]), ("phi'", moved.qd[:, column])):
        k = 0 if name == "phi" else 1
        errors += [seen.reduced[n, k] - actual[n] for n in at]
        sigma += [seen.sigma[n, k] for n in at]
        names += [f"{name}, time {i + 1}" for i in range(OBSERVED)]
    return Outcome(np.array(errors), np.array(sigma), tuple(names))


DEMOS: dict[str, Case] = {
    "demo arm": arm,
    "demo car": car,
    "demo car, Table 4": car_2002,
    "demo humanoid": humanoid,
    "demo hexapod": hexapod,
    "demo fourbar": fourbar,
}
