"""The logs of the example examples/studies/fleet.yaml: eight arms of one model, torques by Pinocchio, friction by hand, noise.

Written by ``python -m studies.fleet_log`` in this folder's parent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strangers.pinocchio_oracle import PinModel
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE = FOLDER / "fleet.yaml"
NAMES = tuple(f"unit-{k}" for k in range(1, 9))
WORN, WEAR = "unit-6", 2.2  # its shoulder has so many times the viscous friction
COULOMB, VISCOUS = np.array([1.5, 2.0]), np.array([2.0, 3.0])
BETWEEN, FRICTION_BETWEEN = 0.02, 0.06  # how much masses and friction differ between machines, as a share
ENCODER, TORQUE = 1e-5, 0.15  # rad, N*m: noise of one sample
RATE, SECONDS, SEED = 50.0, 12.0, 41


def arm(mass: float) -> Machine:
    """The arm of the model file with its true inertia."""
    bodies = [Body("column"), Body("upper", "column", placement=MDH(alpha=np.pi / 2))]
    inertia = {
        "column": from_centre(8.0, (0.0, 0.0, -0.1), np.diag([0.07, 0.08, 0.05])),
        "upper": from_centre(mass, (0.25, 0.02, 0.05), np.diag([0.03, 0.20, 0.19])),
    }
    return Machine.of_bodies(bodies, name="arm", inertia=inertia)


def drawn(number: int) -> tuple[Machine, Array, Array]:
    """The true machine: its inertia, dry and viscous friction (2,) each."""
    rng = np.random.default_rng(SEED + number)
    mass = 6.0 * (1.0 + BETWEEN * rng.normal())
    dry, viscous = (x * (1.0 + FRICTION_BETWEEN * rng.normal(size=2)) for x in (COULOMB, VISCOUS))
    if NAMES[number] == WORN:
        viscous[1] *= WEAR
    return arm(mass), dry, viscous


def table(number: int) -> str:
    """The log of one machine as text: time, positions, torques."""
    machine, dry, viscous = drawn(number)
    rng = np.random.default_rng(1000 * SEED + number)
    limits = JointLimits(np.full(2, -2.5), np.full(2, 2.5), np.full(2, 3.0), np.full(2, 12.0))
    path = FourierTrajectory.random(rng, limits, harmonics=5, frequency=0.1, fill=0.9)
    t = np.arange(round(RATE * SECONDS)) / RATE
    m = Motion(t, *path.at(t))
    torque = PinModel(machine).inverse_dynamics(m) + dry * np.sign(m.qd) + viscous * m.qd
    q, torque = m.q + ENCODER * rng.normal(size=m.q.shape), torque + TORQUE * rng.normal(size=m.q.shape)
    rows = [
        f"{at:.2f}," + ",".join(f"{x:.5f}" for x in a) + "," + ",".join(f"{x:.2f}" for x in b)
        for at, a, b in zip(t, q, torque, strict=True)
    ]
    return "\n".join(["t [s],q1 [rad],q2 [rad],tau1 [N*m],tau2 [N*m]", *rows]) + "\n"


if __name__ == "__main__":
    (FOLDER / "fleet").mkdir(exist_ok=True)
    for number, name in enumerate(NAMES):
        (FOLDER / "fleet" / f"{name}.csv").write_text(table(number), encoding="utf-8")
