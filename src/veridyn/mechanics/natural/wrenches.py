"""Measured wrenches on bodies in natural coordinates: their generalised forces are linear in the coordinates, as those of torques are.

    force f along the body's axis a at its origin o      Q = f (∂o/∂q)ᵀ a(q)
    moment m about a, with a = v × w                     power m a·ω = m ½ (v̇·w − v·ẇ) = m yᵀ G q̇,   Q = m Gᵀ y,   y = (q, 1)

In the plane fz, mx and my move nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import CapabilityError
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.elements.element import WRENCH_ROWS

Array = NDArray[np.float64]
ABOUT = ((1, 2), (2, 0), (0, 1))  # the axes v and w whose product is x, y and z


def with_wrenches(system: NaturalSystem, bodies: Sequence[str]) -> NaturalSystem:
    """The same system with loads wrench.B.fx … mz on these bodies, zero where they are not given; those it has already stay."""
    new = [body for body in dict.fromkeys(bodies) if f"wrench.{body}.fx" not in system.forces.places]
    if not new:
        return system
    forces, n = system.forces, system.n
    turning = np.concatenate([forces.turning, *(wrench_maps(system.geometry, body) for body in new)])
    first, names = len(forces.values), [f"wrench.{body}.{row}" for body in new for row in WRENCH_ROWS]
    table = replace(
        forces,
        loads={**forces.loads, **{name: slice(first + k, first + k + 1) for k, name in enumerate(names)}},
        values=np.concatenate([forces.values, np.zeros(len(names))]),
        constant=np.hstack([forces.constant, np.zeros((n, len(names)))]),
        turning=turning,
        active=np.flatnonzero(turning.any(axis=(1, 2))),
    )
    return replace(system, forces=table)


def wrench_maps(geometry: Geometry, body: str) -> Array:
    """B (6, n, n+1) with Q = B y of a unit of each component of a wrench on a body, in its frame, at its origin."""
    m = geometry.mechanism
    if not geometry.bases[m.body(body).name].complete:
        raise CapabilityError(
            "natural",
            f"wrench on '{body}'",
            "its points and vectors do not fix its orientation, so a wrench in its frame has no direction",
            "Give the body more points or vectors, or observe the machine in formulation tree.",
            where=m.name,
        )
    d, out = m.dimension, np.zeros((6, m.n, m.n + 1))
    origin, axes = geometry.on_body(body, np.zeros(d)), [geometry.along(body, axis) for axis in np.eye(d)]
    for a in range(d):
        out[a] = origin[:, :-1].T @ axes[a]
    for a, (v, w) in enumerate(ABOUT):
        if v < d and w < d:
            out[3 + a] = 0.5 * (axes[v][:, :-1].T @ axes[w] - axes[w][:, :-1].T @ axes[v])
    return out
