"""A seven-joint arm as Pinocchio has it: direct readings of joint torque, and more parameters than joints of simpler machines have."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.foreign.machines import LAWS, Joint, Subject

Z, Y, BACK, DOWN = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)
JOINTS = 7
SEVEN = Subject(
    file=Path(__file__).resolve().parent / "seven.yaml",
    joints=(
        Joint((0.0, 0.0, 0.333), Z, 0),
        Joint((0.0, 0.0, 0.0), Y, -1),
        Joint((0.0, 0.0, 0.316), Z, 0),
        Joint((0.0825, 0.0, 0.0), BACK, 1),
        Joint((-0.0825, 0.0, 0.384), Z, 0),
        Joint((0.0, 0.0, 0.0), BACK, 1),
        Joint((0.088, 0.0, 0.0), DOWN, 2),
    ),
    names={law: tuple(f"{law}_q{k}" for k in range(1, JOINTS + 1)) for law in LAWS},
    noise=np.array([0.4, 0.5, 0.3, 0.3, 0.1, 0.08, 0.06]),
    reach=np.array([1.5, 0.8, 1.5, 1.0, 1.5, 1.2, 2.0]),
    combined=np.eye(JOINTS),
)
