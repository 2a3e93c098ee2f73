"""The observers of the buggy, and how far each is from the truth: those of paper 003, the same with estimated forces, and the best one.

================= ============================================================ =========== ========================================
name              filter                                                       states      what the wrong rolling resistance becomes
================= ============================================================ =========== ========================================
error_ekf         the thesis' errorEKF (79): integrators, course taken as yaw  20 of 28    an error of every step, corrected
error_ekf_printed the same with the accelerometer's rows as printed (116)      20 of 28    the same
error_ekf_28      the same with the suspensions in it                          28          the same
force             errorEKF with forces (Fig. 33): exact slopes of z̈            28 + 7      forces on the chassis, torques on wheels
force_alone       the same, but the model is corrected by forces alone         28 + 7      the same
ekf               exact derivatives of the step, tyre states in the filter     28 + 4      a constant of each tyre, with a deviation
================= ============================================================ =========== ========================================

The first three correct places and velocities, `force` all three of Fig. 33. The suspensions have no sensor, and integrators cannot tell
them from the rest (74): the errorEKF of twenty states leaves them to the model. Each filter has the eight states of the tyres besides.
The best one reads wheels where a hole's edge passes, the others take the rounded angle for white noise at every sample, as the thesis
does. Densities of the thesis' filters were chosen on logs whose seeds no study reports.

The best observer does not take its model for the vehicle: :data:`MODEL_ERROR` is the process noise of tyres whose stiffness
is within 10 % of the model's and of a mass within 2 %, uniform. An error of deviation σ that lasts for τ seconds has the density 2 σ² τ:

    accelerations in the plane   10 %/√3 of 1 m/s² for .15 s, a relaxation length of .5 m at 3.5 m/s
    slip of the wheels           10 %/√3 of a slip of .0035 at 5 m/s, for the second that a turn takes to begin or end: a walk of x and y
    what springs carry           2 %/√3 of gravity for .12 s, 1/2π of the period of the lowest mode, 1.33 Hz

Their sizes were chosen on vehicles of another engine (``benchmarks.calibration --foreign --observers``, seeds 1 to 4), and the sizes and
times above are what they stand for. On a simulation of the same equations all of these errors are zero, and the bands are too wide.
``best_observer(model_error=None)`` is the observer of such a simulation, whose NEES shows what the filter itself is worth.

The observer of forces has the same errors, and forces that walk as those of such tyres do: an error of deviation σ that comes within τ
seconds is a walk of density σ²/τ. Over the .15 s of a relaxation length, for an acceleration of 1 m/s²:

    across                       10 %/√3 of the force of all tyres
    about z                      the same at half the wheelbase: one axle's tyres are stiffer than the model's, the other's softer
    along                        2 %/√3 of the mass times that acceleration

Correction by forces alone is that of :mod:`veridyn.papers.buggy.tracking`.

Errors are rms by quantity as in Tables 5 and 6 of paper 003; the NEES says whether an observer knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.errors import noted
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import EKF, ErrorEKF, ForceErrorEKF
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Observation
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.papers.buggy.drive import RATE, BuggyTruth, settle
from veridyn.papers.buggy.machine import CORNERS, INDEPENDENT
from veridyn.papers.buggy.tracking import NEES_EVERY, SKIP, BuggyTrack, follow_by_forces, tracked_run
from veridyn.signals.base_motion import course_over_ground
from veridyn.signals.pulses import PulseWheel, count_of_rounded, readings_of_counts

STIFFNESS_SIGMA, MASS_SIGMA = 0.10 / np.sqrt(3.0), 0.02 / np.sqrt(3.0)  # relative, of uniform errors within 10 and 2 %
RELAXATION_S = 0.15  # s: a relaxation length of .5 m at 3.5 m/s
MASS_KG, WHEELBASE_M = 1378.3, 2.715  # of the whole buggy
STEP = 2e-3  # s, that of the sensors
REFRESH = 5  # steps from one computation of derivatives to the next, 100 Hz, where they matter little
SUSPENSIONS = tuple(name for name in INDEPENDENT if not name.startswith("spin"))
SPINS = tuple(f"spin_{c}" for c in CORNERS)
SPRUNG = ("base.z", "base.roll", "base.pitch", *SUSPENSIONS)
STANDING_SIGMA = {"base.z": 3e-3, "base.roll": 3e-3, "base.pitch": 3e-3, **dict.fromkeys(SUSPENSIONS, 1e-2)}
SLOWEST_COURSE = 1.0  # m/s, below which a course over ground says nothing
COURSE_SIGMA = 0.03  # rad: noise of the GPS velocity at some speed, and sideslip
INPUTS = ("drive_rl", "drive_rr", "q.rack", "qd.rack", "qdd.rack")
PUSHED = ("base.x", "base.y", "base.yaw", *SPINS)
WHEEL = PulseWheel(holes=40)
FOLLOWING_S = 0.1  # s, in which forces alone bring the model to where the filter has it
QUANTITIES: dict[str, tuple[str, ...]] = {
    "x": ("base.x",),
    "y": ("base.y",),
    "xd": ("base.vx",),
    "yd": ("base.vy",),
    "yaw": ("base.yaw",),
    "yaw_rate": ("base.wz",),
    "wheel_angle": tuple(f"spin_{c}" for c in CORNERS),
    "wheel_speed": tuple(f"spin_{c}_dot" for c in CORNERS),
}
UNITS = {
    "x": "m",
    "y": "m",
    "xd": "m/s",
    "yd": "m/s",
    "yaw": "rad",
    "yaw_rate": "rad/s",
    "wheel_angle": "rad",
    "wheel_speed": "rad/s",
}


@dataclass(frozen=True)
class BuggyModelError:
    """Densities of what a model does not know: white accelerations of what springs carry and of the rest, and the walk of x and y by slip.

    In (m/s²)²/Hz, (rad/s²)²/Hz and m²/s.
    """

    planar: float
    sprung: float
    slip: float

    def noise(self) -> ProcessNoise:
        """Process noise of the model, with the deviations of a buggy that stands where it should, on springs that are not quite known."""
        names = (*BASE_NAMES, *INDEPENDENT)
        return ProcessNoise(
            position={name: self.slip if name in ("base.x", "base.y") else 0.0 for name in names},
            acceleration={name: self.sprung if name in SPRUNG else self.planar for name in names},
            start={**dict.fromkeys(names, 1e-4), **STANDING_SIGMA},
            start_rate=1e-4,
            start_element=1e-4,
        )


def _density(sigma: float, seconds: float) -> float:
    """Of white noise in place of an error that lasts for so many seconds."""
    return float(2.0 * sigma**2 * seconds)


MODEL_ERROR = BuggyModelError(
    planar=_density(STIFFNESS_SIGMA * 1.0, RELAXATION_S),
    sprung=_density(MASS_SIGMA * 9.81, 0.12),
    slip=_density(STIFFNESS_SIGMA * 0.0035 * 5.0, 1.0),
)


@dataclass(frozen=True, kw_only=True)
class BuggyObserver:
    """How one observer runs: its filter, process noise, unknown forces and estimated parameters.

    `course_as_yaw`: whether the course over ground is taken for the yaw, with the deviation `course_sigma` (rad); `edges`: whether wheels
    are read at the edges of their holes.
    """

    word: str
    method: Filter
    noise: ProcessNoise
    unknown: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    course_as_yaw: bool = False
    course_sigma: float = COURSE_SIGMA
    edges: bool = False

    def observe(
        self, machine: Machine, log: Experiment, start: Mapping[str, float], sensors: Sequence[Sensor] | None = None
    ) -> Observation:
        """Run along a log, from a start; `sensors` in place of the machine's own."""
        machine, log = self.prepared(machine, log, machine.sensors if sensors is None else sensors)
        with noted():  # the study judges its observers by the truth: some have a model that is wrong on purpose
            return observe_with(self.setup(start), machine, log)

    def track(
        self, machine: Machine, log: Experiment, start: Mapping[str, float], sensors: Sequence[Sensor] | None = None
    ) -> BuggyTrack:
        """:meth:`observe` without what a study does not read."""
        machine, log = self.prepared(machine, log, machine.sensors if sensors is None else sensors)
        with noted():
            return tracked_run(self.setup(start), machine, log)

    def beside(
        self, machine: Machine, log: Experiment, start: Mapping[str, float], inputs: Sequence[str] = INPUTS
    ) -> tuple[Observer, Array, Array]:
        """An observer for one sample at a time, with the readings (N, m) of a log, NaN where there is none, and their deviations.

        The deviations (N, m) are NaN where they are the sensor's own. `inputs`: what is given with the readings.
        """
        machine, log = self.prepared(machine, log, machine.sensors)
        running = Observer(machine, self.method, self.setup(start, inputs).settings)
        return running, *readings_in(log, running.system.outputs)

    def prepared(self, machine: Machine, log: Experiment, sensors: Sequence[Sensor]) -> tuple[Machine, Experiment]:
        """The machine with these sensors, and the log as the observer reads it."""
        if self.course_as_yaw:
            sensors, log = _thesis_sensors(sensors, self.course_sigma), with_course(log)
        return machine.with_sensors(sensors), with_edges(log) if self.edges else log

    def setup(self, start: Mapping[str, float], inputs: Sequence[str] | None = None) -> ObserverSetup:
        """Its filter and settings. `inputs`: what acts and is measured; None for all that a log has."""
        settings = ObserveSettings(
            process_noise=self.noise,
            model_error="off",  # its noise has one of its own
            start=start,
            unknown=self.unknown,
            inputs=inputs,
            parameters=self.parameters,
            step=STEP,
        )
        return ObserverSetup(self.method, settings)


def readings_in(log: Experiment, outputs: Sequence[str]) -> tuple[Array, Array]:
    """Readings (N, m) of a log at every step, NaN where there is none, and their deviations (N, m), NaN where they are the sensor's own."""
    count = len(log[INPUTS[0]].t)
    rows, deviations = (np.full((count, len(outputs)), np.nan) for _ in range(2))
    for j, name in enumerate(outputs):
        at = np.rint(log[name].t / STEP).astype(int)
        rows[at, j] = log[name].values
        if f"{name}.sigma" in log.names:
            deviations[at, j] = log[f"{name}.sigma"].values
    return rows, deviations


def error_ekf(
    *,
    suspensions: bool = False,
    accelerometer: Literal["full", "attitude"] = "full",
    position: Literal["full", "place"] = "full",
    course_sigma: float = COURSE_SIGMA,
) -> BuggyObserver:
    """Equation 79, with the 16 readings of the thesis: position, velocity in the plane, course as yaw, inertial unit, wheels.

    `suspensions`: whether they are among the states, which makes 28; `accelerometer` and `position`: their rows, as they are or as
    equations 116 and 89 are printed, see :class:`~veridyn.observe.filters.methods.ErrorEKF`; `course_sigma` (rad): of the course.
    """
    word = "error_ekf_28" if suspensions else "error_ekf" if accelerometer == "full" else "error_ekf_printed"
    left = () if suspensions else SUSPENSIONS
    moving = {name: 0.0 if name in left else 1e-4 for name in (*BASE_NAMES, *INDEPENDENT)}
    white = {name: 0.0 if name in left else 1e-2 for name in (*BASE_NAMES, *INDEPENDENT)}
    # An integrator knows no springs: more than this makes the chassis bounce.
    sprung = ("base.z", "base.roll", "base.pitch", *(SUSPENSIONS if suspensions else ()))
    white |= dict.fromkeys(sprung, 1e-4)
    noise = ProcessNoise(start=moving, start_rate=moving, acceleration=white)
    method = ErrorEKF(refresh=REFRESH, accelerometer=accelerometer, position=position)
    return BuggyObserver(word=word, method=method, noise=noise, course_as_yaw=True, course_sigma=course_sigma)


def force_observer(model_error: BuggyModelError | None = MODEL_ERROR) -> BuggyObserver:
    """Forces on the chassis along and across, a moment about z, and a torque on each wheel, all of them random walks.

    `model_error`: what the model does not know besides; None where the truth has the equations and numbers of the model.
    """
    first = {name: 100.0 if name in BASE_NAMES else 20.0 for name in PUSHED}
    if model_error is None:
        walk = {name: 30.0**2 if name in BASE_NAMES else 3.0**2 for name in PUSHED}
        noise = ProcessNoise(
            start=1e-4, start_rate=1e-4, acceleration=1e-6, force=walk, start_force=first, start_element=1e-4
        )
        return BuggyObserver(word="force", method=ForceErrorEKF(), noise=noise, unknown=PUSHED)
    tyres, mass = STIFFNESS_SIGMA * MASS_KG * 1.0, MASS_SIGMA * MASS_KG * 1.0
    sizes = {"base.x": mass, "base.y": tyres, "base.yaw": tyres * WHEELBASE_M / 2.0}
    walk = {name: sizes[name] ** 2 / RELAXATION_S if name in sizes else 3.0**2 for name in PUSHED}
    noise = replace(model_error.noise(), force=walk, start_force=first)
    return BuggyObserver(word="force", method=ForceErrorEKF(), noise=noise, unknown=PUSHED)


def best_observer(model_error: BuggyModelError | None = MODEL_ERROR) -> BuggyObserver:
    """Exact derivatives, and the rolling resistance of each tyre estimated with the state.

    `model_error`: what the model does not know besides; None where the truth has the equations and numbers of the model.
    """
    rounding = ProcessNoise(start=1e-4, start_rate=1e-4, acceleration=3e-9, start_element=1e-4)
    noise = rounding if model_error is None else model_error.noise()
    resistances = {f"tyre_{c}.QSY1": (0.015, 1e-9, 0.0, 0.1) for c in CORNERS}
    return BuggyObserver(word="ekf", method=EKF(), noise=noise, parameters=resistances, edges=True)


def observers(model_error: BuggyModelError | None = MODEL_ERROR) -> dict[str, BuggyObserver]:
    """All filters by name; `model_error` is that of the best one."""
    made = (
        error_ekf(),
        error_ekf(accelerometer="attitude"),
        error_ekf(suspensions=True),
        force_observer(model_error=None),  # the thesis' filter, on a truth of the same equations
        best_observer(model_error),
    )
    return {observer.word: observer for observer in made}


def run_observers(
    machine: Machine,
    log: Experiment,
    start: Mapping[str, float],
    model_error: BuggyModelError | None = MODEL_ERROR,
    names: Sequence[str] | None = None,
) -> Iterator[tuple[str, BuggyTrack]]:
    """Every observer along a log, or those of `names`; correction by forces alone goes on from the filter that estimates forces."""
    for name, observer in observers(model_error).items():
        if names is not None and name not in names:
            continue
        found = observer.track(machine, log, start)
        if name == "force":
            yield "force_alone", follow_by_forces(found, FOLLOWING_S)
        yield name, found


def _thesis_sensors(sensors: Sequence[Sensor], course_sigma: float) -> list[Sensor]:
    found = [replace(s, axes="xy") if s.name == "gps_velocity" else s for s in sensors]
    return [*found, Sensor("course", "yaw", "chassis", course_sigma, rate=50.0)]


def with_course(log: Experiment) -> Experiment:
    """The log with the course over ground of its GPS velocity; not a number below the speed at which it says something."""
    course, heard = course_over_ground(log["gps_velocity.x"], log["gps_velocity.y"], above=SLOWEST_COURSE)
    return log.replacing(replace(course, values=np.where(heard.values > 0.0, course.values, np.nan)))


def with_edges(log: Experiment) -> Experiment:
    """The log with readings of the wheels' angles where an edge of a hole passed, each with its own deviation, and nowhere else."""
    found = []
    for corner in CORNERS:
        count, wheel = count_of_rounded(log[f"angle_{corner}"], WHEEL)
        found += readings_of_counts(count, wheel, f"angle_{corner}")
    return log.replacing(*found)


def standing_start(machine: Machine) -> dict[str, float]:
    """The coordinates of a buggy that stands, by the names that an observer's start has."""
    at = settle(machine)
    w, x, y, z = np.asarray(at.base.quaternion, dtype=np.float64).tolist()
    yaw, pitch, roll = Rotation.from_quat([x, y, z, w]).as_euler("ZYX").tolist()
    joints = dict(zip(machine.coordinates, at.q.tolist(), strict=True))
    base = dict(
        zip(BASE_NAMES, [*np.asarray(at.base.position, dtype=np.float64).tolist(), roll, pitch, yaw], strict=True)
    )
    return {**base, **{name: joints[name] for name in (*INDEPENDENT, "rack")}}


@dataclass(frozen=True, eq=False)
class Scored:
    """Errors (N, 2f) of the states by name at times t (N,), their deviations, and the largest and rms errors by quantity (worst wheel)."""

    t: Array
    names: tuple[str, ...]
    errors: Array
    sigma: Array
    nees: float

    def of(self, state: str) -> tuple[Array, Array]:
        """Error and deviation of a state."""
        k = self.names.index(state)
        return self.errors[:, k], self.sigma[:, k]

    def rms(self, quantity: str, after: float = 0.0) -> float:
        late = self.t >= after
        return max(float(np.sqrt(np.mean(self.of(n)[0][late] ** 2))) for n in QUANTITIES[quantity])

    def largest(self, quantity: str, after: float = 0.0) -> float:
        late = self.t >= after
        return max(float(np.abs(self.of(n)[0][late]).max()) for n in QUANTITIES[quantity])


def scored(found: Observation, truth: BuggyTruth) -> Scored:
    """The errors of an observation against the truth, from sample SKIP on."""
    x, P = np.asarray(found.track.x), np.asarray(found.track.P)
    return score_track(BuggyTrack.of(found.system, found.estimates.t, x, P, found.inputs), truth)


def score_track(track: BuggyTrack, truth: BuggyTruth) -> Scored:
    """The errors of a track, from sample SKIP on."""
    system, t = track.system, track.t[SKIP:]
    model, at = system.model, np.rint(t * RATE).astype(int)
    q, qd, _, _ = system.split(track.x[SKIP:])
    names = system.states[: 2 * system.f]
    errors = wrapped(model.local(q, qd) - model.local(truth.q[at], truth.qd[at]), names)
    return Scored(t, names, errors, track.sigma[SKIP:], _nees(track, truth, at, q, qd))


def score_plain(system: MachineSystem, plain: BuggyTruth, truth: BuggyTruth) -> Scored:
    """The errors of the model left to itself, which has no deviations."""
    model, names = system.model, system.states[: 2 * system.f]
    errors = wrapped(plain.reduced(model) - truth.reduced(model), names)[SKIP:]
    return Scored(truth.t[SKIP:], names, errors, np.zeros_like(errors), np.nan)


def wrapped(errors: Array, names: tuple[str, ...]) -> Array:
    """Errors with those of the attitude between −π and π."""
    turning = [k for k, name in enumerate(names) if name in ("base.roll", "base.pitch", "base.yaw")]
    out = errors.copy()
    out[:, turning] = (out[:, turning] + np.pi) % (2.0 * np.pi) - np.pi
    return out


def _nees(track: BuggyTrack, truth: BuggyTruth, at: NDArray[np.int64], q: Array, qd: Array) -> float:
    """The mean of dᵀ P⁻¹ d over the number of states that the filter carries, along the run."""
    model, n = track.system.model, 2 * track.system.f
    carried = np.flatnonzero(np.diag(track.last)[:n] > 0.0)
    some = slice(None, None, NEES_EVERY)
    d = model.difference(truth.q[at[some]], truth.qd[at[some]], q[some], qd[some])[:, carried]
    solved = np.linalg.solve(track.some[:, carried[:, None], carried], d[:, :, None])[:, :, 0]
    return float(np.mean((d * solved).sum(axis=1))) / len(carried)
