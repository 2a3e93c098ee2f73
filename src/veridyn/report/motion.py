"""Machines as they move: bodies and joints in a picture that can be turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.pipeline.identified import Trace
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.machine import Machine
from veridyn.report.blocks import Animation, Section, Text, attempted
from veridyn.view.meshes import solids_of
from veridyn.view.scene import Gauge, Layer, Meaning, mechanism_layer, rail_ends, scene, tree_layer, with_rails

FRAMES = 150
ELLIPSOIDS = " A body is drawn as the solid ellipsoid that has its mass and inertia in the model."
MEANINGS: dict[str, Meaning] = {
    "truth": "truth",
    "measured": "measured",
    "simulated": "estimate",
    "estimate": "estimate",
}
MAX_DRAWN_POINTS = 120  # of a machine that fits into a page frame by frame


def machine_animation(
    machine: Machine,
    t: Array,
    motions: Mapping[str, Array],
    caption: str,
    base: tuple[Array | None, Array | None] = (None, None),
) -> Animation:
    """Coordinates (N, n) over time (N,), at most FRAMES of them, by what they are: a machine for each, the last one with bodies.

    `base`: position (N, 3) and rotation (N, 3, 3) of a free base.
    """
    kept = frames_of(t)
    position, rotation = (None if x is None else x[kept] for x in base)
    solids, last = solids_of(machine)[0], list(motions)[-1]
    layers = []
    for word, q in motions.items():
        carried = solids if word == last else ()
        layers.append(
            tree_layer(machine, q[kept], word, position, rotation, meaning=MEANINGS.get(word), solids=carried)
        )
    return Animation(scene(t[kept], layers, machine.name, FRAMES), caption + (ELLIPSOIDS if solids else ""))


def frames_of(t: Array) -> NDArray[np.intp]:
    """Numbers of at most `FRAMES` samples, evenly spread."""
    return np.unique(np.linspace(0, len(t) - 1, FRAMES).astype(np.intp))


def mechanism_animation(machine: NaturalSystem, t: Array, q: Array, label: str) -> Animation:
    """One motion of a mechanism."""
    return animation_of_layers(machine, t, q, [mechanism_layer(label, machine, q, False)])


def animation_of_layers(machine: NaturalSystem, t: Array, q: Array, layers: Sequence[Layer]) -> Animation:
    plane = machine.mechanism.dimension == 2
    up, view = ("y", (0.0, 0.0)) if plane else ("z", (-60.0, 20.0))
    rails = rail_ends(machine, q, 0.25 * float(np.ptp(layers[0].points[0], axis=0).max()))
    drawn = [with_rails(layers[0], rails), *layers[1:]]
    caption = "Cubes: bodies of a single point, their volumes as their masses." if layers[0].solids else ""
    return Animation(scene(t, drawn, machine.mechanism.name, up=up, view=view), caption)


def replay_section(study: IdentificationStudy, model: Path | None = None) -> Section:
    """The motion that the fit is judged on, with the forces of every joint that was measured; `model`: the file of the machine."""
    title, machine = "The machine on the validation log", study.fit.described
    bodies = len(bodies_of(machine))
    if bodies > MAX_DRAWN_POINTS:
        return Section(title, [Text(f"“{machine.name}” has {bodies} bodies, too many to be drawn in a page.")])
    return Section(title, [attempted(title, lambda: _replay(study, model))])


def _replay(study: IdentificationStudy, model: Path | None) -> Animation | Text:
    machine, motion = study.fit.described, study.validation
    kept = frames_of(motion.t)
    solids, unread = solids_of(machine, model)
    layer = tree_layer(machine, motion.q[kept], machine.name, meaning="estimate", solids=solids)
    if not layer.segments and not solids:
        return Text(
            f"There is nothing to draw of “{machine.name}”: its joints lie at one place, and no centre of mass is known."
        )
    gauges = joint_gauges(machine, study.traces["validation"], kept, {r.row: r.rms for r in study.fit.rows})
    seen = scene(motion.t[kept], [layer], machine.name, FRAMES, gauges)
    caption = (
        "Bars beside a joint: measured force, grey, and predicted, blue, each joint on its own scale. The joint itself turns from blue "
        "to rust as both differ by up to four times the rms of the residual of the fit."
    )
    from_base = " It is drawn as seen from its base." if machine.base == "free" else ""
    return Animation(seen, caption + from_base + _of_solids(model, len(solids), len(unread)))


def _of_solids(model: Path | None, solids: int, unread: int) -> str:
    """What the bodies are drawn as."""
    if model is not None and model.suffix.lower() == ".urdf":
        left_out = f" {unread} of them could not be read; veridyn view names them." if unread else ""
        return f" Bodies are simplified hulls of the shapes in {model.name}.{left_out}" if solids or unread else ""
    return ELLIPSOIDS if solids else ""


def joint_gauges(machine: Machine, trace: Trace, kept: NDArray[np.intp], noise: dict[str, float]) -> list[Gauge]:
    """A gauge for each row of a coordinate, at the first body that it moves."""
    point = {}
    for j, body in enumerate(bodies_of(machine)):
        point.setdefault(body.coordinate_name, 1 + j)
    gauges = []
    for k, (row, unit) in enumerate(zip(trace.rows, trace.units, strict=True)):
        if row in point:
            measured, predicted = trace.measured[kept, k], trace.predicted[kept, k]
            gauges.append(Gauge(point[row], row, unit, measured, np.nan_to_num(predicted), noise.get(row, 0.0)))
    return gauges
