"""The humanoid of paper 004: a robot like the UT-mu2:magnum, as drawn (CAD, 6.7 kg) and as it stands there (8.0 kg).

The drawing is ``humanoid.yaml``. What a drawing forgets (battery, electronics, gears and cables) is listed here: chosen, 1.3 kg in
all, so that the drawing is 16.25 % light as in the paper. With the arms locked there are 13 links and 18 degrees of freedom, else 21
and 26. Units: SI, rad.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.described import described
from veridyn.mechanics.tree.weld import welded
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre

Array = NDArray[np.float64]

BASE = "torso"
FEET = ("right_foot", "left_foot")
LEG = ("hip_yaw", "hip_roll", "thigh", "shank", "ankle", "foot")
ARM = ("shoulder_pitch", "shoulder_roll", "upper_arm", "forearm")
SIDES = ("right", "left")
THIGH, SHANK, HIP = 0.12, 0.12, 0.035  # m, as in the file
SOLE = 0.04  # m, from the ankle down to the sole (chosen)
FOOT = ((-0.045, 0.075), (-0.027, 0.027))  # m: heel and toe, inner and outer edge, seen from the ankle (chosen)
HEIGHT = 0.540  # m, paper 004, Fig. 1
MASS, CAD_MASS = 8.0, 6.7  # kg, paper 004

# What the drawing forgets: link → mass in kg, centre in m in the link's frame, edges of its box in m. All chosen.
FORGOTTEN = {
    "torso": ((0.50, (-0.035, 0.006, 0.060), (0.04, 0.10, 0.07)), (0.30, (0.010, -0.008, 0.170), (0.05, 0.08, 0.04))),
    **{
        f"{side}_{part}": ((mass, centre, (0.03, 0.03, 0.03)),)
        for side in SIDES
        for part, mass, centre in (
            ("hip_yaw", 0.02, (0.010, 0.0, 0.020)),
            ("hip_roll", 0.03, (0.015, 0.0, -0.020)),
            ("thigh", 0.04, (0.040, 0.020, 0.0)),
            ("shank", 0.04, (0.070, 0.020, 0.0)),
            ("ankle", 0.02, (0.010, 0.015, 0.0)),
            ("foot", 0.03, (0.030, 0.0, -0.010)),
            ("shoulder_pitch", 0.015, (0.010, 0.0, 0.0)),
            ("shoulder_roll", 0.020, (0.010, 0.005, 0.0)),
            ("upper_arm", 0.020, (0.005, 0.0, 0.040)),
            ("forearm", 0.015, (0.050, 0.005, 0.0)),
        )
    },
}
# What is called typical: the size by which deviations of this robot's parameters are compared (chosen: a link of 0.3 kg and 0.1 m).
TYPICAL = {"J": 1e-3, "MS": 0.03, "M": 0.3}


def cad(arms: bool = False) -> Machine:
    """The robot as drawn: 13 links with the arms locked hanging, or all 21."""
    drawn = described("humanoid.yaml")
    sizes = np.array([TYPICAL["J"]] * 6 + [TYPICAL["MS"]] * 3 + [TYPICAL["M"]])
    sized = replace(drawn.parameters, typical=np.tile(sizes, len(drawn.links)))
    whole = drawn.with_parameters(sized)
    return whole if arms else welded(whole, {f"{side}_{part}": 0.0 for side in SIDES for part in ARM})


def machine(arms: bool = False) -> Machine:
    """The robot itself: the drawing and what it forgets."""
    drawn = cad(arms=True)
    X = drawn.parameters.values.reshape(-1, 10).copy()
    for link, parts in FORGOTTEN.items():
        for mass, centre, edges in parts:
            X[drawn.described.links.index(link)] += from_centre(mass, centre, box(mass, edges))
    whole = drawn.with_parameters(X.ravel())
    return whole if arms else welded(whole, {f"{side}_{part}": 0.0 for side in SIDES for part in ARM})


def box(mass: float, edges: tuple[float, float, float]) -> Array:
    """The inertia (3, 3) of an even box about its centre."""
    a, b, c = np.square(edges)
    return mass / 12.0 * np.diag([b + c, a + c, a + b])


def total_mass(machine: Machine) -> float:
    """kg, of all links together."""
    p = machine.parameters
    return float(sum(p.values[k] for k, (body, number) in enumerate(machine.columns) if body and number == 9))
