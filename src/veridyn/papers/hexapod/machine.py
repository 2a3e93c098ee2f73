"""The hexapod PaLiDA of paper 002 and experiments with it: its model, Tables I and II, its limits; control, noise of sensors, circles.

The model is ``hexapod.yaml``. Its geometry is chosen, since none is published (see the file); the truth of simulated experiments is
chosen near the identified column of Table II. Two of the identified values there are those of no body: p1 is below zero, and p2 is
above p3, though p3 − p2 = (Iyy2 + Izz2 − Ixx2) + (Iyy3 + Izz3 − Ixx3), a sum of what no distribution of mass has below zero.

The machine of the experiments (:mod:`veridyn.papers.hexapod.platform`) shares no equation with the models that are identified. Its
controller moves each drive by position control on a measured length; lengths and forces are measured with noise that remembers (AR(1)) and
is common to the actuators in part. All figures of noise and control are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.signal import lfilter

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.machines import described
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet
from veridyn.papers.hexapod.platform import CONTROL, Control, Platform, PlatformRun, run
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import JointLimits

Ties = Literal["table", "legs", "none"]
CIRCLES = (0.3, 0.6, 0.96, 1.2)  # turns a second of the validation circle (chosen; whole numbers of samples each)
POSE = ("x", "y", "z", "psi", "theta", "phi")
LEGS = ("l1", "l2", "l3", "l4", "l5", "l6")
RIGID = ("p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10")
FRICTION = ("ra", "rb", *(f"r{k}" for k in range(1, 7)), *(f"v{k}" for k in range(1, 7)))
# The parameters that lead the groups p1 … p10 of Table I (p5 is the first moment along z3; the print has y3, the axis of beta).
LEADS = ("ZZ1", "XX2", "ZZ2", "MY2", "MZ3", "XX_E", "YY_E", "ZZ_E", "MZ_E", "M_E")
# Names of Table I by those that the base parameters of the hexapod have here; an R marks a group of several.
TABLE_NAMES: dict[str, str] = {
    **{f"{lead}{'' if lead in ('MY2', 'MZ3') else 'R'}": p for lead, p in zip(LEADS, RIGID, strict=True)},
    **{name: name for name in FRICTION},
}
# Table II: identified by Gauss-Markov, by maximum likelihood, and a priori, in the order of RIGID and FRICTION.
TABLE_II: dict[str, tuple[float, float, float]] = {
    "p1": (-0.0447, -0.0444, 0.0074),
    "p2": (1.0892, 1.0915, 0.9439),
    "p3": (1.0077, 1.0106, 0.9458),
    "p4": (0.5995, 0.6029, 0.6201),
    "p5": (-1.2885, -1.2898, -1.2295),
    "p6": (0.3078, 0.3084, 0.2878),
    "p7": (0.3021, 0.3018, 0.2878),
    "p8": (0.1176, 0.1173, 0.1217),
    "p9": (1.8896, 1.8874, 1.9012),
    "p10": (16.3081, 16.2966, 16.1920),
    "ra": (0.5756, 0.5593, np.nan),
    "rb": (0.9195, 0.9339, np.nan),
    "r1": (11.9772, 12.1195, np.nan),
    "r2": (4.8071, 5.1917, np.nan),
    "r3": (20.1528, 20.1773, np.nan),
    "r4": (5.1518, 5.4981, np.nan),
    "r5": (1.5857, 1.7191, np.nan),
    "r6": (5.0057, 4.9622, np.nan),
    "v1": (16.8771, 16.7115, np.nan),
    "v2": (16.7406, 16.1764, np.nan),
    "v3": (6.3408, 6.2864, np.nan),
    "v4": (23.1662, 22.6607, np.nan),
    "v5": (26.4675, 26.3370, np.nan),
    "v6": (22.8053, 22.8194, np.nan),
}
Reference = Callable[[Array], tuple[Array, Array, Array]]  # times (N,) → pose, rates, accelerations (N, 6)
HIPS = np.radians([-12.0, 12.0, 108.0, 132.0, 228.0, 252.0])
FEET = np.radians([-45.0, 45.0, 75.0, 165.0, 195.0, 285.0])
RATE = 320.0  # Hz of the log; the controller runs three times as fast
STEPS = 3
CENTRE = np.array([0.0, 0.0, -0.95, 0.0, 0.0, 0.0])


def hexapod(ties: Ties = "table") -> Machine:
    """The hexapod with all parameters of Table I estimated ("table"), with legs that are alike in all ten parameters of each
    body ("legs"), or with legs that have nothing in common ("none")."""
    machine = described("hexapod.yaml")
    if ties == "table":
        return machine
    free = machine.parameters.estimated(machine.parameters.names)
    if ties == "none":
        return machine.with_parameters(free)
    return machine.with_parameters(free.tied({name: lead for name in free.names if (lead := _alike(name))}))


def _alike(name: str) -> str:
    """The parameter of leg 1 that one of another leg equals: XX2_4 is XX2; empty for those of leg 1 and of the platform."""
    stem, _, leg = name.rpartition("_")
    return stem if leg.isdigit() else ""


def truth(values: Mapping[str, float] | None = None) -> Machine:
    """The hexapod of simulated experiments: chosen, physically possible, near the identified column of Table II, friction included.

    `values`: others than TRUTH, by the same names.
    """
    machine = hexapod()
    return machine.with_parameters(_alike_all(machine.parameters.replacing(dict(values or TRUTH))))


def _alike_all(p: ParameterSet) -> ParameterSet:
    """Tied parameters with the values of what they are tied to."""
    return p.replacing({name: tie.factor * p[tie.to] for name, tie in p.ties.items()})


TRUTH: dict[str, float] = {
    "ZZ1": 0.0060,
    "XX2": 0.1027,
    "YY2": 0.0016,
    "ZZ2": 0.1027,
    "MY2": 0.5995,
    "XX3": 0.9050,
    "YY3": 0.9050,
    "ZZ3": 0.0005,
    "MZ3": -1.2885,
    "M3": 2.05,
    "XX_E": 0.0809,
    "YY_E": 0.0752,
    "ZZ_E": 0.0180,
    "MZ_E": 0.4136,
    "M_E": 4.0081,
} | {name: TABLE_II[name][0] for name in FRICTION}


def prior() -> Machine:
    """The hexapod as its drawings have it: the a-priori values of Table II, and no friction, of which nothing was known."""
    machine = hexapod()
    return machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})


def limits() -> JointLimits:
    """What the drives may do (chosen): length in m, speed in m/s and acceleration in m/s^2 of each leg."""
    six = np.ones(6)
    return JointLimits(0.80 * six, 1.17 * six, 1.6 * six, 16.0 * six)


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
        what = "the period does not fit the sampling."
        expected = f"a whole number of samples of {control.rate:g} Hz"
        raise DataError(what, where="hexapod", expected=expected, found=f"{steps:.6g} samples in {period:g} s")
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
