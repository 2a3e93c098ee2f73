"""Sensors of trees: readings against Pinocchio and MuJoCo, derivatives against finite differences, engines against each other."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.mujoco_sensors import MujocoSensors
from strangers.pinocchio_sensors import PinSensors
from strangers.random_trees import random_tree
from strangers.sensor_states import added, random_sensors, random_state
from veridyn.errors import DataError, ModelError
from veridyn.machines import linkage
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.system import check_jacobian
from veridyn.papers.hexapod.machine import hexapod
from veridyn.symbolic.kernel import Single

Array = NDArray[np.float64]


def machines() -> list[Tree]:
    made = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        base = "free" if seed % 2 else "fixed"
        made.append(random_tree(rng, bodies=int(rng.integers(2, 8)), base=base, shared=seed % 3 == 0, inertia=False))
    return made


def differences(table: TreeReadout, q: Array, qd: Array, qdd: Array) -> float:
    """The largest error of the derivatives by finite differences over (tangent of q, q̇, q̈)."""
    nq, nv, tree = table.nq, table.nv, table.tree

    def add(x: Array, d: Array) -> Array:
        return np.concatenate([added(tree, x[:nq], d[:nv]), x[nq:] + d[nv:]])

    return check_jacobian(
        lambda x: table.read(x[:nq], x[nq : nq + nv], x[nq + nv :]),
        lambda x: np.hstack(table.derivatives(x[:nq], x[nq : nq + nv], x[nq + nv :])),
        np.concatenate([q, qd, qdd]),
        add=add,
        outputs=table.names,
    ).error


@pytest.mark.parametrize("number", range(12))
def test_readings_are_those_of_pinocchio_and_mujoco(number: int) -> None:
    tree, rng = machines()[number], np.random.default_rng(100 + number)
    sensors = random_sensors(rng, tree)
    table = tree_readout(tree, sensors, "numpy")
    pinocchio, mujoco = PinSensors(tree, sensors), MujocoSensors(tree, sensors)
    for _ in range(3):
        state = random_state(rng, tree)
        found = table.read(*state)
        wanted = pinocchio.readings(*state)
        assert np.abs(found - wanted).max() < 1e-11 * max(1.0, np.abs(wanted).max())
        by_name = dict(zip(table.names, found, strict=True))
        for name, value in mujoco.readings(*state).items():
            assert by_name[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
        assert set(mujoco.readings(*state)) >= {n for n in table.names if "." in n}


@pytest.mark.parametrize("number", [pytest.param(k, marks=pytest.mark.slow if k % 3 == 2 else ()) for k in range(12)])
def test_derivatives_of_every_kind(number: int) -> None:
    """Central differences, extrapolated; the tangent of a free base's attitude by SciPy's rotations."""
    tree, rng = machines()[number], np.random.default_rng(200 + number)
    table = tree_readout(tree, random_sensors(rng, tree), "numpy")
    assert differences(table, *random_state(rng, tree)) < 1e-7


@pytest.mark.parametrize("number", [2, 3])
def test_engines_agree(number: int) -> None:
    tree, rng = machines()[number], np.random.default_rng(300 + number)
    sensors = random_sensors(rng, tree)
    reference, fast = (tree_readout(tree, sensors, engine) for engine in ("numpy", "compiled"))
    states = [np.array(x) for x in zip(*(random_state(rng, tree) for _ in range(70)), strict=True)]
    for many, one in ((fast.read(*states), fast.read(*(x[5] for x in states))),):
        assert np.abs(many - reference.read(*states)).max() < 1e-11
        assert np.abs(many[5] - one).max() < 1e-12
    for many, one, wanted in zip(
        fast.derivatives(*states),
        fast.derivatives(*(x[5] for x in states)),
        reference.derivatives(*states),
        strict=True,
    ):
        assert many.shape == wanted.shape == (70, len(fast.names), fast.nv)
        assert np.abs(many - wanted).max() < 1e-11 and np.abs(many[5] - one).max() < 1e-12
    assert fast.read(*(x.reshape(7, 10, -1) for x in states)).shape == (7, 10, len(fast.names))


def test_the_kernel_by_its_inputs_and_labels() -> None:
    tree, rng = machines()[3], np.random.default_rng(3)
    table = tree_readout(tree, random_sensors(rng, tree))
    q, qd, qdd = random_state(rng, tree)
    single = Single(table.compiled.kernel, np.zeros(0))
    single.inputs[:] = np.concatenate([q, qd, qdd])[table.take]
    single.call()
    whole = np.zeros((len(table.names), 1 + 3 * table.nv))
    for label, value in zip(table.compiled.labels, single.outputs, strict=True):
        whole[label] = value
    assert whole[:, 0] + table.bias == pytest.approx(table.read(q, qd, qdd), abs=1e-14)
    assert whole[:, 1:] == pytest.approx(np.hstack(table.derivatives(q, qd, qdd)), abs=1e-14)
    assert not table.compiled.kernel.parameters  # readings do not depend on inertial parameters


@pytest.mark.parametrize("machine", [linkage, hexapod])
def test_closed_trees_are_read_in_all_their_coordinates(machine: object) -> None:
    tree: Tree = tree_of(machine())
    assert tree.loops
    rng = np.random.default_rng(1)
    sensors = random_sensors(rng, tree)
    table, state = tree_readout(tree, sensors, "numpy"), random_state(rng, tree)
    assert table.read(*state) == pytest.approx(PinSensors(tree, sensors).readings(*state), abs=1e-10)
    if tree.n < 5:
        assert differences(table, *state) < 1e-7


def test_a_body_that_heads_along_y_reads_its_speed_along_its_own_axis() -> None:
    """A car heading +y at 20 m/s: its own x reads 20, the ground's x reads 0."""
    car = Tree.build([Body("car", None, "fixed")], base="free")
    along = Sensor("speed", "velocity", Marker("car", (0, 0, 0), (1, 0, 0), (0, 1, 0)), 0.1)
    table = tree_readout(car, [along, Sensor("gps", "velocity", "car", 0.1)])
    c = np.sqrt(0.5)
    read = table.read([0, 0, 0, c, 0, 0, c], [0, 20.0, 0, 0, 0, 0], np.zeros(6))
    assert read == pytest.approx([20.0, 0, 0, 0, 20.0, 0], abs=1e-12)


def test_names_units_and_what_depends_on_rates() -> None:
    tree = Tree.build(
        [Body("rail", joint="sliding"), Body("arm", "rail")],
        sensors=[Sensor("x", "coordinate", "rail", 0.1, quantum=0.6), Sensor("w", "rate", "arm", 0.2, bias=3.0)],
    )
    table = tree_readout(tree)
    assert table.names == ("x", "w") and table.units == ("m", "rad/s") and table.owner == (0, 1)
    assert table.variances == pytest.approx([0.01 + 0.03, 0.04]) and table.bias.tolist() == [0.0, 3.0]
    assert table.moves and not table.accelerates
    assert not tree_readout(tree, tree.sensors[:1]).moves
    assert tree_readout(tree, [Sensor("a", "accelerometer", "arm", 0.1)]).accelerates
    again = pickle.loads(pickle.dumps(table))
    assert again.read([1, 2], [3, 4], [5, 6]).tolist() == [1.0, 7.0]
    none = tree_readout(tree, [])
    assert none.read([1, 2], [3, 4], [5, 6]).shape == (0,)
    assert none.derivatives([1, 2], [3, 4], [5, 6])[0].shape == (0, 2)


def test_what_is_refused() -> None:
    tree = machines()[1]
    with pytest.raises(ModelError, match="sensor 's': there is no body 'nose'"):
        tree_readout(tree, [Sensor("s", "gyroscope", "nose", 0.1)])
    table = tree_readout(tree, [Sensor("s", "gyroscope", tree.bodies[0].name, 0.1)])
    with pytest.raises(DataError, match=r"(?s)random, q: wrong shape of a state.*A free base comes first"):
        table.read(np.zeros(tree.n), np.zeros(table.nv), np.zeros(table.nv))
    with pytest.raises(DataError, match="random, qdd: wrong shape"):
        table.read(np.zeros((2, table.nq)), np.zeros((2, table.nv)), np.zeros((3, table.nv)))
    fixed = tree_readout(Tree.build([Body("arm")]), [Sensor("s", "position", "arm", 0.1)])
    with pytest.raises(DataError, match="too far from zero"):
        fixed.read([1e7], [0.0], [0.0])
    with pytest.raises(DataError, match="there is no engine 'fast'"):
        tree_readout(tree, [], "fast")


def test_inertial_parameters_do_not_matter() -> None:
    tree = random_tree(np.random.default_rng(5), bodies=4)
    table = tree_readout(tree, random_sensors(np.random.default_rng(6), tree))
    other = replace(table, tree=tree.with_parameters(2.0 * tree.parameters.values))
    state = random_state(np.random.default_rng(7), tree)
    assert (table.read(*state) == other.read(*state)).all()
    assert table.compiled is other.compiled
