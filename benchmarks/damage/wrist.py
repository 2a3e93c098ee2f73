"""A six-axis arm with six gears and a coupled wrist, as Pinocchio has it, and model files of it that are wrong: a gear, or the coupling.

A file that has the sign of one gear wrong turns a column of T in q = T θ; one without the coupling has the diagonal of T alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.foreign.machines import LAWS, Joint, Subject
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine

Z, Y, DOWN = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)
GEARS = 6
WRIST = Subject(
    file=Path(__file__).resolve().parent / "wrist.yaml",
    joints=(
        Joint((0.0, 0.0, 0.32), Z, 0),
        Joint((0.0, 0.0, 0.0), Y, -1),
        Joint((0.225, 0.0, 0.0), Y, -1),
        Joint((0.0, 0.0, -0.225), DOWN, -2),
        Joint((0.0, 0.0, 0.0), Y, -1),
        Joint((0.0, 0.0, -0.065), DOWN, -2),
    ),
    names={law: tuple(f"{law}{k}" for k in range(1, GEARS + 1)) for law in LAWS},
    noise=np.array([0.006, 0.006, 0.004, 0.001, 0.001, 0.0008]),  # N*m at the motors, about 2 % of what each gives
    reach=np.array([1.5, 1.0, 1.2, 2.0, 1.5, 2.5]),
    combined=np.eye(GEARS) + np.outer(np.eye(GEARS)[5], np.eye(GEARS)[4]),
    ratios=np.array([60.0, 60.0, 50.0, 45.0, 45.0, 32.0]),
)


def gear_reversed(machine: Machine, motor: int) -> Machine:
    """The machine with the sign of one gear wrong."""
    T = _transmission(machine)
    signs = np.ones(len(T.motors))
    signs[motor] = -1.0
    return replace(machine, transmission=Transmission(T.motors, T.joints, T.matrix * signs))


def without_coupling(machine: Machine) -> Machine:
    """The machine whose motors are said to drive one joint each."""
    T = _transmission(machine)
    return replace(machine, transmission=Transmission(T.motors, T.joints, np.diag(np.diag(T.matrix))))


def coupling_reversed(machine: Machine) -> Machine:
    """The machine whose coupled motors are said to turn against the joint before theirs."""
    T = _transmission(machine)
    own = np.diag(np.diag(T.matrix))
    return replace(machine, transmission=Transmission(T.motors, T.joints, 2.0 * own - T.matrix))


def coupled_motors(machine: Machine) -> list[int]:
    """Motors that turn with more joints than one."""
    G = np.linalg.inv(_transmission(machine).matrix)
    return [k for k, row in enumerate(G) if np.count_nonzero(np.abs(row) > 1e-9 * np.abs(row).max()) > 1]


def _transmission(machine: Machine) -> Transmission:
    if machine.transmission is None:
        raise ValueError(f"'{machine.name}' has no gears")
    return machine.transmission
