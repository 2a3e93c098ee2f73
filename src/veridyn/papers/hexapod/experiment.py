"""Experiments with the hexapod: the machine by hand under control, noise of its sensors, circles, and feed-forward by a model.

The machine (:mod:`veridyn.papers.hexapod.platform`) shares no equation with the models that are identified. Its controller moves each
drive by position control on a measured length; lengths and forces are measured with noise that remembers (AR(1)) and is common to the
actuators in part. All figures of noise and control are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import LEGS, POSE, TRUTH, hexapod
from veridyn.papers.hexapod.platform import CONTROL, Control, Platform, PlatformRun, run

Array = NDArray[np.float64]
Reference = Callable[[Array], tuple[Array, Array, Array]]  # times (N,) → pose, rates, accelerations (N, 6)

HIPS = np.radians([-12.0, 12.0, 108.0, 132.0, 228.0, 252.0])
FEET = np.radians([-45.0, 45.0, 75.0, 165.0, 195.0, 285.0])
RATE = 320.0  # Hz of the log; the controller runs three times as fast
STEPS = 3
CENTRE = np.array([0.0, 0.0, -0.95, 0.0, 0.0, 0.0])


def machine(friction_speed: float = 2e-3, values: Mapping[str, float] = TRUTH) -> Platform:
    """The true machine, by its hand-written equations, with the values of ``hexapod.TRUTH`` or others of the same names."""
    t = values
    leg = [t["ZZ1"] + t["YY2"] + t["ZZ3"], t["XX2"] + t["XX3"] - t["YY2"] - t["ZZ3"], t["ZZ2"] + t["YY3"]]
    return Platform(
        hips=np.column_stack([0.60 * np.cos(HIPS), 0.60 * np.sin(HIPS), np.zeros(6)]),
        angles=HIPS,
        feet=np.column_stack([0.09 * np.cos(FEET), 0.09 * np.sin(FEET), np.full(6, 0.12)]),
        leg=np.array([*leg, t["MY2"], t["MZ3"], t["M3"]]),
        body=np.array([t["XX_E"], t["YY_E"], t["ZZ_E"], t["MZ_E"], t["M_E"]]),
        passive=np.array([t["ra"], t["rb"]]),
        dry=np.array([t[f"r{k}"] for k in range(1, 7)]),
        viscous=np.array([t[f"v{k}"] for k in range(1, 7)]),
        friction_speed=friction_speed,
    )


@dataclass(frozen=True)
class SensorNoise:
    """Noise of lengths (m) and forces (N): deviations, memory from one sample of the log to the next, share common to all drives."""

    length: float = 1e-5
    force: float = 2.0
    memory: float = 0.5
    common: float = 0.5

    def draw(self, samples: int, deviation: float, rng: np.random.Generator, faster: int = 1) -> Array:
        """(samples, 6), at the rate of the log or so many times as fast."""
        a = self.memory ** (1.0 / faster)
        mixed = np.linalg.cholesky(self.correlation) @ rng.normal(size=(6, samples + 50 * faster))
        white = deviation * np.sqrt(1.0 - a * a) * mixed
        return np.asarray(lfilter([1.0], [1.0, -a], white, axis=1))[:, 50 * faster :].T

    @property
    def correlation(self) -> Array:
        """Of the six drives."""
        return (1.0 - self.common) * np.eye(6) + self.common

    @property
    def force_covariance(self) -> Array:
        """(6, 6), N^2."""
        return self.force**2 * self.correlation


@dataclass(frozen=True, eq=False)
class HexapodRecording:
    """What the experimenter has: times, measured lengths and drive forces (N, 6) at the rate of the log.

    Drives hold each commanded force for `hold` seconds, one step of their controller, so that a force of the log acts hold/2 later than the
    lengths of the same sample were measured, on average.
    """

    t: Array
    lengths: Array
    forces: Array
    hold: float = 0.0


def circle(frequency: float, radius: float = 0.10) -> Reference:
    """The benchmark motion: a level circle about the centre of the workspace, so many times a second."""
    w = 2.0 * np.pi * frequency

    def at(t: Array) -> tuple[Array, Array, Array]:
        c, s = radius * np.cos(w * t), radius * np.sin(w * t)
        pose, rate, acceleration = (np.zeros((len(t), 6)) for _ in range(3))
        pose[:] = CENTRE
        pose[:, 0], pose[:, 1] = c, s
        rate[:, 0], rate[:, 1] = -w * s, w * c
        acceleration[:, 0], acceleration[:, 1] = -w * w * c, -w * w * s
        return pose, rate, acceleration

    return at


def along(machine: Machine, reference: Reference, t: Array) -> Motion:
    """The motion of all joints of a model along a reference of the pose."""
    return closed_motion(machine, t, *reference(t), at=POSE)


def feedforward(model: Machine | None, motion: Motion) -> Array:
    """Drive forces (N, 6) that a model expects of a motion; zero without a model."""
    return np.zeros((len(motion), 6)) if model is None else inverse_dynamics(model, motion)


@dataclass(frozen=True, eq=False)
class Task:
    """What the controller is given for one period of a reference: where to start (pose and rates), lengths and speeds to follow, and
    forces to add, (N, 6) each at its own rate."""

    start: Array
    lengths: Array
    speeds: Array
    ahead: Array
    control: Control


def task(reference: Reference, period: float, model: Machine | None = None, control: Control = CONTROL) -> Task:
    """One period (s) of a reference, with feed-forward by a model. The period must be a whole number of steps of the controller."""
    steps = period * control.rate
    if abs(steps - round(steps)) > 1e-6 * steps:
        raise DataError(
            "the period does not fit the sampling.",
            where="hexapod",
            expected=f"a whole number of samples of {control.rate:g} Hz",
            found=f"{steps:.6g} samples in {period:g} s",
        )
    t = np.arange(round(steps)) / control.rate
    one = along(hexapod(), reference, t)
    own = [hexapod().coordinates.index(name) for name in LEGS]
    start = np.concatenate([x[0] for x in reference(t[:1])[:2]])
    return Task(start, one.q[:, own], one.qd[:, own], feedforward(model, one), control)


def controlled(
    wanted: Task,
    turns: int,
    noise: SensorNoise | None = None,
    rng: np.random.Generator | None = None,
    true: Platform | None = None,
) -> tuple[PlatformRun, Array]:
    """A run of the true machine over so many periods; and the lengths (N, 6) it should have had.

    With `noise` the controller sees noisy lengths. `true`: another machine than :func:`machine` gives.
    """
    lengths, speeds, ahead = (np.tile(x, (turns, 1)) for x in (wanted.lengths, wanted.speeds, wanted.ahead))
    blur = None if noise is None or rng is None else noise.draw(len(lengths), noise.length, rng, STEPS)
    made = run(true or machine(), wanted.start, lengths, speeds, feedforward=ahead, noise=blur, control=wanted.control)
    return made, lengths


def recorded(
    made: PlatformRun, noise: SensorNoise, rng: np.random.Generator, skip: float = 0.0, fresh: bool = True
) -> HexapodRecording:
    """The log of a run from `skip` seconds on. `fresh`: noise of lengths is drawn anew, for a run whose controller saw none."""
    first = round(skip * RATE) * STEPS
    lengths = made.lengths if fresh else made.measured
    chosen = slice(first, None, STEPS)
    N = len(made.t[chosen])
    blur = noise.draw(N, noise.length, rng) if fresh else 0.0
    forces = made.forces[chosen] + noise.draw(N, noise.force, rng)
    return HexapodRecording(np.arange(N) / RATE, lengths[chosen] + blur, forces, hold=float(made.t[1] - made.t[0]))


def tracking_error(
    model: Machine | None, frequency: float, noise: SensorNoise, rng: np.random.Generator, turns: int = 3
) -> Array:
    """Errors (N, 6) of the leg lengths on a circle, from the second turn on, with feed-forward by a model."""
    made, wanted = controlled(task(circle(frequency), 1.0 / frequency, model), turns, noise, rng)
    return (wanted - made.lengths)[len(wanted) // turns :]
