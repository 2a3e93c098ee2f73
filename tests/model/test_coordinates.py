"""Coordinates, rows and parameters of a description are those of its tree, for every machine that has one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from strangers.graph_machines import OPEN_KINDS, backwards, random_machine, rssr, slider_crank
from veridyn.errors import ModelError
from veridyn.files.access import shipped_files
from veridyn.files.machine.load import load_model
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.coordinates import coordinates_of
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine

BOX = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0]
SHIPPED = [name for name in shipped_files() if name.endswith(".yaml")]


def compare_with_tree(machine: Machine) -> None:
    tree = tree_of(machine)
    assert machine.coordinates == tree.coordinates
    assert machine.coordinate_kinds == tree.coordinate_kinds
    assert machine.actuated == tree.actuated
    assert machine.actuated_coordinates == tree.actuated_coordinates
    assert (machine.base, machine.rows) == (tree.base, tree.rows)
    assert machine.described.looped == {tree.coordinates[k] for k in tree.looped}
    assert machine.described.independent == tuple(tree.coordinates[k] for k in tree.independent)
    assert (machine.constants, machine.states, machine.signals) == (tree.constants, tree.states, tree.signals)
    assert (machine.independent, machine.held) == (tree.independent, tree.held)
    assert (machine.road_signals, machine.wheels) == (tree.road_signals, tree.wheels)
    assert machine.shares_coordinates == tree.shares_coordinates
    assert len(machine.cut_joints) == len(tree.loops)
    np.testing.assert_array_equal(machine.turns, tree.turns)
    assert machine.columns == tuple((tree.bodies[b].name if b >= 0 else "", k) for b, k in tree.columns)
    for row in machine.rows:
        assert machine.acting_on(row) == tree.acting_on(row)
    for rows in ("all", "joints", "actuated", *(["base"] if tree.base == "free" else [])):
        assert machine.select_rows(rows) == tree.select_rows(rows)
    own, trees = machine.parameters, tree.parameters
    assert (own.names, own.units, own.states) == (trees.names, trees.units, trees.states)
    assert dict(own.ties) == dict(trees.ties)
    np.testing.assert_array_equal(own.values, trees.values)
    np.testing.assert_allclose(
        own.typical, trees.typical, rtol=1e-14
    )  # means of the same lengths, added in another order


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_machines(name: str) -> None:
    compare_with_tree(load_model(f"veridyn:{name}"))


@pytest.mark.parametrize("make", [rssr, slider_crank], ids=["rssr", "slider-crank"])
def test_closed_machines(make: Callable[[], Machine]) -> None:
    compare_with_tree(make())


@pytest.mark.parametrize("frames", [True, False], ids=["frames anywhere", "frames at joints"])
def test_random_chains_described_forwards_and_backwards(frames: bool) -> None:
    for seed in range(4):
        machine = random_machine(seed, OPEN_KINDS, frames)
        compare_with_tree(machine)
        compare_with_tree(backwards(machine, seed))


def test_bodies_stand_behind_what_carries_them() -> None:
    links = [Link(name=name, inertia=BOX) for name in ("hand", "arm", "base")]
    joints = [Joint(name="wrist", a="arm", b="hand"), Joint(name="elbow", a="base", b="arm")]
    machine = Machine.build(links, [*joints, Joint(name="yaw", a="ground", b="base")])
    assert machine.described.links == ("base", "arm", "hand")
    assert machine.coordinates == ("yaw", "elbow", "wrist")
    compare_with_tree(machine)


def test_a_loop_that_cannot_be_cut_is_refused_by_name() -> None:
    links = [Link(name=name, inertia=BOX) for name in ("a", "b")]
    ends = (("ground", "a"), ("a", "b"), ("ground", "b"))
    joints = [Joint(name=f"j{k}", a=a, b=b, cut="no") for k, (a, b) in enumerate(ends)]
    with pytest.raises(ModelError, match=r"j\d.*loop of joints that must not be cut"):
        coordinates_of(Machine(name="ring", links=tuple(links), joints=tuple(joints)))


def test_other_values_keep_the_shape_of_the_tree() -> None:
    machine = load_model("veridyn:delta.yaml")
    tree = tree_of(machine)
    other = machine.with_parameters(1.5 * machine.parameters.values)
    assert tree_of(other).bodies is tree.bodies
    assert tree_of(other).elements is other.elements
    np.testing.assert_array_equal(tree_of(other).parameters.values, 1.5 * tree.parameters.values)
    compare_with_tree(other)
