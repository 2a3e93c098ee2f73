"""Machines twice, as a tree and in natural coordinates, and states that are the same on both.

A state of the tree becomes one in natural coordinates by Pinocchio: places, velocities and accelerations of points and vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from strangers.pinocchio_sensors import WORLD, PinSensors
from veridyn.machines import crane, linkage, spatial
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.elsewhere import actuators
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body, Loop
from veridyn.model.motion import Motion
from veridyn.model.place import Assembly, Attachment, Marker
from veridyn.model.point_parts import Angle, Point, uniform_bar
from veridyn.model.sensor import Sensor
from veridyn.spatial.rotations import Placement, rot_z, rotation_to_axis

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Twin:
    """`places`: moving point or vector of the mechanism → where it is on the tree. `angles`: added coordinate → sum of the tree's.

    `plane`: the ground's axes of the tree in which a planar mechanism lies.
    """

    tree: Tree
    mechanism: Mechanism
    places: Mapping[str, Marker]
    angles: Mapping[str, Mapping[str, float]]
    plane: str = "xyz"

    def states(self, rng: np.random.Generator, samples: int) -> Motion:
        """States of the tree that keep its loops closed."""
        own = actuators(self.tree)
        start = {**self.tree.assembly.hold, **self.tree.assembly.guess}
        t, q = 0.01 * np.arange(samples), np.array([start.get(c, 0.3) for c in own.coordinates])
        given = Motion(
            t,
            q + 0.03 * np.cumsum(rng.normal(size=(samples, own.n)), axis=0),
            rng.normal(size=(samples, own.n)),
            rng.normal(size=(samples, own.n)),
        )
        return closed_motion(self.tree, t, given.q, given.qd, given.qdd) if self.tree.loops else given

    def natural(self, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
        """The same state in natural coordinates."""
        stranger = PinSensors(self.tree, [Sensor(n, "velocity", at, 0.1) for n, at in self.places.items()])
        stranger.update(q, qd, qdd)
        model, data = stranger.pin.model, stranger.pin.data
        axes = ["xyz".index(c) for c in self.plane]
        rows: list[list[Array]] = [[], [], []]
        for e in (*self.mechanism.points, *self.mechanism.vectors):
            if e.fixed:
                continue
            f = stranger.frames[e.name, "on"]
            V = pin.getFrameVelocity(model, data, f, WORLD)
            if e in self.mechanism.points:
                a = pin.getFrameClassicalAcceleration(model, data, f, WORLD).linear
                found = (data.oMf[f].translation, V.linear, a)
            else:
                u = data.oMf[f].rotation[:, 0]
                rate = np.cross(V.angular, u)
                turn = pin.getFrameAcceleration(model, data, f, WORLD).angular
                found = (u, rate, np.cross(turn, u) + np.cross(V.angular, rate))
            for row, value in zip(rows, found, strict=True):
                row.append(np.array(value)[axes])
        weights = [[self.angles[a.name].get(c, 0.0) for c in self.tree.coordinates] for a in self.mechanism.added]
        parts = zip(rows, (q, qd, qdd), strict=True)
        x, xd, xdd = (np.concatenate([*row, np.array(weights) @ values]) for row, values in parts)
        return x, xd, xdd


def crane_twin() -> Twin:
    """The rope's frame at the trolley, its x along the rope: as the bar of the mechanism has it."""
    hanging = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rail = rotation_to_axis((1.0, 0.0, 0.0))
    bodies = [
        Body("trolley", joint="sliding", placement=Placement(rail), coordinate="x"),
        Body("rope", "trolley", placement=Placement(rail.T @ hanging), coordinate="swing"),
    ]
    tree = Tree.build(bodies, name="crane", gravity=(0.0, -9.81, 0.0))
    places = {"T": Marker("trolley", (0, 0, 0)), "L": Marker("rope", (6, 0, 0))}
    return Twin(tree, mechanism_of(crane()), places, {"x": {"x": 1.0}, "swing": {"swing": 1.0}}, "xy")


def linkage_twin() -> Twin:
    """The shipped linkage, in natural coordinates: three bars in the plane of the ground's x and z."""
    bars = [uniform_bar("crank", "A", "1", 0.2, 1.0), uniform_bar("coupler", "1", "2", 0.5, 1.0)]
    mechanism = Mechanism.build(
        [Point("A", (0, 0), True), Point("B", (0.45, 0), True), Point("1", (0.1, 0.17)), Point("2", (0.5, 0.4))],
        [*bars, uniform_bar("rocker", "B", "2", 0.4, 1.0)],
        added=[Angle("q1", ("A", "1"), (1, 0)), Angle("rod", ("1", "2"), (1, 0)), Angle("q3", ("B", "2"), (1, 0))],
        gravity=(0, -9.81),
    )
    places = {"1": Marker("coupler", (0, 0, 0)), "2": Marker("coupler", (0.5, 0, 0))}
    angles = {"q1": {"q1": 1.0}, "rod": {"q1": 1.0, "q2": 1.0}, "q3": {"q3": 1.0}}
    return Twin(tree_of(linkage()), mechanism, places, angles, "xz")


def spatial_twin() -> Twin:
    """Each body on a virtual one that turns about the joint's axis; its own frame is the ground's in the pose of the file."""
    mechanism = mechanism_of(spatial())
    at = {p.name: p.at for p in mechanism.points}
    wrist = at["TA"]
    joints: Sequence[tuple[str, str, str, Sequence[float], Sequence[float], float, bool]] = [
        ("lower_a", "ground", "shoulder", at["OA"], (0.0, 0.0, 1.0), np.arctan2(0.6, 0.8), True),
        ("upper_a", "lower_a", "elbow", at["PA"], (0.8, 0.6, 0.0), np.arctan2(-0.6, 0.08), True),
        ("cross", "upper_a", "wrist_1", wrist, (0.0, 0.6, 0.8), 0.0, False),
        ("rod", "cross", "wrist_2", wrist, (1.0, 0.0, 0.0), 0.0, False),
        ("lower_b", "ground", "base_b", at["OB"], (0.6, 0.0, 0.8), 0.0, True),
        ("upper_b", "lower_b", "elbow_b", at["PB"], (1.0, 0.0, 0.0), 0.0, False),
    ]
    bodies = []
    for name, before, coordinate, place, axis, start, actuated in joints:
        R, p = rotation_to_axis(axis), np.array(place)
        turned = Placement(R @ rot_z(-start), p)
        bodies.append(
            Body(f"joint {name}", before, "turning", turned, actuated=actuated, real=False, coordinate=coordinate)
        )
        bodies.append(Body(name, f"joint {name}", "fixed", Placement(R.T, -R.T @ p)))
    ends = [Attachment(body, Placement(position=at["TB"])) for body in ("rod", "upper_b")]
    tree = Tree.build(
        bodies,
        name="spatial",
        gravity=mechanism.gravity,
        loops=[Loop("tip", "spherical", *ends)],
        assembly=Assembly(hold={c: start for _, _, c, _, _, start, on in joints if on}),
    )
    carrier = {e: b.name for b in mechanism.bodies for e in b.elements}
    vectors = {v.name: Marker(carrier[v.name], (0, 0, 0), v.along, across(v.along)) for v in mechanism.vectors}
    points = {p.name: Marker(carrier[p.name], p.at) for p in mechanism.points}
    moving = {e.name for e in (*mechanism.points, *mechanism.vectors) if not e.fixed}
    places = {name: marker for name, marker in {**points, **vectors}.items() if name in moving}
    return Twin(tree, mechanism, places, {c: {c: 1.0} for c in ("shoulder", "elbow", "base_b")})


def across(u: Sequence[float]) -> Array:
    """Any direction that is not along u."""
    return np.eye(3)[int(np.argmin(np.abs(u)))]
