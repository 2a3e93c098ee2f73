"""A machine of points, unit vectors and bodies: shared points and vectors are joints, angles and distances their coordinates.

The machine keeps the points, vectors and added coordinates as they were written, so that its own mechanism is the one it was made of.
A particle has no orientation, and a rod none about its line: a joint that would let them turn without moving any mass holds them instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError
from veridyn.mechanics.natural.described.coordinates import CoordinateNaming
from veridyn.mechanics.natural.described.joints import MechanismJoints
from veridyn.mechanics.natural.described.pose import Pose
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.assembly import Assembly
from veridyn.model.elements.element import Element
from veridyn.model.elements.transmission import Transmission
from veridyn.model.graph import Formulation, MachineGraph, PointDescription
from veridyn.model.link import Link, values_of
from veridyn.model.load import Drive, Load
from veridyn.model.machine import Machine
from veridyn.model.placed import placed_element
from veridyn.model.point_parts import (
    Added,
    Angle,
    Damper,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    Spring,
    UnitVector,
)
from veridyn.model.sensor import Sensor
from veridyn.model.spanning import free_root, spanning_of
from veridyn.model.ten import ten_of

Array = NDArray[np.float64]


def machine_of_points(
    points: Iterable[Point],
    bodies: Iterable[RigidBody],
    *,
    name: str = "machine",
    vectors: Iterable[UnitVector] = (),
    joints: Iterable[MechanismJoint] = (),
    added: Iterable[Added] = (),
    racks: Iterable[Rack] = (),
    elements: Iterable[Element | Spring | Damper] = (),
    loads: Iterable[Load] = (),
    sensors: Iterable[Sensor] = (),
    prescribed: Sequence[str] = (),
    gravity: Sequence[float] = (),
    transmission: Transmission | None = None,
    assembly: Assembly | None = None,
    formulation: Formulation = "natural",
) -> Machine:
    """Make the machine of points, unit vectors and the rigid bodies that share them, as a model file with the section ``points`` does.

    Parameters
    ----------
    points : where they are when the machine is put together; all in the plane, or all in space.
    bodies : each with the points and vectors that it carries, and its inertia.
    name : of the machine.
    vectors, joints, racks : unit vectors; joints other than shared points and vectors; racks with their pinions.
    added : angles and distances that are coordinates, for what acts on them or reads them.
    elements : springs, dampers, motor inertias and so on.
    loads, sensors, prescribed, transmission, assembly : as :meth:`~veridyn.model.machine.Machine.build` takes them. The machine starts
        where its points are, if no assembly is given.
    gravity : m/s^2, as many numbers as a point has; none if left out.
    formulation : "natural" or "tree", in which it is computed.

    Returns
    -------
    Machine

    Raises
    ------
    ModelError
        With every fault of the description, by name.

    Examples
    --------
    >>> import veridyn as vd
    >>> from veridyn.model.point_parts import Angle, Point, uniform_bar
    >>> points = [Point("O", (0.0, 0.0), fixed=True), Point("P", (0.0, -2.0))]
    >>> swing = Angle("swing", ("O", "P"), (0.0, -1.0))
    >>> rope = uniform_bar("rope", "O", "P", 2.0, 5.0)
    >>> pendulum = vd.model.machine_of_points(points, [rope], added=[swing], gravity=(0.0, -9.81))
    >>> pendulum.formulation, pendulum.coordinates
    ('natural', ('swing',))
    """
    acting = tuple(elements)
    mechanism = Mechanism.build(
        points,
        bodies,
        name=name,
        vectors=vectors,
        joints=joints,
        added=added,
        racks=racks,
        springs=[e for e in acting if isinstance(e, Spring)],
        dampers=[e for e in acting if isinstance(e, Damper)],
        loads=loads,
        gravity=gravity,
        sensors=sensors,
    )
    return machine_of_mechanism(
        mechanism,
        elements=acting,
        prescribed=prescribed,
        transmission=transmission,
        assembly=assembly,
        formulation=formulation,
    )


def machine_of_mechanism(
    mechanism: Mechanism,
    *,
    elements: Sequence[Element | Spring | Damper] | None = None,
    prescribed: Sequence[str] = (),
    transmission: Transmission | None = None,
    assembly: Assembly | None = None,
    formulation: Formulation = "natural",
) -> Machine:
    """The same machine as a graph: ``mechanism_of(machine_of_mechanism(m))`` has the points, vectors, coordinates and forces of `m`.

    Its tree has a coordinate of the same name for each added angle between two bodies at their turning joint, and for each added distance
    along a sliding joint. A body that no joint leads to floats.

    `elements` replace the springs, dampers and rotors of the mechanism, `assembly` the pose in which its points start.
    """
    faults = Faults()
    found = MechanismJoints(mechanism, faults)
    found.collect()
    driven = {load.coordinate for load in mechanism.loads if isinstance(load, Drive)}
    joints = []
    for joint in CoordinateNaming(mechanism, found.joints, found.poses, found.pins).named():
        motors = tuple(c for c in joint.coordinate_names if c in driven)
        joints.append(
            replace(joint, actuated=len(motors) == len(joint.coordinate_names) or motors) if motors else joint
        )
    links = [_link(mechanism, k) for k in range(len(mechanism.bodies))]
    links += [Link(name=name, real=False) for name in found.slides]
    down = np.zeros(3)
    down[: mechanism.dimension] = mechanism.gravity
    description = PointDescription(
        points=mechanism.points,
        bodies=mechanism.bodies,
        vectors=mechanism.vectors,
        joints=mechanism.joints,
        added=mechanism.added,
        racks=mechanism.racks,
        without_tree=tuple(faults.found),
    )
    motor_inertias = [
        Element(kind="inertia", on={r.coordinate: 1.0}, value=r.inertia, name=r.name) for r in mechanism.rotors
    ]
    if elements is None:
        elements = (*mechanism.springs, *mechanism.dampers, *motor_inertias)
    graph = MachineGraph(
        name=mechanism.name,
        links=tuple(links),
        joints=tuple(joints),
        loads=mechanism.loads,
        sensors=mechanism.sensors,
        prescribed=tuple(prescribed),
        transmission=transmission,
        dimension=mechanism.dimension,
        description=description,
    )
    graph = replace(graph, elements=tuple(placed_element(graph, e) for e in elements))
    return Machine.build(
        links,
        joints,
        name=mechanism.name,
        elements=graph.elements,
        loads=mechanism.loads,
        sensors=mechanism.sensors,
        prescribed=prescribed,
        transmission=transmission,
        assembly=_assembly(graph, found.poses) if assembly is None else assembly,
        gravity=down,
        dimension=mechanism.dimension,
        formulation=formulation,
        description=description,
    )


def _link(mechanism: Mechanism, k: int) -> Link:
    body = mechanism.bodies[k]
    ten = ten_of(body, mechanism.dimension)
    return Link(name=body.name, inertia=ten, real=True) if np.any(ten) else Link(name=body.name, real=False)


def _assembly(graph: MachineGraph, poses: Mapping[str, Pose]) -> Assembly:
    """The coordinates of the tree where the description starts the bodies."""
    try:
        spanning = spanning_of(graph)
    except ModelError:
        return Assembly()  # this machine has no tree: asking for it says why
    free = free_root(graph, spanning)
    carriers = [carrier for body, carrier in spanning.carriers.items() if body != free]
    turns = {a.name: a.start for a in (graph.description.added if graph.description else ()) if isinstance(a, Angle)}
    guess: dict[str, float] = {}
    for carrier in carriers:
        a, b = graph.ends(carrier.joint)
        (R, p), (S, o) = poses[a.body], poses[b.body]
        F, G = R @ a.placement.rotation, S @ b.placement.rotation
        way = o + S @ b.placement.position - p - R @ a.placement.position
        for name, value in zip(
            carrier.joint.coordinate_names, values_of(carrier.joint, F.T @ G, F.T @ way), strict=True
        ):
            start = turns.get(name, np.nan)
            if np.isfinite(start):
                value += 2.0 * np.pi * np.round((start - value) / (2.0 * np.pi))
            guess[name] = float(value)
    return Assembly(guess=guess)
