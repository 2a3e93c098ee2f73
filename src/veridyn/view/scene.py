"""A machine that moves, as points and the lines between them: what the player of a report shows.

Several layers may share a scene, such as the true machine and the one an observer estimates. Of a tree, joints are joined to the joints
before them, ends of loops, and the centre of mass of what comes last; of a mechanism in natural coordinates, points within each body,
with particles as cubes and the rails on which bodies slide.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Marker
from veridyn.spatial.rotations import quaternion
from veridyn.view.meshes import BodyMesh, box

FRAMES = 240  # that a page carries at most
Meaning = Literal["truth", "estimate", "plain", "measured"]  # each has one colour; style.css says which
FINE = 4096  # steps over the size of the scene
QUATERNION_STEPS = 1000  # of 1, in the attitudes of solids
SHORTEST_LINE_M = 1e-9  # m: shorter lines are left out
CUBE_SHARE = 0.08  # of the size of a machine: the heaviest of the bodies that are drawn as cubes


@dataclass(frozen=True, eq=False)
class CarriedSolid:
    """A solid that turns about a point of a layer: `vertices` (v, 3) from that point in m, `faces` (f, 3), `turns` (frames, 3, 3)."""

    point: int
    vertices: Array
    faces: NDArray[np.int64]
    turns: Array

    def payload(self, step: float) -> dict[str, object]:
        turns = np.rint(QUATERNION_STEPS * np.array([quaternion(R) for R in self.turns])).astype(int)
        corners = np.rint(self.vertices / step).astype(int)
        return {
            "point": self.point,
            "vertices": corners.ravel().tolist(),
            "faces": self.faces.ravel().tolist(),
            "turns": turns.ravel().tolist(),
        }


@dataclass(frozen=True)
class Layer:
    """Points over time, (frames, points, 3) in metres, and pairs of point numbers to join; `trails` are points that leave a line behind.

    `meaning` gives it the colour that this meaning has everywhere; without one it takes the next of the page's colours. `solids`: bodies
    that its points carry.
    """

    label: str
    points: Array
    segments: Sequence[tuple[int, int]]
    trails: Sequence[int] = ()
    dashed: bool = False
    meaning: Meaning | None = None
    solids: Sequence[CarriedSolid] = ()


@dataclass(frozen=True)
class Gauge:
    """What a joint carries, beside its point of the first layer: `measured` and `predicted` (frames,) in `unit`.

    `noise`: the deviation of the measured value; the point is coloured by how many of these measured and predicted are apart.
    """

    point: int
    label: str
    unit: str
    measured: Array
    predicted: Array
    noise: float

    def payload(self) -> dict[str, object]:
        size = float(np.nanmax(np.abs([self.measured, self.predicted]), initial=0.0)) or 1.0

        def shares(values: Array) -> list[float | None]:
            return [round(float(v) / size, 4) if np.isfinite(v) else None for v in values]

        return {
            "point": self.point,
            "label": self.label,
            "unit": self.unit,
            "size": size,
            "measured": shares(self.measured),
            "predicted": shares(self.predicted),
            "noise": self.noise / size,
        }


@dataclass(frozen=True)
class Scene:
    """Layers on one clock. `up` is the axis that points upwards; `view` are azimuth and elevation of the eye, degrees."""

    t: Array
    layers: tuple[Layer, ...]
    title: str
    up: str = "z"
    view: tuple[float, float] = (-60.0, 20.0)
    follow: bool = False  # the eye travels with the middle of the first layer
    gauges: tuple[Gauge, ...] = ()

    def payload(self) -> str:
        """Everything the player needs, as JSON; coordinates are whole steps of a grid that is fine beside the scene."""
        low, step = self.grid()
        layers = [
            {
                "label": layer.label,
                "dashed": layer.dashed,
                "meaning": layer.meaning or "",
                "segments": [list(s) for s in layer.segments],
                "trails": list(layer.trails),
                "points": np.rint((layer.points - low) / step).astype(int).reshape(len(self.t), -1).tolist(),
                "solids": [solid.payload(step) for solid in layer.solids],
            }
            for layer in self.layers
        ]
        about = {"title": self.title, "up": self.up, "view": list(self.view), "follow": self.follow}
        times = [round(float(t), 4) for t in self.t]
        gauges = [gauge.payload() for gauge in self.gauges]
        text = json.dumps(
            {**about, "gauges": gauges, "t": times, "step": step, "low": low.tolist(), "layers": layers},
            separators=(",", ":"),
        )
        return text.replace("<", "\\u003c")  # a label cannot end the script element

    def grid(self) -> tuple[Array, float]:
        """The corner of all points, and the step of the grid: fine beside all of them, or beside the machine that the eye follows."""
        every = np.concatenate([layer.points.reshape(-1, 3) for layer in self.layers])
        low = every.min(axis=0)
        size = float((every.max(axis=0) - low).max() or 1.0)
        if self.follow:
            size = float(max(np.ptp(layer.points, axis=1).max() for layer in self.layers)) or size
        return low, size / FINE


def scene(
    t: ArrayLike,
    layers: Sequence[Layer],
    title: str,
    frames: int = FRAMES,
    gauges: Sequence[Gauge] = (),
    **settings: object,
) -> Scene:
    """A scene of at most `frames` frames, evenly spaced in time, from layers and gauges that share the clock `t`."""
    times = np.asarray(t, dtype=np.float64)
    for layer in layers:
        shape = np.shape(layer.points)
        if len(shape) != 3 or shape[0] != len(times) or shape[2] != 3:
            what = "the points of a scene have the wrong shape."
            raise DataError(
                what, where=f"layer '{layer.label}'", expected=f"({len(times)}, points, 3)", found=str(shape)
            )
        if not np.isfinite(layer.points).all():
            raise DataError("a scene cannot show points that are not finite.", where=f"layer '{layer.label}'")
        wrong = [s for s in layer.segments if not all(0 <= k < shape[1] for k in s)]
        if wrong:
            raise DataError(
                "a line joins points that are not there.", where=f"layer '{layer.label}'", found=str(wrong[0])
            )
    wanted = np.linspace(times[0], times[-1], min(frames, len(times)))
    kept = np.unique(np.searchsorted(times, wanted, side="left").clip(0, len(times) - 1))
    fewer = tuple(
        replace(
            layer,
            points=np.asarray(layer.points, dtype=np.float64)[kept],
            solids=[replace(solid, turns=solid.turns[kept]) for solid in layer.solids],
        )
        for layer in layers
    )
    few = tuple(replace(g, measured=g.measured[kept], predicted=g.predicted[kept]) for g in gauges)
    return Scene(times[kept], fewer, title, gauges=few, **settings)  # pyright: ignore[reportArgumentType]


def tree_layer(
    machine: Machine,
    q: Array,
    label: str,
    position: Array | None = None,
    rotation: Array | None = None,
    dashed: bool = False,
    meaning: Meaning | None = None,
    solids: Sequence[BodyMesh] = (),
) -> Layer:
    """The machine at coordinates (N, n); `position` (N, 3) and `rotation` (N, 3, 3) place a free base in the ground's frame.

    A body from which nothing goes on ends at its centre of mass, where that is known. The last of these ends leaves a line behind.
    `solids`: what its bodies look like.
    """
    N = len(q)
    R0 = np.broadcast_to(np.eye(3), (N, 3, 3)) if rotation is None else rotation
    p0 = np.zeros((N, 3)) if position is None else position

    def world(x: Array) -> Array:
        return p0 + np.einsum("nij,nj->ni", R0, x)

    bodies, poses = bodies_of(machine), Posture(machine, q).frames()
    points, lines = [world(np.zeros((N, 3)))], []
    at = {GROUND: 0}
    for b in bodies:
        at[b.name] = len(points)
        points.append(world(poses[b.name][1]))
        if b.antecedent is not None:
            lines.append((at[b.antecedent], at[b.name]))

    def on(body: str, place: Array) -> int:
        """A place on a body, joined to the body's origin."""
        where = np.broadcast_to(place, (N, 3))
        if body != GROUND:
            A, p = poses[body]
            where = p + A @ place
        points.append(world(where))
        lines.append((at[body], len(points) - 1))
        return len(points) - 1

    for joint in machine.cut_joints:
        ends = [on(end.body, np.asarray(end.placement.position)) for end in machine.ends(joint)]
        if joint.kind == "distance":
            lines.append((ends[0], ends[1]))
    carried = {b.antecedent for b in bodies} | {e.body for joint in machine.cut_joints for e in machine.ends(joint)}
    tips = [
        on(b.name, centre) for b in bodies if b.name not in carried and (centre := _centre(machine, b.name)) is not None
    ]
    placed = np.stack(points, axis=1)
    long = [(a, b) for a, b in lines if np.linalg.norm(placed[:, a] - placed[:, b], axis=1).max() > SHORTEST_LINE_M]
    carrying = [CarriedSolid(at[s.body], s.vertices, s.faces, R0 @ poses[s.body][0]) for s in solids]
    return Layer(label, placed, long, trails=tips[-1:], dashed=dashed, meaning=meaning, solids=carrying)


def drawn_places(machine: Machine) -> list[tuple[int, tuple[float, float, float]]]:
    """The points of :func:`tree_layer` of an open machine, in its order: the number of a body, −1 for the ground, and a place on it."""
    bodies, nowhere = bodies_of(machine), (0.0, 0.0, 0.0)
    carried = {b.antecedent for b in bodies}
    found = [(-1, nowhere), *((j, nowhere) for j in range(len(bodies)))]
    for j, b in enumerate(bodies):
        if b.name not in carried and (centre := _centre(machine, b.name)) is not None:
            found.append((j, (float(centre[0]), float(centre[1]), float(centre[2]))))
    return found


def _centre(machine: Machine, body: str) -> Array | None:
    """The centre of mass of a body in its frame, where it has one."""
    b, p = machine.by_name.get(body), machine.parameters
    if b is None or not b.real:
        return None
    mass, moments = p[b.parameter("M")], np.array([p[b.parameter(f"M{a}")] for a in "XYZ"])
    if not (np.isfinite(mass) and mass > 0.0 and np.isfinite(moments).all()):
        return None
    return moments / mass


def mechanism_layer(
    label: str, machine: NaturalSystem, q: Array, dashed: bool = False, meaning: Meaning | None = None
) -> Layer:
    """Every point of the mechanism, in its own order, at coordinates (N, n), then pins on bodies; lines between those of each body.

    A body with mass and a single place, such as the load of a crane, is a cube there, whose volume goes with its mass.
    """
    m, g = machine.mechanism, machine.geometry
    y = np.concatenate([q, np.ones((len(q), 1))], axis=1)
    maps = [g.elements[p.name] for p in m.points]
    index = {p.name: k for k, p in enumerate(m.points)}
    places = {b.name: [index[p] for p in b.points] for b in m.bodies}
    for end in (end for joint in m.joints for end in (joint.a, joint.b)):
        if isinstance(end, Marker) and end.body in places:
            places[end.body].append(len(maps))
            maps.append(g.point(end))
    points = np.zeros((len(q), len(maps), 3))
    for k, map_ in enumerate(maps):
        points[:, k, : m.dimension] = y @ map_.T
    segments, single = [], []
    for b in m.bodies:
        own = places[b.name]
        segments += list(itertools.pairwise(own)) + ([(own[-1], own[0])] if len(own) > 2 else [])
        if b.mass > 0.0 and len(own) == 1:
            single.append((own[0], b.mass))
    return Layer(label, points, segments, dashed=dashed, meaning=meaning, solids=_cubes(points, single))


def _cubes(points: Array, single: Sequence[tuple[int, float]]) -> list[CarriedSolid]:
    """Cubes at points (by number, with their mass in kg), the heaviest `CUBE_SHARE` of the machine's size wide."""
    size = float(np.ptp(points[0], axis=0).max(initial=0.0)) if len(points) else 0.0
    if not single or size == 0.0:
        return []
    heaviest = max(mass for _, mass in single)
    corners, faces = box(np.ones(3))
    upright = np.broadcast_to(np.eye(3), (len(points), 3, 3))
    return [CarriedSolid(k, CUBE_SHARE * size * (m / heaviest) ** (1 / 3) * corners, faces, upright) for k, m in single]


def rail_ends(machine: NaturalSystem, q: Array, beyond: float) -> Array:
    """The ends (rails, 2, 3) of the ground's rails: as far as a body with mass slides on them at coordinates (N, n), and `beyond` (m)."""
    m, g = machine.mechanism, machine.geometry
    y = np.concatenate([q, np.ones((len(q), 1))], axis=1)
    heavy = {b.name for b in m.bodies if b.mass > 0.0} | {p for b in m.bodies if b.mass > 0.0 for p in b.points}
    found = []
    for joint in m.joints:
        on, carried = joint.a, joint.b
        if not isinstance(on, Marker) or on.body != GROUND or joint.kind not in ("cylindrical", "sliding", "inline"):
            continue
        if (carried.body if isinstance(carried, Marker) else carried) not in heavy:
            continue
        start, axis = np.array(on.at), np.array(on.axis) / np.linalg.norm(on.axis)
        along = (y @ g.point(carried).T - start) @ axis
        ends = np.zeros((2, 3))
        ends[:, : m.dimension] = start + np.outer([along.min() - beyond, along.max() + beyond], axis)
        found.append(ends)
    return np.array(found).reshape(-1, 2, 3)


def with_rails(layer: Layer, ends: Array) -> Layer:
    """The layer with lines between `ends` (rails, 2, 3) that stand still."""
    first, fixed = layer.points.shape[1], ends.reshape(-1, 3)
    points = np.concatenate([layer.points, np.broadcast_to(fixed, (len(layer.points), *fixed.shape))], axis=1)
    lines = [(first + 2 * k, first + 2 * k + 1) for k in range(len(ends))]
    return replace(layer, points=points, segments=[*layer.segments, *lines])
