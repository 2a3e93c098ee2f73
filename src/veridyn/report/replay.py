"""The machine in 3-D replaying a log: measured and predicted forces at its joints, and how far they are apart as colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.report.attempted import attempted
from veridyn.report.blocks import Animation, Section, Text
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.trace import Trace
from veridyn.view.machine import tree_layer
from veridyn.view.meshes import solids_of
from veridyn.view.scene import Gauge, scene

Array = NDArray[np.float64]
FRAMES = 150
ELLIPSOIDS = " A body is drawn as the solid ellipsoid that has its mass and inertia in the model."
MOST_POINTS = 120  # of a machine that fits into a page frame by frame


def replay_section(study: IdentificationStudy, model: Path | None = None) -> Section:
    """The motion that the fit is judged on, with the forces of every joint that was measured; `model`: the file of the machine."""
    title, machine = "The machine on the validation log", study.fit.described
    bodies = len(tree_of(machine).bodies)
    if bodies > MOST_POINTS:
        return Section(title, [Text(f"“{machine.name}” has {bodies} bodies, too many to be drawn in a page.")])
    return Section(title, [attempted(title, lambda: _animation(study, model))])


def _animation(study: IdentificationStudy, model: Path | None) -> Animation:
    machine, motion = study.fit.described, study.validation
    kept = frames_of(motion)
    solids, unread = solids_of(machine, model)
    layer = tree_layer(machine, motion.q[kept], machine.name, meaning="estimate", solids=solids)
    gauges = joint_gauges(machine, study.traces["validation"], kept, {r.row: r.rms for r in study.fit.rows})
    seen = scene(motion.t[kept], [layer], machine.name, FRAMES, gauges)
    caption = (
        "Bars beside a joint: measured force, grey, and predicted, blue, each joint on its own scale. The joint itself turns from green "
        "to red as both differ by up to four times the rms of the residual of the fit."
    )
    from_base = " It is drawn as seen from its base." if machine.base == "free" else ""
    return Animation(seen, caption + from_base + _of_solids(model, len(solids), len(unread)))


def _of_solids(model: Path | None, solids: int, unread: int) -> str:
    """What the bodies are drawn as."""
    if model is not None and model.suffix.lower() == ".urdf":
        left_out = f" {unread} of them could not be read; veridyn view names them." if unread else ""
        return f" Bodies are simplified hulls of the shapes in {model.name}.{left_out}" if solids or unread else ""
    return ELLIPSOIDS if solids else ""


def frames_of(motion: Motion) -> NDArray[np.intp]:
    """Numbers of at most `FRAMES` samples, evenly spread."""
    return np.unique(np.linspace(0, len(motion) - 1, FRAMES).astype(np.intp))


def joint_gauges(machine: Machine, trace: Trace, kept: NDArray[np.intp], noise: dict[str, float]) -> list[Gauge]:
    """A gauge for each row of a coordinate, at the first body that it moves."""
    point = {}
    for j, body in enumerate(tree_of(machine).bodies):
        point.setdefault(body.coordinate_name, 1 + j)
    found = []
    for k, (row, unit) in enumerate(zip(trace.rows, trace.units, strict=True)):
        if row in point:
            measured, predicted = trace.measured[kept, k], trace.predicted[kept, k]
            found.append(Gauge(point[row], row, unit, measured, np.nan_to_num(predicted), noise.get(row, 0.0)))
    return found
