"""What a model of the hexapod is good for: feed-forward control at several speeds; and what control does to the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationWarning, warn
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrument_sums import across_periods
from veridyn.identify.estimators.likelihood import force_noise
from veridyn.identify.excitation.plant import plant_of
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.loops.closure import close, closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import (
    LEGS,
    POSE,
    RATE,
    TABLE_NAMES,
    HexapodRecording,
    Reference,
    SensorNoise,
    controlled,
    hexapod,
    recorded,
    task,
    tracking_error,
    truth,
)
from veridyn.papers.hexapod.trials import HARMONICS
from veridyn.progress import Progress, silent
from veridyn.signals.frequency import Periods, advanced, averaged, dft_filter, unfiltered

UNIVERSAL = tuple(e.parameter_name for e in hexapod().elements if e.parameter_name.startswith(("ra", "rb")))
CIRCLES = (0.3, 0.6, 0.96, 1.2)  # turns a second of the validation circle (chosen; whole numbers of samples each)
STANDSTILL = 0.1  # m/s: drives slower than this stick, or still swing from having stuck
REVERSING = (
    0.03  # rad/s: universal joints slower than this reverse within the samples beside, as a log at RATE has them
)
ZONES = Sampling(dead_zone=dict.fromkeys(LEGS, STANDSTILL) | dict.fromkeys(UNIVERSAL, REVERSING))
LADDER = (HARMONICS, 20, 80, 160)  # harmonics of the filters that Gauss-Markov is tried with
MEMORY = 2  # samples that the noise of forces may remember
BIASED = 2.0  # stated deviations: an error beyond it in the mean of runs, or against another method, is reported


@dataclass(frozen=True, eq=False)
class TrackingErrors:
    """Tracking errors on the circle: for each model (columns) and number of turns a second (rows), the rms over drives and time, m.

    `traces`: for each model, times and the error of the first drive over one turn at the highest speed.
    """

    models: tuple[str, ...]
    frequencies: tuple[float, ...]
    rms: Array
    traces: dict[str, tuple[Array, Array]]

    def at(self, model: str) -> float:
        """Of one model at the highest speed."""
        return float(self.rms[-1, self.models.index(model)])


def tracking(
    models: Mapping[str, Machine | None],
    noise: SensorNoise,
    rng: np.random.Generator,
    frequencies: Sequence[float] = CIRCLES,
    progress: Progress = silent,
) -> TrackingErrors:
    """The circle with feed-forward by each model, at each speed, the same controller and the same kind of noise throughout."""
    rms = np.zeros((len(frequencies), len(models)))
    traces: dict[str, tuple[Array, Array]] = {}
    total = float(rms.size)
    for i, frequency in enumerate(frequencies):
        for j, (name, model) in enumerate(models.items()):
            error = tracking_error(model, frequency, noise, rng)
            rms[i, j] = np.sqrt(np.mean(error**2))
            turn = round(3.0 * RATE / frequency)
            traces[name] = (np.arange(turn) / (3.0 * RATE), error[:turn, 0])
            progress("circles with feed-forward", float(i * len(models) + j + 1), total)
    return TrackingErrors(tuple(models), tuple(frequencies), rms, traces)


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
        z = (fits[way].values - reference.values) / fits[way].sigma
        off = {TABLE_NAMES[n]: float(x) for n, x in zip(reference.names, z, strict=True) if abs(x) > BIASED}
        if off:
            listed = ", ".join(f"{name} {x:+.1f}" for name, x in sorted(off.items(), key=lambda item: -abs(item[1])))
            fault = Fault(
                f"{title} from one averaged period is biased: the cut-off takes harmonics that the machine has, or lets noise pass.",
                where=", ".join(off),
                expected=f"within {BIASED:g} stated deviations of the estimate with instruments from other periods",
                found=listed,
                hint="Rely on the reported estimate, with instruments from other periods.",
            )
            warn(IdentificationWarning, fault)


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
