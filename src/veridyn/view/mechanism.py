"""A mechanism in natural coordinates as lines: its points, joined within each body."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.view.scene import Layer, Meaning

Array = NDArray[np.float64]


def mechanism_layer(
    label: str, machine: NaturalSystem, q: Array, dashed: bool = False, meaning: Meaning | None = None
) -> Layer:
    """Every point of the mechanism, in its own order, at coordinates (N, n), and lines between the points of each body."""
    m, g = machine.mechanism, machine.geometry
    y = np.concatenate([q, np.ones((len(q), 1))], axis=1)
    names = [p.name for p in m.points]
    points = np.zeros((len(q), len(names), 3))
    for k, name in enumerate(names):
        points[:, k, : m.dimension] = y @ g.elements[name].T
    segments = []
    for b in m.bodies:
        own = [names.index(p) for p in b.points]
        segments += list(itertools.pairwise(own)) + ([(own[-1], own[0])] if len(own) > 2 else [])
    return Layer(label, points, segments, dashed=dashed, meaning=meaning)
