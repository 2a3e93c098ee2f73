"""A machine in a browser: posed by sliders, or moved as a log says; viser, of the extra ``view``, serves the page.

    view = LiveView(posable_tree(machine))
    view.show({"q1": 0.5}); view.stop()

The page is served to this computer alone unless `host` says otherwise, and then only to those who have the token. A pose that the loops of
a machine forbid is shown on the page, and the last one stays.
Meshes, inertia ellipsoids, frames, and forces at the joints are shown on top of lines; each can be switched off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from math import inf, pi
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.mechanics.natural.equations.position import independent, position
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.tree.loops.closure import close, closed_home
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.model.machine import Machine
from veridyn.view.admission import Admission, guarded_server
from veridyn.view.meshes import BodyMesh, inertia_shapes
from veridyn.view.scene import Layer, mechanism_layer, rail_ends, tree_layer, with_rails

# Colours. Lamps of the page make bodies brighter than they are painted, so they are painted dark enough for its background.
BACKGROUND, MESH, ELLIPSOID, FORCE = (226, 229, 233), (96, 110, 128), (196, 104, 20), (176, 40, 90)
ARROW = 0.35  # of the size of the machine: the length of the largest force
LINE, POINT, GHOST = (11, 92, 140), (20, 30, 45), (180, 80, 30)  # colours
FEW = 8  # bodies whose names do not hide the machine
FRAME = 1.0 / 30.0  # s between pictures
PLOT_S = 0.2  # between changes of the plot
PLOTTED, POINTS = 6, 400  # coordinates in the plot, and points of each
STROKES = ("#0b5c8c", "#b4501e", "#5fa585", "#d96fc4", "#c0a31e", "#434352")  # those of reports


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
        bodies = bodies_of(machine)
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
        poses = Posture(self._machine, self._full(pose)[None]).frames()
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


@dataclass(frozen=True, eq=False)
class Posable:
    """A machine and the coordinates that pose it, with their ranges; `layer` draws poses (N, k), and `places` names points of it."""

    name: str
    coordinates: tuple[str, ...]
    home: Array
    ranges: Mapping[str, tuple[float, float]]
    places: Mapping[str, int]
    layer: Callable[[Array], Layer]
    up: str = "+z"
    model: Machine | None = None  # with which meshes, ellipsoids, frames and forces are placed
    full: Callable[[Array], Array] | None = None  # from a pose to all coordinates of the model
    meshes: tuple[BodyMesh, ...] = ()


@dataclass(frozen=True, eq=False)
class LiveRecording:
    """Poses (N, k) of a machine over time (N,), in s, and the forces (N, n) on its coordinates, where any are known.

    `ghost` (N, k): poses that a model predicts, drawn beside them.
    """

    t: Array
    poses: Array
    forces: Array | None = None
    ghost: Array | None = None


def posable_tree(
    machine: Machine, ranges: Mapping[str, tuple[float, float]] | None = None, meshes: Sequence[BodyMesh] = ()
) -> Posable:
    """A machine in joint coordinates, open or with loops; of a free base, as seen from it.

    Ranges that are not finite become a turn, or a metre, to each side.

    `meshes`: what its bodies look like, in their frames.
    """
    names = tuple(machine.coordinates[k] for k in machine.independent)
    turning = {c: kind == "turning" for c, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True)}
    full = closed_home(machine) if machine.closed else np.zeros(machine.n)
    home = full[list(machine.independent)]

    def all_of(pose: Array) -> Array:
        return close(machine, pose[None], at=names, start=full).q[0] if machine.closed else pose

    def layer(poses: Array) -> Layer:
        q = close(machine, poses, at=names, start=full).q if machine.closed else poses
        return tree_layer(machine, q, machine.name)

    reach = {c: _range((ranges or {}).get(c, (-inf, inf)), h, pi if turning[c] else 1.0) for c, h in zip(names, home)}
    places = {b.name: k + 1 for k, b in enumerate(bodies_of(machine))}
    return Posable(machine.name, names, home, reach, places, layer, model=machine, full=all_of, meshes=tuple(meshes))


def posable_mechanism(machine: Machine) -> Posable:
    """A machine in natural coordinates, posed by coordinates that determine the others near its own guess."""
    system = natural_system(machine)
    m, q0 = system.mechanism, position(system)
    names = independent(system, q0)
    home = q0[system.select(names)]

    size = float(np.ptp(mechanism_layer("", system, q0[None]).points.reshape(-1, 3), axis=0).max())
    rails = rail_ends(system, q0[None], size)

    def layer(poses: Array) -> Layer:
        out, q = [], q0
        for pose in poses:
            q = position(system, dict(zip(names, pose, strict=True)), q)
            out.append(q)
        return with_rails(mechanism_layer(m.name, system, np.array(out)), rails)

    reach = {c: _range((-inf, inf), h, pi if m.unit_of(c) == "rad" else size) for c, h in zip(names, home)}
    places = {p.name: k for k, p in enumerate(m.points)}
    return Posable(m.name, names, home, reach, places, layer, "+y" if m.dimension == 2 else "+z")


def _range(given: tuple[float, float], home: float, wide: float) -> tuple[float, float]:
    low, high = given
    return (low if low > -inf else home - wide), (high if high < inf else home + wide)


def _lines(machine: Posable, pose: Array) -> Layer:
    """The machine at a pose and, where it gets there, at one beside it: a line that has no length in the first may have one there."""
    beside = pose + np.array([0.02 * (high - low) for low, high in machine.ranges.values()])
    try:
        return machine.layer(np.stack([pose, beside]))
    except VeridynError:
        return machine.layer(pose[None])


class LiveView:
    """A page that shows a machine. It is served from the moment of construction until :meth:`stop`; `address` is where."""

    def __init__(
        self,
        machine: Posable,
        port: int = 8080,
        host: str = "127.0.0.1",
        recording: LiveRecording | None = None,
        token: str | None = None,
    ) -> None:
        self.machine, self.recording = machine, recording
        self.pose = machine.home.copy()
        self._forces: Array | None = None
        self._ghost: Any = None
        frames = _lines(machine, machine.home if recording is None else recording.poses[0])
        admission = Admission.at(host, token)
        self.server: Any = guarded_server(machine.name, host, port, admission)
        self.address = admission.address(host, self.server.get_port()).removesuffix("/")
        self._lock = threading.Lock()
        self._dress: Dress | None = None
        self._plotted = -inf
        self._draw(frames)
        self._controls()
        if recording is not None:
            self.show(recording.poses[0])

    def show(self, pose: Array | Mapping[str, float]) -> bool:
        """Move the machine, all coordinates or some by name; False where its loops do not allow that."""
        with self._lock:
            wanted = self.pose.copy()
            if isinstance(pose, Mapping):
                for name, value in pose.items():
                    wanted[self.machine.coordinates.index(name)] = value
            else:
                wanted[:] = pose
            try:
                points = self.machine.layer(wanted[None]).points[0]
            except VeridynError as error:
                self._said.content = f"This pose cannot be shown: {str(error).splitlines()[0]}"
                return False
            self._said.content = ""
            self.pose = wanted
            with self.server.atomic():
                self._lines.points = self._pairs(points)
                for name, k in self.machine.places.items():
                    self._places[name].position = points[k]
                if self._dress is not None:
                    self._dress.show(wanted, self._forces)
            return True

    def at(self, time: float) -> None:
        """Show the recording at a time, by the sample before it."""
        if self.recording is not None:
            k = max(int(np.searchsorted(self.recording.t, time, side="right")) - 1, 0)
            self._forces = None if self.recording.forces is None else self.recording.forces[k]
            if self._ghost is not None and self.recording.ghost is not None:
                self._ghost.points = self._pairs(self.machine.layer(self.recording.ghost[k][None]).points[0])
            self.show(self.recording.poses[k])
            self._plot_until(time)

    def run(self, stop: threading.Event, seconds: float | None = None) -> None:
        """Play until stopped, or for some seconds; the sliders answer meanwhile."""
        passed = 0.0
        while not stop.wait(FRAME) and (seconds is None or passed < seconds):
            passed += FRAME
            if self.recording is not None and self._play.value:
                t = self.recording.t
                self._time.value = float(t[0] + (self._time.value - t[0] + FRAME) % max(t[-1] - t[0], FRAME))

    def stop(self) -> None:
        """Close the page and free the port."""
        with redirect_stdout(StringIO()):
            self.server.stop()

    def _pairs(self, points: Array) -> Array:
        return points[np.array(self._segments, dtype=int).reshape(-1, 2)]

    def _draw(self, frames: Layer) -> None:
        scene, points = self.server.scene, frames.points[0]
        self._segments = list(frames.segments)
        reached = self._reached(points)
        size = float(np.ptp(reached, axis=0).max()) or 1.0
        scene.set_up_direction(self.machine.up)
        scene.set_background_image(np.full((8, 8, 3), BACKGROUND, dtype=np.uint8))
        flat = self.machine.up == "+y"  # a mechanism in a plane is looked at from the front
        low, middle = reached.min(axis=0), (reached.min(axis=0) + reached.max(axis=0)) / 2.0
        floor = (0.0, low[1], 0.0) if flat else (0.0, 0.0, low[2])
        wide = {"plane": "xz" if flat else "xy", "cell_size": size / 4.0, "section_size": size}
        scene.add_grid("/ground", 4.0 * size, 4.0 * size, position=floor, **wide)
        self.server.initial_camera.look_at = middle
        self.server.initial_camera.position = middle + size * np.array([0.0, 0.0, 1.4] if flat else [0.85, -0.85, 0.55])
        self._lines = scene.add_line_segments("/machine/lines", self._pairs(points), LINE, thickness=0.014 * size)
        if self.recording is not None and self.recording.ghost is not None:
            first = self._pairs(self.machine.layer(self.recording.ghost[0][None]).points[0])
            self._ghost = scene.add_line_segments("/ghost", first, GHOST, thickness=0.01 * size)
        self._places, self._labels = {}, []
        for name, k in self.machine.places.items():
            node = f"/machine/{name.replace('/', '_')}"
            self._places[name] = scene.add_icosphere(node, 0.02 * size, POINT, subdivisions=2, position=points[k])
            self._labels.append(scene.add_label(f"{node}/label", name, visible=len(self.machine.places) <= FEW))

        if self.machine.model is not None and self.machine.full is not None:
            forces = None if self.recording is None else self.recording.forces
            largest = 0.0 if forces is None else float(np.nanmax(np.abs(forces), initial=0.0))
            ellipsoids = inertia_shapes(self.machine.model)
            self._dress = Dress(
                self.server, self.machine.model, self.machine.full, size, self.machine.meshes, ellipsoids, largest
            )
            self._forces = None if forces is None else forces[0]
            self._dress.show(self.pose if self.recording is None else self.recording.poses[0], self._forces)

    def _reached(self, points: Array) -> Array:
        """Points (k, 3) that the camera must see: those of the recording, or the machine at home with what its bodies look like."""
        seen = [points]
        if self.recording is not None:
            some = np.unique(np.linspace(0, len(self.recording.t) - 1, 12).astype(int))
            with suppress(VeridynError):
                seen.append(self.machine.layer(self.recording.poses[some]).points.reshape(-1, 3))
        if self.machine.model is not None and self.machine.full is not None:
            poses = Posture(self.machine.model, self.machine.full(self.pose)[None]).frames()
            for s in self.machine.meshes:
                R, p = poses.get(s.body, (np.eye(3)[None], np.zeros((1, 3))))
                seen.append(s.vertices[:: max(1, len(s.vertices) // 50)] @ R[0].T + p[0])
        return np.concatenate(seen)

    def _plot_until(self, time: float) -> None:
        """Draw the coordinates of the recording up to a time, now and then."""
        if self.recording is None or not hasattr(self, "_plot"):
            return
        if 0.0 <= time - self._plotted < PLOT_S:
            return
        self._plotted = time
        self._plot.data = self._curves(time)

    def _curves(self, time: float) -> tuple[Array, ...]:
        assert self.recording is not None
        step = max(1, len(self.recording.t) // POINTS)
        t, poses = self.recording.t[::step], self.recording.poses[::step, :PLOTTED]
        n = max(2, int(np.searchsorted(t, time, side="right")))
        return (t[:n], *np.ascontiguousarray(poses[:n].T))

    def _controls(self) -> None:
        gui = self.server.gui
        self._said = gui.add_markdown("")
        if self._ghost is not None:
            ghost = gui.add_checkbox("prediction from forces", True)
            ghost.on_update(lambda _: setattr(self._ghost, "visible", ghost.value))
        named = gui.add_checkbox("names", len(self.machine.places) <= FEW)

        @named.on_update
        def _(_: object) -> None:
            for label in self._labels:
                label.visible = named.value

        if self.recording is not None:
            t = self.recording.t
            self._play = gui.add_checkbox("play", True)
            self._time = gui.add_slider("time, s", float(t[0]), float(max(t[-1], t[0] + FRAME)), FRAME, float(t[0]))
            self._time.on_update(lambda _: self.at(self._time.value))
            self._add_plot()
            return
        self.sliders: dict[str, Any] = {}
        for name, value in zip(self.machine.coordinates, self.machine.home, strict=True):
            low, high = self.machine.ranges[name]
            slider = gui.add_slider(name, low, high, (high - low) / 1000.0, float(np.clip(value, low, high)))
            slider.on_update(lambda _, name=name, slider=slider: self.show({name: slider.value}))
            self.sliders[name] = slider

    def _add_plot(self) -> None:
        """A plot of the first coordinates beside the machine, which runs with time."""
        from viser import uplot  # pyright: ignore[reportMissingImports]

        assert self.recording is not None
        t = self.recording.t
        names = self.machine.coordinates[:PLOTTED]
        series = (
            uplot.Series(label="time, s"),
            *(uplot.Series(label=n, stroke=c, width=2) for n, c in zip(names, STROKES)),
        )
        scales = {"x": uplot.Scale(time=False, range=(float(t[0]), float(t[-1])))}
        self._plot = self.server.gui.add_uplot(self._curves(float(t[0])), series, scales=scales, aspect=1.4)
