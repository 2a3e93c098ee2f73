"""Experiment design and estimators on the hexapod, over many trials: Figs. 1, 2, 4 and 5 of paper 002.

The signals come from the machine written by hand (:mod:`veridyn.papers.hexapod.platform`), which shares no equation with the model. Drives
differ in how noisy their forces are (1 to 3 N, chosen), since equal ones would make weights by row useless; noise remembers from sample to
sample and is common to the drives in part, as :class:`~veridyn.papers.hexapod.machine.SensorNoise` has it.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.estimators.likelihood import PeriodicData, Scan, scan
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.excitation.design import design_excitation
from veridyn.identify.excitation.interior import Barrier
from veridyn.identify.excitation.limits import Limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import ClosedPlant
from veridyn.identify.excitation.problem import Criterion, Growth, growing
from veridyn.identify.excitation.shape import Fourier
from veridyn.papers.hexapod.comparison import (
    EXPLICIT,
    RAW,
    FilterComparison,
    PeriodicExperiment,
    Trials,
    averages,
    compared,
    trials,
)
from veridyn.papers.hexapod.machine import (
    CENTRE,
    LEADS,
    POSE,
    RIGID,
    SensorNoise,
    circle,
    hexapod,
    limits,
    machine,
    truth,
)
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

FREQUENCY, HARMONICS, RATE = 0.32, 5, 160.0  # Hz, harmonics of the design, Hz of the log: 500 samples a period
ROOM = np.array([0.12, 0.12, 0.12, 0.25, 0.25, 0.25])  # m and rad, how far the pose may go from the centre (chosen)
DEVIATIONS = np.linspace(1.0, 3.0, 6)  # N, noise of the drives' forces (chosen)
SHARP = (
    1e-9  # m/s and rad/s, below which the true machine's dry friction is rounded off: nowhere that a sample would see
)


def hexapod_limits() -> Limits:
    """The drives' own limits, and a box for the pose that keeps clear of singular positions, where drive forces grow beyond bounds."""
    free = np.full(6, np.inf)
    return Limits(
        actuators=limits(),
        coordinates=JointLimits(low=CENTRE - ROOM, high=CENTRE + ROOM, speed=free, acceleration=free),
    )


def force_noise(noise: SensorNoise | None = None, deviations: Array = DEVIATIONS) -> NoiseModel:
    """Of the drives' forces: own deviations, correlated across drives and in time."""
    s = noise or SensorNoise()
    C = s.correlation * np.outer(deviations, deviations)
    return NoiseModel((1.0 - s.memory**2) * C, s.memory * np.eye(6)[None])


def length_noise(noise: SensorNoise | None = None) -> NoiseModel:
    """Of the measured lengths."""
    s = noise or SensorNoise()
    return NoiseModel(s.length**2 * (1.0 - s.memory**2) * s.correlation, s.memory * np.eye(6)[None])


def designed(
    criterion: Criterion,
    *,
    starts: int = 2,
    iterations: int = 120,
    periods: int = 2,
    rng: np.random.Generator | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> ExcitationPlan:
    """A motion of the platform's pose by one criterion, from the same starts whatever the criterion."""
    s = SensorNoise()
    return design_excitation(
        hexapod(),
        hexapod_limits(),
        Fourier(HARMONICS, FREQUENCY),
        at=POSE,
        criterion=criterion,
        noise=Noise(s.correlation * np.outer(DEVIATIONS, DEVIATIONS), s.memory),
        rate=RATE,
        periods=periods,
        starts=starts,
        barrier=Barrier(iterations=iterations),
        rng=rng,
        executor=executor,
        progress=progress,
    )


def experiment(motion: FourierTrajectory, periods: int = 2) -> PeriodicExperiment:
    """One period of a pose motion, as the true machine makes it when its controller is perfect."""
    plant = ClosedPlant(truth(), POSE)
    t = np.arange(round(RATE / motion.frequency)) / RATE
    x = motion.at(t)
    true = machine(SHARP)
    harmonics = motion.sine.shape[1]
    return PeriodicExperiment(
        plant, RATE, harmonics, true.lengths(x[0]), true.forces(*x), length_noise(), force_noise(), periods
    )


def true_values(e: PeriodicExperiment) -> Array:
    """The base parameters of the truth."""
    return e.plant.base.reduce(e.plant.base.parameters.values)


def rigid(e: PeriodicExperiment | Trials, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which base parameters are the ten rigid-body ones."""
    return np.array([name.removesuffix("R") in LEADS or name in RIGID for name in names])


@dataclass(frozen=True, eq=False)
class DesignTrials:
    """The same number of trials of two designs: `statistical` (D-optimal) and `deterministic` (condition number)."""

    statistical: Trials
    deterministic: Trials

    @property
    def ratio(self) -> Array:
        """Empirical deviation of the first over that of the second (p,)."""
        return self.statistical.empirical() / self.deterministic.empirical()

    @property
    def figures(self) -> dict[str, float]:
        """Named as in result.json; everything by Gauss-Markov across rows and in time unless the name says otherwise."""
        own, better = rigid(self.statistical, self.statistical.names), self.ratio < 1.0
        s = self.statistical
        over = s.empirical("markov") / s.empirical("ols")
        honest = s.honesty("markov")
        ignoring = np.sqrt((s.ignoring**2).mean(axis=0)) / s.empirical("rows")
        return {
            "trials": float(len(s.values["markov"])),
            "rigid_better_dopt": float(better[own].sum()),
            "all_better_dopt": float(better.sum()),
            "dopt_over_condition_median": float(np.median(self.ratio)),
            "gm_over_ols_median": float(np.median(over)),
            "gm_better_than_ols": float((over < 1.0).sum()),
            "stated_over_empirical_median": float(np.median(honest)),
            "stated_over_empirical_least": float(honest.min()),
            "stated_over_empirical_largest": float(honest.max()),
            "stated_ignoring_colour_median": float(np.median(ignoring)),
        }


def design_trials(
    statistical: FourierTrajectory,
    deterministic: FourierTrajectory,
    count: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> DesignTrials:
    """Both designs with so many trials each."""
    found = []
    for name, motion in (("D-optimal", statistical), ("condition number", deterministic)):
        e = experiment(motion)
        found.append(trials(e, true_values(e), count, rng, progress, f"trials, {name}"))
    return DesignTrials(*found)


def equal_trials(motion: FourierTrajectory, count: int, rng: np.random.Generator, progress: Progress = silent) -> float:
    """The median deviation by Gauss-Markov over that by least squares, of trials with 2 N of noise on every drive: only what drives share
    and what noise remembers is left to gain."""
    e = replace(experiment(motion), force_noise=force_noise(deviations=np.full(6, SensorNoise().force)))
    found = trials(e, true_values(e), count, rng, progress, "trials, equal noise")
    return float(np.median(found.empirical("markov") / found.empirical("ols")))


def friction_growth(plan: ExcitationPlan) -> tuple[Growth, ...]:
    """cond ρ of (11) while the friction model grows from nothing to that of Table I: how much friction a motion bears."""
    own = {name.removesuffix("R"): name for name in plan.names}
    steps = {
        "rigid bodies": [own[name] for name in LEADS],
        "dry friction of the drives": [own[f"r{k}"] for k in range(1, 7)],
        "viscous friction of the drives": [own[f"v{k}"] for k in range(1, 7)],
        "dry friction of the first passive joints": [own["ra"]],
        "dry friction of the second passive joints": [own["rb"]],
    }
    return growing(plan.information, plan.names, steps)


def circle_filters(
    motion: FourierTrajectory,
    count: int,
    rng: np.random.Generator,
    progress: Progress = silent,
    turns_per_second: float = 0.5,
) -> FilterComparison:
    """Ways to filter, by the prediction of a circle that no identification has seen."""
    e = experiment(motion)
    t = np.arange(round(RATE / turns_per_second)) / RATE
    x = circle(turns_per_second)(t)
    forces = machine(SHARP).forces(*x)
    clean = np.stack(motion.at(np.arange(len(e.positions)) / RATE))
    accelerations = e.plant.actuators(clean)[0][:, 2]
    return compared(e, accelerations, e.plant.regressor(np.stack(x)), forces, count, rng, progress)


def filter_figures(found: FilterComparison, harmonics: int = HARMONICS) -> dict[str, float]:
    """Prediction errors on the circle, N: raw, the best filter in time, and the explicit DFT filter."""
    return {
        "circle_rms_raw": found.of(RAW).prediction,
        "circle_rms_time": found.best_time_domain.prediction,
        "circle_rms_dft": found.of(EXPLICIT.format(h=harmonics)).prediction,
    }


def richer(
    motion: FourierTrajectory, harmonics: int, rng: np.random.Generator, share: float = 0.01
) -> FourierTrajectory:
    """The motion with more harmonics, of `share` of its largest amplitude each: what a machine does that was asked for fewer."""
    more = harmonics - motion.sine.shape[1]
    size = share * np.abs(np.hstack([motion.sine, motion.cosine])).max(axis=1, keepdims=True)
    extra = (
        size
        * rng.uniform(0.5, 1.0, (2, len(motion.centre), more))
        * rng.choice([-1.0, 1.0], (2, len(motion.centre), more))
    )
    return FourierTrajectory(
        motion.centre, np.hstack([motion.sine, extra[0]]), np.hstack([motion.cosine, extra[1]]), motion.frequency
    )


def harmonics_scan(
    motion: FourierTrajectory, rng: np.random.Generator, highest: int = 30, progress: Progress = silent
) -> Scan:
    """The staircase (24) of one trial, with AIC and BIC."""
    e = experiment(motion)
    a = averages(e, 1, rng)[0]
    data = PeriodicData(
        plant=e.plant,
        rate=e.rate,
        coordinates=a.coordinates,
        positions=a.positions,
        forces=a.forces,
        position_noise=a.position_covariance,
        force_noise=a.force_noise,
    )
    return scan(data, highest, progress=progress)
