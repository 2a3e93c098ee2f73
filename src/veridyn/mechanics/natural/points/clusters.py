"""Bodies of a machine that are fixed to each other, which of them share one orientation, and where they start."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, ModelError, part_at
from veridyn.model.graph import MachineGraph
from veridyn.model.link import chained, inverted, moved_by
from veridyn.model.names import GROUND
from veridyn.model.spanning import Spanning
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]
Pose = tuple[Array, Array]


@dataclass
class Cluster:
    """Bodies fixed to each other; `places` of the bodies, and `points`, are in the frame of the cluster.

    `group`: clusters of one orientation; `turned`: the rotation of the cluster's frame in that of the group.
    """

    places: dict[str, MDH | Placement]
    points: dict[str, Array] = field(default_factory=dict)
    group: int = 0
    turned: Array = field(default_factory=lambda: np.eye(3))

    @property
    def ground(self) -> bool:
        return GROUND in self.places


def clusters_of(graph: MachineGraph) -> list[Cluster]:
    """Bodies grouped by fixed joints, and clusters by sliding ones."""
    places: dict[str, tuple[int, MDH | Placement]] = {}
    fixed = [(graph.ends(j), j) for j in graph.joints if j.kind == "fixed"]
    used: set[str] = set()
    for k, root in enumerate((GROUND, *graph.by_name)):
        if root in places:
            continue
        places[root] = (k, Placement())
        grown = True
        while grown:
            grown = False
            for (a, b), joint in fixed:
                for near, far in ((a, b), (b, a)):
                    if joint.name not in used and near.body in places and far.body not in places:
                        at = chained(chained(places[near.body][1], near.placement), inverted(far.placement))
                        places[far.body] = (places[near.body][0], at)
                        used.add(joint.name)
                        grown = True
    faults = Faults()
    for _, joint in fixed:
        if joint.name not in used:
            faults.add("it closes a loop in which nothing moves.", where=part_at("joint", joint.name), hint="Drop it.")
    faults.raise_if_any(ModelError, graph.name)
    clusters = []
    for k in dict.fromkeys(k for k, _ in places.values()):
        clusters.append(Cluster({body: at for body, (own, at) in places.items() if own == k}, group=len(clusters)))
    _orient(graph, clusters)
    return clusters


def _orient(graph: MachineGraph, clusters: list[Cluster]) -> None:
    """Give clusters that slide against each other one group."""
    of = {body: c for c in clusters for body in c.places}
    for joint in graph.joints:
        if joint.kind != "sliding":
            continue
        a, b = graph.ends(joint)
        ca, cb = of[a.body], of[b.body]
        if ca.group == cb.group:
            continue
        Ra = ca.turned @ ca.places[a.body].rotation @ a.placement.rotation
        Rb = cb.turned @ cb.places[b.body].rotation @ b.placement.rotation
        turn, old = Ra @ Rb.T, cb.group
        for c in clusters:
            if c.group == old:
                c.group, c.turned = ca.group, turn @ c.turned


def start_poses(graph: MachineGraph, spanning: Spanning) -> dict[str, Pose]:
    """Rotation and position of every body where the assembly puts its coordinates; loops need not be closed there."""
    home = {**graph.assembly.guess, **graph.assembly.hold}
    poses: dict[str, Pose] = {GROUND: (np.eye(3), np.zeros(3))}
    for body, carrier in spanning.carriers.items():
        a, b = graph.ends(carrier.joint)
        M, m = moved_by(carrier.joint, [home.get(c, 0.0) for c in carrier.joint.coordinate_names])
        step = chained(chained(a.placement, Placement(M, m)), inverted(b.placement))
        near = a.body
        if carrier.reversed:
            step, near = inverted(step), b.body
        R, p = poses[near]
        poses[body] = (R @ step.rotation, p + R @ step.position)
    return poses
