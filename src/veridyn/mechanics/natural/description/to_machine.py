"""A machine of points, unit vectors and bodies: shared points and vectors are joints, angles and distances their coordinates.

The machine keeps the points, vectors and added coordinates as they were written, so that its own mechanism is the one it was made of.
A particle has no orientation, and a rod none about its line: a joint that would let them turn without moving any mass holds them instead.
The frames of a joint are laid so that its coordinate and the added angle or distance have the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError
from veridyn.mechanics.natural.description.found_joints import MechanismJoints, Pose, in_space
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.model.coordinates import free_root, spanning_of
from veridyn.model.elements.element import Element
from veridyn.model.graph import Formulation, MachineGraph, PointDescription, placed_element
from veridyn.model.link import Joint, Link, values_of
from veridyn.model.load import Drive, Load, Transmission
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Assembly, Attachment, Marker, PointRef
from veridyn.model.point_parts import (
    Added,
    Angle,
    Damper,
    Distance,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    Spring,
    UnitVector,
    held,
    ten_of,
)
from veridyn.model.sensor import Sensor
from veridyn.spatial.rotations import Placement, rot_x

PERPENDICULAR_COSINE = 1e-9  # cosine below which two directions are perpendicular
ON_AXIS_M = 1e-9  # m
TURN_AT = {"turning": 0, "cylindrical": 1, "planar": 2}  # which coordinate of a joint is its turn about z
SLIDE_AT = {"sliding": 0, "cylindrical": 0}


class CoordinateNaming:
    """Gives joints the names of added coordinates; those that no joint has stay with natural coordinates."""

    def __init__(
        self,
        m: Mechanism,
        joints: Sequence[Joint],
        poses: Mapping[str, Pose],
        pins: Mapping[str, tuple[str, Array]],
    ) -> None:
        self.m, self.poses, self.pins = m, poses, pins
        self.joints = list(joints)
        self.names: dict[tuple[int, int], str] = {}
        self.groups = self._groups(("sliding", "fixed"))
        self.rigid = self._groups(("fixed",))

    def named(self) -> list[Joint]:
        for a in self.m.added:
            if isinstance(a, Angle):
                self._angle(a)
            elif isinstance(a, Distance):
                self._distance(a)
        out = []
        for k, joint in enumerate(self.joints):
            own = list(joint.coordinate_names)
            given = [self.names.get((k, i), c) for i, c in enumerate(own)]
            out.append(joint if given == own else replace(joint, coordinates=tuple(given)))
        return out

    def _groups(self, kinds: tuple[str, ...]) -> dict[str, tuple[str, Array, Array]]:
        """Body → a body of the same orientation (or fixed to it), and the constant rotation and, where fixed, place there."""
        found: dict[str, tuple[str, Array, Array]] = {}
        bodies = dict.fromkeys([GROUND, *(end.body for j in self.joints for end in _ends(j))])
        for root in bodies:
            if root in found:
                continue
            found[root] = (root, np.eye(3), np.zeros(3))
            grown = True
            while grown:
                grown = False
                for j in self.joints:
                    a, b = _ends(j)
                    for near, far in ((a, b), (b, a)):
                        if j.kind in kinds and near.body in found and far.body not in found:
                            top, R, p = found[near.body]
                            turn = near.placement.rotation @ far.placement.rotation.T
                            way = near.placement.position - turn @ far.placement.position
                            found[far.body] = (top, R @ turn, p + R @ way)
                            grown = True
        return found

    def _seen(self, body: str, from_: str, d: Array) -> Array | None:
        """A direction on one body as seen from another of the same orientation."""
        if body not in self.groups or from_ not in self.groups or self.groups[body][0] != self.groups[from_][0]:
            return None
        return self.groups[from_][1].T @ self.groups[body][1] @ d

    def _angle(self, a: Angle) -> bool:
        of = {body: in_space(x) for body, x in held(self.m, a.of).items()}
        start = {body: in_space(x) for body, x in held(self.m, a.reference).items()}
        towards = None if a.towards is None else {body: in_space(x) for body, x in held(self.m, a.towards).items()}
        for k, joint in enumerate(self.joints):
            if joint.kind not in TURN_AT or (k, TURN_AT[joint.kind]) in self.names:
                continue
            ends = _ends(joint)
            for near, far in (ends, ends[::-1]):
                frames = self._turning(near, far, of, start, towards)
                if frames is not None:
                    self.joints[k] = replace(joint, a=frames[0], b=frames[1])
                    self.names[k, TURN_AT[joint.kind]] = a.name
                    return True
        return False

    def _turning(
        self,
        near: Attachment,
        far: Attachment,
        of: Mapping[str, Array],
        start: Mapping[str, Array],
        towards: Mapping[str, Array] | None,
    ) -> tuple[Attachment, Attachment] | None:
        """Frames of a joint whose angle is that of `of`, on the far body, counted from `start` towards `towards` on the near one."""
        d = next((x for body, v in of.items() if (x := self._seen(body, far.body, v)) is not None), None)
        e = next((x for body, v in start.items() if (x := self._seen(body, near.body, v)) is not None), None)
        if d is None or e is None:
            return None
        z_near, z_far = near.placement.rotation[:, 2], far.placement.rotation[:, 2]
        if towards is None:
            n = np.array([0.0, 0.0, 1.0])
        else:
            f = next((x for body, v in towards.items() if (x := self._seen(body, near.body, v)) is not None), None)
            if f is None:
                return None
            n = np.cross(e / np.linalg.norm(e), f / np.linalg.norm(f))
        along = float(n @ z_near)
        if abs(abs(along) - 1.0) > PERPENDICULAR_COSINE or abs(
            float(e @ z_near)
        ) > PERPENDICULAR_COSINE * np.linalg.norm(e):
            return None
        z_near, z_far = np.sign(along) * z_near, np.sign(along) * z_far
        d = d - (d @ z_far) * z_far
        if np.linalg.norm(d) < 1e-6:
            return None
        return _framed(near, e, z_near), _framed(far, d, z_far)

    def _distance(self, s: Distance) -> bool:
        for k, joint in enumerate(self.joints):
            if joint.kind not in SLIDE_AT or (k, SLIDE_AT[joint.kind]) in self.names:
                continue
            ends = _ends(joint)
            for near, far in (ends, ends[::-1]):
                frames = self._sliding(near, far, s)
                if frames is not None:
                    self.joints[k] = replace(joint, a=frames[0], b=frames[1])
                    self.names[k, SLIDE_AT[joint.kind]] = s.name
                    return True
        return False

    def _sliding(self, near: Attachment, far: Attachment, s: Distance) -> tuple[Attachment, Attachment] | None:
        """Frames of a joint whose way is the distance from `s.a`, on the near body, to `s.b` on the far one."""
        A, B = self._on(s.a, near.body), self._on(s.b, far.body)
        if A is None or B is None:
            return None
        z_near, z_far = near.placement.rotation[:, 2], far.placement.rotation[:, 2]
        off_near, off_far = near.placement.position - A, B - far.placement.position
        offset = float(z_near @ off_near + z_far @ off_far)
        if s.along is None:
            across = [off_near - (off_near @ z_near) * z_near, off_far - (off_far @ z_far) * z_far]
            if max(np.linalg.norm(x) for x in across) > ON_AXIS_M:
                return None
            (R, p), (Q, o) = self.poses[near.body], self.poses[far.body]
            sign = float(np.sign((R @ z_near) @ (o + Q @ B - p - R @ A)))
        else:
            along = next(
                (
                    x
                    for body, v in held(self.m, s.along).items()
                    if (x := self._seen(body, near.body, in_space(v))) is not None
                ),
                None,
            )
            if along is None:
                return None
            cosine = float(along @ z_near) / float(np.linalg.norm(along))
            if abs(abs(cosine) - 1.0) > PERPENDICULAR_COSINE:
                return None
            sign = float(np.sign(cosine))
        flip = np.eye(3) if sign > 0.0 else rot_x(np.pi)
        a = Placement(near.placement.rotation @ flip, near.placement.position - offset * z_near)
        b = Placement(far.placement.rotation @ flip, far.placement.position)
        return Attachment(near.body, a), Attachment(far.body, b)

    def _on(self, ref: PointRef, body: str) -> Array | None:
        """A place in a body's frame, where the body, or one fixed to it, has it."""
        if isinstance(ref, Marker):
            places = {ref.body: in_space(ref.at)}
        else:
            places = {b.name: in_space(b.points[ref]) for b in self.m.bodies if ref in b.points}
            fixed = next((p for p in self.m.points if p.name == ref and p.fixed), None)
            places |= {} if fixed is None else {GROUND: in_space(fixed.at)}
        if body in self.pins and (pin := self.pins[body])[0] in places:
            return np.zeros(3) if np.linalg.norm(places[pin[0]] - pin[1]) <= ON_AXIS_M else None
        for owner, at in places.items():
            if owner in self.rigid and body in self.rigid and self.rigid[owner][0] == self.rigid[body][0]:
                _, R, p = self.rigid[owner]
                _, S, o = self.rigid[body]
                return S.T @ (p + R @ at - o)
        return None


def _ends(joint: Joint) -> tuple[Attachment, Attachment]:
    assert isinstance(joint.a, Attachment) and isinstance(joint.b, Attachment)
    return joint.a, joint.b


def _framed(end: Attachment, x: Array, z: Array) -> Attachment:
    x = x / np.linalg.norm(x)
    return Attachment(end.body, Placement(np.column_stack([x, np.cross(z, x), z]), end.placement.position))


@checked
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
    motor_inertias = [Element(kind="inertia", on=r.weights, value=r.inertia, name=r.name) for r in mechanism.rotors]
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
