"""Observers as trackers, of a machine and of a car of a few numbers: states, virtual sensors and innovations, with bands.

The page draws a machine as points and lines, one pose at a time, and a car on its way. What acts on a car from one sample to the next is
the mean of both, so a row is made when the next sample is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any, cast

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError, VeridynError
from veridyn.identify.estimators.innovations import fit_car
from veridyn.live.arrivals import SampleColumns, columns_of
from veridyn.live.session import Pace, Replay, Session
from veridyn.live.tracker import (
    LONGEST_GAP_S,
    Layout,
    Row,
    Sample,
    SampleSource,
    Shown,
    StampCheck,
    Tracked,
    Trouble,
    refused_stamp,
)
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.model.machine import Machine
from veridyn.observe.car.observation import ObservedCar, observed_car
from veridyn.observe.car.system import SLOWEST_M_S, CarQuantities, Inflation, lateral_measurements
from veridyn.observe.car.system import state_units as car_state_units
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import Smoother
from veridyn.observe.hung import FrozenAfter, repeat_check
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observation import Virtual, quantity_of, state_units
from veridyn.observe.observer_setup import ObserverSetup, frozen_in
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer, ObserverStep
from veridyn.observe.streaming.stream import guarded_stream
from veridyn.progress import Progress
from veridyn.spatial.rotations import matrix_of
from veridyn.studies.config.observe import CarObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.car import study_car, study_drive, study_filter, study_method
from veridyn.studies.run.car_observe import replace_span
from veridyn.studies.run.observer import PreparedObserver
from veridyn.view.scene import Layer, mechanism_layer, tree_layer

LONGEST_STEPS = 10_000  # of the integration between two samples
DRAW_ON = 5  # seed of what the machines that come with veridyn are simulated with
ROW_S = 0.01  # s of the machine between rows: faster samples are observed, and shown in fewer rows


@dataclass(frozen=True, eq=False)
class Picture:
    """How a machine is drawn: `layer` makes points of configurations (N, nq); `moving`: whether the eye goes with it."""

    layer: Callable[[Array], Layer]
    segments: tuple[tuple[int, int], ...]
    up: str = "z"
    trail: int | None = None
    moving: bool = False

    def points(self, q: Array) -> Array:
        """Points (p, 3) in m at a configuration (nq,)."""
        return self.layer(q[None]).points[0]


def picture_of(layer: Callable[[Array], Layer], q: Array, up: str = "z", moving: bool = False) -> Picture:
    """A picture whose lines are those of the machine at `q` (nq,) and beside it: one without length there may get one later."""
    near = np.stack([q, q + 0.05, q - 0.03])
    made = layer(near)
    trail = made.trails[0] if made.trails else made.points.shape[1] - 1
    return Picture(layer, tuple(made.segments), up, trail, moving)


def machine_picture(system: MachineSystem, x: Array) -> Picture | None:
    """The picture of an observed machine from its state `x`; None where its formulation cannot be drawn."""
    q, model = system.split(x)[0], cast(Any, system.model)
    if system.formulation == "tree":
        return tree_picture(machine_of_tree(model.tree), q)
    if system.formulation == "natural":
        natural = model.system
        flat = natural.mechanism.dimension == 2
        return picture_of(lambda many: mechanism_layer("", natural, many), q, "y" if flat else "z")
    return None


def tree_picture(machine: Machine, q: Array) -> Picture:
    """The picture of a machine in joint coordinates; of a free base the configuration begins with place and attitude."""
    if machine.base != "free":
        return picture_of(lambda many: tree_layer(machine, many, ""), q)

    def layer(many: Array) -> Layer:
        unit = many[:, 3:7] / np.linalg.norm(many[:, 3:7], axis=1, keepdims=True)
        return tree_layer(machine, many[:, 7:], "", position=many[:, :3], rotation=matrix_of(unit))

    return picture_of(layer, q, moving=True)


class MachineTracker:
    """Runs the observer of a study sample by sample. `picture` in place of lines between joints; `notes` for the page."""

    def __init__(self, prepared: PreparedObserver, picture: Picture | None = None, notes: tuple[str, ...] = ()) -> None:
        if isinstance(prepared.setup.method, Smoother):
            what, hint = "a smoother needs the whole log, and here samples come one by one.", "Use filter: {name: ekf}."
            raise ModelError(what, where="live, filter", expected="another filter", found="smoother", hint=hint)
        self._prepared, self._notes = prepared, notes
        self._off: set[str] = set()
        self._picture = picture
        self.restart()
        if picture is None:
            self._picture = machine_picture(self.system, self._observer.belief.x)
        self._quantities = [quantity_of(self.system, v) for v in prepared.virtual]
        self.layout = self._layout()
        self._warm_up()

    @property
    def system(self) -> MachineSystem:
        return self._observer.bodies

    def restart(self) -> None:
        setup = self._prepared.setup
        method = setup.method if setup.method.late == "rewind" else replace(setup.method, late="drop")
        self._observer = Observer(self._prepared.machine, method, setup.settings)
        longest = min(LONGEST_GAP_S, LONGEST_STEPS * (setup.settings.step or 0.01))
        self._check = StampCheck(longest, ordered=method.late != "rewind")
        self._acting: dict[str, float] = {}
        self._shown = -np.inf
        self._nis, self._dof = 0.0, 0

    def _warm_up(self) -> None:
        """Compile what a step needs before the first sample is there, with steps that are forgotten again."""
        acting = dict.fromkeys(self.system.inputs, 0.0)
        for t in (0.0, 1e-3):
            self.take(Sample(t, {}, 0.0, acting))
        self.restart()

    def switch(self, sensor: str, on: bool) -> None:
        outputs = (self.layout.sensors or {})[sensor]
        self._off = self._off - set(outputs) if on else self._off | set(outputs)

    def take(self, sample: Sample) -> Tracked:
        """The estimates after a sample; readings that cannot be used are named, and the observer goes on without them."""
        refused = refused_stamp(self._check, sample.t, self.restart, ", and so does the observer.")
        if refused is not None:
            return refused
        known = {n: v for n, v in sample.values.items() if n in self.system.outputs and n not in self._off}
        alarms = []
        inputs, missing = self._inputs(sample)
        if missing:
            what = f"at {sample.t:.6g} s what acts is not known ({', '.join(missing)}): the sample is not used."
            return Tracked(alarms=(Trouble("inputs", what),))
        try:
            step = self._observer.step(sample.t, known, inputs, sample.sigma or None)
        except (VeridynError, np.linalg.LinAlgError) as error:
            return Tracked(alarms=(Trouble("refused", f"{sample.t:.6g} s: {str(error).splitlines()[0]}"),))
        x = step.belief.x
        if not np.isfinite(x).all():
            self.restart()
            text = f"the estimate is no longer finite at {sample.t:.6g} s; the observer begins again from its start."
            return Tracked(alarms=(Trouble("diverged", text),))
        alarms += [Trouble(message, message) for message in step.messages]
        self._nis, self._dof = self._nis + step.nis, self._dof + step.dof
        if sample.t - self._shown < ROW_S * (1.0 - 1e-6):
            return Tracked(alarms=tuple(alarms))
        row = self._row(sample, step)
        self._shown, self._nis, self._dof = sample.t, 0.0, 0
        return Tracked(row, self.system.split(x)[0], tuple(alarms))

    def points(self, pose: Array) -> Array | None:
        return None if self._picture is None else self._picture.points(pose)

    def _inputs(self, sample: Sample) -> tuple[Array | None, list[str]]:
        """What acts from this sample on, None where nothing changed, and the names of what was never given."""
        names = self.system.inputs
        if not names:
            return None, []
        new = {n: v for n, v in sample.inputs.items() if isfinite(v)}
        first = not self._acting
        self._acting |= new
        missing = [n for n in names if n not in self._acting]
        if missing or not (new or first):
            return None, missing
        return np.array([self._acting[n] for n in names]), []

    def _row(self, sample: Sample, step: ObserverStep) -> Row:
        system, belief = self.system, step.belief
        values, sigma = list(step.values.values()), list(step.sigma.values())
        if self._quantities:
            acting = np.array([self._acting[n] for n in system.inputs])
            at = system.instant(belief.x, acting)
            for quantity in self._quantities:
                y, G = quantity.at(belief.x, at, acting)
                values += y.tolist()
                sigma += np.sqrt(np.maximum(((G @ belief.P) * G).sum(axis=1), 0.0)).tolist()
        nothing = (nan, nan)
        heard = [step.innovations.get(name, nothing) for name in system.outputs]
        codes = [int(Status.MISSING) if n in self._off else int(s) for n, s in step.status.items()]
        return Row(
            sample.t,
            values,
            sigma,
            sample.arrived,
            [nu for nu, _ in heard],
            [s for _, s in heard],
            codes,
            self._nis / self._dof if self._dof else nan,
        )

    def _layout(self) -> Layout:
        system, picture = self.system, self._picture
        shown = [Shown(n, u, "states") for n, u in zip(system.states, state_units(system), strict=True)]
        for q in self._quantities:
            shown += [Shown(n, u, "virtual sensors") for n, u in zip(q.components, q.units, strict=True)]
        sensors: dict[str, tuple[str, ...]] = {}
        for name, k in zip(system.table.names, system.table.owner, strict=True):
            sensor = system.table.sensors[k].name
            sensors[sensor] = (*sensors.get(sensor, ()), name)
        return Layout(
            system.name,
            "observer",
            tuple(shown),
            tuple(zip(system.table.names, system.table.units, strict=True)),
            sensors,
            () if picture is None else picture.segments,
            "z" if picture is None else picture.up,
            picture is not None and picture.moving,
            None if picture is None else picture.trail,
            (f"filter: {self._prepared.setup.method.name}", *self._notes),
        )


def prepared_observer(machine: GivenMachine, setup: ObserverSetup, wanted: Sequence[Virtual]) -> PreparedObserver:
    """An observer made ready without a study file."""
    return PreparedObserver(machine, setup, setup.system(machine)[0], tuple(wanted))


ACTING = ("speed", "steer", "ax")
FILTER_WORDS = {"ekf": "extended Kalman filter", "ukf": "unscented Kalman filter"}
WHEEL_POINTS, WHEEL_RADIUS = 12, 0.32  # of a ring, m


class CarTracker:
    """Runs the lateral observer of a car; its place is that of speed, yaw rate and sideslip added up, for the picture alone."""

    def __init__(
        self,
        observed: ObservedCar,
        virtual: Sequence[str],
        method: Filter,
        notes: tuple[str, ...] = (),
        frozen_after: FrozenAfter = "auto",
    ) -> None:
        self._method = replace(method, late="drop")
        self._car, self._system = observed.machine, observed
        self._frozen_after: FrozenAfter = frozen_after
        car, system = self._car, self._system
        self._quantities = CarQuantities(system, tuple(virtual))
        self._off: set[str] = set()
        self._body, lines = body_of(car.parameters["front"], car.parameters["rear"], car.parameters["track"])
        wheels = [len(self._body) + WHEEL_POINTS * k for k in range(4)]
        lines += [(w + k, w + (k + 1) % WHEEL_POINTS) for w in wheels for k in range(WHEEL_POINTS)]
        shown = [Shown(n, u, "states") for n, u in zip(system.states, car_state_units(system), strict=True)]
        shown += [Shown(n, u, "virtual sensors") for n, u in zip(self._quantities.names, self._quantities.units)]
        units = dict(zip(system.table.names, system.table.units, strict=True))
        self.layout = Layout(
            car.name,
            "observer",
            tuple(shown),
            tuple((n, units[n]) for n in system.outputs),
            {n: (n,) for n in system.outputs},
            tuple(lines),
            follow=True,
            trail=0,
            notes=(
                f"{FILTER_WORDS[method.word]} of a single-track model; the way is speed and yaw rate added up",
                *notes,
            ),
        )
        self.restart()

    def restart(self) -> None:
        car = self._system
        self._stream = guarded_stream(self._method, lambda frozen: frozen_in(car, frozen), car.drifts, car.start)
        self._inflation = Inflation()
        self._repeats = repeat_check(car.table, self._frozen_after)
        self._check, self._before, self._last = StampCheck(), None, None
        self._way = np.zeros(3)  # x, y, heading

    def switch(self, sensor: str, on: bool) -> None:
        self._off = self._off - {sensor} if on else self._off | {sensor}

    def take(self, sample: Sample) -> Tracked:
        """The row of the sample before this one, which is complete now."""
        refused = refused_stamp(self._check, sample.t, self.restart, ", and so does the observer.")
        if refused is not None:
            return refused
        acting = np.array([sample.inputs.get(n, 0.0 if n == "ax" else nan) for n in ACTING])
        if not np.isfinite(acting).all():
            if self._last is None:
                return Tracked(alarms=(Trouble("inputs", f"at {sample.t:.6g} s speed or steering is missing."),))
            acting = np.where(np.isfinite(acting), acting, self._last)
        before, self._before, self._last = self._before, (sample, acting), acting
        if before is None:
            return Tracked()
        return self._step(*before, acting)

    def points(self, pose: Array) -> Array | None:
        """The car at (x, y, heading, steering)."""
        x, y, heading, steer = pose.tolist()
        parts, given = [self._body], self._car.parameters
        for front in (True, False):
            for side in (1.0, -1.0):
                at = np.array([given["front"] if front else -given["rear"], side * given["track"] / 2.0])
                parts.append(standing_wheel(at, steer if front else 0.0, WHEEL_POINTS))
        c, s = np.cos(heading), np.sin(heading)
        return np.concatenate(parts) @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T + np.array([x, y, 0.0])

    def _step(self, sample: Sample, acting: Array, after: Array) -> Tracked:
        names, slow = self._system.outputs, acting[0] < SLOWEST_M_S
        values = np.array([sample.values.get(n, nan) for n in names])
        codes = np.zeros(len(names), dtype=np.int8)
        for j, n in enumerate(names):
            if n in self._off or slow or not isfinite(values[j]):
                codes[j] = Status.MISSING
        codes = self._repeats.flags(values, codes, sample.t)
        inputs = np.concatenate([acting, 0.5 * (acting + after)])
        dt = 0.0 if self._stream.belief.t is None else sample.t - self._stream.belief.t
        try:
            done = self._stream.step(sample.t, values, inputs, codes)
        except VeridynError as error:
            return Tracked(alarms=(Trouble("refused", f"{sample.t:.6g} s: {str(error).splitlines()[0]}"),))
        x, P, c = done.belief.x, done.belief.P, done.correction
        if not np.isfinite(x).all():
            self.restart()
            return Tracked(alarms=(Trouble("diverged", f"the estimate is no longer finite at {sample.t:.6g} s."),))
        nis, dof = (nan, 0) if c is None else (c.nis, c.dof)
        factor = self._inflation(nis if dof else 0.0, dof, dt)
        read, deviation = self._quantities.at(x, P, inputs)
        speed, turned = float(acting[0]), self._way[2]
        self._way += dt * np.array(
            [speed * np.cos(turned) - x[0] * np.sin(turned), speed * np.sin(turned) + x[0] * np.cos(turned), x[1]]
        )
        row = Row(
            sample.t,
            [*x.tolist(), *read.tolist()],
            [*np.sqrt(np.diag(P)).tolist(), *(factor * deviation).tolist()],
            sample.arrived,
            [nan] * len(names) if c is None else c.innovations,
            [nan] * len(names) if c is None else np.sqrt(np.maximum(c.variances, 0.0)),
            done.codes.tolist(),
            nis / dof if dof else nan,
        )
        return Tracked(row, np.array([*self._way, acting[1] / self._car.parameters["steering_ratio"]]))


def drive_samples(log: Measurements) -> list[Sample]:
    """The readings and inputs of a drive, sample by sample."""
    found = []
    for t, values, codes, acting in zip(log.t.tolist(), log.values, log.flags, log.inputs, strict=True):
        read = {n: float(v) for n, v, code in zip(log.names, values, codes) if code != Status.MISSING}
        found.append(Sample(t, read, 0.0, dict(zip(ACTING, acting[:3].tolist(), strict=True))))
    return found


def car_session(
    loaded: Loaded[Any],
    pace: float,
    source: Callable[[SampleColumns], SampleSource] | None,
    token: str,
    progress: Progress,
) -> Session:
    """The session of a study of a car: tyres are learned from its training span first, then the drive is replayed or arrives."""
    study: CarObserveFile = loaded.study
    car, method, how = study_car(loaded), study_method(loaded), study_filter(loaded)
    if isinstance(how, Smoother):
        what, hint = "a smoother needs the whole log, and here samples come one by one.", "Use filter: {name: ekf}."
        raise loaded.error_at(("filter", "name"), what, "ekf or ukf", "smoother", hint)
    whole, noise = study_drive(replace_span(loaded), car), method.noise
    if study.training is not None:
        fitted = fit_car(car, method, whole.between(*study.training), progress)
        car, noise = fitted.car, fitted.noise
    drive = whole.between(study.log.start, np.inf if study.log.end is None else study.log.end)
    log = lateral_measurements(drive, car)
    notes: tuple[str, ...] = ()
    if study.training is not None:
        notes = (f"tyres learned from {study.training[0]:g} to {study.training[1]:g} s of the log",)
    observed = observed_car(car, ObserveSettings(process_noise=noise, parameters=study.estimate), log)
    tracker = CarTracker(observed, study.virtual, how, notes, study.filter.frozen_after)
    if source is not None:
        return Session(tracker, source(columns_of(loaded, study.log, ACTING, token)))
    own = Pace(pace)
    return Session(tracker, Replay(str(study.log.file or "the drive"), drive_samples(log), own), pace=own)


def body_of(front: float, rear: float, track: float) -> tuple[Array, list[tuple[int, int]]]:
    """A car about its centre of mass: points (k, 3) in m, the first on the ground below it, and the lines between them."""
    half, low, high, roof = track / 2.0 + 0.05, 0.2, 0.7, 1.2
    ends = ((-rear - 0.7, half), (front + 0.7, half), (front + 0.7, -half), (-rear - 0.7, -half))
    points = [(0.0, 0.0, 0.0), *((x, y, z) for z in (low, high) for x, y in ends)]
    cabin = (
        (-0.9 * rear, 0.75 * half),
        (0.35 * front, 0.75 * half),
        (0.35 * front, -0.75 * half),
        (-0.9 * rear, -0.75 * half),
    )
    points += [(x, y, roof) for x, y in cabin] + [(x * 1.15 + 0.15, y * 1.2, high) for x, y in cabin]
    ring = [(a, (a + 1) % 4) for a in range(4)]
    lines = [(1 + a, 1 + b) for a, b in ring] + [(5 + a, 5 + b) for a, b in ring] + [(1 + a, 5 + a) for a in range(4)]
    lines += [(9 + a, 9 + b) for a, b in ring] + [(9 + a, 13 + a) for a in range(4)]
    return np.array(points), lines


def standing_wheel(at: Array, steer: float, points: int) -> Array:
    """A ring (points, 3) on the ground below `at` (2,), turned by `steer` (rad) about the vertical."""
    turn = 2.0 * np.pi * np.arange(points) / points
    along, up = WHEEL_RADIUS * np.cos(turn), WHEEL_RADIUS * (1.0 + np.sin(turn))
    return np.column_stack([at[0] + along * np.cos(steer), at[1] + along * np.sin(steer), up])
