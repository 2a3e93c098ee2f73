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
FRAMES = 200


def car_scene(run: VehicleRun, title: str, frames: int = FRAMES) -> Scene:
    """A drive, seen from beside the car; the ground below the chassis origin leaves a trail on its way."""
    kept = np.unique(np.linspace(0, len(run) - 1, frames).astype(int))
    R, p = run.attitude[kept], run.position[kept]
    places, solids = [np.broadcast_to([0.0, 0.0, -0.6], p.shape)], []
    for corners, faces in _body(run):
        middle = corners.mean(axis=0)
        solids.append(CarriedSolid(len(places), corners - middle, faces, R))
        places.append(np.broadcast_to(middle, p.shape))
    turn = 2.0 * np.pi * np.arange(CORNERS) / CORNERS
    side = np.array([0.0, 0.5 * WHEEL_WIDTH, 0.0])
    for i in range(4):
        centre, W = _wheel(run, kept, i)
        radius = float(run.vehicle.packed().tyres.radius[i])
        ring = radius * np.column_stack([np.sin(turn), np.zeros(CORNERS), np.cos(turn)])
        wheel = hull("wheel", np.concatenate([ring + side, ring - side]))
        assert wheel is not None  # a ring has an extent
        solids.append(CarriedSolid(len(places), wheel.vertices, wheel.faces, R @ W))
        places.append(centre)
    points = p[:, None] + np.einsum("nij,nkj->nki", R, np.stack(places, axis=1))
    layer = Layer("car", points, (), trails=[0], solids=solids)
    return scene(run.t[kept], [layer], title, len(kept), follow=True, view=(-50.0, 18.0))


def _body(run: VehicleRun) -> list[tuple[Array, NDArray[np.int64]]]:
    """Body and cabin in slices across the car: corners (12, 3) in the chassis frame, and the faces that are seen from outside.

    A player draws faces by the depth of their middle, which those of short slices have right.
    """
    half, low, high, roof, L = 0.86, -0.15, 0.35, 0.85, run.vehicle.wheelbase
    tops = [(-0.9, 0.75, high), (-0.4, 0.75, high), (0.2, 0.6, roof), (0.9, 0.6, roof), (1.55, 0.6, roof)]
    tops += [(2.25, 0.75, high), (L + 0.85, 0.75, high)]
    outlines = [
        [(x, y, z) for y, z in ((half, low), (half, high), (w, top), (-w, top), (-half, high), (-half, low))]
        for x, w, top in tops
    ]
    around = [(k, (k + 1) % 6) for k in range(6)]
    side = [face for a, b in around for face in ((a, b, b + 6), (a, b + 6, a + 6))]
    back = [(0, k + 1, k) for k in range(1, 5)]
    front = [(6, k + 6, k + 7) for k in range(1, 5)]
    slices = []
    for k, pair in enumerate(pairwise(outlines)):
        faces = side + (back if k == 0 else []) + (front if k == len(outlines) - 2 else [])
        slices.append((np.array([*pair[0], *pair[1]]), np.array(faces, dtype=np.int64)))
    return slices


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
