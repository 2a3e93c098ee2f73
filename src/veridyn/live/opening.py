"""From a study file, or the name of a machine that comes with veridyn, to a session that is ready to run.

What is measured of machines that come with veridyn is simulated; their observers are real. The papers are imported by the shows of their
car and buggy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.files.access import shipped
from veridyn.files.log.load import load_log
from veridyn.live.arrivals import Datagrams, GrowingFile, Messages, SampleColumns, columns_of
from veridyn.live.machine import (
    DRAW_ON,
    CarTracker,
    MachineTracker,
    car_session,
    drive_samples,
    picture_of,
    prepared_observer,
)
from veridyn.live.session import Pace, Replay, Session, log_samples
from veridyn.live.tracker import LiveTracker, Sample, SampleSource
from veridyn.machines import crane
from veridyn.machines.arm import FRICTION_SPEED, arm, exciting, perturb_inertias, tracking
from veridyn.mechanics.system.integrate import Inputs
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.car.observation import observed_car
from veridyn.observe.car.system import lateral_measurements
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observation import Virtual
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.progress import Progress, silent
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.simulator import simulate
from veridyn.studies.config.observe import CarObserveFile, ObserveFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.machine import existing_file
from veridyn.studies.run.observe_log import observed_log
from veridyn.studies.run.observer import observer_of


@dataclass(frozen=True)
class Arriving:
    """Where samples arrive, if they do: a UDP port, a WebSocket port, or a file that grows; a log is replayed without any."""

    udp: int | None = None
    websocket: int | None = None
    follow: Path | None = None
    host: str = "127.0.0.1"
    token: str = ""

    @property
    def wanted(self) -> bool:
        return self.udp is not None or self.websocket is not None or self.follow is not None

    def source(self, columns: SampleColumns) -> SampleSource:
        """The source; a port that is taken is named."""
        if self.udp is not None:
            return Datagrams(columns, self.udp, self.host)
        if self.websocket is not None:
            return Messages(columns, self.websocket, self.host)
        assert self.follow is not None
        return GrowingFile(columns, self.follow)


def open_session(
    study: str,
    *,
    pace: float = 1.0,
    arriving: Arriving | None = None,
    out: Path | None = None,
    variables: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Session:
    """A session of a study file of kind observe or identify, or of a machine of `SHOWS`; its log is read and its filter made ready."""
    come = arriving or Arriving()
    if study in SHOWS and not Path(study).exists():
        if come.wanted:
            hint = "Give a study file, which says what the columns of the samples are."
            raise DataError(f"'{study}' brings its own samples.", where="live", hint=hint)
        tracker, samples, name = SHOWS[study](progress)
        own = Pace(pace)
        return Session(tracker, Replay(name, samples, own, repeat=True), pace=own)
    if not Path(study).exists() and Path(study).suffix == "":
        hint = did_you_mean(study, list(SHOWS))
        raise DataError(
            f"there is no study file '{study}'.", where="live", expected=f"a file, or {', '.join(SHOWS)}", hint=hint
        )
    loaded = load_study(study, None, variables)
    folder = Path(study).parent / loaded.study.out if out is None else out
    if isinstance(loaded.study, ObserveFile):
        return _observer(loaded, pace, come, progress)
    if isinstance(loaded.study, CarObserveFile):
        return car_session(loaded, pace, come.source if come.wanted else None, come.token, progress)
    if loaded.study.kind == "identify" and not loaded.study.of_a_drive:
        from veridyn.live.identification import identification_session

        return identification_session(loaded, pace, come.source if come.wanted else None, come.token, folder, progress)
    raise loaded.error_at(
        ("kind",), "nothing of this kind can be followed live.", "observe or identify", loaded.study.kind
    )


def _observer(loaded: Loaded[Any], pace: float, come: Arriving, progress: Progress) -> Session:
    """An observer of a machine, from its log or from what arrives; noise that is not given is chosen from the log either way."""
    study: ObserveFile = loaded.study
    prepared, samples, name = observer_of(loaded), None, ""
    if not come.wanted or study.process_noise.tuned or study.start == "readings":
        file = existing_file(loaded, study.log.file, ("log", "file"))
        log, _ = observed_log(loaded, prepared.system, file)
        prepared = replace(prepared, setup=prepared.along(study, log, progress).noise[0])
        samples, name = log_samples(prepared.system, log), file.name
    tracker = MachineTracker(prepared)
    if not come.wanted:
        own = Pace(pace)
        return Session(tracker, Replay(name, samples or [], own), pace=own)
    if study.log.pulses or study.log.geodetic:
        which = "pulses" if study.log.pulses else "geodetic"
        raise loaded.error_at(
            ("log", which), "samples that arrive are taken as they are.", "columns in SI or their units"
        )
    return Session(tracker, come.source(columns_of(loaded, study.log, prepared.system.inputs, come.token)))


Show = Callable[[Progress], tuple[LiveTracker, Sequence[Sample], str]]
ARM_S = 15.0
CRANE_UNITS = {"time": "s", "travel": "mm", "tilt": "deg"}  # of the shipped log's columns
CRANE_SETTINGS = ObserveSettings(
    process_noise=ProcessNoise(force=400.0, start=0.05, start_rate=0.05, start_force=20.0),
    independents=("x", "swing"),
    unknown=("motor",),
    model_error="off",
)
ARM_RATE = 100.0  # Hz, of the samples that are used
PUSHED_S = (6.0, 9.0)  # when somebody pushes the arm
PUSH_N = 30.0  # along x of its hand
BUGGY_S = 60.0


def crane_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A crane whose motor pushes with a force that walks at random and that nobody measures; rope and load are virtual sensors."""
    progress("making the observer ready", 0.0, None)
    file = shipped("veridyn:crane.csv")
    wanted = (
        Virtual("load", "position", "L"),
        Virtual("load_speed", "velocity", "L"),
        Virtual("rope", "reaction", ("rope", "L")),
    )
    prepared = prepared_observer(crane(), ObserverSetup(EKF(gate=0.9999), CRANE_SETTINGS), wanted)
    log = load_log(file, {"time": "time", "travel": "trolley", "tilt": "angle"}, CRANE_UNITS, "time")
    notes = ("the readings are simulated; the force of the motor is estimated",)
    return MachineTracker(prepared, notes=notes), log_samples(prepared.system, log), "crane.csv"


def arm_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A six-joint arm under its controller, whose model is up to 20 % wrong; from 6 to 9 s somebody pushes its hand.

    The observer has encoders and motor torques; torques that its model does not explain are estimated at every joint.
    """
    rng, truth = np.random.default_rng(DRAW_ON), arm()
    encoders = [Sensor(f"encoder_{c}", "coordinate", c, 2e-5) for c in truth.coordinates]
    truth = replace(truth, sensors=tuple(encoders))
    hand = truth.body_names[-1]

    def pushed(t: float, q: Array, qd: Array) -> dict[str, Array]:
        on = PUSHED_S[0] <= t < PUSHED_S[1]
        return {hand: np.array([PUSH_N if on else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])}

    how = tracking(exciting(rng, 4), perturb_inertias(truth, rng), ARM_S)
    log = simulate(
        truth,
        replace(how, rate=ARM_RATE, inputs=Inputs(wrenches=pushed)),
        rng=rng,
        imperfections={"force.*": Imperfection()},
        progress=progress,
    )
    motors = tuple(f"force.{c}" for c in truth.coordinates)
    noise = ProcessNoise(force=100.0, start=1e-3, start_rate=1e-3, start_force=2.0)
    settings = ObserveSettings(
        process_noise=noise,
        start=first_pose(truth, log),
        inputs=motors,
        step=1.0 / ARM_RATE,
        friction_speed=FRICTION_SPEED,
    )
    wanted = (Virtual("hand", "position", Marker(hand, (0.0, 0.0, 0.0))),)
    prepared = prepared_observer(truth, ObserverSetup(EKF(), settings), wanted)
    notes = (
        f"simulated; a push of {PUSH_N:g} N at the hand from {PUSHED_S[0]:g} to {PUSHED_S[1]:g} s is not measured",
    )
    return MachineTracker(prepared, notes=notes), log_samples(prepared.system, log), "a simulated arm"


def first_pose(machine: Machine, log: Experiment) -> dict[str, float]:
    """The first reading of each encoder, by coordinate."""
    return {str(s.on): float(log[s.name].values[0]) for s in machine.sensors}


def buggy_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """The buggy on a circle, observed by the errorEKF of its thesis; its receiver can be switched off, and dead reckoning goes on."""
    from veridyn.papers.buggy.drive import BuggyDrive, driven
    from veridyn.papers.buggy.machine import buggy
    from veridyn.papers.buggy.trials import CRUISE, EASED, FULL, RACK

    model = buggy(rolling_resistance=0.015)
    truth = driven(
        model,
        BuggyDrive(duration=BUGGY_S, rack=RACK),
        torque=lambda t: FULL if t < EASED else CRUISE,
        progress=progress,
    )
    log = truth.log(np.random.default_rng(DRAW_ON), model.sensors)
    return *observed_buggy(model, log), "a simulated drive"


def observed_buggy(model: Machine, log: Experiment) -> tuple[MachineTracker, list[Sample]]:
    """The errorEKF of the buggy beside a drive, and the readings of the drive as they come in."""
    from veridyn.papers.buggy.observers import INPUTS, REFRESH, error_ekf, standing_start
    from veridyn.papers.buggy.page_sections import buggy_layer

    how = error_ekf()
    machine, log = how.prepared(model, log, model.sensors)
    setup = how.setup(standing_start(model), INPUTS)
    prepared = prepared_observer(machine, setup, ())
    x = prepared.system.belief(*setup.system(machine)[1:]).x
    picture = picture_of(lambda q: buggy_layer(model, q, ""), prepared.system.split(x)[0], moving=True)
    notes = (f"errorEKF of paper 003 at 500 Hz, derivatives every {REFRESH} steps; readings are simulated",)
    return MachineTracker(prepared, picture, notes), log_samples(prepared.system, log)


def car_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A saloon, simulated in detail, in ever harder bends; a model of a few lines knows its masses and lengths, and learns its tyres.

    The observer has speed, steering wheel, yaw rate and lateral acceleration; sideslip and axle forces are virtual sensors.
    """
    from veridyn.papers.car.drive import car_drive, saloon
    from veridyn.papers.car.simulator.description import Vehicle

    drive_log, car = car_drive(Vehicle(), np.random.default_rng(DRAW_ON)), saloon(Vehicle())
    progress("making the observer ready", 0.0, None)
    log = lateral_measurements(drive_log, car)
    observed = observed_car(car, ObserveSettings(parameters=("front_stiffness", "rear_stiffness")), log)
    notes = ("readings are simulated; cornering stiffnesses start 30 % uncertain and are learned on the way",)
    tracker = CarTracker(observed, ("sideslip", "front_force", "rear_force"), EKF(), notes)
    return tracker, drive_samples(log), "a simulated drive"


SHOWS: Mapping[str, Show] = MappingProxyType(
    {"crane": crane_show, "arm": arm_show, "car": car_show, "buggy": buggy_show}
)
