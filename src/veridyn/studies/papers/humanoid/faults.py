"""A laboratory with one fault at a time, and whether it is found: plate shifted, swapped or late, markers lost, an encoder off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.identify.encoders import encoder_offsets
from veridyn.identify.laboratory import diagnose
from veridyn.machines.humanoid import FEET, SOLE
from veridyn.machines.humanoid_log import LOWPASS, SIGMA, Faulty, read, recorded
from veridyn.machines.humanoid_walk import SOLE_AXES, Performed
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.transforms import Placement
from veridyn.studies.result import collected_warnings

FAULTS = {
    "nothing": Faulty(),
    "plate origin off by (20, −10, 0) mm": Faulty(shift=(0.02, -0.01, 0.0)),
    "plate axes x and y swapped": Faulty(axes=((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))),
    "plate 20 ms late": Faulty(late=0.020),
    "encoder of left_ankle +50 mrad": Faulty(encoder={"left_ankle": 0.05}),
    "markers lost for 0.5 s": Faulty(lost=(1.2, 1.7)),
}


@dataclass(frozen=True)
class FaultTrial:
    """What was built in, and what was found by base rows, by the soles and by the markers, in words."""

    fault: str
    found: tuple[str, ...]


def laboratory(
    model: Machine, runs: Mapping[str, Performed], rng: np.random.Generator, progress: Progress = silent
) -> tuple[FaultTrial, ...]:
    """Each fault built into recordings of walking and bending, and looked for in all ways."""
    out = []
    for k, (name, faulty) in enumerate(FAULTS.items()):
        progress("faulty laboratories", float(k), float(len(FAULTS)))
        out.append(FaultTrial(name, found(model, runs, rng, faulty)))
    progress("faulty laboratories", float(len(FAULTS)), float(len(FAULTS)))
    return tuple(out)


def found(model: Machine, runs: Mapping[str, Performed], rng: np.random.Generator, faulty: Faulty) -> tuple[str, ...]:
    """What the checks say of one laboratory: of base rows on walking, of soles on bending, of markers on both."""
    warned: list[str] = []
    with collected_warnings(warned):
        walked, bent = (read(model, recorded(model, runs[name], rng, faulty)) for name in ("4 steps", "bend"))
    said = [text.replace("\n", " ").split(" The pose there")[0] for text in warned if "markers" in text]
    usable = (
        walked.markers.valid.all()
    )  # with markers lost, the pose in between is made up: nothing is concluded from it
    if usable:
        diagnosis = diagnose(model, [walked.trial], SIGMA, low=Butterworth(LOWPASS))
        said += [s.text for s in diagnosis.faults]
        soles = {foot: Placement(SOLE_AXES, (SOLE, 0.0, 0.0)) for foot in FEET}
        offsets = encoder_offsets(model, [(bent.trial.motion, bent.trial.pose)], soles)
        said += offsets.summary().split("\n")[:-1] if offsets.faulty else []
    return tuple(said)
