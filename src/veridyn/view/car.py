"""A car as a picture: the body as a box with a cabin, four wheels as rings with a spoke, from the run of a simulation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.simulate.vehicle.run import VehicleRun
from veridyn.view.scene import Layer, Scene, scene

Array = NDArray[np.float64]
RING = 10  # points of a wheel
FRAMES = 200


def car_scene(run: VehicleRun, title: str, frames: int = FRAMES) -> Scene:
    """A drive, seen from beside the car; the chassis origin leaves a trail on its way."""
    kept = np.unique(np.linspace(0, len(run) - 1, frames).astype(int))
    R, p = run.attitude[kept], run.position[kept]
    body, lines = _body(run)
    points = [p[:, None] + np.einsum("nij,kj->nki", R, body)]
    for i in range(4):
        ring, first = _wheel(run, kept, i), sum(x.shape[1] for x in points)
        points.append(p[:, None] + np.einsum("nij,nkj->nki", R, ring))
        lines += [(first + k, first + (k + 1) % RING) for k in range(RING)]
        lines += [(first, first + RING // 2)]  # a spoke, so that it is seen to turn
    layer = Layer("car", np.concatenate(points, axis=1), lines, trails=[8])
    return scene(run.t[kept], [layer], title, len(kept), follow=True, view=(-50.0, 18.0))


def _body(run: VehicleRun) -> tuple[Array, list[tuple[int, int]]]:
    """Points in the chassis frame: a box from bumper to bumper, the origin, and a roof; and the lines between them."""
    L, half = run.vehicle.wheelbase, 0.86
    low, high, roof = -0.15, 0.35, 0.85
    box = [
        (x, y, z) for z in (low, high) for x, y in ((-0.9, half), (L + 0.85, half), (L + 0.85, -half), (-0.9, -half))
    ]
    top = [(0.2, 0.6, roof), (1.55, 0.6, roof), (1.55, -0.6, roof), (0.2, -0.6, roof)]
    foot = [(-0.4, 0.75, high), (2.25, 0.75, high), (2.25, -0.75, high), (-0.4, -0.75, high)]
    points = np.array([*box, (0.0, 0.0, -0.6), *top, *foot])
    lines = [(a, (a + 1) % 4) for a in range(4)] + [(4 + a, 4 + (a + 1) % 4) for a in range(4)]
    lines += [(a, a + 4) for a in range(4)]
    lines += [(9 + a, 9 + (a + 1) % 4) for a in range(4)] + [(9 + a, 13 + a) for a in range(4)]
    return points, lines


def _wheel(run: VehicleRun, kept: NDArray[np.intp], i: int) -> Array:
    """A ring about wheel centre i in the chassis frame (n, RING, 3), turned by steering, camber and the wheel's own angle."""
    x, y = run.vehicle.places()[i]
    place = run.wheel_place[0][kept, i]
    z = run.clearance[0][kept, i]
    centre = np.stack([x + place[:, 1], y + place[:, 0], z], axis=1)
    turn = run.wheel_angle[0][kept, i][:, None] + 2.0 * np.pi * np.arange(RING) / RING
    radius = float(run.vehicle.packed().tyres.radius[i])
    ring = radius * np.stack([np.sin(turn), np.zeros_like(turn), np.cos(turn)], axis=2)
    toe, camber = place[:, 2], place[:, 3]
    c, s, cg, sg = np.cos(toe), np.sin(toe), np.cos(camber), np.sin(camber)
    lean = np.stack([ring[..., 0], -sg[:, None] * ring[..., 2], cg[:, None] * ring[..., 2]], axis=2)
    steered = np.stack(
        [
            c[:, None] * lean[..., 0] - s[:, None] * lean[..., 1],
            s[:, None] * lean[..., 0] + c[:, None] * lean[..., 1],
            lean[..., 2],
        ],
        axis=2,
    )
    return centre[:, None] + steered


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
