"""Redundant constraints are left out by name and the motion does not notice; singular poses and contradictions are still refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar, parallelogram, random_mechanism, rotation, turning_fourbar
from veridyn.errors import ModelError, ModelWarning, SimulationError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.redundant import Reduced, independent_rows, mobility, refuse_redundant, subset
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.steps.minimal import minimal, start_of
from veridyn.model.place import Marker
from veridyn.model.point_parts import MechanismJoint, Point, RigidBody, UnitVector, uniform_bar

NONE = np.zeros(0)


def test_the_four_bar_has_one_degree_of_freedom() -> None:
    system = system_of(fourbar())
    found = refuse_redundant(system, position(system))
    assert (found.rank, found.degrees_of_freedom, found.redundant) == (4, 1, ())
    assert found.gap[0] > 0.1


def test_a_parallelogram_names_its_redundant_crank() -> None:
    system = system_of(parallelogram())
    q = position(system)
    found = mobility(system, q)
    assert found.degrees_of_freedom == 1
    assert len(found.redundant) == 1
    assert found.gap[1] < 1e-12 < 1e-2 < found.gap[0]
    name = found.redundant[0]
    with pytest.raises(ModelError, match=r"(?s)the constraint '.*' is redundant at this pose.*it follows from '"):
        refuse_redundant(system, q)
    assert any("crank" in other for other in (name, *found.among[0]))


def test_a_joint_given_twice() -> None:
    """A turning joint between bodies that already share its point and vector: its five rows say nothing new."""
    points = [Point("O", (0, 0, 0), True), Point("P", (1, 0, 0))]
    vectors = [UnitVector("u", (0, 0, 1), True), UnitVector("v", (0, 1, 0))]
    arm = RigidBody(
        "arm", {"O": (0, 0, 0), "P": (1, 0, 0)}, {"u": (0, 0, 1), "v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
    )
    joint = MechanismJoint(
        "pin", "turning", Marker("ground", (0, 0, 0), (0, 0, 1)), Marker("arm", (0, 0, 0), (0, 0, 1))
    )
    once = system_of(Mechanism.build(points, [arm], vectors=vectors))
    assert mobility(once, once.guess).degrees_of_freedom == 1
    twice = Mechanism.build(
        [points[0], Point("P", (1, 0, 0)), Point("R", (0, 0, 1))],
        [
            RigidBody(
                "arm", {"O": (0, 0, 0), "P": (1, 0, 0), "R": (0, 0, 1)}, {"v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
            )
        ],
        vectors=[vectors[1]],
        joints=[joint, MechanismJoint("again", "turning", joint.a, joint.b)],
    )
    system = system_of(twice)
    assert mobility(system, system.guess).degrees_of_freedom == 1
    assert mobility(system, system.guess).redundant == ("again: axis beside", "again: axis above")


def test_rows_by_number_are_the_rows() -> None:
    """Values, Jacobian, its rate and the curvature of some rows, against those rows of the whole table."""
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed).mechanism)
        c, q, qd = system.constraints, system.guess + 0.1 * rng.normal(size=system.n), rng.normal(size=system.n)
        rows = np.sort(rng.choice(c.m, c.m - 4, replace=False))
        some = subset(c, rows)
        assert some.names == tuple(c.names[i] for i in rows)
        weights = np.zeros(c.m)
        weights[rows] = rng.normal(size=len(rows))
        assert np.array_equal(some.values(q), c.values(q)[rows])
        assert np.array_equal(some.jacobian(q), c.jacobian(q)[rows])
        assert np.allclose(some.jacobian_rate(q, qd), c.jacobian_rate(q, qd)[rows], atol=1e-14)
        assert np.allclose(some.curvature(q, weights[rows]), c.curvature(q, weights), atol=1e-13)
        assert np.array_equal(some.pattern(), c.pattern()[rows])


@pytest.mark.parametrize("tilted", [False, True])
def test_a_four_bar_of_turning_joints_in_space(tilted: bool) -> None:
    """φ(4 s) = 2.53083926 rad (FACTS 6), and every constraint, also those left out, stays closed."""
    system = system_of(turning_fourbar(rotation(np.random.default_rng(0), 3) if tilted else None))
    q, qd = start_of(system, {"phi": np.pi / 3}, {"phi": 1.0})
    with pytest.warns(ModelWarning, match="some constraints say nothing new") as told:
        model = minimal(system, q, ("phi",))
    assert isinstance(model.system, Reduced) and model.f == 1
    assert all(f"'{name}'" in str(told[0].message) for name in model.system.left_out)
    assert len(model.system.left_out) == 3  # by Grübler: 18 − 20 = −2, and it moves
    assert minimal(model.system, q, ("phi",)).system is model.system  # told once
    at, z, zd, loads = q, q[model.z], qd[model.z], model.loads()
    for _ in range(800):
        after = model.step(at, z, zd, NONE, 5e-3, loads, derivative=False)
        at, z, zd = after.q, after.q[model.z], after.qd[model.z]
    assert z[0] == pytest.approx(2.53083926, abs=5e-5)
    assert np.abs(system.constraints.values(at)).max() < 1e-9
    # what no equation tells makes no force, and the kept multipliers make all of it
    for pose in model.system.poses:
        free = model.system.undetermined(pose)
        assert free.shape == (39, 3)
        assert np.abs(system.constraints.jacobian(pose).T @ free).max() < 1e-12


def test_a_parallelogram_goes_on_without_one_crank() -> None:
    system = system_of(parallelogram())
    q = position(system)
    with pytest.warns(ModelWarning):
        kept = independent_rows(system, q)
    assert isinstance(kept, Reduced) and len(kept.left_out) == 1
    flat = position(system, guess=np.array([1.0, 0.0, 2.0, 0.0, 3.0, 0.0]))
    with pytest.raises(ModelError, match="is redundant at this pose"):  # folded flat it can leave in two ways
        independent_rows(system, flat)
    with pytest.warns(ModelWarning):
        model = minimal(system, q, ("P.x",))
    with pytest.raises(SimulationError, match=r"(?s)do not determine.*lose rank here and need one that was left out"):
        model.step(flat, flat[model.z], np.array([1.0]), NONE, 1e-2, model.loads())


def test_contradictions_are_still_refused_by_name() -> None:
    machine = parallelogram()
    longer = replace(
        machine, bodies=(*machine.bodies[:2], uniform_bar("crankC", "C", "R", 6.0, 1.0), machine.bodies[3])
    )
    system = system_of(longer)
    with pytest.raises(ModelError, match="contradict"):
        position(system)


def test_a_dead_centre_is_no_redundancy() -> None:
    """Two bars in line: a row follows from the other there, and nowhere else."""
    machine = Mechanism.build(
        [Point("O", (0, 0), True), Point("B", (2, 0), True), Point("P", (1, 0))],
        [uniform_bar("one", "O", "P", 1.0, 1.0)],
        joints=[MechanismJoint("rope", "distance", "P", "B", 1.0)],
    )
    with pytest.raises(ModelError, match="is redundant at this pose"):
        minimal(system_of(machine), np.array([1.0, 0.0]))
