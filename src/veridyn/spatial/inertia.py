"""The ten inertial parameters of a body: order, moves between frames, and what physics allows.

Order everywhere: XX XY XZ YY YZ ZZ MX MY MZ M, the inertia about the frame's origin, in the frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.spatial.algebra import Mat, Scalar

INERTIAL = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
INERTIAL_UNITS = ("kg*m^2",) * 6 + ("kg*m",) * 3 + ("kg",)
_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def inertia_matrix(X: Sequence[Scalar] | Array) -> Mat:
    """J (3, 3) from the ten parameters, over scalars of any kind."""
    xx, xy, xz, yy, yz, zz = X[0], X[1], X[2], X[3], X[4], X[5]
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def six(J: ArrayLike) -> Array:
    """XX XY XZ YY YZ ZZ of a symmetric matrix."""
    a = np.asarray(J, dtype=np.float64)
    return np.array([a[i, k] for i, k in _UPPER])


def cross_matrix(p: ArrayLike) -> Array:
    x, y, z = np.asarray(p, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@checked
def from_centre(mass: float, centre: ArrayLike, about_centre: ArrayLike) -> Array:
    """Ten parameters about the frame's origin, from mass, centre of mass and the inertia (3, 3) or six about that centre."""
    c = as_array(centre, "from_centre, centre", (3,))
    J = as_array(about_centre, "from_centre, about_centre")
    J = np.array(inertia_matrix(J)) if J.shape == (6,) else as_array(J, "from_centre, about_centre", (3, 3))
    S = cross_matrix(c)
    return np.concatenate([six(J + mass * S.T @ S), mass * c, [mass]])


def to_centre(X: ArrayLike) -> tuple[float, Array, Array]:
    """Mass, centre of mass and the inertia (3, 3) about it: the inverse of :func:`from_centre`; the centre is 0 where the mass is."""
    x = np.asarray(X, dtype=np.float64)
    mass = float(x[9])
    centre = x[6:9] / mass if mass != 0.0 else np.zeros(3)
    S = cross_matrix(centre)
    return mass, centre, np.array(inertia_matrix(x)) - mass * S.T @ S


def moved(X: ArrayLike, R: ArrayLike, p: ArrayLike) -> Array:
    """The same body's parameters in frame i, from those in frame j that sits at (R, p) in i: Steiner with first moments.

    J_i = R J Rᵀ + M p̃ᵀp̃ + p̃ᵀ(Rs)~ + (Rs)~ᵀp̃,  MS_i = M p + R s,  M_i = M.
    """
    x = np.asarray(X, dtype=np.float64)
    R = np.asarray(R, dtype=np.float64)
    m, s = x[9], R @ x[6:9]
    J = R @ np.array(inertia_matrix(x)) @ R.T
    P, S = cross_matrix(p), cross_matrix(s)
    J = J + m * P.T @ P + P.T @ S + S.T @ P
    return np.concatenate([six(J), m * np.asarray(p, dtype=np.float64) + s, [m]])


def move_matrix(R: ArrayLike, p: ArrayLike) -> Array:
    """The (10, 10) matrix of :func:`moved`, which is linear in the parameters."""
    return np.column_stack([moved(unit, R, p) for unit in np.eye(10)])


def pseudo_inertia(X: ArrayLike) -> Array:
    """The (4, 4) matrix that is positive semi-definite exactly when some distribution of mass has these ten parameters.

    [[½ tr(J) 1 − J, MS], [MSᵀ, M]] (Wensing, Kim and Slotine, 2018, IEEE RA-L 3(1)).
    """
    x = np.asarray(X, dtype=np.float64)
    J = np.array(inertia_matrix(x))
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
    P[:3, 3] = P[3, :3] = x[6:9]
    P[3, 3] = x[9]
    return P


def broken_law(X: ArrayLike, tolerance: float = 1e-9) -> str | None:
    """In words and numbers, the law of physics that these ten parameters break; None where they are possible."""
    x = np.asarray(X, dtype=np.float64)
    mass = x[9]
    scale = max(float(np.abs(x).max()), 1e-300)
    if mass < -tolerance * scale:
        return f"the mass is {mass:.6g} kg, below zero"
    if mass <= tolerance * scale * 1e-3 and np.abs(x[6:9]).max() > tolerance * scale:
        return f"first moments {_listed(x[6:9])} kg*m belong to a mass of {mass:.6g} kg"
    J = np.array(inertia_matrix(x))
    centre = x[6:9] / mass if mass > 0 else np.zeros(3)
    C = cross_matrix(centre)
    about_centre = J - mass * C.T @ C
    principal = np.linalg.eigvalsh(about_centre)
    slack = tolerance * max(float(np.abs(np.linalg.eigvalsh(J)).max()), 1e-300)
    if principal[0] < -slack:
        return f"principal moments about the centre of mass are {_listed(principal)} kg*m^2, and {principal[0]:.6g} is below zero"
    if principal[0] + principal[1] < principal[2] - slack:
        return (
            f"principal moments about the centre of mass are {_listed(principal)} kg*m^2, "
            f"and {principal[0]:.6g} + {principal[1]:.6g} < {principal[2]:.6g} breaks the triangle inequality"
        )
    return None


def _listed(values: NDArray[np.floating]) -> str:
    return "(" + ", ".join(f"{v:.6g}" for v in values) + ")"
