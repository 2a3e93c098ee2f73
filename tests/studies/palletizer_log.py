"""The log of the example examples/studies/palletizer.yaml: moved and weighed by Pinocchio, rubbed by hand, measured with noise.

Written by ``python -m studies.palletizer_log`` in this folder's parent.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from strangers.closed_logs import Stranger, sines
from veridyn.machines import palletizer
from veridyn.model.motion import Motion

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE, MODEL, LOG = (FOLDER / name for name in ("palletizer.yaml", "palletizer_model.yaml", "palletizer.csv"))
HEADER = "time [s],q1 [deg],q2 [deg],q4 [deg],tau1 [N*m],tau2 [N*m],tau4 [N*m]"
RATE, SECONDS, SEED = 100.0, 20.0, 7
ENCODER, TORQUE = 1e-3, 1.5  # deg, N*m: noise of one sample
CENTRE, REACH = np.array([0.0, -1.3, 2.9]), np.array([1.2, 0.4, 0.4])


@lru_cache
def true_motion(seconds: float = SECONDS) -> Motion:
    """All joints, and the exact forces of the drives, from the start of the log on."""
    machine = palletizer()
    t = np.arange(round(seconds * RATE)) / RATE
    drives = sines(t, CENTRE, REACH, 0.15, 6, np.random.default_rng(SEED))
    return Stranger(machine, {**machine.assembly.guess, **machine.assembly.hold}).motion(t, *drives)


def table() -> str:
    """The log as text."""
    m, rng = true_motion(), np.random.default_rng(100 + SEED)
    assert m.forces is not None
    own = [0, 1, 3]
    q = np.degrees(m.q[:, own]) + ENCODER * rng.normal(size=(len(m), 3))
    tau = m.forces[:, own] + TORQUE * rng.normal(size=(len(m), 3))
    rows = [
        f"{t:.2f}," + ",".join(f"{x:.4f}" for x in a) + "," + ",".join(f"{x:.2f}" for x in b)
        for t, a, b in zip(m.t, q, tau)
    ]
    return "\n".join([HEADER, *rows]) + "\n"


if __name__ == "__main__":
    LOG.write_text(table(), encoding="utf-8")
