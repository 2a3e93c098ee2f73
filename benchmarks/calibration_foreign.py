"""Cases of ``benchmarks.calibration --foreign``: truth by simulators that share no code and no convention with veridyn, default deviations.

Each run draws the true parameters of a machine from the deviations of its drawing, a motion, and the noise. Positions and torques come from
:mod:`benchmarks.foreign.machines` (Pinocchio, in one case MuJoCo) and are recorded at 500 Hz by 16-bit encoders and torque sensors with
first-order noise n_k = a n_(k−1) + e_k. The log is handed to ``identify(machine, log, method)`` and nothing else is set: signals,
sampling and covariance are the defaults. What a method needs to know is given: `iv` the motion that was commanded, `map` how far
machines are from their drawing.

A sum of terms a sin(2π f t + p) of random frequencies has no period, so that no stretch of a motion repeats another. ``--motions`` asks for
other motions (:mod:`benchmarks.foreign.motions`), and for friction by itself: the share of h and fs inside 2σ, over all cases of a motion.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter

import veridyn as vd
from benchmarks.calibration_cases import Case, Outcome
from benchmarks.foreign.machines import SUBJECTS, Subject, drawn
from benchmarks.foreign.motions import FOURIER, Moves
from veridyn.identify.estimator import Estimator
from veridyn.identify.result import Fit

Array = NDArray[np.float64]
RATE = 500.0  # Hz
QUANTUM = 2.0 * np.pi / 2**16  # rad, of an encoder with 16 bits a turn
SPREAD = 0.1  # of each parameter's size: how far machines are from their drawing
TERMS = 6  # of the motion of each joint
SHORT_MEMORIES = 10.0
APART_S = 10.0  # between two logs of one motion
SPEEDS = 2.5  # rad/s or m/s, for a reach of 1: as fast as a joint may be


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What a run records: `memory` a of the torque noise, white noise of the positions in quanta, and how many logs of so many samples.

    `frequencies`: lowest and highest of the motion, Hz. `motion`: sums of sines, or another of :mod:`benchmarks.foreign.motions`.
    """

    subject: str = "arm"
    engine: Literal["pinocchio", "mujoco"] = "pinocchio"
    memory: float = 0.0
    encoder: float = 0.0
    logs: int = 1
    samples: int = 10_000
    frequencies: tuple[float, float] = (0.1, 1.2)
    motion: str = FOURIER


def memory_samples(a: float) -> float:
    """Correlation time (1 + a)/(1 − a) of first-order noise in samples: N samples have a mean as good as N over it white ones."""
    return (1.0 + a) / (1.0 - a)


SHORT = "short log"
CIRCUMSTANCES: dict[str, Circumstances] = {
    "white": Circumstances(),
    "AR .9": Circumstances(memory=0.9),
    "AR .98": Circumstances(memory=0.98),
    "encoder noise": Circumstances(memory=0.9, encoder=3.0),
    "two logs": Circumstances(memory=0.9, logs=2, samples=5_000),
    SHORT: Circumstances(memory=0.98, samples=round(SHORT_MEMORIES * memory_samples(0.98)), frequencies=(0.5, 2.5)),
    "gears": Circumstances(subject="geared", memory=0.9),
    "MuJoCo": Circumstances(engine="mujoco", memory=0.9),
}
METHODS = ("ols", "wls", "consistent", "map", "robust", "iv")


@dataclass(frozen=True, eq=False)
class Waves:
    """q = centre + Σ size sin(2π frequency t + phase) of each joint; tables are (terms, n)."""

    centre: Array
    size: Array
    frequency: Array
    phase: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, reach: Array, frequencies: tuple[float, float]) -> Waves:
        """Sums that keep `reach` to either side, and SPEEDS × reach, of centres up to a quarter of it away from zero."""
        shape = (TERMS, len(reach))
        low, high = np.log(frequencies)
        frequency = np.exp(rng.uniform(low, high, shape))
        size = rng.uniform(0.5, 1.0, shape) / frequency
        w = 2.0 * np.pi * frequency
        size = size * reach / np.maximum(size.sum(axis=0), (w * size).sum(axis=0) / SPEEDS)
        return cls(
            0.25 * reach * rng.uniform(-1.0, 1.0, len(reach)), size, frequency, rng.uniform(0.0, 2.0 * np.pi, shape)
        )

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ (N, n)."""
        w = 2.0 * np.pi * self.frequency
        angle = w * np.asarray(t)[:, None, None] + self.phase
        s, c = np.sin(angle), np.cos(angle)
        return self.centre + (self.size * s).sum(1), (self.size * w * c).sum(1), (-self.size * w**2 * s).sum(1)


Path = Waves | Moves


def path_of(
    kind: str, rng: np.random.Generator, reach: Array, frequencies: tuple[float, float], seconds: float
) -> Path:
    """A motion of this kind that keeps `reach` and SPEEDS × reach, for so many seconds."""
    if kind == FOURIER:
        return Waves.drawn(rng, reach, frequencies)
    return Moves.drawn(kind, rng, reach, SPEEDS, seconds)


@cache
def model(subject: str) -> vd.Machine:
    """The machine that its file describes: what an estimator is given."""
    return vd.load_model(SUBJECTS[subject].file)


def drawing(subject: str) -> dict[str, float]:
    """Parameters of the file by name."""
    p = model(subject).parameters
    return dict(zip(p.names, p.values.tolist(), strict=True))


def first_order(rng: np.random.Generator, samples: int, size: Array, memory: float) -> Array:
    """Stationary noise (samples, n) of deviation `size`, each value `memory` times the last and an innovation."""
    innovations = rng.standard_normal((samples, len(size)))
    innovations[1:] *= np.sqrt(1.0 - memory**2)
    return size * lfilter([1.0], [1.0, -memory], innovations, axis=0)


def exact(
    subject: Subject, truth: Mapping[str, float], along: Path, t: Array, engine: Literal["pinocchio", "mujoco"]
) -> tuple[Array, Array]:
    """Positions of the joints and torques of the motors (N, n): by inverse dynamics along the motion, or simulated as it is followed."""
    if engine == "pinocchio":
        q, qd, qdd = along.at(t)
        return q, subject.torques(truth, q, qd, qdd)
    from benchmarks.foreign.mujoco_run import STEP, controlled

    every = round(1.0 / (RATE * STEP))
    steps = t[0] + STEP * np.arange(-every, (len(t) - 1) * every + 1)
    return controlled(subject, truth, along.at(steps)[:2], every)


def recorded(
    subject: Subject,
    truth: Mapping[str, float],
    along: Path,
    start: float,
    how: Circumstances,
    rng: np.random.Generator,
) -> vd.Experiment:
    """A log of positions and torques, at the motors where there are gears."""
    t = start + np.arange(how.samples) / RATE
    q, tau = exact(subject, truth, along, t, how.engine)
    tau = tau + first_order(rng, len(t), subject.noise, how.memory)
    angles = q @ subject.gears.T + how.encoder * QUANTUM * rng.standard_normal(q.shape)
    angles = QUANTUM * np.round(angles / QUANTUM)
    word, place = ("", "q") if subject.ratios is None else ("_motor", "m")
    values, units = {}, {}
    for k in range(q.shape[1]):
        values |= {f"q{word}.{place}{k + 1}": angles[:, k], f"force{word}.{place}{k + 1}": tau[:, k]}
        units |= {f"q{word}.{place}{k + 1}": "rad", f"force{word}.{place}{k + 1}": "N*m"}
    return vd.Experiment.from_arrays(t, values, units, subject.file.stem)


def method_named(word: str, along: Path) -> Estimator | str:
    """The method with what it needs to know, everything else as it is by default."""
    if word == "iv":
        return vd.estimators.Instrumental(reference=along)
    return vd.estimators.Prior(relative=SPREAD) if word == "map" else word


def fitted(how: Circumstances, word: str, rng: np.random.Generator, **asked: Any) -> tuple[Fit, dict[str, float]]:
    """The fit of one run, and the true parameters; `asked`: arguments of ``identify`` beside the defaults, none in the cases."""
    subject = SUBJECTS[how.subject]
    truth = drawn(subject, drawing(how.subject), SPREAD, rng)
    seconds = how.samples / RATE + APART_S
    along = path_of(how.motion, rng, subject.reach, how.frequencies, how.logs * seconds)
    logs = [recorded(subject, truth, along, k * seconds, how, rng) for k in range(how.logs)]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", vd.errors.VeridynWarning
        )  # whether σ holds is counted, whatever is reported beside it
        fit = vd.identify(model(how.subject), logs if how.logs > 1 else logs[0], method_named(word, along), **asked)
    return fit, truth


def joint_square(errors: Array, covariance: Array) -> float:
    """dᵀ C⁻¹ d per parameter, of those that have a deviation; infinite where C is no covariance matrix of them."""
    sigma = np.sqrt(np.diag(covariance))
    own = np.isfinite(sigma) & (sigma > 0.0)
    scale = sigma[own]
    values, V = np.linalg.eigh(covariance[np.ix_(own, own)] / np.outer(scale, scale))
    if values[0] <= len(values) * np.finfo(np.float64).eps * values[-1]:
        return float("inf")
    return float(np.mean((V.T @ (errors[own] / scale)) ** 2 / values))


def run(how: Circumstances, word: str, rng: np.random.Generator, **asked: Any) -> Outcome:
    """Errors of the base parameters of one run."""
    fit, truth = fitted(how, word, rng, **asked)
    errors = fit.values - fit.base.reduce([truth[name] for name in fit.base.parameters.names])
    return Outcome(errors, fit.sigma, fit.names, joint_square(errors, fit.covariance))


def cases_of(motions: Sequence[str]) -> dict[str, Case]:
    """The cases of some motions by name, which has the motion where that is no sum of sines; logs too short for a few moves have none."""
    every = [
        (f"{name}, {word}" if motion == FOURIER else f"{name}, {motion}, {word}", replace(how, motion=motion), word)
        for motion in motions
        for name, how in CIRCUMSTANCES.items()
        for word in METHODS
        if motion == FOURIER or name != SHORT
    ]
    return {name: partial(run, how, word) for name, how, word in every}


FOREIGN: dict[str, Case] = cases_of((FOURIER,))
