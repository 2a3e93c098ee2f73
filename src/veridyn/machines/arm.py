"""A six-joint arm of the size of a Stäubli TX40: the machine of ``veridyn demo arm``.

Geometry as published, dynamics chosen (see arm.yaml). Everything here is simulated: a prior model that is up to 20 %
wrong drives the true arm along a reference, encoders and torque sensors record it, and what they record is all that
the identification is shown. Units: rad, N*m, s.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from veridyn.files.native import parse_model
from veridyn.identify.observation import Sampling
from veridyn.mechanics.integrate import Method
from veridyn.mechanics.regressor import regressor
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.simulate.imperfection import Sensor, Sensors
from veridyn.simulate.manoeuvre import Tracking
from veridyn.simulate.simulator import simulate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArmDemo:
    """One demonstration: what is true, what is believed, and what was recorded.

    `truth` made the logs and is only for comparison. `model` is the same arm with priors that are not to be trusted, all
    parameters asked; it drives the feed-forward of the controller and is what an identification starts from. `training`
    and `validation` are logs of two different motions. `signals` and `sampling` are the settings that suit them: use
    ``motion(model, log, signals)``, then ``identify(model, …, rows, sampling=sampling)`` and ``validate`` alike.
    """

    truth: Tree
    model: Tree
    training: Experiment
    validation: Experiment
    signals: Signals
    sampling: Sampling
    rows: str
    quick: bool


def arm() -> Tree:
    """The arm of arm.yaml: what is true in the demonstration."""
    text = resources.files("veridyn.machines").joinpath("arm.yaml").read_text(encoding="utf-8")
    return parse_model(text, source="arm.yaml")
