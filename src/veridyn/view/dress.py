"""What a live view shows on top of lines: meshes, inertia ellipsoids, frames, and forces at the joints; each can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.view.machine import body_poses
from veridyn.view.meshes import BodyMesh

Array = NDArray[np.float64]
MESH, ELLIPSOID, FORCE = (176, 186, 198), (214, 128, 44), (176, 40, 90)  # colours
ARROW = 0.35  # of the size of the machine: the length of the largest force


class Dress:
    """Nodes of a viser scene that follow a machine. `full`: from a pose of the view to all its coordinates."""

    def __init__(
        self,
        server: Any,
        machine: Machine,
        full: Callable[[Array], Array],
        size: float,
        meshes: Sequence[BodyMesh] = (),
        ellipsoids: Sequence[BodyMesh] = (),
        largest_force: float = 0.0,
    ) -> None:
        self._machine, self._full, self._largest, self._size = machine, full, largest_force, size
        self._nodes: list[tuple[str, Any]] = []
        scene = server.scene
        groups: dict[str, list[Any]] = {"meshes": [], "inertia ellipsoids": [], "frames": [], "forces": []}
        for kind, shapes, colour, opacity in (
            ("meshes", meshes, MESH, None),
            ("inertia ellipsoids", ellipsoids, ELLIPSOID, 0.55),
        ):
            for k, s in enumerate(shapes):
                node = scene.add_mesh_simple(
                    f"/{kind.replace(' ', '_')}/{k}", s.vertices, s.faces, color=colour, opacity=opacity, side="double"
                )
                groups[kind].append(node)
                self._nodes.append((s.body, node))
        bodies = tree_of(machine).bodies
        for b in bodies:
            frame = scene.add_frame(
                f"/frames/{b.name.replace('/', '_')}", axes_length=0.08 * size, axes_radius=0.004 * size
            )
            frame.visible = False
            groups["frames"].append(frame)
            self._nodes.append((b.name, frame))
        self._joints = {}
        for b in bodies:
            self._joints.setdefault(b.coordinate_name, b.name)
        self._arrows = None
        if largest_force > 0.0:
            empty = np.zeros((machine.n, 2, 3))
            self._arrows = scene.add_line_segments("/forces", empty, FORCE, thickness=0.02 * size)
            groups["forces"].append(self._arrows)
        self.switches: dict[str, Any] = {}
        for kind, nodes in groups.items():
            if nodes:
                self._switch(server, kind, nodes, kind != "frames" and not (kind == "inertia ellipsoids" and meshes))

    def _switch(self, server: Any, kind: str, nodes: Sequence[Any], on: bool) -> None:
        box = server.gui.add_checkbox(kind, on)
        self.switches[kind] = box

        def change(_: object = None) -> None:
            for node in nodes:
                node.visible = box.value

        box.on_update(change)
        change()

    def show(self, pose: Array, forces: Array | None = None) -> None:
        """Move everything to a pose; `forces` (n,): arrows along the axes of the joints, NaN where none is known."""
        poses = body_poses(self._machine, self._full(pose)[None])
        for body, node in self._nodes:
            R, p = (np.eye(3)[None], np.zeros((1, 3))) if body not in poses else poses[body]
            node.wxyz, node.position = Rotation.from_matrix(R[0]).as_quat()[[3, 0, 1, 2]], p[0]
        if self._arrows is not None and forces is not None:
            self._arrows.points = self._arrow_ends(poses, forces)

    def _arrow_ends(self, poses: Mapping[str, tuple[Array, Array]], forces: Array) -> Array:
        """(n, 2, 3): from each joint along its axis, as long as its force is large."""
        ends = np.zeros((self._machine.n, 2, 3))
        for k, name in enumerate(self._machine.coordinates):
            R, p = poses[self._joints[name]] if name in self._joints else (np.eye(3)[None], np.zeros((1, 3)))
            force = float(forces[k]) if np.isfinite(forces[k]) else 0.0
            ends[k] = p[0], p[0] + ARROW * self._size * force / self._largest * R[0, :, 2]
        return ends
