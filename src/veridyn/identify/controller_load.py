"""A load in the form that controllers take it.

Controllers of Universal Robots, Franka and KUKA want mass in kg, the centre of mass in the flange's frame and the inertia about the
centre of mass; they differ in order, units and axes:

    UR      set_target_payload(m, cog, inertia)    m; Ixx Iyy Izz Ixy Ixz Iyz in axes of the flange
    Franka  setLoad(mass, F_x_Cload, load_inertia) m; (3, 3) in axes of the flange, nine numbers column by column
    KUKA    $LOAD                                   mm; moments about principal axes, whose orientation A B C is in degrees about z, y', x''
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.spatial.inertia import inertia_matrix, six

CONVENTIONS = {
    "mass": "kg",
    "centre_of_mass": "m, in the flange frame",
    "inertia": "kg*m^2, about the centre of mass, in the axes of the flange; XX XY XZ YY YZ ZZ with products of inertia as entries of the "
    "matrix (XY = −∫ x y dm)",
    "ur": "URScript set_target_payload: kg; m from the tool flange; kg*m^2 about the centre of mass as [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] "
    "in the axes of the flange",
    "franka": "libfranka setLoad: kg; m from flange to centre of mass in the flange frame; kg*m^2 about the centre of mass, (3, 3) in the "
    "axes of the flange, column by column",
    "kuka": "KRL $LOAD: kg; mm in the flange frame; A, B, C in degrees, rotations about z, then y, then x of the turned frame, from the "
    "flange to the principal axes; kg*m^2 about the principal axes through the centre of mass",
}


def controller_settings(mass: float, centre: ArrayLike, inertia: ArrayLike | None) -> dict[str, Any]:
    """Settings of the three controllers from mass [kg], centre of mass (3,) [m], inertia (3, 3) about it [kg*m^2], in the flange's frame.

    Without an inertia it is zero for UR and Franka and zero about all axes for KUKA, and `inertia_known` is false.
    """
    c = np.asarray(centre, dtype=np.float64)
    J = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=np.float64)
    xx, xy, xz, yy, yz, zz = (float(v) for v in six(J))
    moments, (a, b, g) = principal_axes(J)
    ur = [xx, yy, zz, xy, xz, yz]
    c_mm = [1e3 * float(v) for v in c]
    frame = "X {:.3f}, Y {:.3f}, Z {:.3f}, A {:.4f}, B {:.4f}, C {:.4f}".format(*c_mm, a, b, g)
    return {
        "mass": float(mass),
        "centre_of_mass": c.tolist(),
        "inertia": [xx, xy, xz, yy, yz, zz],
        "inertia_known": inertia is not None,
        "ur": {
            "payload": float(mass),
            "cog": c.tolist(),
            "inertia": ur,
            "script": f"set_target_payload({mass:.6g}, {_listed(c)}, {_listed(ur)})",
        },
        "franka": {"mass": float(mass), "F_x_Cload": c.tolist(), "load_inertia": J.T.ravel().tolist()},
        "kuka": {
            "M": float(mass),
            "CM": dict(zip("XYZABC", [*c_mm, a, b, g], strict=True)),
            "J": dict(zip("XYZ", moments.tolist(), strict=True)),
            "script": f"$LOAD = {{M {mass:.6g}, CM {{{frame}}}, J {{X {moments[0]:.6g}, Y {moments[1]:.6g}, Z {moments[2]:.6g}}}}}",
        },
        "conventions": CONVENTIONS,
    }


def principal_axes(J: ArrayLike) -> tuple[Array, tuple[float, float, float]]:
    """Principal moments (3,) and the angles A, B, C in degrees with J = R diag(moments) Rᵀ, R = Rz(A) Ry(B) Rx(C).

    Of the 24 ways to name right-handed principal axes, the one whose axes are nearest to those of the frame.
    """
    M = np.array(inertia_matrix(six(J)), dtype=np.float64)
    values, V = np.linalg.eigh(M)
    best: tuple[float, Array, Array] | None = None
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        R = V[:, order]
        R = R * np.where(np.diag(R) < 0.0, -1.0, 1.0)
        if np.linalg.det(R) < 0.0:
            k = int(np.argmin(np.abs(np.diag(R))))
            R[:, k] = -R[:, k]
        score = float(np.trace(R))
        if best is None or score > best[0] + 1e-12:
            best = (score, R, values[list(order)])
    assert best is not None
    _, R, moments = best
    B = float(np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])))
    if np.hypot(R[0, 0], R[1, 0]) > 1e-12:
        A, C = float(np.arctan2(R[1, 0], R[0, 0])), float(np.arctan2(R[2, 1], R[2, 2]))
    else:  # z along x: only A − C or A + C counts
        A, C = float(np.arctan2(-R[0, 1], R[1, 1])), 0.0
    a, b, c = np.degrees([A, B, C])
    return moments, (float(a), float(b), float(c))


def _listed(values: ArrayLike) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in np.asarray(values, dtype=np.float64)) + "]"
