"""A car as a tracker: sideslip, tyre forces, roll and loads with bands from a study of a car, and the car on its way.

What acts from one sample to the next is the mean of both, so a row is made when the next sample is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.identify.car.innovations import fit_car
from veridyn.live.arrivals import SampleColumns, columns_of
from veridyn.live.session import Pace, Replay, Session
from veridyn.live.tracker import Layout, Row, Sample, SampleSource, Shown, StampCheck, Tracked, Trouble, refused_stamp
from veridyn.observe.car.observation import ObservedCar, observed_car
from veridyn.observe.car.system import SLOWEST_M_S, CarQuantities, Inflation, lateral_measurements, state_units
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import Smoother
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.streaming.stream import guarded_stream
from veridyn.progress import Progress
from veridyn.studies.config.observe import CarObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.car import study_car, study_drive, study_filter, study_method
from veridyn.studies.run.car_observe import replace_span

ACTING = ("speed", "steer", "ax")
FILTER_WORDS = {"ekf": "extended Kalman filter", "ukf": "unscented Kalman filter"}
WHEEL_POINTS = 12


class CarTracker:
    """Runs the lateral observer of a car; its place is that of speed, yaw rate and sideslip added up, for the picture alone."""

    def __init__(
        self, observed: ObservedCar, virtual: Sequence[str], method: Filter, notes: tuple[str, ...] = ()
    ) -> None:
        self._method = replace(method, late="drop")
        self._observed, self._car, self._system = observed, observed.machine, observed.equations
        car, system = self._car, self._system
        self._quantities = CarQuantities(system, tuple(virtual))
        self._off: set[str] = set()
        self._body, lines = body_of(car.parameters["front"], car.parameters["rear"], car.parameters["track"])
        wheels = [len(self._body) + WHEEL_POINTS * k for k in range(4)]
        lines += [(w + k, w + (k + 1) % WHEEL_POINTS) for w in wheels for k in range(WHEEL_POINTS)]
        shown = [Shown(n, u, "states") for n, u in zip(system.states, state_units(system), strict=True)]
        shown += [Shown(n, u, "virtual sensors") for n, u in zip(self._quantities.names, self._quantities.units)]
        units = dict(zip(observed.table.names, observed.table.units, strict=True))
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
        observed = self._observed
        self._stream = guarded_stream(self._method, observed.with_frozen, observed.drifting, observed.start)
        self._inflation = Inflation()
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
    observed = observed_car(car, noise, log, study.estimate, drifts=car.parameters.drifts)
    tracker = CarTracker(observed, study.virtual, how, notes)
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


def standing_wheel(at: Array, steer: float, points: int, radius: float = 0.32) -> Array:
    """A ring (points, 3) on the ground below `at` (2,), turned by `steer` (rad) about the vertical."""
    turn = 2.0 * np.pi * np.arange(points) / points
    along, up = radius * np.cos(turn), radius * (1.0 + np.sin(turn))
    return np.column_stack([at[0] + along * np.cos(steer), at[1] + along * np.sin(steer), up])
