"""The constant mass matrix of a mechanism in natural coordinates, and its gravity.

A body's particles are at r = Σ cₐ Nₐ y with constant cₐ (c₀ = 1), so T = ½ q̇ᵀ M q̇ with M = Σₐᵦ Pₐᵦ NₐᵀNᵦ and Pₐᵦ = ∫ cₐ cᵦ dm
(paper 003, equations 23 to 27, for any admissible set of points and vectors in plane and space).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, ModelError
from veridyn.mechanics.natural.geometry import Basis, Geometry
from veridyn.model.point_parts import RigidBody
from veridyn.spatial.inertia import inertia_matrix

Array = NDArray[np.float64]
IN_SPAN = 1e-9


def mass_matrix_of(geometry: Geometry) -> Array:
    """M (n, n), constant and symmetric, with the inertias of motors.

    A body whose mass lies outside what its points and vectors span is refused by name.
    """
    n = geometry.mechanism.n
    M, faults = np.zeros((n, n)), Faults()
    for b in geometry.mechanism.bodies:
        own, fault = body_mass(geometry, b)
        if fault is not None:
            faults.found.append(fault)
        M += own
    for rotor in geometry.mechanism.rotors:
        k = geometry.mechanism.index(rotor.coordinate)
        M[k, k] += rotor.inertia
    faults.raise_if_any(ModelError, geometry.mechanism.name)
    return 0.5 * (M + M.T)


def body_mass(geometry: Geometry, body: RigidBody) -> tuple[Array, Fault | None]:
    """What one body adds to M, or why it cannot."""
    n, basis = geometry.mechanism.n, geometry.bases[body.name]
    P, fault = _moments(body, basis)
    if fault is not None:
        return np.zeros((n, n)), fault
    N = np.concatenate([basis.place[None], basis.maps])[:, :, :n]
    return np.asarray(np.einsum("ab,aik,bil->kl", P, N, N), dtype=np.float64), None


def centre_map(geometry: Geometry, body: RigidBody) -> Array:
    """The map (dim, n+1) of a body's centre of mass."""
    return geometry.on_body(body.name, body.centre or np.zeros(geometry.mechanism.dimension))


def weight_of(geometry: Geometry) -> Array:
    """Gravity as a row w (n+1,): generalised forces w[:n] by virtual power (29), potential energy −w·y."""
    w = np.zeros(geometry.mechanism.n + 1)
    for b in geometry.mechanism.bodies:
        if b.mass:
            w += b.mass * np.array(geometry.mechanism.gravity) @ centre_map(geometry, b)
    return w


def _moments(b: RigidBody, basis: Basis) -> tuple[Array, Fault | None]:
    """P (1+k, 1+k) = ∫ c cᵀ dm of c = (1, c₁, …), or why the basis cannot carry this mass."""
    dim, k = basis.local.shape
    c = np.array(b.centre) if b.centre else np.zeros(dim)
    J = np.asarray(b.inertia, dtype=np.float64)
    if dim == 2:
        second = 0.5 * float(J) * np.eye(2)  # only the sum of the two counts: the second direction turns with the first
    else:
        J = np.zeros(6) if J.shape == () else J
        J = np.array(inertia_matrix(J)) if J.shape == (6,) else J
        second = 0.5 * np.trace(J) * np.eye(3) - J
    arm = c - basis.local_origin
    second = second + b.mass * np.outer(arm, arm)  # ∫ x xᵀ dm about the first point
    T = np.linalg.pinv(basis.local) if k else np.zeros((0, dim))
    outside = np.eye(dim) - basis.local @ T
    left = outside @ second @ outside
    if np.abs(left).max() > IN_SPAN * max(float(np.abs(second).max()), 1e-300):
        spread = np.linalg.eigvalsh(left)[-1]
        return np.zeros((0, 0)), Fault(
            "its mass lies outside what its points and vectors span, so its mass matrix would not be constant.",
            where=f"body '{b.name}'",
            expected="mass along "
            + (", ".join("-".join(s) for s in basis.sources) or f"the point '{basis.origin}' only"),
            found=f"a second moment of {spread:.6g} kg*m^2 across them",
            hint="Add a vector or point that leaves their span; in space three independent directions carry any body.",
        )
    P = np.empty((k + 1, k + 1))
    P[0, 0] = b.mass
    P[1:, 0] = P[0, 1:] = T @ (b.mass * arm)
    P[1:, 1:] = T @ second @ T.T
    return P, None
