"""What acts on a machine in natural coordinates and is in its log: the same channels, by the same names, as on its tree.

Measured wrenches on bodies have generalised forces that are linear in the coordinates, as those of torques are:

    force f along the body's axis a at its origin o      Q = f (∂o/∂q)ᵀ a(q)
    moment m about a, with a = v × w                     power m a·ω = m ½ (v̇·w − v·ẇ) = m yᵀ G q̇,   Q = m Gᵀ y,   y = (q, 1)

In the plane fz, mx and my move nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, Fault, ModelError, did_you_mean
from veridyn.mechanics.formulation import WRENCH
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.load import Drive, Torque, channels
from veridyn.model.machine import Machine

FORCE = "force."
ABOUT = ((1, 2), (2, 0), (0, 1))  # the axes v and w whose product is x, y and z


def motor_names(machine: Machine) -> tuple[str, ...]:
    """force.C of every coordinate with a motor that is not prescribed, from the description alone."""
    motors = (c for j in machine.joints for c, on in zip(j.coordinate_names, j.motors, strict=True) if on)
    return tuple(f"{FORCE}{c}" for c in dict.fromkeys(motors) if c not in machine.prescribed)


def with_motor_inputs(machine: Machine, inputs: Sequence[str]) -> Machine:
    """The machine with a drive named force.C for each such input, so that natural coordinates take it as a tree does: it adds to what
    else acts on the coordinate C."""
    own = {load.name for load in machine.loads}
    wanted = [name for name in dict.fromkeys(inputs) if name.startswith(FORCE) and name not in own]
    if not wanted:
        return machine
    known = motor_names(machine)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise ModelError([Fault(f"there is no input '{name}'.", where=machine.name, hint=hint) for name in unknown])
    carried = None if machine.description is None else {a.name for a in machine.description.added}
    for name in wanted:
        if carried is not None and name.removeprefix(FORCE) not in carried:
            raise CapabilityError(
                "natural",
                f"input '{name}'",
                "a force acts on an added angle or distance, and its points have none of that name",
                "Add it to the coordinates of the model, or observe the machine in formulation tree.",
                where=machine.name,
            )
    return replace(machine, loads=(*machine.loads, *(Drive(n, n.removeprefix(FORCE)) for n in wanted)))


def inputs_on_points(machine: Machine, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the channels of a log that act on a machine in natural coordinates."""
    found = [*motor_names(machine), *(f"signal.{e.signal}" for e in machine.elements if e.kind == "drive_gain")]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += [name for load in machine.loads for name in channels(load)]
    for link in machine.links:
        six = [f"{WRENCH}{link.name}.{row}" for row in WRENCH_ROWS]
        found += six if all(name in names for name in six) else []
    if machine.dimension == 2:  # as a tree calls them
        found += [f"{load.name}.z" for load in machine.loads if isinstance(load, Torque) and load.name not in names]
    return tuple(name for name in dict.fromkeys(found) if name in names)


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
