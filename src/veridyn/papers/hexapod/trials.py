"""Experiment design and estimators on the hexapod, over many trials: Figs. 1, 2, 4 and 5 of paper 002.

The signals come from the machine written by hand (:mod:`veridyn.papers.hexapod.platform`), which shares no equation with the model. Drives
differ in how noisy their forces are (1 to 3 N, chosen), since equal ones would make weights by row useless; noise remembers from sample to
sample and is common to the drives in part, as :class:`~veridyn.papers.hexapod.machine.SensorNoise` has it.
Each comparison has its blocks of the page beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.estimators.likelihood import PeriodicData, Scan, scan
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
from veridyn.report import measured, number
from veridyn.report.blocks import Block, Figure, Table, Text
from veridyn.report.plots import Plot, Series, curves
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

FREQUENCY, HARMONICS, RATE = 0.32, 5, 160.0  # Hz, harmonics of the design, Hz of the log: 500 samples a period
ROOM = np.array([0.12, 0.12, 0.12, 0.25, 0.25, 0.25])  # m and rad, how far the pose may go from the centre (chosen)
DEVIATIONS = np.linspace(1.0, 3.0, 6)  # N, noise of the drives' forces (chosen)
SHARP = (
    1e-9  # m/s and rad/s, below which the true machine's dry friction is rounded off: nowhere that a sample would see
)
CIRCLE_TURNS = 0.5  # a second, of the circle that is predicted
EXTRA_SHARE = 0.01  # of the largest amplitude: harmonics that nobody asked for
SHOWN_HARMONICS, SHOWN_HZ = 60, 10.0  # of the spectra, and of the leakage of the DFT
WORDS = {
    "ols": "least squares",
    "diagonal": "rows weighted",
    "rows": "Gauss-Markov across rows",
    "markov": "Gauss-Markov, rows and time",
}


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


def length_noise() -> NoiseModel:
    """Of the measured lengths."""
    s = SensorNoise()
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
    motion: FourierTrajectory, count: int, rng: np.random.Generator, progress: Progress = silent
) -> FilterComparison:
    """Ways to filter, by the prediction of a circle that no identification has seen."""
    e = experiment(motion)
    x = circle(CIRCLE_TURNS)(np.arange(round(RATE / CIRCLE_TURNS)) / RATE)
    forces = machine(SHARP).forces(*x)
    clean = np.stack(motion.at(np.arange(len(e.positions)) / RATE))
    accelerations = e.plant.actuators(clean)[0][:, 2]
    return compared(e, accelerations, e.plant.regressor(np.stack(x)), forces, count, rng, progress)


def filter_figures(found: FilterComparison) -> dict[str, float]:
    """Prediction errors on the circle, N: raw, the best filter in time, and the explicit DFT filter."""
    return {
        "circle_rms_raw": found.of(RAW).prediction,
        "circle_rms_time": found.best_time_domain.prediction,
        "circle_rms_dft": found.of(EXPLICIT.format(h=HARMONICS)).prediction,
    }


def richer(motion: FourierTrajectory, harmonics: int, rng: np.random.Generator) -> FourierTrajectory:
    """The motion with more harmonics, of `EXTRA_SHARE` of its largest amplitude each: what a machine does that was asked for fewer."""
    more = harmonics - motion.sine.shape[1]
    size = EXTRA_SHARE * np.abs(np.hstack([motion.sine, motion.cosine])).max(axis=1, keepdims=True)
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


def design_trials_blocks(both: DesignTrials, words: Mapping[str, str]) -> list[Block]:
    """Two designs and four estimators over many trials; `words`: name of a base parameter → how the paper calls it (Fig. 5, Table II)."""
    s, d = both.statistical, both.deterministic
    order = _ordered(s.names, words)
    rows = []
    for k in order:
        value, sigma = measured(float(s.truth[k]), float(s.empirical()[k]))
        other, ratio_of_sigma = number(float(d.empirical()[k]), 2), f"{s.honesty()[k]:.2f}"
        rows.append([words.get(s.names[k], s.names[k]), value, sigma, other, f"{both.ratio[k]:.2f}", ratio_of_sigma])
    table = Table(
        ["parameter", "truth", "σ, D-optimal", "σ, condition number", "ratio", "stated / empirical"],
        rows,
        f"Empirical deviations over {len(s.values['markov'])} trials of each design, estimated by Gauss-Markov across rows and in time.",
        left=(0,),
    )
    plots = [_densities(words.get(s.names[k], s.names[k]), s, d, k) for k in order[:10]]
    caption = "Normal distributions of the estimates of both designs, as in Fig. 5."
    return [Figure(plots, "Distributions of the rigid-body parameters", caption), table, *estimator_blocks(s)]


def _ordered(names: Sequence[str], words: Mapping[str, str]) -> list[int]:
    """Numbers of the parameters in the order of `words`, others behind."""
    wanted = list(words)
    return sorted(range(len(names)), key=lambda k: wanted.index(names[k]) if names[k] in words else len(wanted) + k)


def _densities(name: str, s: Trials, d: Trials, k: int) -> Plot:
    series = []
    reach = 3.0 * max(t.empirical()[k] for t in (s, d))
    for label, t, style in (("D-optimal", s, "line"), ("condition number", d, "dashed")):
        mean, sigma = float(t.values["markov"][:, k].mean()), float(t.empirical()[k])
        x = np.linspace(mean - reach, mean + reach, 160)
        series.append(
            Series(label, x, np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi)), style)
        )
    return curves(name, series, "value", "density", low=True, zero=True)


def estimator_blocks(s: Trials) -> list[Block]:
    """How estimators compare: scatter, and what they state of it."""
    rows = []
    for key, word in WORDS.items():
        ratio, ratio_of_sigma = s.empirical(key) / s.empirical("ols"), s.honesty(key)
        rows.append(
            [word, f"{np.median(ratio):.3f}", f"{int((ratio < 1.0).sum())} of {len(s.names)}", *_three(ratio_of_sigma)]
        )
    ignoring = np.sqrt((s.ignoring**2).mean(axis=0)) / s.empirical("rows")
    rows.append(["Gauss-Markov across rows, memory ignored", "", "", *_three(ignoring)])
    caption = "Scatter over that of least squares (median, how many are smaller); stated over empirical deviation (median, least, largest)."
    head = ["estimator", "σ / σ of least squares", "smaller", "stated / empirical", "least", "largest"]
    return [Table(head, rows, caption, left=(0,))]


def _three(x: Array) -> list[str]:
    return [f"{np.median(x):.2f}", f"{x.min():.2f}", f"{x.max():.2f}"]


def growth_blocks(found: Sequence[Growth], words: Mapping[str, str]) -> list[Block]:
    """The choice of a friction model: cond ρ of (11) with each part that is added."""
    rows = []
    for k, one in enumerate(found):
        factor = "" if k == 0 else f"{one.condition / found[k - 1].condition:.2f}"
        pair = " and ".join(words.get(name, name) for name in one.between)
        rows.append([one.added, f"{one.parameters}", number(one.condition, 3), factor, f"{one.largest:.3f}", pair])
    worst = max(range(1, len(found)), key=lambda k: found[k].condition / found[k - 1].condition)
    text = (
        "A part that makes the condition jump is one that the motion does not separate from the rest. Here it grows from "
        f"{number(found[0].condition, 3)} to {number(found[-1].condition, 3)} with all of Table I; the largest step, "
        f"{found[worst].condition / found[worst - 1].condition:.2f} times, is by {found[worst].added}. All 24 parameters are kept."
    )
    head = ["added", "parameters", "cond ρ", "times", "largest correlation", "between"]
    caption = "Correlation of the estimates, (11), on the D-optimal motion with the noise of the trials."
    return [Table(head, rows, caption, left=(0, 5)), Text(text)]


def _amplitudes(of: Mapping[str, tuple[Array, Array]]) -> list[Plot]:
    """Position, speed and acceleration: way → frequencies (Hz) and amplitudes (…, 3)."""
    return [
        curves(
            what,
            [Series(name, f, np.maximum(A[:, order], 1e-12), "line") for name, (f, A) in of.items()],
            "frequency [Hz]",
            "amplitude",
            log_y=True,
        )
        for order, what in enumerate(("position", "speed", "acceleration"))
    ]


def leakage_figure(found: FilterComparison) -> Figure:
    """Amplitudes of a clean period by the DFT, cut out right and wrong."""
    shown = {n: (f[part], A[part]) for n, (f, A) in found.leakage.items() for part in [(f > 0.0) & (f <= SHOWN_HZ)]}
    return Figure(
        _amplitudes(shown),
        "Leakage of the DFT with a wrong base frequency",
        "The same motion without noise. With the right period nothing is left beyond its harmonics; with a wrong one every bin has "
        "something. The window removes what lies beyond the cut-off, but the harmonics inside it are wrong by as much: see the table.",
    )


def filter_blocks(found: FilterComparison) -> list[Block]:
    """Ways to filter in one table, and their spectra in the form of Fig. 2."""
    rows = [[r.name, number(r.prediction, 3), number(r.acceleration, 2)] for r in found.rows]
    table = Table(
        ["way", "prediction error [N]", "acceleration error [m/s²]"],
        rows,
        f"Root mean squares over {found.trials} trials; the prediction is of a circle that was not used, against the true forces.",
        left=(0,),
    )
    return [table, spectrum_figure(found), leakage_figure(found)]


def spectrum_figure(found: FilterComparison) -> Figure:
    """Amplitudes of a coordinate, its rate and its acceleration, for each way that was kept."""
    kept = {name: spectrum[1 : SHOWN_HARMONICS + 1] for name, spectrum in found.spectra.items()}
    return Figure(
        _amplitudes({name: (np.linspace(1.0, len(A), len(A)) * found.frequency, A) for name, A in kept.items()}),
        "Spectra",
        "First coordinate, its rate and its acceleration: the explicit filter leaves nothing behind its cut-off.",
    )


def scan_blocks(found: Scan) -> list[Block]:
    """The staircase of the cut-off: what BIC, AIC and the bare cost prefer."""
    keep, chosen = found.harmonics >= found.chosen, found.harmonics == found.chosen
    costs = {"cost (24)": found.cost, "AIC": found.aic, "BIC": found.bic}
    series = [Series(label, found.harmonics[keep], y[keep] - float(y[chosen][0])) for label, y in costs.items()]
    text = (
        f"The cost alone prefers {found.least('cost')} harmonics, AIC {found.least('aic')} and BIC {found.least('bic')}. "
        "Fewer than the chosen number cost orders of magnitude more and are not shown."
    )
    caption = "Each harmonic is one bin of the DFT: the cost is a staircase."
    return [
        Text(text),
        Figure([curves("above the chosen cut-off", series, "harmonics", "cost")], "Cut-off as an unknown", caption),
    ]
