"""The cars of papers 000 and 001, from their tables of geometric parameters with the misprints mended.

The papers print the angles and the pattern of the lengths; the lengths themselves (wheelbase, half tracks, zero of the suspensions) and the
inertias of parts that are not in their tables are chosen here, unequal on purpose so that no symmetry hides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.model.elements.element import Element, coulomb, damper, drag, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.rotations import MDH

RIGHT = np.pi / 2

# Chosen: half tracks of the four wheels (front left, front right, rear left, rear right) and the wheelbase, in metres.
HALF_TRACK = (0.751, 0.749, 0.742, 0.745)
WHEELBASE = 2.7

Real = Literal["real", "all"]
Which = Literal["unsprung", "wheels", "all"]


def _wheel(mass: float = 18.0) -> np.ndarray:
    """Chosen: a round wheel about its own axis z."""
    return from_centre(mass, (0.0, 0.0, 0.0), np.diag([0.55, 0.55, 0.95]))


# Paper 001, Table 1, its missing column gamma being zero in every row: j: (antecedent, sigma, b, alpha, d, theta, r).
def _table_2002() -> Mapping[int, tuple[int, int, float, float, float, float, float]]:
    D1, D2, D3, D4 = HALF_TRACK
    B13, B17 = WHEELBASE, WHEELBASE + 0.01
    return {
        1: (0, 1, 0.0, RIGHT, 0.0, RIGHT, 0.0),
        2: (1, 1, 0.0, RIGHT, 0.0, RIGHT, 0.0),
        3: (2, 1, 0.0, RIGHT, 0.0, RIGHT, 0.0),
        4: (3, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        5: (4, 0, 0.0, RIGHT, 0.0, RIGHT, 0.0),
        6: (5, 0, 0.0, RIGHT, 0.0, RIGHT, 0.0),
        7: (6, 1, 0.0, RIGHT, -D3, RIGHT, 0.0),
        8: (7, 2, 0.0, -RIGHT, 0.0, 0.0, 0.0),
        9: (8, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        10: (6, 1, 0.0, RIGHT, D4, RIGHT, 0.0),
        11: (10, 2, 0.0, -RIGHT, 0.0, 0.0, 0.0),
        12: (11, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        13: (6, 1, B13, RIGHT, -D1, RIGHT, 0.0),
        14: (13, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        15: (14, 2, 0.0, -RIGHT, 0.0, 0.0, 0.0),
        16: (15, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        17: (6, 1, B17, RIGHT, D2, RIGHT, 0.0),
        18: (17, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
        19: (18, 2, 0.0, -RIGHT, 0.0, 0.0, 0.0),
        20: (19, 0, 0.0, 0.0, 0.0, 0.0, 0.0),
    }


KIND = ("turning", "sliding", "fixed")
WHEELS_2002 = (9, 12, 16, 20)


def car_2002(real: Real = "real", shared_steering: bool = False) -> Machine:
    """Paper 001's car: 20 bodies on 16 coordinates, its first six those of the chassis (body 6); 15 with one shared steering angle.

    `real`: the chassis and the four wheels have inertia, or "all" bodies. Gravity is along −z of the ground.
    """
    bodies = []
    for j, (a, sigma, b, alpha, d, theta, r) in _table_2002().items():
        bodies.append(
            Body(
                str(j),
                "ground" if a == 0 else str(a),
                KIND[sigma],
                MDH(0.0, b, alpha, d, theta, r),
                actuated=False,
                real=real == "all" or j == 6 or j in WHEELS_2002,
                coordinate="beta" if shared_steering and j in (14, 18) else "",
            )
        )
    # Frame 6 has x right, y down, z forward; mass and centre from the paper's Table 4, the inertia chosen.
    chassis = from_centre(1566.2, (-0.0049, -0.464, 1.668), np.diag([2300.0, 2500.0, 480.0]))
    inertia = {"6": chassis} | {str(j): _wheel() for j in WHEELS_2002}
    return Machine.of_bodies(bodies, name="car of 2002", inertia=inertia)


def round_wheels_2002(machine: Machine) -> Machine:
    """Table 2 of paper 001: ten parameters of the chassis, and XX = YY, ZZ and M of each wheel."""
    zero = {f"{s}{j}": 0.0 for j in WHEELS_2002 for s in ("XY", "XZ", "YZ", "MX", "MY", "MZ")}
    ties = {f"YY{j}": f"XX{j}" for j in WHEELS_2002}
    return machine.with_parameters(machine.parameters.known(zero).tied(ties))


# Paper 000, Table III, with gamma of row 5 zero: j: (antecedent, sigma, gamma, alpha, d, theta).
def _table_20() -> Mapping[int, tuple[int, int, float, float, float, float]]:
    l1, l2, l3, l4 = HALF_TRACK
    return {
        1: (0, 2, 0.0, 0.0, 0.0, 0.0),
        2: (1, 1, RIGHT, 0.0, l3, -RIGHT),
        3: (2, 2, 0.0, 0.0, 0.0, 0.0),
        4: (3, 0, 0.0, -RIGHT, 0.0, 0.0),
        5: (3, 1, 0.0, 0.0, 0.0, 0.0),
        6: (1, 1, RIGHT, 0.0, -l4, -RIGHT),
        7: (6, 2, 0.0, 0.0, 0.0, 0.0),
        8: (7, 0, 0.0, -RIGHT, 0.0, 0.0),
        9: (7, 1, 0.0, 0.0, 0.0, 0.0),
        10: (1, 2, 0.0, 0.0, WHEELBASE, RIGHT),
        11: (10, 1, 0.0, 0.0, l1, -RIGHT),
        12: (11, 0, 0.0, 0.0, 0.0, 0.0),
        13: (12, 2, 0.0, 0.0, 0.0, 0.0),
        14: (13, 0, 0.0, -RIGHT, 0.0, 0.0),
        15: (13, 1, 0.0, 0.0, 0.0, 0.0),
        16: (10, 1, 0.0, 0.0, -l2, -RIGHT),
        17: (16, 0, 0.0, 0.0, 0.0, 0.0),
        18: (17, 2, 0.0, 0.0, 0.0, 0.0),
        19: (18, 0, 0.0, -RIGHT, 0.0, 0.0),
        20: (18, 1, 0.0, 0.0, 0.0, 0.0),
    }


COORDINATES_20 = {
    2: "z3",
    4: "theta3",
    5: "zt3",
    6: "z4",
    8: "theta4",
    9: "zt4",
    11: "z1",
    12: "beta1",
    14: "theta1",
    15: "zt1",
    16: "z2",
    17: "beta2",
    19: "theta2",
    20: "zt2",
}
UNSPRUNG_20 = {13: "1", 18: "2", 3: "3", 7: "4"}  # body → number of the wheel, as in Table II
WHEELS_20 = {14: "w1", 19: "w2", 4: "w3", 8: "w4"}


def _inertia_2006(unsprung: Mapping[int, str], wheels: Mapping[int, str]) -> dict[str, ArrayLike]:
    """Masses and first moments of the chassis by Table II (a priori); its inertia likewise; the rest chosen."""
    chassis = np.array([622.15, 76.0, 44.12, 5898.0, -13.0, 6199.0, 2421.1, 0.0, -15.01, 1508.5])
    carrier = from_centre(24.0, (0.01, 0.02, 0.015), np.diag([0.4, 0.3, 0.5]))
    return {"1": chassis} | {str(j): carrier for j in unsprung} | {str(j): _wheel() for j in wheels}


def car_20(which: Which = "unsprung", elements: bool = False, shared_steering: bool = False) -> Machine:
    """Paper 000's reduced car, 14 coordinates and a free chassis (20 degrees of freedom, 20 rows).

    `which` bodies have inertia: chassis and unsprung masses, the wheels as well, or "all". `elements`: springs, dampers, friction
    and offsets of the suspensions, the anti-roll bars and the drag of Table II.
    """
    labels = {1: "c"} | UNSPRUNG_20 | (WHEELS_20 if which != "unsprung" else {})
    bodies = []
    for j, (a, sigma, gamma, alpha, d, theta) in _table_20().items():
        coordinate = COORDINATES_20.get(j, "")
        bodies.append(
            Body(
                str(j),
                None if a == 0 else str(a),
                KIND[sigma],
                MDH(gamma, 0.0, alpha, d, theta, 0.0),
                actuated=False,
                real=which == "all" or j in labels,
                coordinate="beta" if shared_steering and j in (12, 17) else coordinate,
                label="" if which == "all" else labels.get(j, ""),
            )
        )
    inertia = _inertia_2006(UNSPRUNG_20, {} if which == "unsprung" else WHEELS_20)
    return Machine.of_bodies(
        bodies, name="car of 2006, 20 dof", base="free", inertia=inertia, elements=suspension() if elements else ()
    )


def car_38(which: Which = "unsprung", elements: bool = False) -> Machine:
    """Paper 000's full car, 32 coordinates and a free chassis (38 degrees of freedom): each branch of nine bodies by Table I, mended.

    Lengths and their order: branches from bodies 2 (rear left), 11 (rear right), 20 (front left) and 29 (front right).
    """
    l1, l2, l3, l4 = HALF_TRACK
    bodies = [Body("1", None, "fixed", real=True, label="" if which == "all" else "c")]
    branches = {2: ("3", l3, 0.0), 11: ("4", -l4, 0.0), 20: ("1", l1, WHEELBASE), 29: ("2", -l2, WHEELBASE)}
    unsprung, wheels = {}, {}
    for j0, (number, side, ahead) in branches.items():
        rows = (
            (1, 1, -RIGHT, -RIGHT, side, "dl"),
            (j0, 1, -RIGHT, -RIGHT, ahead, "dL"),
            (j0 + 1, 1, -RIGHT, 0.0, 0.0, "z"),
            (j0 + 2, 0, 0.0, 0.0, 0.0, "beta"),
            (j0 + 3, 0, RIGHT, RIGHT, 0.0, "camber"),
            (j0 + 4, 0, RIGHT, RIGHT, 0.0, "kingpin"),
            (j0 + 5, 2, RIGHT, 0.0, 0.0, ""),
            (j0 + 6, 0, -RIGHT, 0.0, 0.0, "theta"),
            (j0 + 6, 1, 0.0, 0.0, 0.0, "zt"),
        )
        unsprung[j0 + 6], wheels[j0 + 7] = number, f"w{number}"
        labels = unsprung | (wheels if which != "unsprung" else {})
        for k, (a, sigma, alpha, theta, r, symbol) in enumerate(rows):
            j = j0 + k
            bodies.append(
                Body(
                    str(j),
                    str(a),
                    KIND[sigma],
                    MDH(0.0, 0.0, alpha, 0.0, theta, r),
                    actuated=False,
                    real=which == "all" or j in labels,
                    coordinate=symbol + number if symbol else "",
                    label="" if which == "all" else labels.get(j, ""),
                )
            )
    inertia = _inertia_2006(unsprung, {} if which == "unsprung" else wheels)
    return Machine.of_bodies(
        bodies, name="car of 2006, 38 dof", base="free", inertia=inertia, elements=suspension() if elements else ()
    )


def suspension() -> list[Element]:
    """The 19 elements of Table II with its estimates: k, fs, h, off of each wheel, two anti-roll bars, and Cx on the chassis."""
    table = {
        "1": (26608.9, 9.1, 3528.4, 12383.2),
        "2": (26254.9, 35.8, 2981.1, 12266.8),
        "3": (26856.4, 2.1, 3832.5, 10603.7),
        "4": (31663.3, 5.0, 2599.8, 12303.8),
    }
    bars = [
        spring({"z3": 1.0, "z4": -1.0}, 23639.0, "k_arr"),
        spring({"z1": 1.0, "z2": -1.0}, 21820.5, "k_arf"),
    ]
    corners = [
        make(f"z{w}", value, f"{symbol}_{w}")
        for w, values in table.items()
        for make, symbol, value in zip((spring, coulomb, damper, offset), ("k", "fs", "h", "off"), values, strict=True)
    ]
    return [*bars, *corners, drag("1.fx", 1.17158, "Cx")]


def estimated_33(machine: Machine) -> Machine:
    """The identification model of paper 000: ten of the chassis, four unsprung masses at their frames, and the 19 elements."""
    zero = {f"{s}{w}": 0.0 for w in "1234" for s in INERTIAL if s != "M"}
    return machine.with_parameters(machine.parameters.known(zero))


TEN_ROWS = ("fx", "fy", "fz", "mx", "my", "mz", "z1", "z2", "z3", "z4")


def all_real(machine: Machine) -> Machine:
    """The same geometry with inertia, unknown, on every body: the virtual ones as well."""
    links = [replace(link, inertia=None, real=True, label="") for link in machine.links]
    return Machine.build(links, machine.joints, name=machine.name, gravity=machine.gravity)
