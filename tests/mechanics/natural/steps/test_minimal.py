"""Independent coordinates: accelerations, exact derivatives of everything, the trapezoidal step on the four-bar of FACTS 6."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, random_mechanism
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.dynamics import solve_accelerations
from veridyn.mechanics.natural.equations.position import position, start_of
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.model.point_parts import Angle, Point, uniform_bar
from veridyn.observe.system import check_jacobian

NONE = np.zeros(0)


def test_accelerations_multipliers_and_all_derivatives() -> None:
    """Against the null-space form, and finite differences: q, q̇, q̈, λ and the step, over z, ż and forces, on random mechanisms."""
    checked = 0
    for seed in (0, 1, 2, 3, 5, 6, 7):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed % 2).mechanism)
        q = position(system)
        model = minimal(system, q, (), None)
        f, loads = model.f, model.loads()
        if f == 0:
            continue
        x0 = np.concatenate([q[model.z], 0.1 * rng.normal(size=f), rng.normal(size=f)])
        at = model.instant(q, x0[:f], x0[f : 2 * f], np.zeros(f), loads)
        qdd, lam = solve_accelerations(system, at.q, at.qd)
        assert np.abs(at.qdd - qdd).max() < 1e-8 * max(1.0, np.abs(qdd).max())
        assert np.abs(at.multipliers - lam).max() < 1e-7 * max(1.0, np.abs(lam).max())

        def instant(x, model=model, q=q, f=f, loads=loads):
            return model.instant(q, x[:f], x[f : 2 * f], x[2 * f :], loads)

        def values(x):
            j = instant(x)
            return np.concatenate([j.q, j.qd, j.qdd, j.multipliers])

        def slopes(x):
            j = instant(x)
            none = np.zeros_like(j.R)
            return np.vstack([np.hstack([j.R, none, none]), np.hstack([j.qd_z, j.R, none]), j.qdd_x, j.multipliers_x])

        def step(x, model=model, q=q, f=f, loads=loads):
            return model.step(q, x[:f], x[f : 2 * f], x[2 * f :], 1e-3, loads)

        def ends(x, model=model):
            j = step(x)
            return np.concatenate([j.q[model.z], j.qd[model.z]])

        scales = np.full(len(x0), 0.01)
        assert check_jacobian(values, slopes, x0, scales=scales).error < 1e-6
        assert check_jacobian(ends, lambda x: step(x).F, x0, scales=scales).error < 1e-6
        checked += 1
    assert checked >= 6


def test_four_bar_of_the_facts() -> None:
    """φ(4 s) = 2.53083926 rad (FACTS 6), order two; many states at once give the numbers of each."""
    system = system_of(fourbar())
    q, qd = start_of(system, {"phi": np.pi / 3}, {"phi": 1.0})
    model = minimal(system, q)
    loads, errors = model.loads(), []
    for h, count in ((1e-2, 400), (5e-3, 800)):
        at, z, zd = q, q[model.z], qd[model.z]
        for _ in range(count):
            after = model.step(at, z, zd, NONE, h, loads, derivative=False)
            at, z, zd = after.q, after.q[model.z], after.qd[model.z]
        errors.append(z[0] - 2.53083926)
        assert np.abs(system.constraints.values(at)).max() < 1e-9
    assert abs(errors[1]) < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    many = model.step(
        np.tile(q, (3, 1)), np.tile(q[model.z], (3, 1)), np.array([[1.0], [2.0], [3.0]]), NONE, 5e-3, loads
    )
    one = model.step(q, q[model.z], np.array([2.0]), NONE, 5e-3, loads)
    assert np.array_equal(many.q[1], one.q) and np.array_equal(many.F[1], one.F)


def test_a_long_way_is_gone_in_pieces_and_stays_on_its_assembly() -> None:
    system = system_of(fourbar())
    q, _ = start_of(system, {"phi": 0.3})
    model = minimal(system, q)
    there = model.instant(q, np.array([3.5]), np.zeros(1), NONE, model.loads(), derivative=False)
    assert there.q[system.mechanism.index("2.y")] > 0.0  # still the upper one
    assert np.abs(system.constraints.values(there.q)).max() < 1e-9


def test_what_is_refused() -> None:
    system = system_of(fourbar())
    q, _ = start_of(system, {"phi": 1.0})
    with pytest.raises(ModelError, match="neither a coordinate nor a load of one number"):
        minimal(system, q, (), ("engine",))
    with pytest.raises(ModelError, match="these are not the independent coordinates"):
        minimal(system, q, ("phi", "1.x"))
    with pytest.raises(DataError, match=r"the rate of '1.x' follows from the others"):
        start_of(system, None, {"phi": 1.0, "1.x": 2.0})
    flat = Mechanism.build(
        [Point("A", (0, 0), True), Point("B", (3, 0), True), Point("1", (1, 1.7)), Point("2", (2.5, 2))],
        [
            uniform_bar("crank", "A", "1", 2.0, 1.0),
            uniform_bar("rod", "1", "2", 1.6, 1.0),
            uniform_bar("rocker", "2", "B", 2.0, 1.0),
        ],
        added=[Angle("phi", ("A", "1"), (1.0, 0.0))],
    )
    short = system_of(flat)
    pose, _ = start_of(short)
    model = minimal(short, pose)
    with pytest.raises(DataError, match=r"mechanism: the mechanism cannot reach this pose(.|\n)*phi = 3.1"):
        model.instant(pose, np.array([3.1]), np.zeros(1), NONE, model.loads())
    with pytest.raises((SimulationError, DataError), match="mechanism"):
        model.step(pose, pose[model.z], np.array([300.0]), NONE, 1.0, model.loads())
