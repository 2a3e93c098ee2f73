"""``veridyn demo hexapod``: paper 002 from design to control, on a simulated machine.

Two motions are designed and tried; ways to filter are compared; then the machine itself, under its position control, runs the D-optimal
motion, is identified from the log, and is asked to follow a circle with each model as feed-forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationWarning, warn
from veridyn.files.machine.write import model_text
from veridyn.identify.estimators.likelihood import Scan, force_noise, periodic_data, scan
from veridyn.identify.excitation.plan import ExcitationPlan
from veridyn.identify.excitation.plant import plant_of
from veridyn.identify.excitation.problem import Growth, correlation
from veridyn.identify.result import Fit
from veridyn.identify.validate import validate
from veridyn.identify.validation import Validation
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.papers.hexapod.comparison import FilterComparison
from veridyn.papers.hexapod.control import (
    BIASED,
    MEMORY,
    LoopBias,
    TrackingErrors,
    cross_fit,
    cutoff_ladder,
    fitted,
    loop_bias,
    one_period,
    period_fit,
    periods_of,
    posed,
    tracking,
    warn_of_averages,
)
from veridyn.papers.hexapod.machine import (
    FRICTION,
    LEGS,
    POSE,
    RATE,
    RIGID,
    TABLE_II,
    TABLE_NAMES,
    HexapodRecording,
    SensorNoise,
    along,
    circle,
    controlled,
    hexapod,
    machine,
    prior,
    recorded,
    task,
    truth,
)
from veridyn.papers.hexapod.trials import (
    DEVIATIONS,
    FREQUENCY,
    HARMONICS,
    DesignTrials,
    circle_filters,
    design_trials,
    designed,
    equal_trials,
    filter_figures,
    friction_growth,
    harmonics_scan,
    richer,
)
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.frequency import zero_phase_periodic
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.studies.result import NAN, Result, fingerprint, parameter_row

PERIODS = 4  # of the log that the machine is identified from (chosen)
TURN = 0.5  # turns a second of the circle that predictions are judged on (chosen)
TRUE_HARMONICS = 7  # of the motion whose cut-off is looked for
WIDEST = 160  # harmonics looked at in a log under control
INSTRUMENT_HARMONICS = 200  # where instruments come from other periods: 64 Hz, .4 of what RATE allows (chosen)
CUTOFF = 6.0  # Hz of the low-pass that stands for filtering in time, about three times the highest harmonic (chosen)


@dataclass(frozen=True, eq=False)
class HexapodStudy:
    """Everything the page shows.

    `plans`, `trials`, `filters`, `staircase`: design and estimators on a machine whose controller is perfect. `trials` have noise of 1 to
    3 N by drive; `equal` is the median of Gauss-Markov over least squares with 2 N on every drive. `log`, `fits`, `scan`: the machine under
    control. `fits`: "markov" at the harmonics of the design, "likelihood" at the cut-off that BIC chose in `scan`, both from one averaged
    period; "periods", which is reported, with instruments from other periods at INSTRUMENT_HARMONICS; "raw" and "time": the averaged
    period without a filter and with a low-pass in time. `ladder`: errors of Gauss-Markov in its deviations by the number of
    harmonics. `errors`: fit → true less predicted forces (N, 6) on the circle.
    """

    plans: Mapping[str, ExcitationPlan]
    trials: DesignTrials
    equal: float
    filters: FilterComparison
    staircase: Scan
    log: HexapodRecording
    scan: Scan
    fits: Mapping[str, Fit]
    errors: Mapping[str, Array]
    check: Validation
    tracking: TrackingErrors
    bias: LoopBias
    noise: SensorNoise
    ladder: Mapping[int, Array]
    quick: bool

    @property
    def fit(self) -> Fit:
        """The one that is reported and makes the feed-forward: instruments from other periods."""
        return self.fits["periods"]

    @property
    def figures(self) -> dict[str, float]:
        """Named as in result.json."""
        found = {**self.trials.figures, **filter_figures(self.filters), "gm_over_ols_equal_noise_median": self.equal}
        found |= {"chosen_harmonics": float(self.staircase.chosen), "true_harmonics": float(TRUE_HARMONICS)}
        found |= {f"tracking_{name}": self.tracking.at(name) for name in ("none", "prior", "identified")}
        found |= {
            "base_parameters": float(self.fit.base.count),
            "log_harmonics": float(INSTRUMENT_HARMONICS),
            "log_harmonics_aic": float(self.scan.least("aic")),
            "log_harmonics_bic": float(self.scan.chosen),
            "correlation_condition": float(np.linalg.cond(correlation(self.fit.covariance))),
        }
        found |= {f"gm_worst_error_sigmas_{h}_harmonics": float(np.abs(z).max()) for h, z in self.ladder.items()}
        grown = self.friction
        found |= {
            "correlation_condition_rigid": grown[0].condition,
            "correlation_condition_friction": grown[-1].condition,
        }
        found |= {
            "trial_force_noise_smallest_N": float(DEVIATIONS.min()),
            "trial_force_noise_largest_N": float(DEVIATIONS.max()),
            "equal_and_log_force_noise_N": self.noise.force,
        }
        for way in ("fed_back", "apart", "raw"):
            found[f"bias_{way}_rms"] = float(np.sqrt(np.mean(getattr(self.bias, way) ** 2)))
        return found

    @property
    def friction(self) -> tuple[Growth, ...]:
        """How the condition of (11) grows with the friction model, on the D-optimal motion."""
        return friction_growth(self.plans["d"])

    @property
    def table(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Name of Table I → fit → value and deviation."""
        found: dict[str, dict[str, tuple[float, float]]] = {p: {} for p in (*RIGID, *FRICTION)}
        for way, fit in self.fits.items():
            for name, value, sigma in zip(fit.names, fit.values, fit.sigma, strict=True):
                found[TABLE_NAMES[name]][way] = float(value), float(sigma)
        return found

    @property
    def truth(self) -> dict[str, float]:
        """Name of Table I → true value."""
        true = self.fit.base.reduce(truth().parameters.values)
        return {TABLE_NAMES[name]: float(value) for name, value in zip(self.fit.names, true, strict=True)}

    def result(self, study: str, seed: int | None = None) -> Result:
        """In the form that programs rely on."""
        units = {TABLE_NAMES[n]: u for n, u in zip(self.fit.names, self.fit.units, strict=True)}
        rows = []
        for p, ways in self.table.items():
            value, sigma = ways["periods"]
            prior = TABLE_II[p][2] if p in RIGID else NAN
            rows.append(parameter_row(p, units[p], value, sigma, prior, self.truth[p]))
        inputs = {"model": fingerprint(model_text(hexapod()))}
        return Result(study, seed, self.quick, inputs, self.figures, tuple(rows), self.check.table)


def hexapod_study(rng: np.random.Generator, *, quick: bool = False, progress: Progress = silent) -> HexapodStudy:
    """The whole of it. `quick`: fewer starts of the design and fewer trials."""
    noise = SensorNoise()
    starts, count, few = (1, 20, 3) if quick else (2, 100, 10)
    same = int(rng.integers(2**32))  # both criteria begin from the same motions
    plans = {
        criterion: designed(
            criterion,
            starts=starts,
            iterations=60 if quick else 120,
            rng=np.random.default_rng(same),
            progress=progress,
        )
        for criterion in ("d", "condition")
    }
    statistical, deterministic = (series_of(plans[criterion]) for criterion in ("d", "condition"))
    both = design_trials(statistical, deterministic, count, rng, progress)
    equal = equal_trials(statistical, count, rng, progress)
    filters = circle_filters(statistical, max(few, count // 5), rng, progress)
    staircase = harmonics_scan(richer(statistical, TRUE_HARMONICS, rng), rng, 20, progress)

    made = controlled(task(statistical.at, 1.0 / FREQUENCY, prior()), PERIODS + 1, noise, rng)[0]
    log = recorded(made, noise, rng, skip=1.0 / FREQUENCY, fresh=False)
    best = cross_fit(log, FREQUENCY, INSTRUMENT_HARMONICS)
    likely, steps = likeliest_fit(log, progress)
    lengths, forces = periods_of(log, FREQUENCY)
    low = Butterworth(CUTOFF)
    in_time = zero_phase_periodic(posed(lengths), RATE, low)
    fits = {
        "markov": period_fit(log, FREQUENCY, HARMONICS),
        "likelihood": likely,
        "periods": best,
        "raw": period_fit(log, FREQUENCY, None),
        "time": fitted(lengths, forces, in_time),
    }
    errors, check = _on_the_circle(fits, noise, rng)
    models = {"none": None, "prior": prior(), "identified": hexapod().with_parameters(best.standard)}
    circles = tracking(models, noise, rng, progress=progress)
    bias = loop_bias(statistical.at, FREQUENCY, INSTRUMENT_HARMONICS, noise, rng, prior(), few, progress=progress)
    _warn(bias)
    warn_of_averages(fits, best)
    ladder = cutoff_ladder(log, FREQUENCY)
    return HexapodStudy(
        plans, both, equal, filters, staircase, log, steps, fits, errors, check, circles, bias, noise, ladder, quick
    )


def _warn(bias: LoopBias) -> None:
    """Name the parameters whose estimates under control are off by more than BIASED deviations in the mean of several runs."""
    off = {TABLE_NAMES[n]: float(z) for n, z in zip(bias.names, bias.fed_back, strict=True) if abs(z) > BIASED}
    if off:
        listed = ", ".join(f"{name} {z:+.1f}" for name, z in sorted(off.items(), key=lambda item: -abs(item[1])))
        fault = Fault(
            "estimates under control are biased: dry friction stops the drives, and what they do then is in no model.",
            where=", ".join(off),
            expected=f"means of {bias.trials} runs within {BIASED:g} stated deviations of the truth",
            found=listed,
            hint="Their deviations hold noise alone. Leave out more samples around reversals, or move faster.",
        )
        warn(IdentificationWarning, fault)


def likeliest_fit(log: HexapodRecording, progress: Progress = silent) -> tuple[Fit, Scan]:
    """Of a log of whole periods: the fit of one averaged period at the cut-off of the largest likelihood, penalised by BIC; and all
    cut-offs looked at."""
    lengths, forces = periods_of(log, FREQUENCY)
    data = periodic_data(plant_of(hexapod(), "all", POSE), lengths, forces, force_noise(forces, MEMORY))
    steps = scan(data, WIDEST, progress=progress)
    return period_fit(log, FREQUENCY, steps.chosen), steps


def _on_the_circle(
    fits: Mapping[str, Fit], noise: SensorNoise, rng: np.random.Generator
) -> tuple[dict[str, Array], Validation]:
    """What the true machine asks for on the circle less what each fit predicts, N; and a noisy run there as the best fit sees it."""
    t = np.arange(round(RATE / TURN)) / RATE
    around = circle(TURN)(t)
    asked = machine(1e-9).forces(*around)
    motion = along(hexapod(), circle(TURN), t)
    errors = {way: asked - inverse_dynamics(hexapod(), motion, LEGS, fit.standard) for way, fit in fits.items()}
    made = controlled(task(circle(TURN), 1.0 / TURN, prior()), 4, noise, rng)[0]
    lengths, forces = periods_of(recorded(made, noise, rng, skip=1.0 / TURN, fresh=False), TURN)
    return errors, validate(fits["periods"], one_period(lengths, forces, HARMONICS))


def series_of(plan: ExcitationPlan) -> FourierTrajectory:
    """The Fourier series of a plan that was asked for one."""
    assert isinstance(plan.trajectory, FourierTrajectory)
    return plan.trajectory
