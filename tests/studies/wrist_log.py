"""The log of the example examples/studies/wrist.yaml: weighed by Pinocchio, rubbed by hand, seen from motors, measured with noise.

Written by ``python -m studies.wrist_log`` in this folder's parent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strangers.closed_logs import sines
from strangers.pinocchio_oracle import PinModel
from veridyn.files.machine.load import load_model
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre

Array = NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE, MODEL, LOG = (FOLDER / name for name in ("wrist.yaml", "wrist_model.yaml", "wrist.txt"))
PREAMBLE = ["Drive recorder 2, channel group WRIST", "sampling 5 ms, no time stamps", ""]
RATE, SECONDS, SEED = 200.0, 8.0, 5
ANGLE, TORQUE = 2e-3, 1e-3  # rad, N*m at a motor: noise of one sample
INERTIAS = {
    "forearm": (5.0, (0.01, 0.0, 0.18), (0.06, 0.06, 0.012)),
    "hand": (2.2, (0.03, 0.04, 0.01), (0.008, 0.006, 0.007)),
    "tool": (1.6, (0.04, 0.01, 0.14), (0.012, 0.011, 0.003)),
}
FRICTION = {"h4": 1.1, "fs4": 2.4, "h5": 0.8, "fs5": 1.2, "h6": 0.4, "fs6": 0.5, "fsm6": 0.9, "off4": -0.3}
NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")


def truth() -> Machine:
    """The machine that was simulated."""
    machine, values = load_model(MODEL), dict(FRICTION)
    for body in machine.links:
        mass, centre, about = INERTIAS[body.name]
        values |= {body.parameter(s): x for s, x in zip(NAMES, from_centre(mass, centre, np.diag(about)), strict=True)}
    return machine.with_parameters(machine.parameters.replacing(values))


def motors(seconds: float = SECONDS) -> tuple[Array, Array]:
    """Exact angles and torques of the motors (N, 3): q_m = T⁻¹ q and, since Γ_mᵀ q̇_m = Γᵀ q̇, Γ_m = Tᵀ Γ."""
    t = np.arange(round(seconds * RATE)) / RATE
    rng = np.random.default_rng(SEED)
    q, qd, qdd = sines(
        t, np.zeros(3), np.array([1.4, 1.2, 1.8]), 1.0 / SECONDS, 12, rng
    )  # what is held out is no repetition
    f = FRICTION
    gamma = PinModel(truth()).inverse_dynamics(Motion(t, q, qd, qdd))
    gamma = gamma + qd * [f["h4"], f["h5"], f["h6"]] + np.sign(qd) * [f["fs4"], f["fs5"], f["fs6"]]
    gamma[:, 1:] += f["fsm6"] * np.sign(qd[:, 1] + qd[:, 2])[:, None]
    gamma[:, 0] += f["off4"]
    T = np.array([[1 / 60, 0, 0], [-1 / 60, 1 / 48, 0], [0, -1 / 48, 1 / 40]])
    return np.linalg.solve(T, q.T).T, gamma @ T


def table() -> str:
    """The log as text."""
    angles, torques = motors()
    rng = np.random.default_rng(100 + SEED)
    angles = angles + ANGLE * rng.normal(size=angles.shape)
    torques = torques + TORQUE * rng.normal(size=torques.shape)
    head = [f"motor_{what}_{k}" for what in ("angle", "torque") for k in (1, 2, 3)]
    rows = [
        "".join(f"{x:11.3f}" for x in a) + "".join(f"{x:10.4f}" for x in b)
        for a, b in zip(angles, torques, strict=True)
    ]
    return "\n".join([*PREAMBLE, "  ".join(head), *rows]) + "\n"


if __name__ == "__main__":
    LOG.write_text(table(), encoding="utf-8")
