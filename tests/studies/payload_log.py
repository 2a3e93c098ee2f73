"""The logs of the example examples/studies/payload.yaml: torques by Pinocchio, friction by hand, currents through drive gains, noise.

Written by ``python -m studies.payload_log`` in this folder's parent.
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
from veridyn.spatial.rotations import MDH, Placement

Array = NDArray[np.float64]

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE = FOLDER / "payload.yaml"
RIGHT = np.pi / 2
GAINS = np.array([11.0, 12.5, 9.0, 4.0])  # N*m/A
COULOMB, VISCOUS = np.array([3.0, 3.5, 1.5, 0.4]), np.array([4.0, 4.0, 1.2, 0.3])
FLANGE = 0.08  # m along z of the hand
KNOWN = from_centre(2.0, (0.08, 0.0, 0.10), np.diag([0.0018, 0.0018, 0.0016]))  # a steel disc off the last axis
MASS, CENTRE = 1.6, np.array([0.03, -0.02, 0.07])  # of the load that is weighed, in the flange's frame
INERTIA = np.array([[0.0060, 0.0004, 0.0], [0.0004, 0.0050, -0.0003], [0.0, -0.0003, 0.0040]])
RATE, SECONDS, SEED = 50.0, 20.0, 11
ENCODER, CURRENT = 2e-5, 0.03  # rad, A: noise of one sample
RUNS = {"payload_empty.csv": None, "payload_known.csv": KNOWN, "payload_loaded.csv": "load"}


def arm() -> Machine:
    """The arm of the model file with its true inertia; the load is added to the hand."""
    bodies = [
        Body("column"),
        Body("upper", "column", placement=MDH(alpha=RIGHT)),
        Body("forearm", "upper", placement=MDH(d=0.4)),
        Body("hand", "forearm", placement=MDH(alpha=-RIGHT, r=0.3)),
    ]
    inertia = {
        "column": from_centre(8.0, (0.02, 0.05, -0.1), np.diag([0.07, 0.08, 0.05])),
        "upper": from_centre(6.0, (0.2, 0.02, 0.05), np.diag([0.03, 0.10, 0.09])),
        "forearm": from_centre(2.5, (0.01, -0.12, 0.03), np.diag([0.02, 0.01, 0.018])),
        "hand": from_centre(0.6, (0.01, 0.02, 0.05), np.diag([0.0009, 0.0010, 0.0006])),
    }
    return Machine.of_bodies(bodies, name="arm", inertia=inertia)


def carried(inertia: Array) -> Machine:
    """The arm with ten more parameters on its hand."""
    machine = arm()
    p = machine.parameters
    own = [p.index(machine.links[3].parameter(s)) for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")]
    values = p.values.copy()
    values[own] += inertia
    return machine.with_parameters(values)


def load_on_hand() -> Array:
    """The load that is weighed, in the hand's frame."""
    return from_centre(MASS, CENTRE + np.array([0.0, 0.0, FLANGE]), INERTIA)


def flange() -> Placement:
    return Placement(position=(0.0, 0.0, FLANGE))


def motion(seed: int) -> Motion:
    """A Fourier series of five harmonics of 0.1 Hz in every joint."""
    limits = JointLimits(np.full(4, -2.5), np.full(4, 2.5), np.full(4, 3.0), np.full(4, 12.0))
    path = FourierTrajectory.random(np.random.default_rng(seed), limits, harmonics=5, frequency=0.1, fill=0.9)
    t = np.arange(round(RATE * SECONDS)) / RATE
    return Motion(t, *path.at(t))


def table(name: str, number: int) -> str:
    """One run as text: time, positions, currents."""
    load = RUNS[name]
    machine = arm() if load is None else carried(load_on_hand() if isinstance(load, str) else load)
    m, rng = motion(SEED + number), np.random.default_rng(100 * SEED + number)
    torque = PinModel(machine).inverse_dynamics(m) + COULOMB * np.sign(m.qd) + VISCOUS * m.qd
    q = m.q + ENCODER * rng.normal(size=m.q.shape)
    i = torque / GAINS + CURRENT * rng.normal(size=m.q.shape)
    head = "t [s]," + ",".join(f"q{k} [rad]" for k in range(1, 5)) + "," + ",".join(f"i{k} [A]" for k in range(1, 5))
    rows = [
        f"{t:.2f}," + ",".join(f"{x:.5f}" for x in a) + "," + ",".join(f"{x:.3f}" for x in b)
        for t, a, b in zip(m.t, q, i, strict=True)
    ]
    return "\n".join([head, *rows]) + "\n"


if __name__ == "__main__":
    for number, name in enumerate(RUNS):
        (FOLDER / name).write_text(table(name, number), encoding="utf-8")
