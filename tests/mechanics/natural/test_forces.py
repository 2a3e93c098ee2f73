"""Generalised forces: virtual power, potentials, and exact tangents against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.natural.forces import forces_of
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.position import independent, velocity
from veridyn.mechanics.natural.system import system_of
from veridyn.model.load import Torque
from veridyn.model.point_parts import Point, Spring, uniform_bar

SEEDS = range(8)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_tangents_against_finite_differences(seed: int, dim: int) -> None:
    rng = np.random.default_rng(400 + seed)
    table = forces_of(Geometry(random_mechanism(rng, dim).mechanism))
    n = len(table.weight) - 1
    q, qd = rng.normal(size=n), rng.normal(size=n)
    K, C = table.tangents(q, qd, table.values)
    h, scale = 1e-6, max(np.abs(K).max(), np.abs(C).max(), 1.0)
    for k, e in enumerate(np.eye(n)):
        down, up = (table.forces(q + s * h * e, qd, table.values) for s in (-1, 1))
        assert np.abs(K[:, k] + (up - down) / (2 * h)).max() <= 1e-6 * scale
        down, up = (table.forces(q, qd + s * h * e, table.values) for s in (-1, 1))
        assert np.abs(C[:, k] + (up - down) / (2 * h)).max() <= 1e-6 * scale


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_everything(seed: int, dim: int) -> None:
    """Q·q̇ = −d(potential)/dt − what dampers take + F·v + τ·ω, along a velocity that the joints allow."""
    rng = np.random.default_rng(500 + seed)
    posed = random_mechanism(rng, dim)
    system = system_of(posed.mechanism)
    m, g, q = posed.mechanism, system.geometry, system.guess
    names = independent(system, q)
    if not names:
        pytest.skip("a structure does not move")
    qd = velocity(system, q, dict(zip(names, rng.normal(size=len(names)), strict=True)))
    rate = {a: qd[m.index(a)] for a in ("theta", "s", "d", "e")}
    h = 1e-6
    slope = (sum(system.forces.potential(q + h * qd)) - sum(system.forces.potential(q - h * qd))) / (2 * h)
    last = m.bodies[-1].name
    push, twist, pair = (np.array(load.value) for load in m.loads[1:])
    omega = np.atleast_1d(g.angular_velocity(last, q, qd))
    omega0 = np.atleast_1d(g.angular_velocity("b0", q, qd))
    tip = g.point(m.loads[1].at)[:, :-1] @ qd
    between = (g.point(m.dampers[0].on[1]) - g.point("O")) @ np.append(q, 1.0)
    along = between / np.linalg.norm(between) @ tip
    taken = 3.0 * along**2 + 0.4 * rate["theta"] ** 2 + 1.0 * rate["s"] ** 2
    given = 2.0 * rate["theta"] + push @ tip + twist @ omega + pair @ (omega - omega0)
    Q = system.forces.forces(q, qd, system.forces.values)
    scale = max(1.0, abs(slope), abs(taken), abs(given), np.abs(qd).max() ** 2)
    assert Q @ qd == pytest.approx(-slope - taken + given, abs=1e-7 * scale)


def test_loads_by_name() -> None:
    table = forces_of(Geometry(fourbar()))
    assert table.load_values() == pytest.approx([-10.0])
    assert table.load_values({"motor": 100.0}) == pytest.approx([100.0])
    with pytest.raises(DataError, match=r"(?s)fourbar: there is no load 'engine'.*Known: motor"):
        table.load_values({"engine": 1.0})
    with pytest.raises(DataError, match=r"(?s)load 'motor'.*1 finite number"):
        table.load_values({"motor": (1.0, 2.0)})
    with pytest.raises(DataError, match="this is no value of this load"):
        table.load_values({"motor": np.nan})


def test_a_strut_without_length_is_refused() -> None:
    points = [Point("A", (0, 0), True), Point("B", (0, 0)), Point("C", (1, 0))]
    mechanism = Mechanism.build(
        points, [uniform_bar("bar", "B", "C", 1, 1)], springs=[Spring("k", ("A", "B"), 1.0, 1.0)]
    )
    table = forces_of(Geometry(mechanism))
    with pytest.raises(DataError, match="force 'k': its two ends are at one place"):
        table.forces(np.array([0.0, 0, 1, 0]), np.zeros(4), table.values)


def test_a_torque_needs_an_orientation() -> None:
    points = [Point("A", (0, 0, 0), True), Point("B", (1, 0, 0))]
    mechanism = Mechanism.build(points, [uniform_bar("bar", "A", "B", 1, 1, 3)], loads=[Torque("t", "bar", (0, 0, 1))])
    with pytest.raises(ModelError, match="force 't', body 'bar': its points and vectors do not fix its orientation"):
        forces_of(Geometry(mechanism))
