"""The hexapod PaLiDA of paper 002: its model, what Table I and Table II say of it, and its limits.

The model is ``hexapod.yaml``. Its geometry is chosen, since none is published (see the file); the truth of simulated experiments is
chosen near the identified column of Table II. Two of the identified values there are those of no body: p1 is below zero, and p2 is
above p3, though p3 − p2 = (Iyy2 + Izz2 − Ixx2) + (Iyy3 + Izz3 − Ixx3), a sum of what no distribution of mass has below zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.machines.described import described
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterSet
from veridyn.signals.trajectory import JointLimits

Array = NDArray[np.float64]
Ties = Literal["table", "legs", "none"]

POSE = ("x", "y", "z", "psi", "theta", "phi")
LEGS = ("l1", "l2", "l3", "l4", "l5", "l6")
RIGID = ("p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10")
FRICTION = ("ra", "rb", *(f"r{k}" for k in range(1, 7)), *(f"v{k}" for k in range(1, 7)))

# The parameters that lead the groups p1 … p10 of Table I (p5 is the first moment along z3; the print has y3, the axis of beta).
LEADS = ("ZZ1", "XX2", "ZZ2", "MY2", "MZ3", "XX_E", "YY_E", "ZZ_E", "MZ_E", "M_E")

# Names of Table I by those that the base parameters of the hexapod have here; an R marks a group of several.
TABLE_NAMES: dict[str, str] = {
    **{f"{lead}{'' if lead in ('MY2', 'MZ3') else 'R'}": p for lead, p in zip(LEADS, RIGID, strict=True)},
    **{name: name for name in FRICTION},
}

# Table II: identified by Gauss-Markov, by maximum likelihood, and a priori, in the order of RIGID and FRICTION.
TABLE_II: dict[str, tuple[float, float, float]] = {
    "p1": (-0.0447, -0.0444, 0.0074),
    "p2": (1.0892, 1.0915, 0.9439),
    "p3": (1.0077, 1.0106, 0.9458),
    "p4": (0.5995, 0.6029, 0.6201),
    "p5": (-1.2885, -1.2898, -1.2295),
    "p6": (0.3078, 0.3084, 0.2878),
    "p7": (0.3021, 0.3018, 0.2878),
    "p8": (0.1176, 0.1173, 0.1217),
    "p9": (1.8896, 1.8874, 1.9012),
    "p10": (16.3081, 16.2966, 16.1920),
    "ra": (0.5756, 0.5593, np.nan),
    "rb": (0.9195, 0.9339, np.nan),
    "r1": (11.9772, 12.1195, np.nan),
    "r2": (4.8071, 5.1917, np.nan),
    "r3": (20.1528, 20.1773, np.nan),
    "r4": (5.1518, 5.4981, np.nan),
    "r5": (1.5857, 1.7191, np.nan),
    "r6": (5.0057, 4.9622, np.nan),
    "v1": (16.8771, 16.7115, np.nan),
    "v2": (16.7406, 16.1764, np.nan),
    "v3": (6.3408, 6.2864, np.nan),
    "v4": (23.1662, 22.6607, np.nan),
    "v5": (26.4675, 26.3370, np.nan),
    "v6": (22.8053, 22.8194, np.nan),
}


def hexapod(ties: Ties = "table") -> Machine:
    """The hexapod with all parameters of Table I estimated ("table"), with legs that are alike in all ten parameters of each
    body ("legs"), or with legs that have nothing in common ("none")."""
    machine = described("hexapod.yaml")
    if ties == "table":
        return machine
    free = machine.parameters.estimated(machine.parameters.names)
    if ties == "none":
        return machine.with_parameters(free)
    return machine.with_parameters(free.tied({name: lead for name in free.names if (lead := _alike(name))}))


def _alike(name: str) -> str:
    """The parameter of leg 1 that one of another leg equals: XX2_4 is XX2; empty for those of leg 1 and of the platform."""
    stem, _, leg = name.rpartition("_")
    return stem if leg.isdigit() else ""


def truth(values: Mapping[str, float] | None = None) -> Machine:
    """The hexapod of simulated experiments: chosen, physically possible, near the identified column of Table II, friction included.

    `values`: others than TRUTH, by the same names.
    """
    machine = hexapod()
    return machine.with_parameters(_alike_all(machine.parameters.replacing(dict(values or TRUTH))))


def _alike_all(p: ParameterSet) -> ParameterSet:
    """Tied parameters with the values of what they are tied to."""
    return p.replacing({name: tie.factor * p[tie.to] for name, tie in p.ties.items()})


TRUTH: dict[str, float] = {
    "ZZ1": 0.0060,
    "XX2": 0.1027,
    "YY2": 0.0016,
    "ZZ2": 0.1027,
    "MY2": 0.5995,
    "XX3": 0.9050,
    "YY3": 0.9050,
    "ZZ3": 0.0005,
    "MZ3": -1.2885,
    "M3": 2.05,
    "XX_E": 0.0809,
    "YY_E": 0.0752,
    "ZZ_E": 0.0180,
    "MZ_E": 0.4136,
    "M_E": 4.0081,
} | {name: TABLE_II[name][0] for name in FRICTION}


def prior() -> Machine:
    """The hexapod as its drawings have it: the a-priori values of Table II, and no friction, of which nothing was known."""
    machine = hexapod()
    return machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})


def limits() -> JointLimits:
    """What the drives may do (chosen): length in m, speed in m/s and acceleration in m/s^2 of each leg."""
    six = np.ones(6)
    return JointLimits(0.80 * six, 1.17 * six, 1.6 * six, 16.0 * six)
