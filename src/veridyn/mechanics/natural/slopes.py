"""How the equations of a mechanism in natural coordinates depend on parameters of the machine: exactly, because they are linear in them.

    M q̈ + Φ_qᵀ λ = Q,     M = Σ φ_i M_i + …,     Q = Σ φ_i Q_i(q, q̇) + …      →      −∂(M q̈ − Q)/∂φ_i = Q_i − M_i q̈

M_i is constant; Q_i is a weight, a constant force, or the law of an element with unit parameter. A parameter that the points and
vectors of its body cannot carry is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import CapabilityError, Faults, ModelError, part_at
from veridyn.mechanics.natural.forces import forces_of
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mass import IN_SPAN
from veridyn.mechanics.natural.parameter_slopes import ParameterSlopes
from veridyn.mechanics.natural.room import Slopes, no_slopes
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import INERTIAL, inertia_matrix

Array = NDArray[np.float64]


def with_parameter_slopes(system: NaturalSystem, machine: Machine) -> NaturalSystem:
    """The same system of a machine, with the slopes by the parameters whose uncertainty the machine has."""
    known = machine.uncertainty
    if known is None:
        return system
    p = machine.parameters
    places = [p.index(name) for name in _refuse_constants(machine, known.names)]
    return replace(
        system,
        parameters=ParameterSlopes(
            names=known.names,
            units=tuple(p.units[k] for k in places),
            values=p.values[places],
            uncertainty=known,
            tables=slopes_of(system, machine, known.names),
            machine=machine,
        ),
    )


def slopes_of(system: NaturalSystem, machine: Machine, names: Sequence[str]) -> Slopes:
    """M_i, constant forces and laws of each parameter by name."""
    bodies = {b.parameter(s): (b.name, k) for b in tree_of(machine).bodies if b.real for k, s in enumerate(INERTIAL)}
    elements = dict(zip(machine.element_names, machine.elements, strict=True))
    found, faults = [], Faults()
    for name in names:
        if name in bodies:
            body, k = bodies[name]
            mass, weight = _of_body(system.geometry, body, np.eye(10)[k])
            if mass is None:
                faults.add(
                    f"the points and vectors of body '{body}' cannot carry '{name}'.",
                    where=part_at("body", body),
                    hint="Observe it in formulation tree (with_formulation('tree')), or give the body points or vectors that span space.",
                )
                continue
            found.append((mass, weight, *_laws(system, None)))
        else:
            found.append(_of_element(system, elements[name], name))
    faults.raise_if_any(ModelError, machine.name)
    parts = zip(*found, strict=True) if found else ()
    made = [np.ascontiguousarray(part) for part in parts]
    return Slopes(*made) if made else no_slopes(system.n, system.tables)


def _refuse_constants(machine: Machine, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in machine.parameters.names:
            raise ModelError(
                f"the uncertainty of the constant '{name}' cannot be considered in natural coordinates.",
                where=machine.name,
                hint="Observe it in formulation tree: with_formulation('tree').",
            )
    return names


def _of_body(geometry: Geometry, body: str, ten: Array) -> tuple[Array | None, Array]:
    """M_i (n, n) and the weight (n,) of ten inertial parameters of a body; None where its points and vectors do not span them."""
    m, n, basis, dim = geometry.mechanism, geometry.mechanism.n, geometry.bases[body], geometry.mechanism.dimension
    mass, s, o = float(ten[9]), ten[6 : 6 + dim], basis.local_origin
    first = s - mass * o
    if dim == 2:  # only the sum of the two counts: the second direction turns with the first
        if not any((ten[5], *s, mass)):
            return np.zeros((n, n)), np.zeros(n)  # what no planar motion depends on
        second = 0.5 * (ten[5] - 2.0 * o @ s + mass * o @ o) * np.eye(2)
    else:
        J = np.array(inertia_matrix(ten))
        second = 0.5 * np.trace(J) * np.eye(3) - J - np.outer(o, s) - np.outer(s, o) + mass * np.outer(o, o)
    k = basis.local.shape[1]
    T = np.linalg.pinv(basis.local) if k else np.zeros((0, dim))
    outside = np.eye(dim) - basis.local @ T
    size = max(float(np.abs(second).max()), float(np.abs(first).max()), 1e-300)
    if max(np.abs(outside @ second @ outside).max(), np.abs(outside @ first).max()) > IN_SPAN * size:
        return None, np.zeros(n)
    weight = np.array(m.gravity) @ (mass * basis.place + np.tensordot(T @ first, basis.maps, axes=1))
    P = np.empty((k + 1, k + 1))
    P[0, 0] = mass
    P[1:, 0] = P[0, 1:] = T @ first
    P[1:, 1:] = T @ second @ T.T
    N = np.concatenate([basis.place[None], basis.maps])[:, :, :n]
    M = np.asarray(np.einsum("ab,aik,bil->kl", P, N, N), dtype=np.float64)
    return 0.5 * (M + M.T), weight[:n]


def _laws(system: NaturalSystem, changed: NaturalSystem | None, name: str = "") -> tuple[Array, Array, Array]:
    """The laws (3, …) of struts and of coordinates' own springs with the unit parameter, rest lengths as they are, and shares of others."""
    out = []
    for key in ("strut_laws", "line_laws"):
        old = getattr(system.forces, key)
        new = old if changed is None else getattr(changed.forces, key)
        out.append(np.stack([new[0] - old[0], old[1], new[2] - old[2]]))
    shares = [float(e.parameter_name == name) for e in system.mechanism.laws]
    return out[0], out[1], np.array(shares, dtype=np.float64)


def _of_element(system: NaturalSystem, element: Element, name: str) -> tuple[Array, Array, Array, Array, Array]:
    n, m = system.n, system.mechanism
    if element.kind == "drive_gain":
        raise CapabilityError(
            "natural",
            f"considered parameter '{name}'",
            "its slope is the signal that it multiplies, which changes with every sample, and slopes are constants here",
            "Observe it in formulation tree (with_formulation('tree')), or consider=False.",
            where=m.name,
        )
    mass, force = np.zeros((n, n)), np.zeros(n)
    scale = next(iter(element.on.values())) if len(element.on) == 1 else 1.0
    for rotor in m.rotors:
        if rotor.name == name:
            mass[m.index(rotor.coordinate), m.index(rotor.coordinate)] = scale**2
    if element.kind == "offset":
        force[m.index(next(iter(element.on)))] = -scale
    springs = tuple(replace(s, stiffness=s.stiffness + scale**2) if s.name == name else s for s in m.springs)
    dampers = tuple(replace(d, coefficient=d.coefficient + scale**2) if d.name == name else d for d in m.dampers)
    geometry = Geometry(replace(m, springs=springs, dampers=dampers))
    return mass, force, *_laws(system, replace(system, geometry=geometry, forces=forces_of(geometry)), name)
