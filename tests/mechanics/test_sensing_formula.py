"""Readings as expressions: labels, inputs by number of the configuration, and the tangent of a free base."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.mechanics.formula import formula
from veridyn.mechanics.sensing import outputs_of
from veridyn.mechanics.sensing_formula import reading_derivatives, reading_entries
from veridyn.mechanics.symbols import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.symbolic.evaluate import evaluate
from veridyn.symbolic.expression import Graph

CAR = Tree.build([Body("car", None, "fixed"), Body("wheel", "car")], base="free")


def test_labels_and_inputs() -> None:
    """The wheel's angle stands seventh in the configuration, sixth in the rates; what is zero has no label."""
    outputs = tuple(outputs_of(CAR, Sensor("e", "coordinate", "wheel", 0.1)))
    f = formula(CAR, Request("reading_derivatives", columns=outputs))
    assert f.samples == ("q.7",) and not f.parameters
    assert dict(zip(f.labels, f.outputs, strict=True))[0, 1 + 6] == 1.0 and set(f.labels) == {(0, 0), (0, 7)}
    rate = tuple(outputs_of(CAR, Sensor("e", "rate", "wheel", 0.1)))
    f = formula(CAR, Request("reading_derivatives", columns=rate))
    assert f.samples == ("qd.6",) and set(f.labels) == {(0, 0), (0, 1 + 7 + 6)}


def test_the_tangent_of_a_place() -> None:
    """r = p + R x: ∂r/∂p = 1 and ∂r/∂θ = −R x~."""
    x, rng = np.array([1.0, 2.0, 3.0]), np.random.default_rng(0)
    outputs = outputs_of(CAR, Sensor("p", "position", Marker("car", x), 0.1))
    graph = Graph()
    found = reading_derivatives(CAR, graph, outputs)
    e = rng.normal(size=4)
    e /= np.linalg.norm(e)
    q = np.concatenate([rng.normal(size=3), e, [0.3]])
    given = {f"q.{k}": v for k, v in enumerate(q)} | {f"{s}.{k}": 0.0 for s in ("qd", "qdd") for k in range(7)}
    values = dict(zip(found, evaluate(graph, list(found.values()), given), strict=True))
    H = np.array([[values[i, 1 + k] for k in range(6)] for i in range(3)])
    w, v = e[0], e[1:]
    R = np.array([a + 2 * np.cross(v, np.cross(v, a) + w * a) for a in np.eye(3)]).T  # Rodrigues, column by column
    assert H[:, :3] == pytest.approx(np.eye(3))
    assert H[:, 3:] == pytest.approx(-R @ np.array([[0, -3, 2], [3, 0, -1], [-2, 1, 0]]))
    entries = reading_entries(CAR, Graph(), outputs)
    assert list(entries) == [(0, 0), (1, 0), (2, 0)]
