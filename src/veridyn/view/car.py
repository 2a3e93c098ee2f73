"""A car as a picture: the body as a box with a cabin, and four wheels, from the run of a simulation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veridyn.simulate.vehicle.run import VehicleRun
from veridyn.spatial.rotations import rot_x, rot_y, rot_z
from veridyn.view.scene import CarriedSolid, Layer, Scene, scene
from veridyn.view.solids import hull

Array = NDArray[np.float64]
CORNERS = 10  # of either side of a wheel: few enough that it is seen to turn
WHEEL_WIDTH = 0.2  # m
BOXES = 4  # along the body
FRAMES = 200


def car_scene(run: VehicleRun, title: str, frames: int = FRAMES) -> Scene:
    """A drive, seen from beside the car; the ground below the chassis origin leaves a trail on its way."""
    kept = np.unique(np.linspace(0, len(run) - 1, frames).astype(int))
    R, p = run.attitude[kept], run.position[kept]
    places, solids = [np.broadcast_to([0.0, 0.0, -0.6], p.shape)], []
    for corners in _body(run):
        middle = corners.mean(axis=0)
        solids.append(_carried("body", len(places), corners - middle, R))
        places.append(np.broadcast_to(middle, p.shape))
    turn = 2.0 * np.pi * np.arange(CORNERS) / CORNERS
    side = np.array([0.0, 0.5 * WHEEL_WIDTH, 0.0])
    for i in range(4):
        centre, W = _wheel(run, kept, i)
        radius = float(run.vehicle.packed().tyres.radius[i])
        ring = radius * np.column_stack([np.sin(turn), np.zeros(CORNERS), np.cos(turn)])
        solids.append(_carried("wheel", len(places), np.concatenate([ring + side, ring - side]), R @ W))
        places.append(centre)
    points = p[:, None] + np.einsum("nij,nkj->nki", R, np.stack(places, axis=1))
    layer = Layer("car", points, (), trails=[0], solids=solids)
    return scene(run.t[kept], [layer], title, len(kept), follow=True, view=(-50.0, 18.0))


def _carried(name: str, point: int, corners: Array, turns: Array) -> CarriedSolid:
    made = hull(name, corners)
    assert made is not None  # corners have an extent
    return CarriedSolid(point, made.vertices, made.faces, turns)


def _body(run: VehicleRun) -> list[Array]:
    """Corners (8, 3) in the chassis frame: of boxes from bumper to bumper, and of the cabin on them.

    A player draws faces by the depth of their middle, which small ones have right.
    """
    half, low, high, roof = 0.86, -0.15, 0.35, 0.85
    ends = np.linspace(-0.9, run.vehicle.wheelbase + 0.85, BOXES + 1)
    boxes = [[(x, y, z) for z in (low, high) for x in pair for y in (half, -half)] for pair in pairwise(ends.tolist())]
    top = [(x, y, roof) for x in (0.2, 1.55) for y in (0.6, -0.6)]
    foot = [(x, y, high) for x in (-0.4, 2.25) for y in (0.75, -0.75)]
    return [np.array(corners) for corners in (*boxes, [*top, *foot])]


def _wheel(run: VehicleRun, kept: NDArray[np.intp], i: int) -> tuple[Array, Array]:
    """Centre (n, 3) of wheel i in the chassis frame, and its rotation Rz Rx Ry (n, 3, 3) by steering, camber and its own angle."""
    x, y = run.vehicle.places()[i]
    place, z = run.wheel_place[0][kept, i], run.clearance[0][kept, i]
    centre = np.stack([x + place[:, 1], y + place[:, 0], z], axis=1)
    toe, camber = place[:, 2], place[:, 3]
    turns = np.array(
        [
            rot_z(a) @ rot_x(b) @ rot_y(c)
            for a, b, c in zip(toe.tolist(), camber.tolist(), run.wheel_angle[0][kept, i].tolist(), strict=True)
        ]
    )
    return centre, turns


def body_of(front: float, rear: float, track: float) -> tuple[Array, list[tuple[int, int]]]:
    """A car about its centre of mass: points (k, 3) in m, the first on the ground below it, and the lines between them."""
    half, low, high, roof = track / 2.0 + 0.05, 0.2, 0.7, 1.2
    ends = ((-rear - 0.7, half), (front + 0.7, half), (front + 0.7, -half), (-rear - 0.7, -half))
    points = [(0.0, 0.0, 0.0), *((x, y, z) for z in (low, high) for x, y in ends)]
    cabin = (
        (-0.9 * rear, 0.75 * half),
        (0.35 * front, 0.75 * half),
        (0.35 * front, -0.75 * half),
        (-0.9 * rear, -0.75 * half),
    )
    points += [(x, y, roof) for x, y in cabin] + [(x * 1.15 + 0.15, y * 1.2, high) for x, y in cabin]
    ring = [(a, (a + 1) % 4) for a in range(4)]
    lines = [(1 + a, 1 + b) for a, b in ring] + [(5 + a, 5 + b) for a, b in ring] + [(1 + a, 5 + a) for a in range(4)]
    lines += [(9 + a, 9 + b) for a, b in ring] + [(9 + a, 13 + a) for a in range(4)]
    return np.array(points), lines


def standing_wheel(at: Array, steer: float, points: int, radius: float = 0.32) -> Array:
    """A ring (points, 3) on the ground below `at` (2,), turned by `steer` (rad) about the vertical."""
    turn = 2.0 * np.pi * np.arange(points) / points
    along, up = radius * np.cos(turn), radius * (1.0 + np.sin(turn))
    return np.column_stack([at[0] + along * np.cos(steer), at[1] + along * np.sin(steer), up])
