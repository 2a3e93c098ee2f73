"""A log of actuators alone becomes a motion of all joints of a closed machine."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.machines.hexapod import LEGS, hexapod
from veridyn.machines.hexapod_experiment import circle, machine
from veridyn.machines.parallel import palletizer
from veridyn.mechanics.loops.closure import closed_motion
from veridyn.mechanics.tree.actuators import actuators
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.motion import Signals, motion


def test_from_a_log_to_the_pose() -> None:
    """Lengths of the legs on a circle, sampled: the platform's rates and accelerations come out as those of the circle."""
    tree = hexapod()
    t = np.arange(600) / 200.0
    pose, rate, acceleration = circle(0.5)(t)
    lengths = machine().lengths(pose)
    channels = {f"q.{leg}": Channel(f"q.{leg}", t, x, "m") for leg, x in zip(LEGS, lengths.T, strict=True)}
    channels |= {f"force.{leg}": Channel(f"force.{leg}", t, np.ones(600), "N") for leg in LEGS}
    driven = motion(
        actuators(tree), Experiment(channels, "circle"), Signals(trim=0.5, inspection="off")
    )  # its forces are constant
    m = closed_motion(tree, driven.t, driven.q, driven.qd, driven.qdd, forces=driven.forces)
    inside = slice(100, 500)
    assert np.abs(m.q[:, :6] - pose[inside]).max() < 1e-9
    assert np.abs(m.qd[:, :6] - rate[inside]).max() < 1e-4
    assert np.abs(m.qdd[:, :6] - acceleration[inside]).max() < 1e-3


def test_names_and_kinds() -> None:
    assert actuators(palletizer()).coordinates == ("q1", "q2", "q4")
    assert actuators(hexapod()).coordinate_kinds == ("sliding",) * 6


def test_a_missing_actuator_is_named() -> None:
    t = np.arange(50) / 100.0
    log = Experiment({f"q.{leg}": Channel(f"q.{leg}", t, np.ones(50), "m") for leg in LEGS[:3]}, "short")
    with pytest.raises(DataError, match="l4"):
        motion(actuators(hexapod()), log)
