"""The log of the example examples/studies/excavator.yaml: moved and weighed by Pinocchio, rubbed by hand, measured with noise.

Written by ``python -m studies.excavator_log`` in this folder's parent.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from strangers.closed_logs import Stranger, sines
from veridyn.files.machine.load import load_model
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
EXAMPLE, MODEL, LOG = (FOLDER / name for name in ("excavator.yaml", "excavator_model.yaml", "excavator.csv"))
DRIVES = ("swing", "s1", "s2", "s3")
HEADER = "time [s],swing [deg],boom cylinder [mm],stick cylinder [mm],bucket cylinder [mm],"
HEADER += "swing torque [kNm],boom force [kN],stick force [kN],bucket force [kN]"
RATE, SECONDS, SEED = 50.0, 30.0, 3
CENTRE, REACH = np.array([0.0, 1.28, 1.31, 1.33]), np.array([0.9, 0.16, 0.14, 0.12])
ENCODER = np.array([2e-3, 2e-2, 2e-2, 2e-2])  # deg, mm: noise of one sample
FORCE = np.array([0.02, 0.04, 0.015, 0.01])  # kN*m, kN: noise of one sample
INERTIAS = {  # body → mass, centre, inertia about the centre; kg, m, kg*m^2; those of the cylinders are in the model
    "house": (1200.0, (-0.3, 0.02, -0.2), (300.0, 420.0, 450.0)),
    "boom": (160.0, (1.15, 0.18, 0.0), (6.0, 90.0, 94.0)),
    "stick": (75.0, (0.45, 0.05, 0.0), (1.5, 15.0, 16.0)),
    "bucket": (60.0, (0.25, -0.2, 0.0), (3.0, 3.5, 4.0)),
}
FRICTION = {"h_swing": 300.0, "f_swing": 80.0, "h1": 9e3, "f1": 600.0, "h2": 7e3, "f2": 400.0, "h3": 5e3, "f3": 300.0}


def truth() -> Machine:
    """The machine that was simulated."""
    machine = load_model(MODEL)
    p, values = machine.parameters, dict(FRICTION)
    names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    for body in (b for b in machine.links if b.name in INERTIAS):
        mass, centre, about = INERTIAS[body.name]
        values |= {body.parameter(s): x for s, x in zip(names, from_centre(mass, centre, np.diag(about)), strict=True)}
    return machine.with_parameters(p.replacing(values))


@lru_cache
def true_motion(seconds: float = SECONDS) -> Motion:
    """All joints, and the exact forces of the drives, from the start of the log on."""
    machine = truth()
    t = np.arange(round(seconds * RATE)) / RATE
    drives = sines(
        t, CENTRE, REACH, 1.0 / SECONDS, 18, np.random.default_rng(SEED)
    )  # what is held out is no repetition
    return Stranger(machine, {**machine.assembly.guess, **machine.assembly.hold}).motion(t, *drives)


def table() -> str:
    """The log as text."""
    m, rng = true_motion(), np.random.default_rng(100 + SEED)
    assert m.forces is not None
    own = [truth().coordinates.index(c) for c in DRIVES]
    q = m.q[:, own] * np.array([180.0 / np.pi, 1e3, 1e3, 1e3]) + ENCODER * rng.normal(size=(len(m), 4))
    force = 1e-3 * m.forces[:, own] + FORCE * rng.normal(size=(len(m), 4))
    rows = [
        f"{t:.2f}," + ",".join(f"{x:.3f}" for x in a) + "," + ",".join(f"{x:.3f}" for x in b)
        for t, a, b in zip(m.t, q, force)
    ]
    return "\n".join([HEADER, *rows]) + "\n"


if __name__ == "__main__":
    LOG.write_text(table(), encoding="utf-8")
