"""Machines that come with veridyn and run live without any file: what is measured of them is simulated, their observers are real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.files.access import shipped
from veridyn.files.log.load import load_log
from veridyn.live.machine import MachineTracker
from veridyn.live.session import log_samples
from veridyn.live.tracker import LiveTracker, Sample
from veridyn.machines.arm import FRICTION_SPEED, arm, exciting, perturb_inertias, tracking
from veridyn.machines.described import CRANE, crane
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.system.integrate import Inputs
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.virtual import Virtual
from veridyn.progress import Progress
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.simulator import simulate
from veridyn.studies.run.observer import PreparedObserver

Array = NDArray[np.float64]
Show = Callable[[Progress], tuple[LiveTracker, Sequence[Sample], str]]
ARM_S = 15.0
CRANE_UNITS = {"time": "s", "travel": "mm", "tilt": "deg"}  # of the shipped log's columns
ARM_RATE = 100.0  # Hz, of the samples that are used
PUSHED_S = (6.0, 9.0)  # when somebody pushes the arm
PUSH_N = 30.0  # along x of its hand
DRAW_ON = 5  # seed of what is simulated


def crane_show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
    """A crane whose motor pushes with a force that walks at random and that nobody measures; rope and load are virtual sensors."""
    progress("making the observer ready", 0.0, None)
    file = shipped("veridyn:crane.csv")
    wanted = (
        Virtual("load", "position", "L"),
        Virtual("load_speed", "velocity", "L"),
        Virtual("rope", "reaction", ("rope", "L")),
    )
    prepared = prepared_observer(crane(), CRANE.setup(EKF(gate=0.9999)), wanted)
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


def prepared_observer(machine: GivenMachine, setup: ObserverSetup, wanted: Sequence[Virtual]) -> PreparedObserver:
    """An observer made ready without a study file."""
    return PreparedObserver(machine, setup, setup.system(machine)[0], tuple(wanted))


def first_pose(machine: Machine, log: Experiment) -> dict[str, float]:
    """The first reading of each encoder, by coordinate."""
    return {str(s.on): float(log[s.name].values[0]) for s in machine.sensors}
