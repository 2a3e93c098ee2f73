"""Sets of independent coordinates: which one is left, for which other, and how changes go along."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.minimal import Instant, Minimal, minimal
from veridyn.mechanics.natural.steps.model import Charts
from veridyn.model.point_parts import Point, uniform_bar

NONE = np.zeros(0)


def pendulum() -> Minimal:
    machine = Mechanism.build(
        [Point("O", (0.0, 0.0), fixed=True), Point("A", (np.sqrt(0.5), np.sqrt(0.5)))],
        [uniform_bar("rod", "O", "A", 1.0, 1.0)],
    )
    system = system_of(machine)
    return minimal(system, start_of(system)[0], ("A.x",))


def at(model: Minimal, angle: float, rate: float) -> Instant:
    q = np.array([np.cos(angle), np.sin(angle)])
    qd = rate * np.array([-q[1], q[0]])
    return model.instant(q, q[model.z], qd[model.z], NONE, model.loads())


def test_the_strain_of_a_pendulum_is_the_slope_of_its_circle() -> None:
    """dy/dx = −cot φ."""
    charts = Charts(pendulum())
    for angle in (1.2, 0.8, 0.3, 0.1):
        found = at(charts.first, angle, 1.0)
        assert charts.strain(0, found.R) == pytest.approx(max(1.0, 1.0 / np.tan(angle)))


def test_the_other_coordinate_takes_over_where_it_does_better() -> None:
    charts = Charts(pendulum())
    flat, steep = at(charts.first, 1.2, 1.0), at(charts.first, 0.3, 1.0)
    assert charts.better(0, flat.q, flat.R) is None and len(charts.known) == 1
    number = charts.better(0, steep.q, steep.R)
    assert number == 1 and charts[1].names == ("A.y",)
    again = at(charts[1], 0.3, 1.0)
    assert charts.better(1, again.q, again.R) is None
    assert charts.best(flat.q) == 0  # known already, and found again


def test_changes_go_along() -> None:
    """d(y, ẏ)/d(x, ẋ) on the circle, by differences of y = √(1 − x²)."""
    charts = Charts(pendulum())
    found = at(charts.first, 0.5, 2.0)
    assert charts.best(at(charts.first, 0.1, 1.0).q) == 1

    def other(x: float, xd: float) -> np.ndarray:
        y = np.sqrt(1.0 - x * x)
        return np.array([y, -x * xd / y])

    x, xd, h = found.q[0], found.qd[0], 1e-6
    numeric = np.column_stack(
        [
            (other(x + h, xd) - other(x - h, xd)) / (2.0 * h),
            (other(x, xd + h) - other(x, xd - h)) / (2.0 * h),
        ]
    )
    T = charts.change(found, 1)
    assert pytest.approx(numeric, abs=1e-8) == T
    back = charts.change(at(charts[1], 0.5, 2.0), 0)
    assert back @ T == pytest.approx(np.eye(2), abs=1e-12)


def test_an_added_angle_is_kept() -> None:
    """The crank of the four-bar turns right round, and its angle is good everywhere."""
    system = system_of(fourbar())
    for phi in np.linspace(0.0, 2.0 * np.pi, 25):
        q, qd = start_of(system, {"phi": float(phi)}, {"phi": 1.0})
        model = minimal(system, q)
        assert model.names == ("phi",)
        found = model.instant(q, q[model.z], qd[model.z], NONE, model.loads())
        assert Charts(model).better(0, found.q, found.R) is None


def test_sizes_are_those_of_bodies_not_of_places() -> None:
    far = Mechanism.build(
        [Point("O", (1e3, 0.0), fixed=True), Point("A", (1e3 + 0.2, 0.0))], [uniform_bar("rod", "O", "A", 0.2, 1.0)]
    )
    system = system_of(far)
    assert Charts(minimal(system, start_of(system)[0])).sizes == pytest.approx([0.2, 0.2])
