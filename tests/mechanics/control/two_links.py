"""An arm of two links under gravity."""

from __future__ import annotations

import numpy as np

from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH


def arm(*controllers, elements=()):
    bodies = [
        Body("1", placement=MDH(alpha=np.pi / 2), coordinate="q1"),
        Body("2", "1", placement=MDH(d=0.4), coordinate="q2"),
    ]
    ten = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))
    return Machine.of_bodies(bodies, name="arm", inertia={"1": ten, "2": ten}, elements=elements).with_controllers(
        controllers
    )
