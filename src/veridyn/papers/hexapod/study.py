"""``veridyn demo hexapod``: paper 002 from design to control, on a simulated machine; and what control does to the estimates.

Two motions are designed and tried; ways to filter are compared; then the machine itself, under its position control, runs the D-optimal
motion, is identified from the log, and is asked to follow a circle with each model as feed-forward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationWarning, warn
from veridyn.files.machine.write import model_text
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrument_sums import across_periods
from veridyn.identify.estimators.likelihood import Scan, force_noise, periodic_data, scan
from veridyn.identify.excitation.plan import ExcitationPlan
from veridyn.identify.excitation.plant import plant_of
from veridyn.identify.excitation.problem import Growth, correlation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.identify.validation import Validation
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import close, closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.comparison import FilterComparison
from veridyn.papers.hexapod.machine import (
    FRICTION,
    LEGS,
    POSE,
    RATE,
    RIGID,
    TABLE_II,
    TABLE_NAMES,
    HexapodRecording,
    Reference,
    SensorNoise,
    TrackingErrors,
    along,
    circle,
    controlled,
    hexapod,
    machine,
    prior,
    recorded,
    task,
    tracking,
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
from veridyn.signals.frequency import Periods, advanced, averaged, dft_filter, unfiltered, zero_phase_periodic
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.studies.result import NAN, Result, fingerprint, parameter_row

PERIODS = 4  # of the log that the machine is identified from (chosen)
TURN = 0.5  # turns a second of the circle that predictions are judged on (chosen)
TRUE_HARMONICS = 7  # of the motion whose cut-off is looked for
WIDEST = 160  # harmonics looked at in a log under control
INSTRUMENT_HARMONICS = 200  # where instruments come from other periods: 64 Hz, .4 of what RATE allows (chosen)
CUTOFF = 6.0  # Hz of the low-pass that stands for filtering in time, about three times the highest harmonic (chosen)
UNIVERSAL = tuple(e.parameter_name for e in hexapod().elements if e.parameter_name.startswith(("ra", "rb")))
STANDSTILL = 0.1  # m/s: drives slower than this stick, or still swing from having stuck
REVERSING = (
    0.03  # rad/s: universal joints slower than this reverse within the samples beside, as a log at RATE has them
)
ZONES = Sampling(dead_zone=dict.fromkeys(LEGS, STANDSTILL) | dict.fromkeys(UNIVERSAL, REVERSING))
LADDER = (HARMONICS, 20, 80, 160)  # harmonics of the filters that Gauss-Markov is tried with
MEMORY = 2  # samples that the noise of forces may remember
BIASED = 2.0  # stated deviations: an error beyond it in the mean of runs, or against another method, is reported


@dataclass(frozen=True, eq=False)
class LoopBias:
    """Means of `trials` estimates less the truth, in their stated deviations: what is left of it is bias.

    `fed_back`: the controller saw the noise of the sensors; `apart`: it did not, and only the log did; both by :func:`cross_fit`. Then
    `raw`: fed back, one averaged period, and no filter.
    """

    names: tuple[str, ...]
    fed_back: Array
    apart: Array
    raw: Array
    trials: int


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
    warn_of_loop(bias)
    warn_of_averages(fits, best)
    ladder = cutoff_ladder(log, FREQUENCY)
    return HexapodStudy(
        plans, both, equal, filters, staircase, log, steps, fits, errors, check, circles, bias, noise, ladder, quick
    )


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


def periods_of(log: HexapodRecording, frequency: float) -> tuple[Periods, Periods]:
    """Lengths and forces of a log of whole periods, averaged, with the covariance that the periods show.

    Lengths are those of half a hold after each sample: when its forces act.
    """
    names = (*(f"length of {leg}" for leg in LEGS), *(f"force of {leg}" for leg in LEGS))
    both = averaged(np.column_stack([log.lengths, log.forces]), RATE, frequency, names=names)
    lengths = both.part(names[:6])
    apart = np.stack([advanced(d, RATE, 0.5 * log.hold) for d in lengths.deviations])
    lengths = replace(lengths, mean=advanced(lengths.mean, RATE, 0.5 * log.hold), deviations=apart)
    return lengths, both.part(names[6:])


def posed(lengths: Periods) -> Array:
    """The pose (N, 6) that averaged lengths have: direct kinematics."""
    return _posed(lengths.mean)


def _posed(lengths: Array) -> Array:
    return close(hexapod(), lengths).q[:, : len(POSE)]


def one_period(lengths: Periods, forces: Periods, harmonics: int | None) -> Motion:
    """One averaged period as a motion: the pose by the explicit DFT filter; None: no filter at all."""
    pose = posed(lengths)
    three = unfiltered(pose, RATE) if harmonics is None else dft_filter(pose, RATE, harmonics)
    return closed_motion(hexapod(), lengths.t, *three, at=POSE, forces=forces.mean)


def fitted(lengths: Periods, forces: Periods, pose: tuple[Array, Array, Array]) -> Fit:
    """The hexapod by Gauss and Markov from one averaged period, noise across drives and in time as the periods show it.

    `pose`: filtered, with its rates and accelerations. A drive that stands still sticks, and its friction is not that of (7): samples
    slower than STANDSTILL are left out, and so are those at which a universal joint is slower than REVERSING: without it rb comes out
    one deviation too small even without noise.
    """
    return identify(
        hexapod(),
        closed_motion(hexapod(), lengths.t, *pose, at=POSE, forces=forces.mean),
        GaussMarkov(force_noise(forces, MEMORY)),
        settings=IdentifySettings(sampling=ZONES),
        diagnose="off",
    )


def period_fit(log: HexapodRecording, frequency: float, harmonics: int | None) -> Fit:
    """:func:`fitted` from a log, with the explicit DFT filter, or without any (None)."""
    lengths, forces = periods_of(log, frequency)
    pose = posed(lengths)
    return fitted(lengths, forces, unfiltered(pose, RATE) if harmonics is None else dft_filter(pose, RATE, harmonics))


def cutoff_ladder(log: HexapodRecording, frequency: float, ladder: Sequence[int] = LADDER) -> dict[int, Array]:
    """Errors (p,) of :func:`period_fit` in its stated deviations by the number of harmonics that its filter keeps.

    What is off at few harmonics and not at many is the filter's doing: drives that stick and break loose put motion beyond it, whose
    forces stay in the measurement while their columns are gone.
    """
    found = {}
    for harmonics in ladder:
        fit = period_fit(log, frequency, harmonics)
        found[harmonics] = (fit.values - fit.base.reduce(truth().parameters.values)) / fit.sigma
    return found


def cross_fit(log: HexapodRecording, frequency: float, harmonics: int) -> Fit:
    """The hexapod with instruments from other periods, each period filtered by the explicit DFT at so many harmonics.

    Noise of lengths in the columns and the controller's answer to it do not bias it, so that the filter may keep every harmonic that the
    machine has: drives that stick and break loose move it at more than 40 Hz, and with such a cut-off, as AIC chooses, p9 and p10 are .9
    deviations too large in the mean. Standstill is left out as by :func:`fitted`, whose report of the rows it keeps.
    """
    lengths, forces = periods_of(log, frequency)
    mean = dft_filter(posed(lengths), RATE, harmonics)
    plain = fitted(lengths, forces, mean)
    plant = plant_of(hexapod(), "all", POSE)
    order = [plant.base.names.index(name) for name in plain.names]
    each = [np.stack(dft_filter(_posed(lengths.mean + d), RATE, harmonics)) for d in lengths.deviations]
    A = np.stack([plant.regressor(X)[..., order] for X in each])
    start = force_noise(forces, MEMORY)
    found = across_periods(A, forces.mean + forces.deviations, start, MEMORY, _moving(lengths.t, mean))
    note = (
        f"instruments from the other of {lengths.periods} periods, {harmonics} harmonics; "
        f"mean square of what is left {found.lack_of_fit:.2f} of that of the noise"
    )
    return replace(
        plain,
        values=found.values,
        covariance=found.covariance,
        estimator="instruments from other periods",
        notes=(*plain.notes[:-1], note, found.noise.summary()),
    )


def _moving(t: Array, pose: tuple[Array, Array, Array]) -> NDArray[np.bool_]:
    """Samples (N,) that no row leaves out by ZONES."""
    machine = hexapod()
    qd, numbers = closed_motion(machine, t, *pose, at=POSE).qd, np.arange(len(t))
    used = [ZONES.uses(machine, row, qd, numbers, len(t)) for row in LEGS]
    return np.asarray(np.all(used, axis=0), dtype=bool)


def warn_of_averages(fits: Mapping[str, Fit], reference: Fit) -> None:
    """Name the parameters by which estimates from one averaged period differ from the `reference` by more than BIASED of their deviations.

    Both see the same noise of forces, so what they differ by is what noise of positions and the cut-off do to the average.
    """
    titles = {"markov": f"Gauss-Markov at {HARMONICS} harmonics", "likelihood": "maximum likelihood"}
    for way, title in titles.items():
        _warn_of_bias(
            reference.names,
            (fits[way].values - reference.values) / fits[way].sigma,
            f"{title} from one averaged period is biased: the cut-off takes harmonics that the machine has, or lets noise pass.",
            f"within {BIASED:g} stated deviations of the estimate with instruments from other periods",
            "Rely on the reported estimate, with instruments from other periods.",
        )


def warn_of_loop(bias: LoopBias) -> None:
    """Name the parameters whose estimates under control are off by more than BIASED deviations in the mean of several runs."""
    _warn_of_bias(
        bias.names,
        bias.fed_back,
        "estimates under control are biased: dry friction stops the drives, and what they do then is in no model.",
        f"means of {bias.trials} runs within {BIASED:g} stated deviations of the truth",
        "Their deviations hold noise alone. Leave out more samples around reversals, or move faster.",
    )


def _warn_of_bias(names: Sequence[str], z: Array, what: str, expected: str, hint: str) -> None:
    off = {TABLE_NAMES[n]: float(x) for n, x in zip(names, z, strict=True) if abs(x) > BIASED}
    if off:
        found = ", ".join(f"{name} {x:+.1f}" for name, x in sorted(off.items(), key=lambda item: -abs(item[1])))
        warn(IdentificationWarning, Fault(what, where=", ".join(off), expected=expected, found=found, hint=hint))


def loop_bias(
    reference: Reference,
    frequency: float,
    harmonics: int,
    noise: SensorNoise,
    rng: np.random.Generator,
    model: Machine | None = None,
    trials: int = 20,
    periods: int = 2,
    progress: Progress = silent,
) -> LoopBias:
    """The same experiment with the noise inside and outside the loop: does the controller, which answers to noise, bend the estimates?"""
    period = 1.0 / frequency
    asked = task(reference, period, model)
    still = controlled(asked, periods + 1)[0]
    found: dict[str, list[Fit]] = {"fed_back": [], "apart": [], "raw": []}
    for k in range(trials):
        moved = controlled(asked, periods + 1, noise, rng)[0]
        log = recorded(moved, noise, rng, skip=period, fresh=False)
        found["fed_back"].append(cross_fit(log, frequency, harmonics))
        found["raw"].append(period_fit(log, frequency, None))
        found["apart"].append(cross_fit(recorded(still, noise, rng, skip=period), frequency, harmonics))
        progress("noise inside the control loop", k + 1.0, float(trials))
    base = found["apart"][0].base
    true = base.reduce(truth().parameters.values)
    off = {}
    for name, fits in found.items():
        mean, stated = (np.mean([getattr(fit, x) for fit in fits], axis=0) for x in ("values", "sigma"))
        off[name] = (mean - true) / stated
    return LoopBias(base.names, off["fed_back"], off["apart"], off["raw"], trials)
