"""What measures a simulated machine: the sensors of a study, or perfect ones, and the log they record."""

from __future__ import annotations

import numpy as np

from veridyn.errors import DataError, did_you_mean
from veridyn.files.yaml_plain import Place
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.studies.config.simulate import SimulateFile
from veridyn.studies.config.study import Loaded

# What perfect sensors read besides positions, by pattern of channels.
READ = ("force.*", "base.omega.*", "base.acceleration.*", "base.velocity.*", "wrench.*", "signal.*")


def named_sensors(loaded: Loaded[SimulateFile]) -> dict[str, Imperfection]:
    """The sensors that a study names, by pattern of channels."""
    return {pattern: Imperfection(**s.model_dump()) for pattern, s in loaded.study.sensors.items()}


def perfect_sensors(machine: Machine) -> dict[str, Imperfection]:
    """Positions and forces as they are; of a machine with loops, positions of those joints alone that its log would have."""
    positions = [f"q.{machine.coordinates[k]}" for k in machine.independent] if machine.closed else ["q.*"]
    wanted = [*positions, *READ]
    return {pattern: Imperfection() for pattern in wanted}


def read_log(
    loaded: Loaded[SimulateFile], sensors: dict[str, Imperfection], truth: Experiment, rng: np.random.Generator
) -> Experiment:
    """The log; a pattern of the study that fits nothing is refused with its line, one of the default's is left out."""
    own = loaded.study.sensors
    faults, kept = [], {}
    for pattern, sensor in sensors.items():
        fits = any(Imperfections({pattern: sensor}).of(name) for name in truth)
        if fits:
            kept[pattern] = sensor
        elif pattern in own:
            at: Place = ("sensors", pattern)
            hint = did_you_mean(pattern, truth.names)
            faults.append(loaded.fault(at, f"'{pattern}' is no channel of this simulation.", hint=hint))
    if faults:
        raise loaded.error(faults)
    try:
        return Imperfections(kept).read(truth, rng)
    except DataError as error:
        found = [loaded.fault(("sensors",), f"{f.where}: {f.what}", f.expected, f.found, f.hint) for f in error.faults]
        raise loaded.error(found) from error
