"""The ten inertial parameters of a rigid body that points and vectors place, in plane and space."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError, part_at
from veridyn.model.place import numbers
from veridyn.model.point_parts import RigidBody
from veridyn.spatial.inertia import cross_matrix, from_centre, inertia_matrix

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of a moment of inertia: a negative one about the centre of mass that is smaller is none
COLLINEAR_SINE = 1e-9  # sine below which the centre of mass is on the line of two points


def ten_of(body: RigidBody, dimension: int) -> Array:
    """XX XY XZ YY YZ ZZ MX MY MZ M about the origin of the body's frame, in its axes.

    A planar body has one moment of inertia; its mass is taken to lie in the plane: along the line of its points where it has two with
    the centre between them, as a rod, and alike in all directions of the plane otherwise. No planar motion depends on the choice.
    """
    J = np.asarray(body.inertia, dtype=np.float64)
    if dimension == 3:
        centre = np.array(body.centre) if body.centre else np.zeros(3)
        return from_centre(body.mass, centre, np.zeros(6) if J.shape == () else J)
    c = np.array(body.centre) if body.centre else np.zeros(2)
    about = float(J) * np.diag([0.5, 0.5, 1.0])
    if len(body.points) == 2 and not body.vectors:
        first, last = (np.array(at) for at in body.points.values())
        d, arm = last - first, c - first
        length, cross = float(np.linalg.norm(d)), float(d[0] * arm[1] - d[1] * arm[0])
        if length > 0.0 and abs(cross) <= COLLINEAR_SINE * length * max(length, float(np.linalg.norm(arm))):
            u = np.append(d / length, 0.0)
            about = float(J) * (np.eye(3) - np.outer(u, u))
    return from_centre(body.mass, np.append(c, 0.0), about)


def rigid_body(
    name: str, points: Mapping[str, Array], vectors: Mapping[str, Array], ten: Array, dimension: int
) -> RigidBody:
    """A rigid body with ten parameters, its inertia taken about its centre of mass."""
    mass = float(ten[9])
    if mass == 0.0 and not np.any(ten):
        return RigidBody(name, points, vectors)
    if mass == 0.0 and np.any(ten[6:9]):
        raise ModelError(
            "it has first moments and no mass, so it has no centre of mass.",
            where=part_at("body", name),
            found=f"{ten[6:9].tolist()} kg*m",
            hint="Give it a mass, or use formulation: tree.",
        )
    centre = ten[6:9] / mass if mass != 0.0 else np.zeros(3)
    C = cross_matrix(centre)
    J = np.array(inertia_matrix(ten)) - mass * C.T @ C
    if dimension == 2:
        about = float(J[2, 2])
        rounding = about < 0.0 and -about <= ROUNDING * abs(float(ten[5]))
        return RigidBody(name, points, vectors, mass, numbers(centre[:2]), 0.0 if rounding else about)
    return RigidBody(name, points, vectors, mass, numbers(centre), 0.5 * (J + J.T))
