"""A welded machine against the original at rest in the locked joints, and against Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.pinocchio_sensors import PinSensors
from strangers.random_trees import random_motion, random_tree
from strangers.sensor_states import random_sensors, random_state
from veridyn.errors import ModelError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.sensing import load_matrix
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.weld import locked_tree, welded
from veridyn.model.elements.element import damper
from veridyn.model.load import Drive, Force, Torque, Transmission
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor


@pytest.mark.parametrize("seed", range(12))
def test_forces_are_those_of_the_original_with_the_locked_joints_at_rest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=7, base="free", kinds=("turning", "sliding"))
    locked = {c: float(v) for c, v in zip(tree.coordinates[1::2], rng.normal(size=tree.n), strict=False)}
    motion = random_motion(rng, tree, 5, wrenches=False)
    for name, value in locked.items():
        k = tree.coordinates.index(name)
        motion.q[:, k], motion.qd[:, k], motion.qdd[:, k] = value, 0.0, 0.0
    less = welded(tree, locked)
    stay = [k for k, c in enumerate(tree.coordinates) if c not in locked]
    assert less.coordinates == tuple(tree.coordinates[k] for k in stay)
    fewer = replace(motion, q=motion.q[:, stay], qd=motion.qd[:, stay], qdd=motion.qdd[:, stay])
    rows = [*range(6), *(6 + k for k in stay)]
    expected = PinModel(tree).inverse_dynamics(motion)[:, rows]
    assert inverse_dynamics(less, fewer) == pytest.approx(expected, rel=1e-11, abs=1e-9)


def test_what_cannot_be_locked_is_named() -> None:
    tree = random_tree(np.random.default_rng(3), bodies=4, base="free")
    with pytest.raises(ModelError, match="'elbow' is no coordinate"):
        welded(tree, {"elbow": 0.0})
    with pytest.raises(ModelError, match="cannot be held there"):
        welded(tree, {tree.coordinates[0]: float("nan")})
    unknown = Tree.build(tree.bodies, base="free", elements=[damper(tree.coordinates[0])])
    with pytest.raises(ModelError, match="the inertia of some bodies is unknown"):
        welded(unknown, {tree.coordinates[0]: 0.0})
    couples = np.array([[1.0, 0.5], [0.2, 1.0]])
    drives = replace(tree, transmission=Transmission(("m1", "m2"), tree.coordinates[:2], couples))
    with pytest.raises(ModelError, match=r"more motors than joints that are left[\s\S]*2 motors of 1 joints"):
        welded(drives, {tree.coordinates[0]: 0.0})
    couples[1, 0] = 0.0  # motor 2 alone moves joint 2, and is left
    left = welded(
        replace(drives, transmission=Transmission(("m1", "m2"), tree.coordinates[:2], couples)),
        {tree.coordinates[0]: 0.0},
    )
    assert left.transmission is not None and left.transmission.motors == ("m2",)
    assert left.transmission.matrix == 1.0 and left.transmission.joints == tree.coordinates[1:2]


def test_a_joint_on_the_ground_cannot_be_locked() -> None:
    tree = random_tree(np.random.default_rng(5), bodies=3, base="fixed", kinds=("turning",))
    root = next(b for b in tree.bodies if b.joint != "fixed" and b.antecedent == "ground")
    with pytest.raises(ModelError, match="no inertia to take it up"):
        welded(tree, {root.coordinate_name: 0.0})


@pytest.mark.parametrize("seed", range(6))
def test_sensors_and_loads_stay_where_they_were(seed: int) -> None:
    """Readings and rows of the welded machine are those of the original, by Pinocchio, with the locked joints at rest."""
    rng = np.random.default_rng(seed)
    plain = random_tree(rng, bodies=7, base="free", kinds=("turning", "sliding"))
    locked = {c: float(v) for c, v in zip(plain.coordinates[1::2], rng.normal(size=plain.n), strict=False)}
    sensors = [s for s in random_sensors(rng, plain) if s.on not in locked and s.name != "between"]
    last = plain.bodies[-1].name
    loads = [Force("push", Marker(last, rng.normal(size=3)), (0, 0, 0)), Torque("turn", last, (0, 0, 0))]
    tree = replace(plain, sensors=tuple(sensors), loads=tuple(loads))
    less = welded(tree, locked)
    q, qd, qdd = random_state(rng, tree)
    stay = [k for k, c in enumerate(tree.coordinates) if c not in locked]
    for k, c in enumerate(tree.coordinates):
        if c in locked:
            q[7 + k], qd[6 + k], qdd[6 + k] = locked[c], 0.0, 0.0
    rows = [*range(6), *(6 + k for k in stay)]
    fewer = np.concatenate([q[:7], q[7:][stay]])
    wanted = PinSensors(tree, sensors).readings(q, qd, qdd)
    assert tree_readout(less, engine="numpy").read(fewer, qd[rows], qdd[rows]) == pytest.approx(wanted, abs=1e-10)
    assert load_matrix(less, fewer[None])[0] == pytest.approx(load_matrix(tree, q[None])[0][rows], abs=1e-11)


def test_a_sensor_on_a_locked_coordinate_is_refused() -> None:
    tree = random_tree(np.random.default_rng(3), bodies=4, base="free")
    c = tree.coordinates[0]
    measured = replace(tree, sensors=(Sensor("e", "coordinate", c, 0.1),), loads=(Drive("m", c),))
    with pytest.raises(ModelError, match="sensor 'e': its coordinate is locked") as error:
        welded(measured, {c: 0.0})
    assert "load 'm': its coordinate is locked" in str(error.value)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_identified_may_be_locked_to_the_ground_and_may_be_unknown(seed: int) -> None:
    """Forces of the joints that are left are those of the original, by Pinocchio; an unknown inertia makes its carrier's unknown."""
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, bodies=7, base="fixed", kinds=("turning", "sliding"))
    roots = [b.coordinate_name for b in tree.bodies if b.joint != "fixed" and b.antecedent == "ground"]
    locked = {c: float(v) for c, v in zip([*roots, tree.coordinates[-1]], rng.normal(size=tree.n), strict=False)}
    motion = random_motion(rng, tree, 5, wrenches=False)
    for name, value in locked.items():
        k = tree.coordinates.index(name)
        motion.q[:, k], motion.qd[:, k], motion.qdd[:, k] = value, 0.0, 0.0
    less = locked_tree(tree, locked)
    stay = [k for k, c in enumerate(tree.coordinates) if c not in locked]
    fewer = replace(motion, q=motion.q[:, stay], qd=motion.qd[:, stay], qdd=motion.qdd[:, stay])
    expected = PinModel(tree).inverse_dynamics(motion)[:, stay]
    assert inverse_dynamics(less, fewer) == pytest.approx(expected, rel=1e-11, abs=1e-9)
    assert welded(tree, locked, unknown="keep").coordinates == less.coordinates
    last = next(b for b in tree.bodies if b.coordinate_name == tree.coordinates[-1])
    gone = tree.with_parameters(tree.parameters.replacing({last.parameter("M"): np.nan}))
    unknown = (
        locked_tree(gone, {tree.coordinates[-1]: 0.0}).parameters.missing() if last.antecedent != "ground" else ("M",)
    )
    assert any(name.startswith("M") for name in unknown)
