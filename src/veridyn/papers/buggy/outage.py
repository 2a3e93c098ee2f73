"""Without GPS: a circle of a minute with the receiver silent for half of it, by vehicles that are none of them the one on the drawing.

Each run draws its vehicle: rolling resistance, the radius and stiffness of each tyre, and the mass of the chassis. Seeds of sensor noise
alone would prove nothing, since the error of dead reckoning is that of the model. The observer estimates what was drawn, starting from the
deviations that the draws have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.model import BASE_NAMES
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.process_noise import ProcessNoise
from veridyn.papers.buggy.drive import BuggyDrive
from veridyn.papers.buggy.log import driven
from veridyn.papers.buggy.machine import CORNERS, buggy
from veridyn.papers.buggy.observers import REFRESH, SUSPENSIONS, BuggyObserver, standing_start
from veridyn.papers.buggy.scores import Scored, scored
from veridyn.progress import Progress, silent, tracked

Array = NDArray[np.float64]
DURATION, SILENT = 60.0, (25.0, 55.0)  # s, of the circle, and when the receiver is silent
FULL, CRUISE, EASED = 100.0, 38.0, 20.0  # N*m on each rear wheel until EASED seconds, and after
RACK = -0.010  # m, to the left
RESISTANCE = (0.010, 0.020)
HALF_WIDTHS = {"UNLOADED_RADIUS": 0.005, "PKX1": 0.10, "PKY1": 0.10}  # of uniform draws, relative
CHASSIS_HALF_WIDTH = 0.02
STANDING_SIGMA = {"base.z": 3e-3, "base.roll": 3e-3, "base.pitch": 3e-3, **dict.fromkeys(SUSPENSIONS, 1e-2)}


@dataclass(frozen=True, eq=False)
class Outage:
    """One vehicle: errors and deviations of all states along the run, and when the receiver was `silent` (s)."""

    score: Scored
    silent: tuple[float, float] = SILENT

    def at_end(self, state: str) -> tuple[float, float]:
        """Error and deviation of a state when the receiver comes back."""
        k = int(np.searchsorted(self.score.t, self.silent[1])) - 1
        error, sigma = self.score.of(state)
        return float(error[k]), float(sigma[k])

    @property
    def inside(self) -> bool:
        """Whether x and y are within three deviations throughout the silence."""
        gone = (self.score.t >= self.silent[0]) & (self.score.t < self.silent[1])
        pairs = [self.score.of(name) for name in ("base.x", "base.y")]
        return all(bool((np.abs(error[gone]) <= 3.0 * sigma[gone]).all()) for error, sigma in pairs)


def torque_at(t: float) -> float:
    return FULL if t < EASED else CRUISE


def drawn_vehicle(rng: np.random.Generator) -> Machine:
    """A buggy as the workshop may have left it."""
    factors = {
        f"tyre_{c}.{key}": 1.0 + half * float(rng.uniform(-1.0, 1.0))
        for c in CORNERS
        for key, half in HALF_WIDTHS.items()
    }
    return buggy(
        rolling_resistance=float(rng.uniform(*RESISTANCE)),
        tyre_factors=factors,
        chassis_factor=1.0 + CHASSIS_HALF_WIDTH * float(rng.uniform(-1.0, 1.0)),
    )


def outage_observer(machine: Machine) -> BuggyObserver:
    """Exact derivatives; what differs from vehicle to vehicle is estimated with the deviations of the draws."""
    constants = {c.name: c.value for c in machine.constants}
    spread = {"QSY1": (RESISTANCE[1] - RESISTANCE[0]) / np.sqrt(12.0)}
    parameters: dict[str, tuple[float, ...]] = {}
    for c in CORNERS:
        parameters[f"tyre_{c}.QSY1"] = (float(spread["QSY1"]), 0.0, 0.0, 0.1)
        for key, half in HALF_WIDTHS.items():
            parameters[f"tyre_{c}.{key}"] = (abs(constants[f"tyre_{c}.{key}"]) * half / np.sqrt(3.0),)
    mass = float(machine.parameters.values[machine.parameters.index("M_chassis")])
    parameters["M_chassis"] = (mass * CHASSIS_HALF_WIDTH / np.sqrt(3.0),)
    start = {**dict.fromkeys(BASE_NAMES, 1e-4), **STANDING_SIGMA}
    noise = ProcessNoise(
        start={**dict.fromkeys((f"spin_{c}" for c in CORNERS), 1e-4), **start},
        start_rate=1e-4,
        acceleration=1e-6,
        start_element=1e-4,
    )
    return BuggyObserver(word="ekf", method=EKF(refresh=REFRESH), noise=noise, parameters=parameters)


def silenced(log: Experiment, gone: tuple[float, float] = SILENT) -> Experiment:
    """The log without any reading of the receiver between two times."""
    kept = []
    for name in log.names:
        c = log[name]
        if name.startswith("gps"):
            heard = (c.t < gone[0]) | (c.t >= gone[1])
            c = Channel(name, c.t[heard], c.values[heard], c.unit)
        kept.append(c)
    return log.replacing(*kept)


def outages(
    seeds: range, duration: float = DURATION, gone: tuple[float, float] = SILENT, progress: Progress = silent
) -> Iterator[Outage]:
    """One run for each seed."""
    model = buggy(rolling_resistance=float(np.mean(RESISTANCE)))
    observer, start = outage_observer(model), standing_start(model)
    how = BuggyDrive(duration=duration, rack=RACK)
    for seed in tracked(seeds, "driving without GPS", progress):
        rng = np.random.default_rng([seed, 60])
        truth = driven(drawn_vehicle(rng), how, torque=torque_at)
        log = silenced(truth.log(rng, model.sensors), gone)
        yield Outage(scored(observer.observe(model, log, start), truth), gone)
